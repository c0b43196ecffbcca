"""Configuration files: which count, and what is said of broken ones."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hyperpod_jlab.clusters.configuration import config_files, find_partition, load_settings
from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import InvalidInputError


@pytest.fixture
def user_file(home: Path) -> Path:
    """The user's own configuration file."""
    path = home / "config" / "hyperpod-jlab" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def refused(files: list[Path] | None = None) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        load_settings(files)
    assert (caught.value.code, caught.value.exit_code) == ("invalid_config", 2)
    return caught.value


def test_files_in_the_order_in_which_they_count(home, monkeypatch):
    assert config_files() == [Path("/etc/hyperpod-jlab/config.toml"), home / "config" / "hyperpod-jlab" / "config.toml"]
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert config_files()[1] == Path("/home/ada/.config/hyperpod-jlab/config.toml")
    monkeypatch.setenv("HYPERPOD_CONFIG", "/elsewhere.toml")
    assert config_files() == [Path("/elsewhere.toml")]
    monkeypatch.setenv("HYPERPOD_CONFIG", "")
    assert len(config_files()) == 2


def test_none_at_all(home):
    settings = load_settings()
    assert list(settings.clusters) == ["local"]
    assert settings.default_cluster == "local"


def test_later_files_go_over_earlier_ones_key_by_key(tmp_path):
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text(
        'default_cluster = "ml"\n[storage]\npath = "/a"\nshared = true\n'
        '[clusters.ml]\norchestrator = "slurm"\nuser = "ubuntu"\nlogin_nodes = ["1", "2"]\n'
    )
    second.write_text('[storage]\npath = "/b"\n[clusters.ml]\nlogin_nodes = ["3"]\n[clusters.local]\nslots = 3\n')
    settings = load_settings([first, tmp_path / "missing.toml", second])
    assert settings.default_cluster == "ml"
    assert (settings.storage.path, settings.storage.shared) == ("/b", True)
    cluster = settings.clusters["ml"]
    assert isinstance(cluster, SlurmCluster)
    assert (cluster.user, cluster.login_nodes) == ("ubuntu", ["3"])
    assert settings.clusters["local"].slots == 3


def test_the_file_of_the_variable_stands_alone(home, user_file, monkeypatch):
    user_file.write_text("[clusters.local]\nslots = 3\n")
    assert load_settings().clusters["local"].slots == 3
    alone = home / "alone.toml"
    alone.write_text('[clusters.x]\norchestrator = "local"\n')
    monkeypatch.setenv("HYPERPOD_CONFIG", str(alone))
    settings = load_settings()
    assert settings.clusters["local"].slots is None
    assert list(settings.clusters) == ["local", "x"]
    user_file.write_text("broken [")
    assert load_settings() == settings


def test_the_file_of_the_variable_must_be_there(home, monkeypatch):
    monkeypatch.setenv("HYPERPOD_CONFIG", str(home / "none.toml"))
    assert "file not found" in refused().message


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "owner", "reason"),
    [
        (0o755, 0o666, 0, "all users can write to it"),
        (0o755, 0o602, 0, "all users can write to it"),
        (0o777, 0o644, 0, "all users can replace it"),
        (0o1777, 0o644, 3001, "uid 3001 created it"),
        (0o1777, 0o644, 0, None),
        (0o775, 0o664, 0, None),
        (0o755, 0o644, 3001, None),
    ],
)
@pytest.mark.parametrize("through_link", [False, True])
def test_a_file_that_any_user_could_have_written_is_not_read(
    home, monkeypatch, folder_mode, file_mode, owner, reason, through_link
):
    folder = home / "configuration"
    folder.mkdir()
    path = folder / "config.toml"
    path.write_text("[clusters.local]\nslots = 3\n")
    os.chown(path, owner, owner)
    path.chmod(file_mode)
    folder.chmod(folder_mode)
    if through_link:
        (home / "link.toml").symlink_to(path)
    monkeypatch.setenv("HYPERPOD_CONFIG", str(home / "link.toml" if through_link else path))
    if reason is None:
        assert load_settings().clusters["local"].slots == 3
    else:
        assert reason in refused().message


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a = ", 1, 5),
        ("[clusters.local]\nslots = = 3\n", 2, 9),
        ('[storage]\npath = "unclosed\n', 2, 17),
        ("[storage\n", 1, 9),
        ("a = 1\na = 2\n", 2, 6),
        ('x = """\nnever closed', 2, 13),
        ("\n\n\n[storage]\nshared = yes\n", 5, 10),
        ("just words\n", 1, 6),
    ],
)
def test_broken_toml_is_told_with_line_and_column(home, user_file, text, line, column):
    user_file.write_text(text)
    error = refused()
    assert (error.detail["line"], error.detail["column"]) == (line, column)
    assert f"{user_file}, line {line}, column {column}: " in error.message
    assert error.detail["path"] == str(user_file)
    assert "at line" not in error.message
    assert error.hint


