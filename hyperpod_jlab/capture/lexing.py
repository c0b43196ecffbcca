"""Finds IPython's own syntax in a cell: magics, shell lines and help, wherever a Python statement could start.

This is a scanner of its own and not `tokenize`, which fails on exactly these lines, and differently
in each Python version. It knows strings (including f-strings with nested quotes), comments,
brackets and continued lines, and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["line", "assign", "help"]

_ESCAPES = "%!?,;/"
_STRING_PREFIXES = {"r", "u", "b", "f", "t", "br", "rb", "fr", "rf", "tr", "rt"}
_BREAK = re.compile(r"\r\n|\r|\n")
_BLANK = re.compile(r"[ \t\f]*")
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"\d\w*")
_OPERATOR = re.compile(r"[=!<>:+\-*/%&|^@~]+")
_REST_OF_LINE = re.compile(r"[^\r\n]*")
_ASSIGNED = re.compile(r"[ \t]*(?=!|%[^\W\d])")
_HELP_BACKWARDS = re.compile(r"\?{1,2}(?:\][0-9]+-?\[)*\d*(?:[^\W\d]|\*)")
"""The end of ``name?`` or ``name[0]??``, from its end."""
_PLAIN_STRING = re.compile(r"[^'\"\\{\r\n]+")  # characters without a meaning inside a string
_MAX_NESTING = 40
_MAX_CHARACTER_NAME = 200  # of \N{...}


@dataclass(frozen=True)
class Special:
    """A piece of IPython's own syntax.

    Attributes:
        kind: ``line`` for a statement that starts with an escape, ``assign`` for ``x = %...`` and
            ``x = !...``, ``help`` for ``x?``.
        start: Offset of its first character (for ``assign``: of the escape).
        end: Offset after its last character, the line break excluded.
        text: Its text, with continued lines joined.
        line: Number of its first line, from 1.
    """

    kind: Kind
    start: int
    end: int
    text: str
    line: int


@dataclass(frozen=True)
class Scan:
    """The scan of a cell: its special pieces in order, and whether its last statement ends with a semicolon."""

    specials: tuple[Special, ...]
    is_quiet: bool


def scan(text: str, start: int = 0) -> Scan:
    """Scan a cell's text from `start` on."""
    return _Scanner(text, start).run()


