"""What can be said of a regular expression before it runs, so that most of a log need not be shown to it.

Patterns are Python's, matched against one line at a time. Two facts save most of the work: a text that every match must
contain, and whether a match can reach over the end of a line. Both are found by reading the pattern, carefully: where in
doubt, nothing is claimed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import sys
import warnings
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from hyperpod_jlab.core.errors import InternalError, InvalidInputError

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


# --------------------------------------------------------------------------------------------------
# Regular expressions with a time limit: the parent's side of `match_worker`.

PATIENCE = 10.0
"""Seconds that a pattern may take for one batch of lines, or one stretch of a file."""

_PROGRAM = Path(__file__).with_name("match_worker.py")
_LONGEST_ANSWER = 64 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """A line that matches: where it lies in its file, and the match in it (all in bytes)."""

    begin: int
    end: int
    match_begin: int
    match_end: int


class Matcher:
    """Runs one pattern in a process of its own, started when first needed. Use it in an ``async with``.

    Args:
        pattern: The pattern.
        patience: Seconds that it may take for one request.
    """

    def __init__(self, pattern: Pattern, *, patience: float = PATIENCE) -> None:
        self.pattern = pattern
        self._patience = patience
        self._process: asyncio.subprocess.Process | None = None
        self._files: socket.socket | None = None
        self._turn = asyncio.Lock()
        known = None if pattern.ignore_case or pattern.required is None else pattern.required
        self._required = known.encode() if known is not None else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def excludes(self, data: bytes, begin: int, end: int) -> bool:
        """Whether it is plain from the bytes that no line among them matches."""
        return self._required is not None and data.find(self._required, begin, end) < 0

    async def filter(self, texts: Sequence[str]) -> list[int]:
        """The indices of the lines that match.

        Raises:
            InvalidInputError: The pattern takes too long.
        """
        literal = self.pattern.literal
        if literal is not None and not self.pattern.ignore_case:
            return [index for index, text in enumerate(texts) if literal in text]
        if not texts:
            return []
        payload = "\n".join(texts).encode("utf-8", "surrogatepass")
        _, answer = await self._ask({"do": "filter"}, payload)
        return array("I", answer).tolist()

    async def scan(self, file: int, begin: int, end: int, most: int) -> tuple[list[Found], int]:
        """The lines that begin in ``[begin, end)`` of an opened file and match, at most `most`, and how far was looked.

        Raises:
            InvalidInputError: The pattern takes too long.
        """
        answer, _ = await self._ask(
            {"do": "scan", "begin": begin, "end": end, "most": most}, b"", file
        )
        return [Found(*hit) for hit in answer["hits"]], answer["reached"]

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if self._files is not None:
            self._files.close()
            self._files = None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _ask(
        self, request: dict[str, Any], payload: bytes, file: int | None = None
    ) -> tuple[dict[str, Any], bytes]:
        async with self._turn:
            process = self._process or await self._start()
            try:
                if file is not None and self._files is not None:
                    socket.send_fds(self._files, [b"f"], [file])
                async with asyncio.timeout(self._patience):
                    return await _exchange(process, request, payload)
            except TimeoutError:
                await self.close()
                raise InvalidInputError(
                    f"the pattern '{self.pattern.text[:60]}' takes too long",
                    code="slow_pattern",
                    hint="avoid nested repetitions such as (a+)+",
                    detail={"field": "grep"},
                ) from None
            except (asyncio.IncompleteReadError, ConnectionError, ValueError) as error:
                await self.close()
                raise InternalError(f"the search process has ended: {error}") from error
            except asyncio.CancelledError:
                # An answer that nobody reads would be taken for the next one's.
                await self.close()
                raise

    async def _start(self) -> asyncio.subprocess.Process:
        # The program is handed opened files: it follows no path that may lead elsewhere by then.
        files, theirs = socket.socketpair()
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", str(_PROGRAM), str(theirs.fileno())),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    limit=_LONGEST_ANSWER,
                    pass_fds=(theirs.fileno(),),
                )
            except BaseException:
                files.close()
                raise
        self._process, self._files = process, files
        assert process.stdin is not None
        process.stdin.write(json.dumps({"do": "pattern", **asdict(self.pattern)}).encode() + b"\n")
        return process


async def _exchange(
    process: asyncio.subprocess.Process, request: dict[str, Any], payload: bytes
) -> tuple[dict[str, Any], bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({**request, "size": len(payload)}).encode() + b"\n" + payload)
    await process.stdin.drain()
    line = await process.stdout.readline()
    if not line:
        raise ConnectionError("no answer")
    answer = json.loads(line)
    return answer, await process.stdout.readexactly(answer["size"])
