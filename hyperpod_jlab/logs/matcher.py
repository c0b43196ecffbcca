"""Regular expressions with a time limit: the parent's side of `match_worker`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from hyperpod_jlab.logs.pattern import Pattern
from hyperpod_jlab.model.errors import InternalError, InvalidInputError

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
