"""The program that runs regular expressions, in a process of its own.

Python cannot interrupt a match and runs nothing else meanwhile, so one unlucky pattern would freeze a whole server. This
program is started with ``python -I -S``, uses the standard library only, and is killed when it takes too long. It reads frames from
its standard input and answers each with one: a line of JSON that has the length of the bytes after it in ``size``. The file of a ``scan`` comes opened, through
the socket whose number is the only argument.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import warnings
from array import array
from collections.abc import Iterator
from typing import Any, BinaryIO

_CHUNK = 4 << 20
_LONGEST_LINE = 8 << 20
_SAMPLE = 64 << 10
_RARE = 256
"""Bytes. A text that comes less often than once in so many is worth looking for first."""

_REPEATED_HEAD = re.compile(r"(\[[^\\\]^][^\\\]]*\])(?:\+|\{([0-9]{1,4})\})(?![+?*{])")

Span = tuple[int, int]


class Finder:
    """Finds lines that match, the cheapest way first."""

    def __init__(self, given: dict[str, Any]) -> None:
        flags = re.IGNORECASE if given["ignore_case"] else 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.regex = re.compile(given["text"], flags)
            # Where many lines are searched at once, ^ and $ are those of each line.
            self.regex_lines = re.compile(_split_head(given["text"]), flags | re.MULTILINE)
        self.ignore_case: bool = given["ignore_case"]
        self.literal: bool = given["literal"] is not None
        self.in_line: bool = given["in_line"]
        required = given["required"]
        self.required: bytes | None = required.encode() if required else None
        if self.ignore_case and self.required is not None:
            self.required = self.required.lower() if required.isascii() else None

    def filter(self, texts: list[str]) -> list[int]:
        """The indices of the texts that match."""
        search = self.regex.search
        return [index for index, text in enumerate(texts) if search(text)]

    def lines(self, data: bytes) -> Iterator[Span]:
        """Begin and end of the lines in `data` that match, newlines not counted."""
        ascii_only = data.isascii()
        at_once = self.in_line and ascii_only
        if self.required is not None and (ascii_only or not self.ignore_case):
            hay = data.lower() if self.ignore_case else data
            # What is in every other line tells nothing, and lines taken singly cost more than all at once.
            if (
                self.literal
                or not at_once
                or hay.count(self.required, 0, _SAMPLE) < _SAMPLE // _RARE
            ):
                return self._with_required(data, hay, self.required)
        return self._at_once(data) if at_once else self._one_by_one(data)

    def _with_required(self, data: bytes, hay: bytes, required: bytes) -> Iterator[Span]:
        at = 0
        while (found := hay.find(required, at)) >= 0:
            begin, end = data.rfind(b"\n", 0, found) + 1, data.find(b"\n", found)
            end = len(data) if end < 0 else end
            if self.literal or self.regex.search(_text(data[begin:end])):
                yield begin, end
            at = end + 1

    def _at_once(self, data: bytes) -> Iterator[Span]:
        text = data.decode("ascii")
        at = 0
        while at < len(text) and (match := self.regex_lines.search(text, at)) is not None:
            begin, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.start())
            end = len(text) if end < 0 else end
            if begin == len(text):
                return
            yield begin, end
            at = end + 1

    def _one_by_one(self, data: bytes) -> Iterator[Span]:
        search = self.regex.search
        at = 0
        while at < len(data):
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            if search(_text(data[at:end])):
                yield at, end
            at = end + 1


def _split_head(text: str) -> str:
    """The same expression with ``[a-z]+`` at its beginning as ``[a-z][a-z]*``, and likewise for ``{n}``.

    Python looks for a first character twice as fast when nothing says how often it comes.
    """
    match = _REPEATED_HEAD.match(text)
    if match is None or match[2] == "0":
        return text
    more = "*" if match[2] is None else f"{{{int(match[2]) - 1}}}"
    return f"{match[1]}{match[1]}{more}{text[match.end() :]}"


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def scan(finder: Finder, fd: int, begin: int, end: int, most: int) -> dict[str, Any]:
    """The matching lines that begin in ``[begin, end)`` of an opened file, which is closed, at most so many, and how far was looked."""
    hits: list[list[int]] = []
    try:
        at = _line_start(fd, begin)
        while at < end:
            data = _whole_lines(fd, at, min(_CHUNK, end - at))
            if not data:
                break
            for first, last in finder.lines(data):
                if at + first >= end:
                    break
                hits.append([at + first, at + last, *_match(finder, data, first, last)])
                if len(hits) == most:
                    return {"hits": hits, "reached": at + last + 1}
            at += len(data)
        return {"hits": hits, "reached": max(at, end)}
    finally:
        os.close(fd)


def _match(finder: Finder, data: bytes, first: int, last: int) -> Span:
    """Where the match lies in its line, in bytes from the line's beginning."""
    line = data[first:last]
    text = _text(line)
    match = finder.regex.search(text)
    if match is None:
        return 0, 0
    if line.isascii():
        return match.span()
    # Replacement characters differ in length from what they stand for; near is good enough there.
    return len(text[: match.start()].encode()), len(text[: match.end()].encode())


def _line_start(fd: int, begin: int) -> int:
    """The first line start at or after an offset."""
    at = begin - 1
    while at >= 0:
        data = os.pread(fd, 64 << 10, at)
        newline = data.find(b"\n")
        if newline >= 0:
            return at + newline + 1
        if not data:
            return at
        at += len(data)
    return 0


def _whole_lines(fd: int, at: int, size: int) -> bytes:
    """At least `size` bytes from a line start on, up to a line's end; a line of many MiB is cut."""
    data = os.pread(fd, size, at)
    while data and not data.endswith(b"\n"):
        newline = data.rfind(b"\n")
        if newline >= 0 and len(data) >= _CHUNK:
            return data[: newline + 1]
        if len(data) >= _LONGEST_LINE:
            return data
        more = os.pread(fd, _CHUNK, at + len(data))
        if not more:
            return data
        cut = more.find(b"\n")
        data += more if cut < 0 else more[: cut + 1]
    return data


def _next_file(files: socket.socket) -> int:
    """The file that was sent for a request."""
    _, descriptors, _, _ = socket.recv_fds(files, 1, 1)
    if not descriptors:
        raise OSError("no file came")
    return descriptors[0]


def _serve(requests: BinaryIO, answers: BinaryIO, files: socket.socket) -> None:
    finder: Finder | None = None
    while line := requests.readline():
        given = json.loads(line)
        payload = b""
        if given["do"] == "pattern":
            finder = Finder(given)
            continue
        if finder is None:
            return
        if given["do"] == "filter":
            texts = requests.read(given["size"]).decode("utf-8", "surrogatepass").split("\n")
            answer: dict[str, Any] = {}
            payload = array("I", finder.filter(texts)).tobytes()
        else:
            try:
                answer = scan(
                    finder, _next_file(files), given["begin"], given["end"], given["most"]
                )
            except OSError as error:
                answer = {"hits": [], "reached": given["end"], "error": str(error)}
        answer["size"] = len(payload)
        answers.write(json.dumps(answer).encode() + b"\n" + payload)
        answers.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer, socket.socket(fileno=int(sys.argv[1])))
