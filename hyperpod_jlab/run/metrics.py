"""What a run's ranks print: numbers as series, how far it is, and alarms, from the launcher's records (docs/bundle-format.md)."""

from __future__ import annotations

import bisect
import json
import math
import os
import re
import secrets
import sys
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.core.metric_names import order_names
from hyperpod_jlab.core.records import MAX_NODES
from hyperpod_jlab.core.spec import AlarmCode
from hyperpod_jlab.core.wire import Time
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.big_records import Deadline, read_lines
from hyperpod_jlab.storage.bundle import visible_names
from hyperpod_jlab.storage.records import BundleReader

ALARM_CODES: tuple[AlarmCode, ...] = get_args(AlarmCode)

Point = tuple[int | None, float, float | None]
"""Step, Unix time, value; the step is null where the line had none, the value where it is not finite."""

_MAX_NAMES = 10_000
_MAX_FILE_BYTES = 512 << 20
_MAX_LINE_BYTES = 64 << 10
"""The launcher writes at most 40 names in a line."""
_MAX_NAME = 200
_MAX_SERIES = 20_000
_MAX_ALARMS = 2_000
_MAX_KNOWN = 20
_MAX_ANSWER_POINTS = 400_000
_MAX_POINTS = 2_000_000
"""Points of one run in memory, 32 bytes each. Of more, every second point of the older halves goes."""
_MAX_FOREIGN_POINTS = 200_000
_LOOK_EVERY_S = 1.0
_SILENT_S, _SILENT_INTERVALS = 60.0, 10.0
_BLOCK = 32
"""Points of which the lowest and the highest are kept, so that not all are looked at for each answer."""
_RATE_WINDOW = 50
"""Records from which the time left follows."""
_ATTEMPT = re.compile(r"attempt-([1-9][0-9]{0,8})")
_FILE = re.compile(r"node-(0|[1-9][0-9]{0,5})\.metrics\.jsonl")
_END = 1 << 18
"""Bytes at the end of a file in which the newest numbers are."""
_ALARM = re.compile(rb'"alarm"\s*:')
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class MetricSeries:
    """The numbers of one name that a rank printed in an attempt, in the order of their times.

    Attributes:
        name: As the trainer prints it; ``loss``, ``eval_loss``, ``learning_rate``, ``tokens_per_second`` and ``step_time`` (seconds) are normalized.
        points: Step or null, Unix time, value; the value is null where it was NaN or infinite.
        count: Number of points known; `points` may have fewer.
    """

    name: str
    rank: int
    attempt: int
    points: list[Point]
    count: int


@dataclass(frozen=True)
class MetricValue:
    """The newest value of a series; null where it is not finite."""

    value: float | None
    step: int | None
    time: float


@dataclass(frozen=True)
class Progress:
    """How far a run is. `total` and `seconds_left` are null where the ranks do not print the end."""

    step: int
    total: int | None
    seconds_left: float | None


@dataclass(frozen=True)
class RunAlarm:
    """Something is wrong with a run. `rank` is null for a whole node."""

    code: AlarmCode
    message: str
    rank: int | None
    since: Time


@dataclass(frozen=True)
class MetricSummary:
    """The newest numbers of a run, by name: of rank 0, else of another rank."""

    metrics: dict[str, MetricValue] = field(default_factory=dict)
    progress: Progress | None = None
    alarms: list[RunAlarm] = field(default_factory=list)


@dataclass(frozen=True)
class Spread:
    """The newest values of one name: of how many ranks, and the lowest and the highest finite one."""

    ranks: int
    lowest: float | None
    highest: float | None


