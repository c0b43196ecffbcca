"""Finding IPython's own syntax in a cell: magics, shell lines and help, wherever Python would start a statement.

This is a scanner of its own and not `tokenize`, which stumbles over the very lines that are looked for, and does so differently in
each Python. It knows strings (f-strings with nested quotes included), comments, brackets and continued lines, and nothing else.
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
_TO_BREAK = re.compile(r"[^\r\n]*")
_ASSIGNED = re.compile(r"[ \t]*(?=!|%[^\W\d])")
_HELP = re.compile(r"(%{0,2}(?!\d)[\w*]+(\.(?!\d)[\w*]+|\[-?[0-9]+\])*)(\?\??)$")
_PLAIN = re.compile(r"[^'\"\\{\r\n]+")  # what means nothing inside a string
_MAX_NESTING = 40


@dataclass(frozen=True)
class Special:
    """A piece of IPython's own syntax.

    Attributes:
        kind: ``line`` for a statement that starts with an escape, ``assign`` for ``x = %...`` and ``x = !...``, ``help`` for ``x?``.
        start: Offset of its first character (for ``assign``: of the escape).
        end: Offset after its last character, the line break excluded.
        text: What it says, continued lines joined.
        line: Number of its first line, from 1.
    """

    kind: Kind
    start: int
    end: int
    text: str
    line: int


@dataclass(frozen=True)
class Scan:
    """What a cell holds: its special pieces in order, and whether its last statement ends with a semicolon."""

    specials: tuple[Special, ...]
    quiet: bool


def scan(text: str, start: int = 0) -> Scan:
    """Scan a cell's text from `start` on."""
    return _Scanner(text, start).run()


