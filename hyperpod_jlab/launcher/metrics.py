"""What the ranks' output tells: read in a process of its own beside the launcher, so that a flood of numbers or a slow pattern holds nothing up."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import sys
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Pattern, Tuple

from .alarms import Alarm, Course, GpuAlarm, HangAlarm, LossAlarms, StragglerAlarm
from .bundle_files import AttemptPaths, BundleFiles, read_json, records_folder
from .contract import FORMAT
from .errors import LauncherError
from .metric_lines import NOT_FINITE, LineNumbers, MetricParser, may_have_numbers
from .processes import Child, Children
from .system import PARENT, die_with_parent, send


class MetricsArguments(NamedTuple):
    """What the process is told."""

    attempt: int
    node_rank: int
    task: Optional[int]


class MetricFile:
    """Appends records to the node's file of numbers; a full disk is no reason to end anything."""

    def __init__(self, files: BundleFiles, path: str) -> None:
        self._files = files
        self._path = path
        self._descriptor: Optional[int] = None
        self._is_line_broken = False

    def write(self, documents: List[Mapping[str, Any]]) -> None:
        """Append records; the first ones make the file."""
        if not documents:
            return
        data = b"".join(
            json.dumps(one, separators=(",", ":")).encode("utf-8") + b"\n" for one in documents
        )
        try:
            if self._descriptor is None:
                self._descriptor = self._files.open(self._path, os.O_WRONLY | os.O_APPEND)
                if os.fstat(self._descriptor).st_size == 0:
                    data = b'{"format":%d}\n' % FORMAT + data
            if self._is_line_broken:
                data = b"\n" + data
            self._is_line_broken = os.write(self._descriptor, data) < len(data)
        except OSError:  # the next ones may fit
            self._is_line_broken = True


class Spacing:
    """Keeps the file small: the more records a rank has, the farther apart those of one line's kind get. The newest is never lost."""

    GAPS = ((20_000, 0.0), (50_000, 0.5), (100_000, 2.0))
    WIDEST_S = 10.0

    def __init__(self) -> None:
        self._count = 0
        self._written_at: Dict[Tuple[str, ...], float] = {}
        self._pending: Dict[Tuple[str, ...], Mapping[str, Any]] = {}

    def take(self, document: Mapping[str, Any], now: float) -> List[Mapping[str, Any]]:
        """The records to be written for a new one."""
        key = tuple(document["values"])
        gap = next((gap for count, gap in self.GAPS if self._count < count), self.WIDEST_S)
        if gap and now - self._written_at.get(key, float("-inf")) < gap:
            self._pending[key] = document
            return []
        self._pending.pop(key, None)
        self._written_at[key] = now
        self._count += 1
        return [document]

    def flush(self) -> List[Mapping[str, Any]]:
        """The newest records that were held back."""
        found = sorted(self._pending.values(), key=lambda one: one["time"])
        self._pending.clear()
        return found


