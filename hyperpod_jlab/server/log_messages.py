"""Messages of the log socket, and the options that select log lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NotRequired

from pydantic import AwareDatetime, Field
from pydantic_core import to_json
from typing_extensions import TypedDict

from hyperpod_jlab.core.errors import Error, HyperpodError, InvalidInputError, nearest_hint
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.logs.lines import LineBlock, LogBatch
from hyperpod_jlab.logs.service import LogRequest
from hyperpod_jlab.logs.source import Mark
from hyperpod_jlab.server.requests import CommaSeparated, RequestModel, read_object

_MAX_NUMBER = 2**31 - 1
_MAX_CURSOR_LENGTH = 1 << 20

LogName = Annotated[str, Field(min_length=1, max_length=512)]
Number = Annotated[int, Field(ge=0, le=_MAX_NUMBER)]
SinceTime = Annotated[float, Field(ge=0, le=1e11)] | AwareDatetime


class LogChoice(RequestModel):
    """Which lines of a run."""

    attempt: Annotated[int, Field(ge=1, le=_MAX_NUMBER)] | None = None
    """Only this attempt."""
    node: Number | None = None
    """Only the node of this rank."""
    ranks: Annotated[list[Number], CommaSeparated] | None = None
    """Only these global ranks; in a query, repeat the parameter or separate values with commas."""
    node_logs: bool | None = None
    """Include the nodes' own logs; default: unless ranks are given."""
    grep: str | None = None
    """Only lines that match this regular expression."""
    ignore_case: bool = False
    """Whether `grep` ignores case."""
    tail: Number | None = None
    """Start with this many of the last lines; ignored with a cursor or in a page."""
    since: SinceTime | None = None
    """Start at this time: Unix seconds, or ISO 8601; ignored with a cursor or in a page backward."""
    cursor: Annotated[str, Field(max_length=_MAX_CURSOR_LENGTH)] | None = None
    """Continue from here."""
    collapse: bool = True
    """Show only the last state of progress bars."""

    def request(self, run_id: str, *, follow: bool = False) -> LogRequest:
        """The request to the log service."""
        since = self.since
        return LogRequest(
            run_id,
            attempt=self.attempt,
            node=self.node,
            ranks=None if self.ranks is None else tuple(self.ranks),
            node_logs=self.node_logs,
            tail=self.tail,
            since=since if since is None or isinstance(since, float) else since.timestamp(),
            grep=self.grep,
            ignore_case=self.ignore_case,
            cursor=self.cursor,
            follow=follow,
            collapse=self.collapse,
        )


class Subscribe(LogChoice):
    """Follow a run's log, or logs of nodes. A new subscription takes over an id in use when ``subscribed`` is sent."""

    type: Literal["subscribe"]
    id: Number
    run_id: Annotated[str, Field(max_length=100)] | None = None
    """The run."""
    cluster: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """Instead of a run: the HyperPod cluster, by name or ARN, whose node logs to follow."""
    streams: Annotated[list[LogName], Field(max_length=20)] | None = None
    """The logs of the cluster's nodes, by AWS' names."""


class Unsubscribe(RequestModel):
    """Stop the frames of this id."""

    type: Literal["unsubscribe"]
    id: Number


class Ack(RequestModel):
    """Acknowledge the frames up to `seq`."""

    type: Literal["ack"]
    id: Number
    seq: Number


Message = Subscribe | Unsubscribe | Ack

_KINDS: Final[dict[str, type[Message]]] = {"subscribe": Subscribe, "unsubscribe": Unsubscribe, "ack": Ack}


def read_message(text: str | bytes) -> Message:
    """Parse a client's message.

    Raises:
        InvalidInputError: It is invalid; the detail names the field, and the subscription's id if known.
    """
    data = read_object(text)
    kind = data.get("type")
    model = _KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise InvalidInputError(
            "type: unknown message type",
            code="invalid_message",
            hint=nearest_hint(str(kind)[:60], _KINDS),
            detail={"field": "type"},
        )
    try:
        return parse(model, data, code="invalid_message")
    except InvalidInputError as error:
        number = data.get("id")
        if model is Subscribe and isinstance(number, int) and 0 <= number <= _MAX_NUMBER:
            error.detail["id"] = number
        raise


@dataclass(frozen=True, slots=True)
class LogBlock:
    """Consecutive lines of one stream, stored by column.

    Attributes:
        mark: An event in the stream before its lines.
    """

    attempt: int
    node: str
    node_rank: int
    rank: int | None
    index: int | None
    mark: Mark | None
    lines: str | None
    times: float | list[float | None] | None
    flags: list[tuple[int, int]] | None


