"""Regular expressions in Python's syntax, matched per line, and whether many lines can be searched at once.

The latter is derived from the pattern conservatively: in doubt, the answer is no.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.storage.big_records import find_data

_MAX_PATTERN = 2000
_MAX_ATOMS = 20_000
_SPECIAL = frozenset("\\.^$*+?{}[]|()")
_SINGLE_LINE_ESCAPES = frozenset("dwSb")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d*,?\d*\})[?+]?")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_TOKENS = re.compile(rf"\\N\{{[^}}]*\}}|\\.|{_CLASS.pattern}|\{{(?!\d*,\d*\}}|\d+\}})", re.DOTALL)
"""A named character, an escape, a class, or a literal brace."""
_ATOMS = re.compile(rf"\\.|{_CLASS.pattern}|\{{(\d+)(?:,\d*)?\}}|.", re.DOTALL)
"""An escape, a class, a repetition with its count, or another character."""
_VERBOSE = re.compile(r"\(\?[a-zA-Z]*x")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression and its properties.

    Attributes:
        text: The expression.
        ignore_case: Whether to ignore case.
        literal: The text, if the expression is a literal.
        is_single_line: No match depends on text outside of its line, so many lines can be searched
            at once.
    """

    text: str
    ignore_case: bool = False
    literal: str | None = None
    is_single_line: bool = False

    @property
    def expression(self) -> str:
        """The same for the package `regex`, which would read ``a{e}`` as fuzzy and ``[[:alpha:]]`` as POSIX."""
        return _TOKENS.sub(_keep_in_line, self.text)


def _keep_in_line(match: re.Match[str]) -> str:
    atom = match[0]
    if atom.startswith("["):
        within = re.sub(r"\\.|\[", lambda inner_match: inner_match[0] if inner_match[0] != "[" else r"\[", atom[1:])
        return f"[{within}"
    return r"\{" if atom == "{" else atom


def parse_pattern(text: str, *, ignore_case: bool = False, field: str = "grep") -> Pattern:
    """Parse a regular expression.

    Args:
        text: The expression in Python's syntax.
        ignore_case: Whether to ignore case.
        field: Its name in errors.

    Raises:
        InvalidInputError: The expression is invalid, or longer than 2000 characters.
    """
    import regex

    if len(text) > _MAX_PATTERN:
        raise _invalid(f"the pattern is longer than {_MAX_PATTERN} characters", field)
    try:
        with warnings.catch_warnings():
            # Warnings about future changes of Python's syntax do not matter to a search now.
            warnings.simplefilter("ignore")
            re.compile(text)
            if _written_out(text) > _MAX_ATOMS:
                raise _invalid(f"the repetitions in '{text[:60]}' are too long", field)
            literal = None if _SPECIAL & set(text) or not text.isprintable() else text
            pattern = Pattern(text, ignore_case, literal, literal is not None or is_single_line_pattern(text))
            regex.compile(pattern.expression)
    except (re.error, regex.error, RecursionError, OverflowError) as error:
        raise _invalid(f"'{text[:60]}' is not a regular expression: {error}", field) from error
    return pattern


def _written_out(text: str) -> int:
    """The length of a valid expression with its counted repetitions written out. The package `regex` compiles it so: it takes gigabytes for ``.{10000000}``."""
    is_flat = _VERBOSE.search(text) is not None  # parentheses may be comments
    sizes, last = [0], 0
    for token in _ATOMS.finditer(text):
        if token[1] is not None:
            last = (sizes[-1] if is_flat else last) * int(token[1])
            sizes[-1] += last
        elif token[0] == "(" and not is_flat:
            sizes.append(0)
        elif token[0] == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        else:
            last = 1
            sizes[-1] += 1
    return sum(sizes)


def _invalid(message: str, field: str) -> InvalidInputError:
    return InvalidInputError(
        message,
        code="invalid_pattern",
        hint="put a backslash before literal characters such as ( [ * + ?",
        detail={"field": field},
    )


