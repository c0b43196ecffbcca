from __future__ import annotations

import struct
from pathlib import Path

import pytest

from hyperpod_jlab.logs.bundle_file import TimeIndex


def write(path: Path, records: list[tuple[float, int]], torn: bytes = b"") -> TimeIndex:
    path.write_bytes(b"".join(struct.pack("<qq", int(time * 1e9), offset) for time, offset in records) + torn)
    return TimeIndex(path)


def test_small_index(tmp_path: Path) -> None:
    index = write(tmp_path / "a.idx", [(100, 0), (110, 50), (120, 80)], torn=b"\x01\x02\x03")
    assert index.stamps(0, 200) == [(0, 100), (50, 110), (80, 120)]
    assert index.stamps(60, 70) == [(60, 110)]
    assert index.stamps(60, 90) == [(60, 110), (80, 120)]
    assert index.stamps(500, 600) == [(500, 120)]
    assert [index.offset_at(time) for time in (0, 100, 100.5, 110, 115, 120)] == [0, 0, 50, 50, 80, 80]
    past = index.offset_at(121)
    assert past is not None
    assert past > 1 << 60
    assert index.last_time() == 120


def test_no_index_and_an_empty_one(tmp_path: Path) -> None:
    missing = TimeIndex(tmp_path / "none.idx")
    torn = write(tmp_path / "torn.idx", [], torn=b"1234567")
    for index in (missing, torn):
        assert index.stamps(0, 10) == []
        assert index.offset_at(5) is None
        assert index.last_time() is None


def test_equal_offsets_take_the_latest_time(tmp_path: Path) -> None:
    index = write(tmp_path / "a.idx", [(1, 0), (5, 0), (6, 10)])
    assert index.stamps(0, 20) == [(0, 5), (10, 6)]


@pytest.mark.parametrize("time", [0.0, 1.0, 49_999.5, 50_000.0, 99_998.2, 99_999.0])
def test_large_index_is_searched_not_read(tmp_path: Path, time: float) -> None:
    index = write(tmp_path / "a.idx", [(second, second * 10) for second in range(100_000)])
    offset = index.offset_at(time)
    assert offset == -(-time // 1) * 10
    assert index.reads < 25
    again = TimeIndex(tmp_path / "a.idx")
    found = again.stamps(int(time) * 10, int(time) * 10 + 25)
    assert [int(number) for number in found[0]] == [int(time) * 10, int(time)]
    assert again.reads < 25


def test_times_survive_being_floats(tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    nanoseconds = [1_795_000_000_123_456_789 + step * 50_000_017 for step in range(1000)]
    path.write_bytes(b"".join(struct.pack("<qq", time, place * 7) for place, time in enumerate(nanoseconds)))
    index = TimeIndex(path)
    for offset, time in index.stamps(0, 7000):
        assert index.offset_at(time) == offset


def test_records_that_fall_are_left_out(tmp_path: Path) -> None:
    index = write(tmp_path / "a.idx", [(1, 0), (5, 40), (3, 20), (5, 30), (6, 40), (7, 50)])
    assert index.stamps(0, 100) == [(0, 1), (40, 6), (50, 7)]
    assert index.stamps(45, 100) == [(45, 6), (50, 7)]
