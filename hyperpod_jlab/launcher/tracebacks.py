"""What a rank failed with, as its log tells it."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Sequence

ERROR_WINDOW = 64 * 1024

TRACEBACK = re.compile(r"^(?:  [+] Exception Group )?Traceback \(most recent call last\):\s*$")
RANK_PREFIX = re.compile(r"^\[rank[0-9]+\]: ?")
"""What torch puts before each line of a traceback once the rank is in a process group."""
FATAL = re.compile(r"^(Fatal Python error): (.*)$")
EXCEPTION = re.compile(r"^(?:  \| )?(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?\r?$")
CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
FRAME = re.compile(r'^\s+(?:\|\s+)?File "(.*)", line (\d+)')
CELL = re.compile(r"[/\\]code[/\\].*[/\\]cell-(\d+)\.py$")


class LoggedError(NamedTuple):
    """The last exception in a rank's log; `ends_log` when nothing at all comes after it."""

    offset: int
    type: str
    message: str
    traceback: str
    file: Optional[str]
    cell: Optional[int]
    line: Optional[int]
    ends_log: bool


def last_error(data: bytes, base: int) -> Optional[LoggedError]:
    """Find the last traceback (or the last word of Python's fault handler) in the last bytes of a log.

    Args:
        data: The bytes.
        base: Offset of the first of them in the log.
    """
    raw_lines = data.decode("utf-8", "surrogateescape").split("\n")
    lines = [RANK_PREFIX.sub("", line) for line in raw_lines]
    start = next(
        (
            number
            for number in range(len(lines) - 1, -1, -1)
            if TRACEBACK.match(lines[number]) or FATAL.match(lines[number])
        ),
        None,
    )
    if start is None:
        return None
    exception_text = _exception_after(lines, start)
    first = _chain_start(lines, start)
    preceding = "\n".join(raw_lines[:first]).encode("utf-8", "surrogateescape")
    frames = [match for match in map(FRAME.match, lines[start : exception_text.end]) if match]
    # The innermost frame in a cell tells a notebook's user more than one in a library.
    cells = [(CELL.search(frame.group(1)), frame) for frame in frames]
    cell_frame = next(((is_cell, frame) for is_cell, frame in reversed(cells) if is_cell), None)
    return LoggedError(
        offset=base + len(preceding) + (1 if first else 0),
        type=exception_text.type,
        message=_strip_ansi(exception_text.message)[:4000],
        traceback=_strip_ansi("\n".join(lines[first : exception_text.end]))[-16384:],
        file=(cell_frame[1] if cell_frame else frames[-1]).group(1) if frames else None,
        cell=int(cell_frame[0].group(1)) if cell_frame else None,
        line=int(cell_frame[1].group(2)) if cell_frame else None,
        ends_log=not any(line.strip() for line in lines[exception_text.start_line + 1 :]),
    )


def _strip_ansi(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class ExceptionText(NamedTuple):
    """The words after a traceback: type, message, the line that they begin in, and the line after them."""

    type: str
    message: str
    start_line: int
    end: int


def _exception_after(lines: Sequence[str], start: int) -> ExceptionText:
    """The exception whose traceback begins at `start`."""
    fatal = FATAL.match(lines[start])
    start_line = start + 1
    if fatal:
        end = _paragraph_end(lines, start_line)
        return ExceptionText(fatal.group(1), fatal.group(2), end - 1, end)
    while start_line < len(lines) and not EXCEPTION.match(lines[start_line]):
        if lines[start_line].strip() and not lines[start_line].startswith(" "):
            return ExceptionText("Traceback", lines[start_line].strip(), start_line, start_line + 1)
        start_line += 1
    if start_line == len(lines):
        return ExceptionText("Traceback", "", start_line, start_line)
    match = EXCEPTION.match(lines[start_line].rstrip("\r"))
    name, first = match.group("type", "message") if match else ("Traceback", "")
    is_group = lines[start_line].startswith(" ")
    end = start_line + 1 if is_group else _paragraph_end(lines, start_line + 1)
    return ExceptionText(name, "\n".join([first or "", *lines[start_line + 1 : end]]).strip(), start_line, end)


def _paragraph_end(lines: Sequence[str], start: int) -> int:
    """The next blank line, but no further than a message may go on."""
    end = start
    while end < min(len(lines), start + 50) and lines[end].strip():
        end += 1
    return end


def _chain_start(lines: Sequence[str], start: int) -> int:
    """Where the chain of exceptions begins that ends with the traceback at `start`."""
    first = start
    while True:
        index = first - 1
        while index >= 0 and not lines[index].strip():
            index -= 1
        if index < 0 or lines[index].strip() not in CHAINED:
            return first
        while index >= 0 and not TRACEBACK.match(lines[index]):
            index -= 1
        if index < 0:
            return first
        first = index
