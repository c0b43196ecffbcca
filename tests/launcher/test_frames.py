"""Frames, and the reader on our side: what goes in comes out, byte by byte."""

import json
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_jlab.engines.kubernetes.observe.spool_files import (
    FrameReader,
    LogBytes,
    RecordFile,
    read_bytes,
)
from hyperpod_jlab.launcher import frames
from hyperpod_jlab.launcher.frames import FrameEcho, content_frames, document_frames

LONGEST_LINE = 12 * 1024


def framed(*chunks, every=0.01):
    """The lines that chunks of a stream become, so many seconds apart."""
    echo = FrameEcho("1.0.3")
    out = [echo.feed(chunk, 100 + number * every) for number, chunk in enumerate(chunks)]
    text = b"".join([*out, echo.close()])
    assert not text or text.endswith(b"\n")
    return text.split(b"\n")[:-1]


def rebuilt(lines):
    """The stream's bytes, after a look at each line's place."""
    data = b""
    for line in lines:
        assert len(line) <= LONGEST_LINE
        read = read_bytes(line)
        assert isinstance(read, LogBytes)
        assert (read.attempt, read.node, read.stream) == (1, 0, "3")
        assert read.offset == len(data)
        data += read.data
    return data


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"a\nb\n"], [b"1.0.3@0| a", b"1.0.3@2| b"]),
        ([b"a", b"b\n\nc"], [b"1.0.3@0| ab", b"1.0.3@3| ", b"1.0.3@4|>c"]),
        ([b"a\r\n"], [b"1.0.3@0\\ a\\r"]),
        ([b"1%\r2%\r"], [b"1.0.3@0\\>1%\\r2%\\r"]),
        ([b"C:\\x\n"], [b"1.0.3@0| C:\\x"]),
        ([b"C:\\x\0\n"], [b"1.0.3@0\\ C:\\\\x\\x00"]),
        (["\u20ac\n".encode()], ["1.0.3@0| \u20ac".encode()]),
        ([b"\xe2\x82\n"], [b"1.0.3@0\\ \\xe2\\x82"]),
        ([b"\x1b[31mred\n"], [b"1.0.3@0| \x1b[31mred"]),
        (["\u2028 \x85\n".encode()], ["1.0.3@0| \u2028 \x85".encode()]),
        ([], []),
    ],
)
def test_lines(chunks, lines):
    assert framed(*chunks) == lines
    assert rebuilt(lines) == b"".join(chunks)


def test_an_unfinished_line_waits_a_moment_and_goes_on_in_the_next_frame():
    echo = FrameEcho("1.0.3")
    assert echo.feed(b"Continue? ", 100.0) == b""
    assert echo.idle(100.4) == b""
    assert echo.idle(100.5) == b"1.0.3@0|>Continue? \n"
    assert echo.feed(b"y\n", 100.6) == b"1.0.3@10| y\n"


def test_a_bar_that_never_ends_a_line_is_told_while_it_goes_on():
    chunks = [b"\r%d%%" % percent for percent in range(100)]
    lines = framed(*chunks, every=0.1)
    assert rebuilt(lines) == b"".join(chunks)
    assert 15 <= len(lines) <= 25


def test_a_line_of_4_mib():
    data = ("x\u20ac" * (1 << 20)).encode() + b"\n"
    assert rebuilt(framed(data)) == data


BYTES = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.sampled_from([b"\n", b"\r\n", b"\r", b"\\", b"\0", b"\\x41", b"1.0.3@0| a\n"]),
        st.tuples(
            st.sampled_from([b"x", b"\x80", "\u20ac".encode(), b"\0"]), st.integers(1, 9000)
        ).map(lambda of: of[0] * of[1]),
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(chunks=BYTES, every=st.sampled_from([0.01, 0.3, 1.0]))
def test_any_bytes_come_back(chunks, every):
    assert rebuilt(framed(*chunks, every=every)) == b"".join(chunks)


def read_all(text):
    reader = FrameReader()
    found = [reader.read(line) for line in text.split(b"\n")[:-1]]
    assert not reader.midway
    return [frame for frame in found if frame is not None]


@settings(max_examples=50, deadline=None)
@given(content=st.binary(max_size=50000))
def test_any_file_comes_back(content):
    text = content_frames("result.pkl", content, False)
    assert max(map(len, text.split(b"\n"))) <= LONGEST_LINE
    (frame,) = read_all(text)
    assert isinstance(frame, RecordFile)
    assert (frame.path, frame.content) == ("result.pkl", content)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(document=st.dictionaries(st.text(), JSON, max_size=5))
def test_a_record_is_the_same_file(document):
    (frame,) = read_all(document_frames("status/attempt-2/node-0.json", document, True))
    assert frame.content == json.dumps(document).encode() + b"\n"
    assert frame.write_once


def test_a_large_record_comes_in_parts():
    document = {"traceback": string.printable * 300}
    text = document_frames("status/attempt-1/rank-3.error.json", document, True)
    assert max(map(len, text.split(b"\n"))) <= LONGEST_LINE
    assert text.count(b"\n") > 3
    (frame,) = read_all(text)
    assert json.loads(frame.content) == document


@pytest.mark.parametrize(
    "path",
    [
        "../x.json",
        "/etc/passwd",
        "status/attempt-0/claim.json",
        "status/actions/1-x.json",
        "status/observations/slurm.json",
        "status/attempt-1/../../x.json",
        "result.json\n",
        "launcher.py",
        "logs/attempt-1/node-0.log",
    ],
)
def test_a_path_that_no_launcher_names_is_no_frame(path):
    assert read_all(document_frames(path, {}, False)) == []
    assert read_all(content_frames(path, b"x", False)) == []


def test_parts_that_do_not_fit_are_no_file():
    first = content_frames("result.pkl", b"a" * 20000, False).split(b"\n")[:-1]
    other = content_frames("result.pkl", b"b" * 20000, False).split(b"\n")[:-1]
    reader = FrameReader()
    assert [reader.read(line) for line in (first[0], other[1])] == [None] * 2
    midway = [reader.midway]
    assert [reader.read(line) for line in (first[2], first[1], first[3])] == [None] * 3
    assert [*midway, reader.midway] == [True, False]
    again = (first[0], first[1], first[0], first[1], first[2])
    assert [reader.read(line) for line in again] == [None] * 5
    assert reader.read(first[-1]).content == b"a" * 20000
    wrong = re.sub(rb'"sha256": "[0-9a-f]+"', b'"sha256": "0"', b"\n".join(first)).split(b"\n")
    assert [reader.read(line) for line in wrong] == [None] * 4


@settings(max_examples=200, deadline=None)
@given(line=st.binary(max_size=80) | st.text(max_size=60).map(str.encode))
def test_any_line_is_read(line):
    for start in (b"", frames.FILE_FRAME, frames.FILE_FRAME + b'{"path": "result.json", "time": 1'):
        FrameReader().read(start + line)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"unable to retrieve container logs for containerd://4711",
        b"0.0.0@0| attempts count from 1",
        b"1.0.0@-1| x",
        b"1.0.0@0",
        b"1.0.0@0|x",
        b"1.0.0@0| cut off\x18",
        b"1.0.x@0| x",
        b"hyperpod: waiting for nodes 3, 7",
        b'##hyperpod {"run_id": "x"}',
    ],
)
def test_other_lines_are_no_frames(line):
    assert FrameReader().read(line) is None
