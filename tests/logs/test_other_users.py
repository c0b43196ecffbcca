"""Logs of another user's run, who may put anything in any place: nothing of this user's is shown, and nobody is kept waiting."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hyperpod_jlab.logs import records as records_module
from hyperpod_jlab.logs.array import ArrayStreams
from hyperpod_jlab.logs.follow import Hub
from hyperpod_jlab.logs.records import RecordStreams
from hyperpod_jlab.logs.service import LogRequest, LogService
from hyperpod_jlab.logs.stream import START_POSITION, Stream
from tests.logs.writing import RunFolder
from tests.storage.users import AS_ROOT, give_away, others_bundle

pytestmark = AS_ROOT

RANK = Stream(1, 0, 0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "fsx"


@pytest.fixture
def run(root: Path) -> RunFolder:
    folder = RunFolder(others_bundle(root, "run-1", {}), 1)
    folder.path().parent.mkdir(parents=True, exist_ok=True)
    return folder


def shown(run: RunFolder) -> tuple[bytes, str | None]:
    source = RecordStreams(run.root, 1).open(RANK)
    chunk = source.read(START_POSITION, 1000)
    source.close()
    return chunk.data, chunk.mark.kind if chunk.mark else None


def test_a_link_to_this_users_file_shows_nothing(run: RunFolder, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine")
    run.path().symlink_to(secret)
    give_away(run.root)
    assert shown(run) == (b"", "unreadable")
    source = RecordStreams(run.root, 1).open(RANK)
    assert (source.size(), source.changed()) == (0, None)
    with pytest.raises(PermissionError):
        source.open_fd()


def test_a_link_to_this_users_file_on_the_partition_shows_nothing(run: RunFolder, root: Path) -> None:
    (root / "secret").write_text("mine")
    run.path().symlink_to(os.path.relpath(root / "secret", run.path().parent))
    give_away(run.root)
    assert shown(run) == (b"", "unreadable")


def test_a_link_to_its_owners_own_file_on_the_partition_is_the_log_of_a_job_without_launcher(
    run: RunFolder, root: Path
) -> None:
    (root / "ada").mkdir()
    (root / "ada" / "out.log").write_text("theirs\n")
    give_away(root / "ada")
    run.path().symlink_to(os.path.relpath(root / "ada" / "out.log", run.path().parent))
    give_away(run.root)
    assert shown(run) == (b"theirs\n", None)
    (root / "ada").rename(root / "real")
    (root / "ada").symlink_to(root / "real")
    assert shown(run) == (b"", "unreadable"), "no further link on the way"


def test_this_users_own_link_is_followed_wherever_it_leads(root: Path, tmp_path: Path) -> None:
    run = RunFolder(root / ".hyperpod-0" / "runs" / "00" / "run-1", 1)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "out.log").write_text("own\n")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    run.path().symlink_to(os.path.relpath(tmp_path / "link" / "out.log", run.path().parent))
    assert shown(run) == (b"own\n", None)


def test_a_folder_that_is_a_link_has_no_logs(run: RunFolder, tmp_path: Path) -> None:
    mine = RunFolder(tmp_path / "mine", 1)
    mine.write(0, "mine\n")
    shutil.rmtree(run.root / "logs")
    (run.root / "logs").symlink_to(mine.root / "logs")
    assert RecordStreams(run.root, 1).streams() == []
    source = RecordStreams(run.root, 1).open(RANK)
    assert source.read(START_POSITION, 100).data == b""


async def test_pipes_keep_nobody_waiting(run: RunFolder) -> None:
    for name in ("node-0.rank-0.log", "node-0.rank-0.idx", "node-0.activity.json"):
        os.mkfifo(run.path().parent / name)
    (run.root / "status" / "attempt-1").mkdir(parents=True)
    os.mkfifo(run.root / "status" / "attempt-1" / "node-0.json")
    give_away(run.root)
    service = LogService(run, Hub(notifications=False))
    lines = [str(line) async for batch in service.lines(LogRequest("run")) for line in batch]
    assert all("cannot be read" in line for line in lines)
    assert (await service.search(LogRequest("run", grep="x"))).hits == ()
    sources = RecordStreams(run.root, 1)
    assert sources.activity(1, 0) is None
    assert sources.origin(RANK).node is None
    assert sources.open(RANK).stamps(0, 100) == []
    await service.close()


@pytest.mark.parametrize("record", ["[" * 100_000, '{"time": 1e999, "streams": {"0": {"size": 1e999, "changed": 1}}}'])
def test_a_record_that_makes_no_sense_is_passed_over(run: RunFolder, record: str) -> None:
    (run.path().parent / "node-0.activity.json").write_text(record)
    (run.root / "status" / "attempt-1").mkdir(parents=True)
    (run.root / "status" / "attempt-1" / "node-0.json").write_text(record)
    give_away(run.root)
    sources = RecordStreams(run.root, 1)
    assert sources.activity(1, 0) is None
    assert sources.origin(RANK).node is None


def test_very_many_names_are_looked_at_up_to_a_bound(
    run: RunFolder, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records_module, "_MAX_FOREIGN_FILES", 100)
    for number in range(1, 60):
        folder = run.root / "logs" / f"attempt-{number}"
        folder.mkdir(exist_ok=True)
        for rank in range(20):
            (folder / f"node-{rank}.log").touch()
    give_away(run.root)
    assert 0 < len(RecordStreams(run.root, 1).streams()) <= 100
    for index in range(200):
        (run.root / "tasks" / str(index) / "logs" / "attempt-1").mkdir(parents=True)
        (run.root / "tasks" / str(index) / "logs" / "attempt-1" / "node-0.log").touch()
    give_away(run.root)
    assert len(ArrayStreams(run.root / "tasks", 1, 1).streams()) <= 100


async def test_a_search_looks_through_the_file_that_was_opened(tmp_path: Path) -> None:
    mine = RunFolder(tmp_path, 1)
    mine.write(0, "needle\n")
    source = RecordStreams(tmp_path, 1).open(RANK)
    service = LogService(mine, Hub(notifications=False))
    opened = source.open_fd()
    mine.path().unlink()
    os.mkfifo(mine.path())
    assert os.pread(opened, 100, 0) == b"needle\n"
    os.close(opened)
    assert (await service.search(LogRequest("run", grep="need.e"))).hits == ()
    await service.close()