@dataclass
class _Points:
    """The points of one series. A step of -1 means no step. `numbers` are sequence numbers: the order in which the records were read.

    Attributes:
        lows: For each whole block of 32 points the index of its lowest value; -1 if none is finite.
        highs: The same of its highest value.
        breaks: The index of its first value that is not finite; -1 if there is none.
    """

    numbers: array[int] = field(default_factory=lambda: array("q"))
    steps: array[int] = field(default_factory=lambda: array("q"))
    times: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))
    lows: array[int] = field(default_factory=lambda: array("q"))
    highs: array[int] = field(default_factory=lambda: array("q"))
    breaks: array[int] = field(default_factory=lambda: array("q"))

    def add(self, number: int, step: int | None, moment: float, value: float) -> None:
        self.numbers.append(number)
        self.steps.append(-1 if step is None else step)
        # A clock that goes back must not make a curve do so.
        self.times.append(max(moment, self.times[-1]) if self.times else moment)
        self.values.append(value)

    def thin_out(self) -> None:
        """Drop every second point of the older half."""
        half = len(self.times) // 2
        for name in ("numbers", "steps", "times", "values"):
            points: array[Any] = getattr(self, name)
            setattr(self, name, points[:half:2] + points[half:])
        del self.lows[:], self.highs[:], self.breaks[:]

    def know_blocks(self) -> None:
        """Look through the blocks that were completed since the last time."""
        whole = len(self.values) // _BLOCK
        for number in range(len(self.lows), whole):
            low, high, broken = _extremes(self.values, number * _BLOCK, (number + 1) * _BLOCK)
            self.lows.append(low)
            self.highs.append(high)
            self.breaks.append(broken)

    def point(self, index: int) -> Point:
        value = self.values[index]
        step = self.steps[index]
        return (None if step < 0 else step, self.times[index], value if math.isfinite(value) else None)


@dataclass(frozen=True)
class _Limits:
    """How much of a run is read.

    Attributes:
        points: Points in memory.
        attempts: The newest attempts.
        files: Files of all nodes.
        size: Bytes of all files.
        end: Bytes at the end of a file in which the newest numbers are.
    """

    points: int
    attempts: int
    files: int
    size: int
    end: int = _END


_OWN = _Limits(_MAX_POINTS, 1000, MAX_NODES, sys.maxsize)
_FOREIGN = _Limits(_MAX_FOREIGN_POINTS, 20, 1000, 64 << 20)
_FOREIGN_NEWEST = _Limits(_MAX_FOREIGN_POINTS, 2, 16, 256 << 10, 16 << 10)
"""Another user's run in a list: 16 files, of each the end."""


@dataclass
class _File:
    """A node's file, and how much of it was read."""

    path: Path
    offset: int = 0
    is_done: bool = False


_Key = tuple[int, str, int]
"""Attempt, name, rank."""


