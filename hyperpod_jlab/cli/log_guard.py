"""Log lines for a terminal: of what a job wrote only text and colours get there. Costs next to nothing for plain text."""

from __future__ import annotations

from hyperpod_jlab.logs.block import LineBlock
from hyperpod_jlab.logs.stream import Stream
from hyperpod_jlab.model.terminal_text import Line, is_plain, styled_lines


class LogGuard:
    """Goes through the blocks of a log in the order in which they are shown."""

    def __init__(self) -> None:
        self._open: dict[Stream, Line] = {}

    def texts(self, block: LineBlock) -> list[str]:
        """The texts of a block's pieces as a terminal may show them."""
        stream, texts = block.origin.stream, block.texts()
        if not texts:
            return texts
        if stream not in self._open and is_plain(block.chunk.data[block.first : block.end]):
            return texts
        if stream not in self._open and _has_whole_lines(block):
            return styled_lines(texts)
        return [
            self._piece(block, index, text)
            for index, text in zip(block.indices(), texts, strict=True)
        ]

    def _piece(self, block: LineBlock, index: int, text: str) -> str:
        stream, last = block.origin.stream, not block.partial(index)
        line = self._open.pop(stream, None) if block.continued(index) else None
        line = line or Line()
        if last:
            self._open.pop(stream, None)
        else:
            self._open[stream] = line
        return line.piece(text, anew=block.redraws(index), last=last)


def _has_whole_lines(block: LineBlock) -> bool:
    """Whether no line of the block comes in pieces."""
    indices = block.indices()
    newlines = block.chunk.data.count(b"\n", block.first, block.end)
    whole = len(block.ends) == newlines and not block.partial(indices[-1])
    return whole and not block.continued(indices[0])