@dataclass(frozen=True, slots=True)
class LogFrame:
    """Blocks in display order, and the cursor after them."""

    blocks: list[LogBlock]
    after: str


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The run exists and can be read; frames follow."""

    id: int
    type: Literal["subscribed"] = "subscribed"


@dataclass(frozen=True, slots=True)
class Frame:
    """Lines; `after` is the cursor after them."""

    blocks: list[LogBlock]
    after: str
    id: int
    seq: int
    type: Literal["frame"] = "frame"


@dataclass(frozen=True, slots=True)
class End:
    """The run has ended and its whole log was sent."""

    id: int
    type: Literal["end"] = "end"


class Failure(TypedDict):
    """The subscription has ended; without `id` the message was invalid."""

    type: Literal["error"]
    error: Error
    id: NotRequired[int]


Answer = Subscribed | Frame | End | Failure
"""A message to a client. Messages have times only as plain numbers, so any JSON encoder for dataclasses can write them."""


def failure(error: HyperpodError, number: int | None = None) -> Failure:
    """The message for an error."""
    response: Failure = {"type": "error", "error": error.shape}
    return response if number is None else {**response, "id": number}


# --------------------------------------------------------------------------------------------------
# Lines by column: builds a frame from whole blocks, without one object per line.

CONTINUED, PARTIAL, REDRAWS = 1, 2, 4
"""Bits of an incomplete line."""

MAX_FRAME_BYTES = 256 << 10
"""Approximate maximum log bytes per frame: small enough to render smoothly and to limit the server's memory."""


def split_batch(batch: LogBatch) -> Iterator[LogBatch]:
    """Split a batch into frame-sized parts, each with the cursor after it."""
    if sum(block.size for block in batch.blocks) <= MAX_FRAME_BYTES:
        yield batch
        return
    cursor, size = batch.start, 0
    blocks: list[LineBlock] = []
    for full_block in batch.blocks:
        for block in _split(full_block):
            if blocks and size + block.size > MAX_FRAME_BYTES:
                portion = LogBatch(cursor, blocks)
                cursor, size, blocks = portion.end_position, 0, []
                yield portion
            blocks.append(block)
            size += block.size
    yield LogBatch(cursor, blocks)


def _split(block: LineBlock) -> Iterator[LineBlock]:
    """Split a block at line ends."""
    begin, mark = block.begin, block.mark
    while block.selected is None and block.end - begin > MAX_FRAME_BYTES:
        cut_at = block.chunk.data.rfind(b"\n", begin, begin + MAX_FRAME_BYTES) + 1
        if cut_at <= begin:
            break
        yield LineBlock(block.origin, block.chunk, begin, cut_at, mark=mark, collapse=block.collapse)
        begin, mark = cut_at, None
    if begin == block.begin:
        yield block
    else:
        yield LineBlock(block.origin, block.chunk, begin, block.end, collapse=block.collapse)


def blocks_of(batch: LogBatch) -> list[LogBlock]:
    """A batch's blocks, without invisible ones."""
    return [_block(block) for block in batch.blocks if not block.empty]


def frame_message(number: int, seq: int, batch: LogBatch) -> bytes:
    """The JSON message for a batch."""
    return to_json(Frame(blocks_of(batch), batch.end_position.text(), number, seq))


def _block(block: LineBlock) -> LogBlock:
    origin = block.origin
    own_log = origin.stream.without_child
    texts = block.texts()
    return LogBlock(
        attempt=own_log.attempt,
        node=origin.node or f"node-{own_log.node_rank}",
        node_rank=own_log.node_rank,
        rank=origin.rank,
        index=origin.stream.child,
        mark=block.mark,
        lines="\n".join(texts) if texts else None,
        times=_times(block),
        flags=_flags(block) if texts else None,
    )


def _times(block: LineBlock) -> float | list[float | None] | None:
    if len(block.chunk.stamps) <= 1:
        return block.time
    times = block.times()
    if not times:
        return block.time
    return times[0] if times[0] == times[-1] and len(set(times)) == 1 else times


def _flags(block: LineBlock) -> list[tuple[int, int]] | None:
    """The incomplete lines. Only the first and the last piece can be incomplete, unless a long line was cut."""
    indices = block.indices()
    last = len(block.ends) - 1
    if _is_cut(block):
        candidates = list(range(len(indices)))
    else:
        candidates = sorted({0, len(indices) - 1})
        candidates = [line for line in candidates if indices[line] in {0, last}]
    flagged = [(line, _bits(block, indices[line])) for line in candidates]
    return [(line, flags) for line, flags in flagged if flags] or None


def _bits(block: LineBlock, index: int) -> int:
    continued = CONTINUED if block.continued(index) else 0
    partial = PARTIAL if block.partial(index) else 0
    redraws = REDRAWS if continued and block.redraws(index) else 0
    return continued | partial | redraws


def _is_cut(block: LineBlock) -> bool:
    """Whether a line of the block has several pieces."""
    return len(block.ends) - 1 > block.chunk.data.count(b"\n", block.first, block.end - 1)
