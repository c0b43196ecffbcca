"""Blocks and batches of lines, which become objects only on demand.

A block is a range of one stream; a batch is several blocks in display order, together with the
cursor before them. To pass text on, use `LineBlock.texts`; iterating a batch creates one `LogLine`
per piece.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from hyperpod_jlab.core.wire import iso_time
from hyperpod_jlab.logs.cursor import Cursor, CursorWalk
from hyperpod_jlab.logs.source import Chunk, Mark, MarkKind, Origin
from hyperpod_jlab.logs.stream import Position

# --------------------------------------------------------------------------------------------------
# From bytes to lines: where pieces end, and their text.
#
# A piece is what is shown as one line: a whole line, or a part of one. A line longer than
# `MAX_LINE_BYTES` is cut into several pieces, and an unfinished line may be shown in part.
# Everything works on offsets in a buffer, so that passing text on never creates an object per line.

MAX_LINE_BYTES = 16 * 1024
"""Maximum bytes of a line in one piece, without its newline."""


def last_complete(data: bytes, begin: int, end: int) -> int:
    """The end of the pieces in ``data[begin:end]`` that later bytes cannot change."""
    newline = data.rfind(b"\n", begin, end)
    position = begin if newline < 0 else newline + 1
    while end - position > MAX_LINE_BYTES:
        position = character_boundary(data, position, position + MAX_LINE_BYTES)
    return position


def find_segment_ends(data: bytes, begin: int, end: int) -> list[int]:
    """The ends of the pieces in ``data[begin:end]``, including newlines; the last one is `end`."""
    ends: list[int] = []
    find, append = data.find, ends.append
    position = begin
    while position < end:
        newline = find(b"\n", position, end)
        stop = end if newline < 0 else newline
        while stop - position > MAX_LINE_BYTES:
            position = character_boundary(data, position, position + MAX_LINE_BYTES)
            append(position)
        position = end if newline < 0 else newline + 1
        append(position)
    return ends


def character_boundary(data: bytes, begin: int, end: int) -> int:
    """The last index up to `end` that does not split a UTF-8 character (or `end`, when the bytes are not UTF-8)."""
    for offset in range(1, min(4, end - begin + 1)):
        byte = data[end - offset]
        if byte < 0x80:
            return end
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return end if length <= offset else end - offset
    return end


def texts(data: bytes, begin: int, end: int, *, collapse: bool) -> list[str]:
    """The pieces of ``data[begin:end]`` as text, without newlines; invalid UTF-8 becomes U+FFFD.

    Args:
        data: The buffer.
        begin: The start of the first piece.
        end: The end of the last piece.
        collapse: Show only the last state of a progress bar, which uses carriage returns.
    """
    if begin >= end:
        return []
    stop = end - 1 if data[end - 1] == 0x0A else end
    body = data[begin:stop]
    if len(body) > MAX_LINE_BYTES and max(map(len, body.split(b"\n"))) > MAX_LINE_BYTES:
        line_parts = []
        position = begin
        for segment_end in find_segment_ends(data, begin, end):
            last = segment_end - 1 if data[segment_end - 1] == 0x0A else segment_end
            line_parts.append(data[position:last].decode("utf-8", "replace"))
            position = segment_end
    else:
        line_parts = body.decode("utf-8", "replace").split("\n")
    if collapse and b"\r" in body:
        line_parts = [final_text(text) if "\r" in text else text for text in line_parts]
    return line_parts


def final_text(text: str) -> str:
    """The final text of a line with carriage returns."""
    stripped = text.rstrip("\r")
    return stripped[stripped.rfind("\r") + 1 :]


_NEWLINE = 0x0A


class LineBlock:
    """Consecutive pieces of one stream.

    Attributes:
        origin: Their origin.
        chunk: The chunk that contains them.
        begin: Their start in the chunk.
        end: Their end, where reading continues.
        mark: An event before them, if any.
        collapse: Whether text shows only the last state of a progress bar.
        selected: Indices of the pieces that passed a filter; None for all.
    """

    def __init__(
        self,
        origin: Origin,
        chunk: Chunk,
        begin: int,
        end: int,
        *,
        mark: Mark | None = None,
        collapse: bool = True,
        selected: Sequence[int] | None = None,
    ) -> None:
        self.origin = origin
        self.chunk = chunk
        self.begin = begin
        self.end = end
        self.mark = mark
        self.collapse = collapse
        self.selected = selected

    @property
    def size(self) -> int:
        """Size of the block in bytes."""
        return self.end - self.begin

    @property
    def end_position(self) -> Position:
        """The stream's position after the block."""
        return self.chunk.position_at(self.end)

    @property
    def time(self) -> float | None:
        """The time of the block's first byte in Unix seconds, or None when unknown."""
        return self.chunk.time_at(self.begin)

    @cached_property
    def first(self) -> int:
        """The start of the first piece: after a newline that only ends an earlier shown line."""
        data, begin = self.chunk.data, self.begin
        if begin >= self.end or self._opens_line:
            return begin
        if data[begin] == _NEWLINE:
            return begin + 1
        return begin + 2 if data[begin : min(begin + 2, self.end)] == b"\r\n" else begin

    @cached_property
    def ends(self) -> list[int]:
        """The end of each piece in the chunk, including its newline."""
        return find_segment_ends(self.chunk.data, self.first, self.end)

    @cached_property
    def _texts(self) -> list[str]:
        return texts(self.chunk.data, self.first, self.end, collapse=self.collapse)

    @property
    def _opens_line(self) -> bool:
        if self.begin == 0:
            return self.chunk.opens_line
        return self.chunk.data[self.begin - 1] == _NEWLINE

    @property
    def empty(self) -> bool:
        """Whether the block shows nothing."""
        return self.mark is None and (not self.selected if self.selected is not None else self.first >= self.end)

    def select_segments(self, selected: Sequence[int]) -> LineBlock:
        """The same block with only these pieces shown."""
        selected_block = LineBlock(
            self.origin, self.chunk, self.begin, self.end, mark=self.mark, collapse=self.collapse, selected=selected
        )
        selected_block.__dict__["_texts"] = self._texts
        return selected_block

    def cut_after_segment(self, segment: int | None) -> LineBlock:
        """The block up to and including a piece; only its mark when that is None."""
        end = self.begin if segment is None else self.ends[segment]
        selected = (
            None if self.selected is None or segment is None else [index for index in self.selected if index <= segment]
        )
        return LineBlock(
            self.origin, self.chunk, self.begin, end, mark=self.mark, collapse=self.collapse, selected=selected
        )

    def with_mark(self, mark: Mark | None) -> LineBlock:
        """The same block with another mark, or none, before it."""
        return LineBlock(
            self.origin, self.chunk, self.begin, self.end, mark=mark, collapse=self.collapse, selected=self.selected
        )

    def texts(self) -> list[str]:
        """The pieces' texts, without newlines."""
        return self._texts if self.selected is None else [self._texts[index] for index in self.selected]

    def times(self) -> list[float | None]:
        """The times of the pieces' first bytes, in Unix seconds."""
        stamps = self.chunk.stamps
        if len(stamps) <= 1:
            return [self.time] * len(self.texts())
        begins = [begin for begin, _ in stamps]
        return [
            stamps[position - 1][1] if (position := bisect_right(begins, self._begin_of(index))) else None
            for index in self.indices()
        ]

    def continued(self, index: int) -> bool:
        """Whether an earlier part of the piece's line was already shown."""
        begin = self._begin_of(index)
        if index == 0 and self.first == self.begin:
            return not self._opens_line
        return self.chunk.data[begin - 1] != _NEWLINE

    def partial(self, index: int) -> bool:
        """Whether the piece does not end its line."""
        return self.chunk.data[self.ends[index] - 1] != _NEWLINE

    def redraws(self, index: int) -> bool:
        """Whether the piece returns to the line's start and replaces what was shown."""
        if not self.continued(index):
            return False
        begin = self._begin_of(index)
        preceding = self.chunk.data[begin - 1 : begin] if begin else self.chunk.preceding[-1:]
        return preceding == b"\r" or b"\r" in self.chunk.data[begin : self.ends[index]].rstrip(b"\r\n")

    def indices(self) -> Sequence[int]:
        """The shown pieces."""
        return range(len(self.ends)) if self.selected is None else self.selected

    def _begin_of(self, index: int) -> int:
        return self.first if index == 0 else self.ends[index - 1]


