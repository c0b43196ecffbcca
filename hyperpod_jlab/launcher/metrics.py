"""What the ranks' output tells: read in a process of its own beside the launcher, so that a flood of numbers or a slow pattern holds nothing up."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import select
import signal
import sys
import time
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Pattern, Set, Tuple

from .alarms import Alarm, Course, GpuAlarm, HangAlarm, LossAlarms, StragglerAlarm
from .bundle_files import AttemptPaths, BundleFiles, read_json, records_folder
from .contract import FORMAT
from .errors import LauncherError
from .metric_lines import NOT_FINITE, LineNumbers, MetricParser, PatternTimeout, may_have_numbers
from .processes import Child, Children
from .system import PARENT, die_with_parent, send

EXIT_ALARM = 10
"""The process ended because an alarm is to end the attempt."""


class MetricsArguments(NamedTuple):
    """The arguments of the metrics process."""

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
                if os.fstat(self._descriptor).st_size == 0:  # else a stream was opened for it
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
    MAX_KINDS, MAX_KEY = 300, 20

    def __init__(self) -> None:
        self._count = 0
        self._written_at: Dict[Tuple[str, ...], float] = {}
        self._pending: Dict[Tuple[str, ...], Mapping[str, Any]] = {}

    def take(self, document: Mapping[str, Any], now: float) -> List[Mapping[str, Any]]:
        """The records to be written for a new one."""
        key = tuple(document["values"])[: self.MAX_KEY]
        if len(self._written_at) > self.MAX_KINDS:
            self._written_at.clear()
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
    MAX_SCANNED = 400
    PROGRESS_EVERY_S = 1.0
    BAR_REST_S = 0.15
    """Seconds of silence after which a bar's last state is told."""

    def __init__(self, path: str, rank: int, patterns: Mapping[str, "Pattern[bytes]"]) -> None:
        self.course = Course(rank)
        self._clock = time.time() - time.monotonic()  # a clock that is set must not bend a curve
        self._path = path
        self._rank = rank
        self._patterns = patterns
        self._parser = MetricParser(patterns, limited_search)
        self._losses = LossAlarms(rank)
        self._spacing = Spacing()
        self._descriptor: Optional[int] = None
        self._offset = 0
        self._rest = b""
        self._is_cut = False
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
            for numbers in self._parser.read(line):
                self._take(numbers, now, records, alarms)
        printed_at = self.course.printed_at or now
        if self._parser.has_pending and (is_last or now - printed_at >= self.BAR_REST_S):
            for numbers in self._parser.flush():
                self._take(numbers, now, records, alarms)
        while self._parser.slow_patterns:
            name = self._parser.slow_patterns.pop()
            write_note(
                "the pattern of the metric '%s' takes too long: it is not used any more" % name
            )
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
        if numbers.total is not None and numbers.step is not None:
            self.course.is_done = numbers.step >= numbers.total
        if not values:
            if progress == self._progress or now - self._progress_at < self.PROGRESS_EVERY_S:
                return
            self._progress_at = now
        self._progress = progress
        seconds = now + self._clock
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
                self._is_cut = True
            data = os.pread(self._descriptor, size - self._offset, self._offset)
        except OSError:
            return b""
        self._offset += len(data)
        if self._is_cut:  # what is left of a line would have another meaning
            _, separator, rest = data.partition(b"\n")
            self._is_cut = not separator
            return rest
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
        chosen: Dict[int, bytes] = {}
        lowered = body.lower()
        bad = NOT_FINITE.search(lowered)
        if bad is not None:
            number = lowered.count(b"\n", 0, bad.start())
            chosen[number] = lines[number]
        first = max(0, len(lines) - self.MAX_SCANNED)
        for number in range(len(lines) - 1, first - 1, -1):
            if self._is_wanted(lines[number]):
                chosen[number] = lines[number]
            if len(chosen) >= self.MAX_LINES:
                break
        return [chosen[number] for number in sorted(chosen)]

    def _is_wanted(self, line: bytes) -> bool:
        return may_have_numbers(line) or self._parser.has_own_values(line)


