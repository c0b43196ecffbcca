"""``hpj storage``: a partition that is a plain folder, paths, and the link in the home folder."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hyperpod_jlab.cli.main import main
from tests.storage.users import AS_ROOT, as_other, common_folder


@pytest.fixture
def user_home(home, monkeypatch):
    """The home folder."""
    folder = home.root / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_a_partition_that_is_a_folder_of_this_machine(hpj, home):
    partition = hpj("storage", "--json").ok().json["partition"]
    assert (partition["exists"], partition["isolation"], partition["writable"]) == (False,) + (None,) * 2
    assert "not created yet" in hpj("storage").ok().out
    assert not home.partition.exists()
    hpj("submit", "-c", "true", "--wait").ok()
    told = hpj("storage", "--json").ok().json
    partition = told["partition"]
    assert partition["isolation"]["level"] == "real_identity"
    assert (partition["writable"], partition["read_only"], partition["open_to_others"]) == (True, False, False)
    (disk,) = [one for one in told["file_systems"] if one["runs_go_here"]]
    assert (disk["path"], disk["network"], disk["isolation"]) == (partition["mount"], False, None)
    assert told["clusters"][0]["side"] == "here"
    assert (told["notes"], told["studio"], told["shared_space"]) == ([], False, False)
    home.partition.chmod(0o755)
    for folder in home.partition.parents:
        if folder.stat().st_uid == os.getuid():
            folder.chmod(folder.stat().st_mode | 0o011)
    words = hpj("storage").ok().out
    assert "isolation      none" in words
    assert "everybody may read" in words


def test_a_path_on_each_side(hpj, home):
    home.config.write_text(
        f'[storage]\npath = "{home.work}/fsx"\n'
        '[clusters.s]\norchestrator = "slurm"\nstorage = "/fsx/alice"\nuser = "somebody"\n'
        '[clusters.k]\norchestrator = "kubernetes"\nstorage = { claim = "fsx-claim", mount = "/data" }\n'
        '[clusters.bare]\norchestrator = "kubernetes"\n'
    )
    (home.work / "fsx" / "sets").mkdir(parents=True)
    (home.work / "fsx" / "sets" / "a.csv").write_text("x")
    (home.work / "link").symlink_to(home.work / "fsx")
    for named in ("fsx/sets/a.csv", "./link/sets/a.csv", f"{home.work}/fsx/sets/a.csv"):
        told = hpj("storage", named, "--json").ok().json
        there = {one["cluster"]: (one["side"], one["there"]) for one in told["clusters"]}
        assert there == {
            "local": ("here", f"{home.work}/fsx/sets/a.csv"),
            "s": ("Slurm node", "/fsx/alice/sets/a.csv"),
            "k": ("pod", "/data/sets/a.csv"),
            "bare": ("pod", None),
        }
        assert told["runs_go_here"] is True
    words = hpj("storage", "fsx/sets/a.csv").ok().out
    assert "/fsx/alice/sets/a.csv" in words
    assert "no storage claim is configured" in words
    outside = hpj("storage", "--json", str(home.config)).ok().json
    assert outside["runs_go_here"] is False
    assert {one["there"] for one in outside["clusters"]} == {None}
    assert "is not on the storage partition" in outside["clusters"][0]["reason"]
    notes = hpj("storage", "--json").ok().json["notes"]
    assert [note.split(":")[0] for note in notes] == [
        "runs on s run as somebody",
        "pods of k mount the claim fsx-claim",
    ]


def test_a_path_that_is_not_there(hpj):
    missing = hpj("storage", "nothing", "--json")
    assert (missing.code, missing.error["code"]) == (3, "not_found")
    assert hpj("storage", "a", "b").code == 2


def test_the_link_is_made_once_and_removed(hpj, home, user_home):
    made = hpj("storage", "link", "--json").ok().json
    path = user_home / "hyperpod-partition"
    assert made == {"link": str(path), "partition": str(home.partition), "done": "made"}
    (path / "notes.txt").write_text("kept")
    assert "already there" in hpj("storage", "link").ok().out
    assert path.readlink() == home.partition
    assert hpj("storage", "unlink", "--json").ok().json["done"] == "removed"
    assert not path.is_symlink()
    assert (home.partition / "notes.txt").read_text() == "kept"
    assert hpj("storage", "unlink").code == 3


def test_nothing_that_is_not_our_link_is_touched(hpj, home, user_home):
    (user_home / "file").write_text("mine")
    (user_home / "folder").mkdir()
    (user_home / "other").symlink_to("/etc")
    (user_home / "broken").symlink_to("/nowhere")
    before = {path.name: os.lstat(path).st_ino for path in user_home.iterdir()}
    for name in before:
        for command in ("link", "unlink"):
            refused = hpj("storage", command, name, "--json")
            assert (refused.code, refused.error["code"]) == (2, "not_our_link"), (command, name)
    assert {path.name: os.lstat(path).st_ino for path in user_home.iterdir()} == before
    for name in ("..", "a/b", ".hidden", ""):
        refused = hpj("storage", "link", name, "--json")
        assert (refused.code, refused.error["code"]) == (2, "invalid_name"), name


def test_a_home_that_is_the_partition_needs_no_link(hpj, home, user_home):
    home.config.write_text(f'[storage]\npath = "{user_home}"\n')
    refused = hpj("storage", "link", "--json")
    assert (refused.code, refused.error["code"]) == (2, "home_is_partition")


@AS_ROOT
def test_what_somebody_else_has_closed_is_denied_in_words(hpj, home, monkeypatch, capfd):
    with common_folder() as folder:
        closed = folder / "closed"
        (closed / "fsx" / "data").mkdir(parents=True)
        closed.chmod(0o700)
        config = folder / "config.toml"
        config.write_text(f'[storage]\npath = "{closed}/fsx"\n')
        config.chmod(0o644)
        monkeypatch.setenv("HYPERPOD_CONFIG", str(config))
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        monkeypatch.chdir(folder)
        assert as_other(lambda: main(["storage", str(closed / "fsx" / "data"), "--json"])) == 4
        assert '"storage_denied"' in capfd.readouterr().err
        assert as_other(lambda: main(["storage"])) == 0
        told = capfd.readouterr().out
        assert "problem        permission denied on the storage partition" in told
        # What is open is shown to both, with what the other one can really do there.
        closed.chmod(0o755)
        assert as_other(lambda: main(["storage"])) == 0
        told = capfd.readouterr().out
        assert "not writable for you" in told
        assert "everybody may read" in told
        assert not Path(closed / "fsx" / ".hyperpod").exists()


def test_runs_of_an_older_version_are_moved_when_asked(hpj, home):
    """`shared` was set since: the runs lie in the private folder's layout."""
    hpj("submit", "-c", "true", "--run-id", "old", "--no-project-files", "--wait").ok()
    home.config.write_text("[storage]\nshared = true\n")
    (home.partition / ".hyperpod").chmod(0o1777)
    assert [run["run_id"] for run in hpj("runs", "--json").ok().json["runs"]] == ["old"]
    assert "storage migrate" in hpj("storage", "--no-aws").ok().err
    (layout,) = (one for one in hpj("doctor", "--json").ok().json["checks"] if one["key"] == "layout")
    assert (layout["level"], layout["fix"]) == ("warn", "hpj storage migrate")
    time.sleep(1.1)  # the shortest age that can be asked for is a second
    told = hpj("clean", "--older", "1s", "--yes")
    assert "old is kept: it is in an old layout" in told.err
    planned = hpj("storage", "migrate", "--dry-run", "--json").ok().json
    assert (planned["moved"], planned["runs"]) == (False, ["old"])
    moved = hpj("storage", "migrate", "--json").ok().json
    assert (moved["moved"], moved["runs"], moved["kept"]) == (True, ["old"], [])
    assert not (home.partition / ".hyperpod").exists()
    assert hpj("show", "old", "--json").ok().json["state"] == "succeeded"
    assert "succeeded" in hpj("runs").ok().out
    assert hpj("storage", "migrate", "--json").ok().json["runs"] == []


def test_the_folders_above_are_judged(hpj, home, tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    home.config.write_text(f"[storage]\npath = '{open_to_all / 'mine'}'\n")
    told = hpj("submit", "-c", "true", "--json")
    assert (told.code, told.error["code"]) == (2, "untrusted_parent")
    assert told.error["hint"].endswith(f"chmod +t {open_to_all}")
    assert not (open_to_all / "mine" / ".hyperpod").exists()
    separation = hpj("storage", "--no-aws", "--json").ok().json["separation"]
    assert separation["holds"] is False
    row = next(one for one in separation["parents"] if one["path"] == str(open_to_all))
    assert (row["mode"], row["problem"]) == ("0777", "open")
    checks = {one["key"]: one for one in hpj("doctor", "--json").json["checks"]}
    assert checks["parents"]["level"] == "fail"
    assert f"chmod +t {open_to_all}" in checks["parents"]["fix"]
    open_to_all.chmod(0o1777)
    assert hpj("submit", "-c", "true", "--no-project-files", "--wait", "--json").ok()
