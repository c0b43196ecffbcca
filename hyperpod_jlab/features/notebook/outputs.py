"""From the record of a rank and its log to the outputs of each cell. Pure: the log is a function from a range of bytes to its text.

The record may come from another user, or end in the midst of a line: what is not as docs/bundle-format.md says is left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.capture.runtime.recorder import MAX_EVENTS, MAX_OUTPUT

ReadText = Callable[[int, int], str]
"""The text of the log from one offset up to another."""

MAX_OUTPUTS_BYTES = 64 << 20
"""Bytes of all outputs in a notebook. What does not fit is left out, and its place says so."""
_MAX_CELLS = 100_000
_NOT_SHOWN = (
    f"[not shown: the outputs of this notebook are larger than {MAX_OUTPUTS_BYTES >> 20} MiB]"
)
# An iterator: another user's record may be hundreds of millions of lines.
_LINES = re.compile(rb"^\{.*", re.MULTILINE)


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


def read_outputs(record: bytes, log_size: int, read_text: ReadText) -> dict[int, CellOutputs]:
    """The outputs of the cells that have begun, by number, in the order in which they ran."""
    reading = _Reading(log_size, read_text)
    for line in _LINES.finditer(record):
        if line.end() - line.start() > MAX_OUTPUT:
            continue
        try:
            event = json.loads(line[0])
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            reading.take(event)
    reading.finish()
    return reading.cells


class _Reading:
    def __init__(self, log_size: int, read_text: ReadText) -> None:
        self.cells: dict[int, CellOutputs] = {}
        self._log_size = log_size
        self._read_text = read_text
        self._cell: CellOutputs | None = None
        self._stream = "stdout"
        self._offset = 0
        self._clears_next = False
        self._displayed: dict[str, list[dict[str, Any]]] = {}
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

    def finish(self) -> None:
        """The record ends: the text so far belongs to the cell that runs, or was running."""
        self._text_until(self._log_size)

    def _begin(self, event: dict[str, Any], at: int) -> None:
        number, started = _offset(event["cell"]), _time(event.get("start"))
        if number is None or number >= _MAX_CELLS or started is None:
            return
        if number in self.cells:
            self._clear(self.cells[number])
        self._cell = self.cells[number] = CellOutputs(started)
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
        cell.ended_at = _time(event["end"])
        error = event.get("error")
        if isinstance(error, dict):
            cell.failed = True
            lines = error.get("traceback")
            output: dict[str, Any] = {
                "output_type": "error",
                "ename": _clean(str(error.get("ename"))),
                "evalue": _clean(str(error.get("evalue"))),
                "traceback": [_clean(str(one)) for one in lines] if isinstance(lines, list) else [],
            }
            if not self._has_room(_size(output)):
                short = {name: output[name][:1000] for name in ("ename", "evalue")}
                output.update(short, traceback=[_NOT_SHOWN])
            self._append(cell.outputs, output)

    def _text_until(self, at: int) -> None:
        begin, end = self._offset, min(at, self._log_size)
        if self._cell is None or end <= begin:
            return
        self._offset = end
        outputs = self._outputs(self._cell)
        has_room = self._has_room(1)
        text = self._read_text(begin, end) if has_room else ""
        size = _size(text) - len('""')
        is_same = bool(outputs) and outputs[-1].get("name") == self._stream
        if is_same and has_room and self._has_room(size):
            outputs[-1]["text"] += text
            self._bytes_left -= size
        else:
            self._add(outputs, {"output_type": "stream", "name": self._stream, "text": text})

    def _output(self, event: dict[str, Any]) -> None:
        if self._cell is None:
            return
        metadata = event.get("metadata")
        data = {kind: _form(kind, value) for kind, value in event["data"].items()}
        metadata = _clean(metadata) if isinstance(metadata, dict) else {}
        value: dict[str, Any] = {"data": data, "metadata": metadata}
        identity = event.get("display_id")
        if event.get("output") == "update":
            for output in filter(None, self._displayed.get(str(identity), [])):
                self._bytes_left += _size(output)
                output.update(value)
                if not self._has_room(_size(output)):
                    output.update(_note())
                self._bytes_left -= _size(output)
            return
        kind = "execute_result" if event.get("output") == "execute_result" else "display_data"
        output = {"output_type": kind, **value}
        self._add(self._outputs(self._cell), output)
        if isinstance(identity, str):
            self._displayed.setdefault(identity, []).append(output)

    def _add(self, outputs: list[dict[str, Any]], output: dict[str, Any]) -> None:
        """Add an output, or a note in its place: one is enough for all that follow."""
        if not self._has_room(_size(output)):
            output.clear()
            if outputs and outputs[-1].get("data") == _note()["data"]:
                return
            output.update(_note(), output_type="display_data")
        self._append(outputs, output)

    def _append(self, outputs: list[dict[str, Any]], output: dict[str, Any]) -> None:
        outputs.append(output)
        self._bytes_left -= _size(output)

    def _has_room(self, size: int) -> bool:
        return size <= self._bytes_left

    def _clear(self, cell: CellOutputs) -> None:
        """Remove a cell's outputs, which count no longer. An update that comes later finds them empty."""
        for output in cell.outputs:
            self._bytes_left += _size(output)
            output.clear()
        cell.outputs.clear()

    def _outputs(self, cell: CellOutputs) -> list[dict[str, Any]]:
        """The cell's outputs, to which one is added now."""
        if self._clears_next:
            self._clears_next = False
            self._clear(cell)
        return cell.outputs


def _size(value: Any) -> int:
    return len(json.dumps(value))


def _note() -> dict[str, Any]:
    return {"data": {"text/plain": _NOT_SHOWN}, "metadata": {}}


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
    cells: Iterable[dict[str, Any]],
    outputs: dict[int, CellOutputs],
    timestamp: Callable[[float], str],
) -> None:
    """Put outputs, times and execution counts into the code cells of a notebook that was sent with a run.

    A cell's execution count is its number in logs and errors: the cell that sets the parameters has 0.
    """
    for cell in cells:
        number = cell_number(cell)
        found = outputs.get(number) if number is not None else None
        if number is None or found is None:
            continue
        cell["execution_count"] = number
        cell["outputs"] = [
            {**output, "execution_count": number}
            if output["output_type"] == "execute_result"
            else output
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
