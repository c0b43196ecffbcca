from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.logs.cursor import Cursor, CursorWriter, run_mark
from hyperpod_jlab.logs.stream import Position, Stream, build_check, parse_attempt, parse_stream

streams = st.builds(Stream, st.integers(1, 99), st.integers(0, 2000), st.none() | st.integers(0, 300))
places = st.builds(
    Position, st.integers(1, 2**50), st.just("") | st.builds(build_check, st.integers(0, 2**63), st.binary(max_size=16))
)


@given(st.dictionaries(streams, places, max_size=40), st.integers(1, 9))
def test_text_and_back(chosen: dict[Stream, Position], first: int) -> None:
    kept = {stream: place for stream, place in chosen.items() if stream.attempt >= first}
    cursor = Cursor(kept, first)
    text = cursor.text()
    assert re.fullmatch(r"[-A-Za-z0-9._~]+", text)
    assert Cursor.parse(text) == cursor


def test_a_cursor_names_its_run() -> None:
    places = {Stream(3, 0, 0): Position(7, "ab")}
    cursor = Cursor(places, 2, run_mark("run-1"))
    assert Cursor.parse(cursor.text()) == cursor
    assert cursor.seal(3).run == cursor.run
    assert Cursor.parse(cursor.text()) != Cursor(places, 2, run_mark("run-1.0"))
    assert Cursor.parse("1~2~3.0_0-7-ab") == Cursor(places, 2)


@given(st.lists(st.tuples(streams, places), max_size=30))
def test_a_writer_writes_what_a_cursor_would(steps: list[tuple[Stream, Position]]) -> None:
    writer = CursorWriter(Cursor())
    now: dict[Stream, Position] = {}
    for stream, place in steps:
        writer.set(stream, place)
        now[stream] = place
        assert Cursor.parse(writer.text()) == Cursor(now)


def test_a_stream_at_its_start_takes_no_room() -> None:
    assert Cursor({Stream(1, 0, 0): Position(0)}).text() == Cursor().text()


def test_512_streams_fit_an_http_header() -> None:
    many = {Stream(1, n, r): Position(1 << 28, "abcde") for n in range(64) for r in range(8)}
    assert len(Cursor(many).text()) < 10_000


@pytest.mark.parametrize(
    "text",
    ["", "1", "2~1", "1~", "1~0x", "1~1~", "1~1~1.0", "1~1~1.0_0", "1~1~1.0_0-5", "1~1~1.0_0-5-é",
     "1~1~1.0_0--", "1~1~1.0_0-" + "f" * 40 + "-", "nonsense", "1~1~1.0_0-5-\n", "~" * 2_000_000],
)  # fmt: skip
def test_bad_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Cursor.parse(text)
    assert caught.value.detail == {"field": "cursor"}
    assert len(str(caught.value)) < 200


@given(st.text(max_size=60))
def test_any_other_text_is_refused_or_read(text: str) -> None:
    try:
        Cursor.parse(text)
    except InvalidInputError:
        return


def test_stream_names() -> None:
    for stream in (Stream(3, 0, None), Stream(1, 12, 7)):
        assert parse_stream(stream.attempt, stream.file_name) == stream
    assert Stream(1, 2, 3).index_name == "node-2.rank-3.idx"
    assert Stream(1, 2, 3).rank(8) == 19
    assert Stream(1, 2, None).rank(8) is None
    for name in ("node-0.idx", "node-00.log", "node-0.rank-1.log.gz", "node-x.log", "node-0.activity.json"):
        assert parse_stream(1, name) is None
    assert parse_attempt("attempt-12") == 12
    assert parse_attempt("attempt-0") is None
    assert parse_attempt("attempt-1.tmp") is None


def test_a_check_tells_files_and_bytes_apart() -> None:
    checks = {build_check(1, b"line 1\n"), build_check(2, b"line 1\n"), build_check(1, b"line 2\n")}
    assert len(checks) == 3
