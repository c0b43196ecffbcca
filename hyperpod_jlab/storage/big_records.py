"""Large records: read line by line, for a limited time, a few at once, and only while their reader waits.

A run can write records of any size and shape, and on a shared partition it may be another user's. So limits of bytes are not enough: what is
read must also end.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from hyperpod_jlab.core.errors import HyperpodError

T = TypeVar("T")

BUDGET_S = 10.0
"""Seconds for the large records of one answer."""

AT_ONCE = 2
"""Answers of one process for which large records are read at the same time. The others wait."""

_BLOCK_BYTES = 1 << 20
_MOST_CONTAINERS = 1_000_000


class TooSlowError(HyperpodError):
    """Records that cannot be read in the time that there is for them."""

    default_code = "too_slow"
    exit_code = 2
    status = 503

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"reading the records of {run_id} takes longer than {BUDGET_S:g} s",
            hint="try again: a server continues where it stopped",
            detail={"run_id": run_id},
        )


class Deadline:
    """When reading must end: after some seconds, or as soon as its reader has gone."""

    def __init__(self, seconds: float = BUDGET_S) -> None:
        self._end = time.monotonic() + seconds

    def is_over(self) -> bool:
        """Whether to stop."""
        return time.monotonic() >= self._end

    def stop(self) -> None:
        """The reader has gone: stop at the next check."""
        self._end = float("-inf")


class BigReads:
    """Runs work on large records in threads, at most `AT_ONCE` at a time. Belongs to one event loop."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE)

    async def run(self, work: Callable[[Deadline], T]) -> T:
        """The result of `work`, which blocks and looks at its deadline. If this call is cancelled, so is the work."""
        async with self._places:
            deadline = Deadline()
            reading = asyncio.get_running_loop().run_in_executor(None, work, deadline)
            try:
                return await asyncio.shield(reading)
            except asyncio.CancelledError:
                deadline.stop()
                # The place is free only when the thread is.
                await asyncio.wait([reading])
                raise


def read_lines(
    descriptor: int, begin: int, end: int, deadline: Deadline, *, longest: int
) -> Iterator[tuple[bytes, int]]:
    """The whole lines of a file in a range of offsets, until the deadline. May block.

    Each comes without its newline and with the offset after it, from which reading can continue. Instead of a hole in the file, and of a line of more
    than `longest` bytes, there are empty lines.

    Raises:
        OSError: The file cannot be read.
    """
    position, rest, is_cut = begin, b"", False
    while position < end and not deadline.is_over():
        after_hole = find_data(descriptor, position, end)
        if after_hole > position:
            position, rest, is_cut = after_hole, b"", True
            yield b"", position
            continue
        data = os.pread(descriptor, min(_BLOCK_BYTES, end - position), position)
        if not data:
            return
        offset = position - len(rest)
        position += len(data)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            offset += len(line) + 1
            yield (b"" if is_cut or len(line) > longest else line), offset
            is_cut = False
            if deadline.is_over():
                return
        if is_cut or len(rest) > longest:
            rest, is_cut = b"", True
            yield b"", position


def parse_object(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line; None for anything else, and for one whose size in memory would be many times its length."""
    if is_too_complex(line):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_too_complex(data: bytes) -> bool:
    """Whether JSON has more lists and objects than any record: each takes some bytes there, and a hundred in memory."""
    return data.count(b"[") + data.count(b"{") > _MOST_CONTAINERS


def find_data(descriptor: int, position: int, end: int) -> int:
    """Where the next bytes are that were written to a file; `end` if there are none before it. A hole takes no space, however long it is."""
    try:
        return min(os.lseek(descriptor, position, os.SEEK_DATA), end)
    except OSError as error:
        # Only a hole follows; or the file system does not know its holes.
        return end if error.errno == errno.ENXIO else position
