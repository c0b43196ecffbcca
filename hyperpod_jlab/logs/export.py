"""Logs as files to download: the lines of many streams as one text, and exact bytes as an archive.

Both are streamed: memory does not grow with the log.
"""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from hyperpod_jlab.logs.lines import LineBlock, LogBatch
from hyperpod_jlab.logs.search import Thread
from hyperpod_jlab.logs.source import SourceSet
from hyperpod_jlab.logs.stream import START_POSITION, Stream, attempt_folder

_READ_BYTES = 1 << 20


async def as_text(batches: AsyncGenerator[LogBatch, None], *, has_prefixes: bool) -> AsyncGenerator[bytes, None]:
    """Lines as UTF-8 text; with prefixes, each line begins with its rank (``3|``) or node (``node0|``)."""
    text = _Text(has_prefixes)
    async with aclosing(batches):
        async for batch in batches:
            yield await asyncio.to_thread(text.encode, batch)
    yield text.end().encode()


class _Text:
    """Joins the pieces of lines."""

    def __init__(self, has_prefixes: bool) -> None:
        self._has_prefixes = has_prefixes
        self._open: Stream | None = None

    def encode(self, batch: LogBatch) -> bytes:
        """A batch's lines; a line that goes on in the next batch has no end yet."""
        return "".join(part for block in batch.blocks for part in self._parts(block)).encode()

    def _parts(self, block: LineBlock) -> Iterable[str]:
        stream = block.origin.stream
        prefix = stream.prefix(block.origin.rank) if self._has_prefixes else ""
        if block.mark is not None:
            yield f"{self.end()}--- {block.mark.text} ---\n"
        for index, text in zip(block.indices(), block.texts(), strict=True):
            if self._open == stream and block.continued(index):
                yield text
            else:
                yield f"{self.end()}{prefix}{text}"
            self._open = stream
            if not block.partial(index):
                yield self.end()

    def end(self) -> str:
        """The end of the open line, if there is one."""
        is_open, self._open = self._open is not None, None
        return "\n" if is_open else ""


async def as_archive(sources: SourceSet, streams: Iterable[Stream], thread: Thread) -> AsyncGenerator[bytes, None]:
    """A ZIP archive with the exact bytes of each stream, as they are now."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for stream in streams:
            source = sources.open(stream)
            remaining, position = await thread(source.size), START_POSITION
            name = _entry_name(stream, sources.processes_per_node)
            with archive.open(name, "w", force_zip64=True) as entry:
                while remaining > 0:
                    chunk = await thread(source.read, position, min(_READ_BYTES, remaining))
                    if not chunk.data:
                        break
                    await thread(entry.write, chunk.data)
                    remaining -= len(chunk.data)
                    position = chunk.position_at(len(chunk.data))
                    yield sink.take()
            source.close()
    yield sink.take()


class _Sink(io.RawIOBase):
    """Keeps written bytes until they are taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """What was written since this was last called."""
        data, self._parts = b"".join(self._parts), []
        return data


def _entry_name(stream: Stream, processes_per_node: int) -> str:
    own_stream, rank = stream.without_child, stream.rank(processes_per_node)
    task = "" if stream.child is None else f"task-{stream.child}/"
    name = f"node-{own_stream.node_rank}" if rank is None else f"rank-{rank}"
    return f"{task}{attempt_folder(own_stream.attempt)}/{name}.log"
