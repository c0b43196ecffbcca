"""Frames: columns, flags, and batches cut into portions."""

from dataclasses import asdict
from itertools import pairwise

import pytest

from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.lines import LineBlock, LogBatch
from hyperpod_jlab.logs.source import Chunk, Mark, Origin
from hyperpod_jlab.logs.stream import Stream
from hyperpod_jlab.server import log_messages as log_frames
from hyperpod_jlab.server.log_messages import CONTINUED, PARTIAL, REDRAWS, blocks_of, split_batch

RANK = Origin(Stream(1, 0, 0), "node-a", 0)


def block(data, *, offset=0, before=b"", stamps=((0, 5.0),), mark=None, collapse=True):
    chunk = Chunk(data, offset, before, stamps=stamps)
    return LineBlock(RANK, chunk, 0, len(data), mark=mark, collapse=collapse)


def shown(*blocks):
    return [asdict(one) for one in blocks_of(LogBatch(Cursor(), blocks))]


def test_whole_lines_have_no_flags():
    (one,) = shown(block(b"a\nb\n"))
    assert one == {
        "attempt": 1,
        "node": "node-a",
        "node_rank": 0,
        "rank": 0,
        "index": None,
        "mark": None,
        "lines": "a\nb",
        "times": 5.0,
        "flags": None,
    }


def test_parts_of_lines_are_flagged():
    (one,) = shown(block(b"rest\nwhole\nbegin", offset=4, before=b"some"))
    assert one["flags"] == [(0, CONTINUED), (2, PARTIAL)]
    (bar,) = shown(block(b"20%", offset=4, before=b"10%\r"))
    assert bar["flags"] == [(0, CONTINUED | PARTIAL | REDRAWS)]


def test_a_long_line_is_in_pieces():
    (one,) = shown(block(b"x" * 40_000 + b"\nend\n"))
    assert one["flags"] == [(0, PARTIAL), (1, CONTINUED | PARTIAL), (2, CONTINUED)]
    assert [len(line) for line in one["lines"].split("\n")] == [16_384, 16_384, 7_232, 3]


def test_times_are_one_for_all_or_one_each():
    (same,) = shown(block(b"a\nb\n", stamps=((0, 1.0), (2, 1.0))))
    assert same["times"] == 1.0
    (each,) = shown(block(b"a\nb\nc\n", stamps=((0, 1.0), (2, 2.5))))
    assert each["times"] == [1.0, 2.5, 2.5]
    (none,) = shown(block(b"a\n", stamps=()))
    assert none["times"] is None


def test_a_mark_may_stand_alone():
    (one,) = shown(block(b"", mark=Mark("gap", "bytes are missing")))
    assert one["mark"] == {"kind": "gap", "text": "bytes are missing"}
    assert (one["lines"], one["flags"]) == (None, None)
    assert shown(block(b"")) == []


@pytest.mark.parametrize("size", [1, 10, 64, 1000])
def test_portions_hold_the_same_lines_and_end_at_the_same_place(monkeypatch, size):
    monkeypatch.setattr(log_frames, "MAX_FRAME_BYTES", size)
    data = b"".join(b"line %d of some\n" % number for number in range(50)) + b"half"
    other = LineBlock(Origin(Stream(1, 0, 1), "node-a", 1), Chunk(b"x\ny\n", 0), 0, 4)
    batch = LogBatch(Cursor(), [block(data, mark=Mark("gap", "!")), other])
    parts = list(split_batch(batch))
    assert [str(line) for part in parts for line in part] == [str(line) for line in batch]
    assert parts[-1].end_position == batch.end_position
    for before, after in pairwise(parts):
        assert after.start == before.end_position
    if size < 1000:
        assert len(parts) > 1
