"""Small files of which no reader ever sees half, whoever writes at the same time."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage import files as atomic
from tests.storage.racing import PROCESSES, race

pytestmark = pytest.mark.local


def test_of_racing_creates_one_wins_and_its_bytes_stay(tmp_path: Path):
    for turn in range(20):
        path = tmp_path / f"claim-{turn}"
        won = race(lambda number: descent.create(path, bytes([number]) * 5000))  # noqa: B023
        assert won.count(True) == 1
        assert path.read_bytes() == bytes([won.index(True)]) * 5000
    assert len(list(tmp_path.iterdir())) == 20


def test_racing_replaces_leave_one_of_them_whole(tmp_path: Path):
    path = tmp_path / "record"

    def write(number: int) -> None:
        for _ in range(100):
            descent.replace(path, bytes([number]) * 100_000)

    descent.replace(path, b"\0" * 100_000)
    torn: list[bytes] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            data = path.read_bytes()
            if len(data) != 100_000 or len(set(data)) != 1:
                torn.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    race(write)
    stop.set()
    reader.join()
    assert not torn
    assert path.read_bytes()[0] in range(PROCESSES)
    assert [path.name for path in tmp_path.iterdir()] == ["record"]


def test_create_never_overwrites(tmp_path: Path):
    path = tmp_path / "a"
    assert descent.create(path, b"first")
    assert not descent.create(path, b"second")
    assert path.read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_create_does_not_follow_a_link_that_leads_nowhere(tmp_path: Path):
    path = tmp_path / "a"
    path.symlink_to(tmp_path / "elsewhere")
    assert not descent.create(path, b"data")
    assert not (tmp_path / "elsewhere").exists()


def test_replace_replaces_a_link_not_what_it_points_to(tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    path = tmp_path / "a"
    path.symlink_to(victim)
    descent.replace(path, b"data")
    assert victim.read_bytes() == b"precious"
    assert not path.is_symlink()


def test_replace_of_a_folder_leaves_nothing_behind(tmp_path: Path):
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="directory"):
        descent.replace(tmp_path / "a", b"data")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_modes_are_exactly_those_asked_for(tmp_path: Path, umask: int, mode: int):
    before = os.umask(umask)
    try:
        descent.replace(tmp_path / "a", b"", mode=mode)
        descent.create(tmp_path / "b", b"", mode=mode)
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o7777 for path in tmp_path.iterdir()}
    assert modes == {mode}


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "storage_full"),
        (errno.EDQUOT, "storage_full"),
        (errno.EROFS, "storage_read_only"),
        (errno.EACCES, "storage_denied"),
        (errno.EPERM, "storage_denied"),
        (errno.EIO, "storage"),
        (errno.ESTALE, "storage"),
        (None, "storage"),
    ],
)
def test_errors_of_the_system_become_ours(tmp_path: Path, number: int | None, code: str):
    raised = OSError("odd") if number is None else OSError(number, os.strerror(number), "/fsx/a")
    with pytest.raises(StorageError) as caught, atomic.storage_errors(tmp_path):
        raise raised
    error = caught.value
    denied = code == "storage_denied"
    assert (error.code, error.exit_code, error.status) == (code, *((4, 403) if denied else (2, 507)))
    assert not denied or "/fsx/a" in error.message
    assert error.hint
    assert error.detail["path"] == ("/fsx/a" if number else str(tmp_path))
    assert code != "storage" or error.detail["path"] in error.message
    assert "None" not in error.message
    json.dumps(error.to_dict())


def test_json_is_one_line_of_utf8():
    data = atomic.to_json({"name": "Übung\n", "nodes": [1, None]})
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    assert json.loads(data) == {"name": "Übung\n", "nodes": [1, None]}
    assert "Ü".encode() in data
