"""Cursors: a client's position in each of its streams, as a value and as text."""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.logs.stream import START_POSITION, Position, Stream

if TYPE_CHECKING:
    from hyperpod_jlab.logs.lines import LineBlock

_VERSION = "1"
_GROUP = re.compile(r"([0-9a-f]{1,6})\.([0-9a-f]{1,18})((?:_(?:n|[0-9a-f]{1,6})-[0-9a-f]{1,15}-[0-9a-z]{0,40})+)")
_POSITION = re.compile(r"_(n|[0-9a-f]{1,6})-([0-9a-f]{1,15})-([0-9a-z]{0,40})")
_HEAD = re.compile(r"([0-9a-f]{1,6})(?:\.([0-9a-f]{8}))?")
_MAX_TEXT = 1 << 20
_GAP = "\0"


def run_mark(run_id: str) -> str:
    """The run's or array's id in cursors."""
    return f"{crc32(run_id.encode()):08x}"


class Cursor:
    """A position in each of many streams. Immutable.

    Attributes:
        first_attempt: Earlier attempts are complete and are not read.
        positions: The position in each stream; a missing stream is read from its start.
        run: The `run_mark` of its run; empty when unknown.
    """

    __slots__ = ("first_attempt", "positions", "run")

    def __init__(
        self, positions: Mapping[Stream, Position] | None = None, first_attempt: int = 1, run: str = ""
    ) -> None:
        self.run = run
        self.first_attempt = first_attempt
        self.positions: Mapping[Stream, Position] = positions or {}

    def position(self, stream: Stream) -> Position:
        """The position in a stream."""
        return self.positions.get(stream, START_POSITION)

    def seal(self, first_attempt: int) -> Cursor:
        """The same cursor with earlier attempts marked as complete, which shortens its text."""
        if first_attempt <= self.first_attempt:
            return self
        positions_kept = {
            stream: position for stream, position in self.positions.items() if stream.attempt >= first_attempt
        }
        return Cursor(positions_kept, first_attempt, self.run)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cursor):
            return NotImplemented
        own_key, other_key = (self.first_attempt, self.run), (other.first_attempt, other.run)
        return own_key == other_key and dict(self.positions) == dict(other.positions)

    def __hash__(self) -> int:
        return hash((self.first_attempt, self.run, frozenset(self.positions.items())))

    def __repr__(self) -> str:
        return f"Cursor({self.text()!r})"

    def text(self) -> str:
        return CursorWriter(self).text()

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Parse a cursor's text.

        Raises:
            InvalidInputError: This version does not know the format.
        """
        if len(text) > _MAX_TEXT:
            _invalid_cursor(text)
        version, *parts = text.split("~")
        head = _HEAD.fullmatch(parts[0]) if parts and version == _VERSION else None
        if head is None:
            _invalid_cursor(text)
        positions: dict[Stream, Position] = {}
        for part in parts[1:]:
            group = _GROUP.fullmatch(part)
            if group is None:
                _invalid_cursor(text)
            attempt, node = int(group[1], 16), int(group[2], 16)
            for local, offset, check in _POSITION.findall(group[3]):
                stream = Stream(attempt, node, None if local == "n" else int(local, 16))
                positions[stream] = Position(int(offset, 16), check)
        return cls(positions, int(head[1], 16), head[2] or "")


class CursorWriter:
    """Writes the texts of consecutive cursors; unchanged parts are reused."""

    def __init__(self, start: Cursor) -> None:
        self._first_attempt = start.first_attempt
        self._run = f".{start.run}" if start.run else ""
        self._groups: dict[tuple[int, int], dict[int, str]] = {}
        self._encoded: dict[tuple[int, int], str] = {}
        for stream in sorted(start.positions, key=lambda stream: stream.sort_key):
            self.set(stream, start.positions[stream])

    def set(self, stream: Stream, position: Position) -> None:
        """Update one stream's position."""
        attempt, node, local = stream.sort_key
        if attempt < self._first_attempt:
            return
        group = self._groups.setdefault((attempt, node), {})
        group[local] = f"_{_name(local)}-{position.offset:x}-{position.check}" if position.offset else ""
        self._encoded.pop((attempt, node), None)

    def around(self, stream: Stream) -> tuple[str, str]:
        """The current text before and after a stream's offset and check."""
        attempt, node, local = stream.sort_key
        group = self._groups.setdefault((attempt, node), {})
        positions_kept = group.get(local, "")
        group[local] = f"_{_name(local)}-{_GAP}"
        self._encoded.pop((attempt, node), None)
        prefix, suffix = self.text().split(_GAP)
        group[local] = positions_kept
        self._encoded.pop((attempt, node), None)
        return prefix, suffix

    def text(self) -> str:
        """The current text."""
        texts = self._encoded
        if len(texts) != len(self._groups):
            for key in self._groups.keys() - texts.keys():
                positions = "".join(self._groups[key].values())
                texts[key] = f"~{key[0]:x}.{key[1]:x}{positions}" if positions else ""
        return f"{_VERSION}~{self._first_attempt:x}{self._run}{''.join(_ordered(texts))}"


def _name(local: int) -> str:
    return "n" if local < 0 else f"{local:x}"


def _ordered(texts: Mapping[tuple[int, int], str]) -> Iterable[str]:
    return (texts[key] for key in sorted(texts))


def _invalid_cursor(text: str) -> NoReturn:
    raise InvalidInputError(
        f"'{text[:40]}' is not a log cursor",
        code="invalid_cursor",
        hint="use an unchanged cursor from a log line or a page",
        detail={"field": "cursor"},
    )


# --------------------------------------------------------------------------------------------------
# The cursors of a batch's lines, each the text of all positions after that line.


class CursorWalk:
    """Iterates over a batch's lines and returns their cursors; cheap for lines taken in order.

    It keeps no reference to the batch: a reference cycle would delay freeing both.
    """

    def __init__(
        self, start: Cursor, blocks: Sequence[LineBlock], lines: Sequence[tuple[LineBlock, int | None]]
    ) -> None:
        self._start = start
        self._blocks = blocks
        self._lines = lines
        self._order = {id(block): number for number, block in enumerate(blocks)}
        self._reset()

    def _reset(self) -> None:
        self._writer = CursorWriter(self._start)
        self._block_index = 0
        self._block: LineBlock | None = None
        self._around = ("", "")

    def cursor_after(self, index: int) -> str:
        """The text of the cursor after a line."""
        block, segment = self._lines[index]
        if block is not self._block:
            self._advance_to(block)
        # A mark precedes its block, at the start of a log that restarted.
        position = block.chunk.position_at(block.begin if segment is None else block.ends[segment])
        if position.offset == 0:
            self._writer.set(block.origin.stream, position)
            return self._writer.text()
        prefix, suffix = self._around
        return f"{prefix}{position.offset:x}-{position.check}{suffix}"

    def _advance_to(self, block: LineBlock) -> None:
        """Skip all blocks before this one: their lines, even hidden ones, are done."""
        target_index = self._order[id(block)]
        if target_index < self._block_index:
            self._reset()
        while self._block_index < target_index:
            block_passed = self._blocks[self._block_index]
            self._writer.set(block_passed.origin.stream, block_passed.end_position)
            self._block_index += 1
        self._block = block
        self._around = self._writer.around(block.origin.stream)
