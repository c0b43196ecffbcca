"""Records what the cells of a notebook put out, while they run (docs/bundle-format.md, "Outputs of cells").

The text that a cell prints is in the rank's log already, so the record has only its place there: the log's size when a cell begins and ends, and when its text
changes between stdout and stderr. What a cell displays is in the record itself. Each line is written at once, so a killed rank leaves all that it had.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import stat
import sys
import time
from typing import Any, Iterator

from . import failure, records

MAX_OUTPUT = 16 << 20
"""Bytes of one output, as JSON. A larger one is left out, and its place says so."""
MAX_FILE, MAX_FILE_OTHERS = 256 << 20, 16 << 20
"""Bytes of all outputs in the record of rank 0, and of each other rank. What does not fit is left out, and its place says so."""
MAX_EVENTS = 10_000
"""Outputs and changes between stdout and stderr that are recorded of one cell."""
_NEEDS_KERNEL = "application/vnd.jupyter.widget-view+json"


class TextStream(io.TextIOWrapper):
    """stdout or stderr of the rank: tells the recorder when the text changes between the two."""

    def __init__(self, recorder: Recorder, name: str, descriptor: int) -> None:
        raw = io.FileIO(descriptor, "w", closefd=False)
        # A notebook prints in UTF-8 wherever it runs.
        super().__init__(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
        self._recorder = recorder
        self._name = name

    @property
    def name(self) -> str:
        """As Python names it: ``<stdout>``."""
        return f"<{self._name}>"

    def write(self, text: str) -> int:
        """Write text."""
        self._recorder.switch(self._name)
        return super().write(text)


class Recorder:
    """The record of this rank. Without a job around, and in a child process, it records nothing."""

    def __init__(self) -> None:
        self._stream = "stdout"
        self._descriptor: int | None = None
        self._process = os.getpid()
        self._bytes_left = MAX_FILE if records.rank() == 0 else MAX_FILE_OTHERS
        self._is_full = False
        self._events_left = MAX_EVENTS

    def start(self) -> None:
        """Open the record, and take over stdout and stderr."""
        path = _path()
        if path is not None and stat.S_ISREG(os.fstat(1).st_mode):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                self._descriptor = os.open(path, flags, 0o644)
            except OSError as error:
                self._give_up(error)
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            stream = TextStream(self, name, descriptor)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)

    @property
    def is_recording(self) -> bool:
        """Whether outputs are recorded here."""
        return self._descriptor is not None and os.getpid() == self._process

    def switch(self, name: str) -> None:
        """The text that follows belongs to this stream."""
        if name != self._stream:
            self._stream = name
            if self._take_event():
                self._write({"stream": name, "at": _log_size()})

    @contextlib.contextmanager
    def cell(self, number: int, locations: failure.SourceLocations) -> Iterator[None]:
        """Around a cell that runs."""
        self._events_left = MAX_EVENTS
        # What child processes write without telling is not taken for the errors of an earlier cell.
        self.switch("stdout")
        self._write({"cell": number, "start": time.time(), "at": _log_size()})
        try:
            yield
        except BaseException as error:
            failure.trim_traceback(error, locations)
            self._write({"end": time.time(), "at": _log_size(), "error": _error(error)})
            raise
        self._write({"end": time.time(), "at": _log_size()})

    def output(self, kind: str, data: dict[str, Any], metadata: dict[str, Any], **more: Any) -> None:
        """Show a value: its text in the log, all of it in the record.

        Args:
            kind: ``display_data``, ``execute_result``, or ``update`` for one that was displayed before.
            data: Its forms by MIME type.
            metadata: Metadata by MIME type.
            more: ``display_id``, and ``quiet``: whether the log does without its text.
        """
        is_quiet = more.pop("quiet", False)
        if data.pop(_NEEDS_KERNEL, None) is not None:
            note = "[a widget needs a kernel, which a job does not have]"
            data["text/plain"] = f"{data.get('text/plain', '')}\n{note}"
        for name, form in data.items():
            if isinstance(form, (bytes, bytearray, memoryview)):
                data[name] = base64.b64encode(form).decode("ascii")
        begin = _log_size()
        text = data.get("text/plain")
        if isinstance(text, str) and not is_quiet:
            print(text, file=sys.__stdout__)
        if not self.is_recording or not self._take_event():
            return
        record = {"output": kind, "at": begin, "to": _log_size(), "data": data, "metadata": metadata, **more}
        line = _line(record)
        if len(line) > MAX_OUTPUT:
            record["data"], note = _shortened(data)
            record["metadata"] = {}
            self._write_line(_line(record))
            print(f"hyperpod: {note}", file=sys.__stderr__)
        elif len(line) > self._bytes_left:
            self._leave_out(record)
        else:
            self._bytes_left -= len(line)
            self._write_line(line)

    def _leave_out(self, record: dict[str, Any]) -> None:
        """Keep an output's place. It does not count, nor do the other lines: without them, later text would belong to a wrong cell."""
        note = "not kept in the notebook: the outputs of this rank are larger than it may keep"
        text = str(record["data"].get("text/plain", ""))[:100]
        record.update(data={"text/plain": f"{text}\n[{note}]"}, metadata={})
        self._write_line(_line(record))
        if not self._is_full:
            self._is_full = True
            print(f"hyperpod: an output is {note}", file=sys.__stderr__)

    def clear(self, wait: bool) -> None:
        """The cell's outputs so far are no longer shown; with `wait` once there is another."""
        if self._take_event():
            self._write({"clear": wait, "at": _log_size()})

    def _take_event(self) -> bool:
        self._events_left -= 1
        if self._events_left == -1 and self.is_recording:
            note = f"this cell has more than {MAX_EVENTS:,} outputs; what follows is kept as text only"
            print(f"hyperpod: {note}", file=sys.__stderr__)
        return self._events_left >= 0

    def _write(self, record: dict[str, Any]) -> None:
        if self.is_recording:
            self._write_line(_line(record))

    def _write_line(self, line: bytes) -> None:
        if self._descriptor is None:
            return
        try:
            if os.write(self._descriptor, line) != len(line):
                raise OSError(None, "the disk is full")
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """The notebook goes on without its record."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
        print(f"hyperpod: the outputs of cells are not recorded from here on: {error.strerror}", file=sys.__stderr__)


def _path() -> str | None:
    """The path of the record, next to the rank's log; None outside of a run."""
    root = records.records()
    if root is None:
        return None
    attempt = records.number("HYPERPOD_ATTEMPT", 1)
    name = "node-{}.rank-{}.outputs.jsonl".format(records.number("NODE_RANK"), records.number("LOCAL_RANK"))
    return os.path.join(root, "logs", f"attempt-{attempt}", name)


def _log_size() -> int:
    return os.fstat(1).st_size


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, default=str).encode("utf-8") + b"\n"


def _error(error: BaseException) -> dict[str, Any] | None:
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return None
    text = failure.shorten(failure.error_text(error), failure.MAX_TRACEBACK)
    return {
        "ename": type(error).__name__,
        "evalue": failure.shorten(failure.safe_str(error), failure.MAX_MESSAGE),
        "traceback": text.rstrip("\n").split("\n"),
    }


def _shortened(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The text of an output that is too large, and a note of what is left out."""
    sizes = ", ".join(
        f"{kind} of {len(_line({'': value})) / 1e6:.0f} MB"
        for kind, value in data.items()
        if len(_line({"": value})) > 1e6
    )
    note = f"an output is not kept in the notebook: {sizes}; the limit is {MAX_OUTPUT >> 20} MiB"
    return {"text/plain": f"{str(data.get('text/plain', ''))[:1000]}\n[{note}]"}, note


recorder = Recorder()
