"""Lines by column: a frame is made from whole blocks, without an object a line."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic_core import to_json

from hyperpod_jlab.logs.block import LineBlock, LogBatch
from hyperpod_jlab.server.log_messages import LogBlock, LogFrame

CONTINUED, PARTIAL, REDRAWS = 1, 2, 4
"""Bits of a line that is not whole."""

PORTION = 256 << 10
"""About the most bytes of log in a frame: a page is to take it in without a stutter, and the server to hold few of it."""


def portions(batch: LogBatch) -> Iterator[LogBatch]:
    """A batch in parts that are small enough for a frame, each with the cursor behind it."""
    if sum(block.size for block in batch.blocks) <= PORTION:
        yield batch
        return
    cursor, size = batch.start, 0
    blocks: list[LineBlock] = []
    for whole in batch.blocks:
        for block in _split(whole):
            if blocks and size + block.size > PORTION:
                portion = LogBatch(cursor, blocks)
                cursor, size, blocks = portion.after, 0, []
                yield portion
            blocks.append(block)
            size += block.size
    yield LogBatch(cursor, blocks)


def _split(block: LineBlock) -> Iterator[LineBlock]:
    """A block cut where lines end."""
    begin, mark = block.begin, block.mark
    while block.only is None and block.end - begin > PORTION:
        cut = block.chunk.data.rfind(b"\n", begin, begin + PORTION) + 1
        if cut <= begin:
            break
        yield LineBlock(block.origin, block.chunk, begin, cut, mark=mark, collapse=block.collapse)
        begin, mark = cut, None
    if begin == block.begin:
        yield block
    else:
        yield LineBlock(block.origin, block.chunk, begin, block.end, collapse=block.collapse)


def frame_of(batch: LogBatch) -> LogFrame:
    """A batch as a frame."""
    return {"blocks": blocks_of(batch), "after": batch.after.text()}


def blocks_of(batch: LogBatch) -> list[LogBlock]:
    """A batch's blocks, less those of which nothing is shown."""
    return [_block(block) for block in batch.blocks if not block.empty]


def frame_message(number: int, seq: int, batch: LogBatch) -> bytes:
    """The message with a batch, as JSON."""
    return to_json({"type": "frame", "id": number, "seq": seq, **frame_of(batch)})


def _block(block: LineBlock) -> LogBlock:
    origin = block.origin
    own = origin.stream.own
    texts = block.texts()
    mark = block.mark
    return {
        "attempt": own.attempt,
        "node": origin.node or f"node-{own.node_rank}",
        "node_rank": own.node_rank,
        "rank": origin.rank,
        "index": origin.stream.child,
        "mark": None if mark is None else {"kind": mark.kind, "text": mark.text},
        "lines": "\n".join(texts) if texts else None,
        "times": _times(block),
        "flags": _flags(block) if texts else None,
    }


def _times(block: LineBlock) -> float | list[float | None] | None:
    if len(block.chunk.stamps) <= 1:
        return block.time
    times = block.times()
    if not times:
        return block.time
    return times[0] if times[0] == times[-1] and len(set(times)) == 1 else times


def _flags(block: LineBlock) -> list[tuple[int, int]] | None:
    """The lines that are not whole. Only the first and the last piece can be so, unless a long line was cut."""
    indices = block.indices()
    last = len(block.ends) - 1
    if _is_cut(block):
        doubtful = list(range(len(indices)))
    else:
        doubtful = sorted({0, len(indices) - 1})
        doubtful = [line for line in doubtful if indices[line] in {0, last}]
    found = [(line, _bits(block, indices[line])) for line in doubtful]
    return [(line, bits) for line, bits in found if bits] or None


def _bits(block: LineBlock, index: int) -> int:
    continued = CONTINUED if block.continued(index) else 0
    partial = PARTIAL if block.partial(index) else 0
    redraws = REDRAWS if continued and block.redraws(index) else 0
    return continued | partial | redraws


def _is_cut(block: LineBlock) -> bool:
    """Whether a line of the block is in several pieces."""
    return len(block.ends) - 1 > block.chunk.data.count(b"\n", block.first, block.end - 1)