class RankReader:
    """Follows the log of one rank."""

    CHUNK = 1 << 16
    """Bytes that are looked at in one turn. Of a flood the newest count."""
    MAX_LINES = 8
    """Lines with numbers that are read in one turn; those with a value that is not finite come first."""
    PROGRESS_EVERY_S = 1.0

    def __init__(self, path: str, rank: int, patterns: Mapping[str, "Pattern[bytes]"]) -> None:
        self.course = Course(rank)
        self._path = path
        self._rank = rank
        self._patterns = patterns
        self._parser = MetricParser(patterns)
        self._losses = LossAlarms(rank)
        self._spacing = Spacing()
        self._descriptor: Optional[int] = None
        self._offset = 0
        self._rest = b""
        self._progress: Optional[Tuple[Optional[int], Optional[int]]] = None
        self._progress_at = float("-inf")

    def poll(self, now: float, is_last: bool) -> Tuple[List[Mapping[str, Any]], List[Alarm]]:
        """Look for new output: the records of its numbers, and the alarms that they raise."""
        records: List[Mapping[str, Any]] = []
        alarms: List[Alarm] = []
        data = self._new_bytes()
        if data:
            self.course.printed_at = now
        for line in self._lines(data, is_last):
            numbers = self._parser.read(line)
            if numbers is not None:
                self._take(numbers, now, records, alarms)
        if is_last:
            records += self._spacing.flush()
        return records, alarms

    def _take(
        self,
        numbers: LineNumbers,
        now: float,
        records: List[Mapping[str, Any]],
        alarms: List[Alarm],
    ) -> None:
        values = numbers.values
        self.course.report(numbers.step, now, values.get("step_time"))
        progress = (numbers.step, numbers.total)
        if not values:
            if progress == self._progress or now - self._progress_at < self.PROGRESS_EVERY_S:
                return
            self._progress_at = now
        self._progress = progress
        seconds = time.time()
        document: Dict[str, Any] = {"time": round(seconds, 3), "rank": self._rank}
        if numbers.step is not None:
            document["step"] = numbers.step
        if numbers.total is not None:
            document["total"] = numbers.total
        document["values"] = {
            name: value if math.isfinite(value) else str(value) for name, value in values.items()
        }
        records += self._spacing.take(document, now)
        alarms += self._losses.add(values, numbers.step, seconds)

    def _new_bytes(self) -> bytes:
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            size = os.fstat(self._descriptor).st_size
            if size < self._offset:  # somebody cut it short
                self._offset, self._rest = 0, b""
            if size == self._offset:
                return b""
            if size - self._offset > self.CHUNK:
                self._offset, self._rest = size - self.CHUNK, b""
            data = os.pread(self._descriptor, size - self._offset, self._offset)
        except OSError:
            return b""
        self._offset += len(data)
        return data

    def _lines(self, data: bytes, is_last: bool) -> List[bytes]:
        """The lines that may have numbers; of many the newest, and those that are not finite."""
        if not data and not is_last:
            return []
        text = (self._rest + data).replace(b"\r", b"\n")
        body, _, self._rest = text.rpartition(b"\n")
        if is_last:
            body, self._rest = text, b""
        if len(self._rest) > self.CHUNK:
            self._rest = b""
        if not self._patterns and not may_have_numbers(body):
            return []
        lines = body.split(b"\n")
        if len(lines) <= self.MAX_LINES:
            return lines
        is_wanted = (lambda line: True) if self._patterns else may_have_numbers
        chosen: Dict[int, bytes] = {}
        lowered = body.lower()
        bad = NOT_FINITE.search(lowered)
        if bad is not None:
            number = lowered.count(b"\n", 0, bad.start())
            chosen[number] = lines[number]
        looked = 0
        for number in range(len(lines) - 1, -1, -1):
            if is_wanted(lines[number]):
                chosen[number] = lines[number]
            looked += 1
            if len(chosen) >= self.MAX_LINES or looked >= 8 * self.MAX_LINES:
                break
        return [chosen[number] for number in sorted(chosen)]


