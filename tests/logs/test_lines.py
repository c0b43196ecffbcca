from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperpod_jlab.logs.lines import (
    MAX_LINE_BYTES,
    character_boundary,
    final_text,
    find_segment_ends,
    last_complete,
    texts,
)

bits = st.sampled_from(
    [
        b"\n",
        b"a",
        b"\r",
        b"\xc3\xa4",
        b"\xe2\x82\xac",
        b"\xf0\x9f\x9a\x80",
        b"\xff",
        b"\x00",
        b"x" * MAX_LINE_BYTES,
        b"y" * (MAX_LINE_BYTES - 1),
    ]
)
buffers = st.lists(bits, max_size=14).map(b"".join)


@given(buffers)
def test_pieces_cover_everything_once_and_are_short(data: bytes) -> None:
    ends = find_segment_ends(data, 0, len(data))
    assert ends == sorted(set(ends))
    assert (ends[-1] if ends else 0) == len(data)
    for begin, end in zip([0, *ends], ends, strict=False):
        piece = data[begin:end]
        assert b"\n" not in piece[:-1]
        assert len(piece.rstrip(b"\n")) <= MAX_LINE_BYTES
    assert len(texts(data, 0, len(data), collapse=False)) == len(ends)
    assert len(texts(data, 0, len(data), collapse=True)) == len(ends)


@given(buffers, buffers)
def test_whole_pieces_stay_when_more_comes(data: bytes, more: bytes) -> None:
    stop = last_complete(data, 0, len(data))
    assert len(data) - stop <= MAX_LINE_BYTES
    before = find_segment_ends(data, 0, stop)
    after = find_segment_ends(data + more, 0, len(data) + len(more))
    assert after[: len(before)] == before


@given(buffers)
def test_text_is_what_decoding_everything_gives(data: bytes) -> None:
    if max(map(len, data.split(b"\n"))) > MAX_LINE_BYTES:
        return
    assert "\n".join(texts(data + b"\n", 0, len(data) + 1, collapse=False)) == data.decode("utf-8", "replace")


def test_no_character_is_torn() -> None:
    for char in ("ä", "€", "🚀"):
        encoded = char.encode()
        for torn in range(1, len(encoded)):
            data = b"abc" + encoded[:torn]
            assert character_boundary(data, 0, len(data)) == 3
            assert character_boundary(encoded[:torn], 0, torn) == 0
        whole_char = b"abc" + encoded
        assert character_boundary(whole_char, 0, len(whole_char)) == len(whole_char)
    assert character_boundary(b"\x80" * 8, 0, 8) == 8


def test_progress_bars_show_their_last_state() -> None:
    assert final_text("10%\r20%\r30%") == "30%"
    assert final_text("30%\r") == "30%"
    assert final_text("\r") == ""
    bar = b"a\r\nb 1%\rb 2%\r\nc\n"
    assert texts(bar, 0, len(bar), collapse=True) == ["a", "b 2%", "c"]
    assert texts(bar, 0, len(bar), collapse=False) == ["a\r", "b 1%\rb 2%\r", "c"]


def test_blank_lines_nul_and_lines_that_look_like_data() -> None:
    data = b'\n\n\x00\n{"a": 1}\n42\nnull\n \n'
    assert texts(data, 0, len(data), collapse=True) == ["", "", "\x00", '{"a": 1}', "42", "null", " "]
