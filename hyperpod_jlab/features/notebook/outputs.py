"""From the record of a rank and its log to the outputs of each cell. Pure: the log is a function from a range of bytes to its text.

The record may come from another user, or end in the midst of a line: what is not as docs/bundle-format.md says is left out.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.capture.runtime.recorder import MAX_EVENTS
from hyperpod_jlab.storage.big_records import parse_object

ReadText = Callable[[int, int], str]
"""The text of the log from one offset up to another."""

MAX_OUTPUTS_BYTES = 64 << 20
"""Bytes of all outputs in a notebook. What does not fit is left out, and its place says so."""
_MAX_CELLS = 100_000
_NOT_SHOWN = f"[not shown: the outputs of this notebook are larger than {MAX_OUTPUTS_BYTES >> 20} MiB]"


@dataclass
class CellOutputs:
    """What one cell put out.

    Attributes:
        started_at: When it began (Unix seconds).
        ended_at: When it ended; None if it runs, or was ended from outside.
        outputs: Its outputs, as nbformat 4 has them.
        failed: Whether it raised an exception.
    """

    started_at: float
    ended_at: float | None = None
    outputs: list[dict[str, Any]] = field(default_factory=list)
    failed: bool = False


def read_outputs(
    lines: Iterable[bytes], log_size: int, read_text: ReadText, find_gap: Callable[[], str | None] = lambda: None
) -> dict[int, CellOutputs]:
    """The outputs of the cells that have begun, by number, in the order in which they ran.

    Args:
        lines: The lines of the record.
        log_size: The size of the log.
        read_text: Reads the log.
        find_gap: After the lines, tells why the record has more of them; None if it does not. The last cell then says so.
    """
    reading = _Reading(log_size, read_text)
    for line in lines:
        event = parse_object(line)
        if event is not None:
            with contextlib.suppress(ValueError, OverflowError, RecursionError):
                reading.take(event)
    return reading.finish(find_gap())


@dataclass(eq=False)
class _Shown:
    """An output in its cell.

    Attributes:
        output: As nbformat has it; of a stream, without its text.
        size: The bytes that it counts.
        texts: The text of a stream, in parts.
        display: Those with the same display id, itself among them.
    """

    output: dict[str, Any]
    size: int
    texts: list[str] = field(default_factory=list)
    display: _Display | None = None

    def whole(self) -> dict[str, Any]:
        return {**self.output, "text": "".join(self.texts)} if self.texts else self.output


@dataclass
class _Display:
    """The outputs with one display id. An update is for all that exist, and the last one counts: so it is put into them only once, at the end.

    Attributes:
        identity: The id.
        updated: Those that get the value of the last update.
        later: Those that were displayed after it.
        value: What is updated: data and metadata.
        size: The bytes that the value counts in each output.
    """

    identity: str
    updated: set[_Shown] = field(default_factory=set)
    later: set[_Shown] = field(default_factory=set)
    value: dict[str, Any] = field(default_factory=dict)
    size: int = 0


@dataclass
class _Cell:
    result: CellOutputs
    shown: list[_Shown] = field(default_factory=list)


class _Reading:
    def __init__(self, log_size: int, read_text: ReadText) -> None:
        self._cells: dict[int, _Cell] = {}
        self._log_size = log_size
        self._read_text = read_text
        self._cell: _Cell | None = None
        self._stream = "stdout"
        self._offset = 0
        self._clears_next = False
        self._displays: dict[str, _Display] = {}
        self._bytes_left = MAX_OUTPUTS_BYTES
        self._events_left = 0

    def take(self, event: dict[str, Any]) -> None:
        """One line of the record."""
        at = _offset(event.get("at"))
        if at is None:
            return
        if "cell" in event:
            self._begin(event, at)
        elif "end" in event:
            self._end(event, at)
        elif self._events_left > 0:
            self._events_left -= 1
            self._put(event, at)

    def _put(self, event: dict[str, Any], at: int) -> None:
        """A line of which a cell has a limited number."""
        if event.get("stream") in ("stdout", "stderr"):
            self._text_until(at)
            self._stream = event["stream"]
        elif "clear" in event:
            self._text_until(at)
            self._clears_next = bool(event["clear"])
            if self._cell is not None and not self._clears_next:
                self._clear(self._cell)
        elif isinstance(event.get("data"), dict):
            self._text_until(at)
            self._output(event)
            end = _offset(event.get("to"))
            self._offset = max(self._offset, min(end or 0, self._log_size))

    def finish(self, gap: str | None) -> dict[int, CellOutputs]:
        """The record ends: the text so far belongs to the cell that runs, or was running. Or more follows, and the last cell says why it is not read."""
        if gap is None:
            self._text_until(self._log_size)
        elif self._cells:
            last = self._cell or next(reversed(self._cells.values()))
            last.shown.append(_Shown(_displayed(f"[not shown: {gap}]"), 0))
        for display in self._displays.values():
            for shown in display.updated:
                shown.output.update(display.value)
        for cell in self._cells.values():
            cell.result.outputs = [shown.whole() for shown in cell.shown]
        return {number: cell.result for number, cell in self._cells.items()}

    def _begin(self, event: dict[str, Any], at: int) -> None:
        number, started = _offset(event["cell"]), _time(event.get("start"))
        if number is None or number >= _MAX_CELLS or started is None:
            return
        if number in self._cells:
            self._clear(self._cells[number])
        self._cell = self._cells[number] = _Cell(CellOutputs(started))
        self._offset = max(self._offset, min(at, self._log_size))
        self._clears_next = False
        self._events_left = MAX_EVENTS
        # It begins so, even if the switch to it was one event too many for the cell before.
        self._stream = "stdout"

    def _end(self, event: dict[str, Any], at: int) -> None:
        self._text_until(at)
        cell, self._cell = self._cell, None
        if cell is None:
            return
        cell.result.ended_at = _time(event["end"])
        error = event.get("error")
        if isinstance(error, dict):
            cell.result.failed = True
            lines = error.get("traceback")
            output: dict[str, Any] = {
                "output_type": "error",
                "ename": _clean(str(error.get("ename"))),
                "evalue": _clean(str(error.get("evalue"))),
                "traceback": [_clean(str(one)) for one in lines] if isinstance(lines, list) else [],
            }
            size = _size(output)
            if size > self._bytes_left:
                short = {name: output[name][:1000] for name in ("ename", "evalue")}
                output.update(short, traceback=[_NOT_SHOWN])
                size = _size(output)
            self._append(cell.shown, output, size)

    def _text_until(self, at: int) -> None:
        begin, end = self._offset, min(at, self._log_size)
        if self._cell is None or end <= begin:
            return
        self._offset = end
        shown = self._visible(self._cell)
        has_room = self._bytes_left > 0
        text = self._read_text(begin, end) if has_room else ""
        size = _size(text)
        is_same = bool(shown) and shown[-1].output.get("name") == self._stream
        if is_same and has_room and size <= self._bytes_left:
            shown[-1].texts.append(text)
            shown[-1].size += size
            self._bytes_left -= size
        else:
            self._add(shown, {"output_type": "stream", "name": self._stream, "text": text})

    def _output(self, event: dict[str, Any]) -> None:
        if self._cell is None:
            return
        metadata = event.get("metadata")
        data = {_clean(str(kind)): _form(str(kind), value) for kind, value in event["data"].items()}
        metadata = _clean(metadata) if isinstance(metadata, dict) else {}
        value: dict[str, Any] = {"data": data, "metadata": metadata}
        identity = event.get("display_id")
        if event.get("output") == "update":
            display = self._displays.get(str(identity))
            if display is not None:
                self._update(display, value)
            return
        kind = "execute_result" if event.get("output") == "execute_result" else "display_data"
        shown = self._add(self._visible(self._cell), {"output_type": kind, **value})
        if shown is not None and isinstance(identity, str):
            shown.display = self._displays.setdefault(identity, _Display(identity))
            shown.display.later.add(shown)

    def _update(self, display: _Display, value: dict[str, Any]) -> None:
        """Note what the outputs with one id show from now on."""
        self._bytes_left += display.size * len(display.updated)
        self._bytes_left += sum(shown.size for shown in display.later)
        display.updated |= display.later
        display.later = set()
        display.value, display.size = value, _size(value)
        if display.size * len(display.updated) > self._bytes_left:
            display.value = _note()
            display.size = _size(display.value)
        self._bytes_left -= display.size * len(display.updated)

    def _add(self, shown: list[_Shown], output: dict[str, Any]) -> _Shown | None:
        """Add an output, or a note in its place: one is enough for all that follow."""
        size = _size(output)
        if size > self._bytes_left:
            if shown and shown[-1].output.get("data") == _note()["data"]:
                return None
            output = _displayed(_NOT_SHOWN)
            size = _size(output)
        return self._append(shown, output, size)

    def _append(self, shown: list[_Shown], output: dict[str, Any], size: int) -> _Shown:
        texts = [output.pop("text")] if "text" in output else []
        shown.append(_Shown(output, size, texts))
        self._bytes_left -= size
        return shown[-1]

    def _clear(self, cell: _Cell) -> None:
        """Remove a cell's outputs, which count no longer, and get no update that comes later."""
        for shown in cell.shown:
            display = shown.display
            if display is None or shown in display.later:
                self._bytes_left += shown.size
            else:
                self._bytes_left += display.size
            if display is not None:
                display.later.discard(shown)
                display.updated.discard(shown)
                if not display.later and not display.updated:
                    del self._displays[display.identity]
        cell.shown.clear()

    def _visible(self, cell: _Cell) -> list[_Shown]:
        """The cell's outputs, to which one is added now."""
        if self._clears_next:
            self._clears_next = False
            self._clear(cell)
        return cell.shown


