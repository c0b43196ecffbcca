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
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    Optional,
    Pattern,
    Set,
    Tuple,
)

from .alarms import Alarm, Course, GpuAlarm, HangAlarm, LossAlarms, StragglerAlarm
from .bundle_files import AttemptPaths, BundleFiles, read_json
from .contract import FORMAT, STACK_SIGNAL
from .errors import LauncherError
from .metric_lines import (
    NOT_FINITE,
    LineNumbers,
    MetricParser,
    PatternTimeout,
    is_whole_bar,
    may_have_numbers,
)
from .other_nodes import OtherNodes, Pace
from .processes import Child, Children
from .system import describe_end, send, topmost_catchers

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
        self._progress: Optional[Tuple[Optional[int], Optional[int]]] = None
        self._progress_at = float("-inf")

    def poll(self, now: float, is_last: bool) -> Tuple[List[Mapping[str, Any]], List[Alarm]]:
        """Look for new output: the records of its numbers, and the alarms that they raise."""
        records: List[Mapping[str, Any]] = []
        alarms: List[Alarm] = []
        data = self._new_bytes()
        if data:
            self.course.take_output(now)
        for line in self._lines(data, is_last):
            for numbers in self._parser.read(line):
                self._take(numbers, now, records, alarms)
        printed_at = self.course.printed_at or now
        is_resting = now - printed_at >= self.BAR_REST_S
        if (self._parser.awaits_bar or is_resting) and is_whole_bar(self._rest):
            for numbers in self._parser.read(self._rest):  # read again later, which tells nothing
                self._take(numbers, now, records, alarms)
        if self._parser.has_pending and (is_last or is_resting):
            for numbers in self._parser.flush():
                self._take(numbers, now, records, alarms)
        while self._parser.slow_patterns:
            name = self._parser.slow_patterns.pop()
            write_note(
                "the pattern of the metric '%s' takes too long: it is not used any more" % name
            )
        if is_last or now - printed_at >= self.REST_S:
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

    def __init__(
        self,
        options: Mapping[str, Any],
        run_id: str,
        node_rank: int,
        secrets: Optional[Mapping[str, str]] = None,
    ) -> None:
        self._secrets = secrets or {}
        self._command = options.get("command")
        self._webhook = options.get("webhook")
        """A URL, or ``${NAME}``: the secret NAME is the URL."""
        self._stop_on = options.get("stop_on") or []
        self._run_id = run_id
        self._node_rank = node_rank
        self._running: List[Tuple[Any, float, str]] = []
        """Process, when to kill it, and its name in the note about a failure; an empty name: no note."""
        self._threads: List[Any] = []

    def run_beside(self, command: List[str], seconds: float) -> None:
        """Start a process whose output goes to the node's log, and end it after so long."""
        import subprocess

        with contextlib.suppress(OSError, ValueError):
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
            self._running.append((process, time.monotonic() + seconds, ""))

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
            self._post(self._secret_of(self._webhook), alarm)

    def is_end(self, code: str) -> bool:
        """Whether an alarm is to end the attempt."""
        return code in self._stop_on

    def poll(self, now: float) -> None:
        """End commands that take too long."""
        for entry in list(self._running):
            process, kill_at, name = entry
            code = process.poll()
            if code is not None:
                self._running.remove(entry)
                if code and name:
                    write_note("%s failed with %d" % (name, code))
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
        name = "the command of the alarm %s" % alarm.code
        self._running.append((process, time.monotonic() + self.TIMEOUT_S, name))

    def _secret_of(self, url: str) -> str:
        reference = re.fullmatch(r"\$\{(\w+)\}", url)
        if reference is None:
            return url
        # Where the engine delivers a secret as a variable, it is in no file.
        return self._secrets.get(reference[1], os.environ.get(reference[1], "")).strip()

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

        class NoRedirect(urllib.request.HTTPRedirectHandler):
            """Who answers there may not send the node to an address of its network."""

            def redirect_request(self, *_: Any) -> None:
                return None

        try:
            if not url.startswith(("http://", "https://")):
                raise ValueError("its URL begins with neither https:// nor http://")
            request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310
            opener = urllib.request.build_opener(NoRedirect)
            with opener.open(request, timeout=self.WEBHOOK_TIMEOUT_S):
                pass
        except (OSError, ValueError, http.client.HTTPException) as error:
            # The text may have the URL, or a part of it.
            name = "%s %s" % (type(error).__name__, getattr(error, "code", ""))
            text = str(error) if url == self._webhook else name.strip()
            write_note("the alarm's webhook failed: %s" % text)


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
    """Seconds that commands and webhooks have at the end of the attempt."""
    REPEAT_S = 60.0
    """Seconds from one call of the command and the webhook for an alarm to the next one, if it was over meanwhile."""
    LATER_S = 2.0
    """How much longer than node 0, which sees the ranks of all nodes, another node waits until it calls a silence a hang."""
    MAX_STACKS = 8
    """Ranks whose stacks are taken by py-spy."""
    STACK_TIMEOUT_S = 5.0

    def __init__(
        self,
        attempt_paths: AttemptPaths,
        is_restart: bool = False,
        secrets: Optional[Mapping[str, str]] = None,
    ) -> None:
        self._paths = attempt_paths
        plan = read_json(os.path.join(attempt_paths.bundle, "launch.json")) or {}
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
        self._actions = AlarmActions(
            plan.get("alarms") or {}, str(plan.get("run_id")), attempt_paths.node_rank, secrets
        )
        self._stop_text: Optional[str] = None
        self._hang_text = ""
        self._told_codes: Set[str] = set()
        self._active: Dict[str, Set[Optional[int]]] = {}
        """The ranks by the code of their alarms."""
        self._ended_ranks: FrozenSet[int] = frozenset()
        self._record_time = 0
        self._files = BundleFiles(attempt_paths.bundle)
        self._file = MetricFile(self._files, self._paths.metrics)
        self._hang, self._straggler, self._gpu = HangAlarm(), StragglerAlarm(), GpuAlarm()
        self._samples_offset = 0
        self._delay = self.FAST_S
        nodes = int(plan.get("nodes", 1))
        self._has_node_0 = False
        self._other_nodes = (
            OtherNodes(self._paths, nodes, processes)
            if attempt_paths.node_rank == 0 and nodes > 1
            else None
        )
        self._is_one_of_many = nodes > 1
        self._own_paces = {rank.course.rank: Pace() for rank in self._ranks}
        self._far_straggler = StragglerAlarm()

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
        now = time.monotonic()
        self.turn(now, True)
        hang = self._check_hang(self._running_courses(), now, time.time())
        if hang is not None and hang.is_over:
            self._write([], [hang])
        self._actions.finish(self.FINISH_S)
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

    def _running_courses(self) -> List[Course]:
        """Of the ranks that have not ended, as the node's record says."""
        with contextlib.suppress(OSError, KeyError, TypeError):
            changed = os.stat(self._paths.node_record).st_mtime_ns
            if changed != self._record_time:
                self._record_time = changed
                states = (read_json(self._paths.node_record) or {})["ranks"]
                self._ended_ranks = frozenset(
                    state["rank"] for state in states if state["ended_at"] is not None
                )
        courses = [rank.course for rank in self._ranks]
        return [one for one in courses if one.rank not in self._ended_ranks]

    def _check(self, now: float) -> List[Alarm]:
        courses = self._running_courses()
        seconds = time.time()
        hang = self._check_hang(courses, now, seconds)
        if self._actions.is_end("hang") and self._hang.is_certain(courses, now):
            self._stop_text = self._stop_text or "hang: %s" % self._hang_text
        alarms = self._claimed(self._straggler, self._straggler.check(courses, seconds))
        alarms += self._compare_nodes(seconds) + self._check_gpus(now, seconds)
        return alarms if hang is None else [*alarms, hang]

    def _check_hang(self, courses: List[Course], now: float, seconds: float) -> Optional[Alarm]:
        if self._other_nodes is not None:
            return self._hang.check(
                courses, now, seconds, other_steps=self._other_nodes.look_at_all
            )
        if self._is_one_of_many and not self._has_node_0:
            # Without shared storage its record is not here.
            self._has_node_0 = os.path.exists(self._paths.node_record_path(0))
        return self._hang.check(courses, now, seconds, self.LATER_S if self._has_node_0 else 0.0)

    def _compare_nodes(self, seconds: float) -> List[Alarm]:
        """What node 0 sees of the ranks of all nodes."""
        others = self._other_nodes
        if others is None or not others.look(self.CHECK_EVERY_S) or not others.paces:
            return []
        for rank in self._ranks:
            course = rank.course
            if course.step is not None and course.reported_at is not None:
                self._own_paces[course.rank].add(course.step, course.reported_at)
        known = {}
        for paces in (self._own_paces, others.paces):
            for number, pace in paces.items():
                time_of_step = pace.seconds
                if time_of_step is not None:
                    known[number] = time_of_step
        return self._claimed(self._far_straggler, self._far_straggler.compare(known, seconds))

    def _claimed(self, straggler: StragglerAlarm, alarms: List[Alarm]) -> List[Alarm]:
        """The alarms that no other node has raised. Node 0 and the rank's own node may both find the same slow rank."""
        if not self._is_one_of_many:
            return alarms
        told = []
        for alarm in alarms:
            path = self._paths.straggler(alarm.rank or 0)
            if alarm.is_over:
                with contextlib.suppress(OSError):
                    os.unlink(path)
            elif not self._claim(path):
                straggler.forget(alarm.rank or 0)  # until the other one has ended it
                continue
            told.append(alarm)
        return told

    def _claim(self, path: str) -> bool:
        if os.path.exists(path):
            return False
        try:
            return self._files.write_once(path, {"node_rank": self._paths.node_rank})
        except OSError:
            return True

    def _check_gpus(self, now: float, seconds: float) -> List[Alarm]:
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
            except (ValueError, KeyError, TypeError, IndexError):
                continue
            ranks = [rank.course.rank for rank in self._ranks]
            alarms += self._gpu.add(gpus, ranks, now, seconds)
        return alarms

    def _write(self, records: List[Mapping[str, Any]], alarms: List[Alarm]) -> None:
        documents = list(records)
        for alarm in alarms:
            document: Dict[str, Any] = {"time": round(time.time(), 3), "alarm": alarm.code}
            document.update(rank=alarm.rank, since=round(alarm.since, 3))
            active = self._active.setdefault(alarm.code, set())
            if alarm.is_over:
                document["over"] = True
                if alarm.rank is None:  # of the whole node, whichever rank was named at its begin
                    active.clear()
                active.discard(alarm.rank)
                if not active:
                    self._note_end(alarm.code)
            else:
                document["message"] = alarm.message
                active.add(alarm.rank)
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
            self._stop_text = "%s: %s%s" % (alarm.code, whose, alarm.message)

    def _told_path(self, code: str) -> str:
        return os.path.join(self._paths.status, ".alarm-%s.json" % code)

    def _is_first(self, alarm: Alarm) -> bool:
        """Whether the command and the webhook are to be called: no other rank or node has raised this alarm, or that alarm has cleared."""
        path, now = self._told_path(alarm.code), time.time()
        is_known = alarm.code in self._told_codes
        self._told_codes.add(alarm.code)
        told = read_json(path) or {}
        if told.get("over") is True and now - float(told.get("time") or 0.0) >= self.REPEAT_S:
            with contextlib.suppress(OSError):  # of several nodes one comes first
                os.rename(path, path + ".over")
        record = {"time": now, "node_rank": self._paths.node_rank, "rank": alarm.rank}
        try:
            return self._files.write_once(path, record)
        except OSError:
            return not is_known

    def _note_end(self, code: str) -> None:
        """Record that all alarms with this code have cleared on this node, if it was the node that called the command and the webhook."""
        path = self._told_path(code)
        told = read_json(path) or {}
        if told.get("node_rank") == self._paths.node_rank:
            with contextlib.suppress(OSError):
                self._files.write(path, {**told, "over": True})

    def _print_stacks(self) -> None:
        """Where the ranks are: those that catch the signal write it to their own logs, of the others py-spy, if it is on the node, to the node's log."""
        import shutil

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
        for pid in silent[: self.MAX_STACKS] if program is not None else ():
            command = [str(program), "dump", "--pid", str(pid)]
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
            self._child = self._children.fork(
                "metrics", lambda: run_metrics(paths, is_restart, secrets)
            )

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
    attempt_paths: AttemptPaths,
    is_restart: bool = False,
    secrets: Optional[Mapping[str, str]] = None,
) -> int:
    """Be the process that reads the numbers; of a restart only those that come from now on."""
    with contextlib.suppress(OSError):
        os.nice(5)
    return MetricsProcess(attempt_paths, is_restart, secrets).run()
