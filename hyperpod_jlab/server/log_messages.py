"""The messages of the log socket, and which lines of a log a client may ask for."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from hyperpod_jlab.model.errors import InvalidInputError, nearest_hint
from hyperpod_jlab.model.validation import parse
from hyperpod_jlab.server.answers import Error
from hyperpod_jlab.server.requests import RequestModel, Several, read_object
from hyperpod_jlab.services.log_request import LogRequest

_LARGEST = 2**31 - 1
_LONGEST_CURSOR = 1 << 20

Number = Annotated[int, Field(ge=0, le=_LARGEST)]
Moment = Annotated[float, Field(ge=0, le=1e11)] | AwareDatetime


class LogChoice(RequestModel):
    """Which lines of a run."""

    attempt: Annotated[int, Field(ge=1, le=_LARGEST)] | None = None
    """Only this attempt."""
    node: Number | None = None
    """Only the node of this rank."""
    ranks: Annotated[list[Number], Several] | None = None
    """Only these global ranks; in a query several times, or once with commas."""
    node_logs: bool | None = None
    """Whether the nodes' own logs come too; default: unless ranks are asked for."""
    grep: str | None = None
    """Only lines in which this regular expression is found."""
    ignore_case: bool = False
    """Whether upper and lower case are the same to `grep`."""
    tail: Number | None = None
    """Begin with the last so many lines; of no meaning with a cursor or in a page."""
    since: Moment | None = None
    """Begin at this time: Unix seconds, or ISO 8601; of no meaning with a cursor or in a page."""
    cursor: Annotated[str, Field(max_length=_LONGEST_CURSOR)] | None = None
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
    """Follow a run's log. An id that is in use is given to this subscription from `subscribed` on."""

    type: Literal["subscribe"]
    id: Number
    run_id: Annotated[str, Field(max_length=100)]


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
            "type: there is no such message",
            code="invalid_message",
            hint=nearest_hint(str(kind)[:60], _KINDS),
            detail={"field": "type"},
        )
    try:
        return parse(model, data, code="invalid_message")
    except InvalidInputError as error:
        number = data.get("id")
        if model is Subscribe and isinstance(number, int) and 0 <= number <= _LARGEST:
            error.detail["id"] = number
        raise


class LogMark(TypedDict):
    """Something that happened in a stream before its lines."""

    kind: Literal["attempt", "truncated", "replaced", "gap", "unreadable"]
    text: str


class LogBlock(TypedDict):
    """A stretch of one stream, arranged by column."""

    attempt: int
    node: str
    node_rank: int
    rank: int | None
    index: int | None
    mark: LogMark | None
    lines: str | None
    times: float | list[float | None] | None
    flags: list[tuple[int, int]] | None


class LogFrame(TypedDict):
    """Blocks in the order in which they are to be shown, and the cursor behind them."""

    blocks: list[LogBlock]
    after: str


class Subscribed(TypedDict):
    """The run exists and may be read; frames follow."""

    type: Literal["subscribed"]
    id: int


class Frame(LogFrame):
    """Lines; `after` is the cursor behind them."""

    type: Literal["frame"]
    id: int
    seq: int


class End(TypedDict):
    """The run has ended and all of its log was sent."""

    type: Literal["end"]
    id: int


class _Failure(TypedDict):
    type: Literal["error"]
    error: Error


class Failure(_Failure, total=False):
    """The subscription is over; without `id` the message was not understood."""

    id: int


Answer = Subscribed | Frame | End | Failure


def failure(error: dict[str, Any], number: int | None = None) -> dict[str, Any]:
    """The message that tells an error."""
    told: dict[str, Any] = {"type": "error", "error": error}
    return told if number is None else {**told, "id": number}