def _size(value: Any) -> int:
    return len(json.dumps(value))


def _note(text: str = _NOT_SHOWN) -> dict[str, Any]:
    return {"data": {"text/plain": text}, "metadata": {}}


def _displayed(text: str) -> dict[str, Any]:
    return {"output_type": "display_data", **_note(text)}


_IS_JSON = re.compile(r"application/(.*\+)?json")


_MAX_DEPTH = 100
_SURROGATE = re.compile("[\ud800-\udfff]")


def _form(kind: str, value: Any) -> Any:
    """A form of a value as nbformat allows it: text, and for JSON types anything."""
    value = _clean(value)
    return value if isinstance(value, str) or _IS_JSON.fullmatch(kind) else json.dumps(value)


def _clean(value: Any, depth: int = 0) -> Any:
    """A value that every reader of JSON takes: no halves of characters, no NaN, not too deep."""
    if depth > _MAX_DEPTH:
        return "[not shown: it is too deep]"
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_clean(one, depth + 1) for one in value]
    if isinstance(value, dict):
        return {_clean(str(name)): _clean(one, depth + 1) for name, one in value.items()}
    return value


_MAX_TIME = 253_402_300_000


def _time(value: object) -> float | None:
    """A Unix time that a calendar has."""
    is_time = isinstance(value, int | float) and 0 <= value < _MAX_TIME
    return float(value) if is_time and isinstance(value, int | float) else None


