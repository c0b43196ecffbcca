"""Cursors: a position in each of the streams that a client reads, as a value and as text."""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.logs.stream import START, Position, Stream

if TYPE_CHECKING:
    from hyperpod_jlab.logs.lines import LineBlock

_VERSION = "1"
_GROUP = re.compile(
    r"([0-9a-f]{1,6})\.([0-9a-f]{1,18})((?:_(?:n|[0-9a-f]{1,6})-[0-9a-f]{1,15}-[0-9a-z]{0,40})+)"
)
_PLACE = re.compile(r"_(n|[0-9a-f]{1,6})-([0-9a-f]{1,15})-([0-9a-z]{0,40})")
_HEAD = re.compile(r"([0-9a-f]{1,6})(?:\.([0-9a-f]{8}))?")
_MAX_TEXT = 1 << 20
_GAP = "\0"


def mark_of(run_id: str) -> str:
    """How cursors name a run, or an array."""
    return f"{crc32(run_id.encode()):08x}"


class Cursor:
    """A place in each of many streams. A plain value: nothing changes it.

    Attributes:
        first_attempt: Attempts before this one are done with and not read any more.
        places: Where each stream was left; a stream that is not there is read from its start.
        run: The `mark_of` the run that it belongs to; empty when it does not say.
    """

    __slots__ = ("first_attempt", "places", "run")

    def __init__(
        self, places: Mapping[Stream, Position] | None = None, first_attempt: int = 1, run: str = ""
    ) -> None:
        self.run = run
        self.first_attempt = first_attempt
        self.places: Mapping[Stream, Position] = places or {}

    def place(self, stream: Stream) -> Position:
        """Where to go on in a stream."""
        return self.places.get(stream, START)

    def sealed(self, first_attempt: int) -> Cursor:
        """The same cursor with the attempts before this one done with, which makes its text shorter."""
        if first_attempt <= self.first_attempt:
            return self
        kept = {
            stream: place
            for stream, place in self.places.items()
            if stream.attempt >= first_attempt
        }
        return Cursor(kept, first_attempt, self.run)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cursor):
            return NotImplemented
        mine, others = (self.first_attempt, self.run), (other.first_attempt, other.run)
        return mine == others and dict(self.places) == dict(other.places)

    def __hash__(self) -> int:
        return hash((self.first_attempt, self.run, frozenset(self.places.items())))

    def __repr__(self) -> str:
        return f"Cursor({self.text()!r})"

    def text(self) -> str:
        """The cursor as URL-safe text."""
        return CursorWriter(self).text()

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read a cursor's text.

        Raises:
            InvalidInputError: It is none that this version knows.
        """
        if len(text) > _MAX_TEXT:
            _bad(text)
        version, *parts = text.split("~")
        head = _HEAD.fullmatch(parts[0]) if parts and version == _VERSION else None
        if head is None:
            _bad(text)
        places: dict[Stream, Position] = {}
        for part in parts[1:]:
            group = _GROUP.fullmatch(part)
            if group is None:
                _bad(text)
            attempt, node = int(group[1], 16), int(group[2], 16)
            for local, offset, check in _PLACE.findall(group[3]):
                stream = Stream(attempt, node, None if local == "n" else int(local, 16))
                places[stream] = Position(int(offset, 16), check)
        return cls(places, int(head[1], 16), head[2] or "")


class CursorWriter:
    """Writes the texts of cursors that follow each other: what did not change is not written anew."""

    def __init__(self, start: Cursor) -> None:
        self._first_attempt = start.first_attempt
        self._run = f".{start.run}" if start.run else ""
        self._groups: dict[tuple[int, int], dict[int, str]] = {}
        self._texts: dict[tuple[int, int], str] = {}
        for stream in sorted(start.places, key=lambda stream: stream.order):
            self.set(stream, start.places[stream])

    def set(self, stream: Stream, place: Position) -> None:
        """Move one stream's place."""
        attempt, node, local = stream.order
        if attempt < self._first_attempt:
            return
        group = self._groups.setdefault((attempt, node), {})
        group[local] = f"_{_name(local)}-{place.offset:x}-{place.check}" if place.offset else ""
        self._texts.pop((attempt, node), None)

    def around(self, stream: Stream) -> tuple[str, str]:
        """What stands before and after the offset and check of a stream in the text as of now."""
        attempt, node, local = stream.order
        group = self._groups.setdefault((attempt, node), {})
        kept = group.get(local, "")
        group[local] = f"_{_name(local)}-{_GAP}"
        self._texts.pop((attempt, node), None)
        before, after = self.text().split(_GAP)
        group[local] = kept
        self._texts.pop((attempt, node), None)
        return before, after

    def text(self) -> str:
        """The text as of now."""
        texts = self._texts
        if len(texts) != len(self._groups):
            for key in self._groups.keys() - texts.keys():
                places = "".join(self._groups[key].values())
                texts[key] = f"~{key[0]:x}.{key[1]:x}{places}" if places else ""
        return f"{_VERSION}~{self._first_attempt:x}{self._run}{''.join(_in_order(texts))}"


def _name(local: int) -> str:
    return "n" if local < 0 else f"{local:x}"


def _in_order(texts: Mapping[tuple[int, int], str]) -> Iterable[str]:
    return (texts[key] for key in sorted(texts))


def _bad(text: str) -> NoReturn:
    raise InvalidInputError(
        f"'{text[:40]}' is not a log cursor",
        code="invalid_cursor",
        hint="use an unchanged cursor from a log line or a page",
        detail={"field": "cursor"},
    )


# --------------------------------------------------------------------------------------------------
# The cursors of a batch's lines, each the text of the positions in all streams after that line.


class CursorWalk:
    """Goes through a batch's lines and tells their cursors: cheap for lines taken in order.

    It does not hold the batch itself: in a circle neither would be freed when nobody needs them any more.
    """

    def __init__(
        self,
        start: Cursor,
        blocks: Sequence[LineBlock],
        lines: Sequence[tuple[LineBlock, int | None]],
    ) -> None:
        self._start = start
        self._blocks = blocks
        self._lines = lines
        self._order = {id(block): number for number, block in enumerate(blocks)}
        self._reset()

    def _reset(self) -> None:
        self._writer = CursorWriter(self._start)
        self._passed = 0
        self._block: LineBlock | None = None
        self._around = ("", "")

    def cursor_after(self, index: int) -> str:
        """The text of the cursor after a line."""
        block, piece = self._lines[index]
        if block is not self._block:
            self._go_to(block)
        # A mark stands before its block, at the beginning of a log that began anew.
        place = block.chunk.place(block.begin if piece is None else block.ends[piece])
        if place.offset == 0:
            self._writer.set(block.origin.stream, place)
            return self._writer.text()
        before, after = self._around
        return f"{before}{place.offset:x}-{place.check}{after}"

    def _go_to(self, block: LineBlock) -> None:
        """Pass all blocks before this one: whatever they had, and did not show, is done with."""
        wanted = self._order[id(block)]
        if wanted < self._passed:
            self._reset()
        while self._passed < wanted:
            passed = self._blocks[self._passed]
            self._writer.set(passed.origin.stream, passed.after)
            self._passed += 1
        self._block = block
        self._around = self._writer.around(block.origin.stream)