class _Scanner:
    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._at = start
        self._last = ""  # the last character that is no space and in no comment
        self._mark = 0  # the offset after it
        self._found: list[Special] = []

    def run(self) -> Scan:
        size = len(self._text)
        while self._at < size:
            self._skip(_BLANK)
            if self._text[self._at : self._at + 1] in _ESCAPES and self._at < size:
                self._special("line", self._at)
            else:
                self._logical_line()
            self._skip(_BREAK)
        return Scan(tuple(self._found), self._last == ";")

    def _logical_line(self) -> None:
        """Go to the line break that ends the statement, or stop early when the rest of it is IPython's."""
        begin, depth, assigned = self._at, 0, False
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in "\r\n":
                if depth == 0:
                    break
                self._skip(_BREAK)
            elif char == "=" and depth == 0 and not assigned and self._is_assignment():
                assigned = True
                self._at += 1
                self._last = char
                match = _ASSIGNED.match(self._text, self._at)
                if match is not None and self._at - 1 > begin:
                    self._special("assign", match.end())
                    return
            else:
                depth = max(0, depth + self._step(char))
        self._help(begin)

    def _step(self, char: str) -> int:
        """Pass one token; returns by how much the brackets got deeper."""
        if char == "#":
            self._skip(_TO_BREAK)
        elif char in "'\"":
            self._at = self._string(self._at, "", 0)
            self._last = char
        elif char == "\\":
            self._at += 1
            self._skip(_BREAK)
        elif char in " \t\f":
            self._at += 1
        elif not self._word():
            match = _OPERATOR.match(self._text, self._at)
            self._at = match.end() if match and char not in "%!" else self._at + 1
            self._last, self._mark = self._text[self._at - 1], self._at
        return {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(char, 0)

    def _word(self) -> bool:
        """Pass a name, a number, or a string with its prefix."""
        match = _NAME.match(self._text, self._at) or _NUMBER.match(self._text, self._at)
        if match is None:
            return False
        prefix, self._at = match.group().lower(), match.end()
        self._last = "a"
        if prefix in _STRING_PREFIXES and self._text[self._at : self._at + 1] in {"'", '"'}:
            self._at = self._string(self._at, prefix, 0)
        return True

    def _is_assignment(self) -> bool:
        """Whether the ``=`` here stands alone: operators such as ``==`` and ``+=`` are passed as a whole before this asks."""
        return self._text[self._at + 1 : self._at + 2] != "="

    def _string(self, at: int, prefix: str, nesting: int) -> int:
        """The offset after the string whose first quote is at `at`."""
        text, quote = self._text, self._text[at]
        triple = text.startswith(quote * 3, at)
        close = quote * 3 if triple else quote
        fields = ("f" in prefix or "t" in prefix) and nesting < _MAX_NESTING
        at += len(close)
        while at < len(text):
            plain = _PLAIN.match(text, at)
            if plain is not None:
                at = plain.end()
                continue
            char = text[at]
            if text.startswith(close, at):
                return at + len(close)
            if char == "\\":
                at = self._after_backslash(at, fields and "r" not in prefix)
            elif char in "\r\n" and not triple:
                return at  # never closed: Python will say so
            elif char == "{" and fields:
                doubled = text.startswith("{{", at)
                at = at + 2 if doubled else self._field(at + 1, close, nesting + 1)
            else:
                at += 1
        return at

    def _after_backslash(self, at: int, named: bool) -> int:
        following = self._text[at + 1 : at + 3]
        if named and following == "N{":
            end = self._text.find("}", at)
            return end + 1 if end >= 0 else at + 3
        if named and following[:1] == "{":
            return at + 1
        match = _BREAK.match(self._text, at + 1)
        return match.end() if match else at + 2

    def _field(self, at: int, close: str, nesting: int) -> int:
        """The offset after an f-string's ``{...}``, whose first character inside is at `at`; nested quotes may be the same as outside."""
        text, depth = self._text, 0
        while at < len(text):
            char = text[at]
            if char == "}" and depth == 0:
                return at + 1
            if char == ":" and depth == 0:
                return self._format(at + 1, close, nesting)
            if char in "'\"":
                at = self._string(at, self._prefix_before(at), nesting)
                continue
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(char, 0)
            at += 1
        return at

    def _prefix_before(self, at: int) -> str:
        match = re.search(r"(?<!\w)[A-Za-z]{1,2}$", self._text[max(0, at - 3) : at])
        prefix = match.group().lower() if match else ""
        return prefix if prefix in _STRING_PREFIXES else ""

    def _format(self, at: int, close: str, nesting: int) -> int:
        """The offset after a field's format, which may hold fields again."""
        text = self._text
        while at < len(text):
            if text[at] == "}":
                return at + 1
            if text[at] == "{" and nesting < _MAX_NESTING:
                at = self._field(at + 1, close, nesting + 1)
            elif text.startswith(close, at):
                return at  # never closed
            else:
                at += 1
        return at

    def _special(self, kind: Kind, start: int) -> None:
        """Take the rest of the line, and the lines that a trailing backslash adds."""
        parts: list[str] = []
        self._at = start
        while True:
            begin = self._at
            self._skip(_TO_BREAK)
            part = self._text[begin : self._at].rstrip()
            following = _BREAK.match(self._text, self._at)
            if not self._text[begin : self._at].endswith("\\") or following is None:
                parts.append(part)
                break
            parts.append(part[:-1])
            self._at = following.end()
        self._last = "a"
        self._add(kind, start, " ".join(parts))

    def _help(self, begin: int) -> None:
        """Note ``name?``; a question mark anywhere else is Python's own error."""
        statement = self._text[begin : self._at]
        if self._mark == self._at and self._last == "?" and _HELP.search(statement) is not None:
            self._add("help", begin, statement)

    def _add(self, kind: Kind, start: int, text: str) -> None:
        line = len(_BREAK.findall(self._text, 0, start)) + 1
        self._found.append(Special(kind, start, self._at, text, line))

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()


def dedent(text: str) -> str:
    """Take off the indentation that all lines share, as IPython does; blank lines and the rest of each line stay as they are."""
    lines = _lines(text)
    margins = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip()]
    if not margins:
        return text
    margin = _common_start(margins)
    return "".join(line.removeprefix(margin) for line in lines)


def strip_prompts(text: str) -> str:
    """Take off the ``>>>`` and ``...`` of code that was pasted from an interactive session, when its first line has one."""
    lines = _lines(text)
    first = next((line for line in lines if line.strip()), "")
    if re.match(r">>>( |$)", first.rstrip("\r\n")) is None:
        return text
    return "".join(re.sub(r"^(>>>|\.\.\.)( |(?=[\r\n]|$))", "", line) for line in lines)


def count_breaks(text: str) -> int:
    """Line breaks in a text, counted as Python counts them."""
    return len(_BREAK.findall(text))


def _lines(text: str) -> list[str]:
    """The text's lines with their breaks; `str.splitlines` would also break at form feeds and Unicode's separators."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _common_start(texts: list[str]) -> str:
    low, high = min(texts), max(texts)
    for position, char in enumerate(low):
        if char != high[position]:
            return low[:position]
    return low