class AlarmActions:
    """What the user wants done on an alarm: a command, a request to a URL, the end of the attempt. Nothing of it is waited for."""

    TIMEOUT_S = 60.0
    WEBHOOK_TIMEOUT_S = 10.0

    def __init__(self, options: Mapping[str, Any], run_id: str, node_rank: int) -> None:
        self._command = options.get("command")
        self._webhook = options.get("webhook")
        self._stop_on = options.get("stop_on") or []
        self._run_id = run_id
        self._node_rank = node_rank
        self._running: List[Tuple[Any, float]] = []
        self._threads: List[Any] = []

    def run_beside(self, command: List[str], seconds: float) -> None:
        """Start a process whose output goes to the node's log, and end it after so long."""
        import subprocess

        with contextlib.suppress(OSError, ValueError):
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
            self._running.append((process, time.monotonic() + seconds))

    def finish(self, seconds: float) -> None:
        """Give what was begun some time to get through."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.poll(time.monotonic())
            if not self._running and not any(thread.is_alive() for thread in self._threads):
                return
            time.sleep(0.05)

    def take(self, alarm: Alarm) -> None:
        """Tell an alarm that begins."""
        if isinstance(self._command, str):
            self._run(self._command, alarm)
        if isinstance(self._webhook, str):
            self._post(self._webhook, alarm)

    def is_end(self, code: str) -> bool:
        """Whether an alarm is to end the attempt."""
        return code in self._stop_on

    def poll(self, now: float) -> None:
        """End commands that take too long."""
        for process, kill_at in list(self._running):
            if process.poll() is not None:
                self._running.remove((process, kill_at))
            elif now >= kill_at:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _run(self, command: str, alarm: Alarm) -> None:
        import subprocess

        environment = dict(os.environ)
        environment.update(
            HYPERPOD_RUN_ID=self._run_id,
            HYPERPOD_ALARM_CODE=alarm.code,
            HYPERPOD_ALARM_MESSAGE=alarm.message,
            HYPERPOD_ALARM_RANK="" if alarm.rank is None else str(alarm.rank),
        )
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                env=environment,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            write_note("the alarm's command could not be started: %s" % error)
            return
        self._running.append((process, time.monotonic() + self.TIMEOUT_S))

    def _post(self, url: str, alarm: Alarm) -> None:
        import threading

        document = {
            "run_id": self._run_id,
            "node_rank": self._node_rank,
            "code": alarm.code,
            "message": alarm.message,
            "rank": alarm.rank,
            "since": alarm.since,
        }
        data = json.dumps(document).encode("utf-8")
        thread = threading.Thread(target=self._send, args=(url, data), daemon=True)
        with contextlib.suppress(RuntimeError):  # no more threads for this user
            thread.start()
            self._threads.append(thread)

    def _send(self, url: str, data: bytes) -> None:
        import http.client
        import urllib.request

        # The spec allows http and https only.
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=self.WEBHOOK_TIMEOUT_S):  # noqa: S310
                pass
        except (OSError, ValueError, http.client.HTTPException) as error:
            write_note("the alarm's webhook failed: %s" % error)


def write_note(text: str) -> None:
    """Say something in the node's log."""
    with contextlib.suppress(OSError):
        os.write(1, ("hyperpod: " + text).encode("utf-8", "backslashreplace")[:4000] + b"\n")


