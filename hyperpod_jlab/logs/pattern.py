"""What can be said of a regular expression before it runs, so that most of a log need not be shown to it.

Patterns are Python's, matched against one line at a time. Two facts save most of the work: a text that every match must
contain, and whether a match can reach over the end of a line. Both are found by reading the pattern, carefully: where in
doubt, nothing is claimed.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

from hyperpod_jlab.model.errors import InvalidInputError

_LONGEST = 2000
_SPECIAL = frozenset("\\.^$*+?{}[]|()")
_IN_LINE_ESCAPES = frozenset("dwSb")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d*,?\d*\})[?+]?")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression and what is known of it.

    Attributes:
        text: The expression.
        ignore_case: Whether upper and lower case are the same.
        literal: The expression is just this text.
        required: Every match contains this text.
        in_line: No match can depend on what lies beyond its line, so many lines can be searched at once.
    """

    text: str
    ignore_case: bool = False
    literal: str | None = None
    required: str | None = None
    in_line: bool = False


def parse_pattern(text: str, *, ignore_case: bool = False, field: str = "grep") -> Pattern:
    """Read a regular expression.

    Args:
        text: Python's syntax.
        ignore_case: Whether upper and lower case are the same.
        field: What to call it in an error.

    Raises:
        InvalidInputError: It is none, or longer than 2000 characters.
    """
    if len(text) > _LONGEST:
        raise _invalid(f"the pattern is longer than {_LONGEST} characters", field)
    try:
        with warnings.catch_warnings():
            # What Python may one day read otherwise is no affair of who looks for something now.
            warnings.simplefilter("ignore")
            re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise _invalid(f"'{text[:60]}' is not a regular expression: {error}", field) from error
    if not _SPECIAL & set(text) and text.isprintable():
        return Pattern(text, ignore_case, literal=text, required=text or None, in_line=True)
    return Pattern(text, ignore_case, required=required_text(text), in_line=stays_in_line(text))


def _invalid(message: str, field: str) -> InvalidInputError:
    return InvalidInputError(
        message,
        code="invalid_pattern",
        hint="put a backslash before characters such as ( [ * + ? that are meant as they are",
        detail={"field": field},
    )


def required_text(text: str) -> str | None:
    """A text that every match of a valid expression contains, or None when none is found."""
    best = run = ""
    at = 0
    while at < len(text):
        char = text[at]
        piece: str | None = None
        if char == "|":
            return None
        if char == "(":
            end = _group_end(text, at)
            if end is None or text.startswith("(?", at):
                return None
            at = end
        elif char == "[":
            match = _CLASS.match(text, at)
            if match is None:
                return None
            at = match.end()
        elif char == "\\":
            escaped = text[at + 1]
            if escaped.isdigit() or escaped in "xuUN":
                return None
            piece = None if escaped.isalnum() else escaped
            at += 2
        else:
            piece = None if char in ".^$" else char
            at += 1
        quantifier = _QUANTIFIER.match(text, at)
        if quantifier is not None:
            at = quantifier.end()
            if piece is not None and quantifier.group().startswith("+"):
                run += piece
            best, run = max(best, run, key=len), ""
        elif piece is None:
            best, run = max(best, run, key=len), ""
        else:
            run += piece
    found = max(best, run, key=len)
    return found if found and found.isprintable() and "\ufffd" not in found else None


def stays_in_line(text: str) -> bool:
    """Whether a valid expression's matches in one line are the same when more lines stand around it."""
    at = 0
    while at < len(text):
        char = text[at]
        if char == "(" and text.startswith("(?", at) and not text.startswith("(?:", at):
            return False
        if char == "[":
            match = _CLASS.match(text, at)
            if (
                match is None
                or "\\" in match.group()
                or match.group().startswith("[^")
                or not match.group().isprintable()
            ):
                return False
            at = match.end()
            continue
        if char == "\\":
            if text[at + 1].isalnum() and text[at + 1] not in _IN_LINE_ESCAPES:
                return False
            at += 2
            continue
        quantifier = _QUANTIFIER.match(text, at)
        if quantifier is not None:
            if len(quantifier.group()) > 1 and quantifier.group().endswith("+"):
                return False
            at = quantifier.end()
            continue
        if not char.isprintable():
            return False
        at += 1
    return True


def _group_end(text: str, at: int) -> int | None:
    """The index behind the group that opens at `at`."""
    depth = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if char == "[":
            match = _CLASS.match(text, at)
            if match is None:
                return None
            at = match.end()
            continue
        depth += (char == "(") - (char == ")")
        at += 1
        if depth == 0:
            return at
    return None
