"""The messages of the log socket, and which lines of a log a client may ask for."""

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
    """Only these global ranks; in a query several times, or once with commas."""
    node_logs: bool | None = None
    """Whether the nodes' own logs come too; default: unless ranks are asked for."""
    grep: str | None = None
    """Only lines in which this regular expression is found."""
    ignore_case: bool = False
    """Whether upper and lower case are the same to `grep`."""
    tail: Number | None = None
    """Begin with the last so many lines; of no meaning with a cursor or in a page."""
    since: SinceTime | None = None
    """Begin at this time: Unix seconds, or ISO 8601; of no meaning with a cursor or in a page."""
    cursor: Annotated[str, Field(max_length=_MAX_CURSOR_LENGTH)] | None = None
    """Go on from here."""
    collapse: bool = True
    """Show of progress bars only what they showed last."""

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
    """Follow a run's log, or logs of nodes. An id that is in use is given to this subscription from `subscribed` on."""

    type: Literal["subscribe"]
    id: Number
    run_id: Annotated[str, Field(max_length=100)] | None = None
    """The run."""
    cluster: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """Instead of a run: the HyperPod cluster, by its name or ARN, whose nodes' logs are followed."""
    streams: Annotated[list[LogName], Field(max_length=20)] | None = None
    """The logs of the cluster's nodes, by AWS' names."""


class Unsubscribe(RequestModel):
    """No more frames for this id."""

    type: Literal["unsubscribe"]
    id: Number


class Ack(RequestModel):
    """Frames up to `seq` are taken in."""

    type: Literal["ack"]
    id: Number
    seq: Number


Message = Subscribe | Unsubscribe | Ack

_KINDS: Final[dict[str, type[Message]]] = {
    "subscribe": Subscribe,
    "unsubscribe": Unsubscribe,
    "ack": Ack,
}


def read_message(text: str | bytes) -> Message:
    """A message of a client.

    Raises:
        InvalidInputError: It cannot be understood; the detail names the field, and the subscription's id as far as it is known.
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
    """A stretch of one stream, arranged by column.

    Attributes:
        mark: Something that happened in the stream before its lines.
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
    """Blocks in the order in which they are to be shown, and the cursor behind them."""

    blocks: list[LogBlock]
    after: str


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The run exists and may be read; frames follow."""

    id: int
    type: Literal["subscribed"] = "subscribed"


@dataclass(frozen=True, slots=True)
class Frame:
    """Lines; `after` is the cursor behind them."""

    blocks: list[LogBlock]
    after: str
    id: int
    seq: int
    type: Literal["frame"] = "frame"


@dataclass(frozen=True, slots=True)
class End:
    """The run has ended and all of its log was sent."""

    id: int
    type: Literal["end"] = "end"


class Failure(TypedDict):
    """The subscription is over; without `id` the message was not understood."""

    type: Literal["error"]
    error: Error
    id: NotRequired[int]


Answer = Subscribed | Frame | End | Failure
"""A message to a client. None holds a time that is not a plain number: any JSON encoder that knows dataclasses writes it."""


def failure(error: HyperpodError, number: int | None = None) -> Failure:
    """The message that tells an error."""
    response: Failure = {"type": "error", "error": error.shape}
    return response if number is None else {**response, "id": number}


# --------------------------------------------------------------------------------------------------
# Lines by column: a frame is made from whole blocks, without an object a line.

CONTINUED, PARTIAL, REDRAWS = 1, 2, 4
"""Bits of a line that is not whole."""

MAX_FRAME_BYTES = 256 << 10
"""About the most bytes of log in a frame: a page is to take it in without a stutter, and the server to hold few of it."""


def split_batch(batch: LogBatch) -> Iterator[LogBatch]:
    """A batch in parts that are small enough for a frame, each with the cursor behind it."""
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
    """A block cut where lines end."""
    begin, mark = block.begin, block.mark
    while block.selected is None and block.end - begin > MAX_FRAME_BYTES:
        cut_at = block.chunk.data.rfind(b"\n", begin, begin + MAX_FRAME_BYTES) + 1
        if cut_at <= begin:
            break
        yield LineBlock(
            block.origin, block.chunk, begin, cut_at, mark=mark, collapse=block.collapse
        )
        begin, mark = cut_at, None
    if begin == block.begin:
        yield block
    else:
        yield LineBlock(block.origin, block.chunk, begin, block.end, collapse=block.collapse)


def blocks_of(batch: LogBatch) -> list[LogBlock]:
    """A batch's blocks, less those of which nothing is shown."""
    return [_block(block) for block in batch.blocks if not block.empty]


def frame_message(number: int, seq: int, batch: LogBatch) -> bytes:
    """The message with a batch, as JSON."""
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
    """The lines that are not whole. Only the first and the last piece can be so, unless a long line was cut."""
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
    """Whether a line of the block is in several pieces."""
    return len(block.ends) - 1 > block.chunk.data.count(b"\n", block.first, block.end - 1)
