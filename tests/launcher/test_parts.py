"""The parts that are pure enough to be looked at alone."""

import itertools
import os
import struct
import time

import pytest

from hyperpod_jlab.launcher.logs import LineEcho, TimeIndex
from hyperpod_jlab.launcher.ranks import AgentReport
from hyperpod_jlab.launcher.tracebacks import last_error


def echo(*chunks, every=0.01):
    """Feed chunks, so many seconds apart; what comes out, with the unfinished line at the end."""
    made = LineEcho("7")
    out = [made.feed(chunk, 100 + number * every) for number, chunk in enumerate(chunks)]
    return b"".join([*out, made.close()])


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"a\nb\n"], b"7| a\n7| b\n"),
        ([b"a", b"b\n\nc"], b"7| ab\n7| \n7| c\n"),
        ([b"a\r\nb\r\n"], b"7| a\n7| b\n"),
        ([b"a\r", b"\nb\n"], b"7| a\n7| b\n"),
        ([b"1\r2\r3\n"], b"7| 3\n"),
        ([b"\r1%", b"\r2%", b"\r3%\n"], b"7| 1%\n7| 3%\n"),
        ([b"1%\r", b"2%\r", b"3%\r"], b"7| 1%\n7| 3%\n"),
        ([b"\xe2\x82", b"\xac\n"], "7| €\n".encode()),
        ([b"\r\n"], b"7| \n"),
        ([b"a\0b\x1b[31m\n"], b"7| a\0b\x1b[31m\n"),
    ],
)
def test_lines(chunks, expected):
    assert echo(*chunks) == expected


def test_a_long_line_comes_in_pieces_that_can_be_put_together():
    line = bytes(range(14, 256)) * 300
    for chunks in ([line + b"\n"], [line[i : i + 1000] for i in range(0, len(line), 1000)] + [b"\n"]):
        out = echo(*chunks).splitlines()
        pieces = out if b"\x0b" in line else echo(*chunks).split(b"\n")[:-1]
        assert pieces[0].startswith(b"7| ")
        assert all(piece.startswith(b"7|+") for piece in pieces[1:])
        assert all(len(piece) <= 3 + LineEcho.MAX_LINE for piece in pieces)
        assert b"".join(piece[3:] for piece in pieces) == line


def test_a_bar_is_shown_once_a_second():
    chunks = [b"\r%d%%" % i for i in range(100)]
    shown = echo(*chunks, every=0.1).splitlines()
    assert len(shown) == 11  # 10 s, and the last
    assert shown[-1] == b"7| 99%"


def test_a_line_that_stays_unfinished():
    made = LineEcho("7")
    assert made.feed(b"loading...", 100.0) == b""
    assert made.idle(101.0) == b""
    assert made.idle(102.5) == b"7| loading...\n"
    assert made.idle(105.0) == b""
    assert made.feed(b"done\nnext\n", 106.0) == b"7|+done\n7| next\n"
    assert made.feed(b"again", 107.0) == b""
    assert made.idle(110.0) == b"7| again\n"
    assert made.feed(b"\n", 111.0) == b""


def test_a_bar_that_rests_begins_a_new_line():
    made = LineEcho("7")
    made.feed(b"\r1%", 100.0)
    assert made.idle(103.0) == b"7| 1%\n"
    assert made.feed(b"\r2%\r3%\n", 104.0) == b"7| 3%\n"


def test_the_index_of_a_chatty_day_is_small(tmp_path, monkeypatch):
    descriptor = os.open(tmp_path / "x.idx", os.O_RDWR | os.O_CREAT)
    now = [10**18]
    monkeypatch.setattr(time, "time_ns", lambda: now[0])
    index = TimeIndex(descriptor)
    step = 50_000_000
    for poll in range(1, 86_400 * 20):
        now[0] += step
        index.add(poll)
    records = list(struct.iter_unpack("<qq", (tmp_path / "x.idx").read_bytes()))
    assert len(records) * 16 < 1_500_000
    assert records == sorted(records)
    assert max(b[0] - a[0] for a, b in itertools.pairwise(records)) <= 5.1e9
    # After a pause there is a record at once.
    now[0] += 60 * 10**9
    index.add(86_400 * 20)
    assert abs(index.time_of(86_400 * 20) - now[0] / 1e9) < 1e-3
    assert abs(index.time_of(1000) - (10**18 + 1000 * step) / 1e9) < 1e-3


def test_the_index_never_falls_when_the_clock_does(tmp_path, monkeypatch):
    descriptor = os.open(tmp_path / "x.idx", os.O_RDWR | os.O_CREAT)
    times = iter([100, 90, 80, 110])
    monkeypatch.setattr(time, "time_ns", lambda: next(times))
    index = TimeIndex(descriptor)
    for offset in (5, 6, 7):
        index.add(offset)
    records = list(struct.iter_unpack("<qq", (tmp_path / "x.idx").read_bytes()))
    assert records == [(100, 0), (100, 5), (100, 6), (110, 7)]


