"""What stands around a cell or a line: its time, and its output kept back."""

from __future__ import annotations

import io
import os
import sys
import time
import types
from typing import Any

from .display import recorder


class Timer:
    """Measures the time from its making on, and prints it as a notebook does."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = os.times()

    def __enter__(self) -> Timer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.report()

    def stop(self, value: Any) -> Any:
        """Print the time; returns the value that was timed."""
        self.report()
        return value

    def report(self) -> None:
        """Print the time."""
        wall, cpu = time.perf_counter() - self._wall, os.times()
        user, system = cpu.user - self._cpu.user, cpu.system - self._cpu.system
        print(
            f"CPU times: user {duration(user)}, sys: {duration(system)}, total: {duration(user + system)}"
        )
        print(f"Wall time: {duration(wall)}")


def duration(seconds: float) -> str:
    """A time for people: ``1min 5s``, ``2.5 s``, ``31 ms``."""
    if seconds >= 60:
        whole_seconds = int(seconds)
        parts = [
            (whole_seconds // 3600, "h"),
            (whole_seconds // 60 % 60, "min"),
            (whole_seconds % 60, "s"),
        ]
        return " ".join(f"{count}{unit}" for count, unit in parts if count)
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("\N{MICRO SIGN}s", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


class Captured:
    """What a cell under ``%%capture`` printed."""

    def __init__(self, out: str, err: str, outputs: list[dict[str, Any]]) -> None:
        self.stdout, self.stderr = out, err
        self.outputs = outputs

    def __str__(self) -> str:
        return self.stdout

    def show(self) -> None:
        """Print it now."""
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for output in self.outputs:
            recorder.output("display_data", output["data"], output["metadata"])

    __call__ = show


class Capture:
    """Keeps what a cell prints out of the log. When the cell fails, all of it goes there after all."""

    def __init__(self, names: dict[str, Any], options: dict[str, Any]) -> None:
        self._names, self._options = names, options

    def __enter__(self) -> Capture:
        self._real = sys.stdout, sys.stderr
        self._out, self._err = io.StringIO(), io.StringIO()
        if self._options["stdout"]:
            sys.stdout = self._out
        if self._options["stderr"]:
            sys.stderr = self._err
        if self._options["display"]:
            recorder.captured = []
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: object, __: types.TracebackType | None
    ) -> None:
        sys.stdout, sys.stderr = self._real
        outputs, recorder.captured = recorder.captured or [], None
        captured = Captured(self._out.getvalue(), self._err.getvalue(), outputs)
        if kind is not None:
            captured.show()
        elif self._options["name"] is not None:
            self._names[self._options["name"]] = captured