def _offset(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def fill_cells(
    cells: Iterable[dict[str, Any]], outputs: dict[int, CellOutputs], timestamp: Callable[[float], str]
) -> None:
    """Put outputs, times and execution counts into the code cells of a notebook that was sent with a run.

    A cell's execution count is its number in logs and errors: the cell that sets the parameters has 0. A number belongs to one cell: of more, which only
    the run can have made, the first one gets the outputs.
    """
    left = dict(outputs)
    for cell in cells:
        number = cell_number(cell)
        found = left.pop(number, None) if number is not None else None
        if number is None or found is None:
            continue
        cell["execution_count"] = number
        cell["outputs"] = [
            {**output, "execution_count": number} if output["output_type"] == "execute_result" else output
            for output in found.outputs
        ]
        times = {"iopub.status.busy": timestamp(found.started_at)}
        times["iopub.execute_input"] = times["iopub.status.busy"]
        if found.ended_at is not None:
            times["shell.execute_reply"] = times["iopub.status.idle"] = timestamp(found.ended_at)
        cell["metadata"]["execution"] = times


def cell_number(cell: dict[str, Any]) -> int | None:
    """The number of a code cell in the run; None for another cell."""
    mark = cell["metadata"].get("hyperpod")
    return _offset(mark.get("cell")) if isinstance(mark, dict) else None