class MetricsProcess:
    """Reads the output of all ranks of a node until it is told to end."""

    FAST_S, SLOW_S = 0.05, 0.25
    MAX_SHARE = 0.1
    """The most of one CPU that it takes: it looks seldomer then."""
    CHECK_EVERY_S = 1.0

    def __init__(self, bundle: str, arguments: MetricsArguments) -> None:
        records = records_folder(bundle, arguments.task)
        self._paths = AttemptPaths(bundle, records, arguments.attempt, arguments.node_rank)
        plan = read_json(os.path.join(bundle, "launch.json")) or {}
        processes = 1 if plan.get("launcher") == "none" else int(plan.get("processes_per_node", 1))
        patterns = compile_patterns(plan.get("metric_patterns") or {})
        first = arguments.node_rank * processes
        self._ranks = [
            RankReader(self._paths.rank_log(local_rank), first + local_rank, patterns)
            for local_rank in range(processes)
        ]
        self._file = MetricFile(BundleFiles(bundle), self._paths.metrics)
        self._hang, self._straggler, self._gpu = HangAlarm(), StragglerAlarm(), GpuAlarm()
        self._samples_offset = 0
        self._delay = self.FAST_S

    def run(self) -> None:
        """Read until the launcher says by SIGTERM that the ranks have ended, or is gone."""
        # Blocked, so that it ends the pause below and nothing else.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        next_check_at = time.monotonic() + self.CHECK_EVERY_S
        is_stopping = False
        while not is_stopping:
            began = time.process_time()
            now = time.monotonic()
            found = self.turn(now, False)
            if now >= next_check_at:
                next_check_at = now + self.CHECK_EVERY_S
                self._write([], self._check(now))
            cost = time.process_time() - began
            self._delay = self.FAST_S if found else min(self._delay * 1.5, self.SLOW_S)
            pause = max(self._delay, cost / self.MAX_SHARE)
            is_stopping = signal.sigtimedwait({signal.SIGTERM}, pause) is not None
        self.turn(time.monotonic(), True)

    def turn(self, now: float, is_last: bool) -> bool:
        """Look at all ranks once; whether one printed something."""
        records: List[Mapping[str, Any]] = []
        alarms: List[Alarm] = []
        for rank in self._ranks:
            of_rank, alarms_of_rank = rank.poll(now, is_last)
            records += of_rank
            alarms += alarms_of_rank
        self._write(records, alarms)
        return any(rank.course.printed_at == now for rank in self._ranks)

    def _check(self, now: float) -> List[Alarm]:
        courses = [rank.course for rank in self._ranks]
        seconds = time.time()
        hang = self._hang.check(courses, now, seconds)
        alarms = self._straggler.check(courses, seconds) + self._check_gpus()
        return alarms if hang is None else [*alarms, hang]

    def _check_gpus(self) -> List[Alarm]:
        """What the launcher's newest samples say of the GPUs."""
        alarms: List[Alarm] = []
        try:
            with open(self._paths.resources, "rb") as file:
                file.seek(self._samples_offset)
                data = file.read(1 << 16)
        except OSError:
            return []
        body, _, _ = data.rpartition(b"\n")
        self._samples_offset += len(body) + 1 if body else 0
        for line in body.split(b"\n"):
            try:
                document = json.loads(line)
                gpus = [(int(gpu[0]), gpu[1]) for gpu in document["gpus"]]
                at = float(document["time"])
            except (ValueError, KeyError, TypeError, IndexError):
                continue
            alarms += self._gpu.add(gpus, [rank.course.rank for rank in self._ranks], at)
        return alarms

    def _write(self, records: List[Mapping[str, Any]], alarms: List[Alarm]) -> None:
        documents = list(records)
        for alarm in alarms:
            document: Dict[str, Any] = {"time": round(time.time(), 3), "alarm": alarm.code}
            document.update(rank=alarm.rank, since=round(alarm.since, 3))
            if alarm.is_over:
                document["over"] = True
            else:
                document["message"] = alarm.message
            documents.append(document)
        self._file.write(documents)


def compile_patterns(texts: Mapping[str, Any]) -> Dict[str, "Pattern[bytes]"]:
    """The user's rules; those that are no regular expression with a group are left out."""
    patterns: Dict[str, Pattern[bytes]] = {}
    for name, text in texts.items():
        with contextlib.suppress(re.error, TypeError, UnicodeError):
            pattern = re.compile(str(text).encode("utf-8"))
            if pattern.groups == 1:
                patterns[str(name)] = pattern
    return patterns


class MetricsChild:
    """The process that reads the numbers, as the node sees it. Without it the node runs as well."""

    STOP_TIMEOUT_S = 2.0

    def __init__(self, children: Children, attempt_paths: AttemptPaths, task: Optional[int]) -> None:
        self._child: Optional[Child] = None
        self._kill_at: Optional[float] = None
        command = [sys.executable, "-I", "-S", os.path.abspath(__file__), "metrics"]
        command += ["--attempt=%d" % attempt_paths.attempt]
        command += ["--node-rank=%d" % attempt_paths.node_rank]
        if task is not None:
            command.append("--task=%d" % task)
        with contextlib.suppress(LauncherError):
            environment = dict(os.environ)
            self._child = children.start("metrics", command, environment, "/", is_counted=False)

    def poll(self) -> None:
        """A pattern that does not come to an end must not hold up the node's."""
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = None
            if self._child is not None and not self._child.ended:
                send(self._child.pid, signal.SIGKILL)

    def stop(self) -> None:
        """The ranks have ended: it reads the rest and ends."""
        if self._child is not None and not self._child.ended and self._kill_at is None:
            send(self._child.pid, signal.SIGTERM)
            self._kill_at = time.monotonic() + self.STOP_TIMEOUT_S


def run_metrics(arguments: MetricsArguments) -> int:
    """Be the process that reads the numbers."""
    parent = os.environ.pop(PARENT, "")
    die_with_parent(int(parent) if parent.isdigit() else None)
    with contextlib.suppress(OSError):
        os.nice(5)
    MetricsProcess(os.path.dirname(os.path.abspath(__file__)), arguments).run()
    return 0
