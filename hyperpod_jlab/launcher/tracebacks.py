"""What a rank failed with, as its log tells it."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Sequence

ERROR_WINDOW = 64 * 1024

TRACEBACK = re.compile(r"^(?:  [+] Exception Group )?Traceback \(most recent call last\):\s*$")
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
    lines = data.decode("utf-8", "surrogateescape").split("\n")
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
    said = _exception_after(lines, start)
    first = _first_of_chain(lines, start)
    before = "\n".join(lines[:first]).encode("utf-8", "surrogateescape")
    frames = [match for match in map(FRAME.match, lines[start : said.end]) if match]
    # The innermost frame in a cell tells a notebook's user more than one in a library.
    cells = [(CELL.search(frame.group(1)), frame) for frame in frames]
    in_cell = next(((found, frame) for found, frame in reversed(cells) if found), None)
    return LoggedError(
        offset=base + len(before) + (1 if first else 0),
        type=said.type,
        message=_plain(said.message)[:4000],
        traceback=_plain("\n".join(lines[first : said.end]))[-16384:],
        file=(in_cell[1] if in_cell else frames[-1]).group(1) if frames else None,
        cell=int(in_cell[0].group(1)) if in_cell else None,
        line=int(in_cell[1].group(2)) if in_cell else None,
        ends_log=not any(line.strip() for line in lines[said.begin + 1 :]),
    )


def _plain(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class Said(NamedTuple):
    """The words after a traceback: type, message, the line that they begin in, and the line after them."""

    type: str
    message: str
    begin: int
    end: int


def _exception_after(lines: Sequence[str], start: int) -> Said:
    """The exception whose traceback begins at `start`."""
    fatal = FATAL.match(lines[start])
    begin = start + 1
    if fatal:
        end = _end_of_paragraph(lines, begin)
        return Said(fatal.group(1), fatal.group(2), end - 1, end)
    while begin < len(lines) and not EXCEPTION.match(lines[begin]):
        if lines[begin].strip() and not lines[begin].startswith(" "):
            return Said("Traceback", lines[begin].strip(), begin, begin + 1)
        begin += 1
    if begin == len(lines):
        return Said("Traceback", "", begin, begin)
    found = EXCEPTION.match(lines[begin].rstrip("\r"))
    name, first = found.group("type", "message") if found else ("Traceback", "")
    is_group = lines[begin].startswith(" ")
    end = begin + 1 if is_group else _end_of_paragraph(lines, begin + 1)
    return Said(name, "\n".join([first or "", *lines[begin + 1 : end]]).strip(), begin, end)


def _end_of_paragraph(lines: Sequence[str], start: int) -> int:
    """The next blank line, but no further than a message may go on."""
    end = start
    while end < min(len(lines), start + 50) and lines[end].strip():
        end += 1
    return end


def _first_of_chain(lines: Sequence[str], start: int) -> int:
    """Where the chain of exceptions begins that ends with the traceback at `start`."""
    first = start
    while True:
        at = first - 1
        while at >= 0 and not lines[at].strip():
            at -= 1
        if at < 0 or lines[at].strip() not in CHAINED:
            return first
        while at >= 0 and not TRACEBACK.match(lines[at]):
            at -= 1
        if at < 0:
            return first
        first = at