@pytest.mark.parametrize("kind", ["folder", "bytes", "loop"])
def test_a_file_that_cannot_be_read(home, user_file, kind):
    if kind == "folder":
        user_file.mkdir()
    elif kind == "bytes":
        user_file.write_bytes(b"a = '\xff'")
    else:
        user_file.symlink_to(user_file)
    assert str(user_file) in refused().message


@pytest.mark.parametrize(
    ("text", "field", "hint"),
    [
        ('defaultcluster = "a"', "defaultcluster", "did you mean 'default_cluster'?"),
        ("[storages]", "storages", "did you mean 'storage'?"),
        ("[storage]\nshare = true", "storage.share", "did you mean 'shared'?"),
        ("[clusters.local]\nslot = 2", "clusters.local.slot", "did you mean 'slots'?"),
        ('[clusters.k]\norchestrator = "kubernetes"\nstorage = { claims = "c" }', "clusters.k.storage.claim", None),
        ('[clusters.s]\norchestrator = "slurm"\nlogin_node = ["a"]', "clusters.s.login_node", "did you mean 'login_nodes'?"),
        ('[clusters.s]\norchestrator = "slrum"', "clusters.s", "did you mean 'slurm'?"),
    ],
)  # fmt: skip
def test_unknown_keys_are_told_with_the_nearest_valid_name(home, user_file, text, field, hint):
    user_file.write_text(text)
    error = refused()
    assert error.detail["field"] == field
    assert error.hint == hint
    assert re.match(rf"{user_file}:\d+:\d+: {field}: ", error.message)
    assert error.detail["path"] == str(user_file)


def test_the_file_that_is_wrong_is_named(tmp_path):
    first, second, third = (tmp_path / name for name in "abc")
    first.write_text("[clusters.local]\nslots = 0\n")
    second.write_text("[clusters.local]\npython = '/p'\n")
    third.write_text("[storage]\nshared = true\n")
    assert refused([first, second, third]).detail["path"] == str(first)
    third.write_text("[clusters.local]\nslots = -1\n")
    assert refused([first, second, third]).detail["path"] == str(third)


def test_a_default_cluster_that_is_none(home, user_file):
    user_file.write_text('default_cluster = "lokal"\n')
    error = refused()
    assert error.detail["field"] == "default_cluster"
    assert "lokal" in error.message
    assert "local" in str(error.hint)


def test_the_partition_as_configured(home, user_file, monkeypatch):
    user_file.write_text('[storage]\npath = "/fsx/../fsx/ada//"\nshared = true\n')
    partition = find_partition(load_settings())
    assert (partition.root, partition.shared) == (Path("/fsx/ada"), True)
    user_file.write_text('[storage]\npath = "~/fsx"\n')
    monkeypatch.setenv("HOME", "/home/ada")
    assert find_partition(load_settings()).root == Path("/home/ada/fsx")


def test_the_partition_by_default(home):
    assert find_partition(load_settings()).root == home / "data" / "hyperpod-jlab" / "partition"


@pytest.mark.parametrize("path", ["fsx", "./fsx", ""])
def test_a_partition_must_be_an_absolute_path(home, user_file, path):
    user_file.write_text(f'[storage]\npath = "{path}"\n')
    with pytest.raises(InvalidInputError) as caught:
        find_partition(load_settings())
    assert caught.value.detail["field"] == "storage.path"


def test_metric_patterns_of_later_files_go_over_earlier_ones_by_name(tmp_path):
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text("[metric_patterns]\npsnr = 'A ([0-9]+)'\nssim = 'S ([0-9]+)'\n")
    second.write_text("[metric_patterns]\npsnr = 'B ([0-9]+)'\n")
    patterns = load_settings([first, second]).metric_patterns
    assert patterns == {"psnr": "B ([0-9]+)", "ssim": "S ([0-9]+)"}


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("PSNR ([0-9]+", "the pattern of 'psnr' is not a regular expression: .* at position 5"),
        ("PSNR [0-9]+", "the pattern of 'psnr' has 0 groups; it needs one"),
    ],
)
def test_a_bad_metric_pattern_is_told_with_its_file(home, user_file, pattern, words):
    user_file.write_text(f"[metric_patterns]\npsnr = '{pattern}'\n")
    error = refused()
    assert re.match(rf"{user_file}:\d+:\d+: metric_patterns: {words}", error.message)
    assert error.detail["field"] == "metric_patterns"