def is_single_line_pattern(text: str) -> bool:
    """Whether a valid expression matches a line the same way with more lines around it."""
    position = 0
    while position < len(text):
        char = text[position]
        if char == "(" and text.startswith("(?", position) and not text.startswith("(?:", position):
            return False
        if char == "[":
            match = _CLASS.match(text, position)
            if (
                match is None
                or "\\" in match.group()
                or match.group().startswith("[^")
                or not match.group().isprintable()
            ):
                return False
            position = match.end()
            continue
        if char == "\\":
            if text[position + 1].isalnum() and text[position + 1] not in _SINGLE_LINE_ESCAPES:
                return False
            position += 2
            continue
        quantifier = _QUANTIFIER.match(text, position)
        if quantifier is not None:
            if len(quantifier.group()) > 1 and quantifier.group().endswith("+"):
                return False
            position = quantifier.end()
            continue
        if not char.isprintable():
            return False
        position += 1
    return True


# --------------------------------------------------------------------------------------------------
# Regular expressions with a timeout, for lines and for files.
#
# The package `regex` releases the interpreter's lock while it matches and stops at a timeout, so a
# catastrophic pattern occupies one thread for that long and blocks nothing else. Each request has
# its own daemon thread: neither other work nor the program's end waits for it.

T = TypeVar("T")

TIMEOUT = 10.0
"""Timeout in seconds for one batch of lines, or one section of a file."""

_CHUNK = 4 << 20
_MAX_LINE_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """A matching line: its position in its file, and the match in it (all in bytes)."""

    begin: int
    end: int
    match_begin: int
    match_end: int


