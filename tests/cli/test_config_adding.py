"""Adding to the configuration file: what stands there stays as it is."""

from __future__ import annotations

import stat
import tomllib

import pytest

from hyperpod_jlab.clusters.configuration import add_cluster
from hyperpod_jlab.core.errors import ConflictError, InvalidInputError, StorageError

BLOCK = '[clusters.new]\norchestrator = "slurm"\n'


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The user's configuration file, which is not there."""
    monkeypatch.delenv("HYPERPOD_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "hyperpod-jlab" / "config.toml"


def written(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_the_first_cluster_makes_the_file(file):
    assert add_cluster("new", BLOCK) == file
    assert file.read_text() == BLOCK


@pytest.mark.parametrize(
    "text",
    [
        '# mine\ndefault_cluster = "a"  # this one\n\n[clusters.a]\norchestrator = "local"\n',
        '[storage]\npath = "/fsx"',  # no line break at the end
        "[clusters]\n",
        'clusters.a.orchestrator = "slurm"\n',
    ],
)
def test_what_stands_there_stays(file, text):
    written(file, text)
    file.chmod(0o600)
    add_cluster("new", BLOCK)
    assert file.read_text().startswith(text)
    assert file.read_text().endswith(BLOCK)
    before, now = tomllib.loads(text), tomllib.loads(file.read_text())
    assert now.pop("clusters") == {**before.pop("clusters", {}), "new": {"orchestrator": "slurm"}}
    assert now == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_clusters_in_one_line_stay_in_one_line(file):
    written(file, 'clusters = {a = {orchestrator = "slurm"}}  # mine\n')
    add_cluster("new", BLOCK)
    assert file.read_text().endswith('new = {orchestrator = "slurm"}}  # mine\n')
    assert list(tomllib.loads(file.read_text())["clusters"]) == ["a", "new"]


def test_a_cluster_that_could_not_be_read_is_not_added(file):
    text = "# mine\n"
    written(file, text)
    for block in ("[clusters.new]\npatch = 3\n", "[clusters.new"):
        with pytest.raises(InvalidInputError, match="cannot be added") as caught:
            add_cluster("new", block)
        assert caught.value.code == "cannot_add"
    assert file.read_text() == text
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clusters = 3\n", "clusters: must be names with values"),
        ("[clusters.a]\norchestrator = 'slurm'\npatch = 3\n", "patch"),
        ("[clusters", "line 1"),
    ],
)
def test_a_file_that_it_would_break_stays_as_it_is(file, text, words):
    written(file, text)
    with pytest.raises(InvalidInputError, match=words):
        add_cluster("new", BLOCK)
    assert file.read_text() == text
    assert list(file.parent.iterdir()) == [file]


def test_a_name_that_is_taken(file):
    written(file, '[clusters.new]\norchestrator = "kubernetes"\n')
    with pytest.raises(ConflictError, match="already has a cluster 'new'"):
        add_cluster("new", BLOCK)
    with pytest.raises(ConflictError, match="'local'"):
        add_cluster("local", '[clusters.local]\norchestrator = "local"\n')


def test_a_link_is_followed(file, tmp_path):
    behind = tmp_path / "dotfiles.toml"
    behind.write_text("# kept elsewhere\n")
    file.parent.mkdir(parents=True)
    file.symlink_to(behind)
    add_cluster("new", BLOCK)
    assert file.is_symlink()
    assert behind.read_text() == f"# kept elsewhere\n\n{BLOCK}"


def test_a_folder_that_cannot_be_made(file, tmp_path):
    (tmp_path / "config").write_text("no folder")
    with pytest.raises(StorageError):
        add_cluster("new", BLOCK)
