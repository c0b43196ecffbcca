"""What of a job's text reaches a terminal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_jlab.core.text import (
    TerminalLine,
    is_plain,
    keep_styles,
    keep_styles_of_lines,
    terminal_json,
    terminal_text,
)

HARMFUL = [
    "\x1b]52;c;ZWNobyBwd25lZA==\x07",
    "\x1b]8;;http://evil.example\x1b\\",
    "\x1b]0;title\x9c",
    "\x1b[6n",
    "\x1b[?1049h",
    "\x1b[2J",
    "\x1b[1A",
    "\x1b[>4;2m",
    "\x1b[?4m",
    "\x1b[1 m",
    "\x1bPq#0;2;0;0;0\x1b\\",
    "\x1b_Gf=100;AAAA\x1b\\",
    "\x1b^private\x1b\\",
    "\x1bXstring\x1b\\",
    "\x1bc",
    "\x1b(0",
    "\x1b#8",
    "\x0e",
    "\x07",
    "\x05",
    "\x08",
    "\x7f",
    "\x0b",
    "\x00",
]


@pytest.mark.parametrize("sequence", HARMFUL)
def test_what_commands_a_terminal_is_left_out(sequence):
    assert keep_styles(f"before{sequence}after").replace("\\x7f", "") == "beforeafter"
    assert not is_plain(f"before{sequence}after".encode())


@pytest.mark.parametrize("character", ["\x9b", "\x9d", "\x85", "\u202e", "\u2066", "\u202a", "\udc9b"])
def test_what_would_not_be_seen_is_shown_as_its_escape(character):
    shown = keep_styles(f"a{character}31mb")
    assert shown == f"a{character.encode('unicode_escape').decode()}31mb"
    if character != "\udc9b":
        assert not is_plain(character.encode())


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mred\x1b[0m",
        "\x1b[38;5;208mx",
        "\x1b[38:2::1:2:3mx",
        "\x1b[m",
        "tab\tand a bar\r 50 %",
        "h\u00e4ll\u00f6 \u2588\u2588\u258f \u6f22\u5b57 \U0001f600 \u00a0 \u200f",
    ],
)
def test_colours_tabs_and_text_of_any_language_stay(text):
    assert keep_styles(text) == text


@pytest.mark.parametrize("torn", ["\x1b", "\x1b[", "\x1b[3", "\x1b]52;c;AAAA", "\x1bP1", "\x1b("])
def test_a_sequence_without_an_end_commands_nothing(torn):
    assert "\x1b" not in keep_styles(torn)
    assert "\x1b" not in keep_styles(f"{torn}\x1b") + keep_styles("]0;x")


@given(st.text(st.sampled_from("\x1b[]P_\\;?>:031 mnhA\x07\x9b\x9c\u202e\r\tx"), max_size=30), st.data())
def test_no_way_of_cutting_a_line_lets_anything_but_styles_through(text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    line = TerminalLine()
    shown = "".join(
        line.add(piece, is_new=False, last=number == len(pieces) - 1) for number, piece in enumerate(pieces)
    )
    assert keep_styles(shown) == shown
    without = shown
    while "\x1b[" in without:
        head, _, tail = without.partition("\x1b[")
        parameters, _, rest = tail.partition("m")
        assert set(parameters) <= set("0123456789:;")
        without = head + rest
    assert not set(without) & set("\x1b\x07\x9b\x9c\u202e")


def test_a_torn_style_is_put_together_and_ends_with_its_piece():
    line = TerminalLine()
    assert line.add("a\x1b[3", is_new=False, last=False) == "a"
    assert line.add("1mb", is_new=False, last=False) == "\x1b[31mb\x1b[0m"
    assert line.add("c", is_new=False, last=True) == "\x1b[31mc\x1b[0m"


def test_a_torn_link_is_left_out_whole():
    line = TerminalLine()
    assert line.add("see \x1b]8;;http://ev", is_new=False, last=False) == "see "
    assert line.add("il\x1b", is_new=False, last=False) == ""
    assert line.add("\\here", is_new=False, last=True) == "here"


def test_a_line_shown_anew_is_not_eaten_by_what_was_torn_before_it():
    line = TerminalLine()
    line.add("50 %\x1b[3", is_new=False, last=False)
    assert line.add("bar 60 %", is_new=True, last=True) == "bar 60 %"


def test_text_of_several_lines_keeps_them_and_hides_nothing_by_a_carriage_return():
    assert terminal_text("one\r\ntwo\tx\nthree\r") == "one\ntwo\tx\nthree"
    assert terminal_text("rm -rf /\rharmless") == "rm -rf /\\rharmless"
    assert terminal_text("\x1b[31mred\x1b[0m") == "\x1b[31mred\x1b[0m"
    assert terminal_text("\x1b[31mred") == "\x1b[31mred\x1b[0m"


def test_json_for_a_terminal_is_the_same_json():
    document = {"line": "a\x9b31m \u202e\x7f h\u00e4 \x1b[6n"}
    shown = terminal_json(json.dumps(document, ensure_ascii=False))
    assert json.loads(shown) == document
    assert not set(shown) & set("\x9b\u202e\x7f\x1b")
    assert "h\u00e4" in shown


def test_whole_lines_end_their_own_colours_and_no_sequence_reaches_into_the_next_one():
    lines = ["\x1b[31mred", "plain", "\x1b[32mgreen\x1b[0m", "\x1b]0;no end", "x\x07y"]
    assert keep_styles_of_lines(lines) == ["\x1b[31mred\x1b[0m", "plain", "\x1b[32mgreen\x1b[0m", "0;no end", "xy"]