class Matcher:
    """Finds lines that match a pattern. Use it in an ``async with``.

    Args:
        pattern: The pattern.
        timeout: The timeout of one request in seconds.
    """

    def __init__(self, pattern: Pattern, *, timeout: float = TIMEOUT) -> None:
        import regex

        self.pattern = pattern
        self._timeout = timeout
        self._closed = False
        self._literal = None if pattern.ignore_case else pattern.literal
        flags = regex.IGNORECASE if pattern.ignore_case else 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._line_regex: Any = regex.compile(pattern.expression, flags)
            # In a search of many lines at once, ^ and $ match at each line.
            self._lines_regex: Any = regex.compile(pattern.expression, flags | regex.MULTILINE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop the current work, at the latest at its timeout."""
        self._closed = True

    def excludes(self, data: bytes, begin: int, end: int) -> bool:
        """Whether the bytes alone show that no line matches."""
        return self._literal is not None and data.find(self._literal.encode(), begin, end) < 0

    async def filter(self, texts: Sequence[str]) -> list[int]:
        """The indices of the matching lines.

        Raises:
            InvalidInputError: The pattern takes too long.
        """
        literal = self._literal
        if literal is not None:
            return [index for index, text in enumerate(texts) if literal in text]
        if not texts:
            return []
        search = self._deadline(self._line_regex)
        return await self._run_in_thread(lambda: [index for index, text in enumerate(texts) if search(text, 0)])

    async def scan(self, file: int, begin: int, end: int, limit: int) -> tuple[list[PatternMatch], int]:
        """The matching lines that start in ``[begin, end)`` of an open file, at most `limit`, and how far the search got.

        Raises:
            InvalidInputError: The pattern takes too long.
        """
        # The thread may outlive this call, and with it the caller's descriptor.
        own_fd = os.dup(file)
        return await self._run_in_thread(lambda: self._scan(own_fd, begin, end, limit))

    # In the thread

    def _deadline(self, expression: Any) -> Callable[[str, int], Any]:
        """The expression's search function, with the request's remaining time."""
        deadline = time.monotonic() + self._timeout

        def search(text: str, position: int) -> Any:
            if self._closed:
                raise TimeoutError
            remaining_s = max(deadline - time.monotonic(), 0.001)
            return expression.search(text, position, timeout=remaining_s, concurrent=True)

        return search

    def _scan(self, file: int, begin: int, end: int, limit: int) -> tuple[list[PatternMatch], int]:
        search, lines = self._deadline(self._line_regex), self._deadline(self._lines_regex)
        matches: list[PatternMatch] = []
        try:
            position = _line_start(file, begin, end)
            while (position := find_data(file, position, end)) < end:
                data = _read_whole_lines(file, position, min(_CHUNK, end - position))
                if not data:
                    break
                for first, last in self._lines(data, search, lines):
                    if position + first >= end:
                        break
                    span = _span(data[first:last], search)
                    matches.append(PatternMatch(position + first, position + last, *span))
                    if len(matches) == limit:
                        return matches, position + last + 1
                position += len(data)
            return matches, max(position, end)
        finally:
            os.close(file)

    def _lines(
        self, data: bytes, search: Callable[[str, int], Any], lines: Callable[[str, int], Any]
    ) -> Iterator[tuple[int, int]]:
        """Start and end of the matching lines in `data`, without newlines."""
        if self._literal:
            yield from _lines_with_text(data, self._literal.encode())
            return
        # Each character is one byte here, so offsets in the text are offsets in the data.
        is_ascii_batch = self.pattern.is_single_line and data.isascii()
        text, position = data.decode("ascii") if is_ascii_batch else "", 0
        while position < len(data):
            begin = within = position
            if is_ascii_batch:
                match = lines(text, position)
                if match is None:
                    return
                within = match.start()
                begin = text.rfind("\n", 0, within) + 1
                if begin == len(data):
                    return
            end = data.find(b"\n", within)
            end = len(data) if end < 0 else end
            if is_ascii_batch or search(_text(data[begin:end]), 0):
                yield begin, end
            position = end + 1

    async def _run_in_thread(self, function: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def set_result(result: T | None, error: BaseException | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        def run() -> None:
            result = error_raised = None
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001 - it is raised below
                error_raised = error
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(set_result, result, error_raised)

        threading.Thread(target=run, name="search", daemon=True).start()
        try:
            result: T = await future
        except TimeoutError:
            raise InvalidInputError(
                f"the pattern '{self.pattern.text[:60]}' timed out",
                code="slow_pattern",
                hint="avoid nested repetitions such as (a+)+",
                detail={"field": "grep"},
            ) from None
        return result


def _lines_with_text(data: bytes, needle: bytes) -> Iterator[tuple[int, int]]:
    position = 0
    while (position_found := data.find(needle, position)) >= 0:
        begin, end = data.rfind(b"\n", 0, position_found) + 1, data.find(b"\n", position_found)
        end = len(data) if end < 0 else end
        yield begin, end
        position = end + 1


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _span(line: bytes, search: Callable[[str, int], Any]) -> tuple[int, int]:
    """The match's offsets in its line, in bytes."""
    text = _text(line)
    match = search(text, 0)
    if match is None:
        return 0, 0
    # Replacement characters differ in length from the original bytes; an approximation is enough
    # here.
    return len(text[: match.start()].encode()), len(text[: match.end()].encode())


def _line_start(file: int, begin: int, end: int) -> int:
    """Where the first line at or after an offset starts; `end` if no line starts before that."""
    position = begin - 1
    while 0 <= position < end:
        position = find_data(file, position, end)
        data = os.pread(file, 64 << 10, position)
        newline = data.find(b"\n")
        if newline >= 0:
            return position + newline + 1
        if not data:
            return position
        position += len(data)
    return max(position, 0)


def _read_whole_lines(file: int, position: int, size: int) -> bytes:
    """At least `size` bytes from a line start on, up to the end of a line; a line of many MiB is cut."""
    data = os.pread(file, size, position)
    while data and not data.endswith(b"\n"):
        newline = data.rfind(b"\n")
        if newline >= 0 and len(data) >= _CHUNK:
            return data[: newline + 1]
        if len(data) >= _MAX_LINE_BYTES:
            return data
        next_bytes = os.pread(file, _CHUNK, position + len(data))
        if not next_bytes:
            return data
        line_end = next_bytes.find(b"\n")
        data += next_bytes if line_end < 0 else next_bytes[: line_end + 1]
    return data
