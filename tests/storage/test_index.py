"""The index of runs: a cache that may be lost, broken or shared at any moment."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage import index as index_module
from hyperpod_jlab.storage.files import locked
from hyperpod_jlab.storage.index import RunIndex, Session, default_path, status_stamp
from hyperpod_jlab.storage.partition import Partition
from tests.storage.bundles import make_bundle
from tests.storage.racing import race
from tests.storage.users import AS_ROOT

VIEW = {"user": "ada", "cluster": "local", "state": "succeeded"}


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    made = Partition(tmp_path / "fsx")
    for number in range(5):
        make_bundle(made, f"run-{number}", created=1000.0 + number)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


def fill(session: Session) -> None:
    session.refresh()
    for run_id in session.list_unread():
        session.put(run_id, {**VIEW, "id": run_id}, created=float(run_id[4:]), ended=True, stamp=0)


def newest(**wanted: Any) -> Callable[[Session], list[str]]:
    def read(session: Session) -> list[str]:
        fill(session)
        return [row.run_id for row in session.newest(limit=None, **wanted)]

    return read


ALL = ["run-4", "run-3", "run-2", "run-1", "run-0"]


def test_runs_come_newest_first(partition, path):
    assert RunIndex(partition, path).use(newest()) == ALL


def test_what_is_known_is_kept(partition, path):
    RunIndex(partition, path).use(fill)
    rows = RunIndex(partition, path).use(lambda session: session.newest(limit=2))
    assert [row.view["id"] for row in rows] == ["run-4", "run-3"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"uid": os.getuid()}, ALL),
        ({"uid": os.getuid() + 1}, []),
        ({"cluster": "local"}, ALL),
        ({"cluster": "x' OR 1=1 --"}, []),
        ({"states": ("failed", "succeeded")}, ALL),
        ({"states": ("failed",)}, []),
        ({"before_run": (3.0, "run-3")}, ["run-2", "run-1", "run-0"]),
        ({"before_run": (0.0, "run-0")}, []),
    ],
)
def test_filters(partition, path, wanted, found):
    assert RunIndex(partition, path).use(newest(**wanted)) == found


def test_deleted_between_two_uses(partition, path):
    index = RunIndex(partition, path)
    keeper = sqlite3.connect(path)  # as another process that has it open
    index.use(fill)
    keeper.execute("SELECT * FROM runs").fetchall()
    path.unlink()
    assert index.use(newest()) == ALL
    keeper.close()
    assert index.use(newest()) == ALL


def test_deleted_in_the_middle_of_a_use(partition, path):
    index = RunIndex(partition, path)

    def read(session: Session) -> list[str]:
        session.refresh()
        path.unlink(missing_ok=True)
        return newest()(session)

    assert index.use(read) == ALL
    assert index.use(newest()) == ALL


def test_its_folder_deleted_in_the_middle_of_a_use(partition, path, tmp_path):
    index = RunIndex(partition, tmp_path / "cache" / "index.sqlite")
    (tmp_path / "cache").mkdir()

    def read(session: Session) -> list[str]:
        session.refresh()
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        return newest()(session)

    assert index.use(read) == ALL
    assert index.use(newest()) == ALL


def test_a_new_file_is_noticed(partition, path):
    index = RunIndex(partition, path)
    told = [index.use(lambda session: session.number) for _ in range(2)]
    path.unlink()
    told += [index.use(lambda session: session.number) for _ in range(2)]
    assert told[0] == told[1] != told[2] == told[3]


def spoil(path: Path, how: str) -> None:
    data = path.read_bytes()
    contents = {
        "empty": b"",
        "garbage": b"garbage" * 1000,
        "half": data[: len(data) // 2],
        "header only": data[:100],
        "pages": data[:4096] + b"\xff" * (len(data) - 4096),
    }
    if how in contents:
        path.write_bytes(contents[how])
    elif how == "folder":
        path.unlink()
        path.mkdir()
    else:
        with sqlite3.connect(path) as connection:
            connection.executescript(how)
        connection.close()


@pytest.mark.parametrize(
    "how",
    [
        "empty",
        "garbage",
        "half",
        "header only",
        "pages",
        "folder",
        "UPDATE runs SET view = '{broken'",
        "UPDATE runs SET view = CAST(X'ff00' AS TEXT)",
        "DROP TABLE runs",
        "DROP TABLE shards",
        "ALTER TABLE runs DROP COLUMN stamp",
        "PRAGMA user_version = 2",
        "PRAGMA user_version = 999",
    ],
)
def test_a_broken_one_is_made_anew(partition, path, how):
    RunIndex(partition, path).use(fill)
    spoil(path, how)
    index = RunIndex(partition, path)
    assert index.use(newest()) == ALL
    assert index.use(newest()) == ALL


def test_what_work_raises_is_raised_once(partition, path):
    calls = []

    def work(session: Session) -> None:
        calls.append(session)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        RunIndex(partition, path).use(work)
    assert len(calls) == 1


def test_two_processes_and_more_at_once(partition, path):
    def read(_: int) -> list[list[str]]:
        index = RunIndex(partition, path)
        return [index.use(newest()) for _ in range(20)]

    assert race(read) == [[ALL] * 20] * 8


def test_eight_processes_while_it_is_deleted_all_the_time(partition, path):
    def read(number: int) -> list[list[str]]:
        index = RunIndex(partition, path)
        told = []
        for turn in range(30):
            told.append(index.use(newest()))
            if number == 0:
                for suffix in [[""], ["-journal"], ["", "-journal"]][turn % 3]:
                    path.with_name(path.name + suffix).unlink(missing_ok=True)
        return told

    assert race(read) == [[ALL] * 30] * 8


def test_one_that_another_process_writes_all_the_time(partition, path, monkeypatch):
    """Whoever cannot have it does without."""
    monkeypatch.setattr(index_module, "TIMEOUT_S", 0.2)
    RunIndex(partition, path).use(fill)
    holder = sqlite3.connect(path)
    holder.execute("BEGIN IMMEDIATE")
    make_bundle(partition, "run-9", created=9.0)
    assert RunIndex(partition, path).use(newest()) == ["run-9", *ALL]
    holder.close()
    assert path.exists()


@pytest.mark.parametrize("by", ["lock", "writing"])
def test_one_that_others_use_for_too_long_is_used_again_later(partition, path, monkeypatch, by):
    monkeypatch.setattr(index_module, "TIMEOUT_S", 0.1)
    monkeypatch.setattr(index_module, "RETRY_S", 0.0)
    index = RunIndex(partition, path)
    index.use(fill)
    first = index.use(lambda session: session.number)
    if by == "lock":
        with locked(path.parent, 1):
            assert index.use(newest()) == ALL
    else:
        holder = sqlite3.connect(path)
        holder.execute("BEGIN EXCLUSIVE")
        assert index.use(newest()) == ALL
        holder.close()
    assert index.use(lambda session: session.number) == first


def test_what_the_partition_says_in_the_midst_of_work_is_raised(partition, path):
    calls = []

    def work(session: Session) -> None:
        calls.append(session)
        raise OSError(errno.EIO, "the partition's")

    with pytest.raises(OSError, match="the partition's"):
        RunIndex(partition, path).use(work)
    assert len(calls) == 1


def test_a_shard_that_cannot_be_read_for_once_loses_no_run(partition, path, monkeypatch):
    index = RunIndex(partition, path)
    index.use(fill)
    shard, opened_folder = partition.bundle("run-1").parent, descent.opened_folder

    def fail(folder: Path) -> Any:
        if folder == shard:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(folder))
        return opened_folder(folder)

    with monkeypatch.context() as patched:
        patched.setattr(descent, "opened_folder", fail)
        with pytest.raises(StorageError):
            index.use(lambda session: session.refresh())
    rows = index.use(lambda session: session.newest(limit=None))
    assert [row.run_id for row in rows] == ALL


def test_runs_that_others_make_appear_and_those_that_are_removed_vanish(partition, path):
    index = RunIndex(partition, path)
    index.use(fill)
    made = race(lambda number: make_bundle(partition, f"run-{20 + number}").run_id, 3)
    assert made == ["run-20", "run-21", "run-22"]
    assert index.use(newest()) == ["run-22", "run-21", "run-20", *ALL]
    shutil.rmtree(partition.bundle("run-21"))
    shutil.rmtree(partition.bundle("run-1").parent)  # with its whole shard
    assert "run-21" not in index.use(newest())
    assert "run-1" not in index.use(newest())
    shutil.rmtree(partition.runs)
    assert index.use(newest()) == []
    make_bundle(partition, "run-1")
    assert index.use(newest()) == ["run-1"]


def test_a_forgotten_run_that_is_there_after_all_comes_back(partition, path):
    index = RunIndex(partition, path)
    index.use(fill)
    index.use(lambda session: session.forget("run-3"))
    assert index.use(newest()) == ALL


def test_what_is_no_shard_and_no_run_is_passed_over(partition, path, tmp_path):
    (partition.runs / "stray").write_text("")
    (partition.runs / "link").symlink_to(tmp_path)
    (partition.runs / "loop").symlink_to("loop")
    os.mkfifo(partition.runs / "pipe")
    partition.bundle("run-1").with_name(".staging-run-7").mkdir()
    assert RunIndex(partition, path).use(newest()) == ALL


def test_no_partition_yet(tmp_path, path):
    assert RunIndex(Partition(tmp_path / "nowhere"), path).use(newest()) == []


def test_each_partition_has_an_index_of_its_own_in_a_folder_of_ones_own(tmp_path, home):
    first, second = (default_path(Partition(tmp_path / name)) for name in "ab")
    assert first
    assert first != second
    assert first.is_relative_to(home / "cache")
    assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("trap", ["file", "link", pytest.param("foreign", marks=AS_ROOT)])
def test_a_cache_folder_that_somebody_else_laid_is_not_used(tmp_path, home, monkeypatch, trap):
    (home / "cache").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    fallback = tmp_path / "tmp" / f"hyperpod-jlab-{os.getuid()}"
    if trap == "file":
        fallback.write_text("")
    elif trap == "link":
        (tmp_path / "victim").mkdir()
        fallback.symlink_to(tmp_path / "victim")
    else:
        fallback.mkdir()
        os.chown(fallback, 12345, 12345)
    partition = Partition(tmp_path / "fsx")
    make_bundle(partition, "run-1")
    assert default_path(partition) is None
    index = RunIndex(partition)
    assert index.use(newest()) == ["run-1"]
    assert index.use(lambda session: [row.run_id for row in session.newest(limit=None)]) == ["run-1"]


def test_the_stamp_of_a_run_changes_with_what_is_recorded(partition):
    bundle = make_bundle(partition, "run-8", code=None)
    seen = {status_stamp(bundle.folder)}
    for _ in range(3):
        time.sleep(0.02)  # the grain of a file system's clock
        bundle.add_action("hold", "ada")
        seen.add(status_stamp(bundle.folder))
    assert len(seen) == 4
    assert status_stamp(bundle.folder / "nowhere") == 0
