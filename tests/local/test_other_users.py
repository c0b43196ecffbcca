"""What other users can prepare for this user's runs on this machine."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from hyperpod_jlab.core.config import LocalCluster
from hyperpod_jlab.core.errors import DeniedError, StorageError
from hyperpod_jlab.engines.launch import EXIT_UNTRUSTED
from hyperpod_jlab.engines.local.board import Board, BoardEntry, default_folder
from hyperpod_jlab.engines.local.engine import LocalOrchestrator
from hyperpod_jlab.engines.local.supervisor import main
from hyperpod_jlab.engines.repairs import journal_usage
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.storage.bundles import PROCESS, make_bundle, write_files
from tests.storage.users import AS_ROOT, OTHER, others_bundle

pytestmark = [pytest.mark.local, AS_ROOT]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No state folder to be had: the board would lie in the temporary folder."""
    (tmp_path / "state").touch()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp" / f"hyperpod-jlab-{os.getuid()}"


def test_the_board_may_lie_in_the_temporary_folder(temporary: Path) -> None:
    assert default_folder() == temporary / "local"
    assert default_folder() == temporary / "local"


def test_a_folder_that_another_user_prepared_is_not_the_boards(temporary: Path) -> None:
    temporary.mkdir()
    os.chown(temporary, OTHER, OTHER)
    with pytest.raises(StorageError, match="cannot be written"):
        default_folder()


def test_a_folder_that_others_may_write_is_not_the_boards(temporary: Path) -> None:
    temporary.mkdir()
    temporary.chmod(0o777)
    with pytest.raises(StorageError, match="cannot be written"):
        default_folder()


def test_a_link_on_the_board_is_not_followed(tmp_path: Path) -> None:
    board = Board(tmp_path / "board", slots=1, gpus=0)
    (tmp_path / "secret").write_text("mine")
    entry = BoardEntry("run-1", "/bundle", "name", "ada", 1.0)
    seat = board.register(entry)
    assert seat is not None
    board.unregister(seat)
    seat.path.symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        board.register(entry)
    assert (tmp_path / "secret").read_text() == "mine"


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    (tmp_path / "fsx").mkdir()
    return Partition(tmp_path / "fsx", shared=True)


def test_another_users_run_is_neither_started_nor_found_nor_cancelled(partition: Partition, tmp_path: Path) -> None:
    others_bundle(partition.root, "run-1", {"status/owner.json": {**PROCESS, "pid": os.getpid()}})
    bundle = BundleReader(partition, "run-1")
    before = set(bundle.folder.rglob("*"))
    engine = LocalOrchestrator("local", LocalCluster(), partition, folder=tmp_path / "board")
    assert asyncio.run(engine.find(bundle)) is None
    with pytest.raises(DeniedError):
        asyncio.run(engine.submit(bundle))
    with pytest.raises(DeniedError):
        asyncio.run(engine.actions.act("cancel", bundle))
    words = [str(partition.root), "run-1", f"--folder={tmp_path}", "--slots=1", "--shared"]
    assert main([*words, "--launcher=" + "0" * 64]) == EXIT_UNTRUSTED
    assert set(bundle.folder.rglob("*")) == before


def test_what_an_array_used_is_read_from_the_children_that_are_there(partition: Partition) -> None:
    bundle = make_bundle(partition, "run-1", code=None, array="0-99999")
    node = {"node_rank": 0, "node": "n", "started_at": 1.0, "ended_at": 4.0, "exit_code": 0}
    claim = {"scheduler_id": "m", "incarnation": "1", "time": 1.0}
    for index in (7, 99_999, 100_000):
        attempt = bundle.folder / "tasks" / str(index) / "status" / "attempt-1"
        write_files(attempt, {"claim.json": claim, "node-0.json": node}.items())
    used = journal_usage(bundle)
    assert (used.attempts, used.elapsed) == (2, 6.0)


def test_what_an_array_used_that_never_began_is_nothing(partition: Partition) -> None:
    bundle = make_bundle(partition, "run-1", code=None, array="0-99999")
    assert journal_usage(bundle).attempts == 0