class _Scanner:
    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._position = start
        self._last_character = ""  # the last character that is neither a space nor in a comment
        self._last_end = 0  # the offset after it
        self._specials: list[Special] = []
        self._line, self._counted = 1, 0  # the line at an offset

    def run(self) -> Scan:
        size = len(self._text)
        while self._position < size:
            self._skip(_BLANK)
            if (
                self._text[self._position : self._position + 1] in _ESCAPES
                and self._position < size
            ):
                self._special("line", self._position)
            else:
                self._logical_line()
            self._skip(_BREAK)
        return Scan(tuple(self._specials), self._last_character == ";")

    def _logical_line(self) -> None:
        """Advance to the line break that ends the statement, or stop early when the rest of it is IPython's."""
        begin, depth, assigned = self._position, 0, False
        while self._position < len(self._text):
            char = self._text[self._position]
            if char in "\r\n":
                following = _BREAK.match(self._text, self._position)
                if depth == 0 or (following and following.end() == len(self._text)):
                    break
                self._skip(_BREAK)
            elif char == "=" and depth == 0 and not assigned and self._is_assignment():
                assigned = True
                self._position += 1
                self._last_character = char
                match = _ASSIGNED.match(self._text, self._position)
                if match is not None and self._position - 1 > begin:
                    self._special("assign", match.end())
                    return
            else:
                depth = max(0, depth + self._step(char))
        self._scan_help(begin)

    def _step(self, char: str) -> int:
        """Consume one token; returns the change of the bracket depth."""
        if char == "#":
            self._skip(_REST_OF_LINE)
        elif char in "'\"":
            self._position = self._scan_string(self._position, "", 0)
            self._last_character = char
        elif char == "\\":
            self._position += 1
            self._skip(_BREAK)
        elif char in " \t\f":
            self._position += 1
        elif not self._scan_word():
            match = _OPERATOR.match(self._text, self._position)
            self._position = match.end() if match and char not in "%!" else self._position + 1
            self._last_character, self._last_end = self._text[self._position - 1], self._position
        return {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(char, 0)

    def _scan_word(self) -> bool:
        """Consume a name, a number, or a string with its prefix."""
        match = _NAME.match(self._text, self._position) or _NUMBER.match(self._text, self._position)
        if match is None:
            return False
        prefix, self._position = match.group().lower(), match.end()
        self._last_character = "a"
        if prefix in _STRING_PREFIXES and self._text[self._position : self._position + 1] in {
            "'",
            '"',
        }:
            self._position = self._scan_string(self._position, prefix, 0)
        return True

    def _is_assignment(self) -> bool:
        """Whether the ``=`` here is an assignment: operators such as ``==`` and ``+=`` have been consumed as a whole before."""
        return self._text[self._position + 1 : self._position + 2] != "="

    def _scan_string(self, position: int, prefix: str, nesting: int) -> int:
        """The offset after the string whose first quote is at `position`."""
        text, quote = self._text, self._text[position]
        triple = text.startswith(quote * 3, position)
        close = quote * 3 if triple else quote
        fields = ("f" in prefix or "t" in prefix) and nesting < _MAX_NESTING
        position += len(close)
        while position < len(text):
            plain_match = _PLAIN_STRING.match(text, position)
            if plain_match is not None:
                position = plain_match.end()
                continue
            char = text[position]
            if text.startswith(close, position):
                return position + len(close)
            if char == "\\":
                position = self._skip_backslash(position, fields and "r" not in prefix)
            elif char in "\r\n" and not triple:
                return position  # unterminated: Python reports it
            elif char == "{" and fields:
                doubled = text.startswith("{{", position)
                position = (
                    position + 2 if doubled else self._scan_field(position + 1, close, nesting + 1)
                )
            else:
                position += 1
        return position

    def _skip_backslash(self, position: int, allows_names: bool) -> int:
        following = self._text[position + 1 : position + 3]
        if allows_names and following == "N{":
            end = self._text.find("}", position, position + _MAX_CHARACTER_NAME)
            return end + 1 if end >= 0 else position + 3
        if allows_names and following[:1] == "{":
            return position + 1
        match = _BREAK.match(self._text, position + 1)
        return match.end() if match else position + 2

    def _scan_field(self, position: int, close: str, nesting: int) -> int:
        """The offset after an f-string's ``{...}``, whose first character inside is at `position`; nested quotes may be the same as outside."""
        text, depth = self._text, 0
        while position < len(text):
            char = text[position]
            if char == "}" and depth == 0:
                return position + 1
            if char == ":" and depth == 0:
                return self._scan_format(position + 1, close, nesting)
            if char in "'\"":
                position = self._scan_string(position, self._string_prefix(position), nesting)
                continue
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(char, 0)
            position += 1
        return position

    def _string_prefix(self, position: int) -> str:
        match = re.search(r"(?<!\w)[A-Za-z]{1,2}$", self._text[max(0, position - 3) : position])
        prefix = match.group().lower() if match else ""
        return prefix if prefix in _STRING_PREFIXES else ""

    def _scan_format(self, position: int, close: str, nesting: int) -> int:
        """The offset after a field's format, which may hold fields again."""
        text = self._text
        while position < len(text):
            if text[position] == "}":
                return position + 1
            if text[position] == "{" and nesting < _MAX_NESTING:
                position = self._scan_field(position + 1, close, nesting + 1)
            elif text.startswith(close, position):
                return position  # unterminated
            else:
                position += 1
        return position

    def _special(self, kind: Kind, start: int) -> None:
        """Consume the rest of the line, and the lines that a trailing backslash adds."""
        parts: list[str] = []
        self._position = start
        while True:
            begin = self._position
            self._skip(_REST_OF_LINE)
            part = self._text[begin : self._position].rstrip()
            following = _BREAK.match(self._text, self._position)
            if not self._text[begin : self._position].endswith("\\") or following is None:
                parts.append(part)
                break
            parts.append(part[:-1])
            self._position = following.end()
        self._last_character = "a"
        self._add(kind, start, " ".join(parts))

    def _scan_help(self, begin: int) -> None:
        """Record ``name?``; a question mark anywhere else is Python's own error."""
        statement = self._text[begin : self._position]
        if (
            self._last_end == self._position
            and self._last_character == "?"
            and _HELP_BACKWARDS.match(statement[::-1]) is not None
        ):
            self._add("help", begin, statement)

    def _add(self, kind: Kind, start: int, text: str) -> None:
        self._line += len(_BREAK.findall(self._text, self._counted, start))
        self._counted = start
        self._specials.append(Special(kind, start, self._position, text, self._line))

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._position)
        if match is not None:
            self._position = match.end()


def dedent(text: str) -> str:
    """Remove the indentation that all lines share, as IPython does; blank lines and the rest of each line stay unchanged."""
    lines = _lines(text)
    margins = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip()]
    if not margins:
        return text
    margin = _common_prefix(margins)
    return "".join(line.removeprefix(margin) for line in lines)


def strip_prompts(text: str) -> str:
    """Remove the ``>>>`` and ``...`` of code pasted from an interactive session if its first line has one."""
    lines = _lines(text)
    first = next((line for line in lines if line.strip()), "")
    if re.match(r">>>( |$)", first.rstrip("\r\n")) is None:
        return text
    return "".join(re.sub(r"^(>>>|\.\.\.)( |(?=[\r\n]|$))", "", line) for line in lines)


def count_breaks(text: str) -> int:
    """Count line breaks as Python does."""
    return len(_BREAK.findall(text))


def _lines(text: str) -> list[str]:
    """The text's lines with their breaks; `str.splitlines` would also split at form feeds and Unicode's separators."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _common_prefix(texts: list[str]) -> str:
    low, high = min(texts), max(texts)
    for position, char in enumerate(low):
        if char != high[position]:
            return low[:position]
    return low
