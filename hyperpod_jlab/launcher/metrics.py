"""What the ranks' output tells: read in a process of its own beside the launcher, so that a flood of numbers or a slow pattern holds nothing up."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import select
import signal
import time
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, Optional, Pattern, Sequence, Tuple

from .alarms import Alarm, Course, HangAlarm, LossAlarms
from .bundle_files import AttemptPaths, BundleFiles, read_json
from .contract import FORMAT, STACK_SIGNAL
from .errors import LauncherError
from .metric_lines import NOT_FINITE, LineNumbers, MetricParser, PatternTimeout, is_whole_bar, may_have_numbers
from .other_nodes import newest_steps
from .processes import Child, Children
from .system import describe_end, send, topmost_catchers
from .webhook import Webhook, posted_run_id

EXIT_ALARM = 10
"""The process ended because an alarm is to end the attempt."""


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
        data = b"".join(json.dumps(one, separators=(",", ":")).encode("utf-8") + b"\n" for one in documents)
        try:
            if self._descriptor is None:
                self._descriptor = self._files.open(self._path, os.O_WRONLY | os.O_APPEND)
                if os.fstat(self._descriptor).st_size == 0:  # else a reader was there before
                    data = b'{"format":%d}\n' % FORMAT + data
            if self._is_line_broken:
                data = b"\n" + data
            self._is_line_broken = os.write(self._descriptor, data) < len(data)
        except OSError:  # the next ones may fit
            self._is_line_broken = True


class Spacing:
    """Keeps the file small: a rank that has many records gets them farther apart, those of each line's kind. The newest is never lost."""

    FREE = 20_000
    GAP_S = 5.0
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
        is_close = now - self._written_at.get(key, float("-inf")) < self.GAP_S
        if is_close and self._count >= self.FREE:
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
    REST_S = 5.0
    """Seconds of silence after which held-back records are written. Shorter than any hang, so that other nodes see the newest step."""

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
        self._is_behind_bar = False
        """The last line's beginning was a bar, which is read already."""
        self._progress: Optional[Tuple[Optional[int], Optional[int]]] = None
        self._progress_at = float("-inf")

    def poll(self, now: float, is_last: bool) -> Tuple[List[Mapping[str, Any]], List[Alarm]]:
        """Look for new output: the records of its numbers, and the alarms that they raise."""
        records: List[Mapping[str, Any]] = []
        alarms: List[Alarm] = []
        data = self._new_bytes()
        if data:
            self.course.take_output(now)
        found: List[LineNumbers] = []
        for line in self._lines(data, is_last):
            found += self._parser.read(line, self._is_behind_bar)
            self._is_behind_bar = False
        printed_at = self.course.printed_at or now
        is_resting = now - printed_at >= self.BAR_REST_S
        if (self._parser.awaits_bar or is_resting) and is_whole_bar(self._rest):
            found += self._parser.read(self._rest, self._is_behind_bar)
            self._rest, self._is_behind_bar = b"", True
        if is_last or is_resting:
            found += self._parser.flush()
        for numbers in found:
            self._take(numbers, now, records, alarms)
        while self._parser.slow_patterns:
            name = self._parser.slow_patterns.pop()
            write_note("the pattern of the metric '%s' takes too long: it is not used any more" % name)
        if is_last or now - printed_at >= self.REST_S:
            records += self._spacing.flush()
        return records, alarms

    def _take(self, numbers: LineNumbers, now: float, records: List[Mapping[str, Any]], alarms: List[Alarm]) -> None:
        values = numbers.values
        self.course.report(numbers.step, now)
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
        document["values"] = {name: value if math.isfinite(value) else str(value) for name, value in values.items()}
        records += self._spacing.take(document, now)
        alarms += self._losses.add(values, numbers.step, seconds)

    def skip(self) -> None:
        """Start reading at the end of the log."""
        with contextlib.suppress(OSError):
            self._offset = os.stat(self._path).st_size
            self._is_cut = True

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
        body, _, self._rest = (text, b"", b"") if is_last else text.rpartition(b"\n")
        if len(self._rest) > self.CHUNK:
            self._rest = b""
        if not self._patterns and not may_have_numbers(body):
            self._is_behind_bar = self._is_behind_bar and b"\n" not in text
            return []
        lines = body.split(b"\n")
        if len(lines) <= self.MAX_LINES:
            return lines
        chosen: List[int] = []
        for number in range(len(lines) - 1, max(-1, len(lines) - 1 - self.MAX_SCANNED), -1):
            if may_have_numbers(lines[number]) or self._parser.has_own_values(lines[number]):
                chosen.append(number)
            if len(chosen) == self.MAX_LINES:
                break
        lowered = body.lower()
        bad = NOT_FINITE.search(lowered)
        if bad is not None:
            chosen.append(lowered.count(b"\n", 0, bad.start()))
        self._is_behind_bar = self._is_behind_bar and 0 in chosen
        return [lines[number] for number in sorted(set(chosen))]


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
    FINISH_S = 10.0
    """Seconds that the webhook has at the end of the attempt."""
    REPEAT_S = 600.0
    """Seconds from one post of an alarm to the next one of the same code."""
    LATER_S = 2.0
    """How much longer than node 0, which sees the ranks of all nodes, another node waits until it calls a silence a hang."""
    MAX_STACKS = 8
    """Ranks whose stacks are taken by py-spy."""
    STACK_TIMEOUT_S = 5.0

    def __init__(
        self, attempt_paths: AttemptPaths, is_restart: bool = False, secrets: Optional[Mapping[str, str]] = None
    ) -> None:
        self._paths = attempt_paths
        plan = read_json(os.path.join(attempt_paths.bundle, "launch.json")) or {}
        self._run_id = posted_run_id(plan, attempt_paths)
        self._nodes = int(plan.get("nodes", 1))
        processes = 1 if plan.get("launcher") == "none" else int(plan.get("processes_per_node", 1))
        patterns = compile_patterns(plan.get("metric_patterns") or {})
        first = attempt_paths.node_rank * processes
        self._ranks = [
            RankReader(self._paths.rank_log(local_rank), first + local_rank, patterns)
            for local_rank in range(processes)
        ]
        if is_restart:
            for rank in self._ranks:
                rank.skip()
        options = plan.get("alarms") or {}
        self._stop_on = options.get("stop_on") or []
        url = options.get("webhook")
        self._webhook = None if url is None else Webhook(str(url), secrets or {}, write_note)
        self._stop_text: Optional[str] = None
        self._hang_text = ""
        self._ended_ranks: FrozenSet[int] = frozenset()
        self._record_time = 0
        self._files = BundleFiles(attempt_paths.bundle)
        self._file = MetricFile(self._files, self._paths.metrics)
        self._hang = HangAlarm()
        self._delay = self.FAST_S

    def run(self) -> int:
        """Read until the launcher says by SIGTERM that the ranks have ended, is gone, or an alarm is to end the attempt; the exit code."""
        wake_up, signalled = os.pipe()
        os.set_blocking(signalled, False)
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
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
                self._check_hang(now)
            if self._stop_text is not None:
                self._files.write(self._paths.alarm_stop, {"message": self._stop_text})
                self._finish()
                return EXIT_ALARM
            cost = time.process_time() - began
            self._delay = self.FAST_S if found else min(self._delay * 1.5, self.SLOW_S)
            pause = max(self._delay, cost / self.MAX_SHARE)
            if select.select([wake_up], [], [], pause)[0]:
                is_stopping = signal.SIGTERM in os.read(wake_up, 4096)
        now = time.monotonic()
        self.turn(now, True)
        if self._hang.is_fired:
            self._check_hang(now)
        self._finish()
        return 0

    def turn(self, now: float, is_last: bool) -> bool:
        """Look at all ranks once; whether one printed something."""
        for rank in self._ranks:
            self._write(*rank.poll(now, is_last))
        return any(rank.course.printed_at == now for rank in self._ranks)

    def _finish(self) -> None:
        if self._webhook is not None:
            self._webhook.finish(self.FINISH_S)

    def _running_courses(self) -> List[Course]:
        """Of the ranks that have not ended, as the node's record says."""
        with contextlib.suppress(OSError, KeyError, TypeError):
            changed = os.stat(self._paths.node_record).st_mtime_ns
            if changed != self._record_time:
                self._record_time = changed
                states = (read_json(self._paths.node_record) or {})["ranks"]
                self._ended_ranks = frozenset(state["rank"] for state in states if state["ended_at"] is not None)
        courses = [rank.course for rank in self._ranks]
        return [one for one in courses if one.rank not in self._ended_ranks]

    def _check_hang(self, now: float) -> None:
        courses = self._running_courses()
        is_first = self._paths.node_rank == 0
        alarm = self._hang.check(
            courses, now, time.time(), 0.0 if is_first else self.LATER_S, self._other_steps if is_first else dict
        )
        self._write([], [] if alarm is None else [alarm])
        if "hang" in self._stop_on and self._hang.is_certain(courses, now):
            self._stop_text = self._stop_text or "hang: %s" % self._hang_text

    def _other_steps(self) -> Dict[int, int]:
        return newest_steps(self._paths, self._nodes, len(self._ranks))

    def _write(self, records: List[Mapping[str, Any]], alarms: List[Alarm]) -> None:
        documents = list(records)
        for alarm in alarms:
            document: Dict[str, Any] = {"time": round(time.time(), 3), "alarm": alarm.code}
            document.update(rank=alarm.rank, since=round(alarm.since, 3))
            if alarm.is_over:
                document["over"] = True
            else:
                document["message"] = alarm.message
                self._raise(alarm)
            documents.append(document)
        self._file.write(documents)

    def _raise(self, alarm: Alarm) -> None:
        """Tell an alarm that begins, and do what it asks for."""
        whose = "" if alarm.rank is None else "rank %d: " % alarm.rank
        write_note("alarm %s: %s%s" % (alarm.code, whose, alarm.message))
        if self._webhook is not None and self._may_post(alarm):
            document = {"run_id": self._run_id, "node_rank": self._paths.node_rank}
            document.update(code=alarm.code, message=alarm.message)
            self._webhook.post({**document, "rank": alarm.rank, "since": alarm.since})
        if alarm.code == "hang":
            self._print_stacks()
            self._hang_text = alarm.message
        elif alarm.code in self._stop_on and self._stop_text is None:
            self._stop_text = "%s: %s%s" % (alarm.code, whose, alarm.message)

    def _may_post(self, alarm: Alarm) -> bool:
        """Whether no rank or node has posted an alarm of this code lately."""
        path, now = self._paths.alarm_posted(alarm.code), time.time()
        posted = read_json(path)
        if posted is not None and now - float(posted.get("time") or 0.0) >= self.REPEAT_S:
            with contextlib.suppress(OSError):  # of several nodes one comes first
                os.rename(path, path + ".before")
        record = {"time": now, "node_rank": self._paths.node_rank, "rank": alarm.rank}
        with contextlib.suppress(OSError):
            return self._files.write_once(path, record)
        return True

    def _print_stacks(self) -> None:
        """Where the ranks are: those that catch the signal write it to their own logs, of the others py-spy, if it is on the node, to the node's log."""
        import shutil
        import threading

        record = read_json(self._paths.node_record) or {}
        silent: List[int] = []
        for state in record.get("ranks") or []:
            if not state.get("pid") or state.get("ended_at") is not None:
                continue
            pid, course = int(state["pid"]), self._ranks[int(state["local_rank"])].course
            # To one that does not catch it, it would be the end.
            catchers = [] if STACK_SIGNAL is None else topmost_catchers(pid, STACK_SIGNAL)
            if catchers:
                course.answers_until = time.monotonic() + self.STACK_TIMEOUT_S
            if not [one for one in catchers if STACK_SIGNAL and send(one, STACK_SIGNAL)]:
                silent.append(pid)
        program = shutil.which("py-spy")
        if program is not None and silent:
            arguments = (program, silent[: self.MAX_STACKS], self.STACK_TIMEOUT_S)
            with contextlib.suppress(RuntimeError):  # no more threads for this user
                threading.Thread(target=dump_stacks, args=arguments, daemon=True).start()