class LogLine:
    """One piece of a log, or a mark.

    Attributes:
        line: The text, without its newline; for a mark, its message.
        time: The time of its first byte in Unix seconds, or None when unknown.
    """

    __slots__ = ("_batch", "_block", "_index", "_segment", "line", "time")

    def __init__(
        self, batch: LogBatch, index: int, block: LineBlock, segment: int | None, time: float | None, line: str
    ) -> None:
        self._batch = batch
        self._index = index
        self._block = block
        self._segment = segment
        self.time = time
        self.line = line

    @property
    def attempt(self) -> int:
        """The attempt's number, from 1."""
        return self._block.origin.stream.without_child.attempt

    @property
    def index(self) -> int | None:
        """The child's index in an array's log; None in a run's own log."""
        return self._block.origin.stream.child

    @property
    def node_rank(self) -> int:
        """The node's rank."""
        return self._block.origin.stream.without_child.node_rank

    @property
    def node(self) -> str:
        """The node's name, or ``node-R`` while it is unknown."""
        return self._block.origin.node or f"node-{self.node_rank}"

    @property
    def rank(self) -> int | None:
        """The global rank; None for a node's own log."""
        return self._block.origin.rank

    @property
    def mark(self) -> MarkKind | None:
        """The kind of mark, or None for text."""
        mark = self._block.mark
        return mark.kind if mark is not None and self._segment is None else None

    @property
    def continued(self) -> bool:
        """It continues a line whose earlier part was returned before."""
        return self._segment is not None and self._block.continued(self._segment)

    @property
    def partial(self) -> bool:
        """Its line continues in a later piece, or is not finished yet."""
        return self._segment is not None and self._block.partial(self._segment)

    @property
    def redraws(self) -> bool:
        """It replaces the shown part of its line (a progress bar)."""
        return self._segment is not None and self._block.redraws(self._segment)

    @property
    def cursor(self) -> str:
        """The cursor after this line, for all requested streams."""
        return self._batch.cursor_after(self._index)

    def __str__(self) -> str:
        """The line after its rank, ``3|text`` (`Stream.prefix`); a mark is between dashes."""
        if self.mark == "attempt":
            return f"--- {self.line} ---"
        prefix = self._block.origin.stream.prefix(self.rank)
        return f"{prefix}--- {self.line} ---" if self.mark else f"{prefix}{self.line}"

    def __repr__(self) -> str:
        return f"LogLine(attempt={self.attempt}, node={self.node!r}, rank={self.rank}, line={self.line[:60]!r}, mark={self.mark})"