class MetricsProcess:
    """Reads the output of all ranks of a node until it is told to end."""

    FAST_S, SLOW_S = 0.05, 0.25
    MAX_SHARE = 0.1
    """The most of one CPU that it takes: it looks seldomer then."""
    CHECK_EVERY_S = 1.0
    LATE_S = 5.0
    """A turn that comes so late was held up, as by a stopped node."""
    FINISH_S, LAST_FINISH_S = 10.0, 1.0
    """Seconds that commands and webhooks have before the attempt is ended, and when the ranks have ended by themselves."""
    MAX_STACKS = 8
    STACK_TIMEOUT_S = 5.0

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
        self._actions = AlarmActions(
            plan.get("alarms") or {}, str(plan.get("run_id")), arguments.node_rank
        )
        self._stop_text: Optional[str] = None
        self._hang_text = ""
        self._told_codes: Set[str] = set()
        self._files = BundleFiles(bundle)
        self._file = MetricFile(self._files, self._paths.metrics)
        self._hang, self._straggler, self._gpu = HangAlarm(), StragglerAlarm(), GpuAlarm()
        self._samples_offset = 0
        self._delay = self.FAST_S

    def run(self) -> int:
        """Read until the launcher says by SIGTERM that the ranks have ended, is gone, or an alarm is to end the attempt; the exit code."""
        wake_up, signalled = os.pipe()
        os.set_blocking(signalled, False)
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # see MetricsChild
        next_check_at = time.monotonic() + self.CHECK_EVERY_S
        is_stopping = False
        last_turn_at = time.monotonic()
        while not is_stopping:
            began = time.process_time()
            now = time.monotonic()
            if now - last_turn_at > self.LATE_S:
                for rank in self._ranks:
                    rank.course.shift(now - last_turn_at)
            last_turn_at = now
            found = self.turn(now, False)
            if now >= next_check_at:
                next_check_at = now + self.CHECK_EVERY_S
                self._write([], self._check(now))
                self._actions.poll(now)
            if self._stop_text is not None:
                self._actions.finish(self.FINISH_S)
                self._files.write(self._paths.alarm_stop, {"message": self._stop_text})
                return EXIT_ALARM
            cost = time.process_time() - began
            self._delay = self.FAST_S if found else min(self._delay * 1.5, self.SLOW_S)
            pause = max(self._delay, cost / self.MAX_SHARE)
            if select.select([wake_up], [], [], pause)[0]:
                is_stopping = signal.SIGTERM in os.read(wake_up, 4096)
        self.turn(time.monotonic(), True)
        self._actions.finish(self.LAST_FINISH_S)
        return 0

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
        if self._actions.is_end("hang") and self._hang.is_certain(courses, now):
            self._stop_text = self._stop_text or "hang: %s" % self._hang_text
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
                self._act(alarm)
            documents.append(document)
        self._file.write(documents)

    def _act(self, alarm: Alarm) -> None:
        whose = "" if alarm.rank is None else "rank %d: " % alarm.rank
        write_note("alarm %s: %s%s" % (alarm.code, whose, alarm.message))
        if self._is_first(alarm):
            self._actions.take(alarm)
        if alarm.code == "hang":
            self._print_stacks()
            self._hang_text = alarm.message
        elif self._actions.is_end(alarm.code) and self._stop_text is None:
            self._stop_text = "%s: %s" % (alarm.code, alarm.message)

    def _is_first(self, alarm: Alarm) -> bool:
        """Whether no rank and no other node has raised this alarm in this attempt: one cause is told once."""
        path = os.path.join(self._paths.status, ".alarm-%s.json" % alarm.code)
        try:
            return self._files.write_once(path, {"time": time.time(), "rank": alarm.rank})
        except OSError:
            return alarm.code not in self._told_codes
        finally:
            self._told_codes.add(alarm.code)

    def _print_stacks(self) -> None:
        """Where the ranks are, into the node's log, if py-spy is on the node."""
        import shutil

        program = shutil.which("py-spy")
        if program is None:
            return
        record = read_json(self._paths.node_record) or {}
        for rank in (record.get("ranks") or [])[: self.MAX_STACKS]:
            if rank.get("pid") and rank.get("ended_at") is None:
                command = [program, "dump", "--pid", str(int(rank["pid"]))]
                self._actions.run_beside(command, self.STACK_TIMEOUT_S)


SEARCH_TIMEOUT_S = 0.2


def _end_search(*_: object) -> None:
    raise PatternTimeout


@contextlib.contextmanager
def limited_search() -> Iterator[None]:
    """End a search of a pattern that does not come to an end."""
    signal.signal(signal.SIGALRM, _end_search)
    signal.setitimer(signal.ITIMER_REAL, SEARCH_TIMEOUT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


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

    def __init__(
        self, children: Children, attempt_paths: AttemptPaths, task: Optional[int]
    ) -> None:
        self._child: Optional[Child] = None
        self._kill_at: Optional[float] = None
        self._stop_path = attempt_paths.alarm_stop
        self._is_told = False
        command = [sys.executable, "-I", "-S", os.path.abspath(__file__), "metrics"]
        command += ["--attempt=%d" % attempt_paths.attempt]
        command += ["--node-rank=%d" % attempt_paths.node_rank]
        if task is not None:
            command.append("--task=%d" % task)
        # Of a run that ends before this process is up, the numbers count, too: SIGTERM waits for it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            with contextlib.suppress(LauncherError):
                environment = dict(os.environ)
                self._child = children.start("metrics", command, environment, "/", is_counted=False)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def poll(self) -> Optional[str]:
        """Why an alarm ends the attempt, if one does. A pattern that never comes to an end must not hold up the node's."""
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = None
            if self._child is not None and not self._child.ended:
                send(self._child.pid, signal.SIGKILL)
        child = self._child
        if child is None or not child.ended or child.exit_code != EXIT_ALARM or self._is_told:
            return None
        self._is_told = True
        return str((read_json(self._stop_path) or {}).get("message", "an alarm"))[:1000]

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
    return MetricsProcess(os.path.dirname(os.path.abspath(__file__)), arguments).run()