PLAIN = b"""step 1
Traceback (most recent call last):
  File "/x/train.py", line 3, in <module>
    f()
    ^^^
  File "/x/lib.py", line 9, in f
    raise ValueError("boom")
ValueError: boom
"""

CHAINED = b"""noise
Traceback (most recent call last):
  File "/x/a.py", line 1, in <module>
    {}["k"]
KeyError: 'k'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/code/t.ipynb/cell-04.py", line 12, in <module>
    g()
  File "/x/a.py", line 4, in g
    raise RuntimeError
RuntimeError
"""

GROUP = b"""  + Exception Group Traceback (most recent call last):
  |   File "/x/a.py", line 1, in <module>
  |     raise ExceptionGroup("two", [ValueError(1), TypeError(2)])
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | ValueError: 1
    +------------------------------------
"""


def test_a_plain_traceback():
    error = last_error(PLAIN, 1000)
    assert (error.type, error.message, error.offset) == ("ValueError", "boom", 1007)
    assert error.traceback == PLAIN.decode()[7:-1]
    assert (error.file, error.cell, error.line, error.ends_log) == ("/x/lib.py", None, None, True)


def test_a_traceback_to_which_torch_adds_the_rank() -> None:
    data = b"".join(b"[rank12]: " + line + b"\n" for line in PLAIN.strip(b"\n").split(b"\n"))
    plain, prefixed = last_error(PLAIN, 0), last_error(b"step 1\n" + data, 0)
    assert plain is not None
    assert prefixed is not None
    assert (prefixed.type, prefixed.message) == (plain.type, plain.message)
    assert (prefixed.file, prefixed.line, prefixed.cell) == (plain.file, plain.line, plain.cell)
    assert "[rank12]" not in prefixed.traceback


def test_a_chain_is_taken_from_its_begin_and_named_by_its_end():
    error = last_error(CHAINED, 0)
    assert (error.type, error.message) == ("RuntimeError", "")
    assert error.offset == 6
    assert error.traceback == CHAINED.decode()[6:-1]
    assert (error.file, error.cell, error.line) == ("/x/code/t.ipynb/cell-04.py", 4, 12)


def test_a_group():
    error = last_error(GROUP, 0)
    assert (error.type, error.message) == ("ExceptionGroup", "two (2 sub-exceptions)")
    assert error.file == "/x/a.py"


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_the_last_of_several(line_end):
    data = (PLAIN + PLAIN.replace(b"boom", b"bang")).replace(b"\n", line_end)
    error = last_error(data, 0)
    assert error.message == "bang"
    assert error.offset == data.rindex(b"Traceback")


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"Traceback (most recent call last):", "Traceback", ""),
        (b"Traceback (most recent call last):\n  File", "Traceback", ""),
        (b"Traceback (most recent call last):\nwhat is this?\n", "Traceback", "what is this?"),
        (b"\xff\xfe\nTraceback (most recent call last):\nE: \xff\n", "E", "\ufffd"),
        (b"Fatal Python error: Aborted\n\nThread 0x1:\n", "Fatal Python error", "Aborted"),
        (PLAIN + b"terminate called\n", "ValueError", "boom\nterminate called"),
    ],
)
def test_odd_tracebacks(data, kind, message):
    error = last_error(data, 0)
    assert (error.type, error.message) == (kind, message)


@pytest.mark.parametrize("data", [b"", b"hello\n", b"said: Traceback (most recent call last):\n"])
def test_no_traceback(data):
    assert last_error(data, 0) is None


REPORT = """
W1121 12:33:33.422000 10552 api.py:1028] Sending process 10556 closing signal SIGTERM
E1121 12:33:33.426000 10552 api.py:1002] failed (exitcode: 1) local_rank: 1 (pid: 10557) of binary: x
============================================================
t.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-21_12:33:33
  rank      : 4 (local_rank: 0)
  exitcode  : -15 (pid: 10556)  (SIGTERM)
  error_file: <N/A>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  rank      : 5 (local_rank: 1)
  exitcode  : 1 (pid: 10557)
============================================================
"""


def test_an_agents_report():
    report = AgentReport(REPORT)
    assert report.exit_codes == {0: -15, 1: 1}
    assert report.root == 1


def test_an_agents_report_cut_short():
    report = AgentReport(REPORT[: REPORT.index("=====")])
    assert (report.exit_codes, report.root) == ({1: 1}, 1)
    assert AgentReport("exitcode : 3 (pid: 4)").exit_codes == {}