class LogBatch(Sequence[LogLine]):
    """Lines in display order.

    A batch may contain no shown line and still advance the cursor past filtered lines.
    """

    def __init__(self, start: Cursor, blocks: Sequence[LineBlock]) -> None:
        self.start = start
        self.blocks = blocks

    @cached_property
    def end_position(self) -> Cursor:
        """The cursor after the whole batch."""
        positions = dict(self.start.positions)
        for block in self.blocks:
            positions[block.origin.stream] = block.end_position
        return Cursor(positions, self.start.first_attempt, self.start.run)

    @property
    def empty(self) -> bool:
        """Whether the batch shows nothing and only advances the cursor. Cheap."""
        return all(block.empty for block in self.blocks)

    def split_at_marks(self) -> Iterator[LogBatch]:
        """The batch in parts, each with at most one mark, before its first block."""
        start, blocks_held = self.start, list[LineBlock]()
        for block in self.blocks:
            if block.mark is not None and blocks_held:
                part = LogBatch(start, blocks_held)
                yield part
                start, blocks_held = part.end_position, []
            blocks_held.append(block)
        yield LogBatch(start, blocks_held)

    def head(self, count: int) -> LogBatch:
        """The first `count` lines; ends right after the last of them."""
        if count >= len(self):
            return self
        blocks: list[LineBlock] = []
        last: int | None = None
        for block, segment in self._lines[:count]:
            if not blocks or blocks[-1] is not block:
                blocks.append(block)
            last = segment
        if blocks:
            blocks[-1] = blocks[-1].cut_after_segment(last)
        return LogBatch(self.start, blocks)

    @cached_property
    def _lines(self) -> list[tuple[LineBlock, int | None]]:
        """For each line its block and the piece's index in it, which is None for the block's mark."""
        lines: list[tuple[LineBlock, int | None]] = []
        for block in self.blocks:
            if block.mark is not None:
                lines.append((block, None))
            lines.extend((block, index) for index in block.indices())
        return lines

    @cached_property
    def _walk(self) -> CursorWalk:
        return CursorWalk(self.start, self.blocks, self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> LogLine: ...
    @overload
    def __getitem__(self, index: slice) -> list[LogLine]: ...
    def __getitem__(self, index: int | slice) -> LogLine | list[LogLine]:
        if isinstance(index, slice):
            return [self[position_index] for position_index in range(*index.indices(len(self)))]
        position = index if index >= 0 else len(self) + index
        block, segment = self._lines[position]
        if segment is None:
            return self._mark_line(position, block)
        segment_index = segment if block.selected is None else block.selected.index(segment)
        return LogLine(self, position, block, segment, block.times()[segment_index], block.texts()[segment_index])

    def __iter__(self) -> Iterator[LogLine]:
        position = 0
        for block in self.blocks:
            if block.mark is not None:
                yield self._mark_line(position, block)
                position += 1
            for segment, text, time in zip(block.indices(), block.texts(), block.times(), strict=True):
                yield LogLine(self, position, block, segment, time, text)
                position += 1

    def cursor_after(self, index: int) -> str:
        """The text of the cursor after a line."""
        return self._walk.cursor_after(index)

    def _mark_line(self, position: int, block: LineBlock) -> LogLine:
        return LogLine(self, position, block, None, block.time, block.mark.text if block.mark else "")


# --------------------------------------------------------------------------------------------------
# A log line for scripts: one JSON object. As text it is ``str(line)``.


def line_object(line: LogLine) -> dict[str, Any]:
    """The line as plain data: ``{attempt, node, rank, time, line, cursor}``.

    A mark has another key, ``mark``, with its kind; `line` is then its message. A line of an
    array's log has the child's ``index``. In a line of several pieces, all but the last have
    ``partial``, all but the first ``continued``.
    """
    fields: dict[str, Any] = {
        "attempt": line.attempt,
        "node": line.node,
        "rank": line.rank,
        "time": iso_time(line.time),
        "line": line.line,
        "cursor": line.cursor,
    }
    if line.index is not None:
        fields["index"] = line.index
    if line.continued:
        fields["continued"] = True
    if line.partial:
        fields["partial"] = True
    if line.mark is not None:
        fields["mark"] = line.mark
    return fields


def json_line(line: LogLine) -> str:
    """The line as one line of JSON."""
    return json.dumps(line_object(line))
