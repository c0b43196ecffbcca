from __future__ import annotations

import os
from pathlib import Path

import pytest

from hyperpod_jlab.logs.bundle_file import BundleFile
from hyperpod_jlab.logs.stream import START_POSITION, Position, Stream

STREAM = Stream(1, 0, 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node-0.rank-0.log"


def take(file: BundleFile, place: Position) -> tuple[bytes, Position, str | None]:
    chunk = file.read(place, 1 << 20)
    return chunk.data, chunk.position_at(len(chunk.data)), chunk.mark.kind if chunk.mark else None


def test_a_file_that_appears_late(path: Path) -> None:
    file = BundleFile(STREAM, path)
    assert take(file, START_POSITION) == (b"", START_POSITION, None)
    assert file.end() == START_POSITION
    path.write_bytes(b"hello\n")
    data, place, mark = take(file, START_POSITION)
    assert (data, place.offset, mark) == (b"hello\n", 6, None)
    assert take(file, place) == (b"", place, None)


def test_growth_is_seen_and_places_hold_for_another_reader(path: Path) -> None:
    file = BundleFile(STREAM, path)
    place = START_POSITION
    for number in range(50):
        with path.open("ab") as out:
            out.write(f"line {number}\n".encode())
        data, place, mark = take(file, place)
        assert (data, mark) == (f"line {number}\n".encode(), None)
        assert BundleFile(STREAM, path).read(place, 10).data == b""
    assert file.end() == place


@pytest.mark.parametrize("again", [b"", b"new\n", b"n" * 5, b"new content that is much longer than the old one was\n"])
@pytest.mark.parametrize("held", [True, False])
def test_truncation(path: Path, again: bytes, held: bool) -> None:
    path.write_bytes(b"the first content\n")
    file = BundleFile(STREAM, path)
    _, place, _ = take(file, START_POSITION)
    path.write_bytes(again)
    data, after, mark = take(file if held else BundleFile(STREAM, path), place)
    assert data == again
    assert mark == "truncated"
    assert after.offset == len(again)


@pytest.mark.parametrize("held", [True, False])
def test_replacement(path: Path, held: bool) -> None:
    path.write_bytes(b"same bytes\n")
    file = BundleFile(STREAM, path)
    _, place, _ = take(file, START_POSITION)
    other = path.with_suffix(".new")
    other.write_bytes(b"same bytes\nand more\n")
    other.replace(path)
    data, after, mark = take(file if held else BundleFile(STREAM, path), place)
    assert (data, mark, after.offset) == (b"same bytes\nand more\n", "replaced", 20)


def test_what_the_old_file_got_last_comes_before_the_new_one(path: Path) -> None:
    path.write_bytes(b"one\n")
    file = BundleFile(STREAM, path)
    _, place, _ = take(file, START_POSITION)
    with path.open("ab") as out:
        out.write(b"two\n")
    path.rename(path.with_suffix(".1"))
    path.write_bytes(b"three\n")
    data, place, mark = take(file, place)
    assert (data, mark) == (b"two\n", None)
    assert take(file, place)[::2] == (b"three\n", "replaced")


def test_a_hole_where_the_writer_goes_on_behind_a_truncation(path: Path) -> None:
    with path.open("wb", buffering=0) as out:
        out.write(b"0123456789\n")
        file = BundleFile(STREAM, path)
        _, place, _ = take(file, START_POSITION)
        os.truncate(path, 0)
        out.write(b"on\n")
        data, _, mark = take(file, place)
    assert mark == "truncated"
    assert data == b"\0" * 11 + b"on\n"


def test_backward(path: Path) -> None:
    path.write_bytes(b"0123456789")
    file = BundleFile(STREAM, path)
    end = file.end()
    chunk = file.read_back(end, 4)
    assert (chunk.data, chunk.offset, chunk.position_at(4)) == (b"6789", 6, end)
    assert file.read_back(chunk.position_at(0), 100).data == b"012345"
    assert file.read_back(START_POSITION, 100).data == b""


@pytest.mark.parametrize("kind", ["directory", "fifo", "loop", "folder gone"])
def test_what_cannot_be_read_is_a_mark_or_nothing_and_never_hangs(path: Path, kind: str) -> None:
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    else:
        path = path / "not" / "there"
    file = BundleFile(STREAM, path)
    chunk = file.read(START_POSITION, 100)
    assert chunk.data == b""
    assert chunk.position_at(0) == START_POSITION
    if kind != "folder gone":
        assert chunk.mark is not None
        assert chunk.mark.kind == "unreadable"
    assert file.end() == START_POSITION
    assert file.read_back(Position(10), 5).data == b""
    file.close()


def test_no_file_stays_open(path: Path) -> None:
    path.write_bytes(b"x" * 100)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        file = BundleFile(STREAM, path)
        file.read(START_POSITION, 10)
        file.end()
        del file
    assert len(list(Path("/proc/self/fd").iterdir())) == before