class RunMetrics:
    """The numbers of one run: reads what was added to its files since the last time. Thread-safe; may block.

    Args:
        records: The folder with the records of the run, or of an array's child.
        is_own: Whether it is the user's own run; others are read with tighter limits.
        newest_only: Whether only a summary is wanted: of long files, the end is read, and of the user's own the alarms before it.
    """

    def __init__(self, records: Path, *, is_own: bool, newest_only: bool = False) -> None:
        self._logs = records / "logs"
        self._lock = threading.Lock()
        self._files: dict[tuple[int, int], _File] = {}
        self._series: dict[_Key, _Points] = {}
        self._progress: dict[tuple[int, int], list[tuple[float, int, int | None]]] = {}
        self._alarms: dict[tuple[int, AlarmCode, int | None, int], RunAlarm] = {}
        self._count = 0
        self._is_own = is_own
        foreign = _FOREIGN_NEWEST if newest_only else _FOREIGN
        self._limits = _OWN if is_own else foreign
        self._size_left = self._limits.size
        self._by_attempt: dict[int, int] = {}
        self._is_behind = False
        self._version = 1
        self._newest_only = newest_only
        self._looked_at = float("-inf")
        self._newest = 0
        self._ident = secrets.token_hex(4)

    @property
    def cursor(self) -> str:
        """How far the records were read; `read` gives what came after it."""
        return f"{self._ident}-{self._version}"

    @property
    def count(self) -> int:
        """Points in memory."""
        return self._count

    @property
    def nodes(self) -> int:
        """Files that are looked at."""
        return len(self._files)

    @property
    def is_behind(self) -> bool:
        """Whether the last refresh ended before it had read everything; the next one continues."""
        return self._is_behind

    def refresh(self, deadline: Deadline | None = None) -> bool:
        """Read what is new; whether there was anything. New files are looked for at most once a second.

        Args:
            deadline: When to end, even if there is more; default: when all is read.
        """
        deadline = deadline or Deadline(math.inf)
        with self._lock:
            before, now = self._version, time.monotonic()
            if now - self._looked_at >= _LOOK_EVERY_S or not self._files:
                self._looked_at = now
                self._find_files()
            for (attempt, node), file in self._files.items():
                if deadline.is_over():
                    break
                if attempt == self._newest or not file.is_done:
                    self._read(attempt, node, file, deadline)
                    # What an earlier attempt writes late is read once more, and no further.
                    file.is_done = attempt < self._newest and not deadline.is_over()
            self._is_behind = deadline.is_over()
            return self._version > before

    def summary(self, *, ended: bool, now: float | None = None) -> MetricSummary:
        """The newest numbers of the newest attempt that has some.

        Args:
            ended: Whether the run has ended: no time is left then.
            now: Unix time; default: now.
        """
        with self._lock:
            attempt = max((key[0] for key in self._series), default=0)
            newest: dict[str, tuple[int, Point]] = {}
            for (number, name, rank), points in self._series.items():
                if number == attempt and points.times and rank <= newest.get(name, (rank, None))[0]:
                    newest[name] = (rank, points.point(len(points.times) - 1))
            return MetricSummary(
                {name: MetricValue(value, step, moment) for name, (_, (step, moment, value)) in sorted(newest.items())},
                self._read_progress(attempt, ended, time.time() if now is None else now),
                self._current_alarms(),
            )

    def read(
        self,
        names: Collection[str] = (),
        ranks: Collection[int] = (),
        *,
        most: int | None = None,
        begin: float | None = None,
        end: float | None = None,
        cursor: str | None = None,
    ) -> tuple[list[MetricSeries], str]:
        """The series, sorted by name, rank and attempt, and the cursor with which to continue.

        Args:
            names: Only these names; empty: all.
            ranks: Only these ranks; empty: all.
            most: Number of points of each: of more, the lowest and the highest of equal parts. All series together have a limit, too.
            begin: Only points from this Unix time on.
            end: Only points until this Unix time.
            cursor: Only points that were read after it; one of another reader gives all of them.
        """
        with self._lock:
            known = self.known(cursor)
            if most is not None:
                most = max(20, min(most, _MAX_ANSWER_POINTS // max(1, len(self._series))))
            found = []
            for (attempt, name, rank), points in self._series.items():
                if (names and name not in names) or (ranks and rank not in ranks):
                    continue
                chosen = _between(points.times, begin, end)
                if known:
                    first = bisect.bisect_right(points.numbers, known)
                    chosen = range(max(chosen.start, first), max(chosen.stop, first))
                if known and not chosen:
                    continue
                picked = chosen if most is None else _thin_out(points, chosen, most)
                found.append(MetricSeries(name, rank, attempt, [points.point(i) for i in picked], len(points.times)))
            ordered = sorted(found, key=lambda one: (one.name, one.rank, one.attempt))
            return ordered, self.cursor

    def ranges(self) -> dict[str, tuple[float | None, float | None]]:
        """The lowest and the highest finite value of each name, over all ranks and attempts."""
        with self._lock:
            found: dict[str, tuple[float | None, float | None]] = {}
            for (_, name, _), points in self._series.items():
                finite = [value for value in points.values if math.isfinite(value)]
                low, high = found.get(name, (None, None))
                found[name] = (
                    min([*finite, *([] if low is None else [low])], default=None),
                    max([*finite, *([] if high is None else [high])], default=None),
                )
            return found

    def explain_missing(
        self, names: Sequence[str], ranks: Sequence[int], attempt: int | None, *, ended: bool
    ) -> NotFoundError | None:
        """Why no series has these names, ranks and attempt, which were asked for; None if one has, or if there are no numbers at all.

        Args:
            names: Names; empty: all.
            ranks: Ranks; empty: all.
            attempt: The attempt; None: all.
            ended: Whether the run has ended: otherwise they may still come.
        """
        with self._lock:
            keys = sorted(self._series)
        so_far = "" if ended else " so far"
        if not keys or any(
            (not names or name in names) and (not ranks or rank in ranks) and attempt in {None, number}
            for number, name, rank in keys
        ):
            return None
        known_names = order_names(key[1] for key in keys)
        if names and not set(names) & {key[1] for key in keys}:
            what = f"no number named {' or '.join(names)}{so_far}"
            return _no_numbers(what, known_names, "name")
        known_ranks = sorted({key[2] for key in keys})
        if ranks and not set(ranks) & set(known_ranks):
            what = f"no numbers of rank {' or '.join(map(str, ranks))}{so_far}"
            return _no_numbers(what, known_ranks, "rank")
        known_attempts = sorted({key[0] for key in keys})
        if attempt is not None and attempt not in known_attempts:
            what = f"no numbers of attempt {attempt}{so_far}"
            return _no_numbers(what, known_attempts, "attempt")
        return NotFoundError(
            f"no number with this name, rank and attempt{so_far}",
            code="no_such_number",
            hint="leave out one of the options",
        )

    def spread(self, name: str) -> Spread:
        """The newest values of one name over the ranks, in the newest attempt that has some numbers."""
        with self._lock:
            attempt = max((key[0] for key in self._series), default=0)
            values = [
                points.values[-1]
                for (number, one, _), points in self._series.items()
                if number == attempt and one == name and points.values
            ]
        finite = [value for value in values if math.isfinite(value)]
        return Spread(len(values), min(finite, default=None), max(finite, default=None))

    def course(self, name: str, most: int) -> list[float | None]:
        """Values of one name at equal distances, the newest last: of the first rank that has it, over all attempts."""
        with self._lock:
            ranks = sorted({key[2] for key in self._series if key[1] == name})
            values: list[float] = []
            for key in sorted(self._series):
                if key[1] == name and key[2] == ranks[0]:
                    values.extend(self._series[key].values)
        count = min(most, len(values))
        picked = [values[(len(values) - 1) * i // max(1, count - 1)] for i in range(count)]
        return [value if math.isfinite(value) else None for value in picked]

    def known(self, cursor: str | None) -> int:
        """The number of the last record that a cursor has seen; 0 for none, or one of another reader."""
        ident, _, number = (cursor or "").partition("-")
        return int(number) if ident == self._ident and number.isdecimal() else 0

    # ---- files

    def _find_files(self) -> None:
        names = map(_ATTEMPT.fullmatch, visible_names(self._logs, _MAX_NAMES))
        attempts = sorted(int(found[1]) for found in names if found)[-self._limits.attempts :]
        self._newest = max([self._newest, *attempts[-1:]])
        for attempt in attempts:
            folder = self._logs / f"attempt-{attempt}"
            found = map(_FILE.fullmatch, visible_names(folder, _MAX_NAMES))
            for one in filter(None, found):
                self._files.setdefault((attempt, int(one[1])), _File(folder / one[0]))
        # What is over a limit, or comes too late, is old.
        ordered = sorted(self._files.items(), key=lambda item: (-item[0][0], item[0][1]))
        self._files = dict(ordered[: self._limits.files])

    def _read(self, attempt: int, node: int, file: _File, deadline: Deadline) -> None:
        try:
            descriptor = descent.open_file(file.path)
        except OSError:
            return
        try:
            size = min(os.fstat(descriptor).st_size, _MAX_FILE_BYTES)
            file.offset = min(file.offset, size)  # replaced: what was read stays
            end = size - self._limits.end if self._newest_only else 0
            if not self._is_own:
                file.offset = max(file.offset, end)
                size = min(size, file.offset + self._size_left)
            begin = file.offset
            lines = read_lines(descriptor, file.offset, size, deadline, longest=_MAX_LINE_BYTES)
            for line, offset in lines:
                if line and (offset > end or _ALARM.search(line)):
                    self._take(attempt, node, line)
                file.offset = offset
            self._size_left -= file.offset - begin
        except OSError:
            return
        finally:
            os.close(descriptor)

    def _take(self, attempt: int, node: int, line: bytes) -> None:
        """Take a record in; what is not one is left out."""
        try:
            document = json.loads(line)
            moment = _moment(document["time"])
            self._version += 1
            if moment is None:
                return
            if "alarm" in document:
                self._take_alarm(attempt, node, document, moment)
            else:
                self._take_values(attempt, document, moment)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, AttributeError):
            return

    def _take_values(self, attempt: int, document: dict[str, Any], moment: float) -> None:
        rank = _natural(document["rank"])
        step = None if document.get("step") is None else _natural(document["step"])
        total = None if document.get("total") is None else _natural(document["total"])
        for name, raw in document["values"].items():
            value = _NOT_FINITE[raw] if isinstance(raw, str) else float(raw)
            key = (attempt, _clean(str(name), _MAX_NAME), rank)
            points = self._series.get(key)
            if points is None:
                if len(self._series) >= _MAX_SERIES and not self._drop_oldest(attempt):
                    continue
                points = self._series[key] = _Points()
                self._by_attempt[attempt] = self._by_attempt.get(attempt, 0) + 1
            points.add(self._version, step, moment, value)
            self._count += 1
            if self._count > self._limits.points:
                self._thin_out()
        is_known = (attempt, rank) in self._progress or len(self._progress) < _MAX_SERIES
        if step is not None and is_known:
            steps = self._progress.setdefault((attempt, rank), [])
            if not steps or steps[-1][1] != step or steps[-1][2] != total:
                steps.append((moment, step, total))
                del steps[:-_RATE_WINDOW]

    def _drop_oldest(self, newest: int) -> bool:
        """Forget the series of the oldest attempt, if it is older than this one."""
        oldest = min(self._by_attempt)
        if oldest >= newest:
            return False
        del self._by_attempt[oldest]
        self._series = {key: one for key, one in self._series.items() if key[0] != oldest}
        self._count = sum(len(points.times) for points in self._series.values())
        return True

    def _thin_out(self) -> None:
        for points in self._series.values():
            points.thin_out()
        self._count = sum(len(points.times) for points in self._series.values())

    def _take_alarm(self, attempt: int, node: int, document: dict[str, Any], moment: float) -> None:
        code = document["alarm"]
        if code not in ALARM_CODES:
            return
        rank = None if document.get("rank") is None else _natural(document["rank"])
        key = (attempt, code, rank, node)
        if document.get("over") is True:
            self._alarms.pop(key, None)
            if code == "hang":  # the rank that was behind may be another one by then
                for other in [one for one in self._alarms if one[0] == attempt and one[1] == code and one[3] == node]:
                    del self._alarms[other]
        else:
            since = document.get("since")
            if len(self._alarms) >= _MAX_ALARMS:
                return
            self._alarms.setdefault(
                key, RunAlarm(code, _clean(str(document.get("message", "")), 1000), rank, _moment(since) or moment)
            )

    # ---- summaries

    def _read_progress(self, attempt: int, ended: bool, now: float) -> Progress | None:
        ranks = sorted(rank for number, rank in self._progress if number == attempt)
        if not ranks:
            return None
        steps = self._progress[attempt, ranks[0]]
        last_time, step, total = steps[-1]
        left = None
        same = [one for one in steps if one[2] == total]
        if not ended and total is not None and len(same) > 1 and same[-1][1] > same[0][1]:
            seconds = (same[-1][0] - same[0][0]) / (same[-1][1] - same[0][1])
            interval = (same[-1][0] - same[0][0]) / (len(same) - 1)
            # Of a run that is silent for long, nothing is promised.
            if now - last_time > max(_SILENT_S, _SILENT_INTERVALS * interval):
                return Progress(step, total, None)
            left = max(0.0, round(seconds * (total - step) - max(0.0, now - last_time), 1))
        return Progress(step, total, left)

    def _current_alarms(self) -> list[RunAlarm]:
        """The alarms of the newest attempt that has a file, one for each code."""
        by_code: dict[AlarmCode, list[tuple[int, RunAlarm]]] = {}
        for (number, code, _, node), alarm in self._alarms.items():
            if number == self._newest:
                # Of a hang, node 0 knows which ranks of all nodes are behind.
                place = node if code == "hang" else 0
                by_code.setdefault(code, []).append((place, alarm))
        found = []
        for code in ALARM_CODES:
            alarms = sorted(by_code.get(code, []), key=lambda one: (one[0], one[1].since, one[1].rank or 0))
            if alarms:
                first, others = alarms[0][1], len(alarms) - 1
                unit = "node" if first.rank is None or code == "hang" else "rank"
                more = f" ({others} more {unit}{'' if others == 1 else 's'})" if others else ""
                found.append(RunAlarm(code, first.message + more, first.rank, first.since))
        return found


def _no_numbers(message: str, known: Sequence[object], field: str) -> NotFoundError:
    """The error for a filter that matches nothing, with what it could match."""
    names = ", ".join(map(str, known[:_MAX_KNOWN])) + (", ..." if len(known) > _MAX_KNOWN else "")
    return NotFoundError(message, code="no_such_number", hint=f"there are: {names}", detail={"field": field})


def _moment(value: Any) -> float | None:
    """A Unix time; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 253_402_300_000 else None


def _clean(text: str, most: int) -> str:
    """A text of a rank as one line without control characters."""
    text = text[:most]
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else " " for one in text)


def _natural(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise ValueError
    return value


def _between(times: Sequence[float], begin: float | None, end: float | None) -> range:
    first = 0 if begin is None else bisect.bisect_left(times, begin)
    last = len(times) if end is None else bisect.bisect_right(times, end)
    return range(first, max(first, last))


def _thin_out(points: _Points, chosen: range, most: int) -> Sequence[int]:
    """At most so many of the indices, and those of values that are not finite: the first and the last, and the lowest and the highest of equal parts."""
    if len(chosen) <= max(most, 4):
        return chosen
    picked = {chosen[0], chosen[-1]}
    parts = max(1, (most - 2) // 2)
    first, last = -(-chosen.start // _BLOCK), chosen.stop // _BLOCK
    if last - first < parts:
        edges = [chosen.start + len(chosen) * number // parts for number in range(parts + 1)]
        for begin, end in pairwise(edges):
            picked.update(_extremes(points.values, begin, end))
    else:
        points.know_blocks()
        picked.update(_extremes(points.values, chosen.start, first * _BLOCK))
        picked.update(_extremes(points.values, last * _BLOCK, chosen.stop))
        parts = max(1, (most - 6) // 2)
        edges = [first + (last - first) * number // parts for number in range(parts + 1)]
        for begin, end in pairwise(edges):
            picked.update(_extremes_of_blocks(points, begin, end))
    return sorted(picked - {-1})


def _extremes(values: array[float], begin: int, end: int) -> tuple[int, int, int]:
    """The indices of the lowest, the highest and the first value that is not finite; -1 for none."""
    part = values[begin:end]
    if not part:
        return -1, -1, -1
    if math.isfinite(sum(part)):
        return begin + part.index(min(part)), begin + part.index(max(part)), -1
    finite = [i for i in range(begin, end) if math.isfinite(values[i])]
    broken = next((i for i in range(begin, end) if not math.isfinite(values[i])), -1)
    if not finite:
        return -1, -1, broken
    return min(finite, key=values.__getitem__), max(finite, key=values.__getitem__), broken


def _extremes_of_blocks(points: _Points, begin: int, end: int) -> tuple[int, int, int]:
    """The same of whole blocks."""
    lows, highs, value = points.lows[begin:end], points.highs[begin:end], points.values.__getitem__
    if max(points.breaks[begin:end]) < 0:
        return min(lows, key=value), max(highs, key=value), -1
    broken = next(i for i in points.breaks[begin:end] if i >= 0)
    low = min((i for i in lows if i >= 0), key=value, default=-1)
    return low, max((i for i in highs if i >= 0), key=value, default=-1), broken


class MetricsCache:
    """The numbers of the runs that were asked for last, so that each answer reads only what is new."""

    MAX_RUNS, MAX_POINTS = 120, 6_000_000

    def __init__(self, open_bundle: Callable[[str], BundleReader]) -> None:
        self._open_bundle = open_bundle
        self._lock = threading.Lock()
        self._runs: OrderedDict[tuple[str, str], RunMetrics] = OrderedDict()

    def get(self, run_id: str) -> RunMetrics:
        """The numbers of a run, as they were read last. May block.

        Raises:
            NotFoundError: The run does not exist.
        """
        bundle = self._open_bundle(run_id)
        key = (run_id, str(bundle.records))
        with self._lock:
            found = self._runs.pop(key, None) or RunMetrics(bundle.records, is_own=bundle.is_own)
            self._runs[key] = found
            while len(self._runs) > self.MAX_RUNS or (len(self._runs) > 1 and self._points() > self.MAX_POINTS):
                self._runs.popitem(last=False)
            return found

    def _points(self) -> int:
        return sum(run.count for run in self._runs.values())

    def summary(self, run_id: str, *, ended: bool, deadline: Deadline | None = None) -> MetricSummary:
        """The newest numbers of a run; none if its records cannot be read. May block.

        Args:
            run_id: The run.
            ended: Whether it has ended.
            deadline: When to end reading.
        """
        try:
            metrics = self.get(run_id)
            metrics.refresh(deadline)
        except HyperpodError:
            return MetricSummary()
        return metrics.summary(ended=ended)

    def newest(self, run_id: str, *, ended: bool, deadline: Deadline | None = None) -> MetricSummary:
        """As `summary`, but fast and for many runs: without names that were not printed lately. Nothing is kept."""
        try:
            bundle = self._open_bundle(run_id)
        except HyperpodError:
            return MetricSummary()
        metrics = RunMetrics(bundle.records, is_own=bundle.is_own, newest_only=True)
        metrics.refresh(deadline)
        return metrics.summary(ended=ended)