def dump_stacks(program: str, pids: Sequence[int], seconds: float) -> None:
    """Have py-spy write the stacks of processes to the node's log, each in so many seconds."""
    import subprocess

    for pid in pids:
        command = [program, "dump", "--pid", str(pid)]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, stdin=subprocess.DEVNULL, timeout=seconds, check=False)


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

    STOP_TIMEOUT_S = MetricsProcess.FINISH_S + 2.0
    MAX_RESTARTS = 3

    def __init__(
        self,
        children: Children,
        attempt_paths: AttemptPaths,
        log_note: Callable[[str], None],
        secrets: Mapping[str, str],
    ) -> None:
        self._secrets = secrets
        self._children = children
        self._paths = attempt_paths
        self._log_note = log_note
        self._child: Optional[Child] = None
        self._kill_at: Optional[float] = None
        self._restarts = 0
        self._start()

    def _start(self) -> None:
        paths, secrets, is_restart = self._paths, self._secrets, self._restarts > 0
        self._child = None
        with contextlib.suppress(LauncherError):
            self._child = self._children.fork("metrics", lambda: run_metrics(paths, is_restart, secrets))

    def poll(self, is_ending: bool) -> Optional[str]:
        """Why an alarm ends the attempt, if one does; said once. A process that was killed, as for want of memory, is started again.

        Args:
            is_ending: Whether the node is ending all of its processes.
        """
        child = self._child
        if child is None:
            return None
        if not child.ended:
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                send(child.pid, signal.SIGKILL)
            return None
        self._child = None
        if child.exit_code == EXIT_ALARM:
            record = read_json(self._paths.alarm_stop) or {}
            return str(record.get("message", "an alarm"))[:1000]
        if child.exit_code and self._kill_at is None and not is_ending:
            text = "the process that reads numbers %s"
            self._log_note(text % describe_end(child.exit_code, child.signal))
            if self._restarts < self.MAX_RESTARTS:
                self._restarts += 1
                self._start()
        return None

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._child is not None

    def stop(self) -> None:
        """The ranks have ended: it reads the rest, gives what an alarm has started some seconds, and ends."""
        if self._child is not None and not self._child.ended and self._kill_at is None:
            send(self._child.pid, signal.SIGTERM)
            self._kill_at = time.monotonic() + self.STOP_TIMEOUT_S


def run_metrics(
    attempt_paths: AttemptPaths, is_restart: bool = False, secrets: Optional[Mapping[str, str]] = None
) -> int:
    """Be the process that reads the numbers; of a restart only those that come from now on."""
    with contextlib.suppress(OSError):
        os.nice(5)
    return MetricsProcess(attempt_paths, is_restart, secrets).run()
