"""The newest bytes of a source, kept for those who follow closely.

Who falls out of the ring reads from the source again, by place; so the ring's size is a bound on memory, not on patience.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from hyperpod_jlab.logs.place import TAIL, Place
from hyperpod_jlab.logs.source import Chunk

_OVERHEAD = 500


@dataclass(frozen=True, slots=True)
class Slice:
    """What the ring has after a place.

    Attributes:
        chunk: The bytes; none when there is nothing yet.
        life: Which of the source's lives they belong to: a source that was cut or replaced begins a new one.
        more: There is more behind them.
        closing: What follows does not go on with these bytes: an unfinished line in them stays unfinished.
    """

    chunk: Chunk
    life: int
    more: bool = False
    closing: bool = False


class Ring:
    """Consecutive chunks of one source, the oldest dropped first.

    Attributes:
        limit: Most bytes to keep.
        size: Bytes kept, with what keeping them costs.
        life: The source's present life.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.life = 0
        self._chunks: deque[tuple[int, Chunk]] = deque()

    def add(self, chunk: Chunk) -> None:
        """Take the bytes that follow; drops the oldest beyond the limit, but never these."""
        if chunk.restarted:
            self.life += 1
        self._chunks.append((self.life, chunk))
        self.size += len(chunk.data) + _OVERHEAD
        while self.size > self.limit and len(self._chunks) > 1:
            _, oldest = self._chunks.popleft()
            self.size -= len(oldest.data) + _OVERHEAD

    def after(self, place: Place, life: int | None, limit: int) -> Slice | None:
        """Up to `limit` bytes after a place (at least one chunk's), or None when the place is not in the ring.

        Args:
            place: The place.
            life: The life that it belongs to, as a slice told, or None when that is not known.
            limit: Bytes after which no further chunk is taken.
        """
        following: list[tuple[int, Chunk]] = []
        for held in reversed(self._chunks):
            index = place.offset - held[1].offset
            if (
                life in (None, held[0])
                and 0 <= index <= len(held[1].data)
                and _same(held[1].place(index), place)
            ):
                return _slice(held, index, following, limit)
            following.append(held)
        return None


def _same(one: Place, other: Place) -> bool:
    return not one.check or not other.check or one.check == other.check


def _breaks(chunk: Chunk) -> bool:
    """Whether the bytes do not simply go on with those before them."""
    return chunk.restarted or chunk.mark is not None


def _slice(
    held: tuple[int, Chunk], index: int, following: list[tuple[int, Chunk]], limit: int
) -> Slice:
    """Join the chunk's data from `index` on and the chunks after it (in `following`, the newest first)."""
    life, chunk = held
    new_life = index == len(chunk.data) and bool(following) and following[-1][1].restarted
    if new_life:
        (life, chunk), index = following.pop(), 0
    before = (
        chunk.data[index - TAIL : index]
        if index >= TAIL
        else (chunk.before + chunk.data[:index])[-TAIL:]
    )
    parts = [chunk.data[index:]]
    stamps = [(max(0, begin - index), time) for begin, time in chunk.stamps]
    size = len(parts[0])
    while following and size < limit and not _breaks(following[-1][1]):
        _, later = following.pop()
        stamps.extend((begin + size, time) for begin, time in later.stamps)
        parts.append(later.data)
        size += len(later.data)
    joined = Chunk(
        parts[0] if len(parts) == 1 else b"".join(parts),
        chunk.offset + index,
        before,
        chunk.identity,
        # The last stamp of an index holds.
        stamps=tuple(dict(stamps).items()),
        mark=chunk.mark if new_life or (index == 0 and not chunk.restarted) else None,
        restarted=new_life,
        start=chunk.start if index == 0 else None,
    )
    return Slice(
        joined, life, more=bool(following), closing=bool(following) and _breaks(following[-1][1])
    )
