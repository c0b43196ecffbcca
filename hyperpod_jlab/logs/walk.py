"""The cursors of a batch's lines, each the text of the places in all streams after that line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hyperpod_jlab.logs.cursor import Cursor, CursorWriter

if TYPE_CHECKING:
    from hyperpod_jlab.logs.block import LineBlock


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
