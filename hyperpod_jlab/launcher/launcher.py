#!/usr/bin/env python3
"""The launcher of hyperpod_jlab: starts the ranks of one node, keeps their logs and records, and ends them.

It is copied into each run's bundle and runs on the far side, whatever the orchestrator, under any Python from 3.8 on
and with nothing but the standard library. The bundle's layout and every file that is written here are described in
`docs/bundle-format.md`. Two subcommands:

- ``node``: what an engine starts, once on each node.
- ``rank -- ARGV...``: what `node` (or torchrun's agent, then with ``--write-pid``) starts for each rank: it makes the
  rank's log file its stdout and stderr and then becomes ARGV, so that the last byte before a SIGKILL is in the file.
  With ``--keep-output`` it only becomes ARGV: so do the agent and the setup lines die with the launcher, too.

Each rank loads this file too, so what the entry doesn't need is imported where it is used, and data classes, which are
slow to make, are left out.

Two ideas carry the rest. The ranks write to files and the launcher only looks at these: nothing that happens to the
launcher's own output can hold a rank up. And one loop (`Node.turn`) waits for signals, children and time; whatever
the launcher waits for, it goes on turning.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import errno
import json
import os
import re
import select
import signal
import stat
import struct
import sys
import time
from collections import deque
from typing import (
    Any,
    Callable,
    Deque,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    NoReturn,
    Optional,
    Sequence,
    Set,
    Tuple,
)

FORMAT = 1
"""Format of the bundles that this launcher understands and of the records that it writes."""

EXIT_FENCED = 85
EXIT_LAUNCHER = 86

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
WARNING_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)

VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# ----------------------------------------------------------------------------------------------------------------------
# Errors
# ----------------------------------------------------------------------------------------------------------------------


class LauncherError(Exception):
    """What keeps the launcher from its work, in the project's one shape of an error."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: Optional[str] = None,
        detail: Optional[Dict[str, Any]] = None,
        exit_code: int = EXIT_LAUNCHER,
    ) -> None:
        super().__init__("%s (%s)" % (message, hint) if hint else message)
        self.code = code
        self.message = message
        self.hint = hint
        self.detail = detail or {}
        self.exit_code = exit_code

    def to_dict(self) -> Dict[str, Any]:
        """The error as plain data."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "detail": self.detail,
        }


class FencedError(Exception):
    """Another job of the scheduler holds this run's claim."""


class StopRequested(Exception):  # noqa: N818 - it is no error: somebody wants the node to end
    """The launcher was told to stop while it waited for something."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


# ----------------------------------------------------------------------------------------------------------------------
# The operating system
# ----------------------------------------------------------------------------------------------------------------------

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

PARENT = "HYPERPOD_PARENT"
"""Variable by which an entry of ours learns who started it, in case that one is gone by then."""


def prctl(option: int, value: int) -> bool:
    """Linux's prctl; False where there is none. Nothing depends on it: it closes gaps that only SIGKILL opens."""
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def die_with_parent(parent: Optional[int]) -> None:
    """Have the kernel send SIGKILL to this process when the one that started it is gone, or go now if it is."""
    kept = prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if kept and parent is not None and parent != os.getppid() and is_gone(parent):
        os.kill(os.getpid(), signal.SIGKILL)


def hold_standard_descriptors() -> None:
    """Make sure that 0, 1 and 2 are open, so that no file of ours takes the place of a closed stdout."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        if descriptor > 2:
            os.close(descriptor)
            return
        os.set_inheritable(descriptor, True)


def exit_of(status: int) -> Tuple[int, Optional[int]]:
    """Exit code in the shell's manner (128+N for signal N), and the signal, of a wait status."""
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status), os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def signal_name(number: int) -> str:
    """A signal's name, such as SIGTERM."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "SIG%d" % number


def describe_end(exit_code: int, ended_by: Optional[int]) -> str:
    """How a process ended, in words."""
    return "was ended by " + signal_name(ended_by) if ended_by else "ended with %d" % exit_code


def available_cpus() -> int:
    """CPUs that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


class Process(NamedTuple):
    """A process as /proc shows it; `started` tells it from a later one with the same id."""

    pid: int
    parent: int
    state: str
    started: int
    name: str


def read_process(pid: int) -> Optional[Process]:
    """Look one process up; None when it is gone, or where there is no /proc."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            head, _, tail = file.read().rpartition(b")")
        fields = tail.split()
        name = head.partition(b"(")[2].decode("utf-8", "replace")
        return Process(pid, int(fields[1]), fields[0].decode(), int(fields[19]), name)
    except (OSError, ValueError, IndexError):
        return None


def is_gone(pid: int) -> bool:
    """Whether a process has ended, be it waited for or not."""
    process = read_process(pid)
    return process.state in "ZX" if process else not send(pid, 0)


def running_processes() -> Dict[int, Process]:
    """All processes that still run, by id; empty where there is no /proc."""
    found = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            process = read_process(int(name)) if name.isdigit() else None
            if process and process.state not in "ZX":
                found[process.pid] = process
    return found


def has_marks(pid: int, marks: FrozenSet[bytes]) -> bool:
    """Whether a process of ours was started with all these ``NAME=value`` in its environment."""
    try:
        if os.stat("/proc/%d" % pid).st_uid != os.geteuid():
            return False
        with open("/proc/%d/environ" % pid, "rb") as file:
            return marks.issubset(file.read().split(b"\0"))
    except OSError:
        return False


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal (SigCgt in /proc)."""
    try:
        with open("/proc/%d/status" % pid, "rb") as file:
            found = re.search(rb"^SigCgt:\s*([0-9a-f]+)", file.read(), re.MULTILINE)
    except OSError:
        return False
    return bool(found and int(found.group(1), 16) >> (number - 1) & 1)


def topmost_catchers(pid: int, number: int) -> List[int]:
    """The processes that catch a signal, from `pid` down; below one that does, nobody is looked at.

    A shell that waits for the real program doesn't catch it, the program does; its forked helpers, which inherit the
    handler, must not get it a second time.
    """
    children: Dict[int, List[int]] = {}
    for process in running_processes().values():
        children.setdefault(process.parent, []).append(process.pid)
    found, waiting = [], [pid]
    while waiting:
        candidate = waiting.pop()
        if catches(candidate, number):
            found.append(candidate)
        else:
            waiting.extend(children.get(candidate, ()))
    return found


def send(pid: int, number: int) -> bool:
    """Send a signal; False when the process is gone or not ours to signal."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


class Signals:
    """Collects signals and wakes the loop; the handlers do nothing else."""

    def __init__(self) -> None:
        self._pending: Deque[int] = deque()
        self._wake, self._bell = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._bell, False)

    def install(self) -> None:
        """Take over the signals that mean something to the launcher."""
        signal.set_wakeup_fd(self._bell, warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, *WARNING_SIGNALS, signal.SIGCHLD):
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # nohup: the user wants it to go on
            signal.signal(number, self._caught)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])

    def ignore(self) -> None:
        """Let none of them change the exit code any more; while it shuts down, Python has no handlers."""
        signal.set_wakeup_fd(-1)
        for number in (*STOP_SIGNALS, *WARNING_SIGNALS):
            signal.signal(number, signal.SIG_IGN)

    def _caught(self, number: int, _frame: object) -> None:
        self._pending.append(number)

    def wait(self, seconds: float) -> None:
        """Sleep until a signal comes, at most so long."""
        ready, _, _ = select.select([self._wake], [], [], max(0.0, seconds))
        if ready:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._wake, 512):
                    pass

    def take(self) -> List[int]:
        """The signals since the last call, children's ends left out."""
        taken = []
        while self._pending:
            number = self._pending.popleft()
            if number != signal.SIGCHLD:
                taken.append(number)
        return taken

    def pause(self, seconds: float) -> None:
        """Sleep, before anything is there that would have to be ended.

        Raises:
            StopRequested: A stop signal came.
        """
        self.wait(seconds)
        for number in self.take():
            if number in STOP_SIGNALS:
                raise StopRequested(signal_name(number))


# ----------------------------------------------------------------------------------------------------------------------
# Files of the bundle
# ----------------------------------------------------------------------------------------------------------------------


def read_json(path: str) -> Optional[Dict[str, Any]]:
    """A record that somebody may have written; None when there is none (yet)."""
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read().decode("utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


class BundleFiles:
    """Makes files and folders in a bundle, readable as far as the bundle's own folder lets people in.

    The job's umask may be 077 and its user another than the reader; the bundle's folder alone guards what is in it.
    So the launcher's files get the common mode, and the process's umask stays what it is for the ranks.
    """

    def __init__(self, bundle: str) -> None:
        self._umask = 0o022 & ~stat.S_IMODE(os.stat(bundle).st_mode)

    @contextlib.contextmanager
    def _common_mode(self) -> Iterator[None]:
        before = os.umask(self._umask)
        try:
            yield
        finally:
            os.umask(before)

    def open(self, path: str, flags: int) -> int:
        """Open a file, made if need be."""
        with self._common_mode():
            return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def make_folders(self, path: str) -> None:
        """Make a folder and those above it, where they are missing."""
        with self._common_mode():
            os.makedirs(path, exist_ok=True)

    def claim_folder(self, path: str) -> bool:
        """Make a folder that must not be there; False when it is."""
        with self._common_mode():
            try:
                os.mkdir(path)
            except FileExistsError:
                return False
        return True

    def write(self, path: str, document: Mapping[str, Any]) -> None:
        """Write a record: readers see the old one or the new one, never half of one."""
        with self._temporary(path, document) as temporary:
            os.replace(temporary, path)

    def write_once(self, path: str, document: Mapping[str, Any]) -> bool:
        """Write a record unless there is one; whether it was written. Of several writers one wins."""
        with self._temporary(path, document) as temporary:
            try:
                os.link(temporary, path)
            except OSError as error:
                # A network file system may have made the link and lost the answer.
                if os.stat(temporary).st_nlink == 2:
                    return True
                if error.errno == errno.EEXIST:
                    return False
                raise
        return True

    @contextlib.contextmanager
    def _temporary(self, path: str, document: Mapping[str, Any]) -> Iterator[str]:
        folder, name = os.path.split(path)
        temporary = os.path.join(folder, ".%s.%s.tmp" % (name, os.urandom(6).hex()))
        data = json.dumps(document).encode("utf-8") + b"\n"
        try:
            descriptor = self.open(temporary, os.O_WRONLY | os.O_TRUNC)
            with open(descriptor, "wb") as file:
                file.write(data)
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


class Records:
    """Writes the records of a running node: a full or failing disk is no reason to end a job, so these wait and retry."""

    RETRY_AFTER = 2.0

    def __init__(self, files: BundleFiles, note: Callable[[str], None]) -> None:
        self._files = files
        self._note = note
        self._waiting: Dict[str, Mapping[str, Any]] = {}
        self._retry_at = 0.0
        self._complained = False

    def put(self, path: str, document: Mapping[str, Any]) -> None:
        """Write a record now, or as soon as the disk takes it."""
        try:
            self._files.write(path, document)
            self._waiting.pop(path, None)
        except OSError as error:
            self._waiting[path] = document
            self._retry_at = time.monotonic() + self.RETRY_AFTER
            if not self._complained:
                self._complained = True
                self._note("cannot write %s: %s; the job goes on" % (path, error.strerror or error))

    def put_once(self, path: str, document: Mapping[str, Any]) -> None:
        """Write a record unless there is one."""
        try:
            self._files.write_once(path, document)
        except OSError as error:
            self._note("cannot write %s: %s" % (path, error.strerror or error))

    def retry(self) -> None:
        """Write what could not be written, from time to time."""
        if self._waiting and time.monotonic() >= self._retry_at:
            for path, document in list(self._waiting.items()):
                self.put(path, document)

    def flush(self, seconds: float) -> None:
        """Try for a while to get everything written."""
        deadline = time.monotonic() + seconds
        while self._waiting and time.monotonic() < deadline:
            time.sleep(0.1)
            self._retry_at = 0.0
            self.retry()


class Place(NamedTuple):
    """Where everything of one attempt on one node lies."""

    bundle: str
    records: str
    attempt: int
    node_rank: int

    @property
    def status(self) -> str:
        """The attempt's folder of records."""
        return os.path.join(self.records, "status", "attempt-%d" % self.attempt)

    @property
    def logs(self) -> str:
        """The attempt's folder of logs."""
        return os.path.join(self.records, "logs", "attempt-%d" % self.attempt)

    @property
    def node_record(self) -> str:
        """This node's record."""
        return self.node_record_of(self.node_rank)

    def node_record_of(self, node_rank: int) -> str:
        """Any node's record."""
        return os.path.join(self.status, "node-%d.json" % node_rank)

    @property
    def failed(self) -> str:
        """The mark of the first node that failed, which ends the others."""
        return os.path.join(self.status, "failed.json")

    @property
    def next_attempt(self) -> str:
        """The folder that is there once a later attempt has begun."""
        return os.path.join(self.records, "status", "attempt-%d" % (self.attempt + 1))

    def rank_error(self, rank: int) -> str:
        """What a rank failed with."""
        return os.path.join(self.status, "rank-%d.error.json" % rank)

    def pid_file(self, local_rank: int) -> str:
        """Where a rank that torchrun started leaves its process id."""
        return os.path.join(self.status, ".node-%d.rank-%d.pid" % (self.node_rank, local_rank))

    @property
    def node_log(self) -> str:
        """The launcher's own log."""
        return os.path.join(self.logs, "node-%d.log" % self.node_rank)

    @property
    def activity(self) -> str:
        """The record of the logs' sizes."""
        return os.path.join(self.logs, "node-%d.activity.json" % self.node_rank)

    @property
    def setup_file(self) -> str:
        """The setup lines as a file, so that bash can name their lines."""
        return os.path.join(self.logs, "node-%d.setup.sh" % self.node_rank)

    def rank_log(self, local_rank: int) -> str:
        """A rank's log."""
        return os.path.join(self.logs, "node-%d.rank-%d.log" % (self.node_rank, local_rank))


# ----------------------------------------------------------------------------------------------------------------------
# Arguments and plan
# ----------------------------------------------------------------------------------------------------------------------


class NodeArguments(NamedTuple):
    """What the engine says about this node."""

    node_rank: int
    nodes: int
    master_addr: str
    master_port: int
    scheduler_id: str
    incarnation: str
    node_name: str
    task: Optional[int]
    quiet: bool
    wait_attempt: float
    unshared: bool
    attempt: Optional[int]


def _argument(value: Any, kind: type, name: str, path: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise LauncherError("bad_plan", "%s: '%s' is missing or wrong" % (path, name))
    return value


class Plan(NamedTuple):
    """What launch.json says: what to run on each node."""

    run_id: str
    nodes: int
    processes: int
    launcher: str
    python: Optional[str]
    command: List[Any]
    cwd: str
    variables: Dict[str, str]
    secrets: List[str]
    keep_secrets: bool
    setup: Optional[str]
    stop_grace: float
    forward_signals: str
    cpus: Optional[int]

    @classmethod
    def load(cls, path: str) -> Plan:
        """Read a plan.

        Raises:
            LauncherError: It is missing, newer than this launcher, or wrong.
        """
        document = cls._document(path)

        def get(name: str, kind: type, default: Any = None) -> Any:
            value = document.get(name)
            return (
                default
                if value is None and default is not None
                else _argument(value, kind, name, path)
            )

        def maybe(name: str, kind: type) -> Any:
            return None if document.get(name) is None else get(name, kind)

        launcher = get("launcher", str)
        plan = cls(
            run_id=get("run_id", str),
            nodes=get("nodes", int, 1),
            processes=1 if launcher == "none" else get("processes_per_node", int, 1),
            launcher=launcher,
            python=maybe("python", str),
            command=get("command", list),
            cwd=get("cwd", str, "work"),
            variables=get("variables", dict, {}),
            secrets=get("secrets", list, []),
            keep_secrets=get("keep_secrets", bool, False),
            setup=maybe("setup", str),
            stop_grace=float(get("stop_grace", (int, float), 10)),  # type: ignore[arg-type]
            forward_signals=get("forward_signals", str, "caught"),
            cpus=maybe("cpus", int),
        )
        plan._check(path)
        return plan

    @staticmethod
    def _document(path: str) -> Dict[str, Any]:
        try:
            with open(path, "rb") as file:
                document = json.loads(file.read().decode("utf-8"))
        except (OSError, ValueError) as error:
            raise LauncherError("bad_plan", "%s cannot be read: %s" % (path, error)) from error
        if not isinstance(document, dict) or not isinstance(document.get("format"), int):
            raise LauncherError("bad_plan", "%s is no launch plan" % path)
        if document["format"] > FORMAT:
            raise LauncherError(
                "newer_format",
                "the bundle has format %d, this launcher knows %d" % (document["format"], FORMAT),
                hint="the bundle's launcher.py is older than its plan: submit the run again",
                detail={"format": document["format"], "known": FORMAT},
            )
        return document

    def _check(self, path: str) -> None:
        wrong = None
        if self.launcher not in ("python", "torchrun", "none"):
            wrong = "launcher"
        elif self.forward_signals not in ("caught", "always", "never"):
            wrong = "forward_signals"
        elif self.nodes < 1 or self.processes < 1 or self.stop_grace < 0 or self.cpus == 0:
            wrong = "nodes, processes_per_node, stop_grace or cpus"
        elif not self.command:
            wrong = "command"
        elif not all(VARIABLE_NAME.fullmatch(str(name)) for name in self.secrets):
            wrong = "secrets"
        elif not all(isinstance(value, str) for value in self.variables.values()):
            wrong = "variables"
        if wrong:
            raise LauncherError("bad_plan", "%s: '%s' is wrong" % (path, wrong))

    def argv(self, bundle: str, python: str) -> List[str]:
        """What a rank executes."""
        argv = []
        for item in self.command:
            if isinstance(item, str):
                argv.append(item)
            elif isinstance(item, dict) and isinstance(item.get("bundle"), str):
                argv.append(os.path.join(bundle, item["bundle"]))
            elif isinstance(item, dict) and item.get("python") is True:
                argv.append(python)
            else:
                raise LauncherError("bad_plan", "launch.json: a word of 'command' is wrong")
        first = self.command[0]
        is_option = isinstance(first, str) and first.startswith("-")
        is_script = isinstance(first, dict) and argv[0].endswith(".py")
        return [python, *argv] if is_option or is_script else argv


# ----------------------------------------------------------------------------------------------------------------------
# The fence and the attempt
# ----------------------------------------------------------------------------------------------------------------------


def check_fence(status: str, scheduler_id: str) -> bool:
    """Whether our job holds the run's claim.

    Raises:
        FencedError: Another one does.
    """
    claim = read_json(os.path.join(status, "claim.json"))
    if claim is None:
        return False
    if claim.get("scheduler_id") != scheduler_id:
        raise FencedError(str(claim.get("scheduler_id")))
    return True


def claim_fence(files: BundleFiles, status: str, arguments: NodeArguments) -> None:
    """Claim the run for our job, unless an earlier attempt of it did."""
    claim = {
        "scheduler_id": arguments.scheduler_id,
        "node": arguments.node_name,
        "time": time.time(),
    }
    files.write_once(os.path.join(status, "claim.json"), claim)
    if not check_fence(status, arguments.scheduler_id):
        raise LauncherError("storage", "the claim in %s cannot be read back" % status)


def open_attempt(files: BundleFiles, status: str, arguments: NodeArguments) -> int:
    """Open the next attempt, by the first free number (or the one that an unshared bundle is told)."""
    number = arguments.attempt or 1
    while not files.claim_folder(os.path.join(status, "attempt-%d" % number)):
        number += 1
    claim = {
        "scheduler_id": arguments.scheduler_id,
        "incarnation": arguments.incarnation,
        "time": time.time(),
    }
    files.write(os.path.join(status, "attempt-%d" % number, "claim.json"), claim)
    return number


def attempt_to_join(status: str, arguments: NodeArguments) -> Optional[int]:
    """The newest attempt with our incarnation, unless we were in it already and have been started again."""
    try:
        names = os.listdir(status)
    except OSError:
        return None
    numbers = [int(name[8:]) for name in names if re.fullmatch(r"attempt-[1-9][0-9]*", name)]
    for number in sorted(numbers, reverse=True):
        folder = os.path.join(status, "attempt-%d" % number)
        claim = read_json(os.path.join(folder, "claim.json")) or {}
        wanted = (arguments.scheduler_id, arguments.incarnation)
        if (claim.get("scheduler_id"), claim.get("incarnation")) == wanted:
            joined = os.path.exists(os.path.join(folder, "node-%d.json" % arguments.node_rank))
            return None if joined else number
    return None


def join_attempt(status: str, arguments: NodeArguments, pause: Callable[[float], None]) -> int:
    """Wait for node 0 to open our attempt.

    Raises:
        LauncherError: It doesn't.
    """
    deadline = time.monotonic() + arguments.wait_attempt
    delay = 0.05
    while True:
        check_fence(status, arguments.scheduler_id)
        number = attempt_to_join(status, arguments)
        if number is not None:
            return number
        if time.monotonic() >= deadline:
            raise LauncherError(
                "no_attempt",
                "node 0 did not open the attempt within %g s" % arguments.wait_attempt,
                hint="see why node 0 did not start, and whether all nodes mount the same storage",
                detail={"incarnation": arguments.incarnation, "status": status},
            )
        pause(delay)
        delay = min(delay * 1.5, 1.0)


def enter_attempt(
    files: BundleFiles, bundle: str, arguments: NodeArguments, signals: Signals
) -> Place:
    """Pass the fence and come to the attempt that this node takes part in."""
    parts = () if arguments.task is None else ("tasks", str(arguments.task))
    records = os.path.join(bundle, *parts)
    status = os.path.join(records, "status")
    files.make_folders(status)
    if arguments.node_rank == 0 or arguments.unshared:
        claim_fence(files, status, arguments)
        number = open_attempt(files, status, arguments)
    else:
        number = join_attempt(status, arguments, signals.pause)
    place = Place(bundle, records, number, arguments.node_rank)
    files.make_folders(place.logs)
    return place


# ----------------------------------------------------------------------------------------------------------------------
# Environment, secrets, setup lines
# ----------------------------------------------------------------------------------------------------------------------

FOREIGN_VARIABLES = re.compile(
    r"(PET|TORCHELASTIC)_.*|((LOCAL|NODE|GROUP|ROLE)_)?RANK|((LOCAL|GROUP|ROLE)_)?WORLD_SIZE|ROLE_NAME"
    r"|HYPERPOD_(ATTEMPT|ARRAY_INDEX)"
)
"""What an operator, an outer torchrun or an outer run may have set and what would mislead the ranks."""

SETUP = (
    # No positional parameters: `. activate` inside the lines would take ours for its own.
    "__hyperpod_lines=$1 __hyperpod_fd=$2; set --; "
    "trap '__hyperpod_code=$?; /usr/bin/env -0 >&\"$__hyperpod_fd\"; exit $__hyperpod_code' EXIT; "
    '. "$__hyperpod_lines"; /usr/bin/env -0 >&"$__hyperpod_fd"'
)

NOT_FROM_SETUP = frozenset(("_", "SHLVL", "PWD", "OLDPWD", PARENT))


def read_secrets(bundle: str, names: Sequence[str]) -> Dict[str, str]:
    """The secrets' values: from their files, or from the environment where the engine put them there.

    Raises:
        LauncherError: One is missing or can't be a variable's value.
    """
    values = {}
    for name in names:
        path = os.path.join(bundle, "secrets", name)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                value = file.read()
        except OSError as error:
            if name in os.environ:
                continue
            hint = "it may have been deleted after an earlier attempt: requeue the run so that it is delivered again"
            message = "the secret %s cannot be read: %s" % (name, error.strerror)
            raise LauncherError("secret_missing", message, hint, {"name": name}) from None
        if b"\0" in value:
            raise LauncherError("bad_secret", "the value of the secret %s holds a NUL byte" % name)
        values[name] = os.fsdecode(value)
    return values


def delete_secrets(bundle: str, names: Sequence[str]) -> None:
    """Delete the secrets' files; several nodes may do so at once."""
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(bundle, "secrets", name))
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(bundle, "secrets"))


def without_secrets(text: str, secrets: Mapping[str, str]) -> str:
    """A text for a record, in which no secret's value may stand."""
    for value in secrets.values():
        if len(value.strip()) >= 4:
            text = text.replace(value.strip(), "***")
    return text


def node_environment(
    plan: Plan, place: Place, arguments: NodeArguments, secrets: Mapping[str, str]
) -> Dict[str, str]:
    """What the setup lines see, and the ranks below their own variables."""
    environment = {
        name: value for name, value in os.environ.items() if not FOREIGN_VARIABLES.fullmatch(name)
    }
    environment.update(PYTHONUNBUFFERED="1", PYTHONFAULTHANDLER="1")
    environment.update(plan.variables)
    environment.update(secrets)
    environment.update(launcher_variables(plan, place, arguments))
    return environment


def launcher_variables(plan: Plan, place: Place, arguments: NodeArguments) -> Dict[str, str]:
    """What the launcher alone decides, the same for all ranks of the node."""
    variables = {
        "NODE_RANK": str(place.node_rank),
        "WORLD_SIZE": str(arguments.nodes * plan.processes),
        "LOCAL_WORLD_SIZE": str(plan.processes),
        "MASTER_ADDR": arguments.master_addr,
        "MASTER_PORT": str(arguments.master_port),
        "HYPERPOD_RUN_ID": plan.run_id,
        "HYPERPOD_ATTEMPT": str(place.attempt),
        "HYPERPOD_BUNDLE": place.bundle,
        "HYPERPOD_RECORDS": place.records,
    }
    if arguments.task is not None:
        variables["HYPERPOD_ARRAY_INDEX"] = str(arguments.task)
    return variables


def rank_variables(plan: Plan, place: Place, local_rank: int) -> Dict[str, str]:
    """What tells one rank from the others."""
    rank = place.node_rank * plan.processes + local_rank
    return {"RANK": str(rank), "LOCAL_RANK": str(local_rank)}


def parse_environment(data: bytes) -> Dict[str, str]:
    """The environment that the setup lines left, as ``env -0`` wrote it."""
    environment = {}
    for entry in data.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals and name and os.fsdecode(name) not in NOT_FROM_SETUP:
            environment[os.fsdecode(name)] = os.fsdecode(value)
    return environment


def anonymous_file() -> int:
    """A file without a name: in memory where there is such a thing, so that no secret comes to a disk."""
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return os.memfd_create("hyperpod-environment")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def find_program(name: str, environment: Mapping[str, str], cwd: str) -> Optional[str]:
    """Where the system will find a program that is started in `cwd`; None when it won't."""
    if os.path.dirname(name):
        path = os.path.join(cwd, name)
        return path if os.path.isfile(path) and os.access(path, os.X_OK) else None
    import shutil

    return shutil.which(name, path=environment.get("PATH", os.defpath))


# ----------------------------------------------------------------------------------------------------------------------
# Logs
# ----------------------------------------------------------------------------------------------------------------------


class NodeLog:
    """The launcher's own log; a disk that fails must not end anything here."""

    def __init__(self, files: BundleFiles, path: str) -> None:
        self.descriptor = files.open(path, os.O_WRONLY | os.O_APPEND)

    def write_line(self, text: str) -> None:
        """Write one line as it is."""
        with contextlib.suppress(OSError):
            os.write(self.descriptor, text.encode("utf-8", "backslashreplace") + b"\n")

    def note(self, text: str) -> None:
        """Say something to the people who read the log."""
        self.write_line("hyperpod: " + text)


class TimeIndex:
    """The sparse time index beside a log: from which offset on the bytes were first seen at which time.

    The more records it has, the farther apart they get, so that a rank that never stops talking costs about a
    megabyte a day. After a pause there always is a record.
    """

    RECORD = struct.Struct("<qq")
    SPACING = ((4096, 0.0), (16384, 0.25), (65536, 1.0))
    WIDEST = 5.0

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._count = 0
        self._time = 0
        self.add(0)

    def add(self, offset: int) -> None:
        """The bytes from `offset` on are seen now."""
        now = max(time.time_ns(), self._time)
        if self._count and now - self._time < self._spacing() * 1e9:
            return
        record = self.RECORD.pack(now, offset)
        # It is sparse anyway: a record that a full disk refuses is left out.
        with contextlib.suppress(OSError):
            if os.pwrite(self._descriptor, record, self._count * self.RECORD.size) == len(record):
                self._count += 1
                self._time = now

    def _spacing(self) -> float:
        return next((gap for count, gap in self.SPACING if self._count < count), self.WIDEST)

    def time_of(self, offset: int) -> float:
        """When the byte at `offset` was first seen (Unix time)."""
        try:
            data = os.pread(self._descriptor, self._count * self.RECORD.size, 0)
        except OSError:
            return time.time()
        records = list(self.RECORD.iter_unpack(data[: len(data) - len(data) % self.RECORD.size]))
        place = bisect.bisect_right([record[1] for record in records], offset)
        return records[place - 1][0] / 1e9 if place else time.time()


class LineEcho:
    """Makes a rank's bytes into prefixed lines for the launcher's stdout.

    A line longer than `LONGEST`, and one that stays unfinished for a while, comes in pieces: those after the first
    have ``+`` in place of the prefix's blank. Of a progress bar (carriage returns, no line feed) one state a second
    is shown.
    """

    LONGEST = 16384
    BAR_EVERY = 1.0
    PATIENCE = 2.0

    def __init__(self, label: str) -> None:
        self._first = label.encode() + b"| "
        self._more = label.encode() + b"|+"
        self._held = b""
        self._begun = False  # a piece of the held line is out already
        self._bar_at = float("-inf")
        self._fed_at = 0.0

    def feed(self, data: bytes, now: float) -> bytes:
        """Take bytes of the rank; what is to be written for them."""
        self._fed_at = now
        text = self._held + data
        lines = text.split(b"\n")
        self._held = lines.pop()
        pieces: List[bytes] = []
        if lines and not self._begun and b"\r" not in text and max(map(len, lines)) <= self.LONGEST:
            pieces = [self._first, (b"\n" + self._first).join(lines), b"\n"]
        else:
            for line in lines:
                self._put_line(line, pieces)
        self._trim(now, pieces)
        return b"".join(pieces)

    def idle(self, now: float) -> bytes:
        """What is to be written because a line has waited for its end long enough."""
        if not self._held or now - self._fed_at < self.PATIENCE:
            return b""
        return self.close()

    def close(self) -> bytes:
        """What is left, when no end of line will come."""
        pieces: List[bytes] = []
        held = self._held.rstrip(b"\r")
        if held:
            self._put_piece(held, pieces)
        self._begun = self._held == held and bool(held)
        self._held = b""
        return b"".join(pieces)

    def _put_piece(self, piece: bytes, pieces: List[bytes]) -> None:
        pieces += (self._more if self._begun else self._first, piece, b"\n")
        self._begun = True

    def _put_line(self, line: bytes, pieces: List[bytes]) -> None:
        line = line.rstrip(b"\r")
        if b"\r" in line:
            line = line.rpartition(b"\r")[2]
            self._begun = False
        for start in range(0, len(line), self.LONGEST):
            self._put_piece(line[start : start + self.LONGEST], pieces)
        if not line and not self._begun:
            self._put_piece(b"", pieces)
        self._begun = False

    def _trim(self, now: float, pieces: List[bytes]) -> None:
        """Keep of the unfinished line only what may still matter."""
        body = self._held[:-1] if self._held.endswith(b"\r") else self._held
        if b"\r" in body:
            earlier, _, tail = body.rpartition(b"\r")
            shown = earlier.rpartition(b"\r")[2]
            self._begun = False
            if shown and now - self._bar_at >= self.BAR_EVERY:
                self._bar_at = now
                self._put_piece(shown, pieces)
                self._begun = False
            self._held = tail + self._held[len(body) :]
        while len(self._held) > self.LONGEST:
            self._put_piece(self._held[: self.LONGEST], pieces)
            self._held = self._held[self.LONGEST :]


class Outlet:
    """Writes to the launcher's stdout from a thread of its own, so that a slow, stuck or closed one holds nothing up."""

    ROOM = 1 << 20

    def __init__(self, descriptor: int) -> None:
        import threading

        self._descriptor = descriptor
        self._queue: Deque[bytes] = deque()
        self._size = 0
        self._change = threading.Condition()
        self.broken: Optional[str] = None
        try:
            threading.Thread(target=self._run, name="stdout", daemon=True).start()
        except RuntimeError as error:  # no more threads for this user; the ranks need them more
            self.broken = str(error)

    @property
    def waiting(self) -> int:
        """Bytes that stdout has not taken yet."""
        return self._size

    @property
    def has_room(self) -> bool:
        """Whether more may be put in; else the log files keep it for us."""
        return self._size < self.ROOM

    def put(self, data: bytes) -> None:
        """Have something written."""
        if data and self.broken is None:
            with self._change:
                self._queue.append(data)
                self._size += len(data)
                self._change.notify()

    def _run(self) -> None:
        while self.broken is None:
            with self._change:
                while not self._queue:
                    self._change.wait()
                data = self._queue.popleft()
            self._write(memoryview(data))

    def _write(self, data: memoryview) -> None:
        while len(data):
            try:
                done = os.write(self._descriptor, data[:65536])
            except BlockingIOError:  # somebody who shares it made it non-blocking
                select.select([], [self._descriptor], [], 1.0)
                continue
            except OSError as error:
                self.broken = error.strerror or str(error)
                return
            data = data[done:]
            with self._change:
                self._size -= done


class Stream:
    """One log file as the launcher sees it: its size, since when, its time index, and how much of it was echoed."""

    CHUNK = 1 << 18

    def __init__(self, files: BundleFiles, path: str, echo: Optional[LineEcho]) -> None:
        self.descriptor = files.open(path, os.O_RDONLY)
        index = os.path.splitext(path)[0] + ".idx"
        self.index = TimeIndex(files.open(index, os.O_RDWR | os.O_TRUNC))
        self.size = 0
        self.changed = time.time()
        self._echo = echo
        self._echoed = 0

    def look(self) -> bool:
        """See whether the file grew."""
        size = os.fstat(self.descriptor).st_size
        if size <= self.size:
            return False
        self.index.add(self.size)
        self.size = size
        self.changed = time.time()
        return True

    @property
    def backlog(self) -> int:
        """Bytes that were not echoed yet."""
        return self.size - self._echoed if self._echo else 0

    def skip_echo(self) -> None:
        """Leave out of the echo what is there now."""
        self._echoed = os.fstat(self.descriptor).st_size

    def echo(self, now: float) -> bytes:
        """The next part for the launcher's stdout."""
        if self._echo is None:
            return b""
        if not self.backlog:
            return self._echo.idle(now)
        try:
            data = os.pread(self.descriptor, min(self.CHUNK, self.backlog), self._echoed)
        except OSError:
            data = b""
        if not data:  # somebody cut the file short
            self._echoed = self.size
        self._echoed += len(data)
        return self._echo.feed(data, now)

    def end_echo(self) -> bytes:
        """The unfinished line, if there is one."""
        return self._echo.close() if self._echo else b""

    def tail(self, limit: int) -> Tuple[bytes, int]:
        """The last bytes and the offset at which they begin."""
        start = max(0, self.size - limit)
        try:
            return os.pread(self.descriptor, self.size - start, start), start
        except OSError:
            return b"", start


class Streams:
    """All logs of this node: looks at them, keeps the activity record, feeds the launcher's stdout."""

    FAST = 0.05
    SLOW = 0.25
    HEARTBEAT = 5.0

    def __init__(
        self, place: Place, files: BundleFiles, nodes: int, outlet: Outlet, echo: bool
    ) -> None:
        self._place = place
        self._files = files
        self._outlet = outlet
        self._echoes = echo
        self._streams: Dict[str, Stream] = {}
        # A thousand nodes share one metadata server: each writes more seldom.
        self._activity_every = max(0.25, nodes * 0.004)
        self._activity_at = float("-inf")
        self._changed = False
        self._ended = False
        self.delay = self.FAST

    def open(self, key: str, path: str, label: str) -> Stream:
        """Take in a log file, made if need be."""
        stream = Stream(self._files, path, LineEcho(label) if self._echoes else None)
        self._streams[key] = stream
        self._changed = True
        return stream

    def __getitem__(self, key: str) -> Stream:
        return self._streams[key]

    def poll(self, records: Records) -> None:
        """Look at all files, echo, and write the activity record when its time has come."""
        grew = False
        for stream in self._streams.values():
            with contextlib.suppress(OSError):
                grew = stream.look() or grew
        behind = self._echo()
        self._changed = self._changed or grew
        if behind and self._outlet.has_room:
            self.delay = 0.0
        else:
            self.delay = (
                self.FAST if grew or behind else min(max(self.delay, 0.01) * 1.5, self.SLOW)
            )
        since = time.monotonic() - self._activity_at
        if since >= (self._activity_every if self._changed else self.HEARTBEAT):
            self._write_activity(records)

    def _echo(self) -> bool:
        """Feed stdout as far as it takes; whether something is left to feed."""
        if self._outlet.broken is not None:
            return False
        now = time.monotonic()
        for stream in self._streams.values():
            if self._outlet.has_room:
                self._outlet.put(stream.echo(now))
        return any(stream.backlog for stream in self._streams.values())

    def _write_activity(self, records: Records) -> None:
        self._activity_at = time.monotonic()
        self._changed = False
        streams = {
            key: {"size": stream.size, "changed": stream.changed}
            for key, stream in self._streams.items()
        }
        document = {"time": time.time(), "ended": self._ended, "streams": streams}
        records.put(self._place.activity, document)

    def drain(self, limit: float, patience: float, hurry: Callable[[], bool]) -> int:
        """Get the rest onto stdout; the bytes that were not.

        Args:
            limit: Longest time for it.
            patience: Longest time without progress.
            hurry: Tells that somebody wants the node to end now.
        """
        begun = moved = time.monotonic()
        left = -1
        while self._outlet.broken is None and not hurry():
            if not self._echo() and self._outlet.has_room:
                for stream in self._streams.values():
                    self._outlet.put(stream.end_echo())
            before, left = left, self._outlet.waiting
            left += sum(stream.backlog for stream in self._streams.values())
            now = time.monotonic()
            if left != before:
                moved = now
            if left == 0 or now - begun > limit or now - moved > patience:
                break
            time.sleep(0.005)
        return max(left, 0)

    def finish(self, records: Records) -> None:
        """Look a last time and say that nothing will change any more."""
        self._ended = True
        for stream in self._streams.values():
            with contextlib.suppress(OSError):
                stream.look()
        self._write_activity(records)


# ----------------------------------------------------------------------------------------------------------------------
# What a rank failed with, as its log tells it
# ----------------------------------------------------------------------------------------------------------------------

ERROR_WINDOW = 64 * 1024

TRACEBACK = re.compile(r"^(?:  [+] Exception Group )?Traceback \(most recent call last\):\s*$")
FATAL = re.compile(r"^(Fatal Python error): (.*)$")
EXCEPTION = re.compile(r"^(?:  \| )?(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?\r?$")
CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
FRAME = re.compile(r'^\s+(?:\|\s+)?File "(.*)", line (\d+)')
CELL = re.compile(r"[/\\]code[/\\].*[/\\]cell-(\d+)\.py$")


class LoggedError(NamedTuple):
    """The last exception in a rank's log; `ends_log` when nothing at all comes after it."""

    offset: int
    type: str
    message: str
    traceback: str
    file: Optional[str]
    cell: Optional[int]
    line: Optional[int]
    ends_log: bool


def last_error(data: bytes, base: int) -> Optional[LoggedError]:
    """Find the last traceback (or the last word of Python's fault handler) in the last bytes of a log.

    Args:
        data: The bytes.
        base: Offset of the first of them in the log.
    """
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    start = next(
        (
            number
            for number in range(len(lines) - 1, -1, -1)
            if TRACEBACK.match(lines[number]) or FATAL.match(lines[number])
        ),
        None,
    )
    if start is None:
        return None
    said = _exception_after(lines, start)
    first = _first_of_chain(lines, start)
    before = "\n".join(lines[:first]).encode("utf-8", "surrogateescape")
    frames = [match for match in map(FRAME.match, lines[start : said.end]) if match]
    # The innermost frame in a cell tells a notebook's user more than one in a library.
    cells = [(CELL.search(frame.group(1)), frame) for frame in frames]
    in_cell = next(((found, frame) for found, frame in reversed(cells) if found), None)
    return LoggedError(
        offset=base + len(before) + (1 if first else 0),
        type=said.type,
        message=_plain(said.message)[:4000],
        traceback=_plain("\n".join(lines[first : said.end]))[-16384:],
        file=(in_cell[1] if in_cell else frames[-1]).group(1) if frames else None,
        cell=int(in_cell[0].group(1)) if in_cell else None,
        line=int(in_cell[1].group(2)) if in_cell else None,
        ends_log=not any(line.strip() for line in lines[said.begin + 1 :]),
    )


def _plain(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class Said(NamedTuple):
    """The words after a traceback: type, message, the line that they begin in, and the line after them."""

    type: str
    message: str
    begin: int
    end: int


def _exception_after(lines: Sequence[str], start: int) -> Said:
    """The exception whose traceback begins at `start`."""
    fatal = FATAL.match(lines[start])
    begin = start + 1
    if fatal:
        end = _end_of_paragraph(lines, begin)
        return Said(fatal.group(1), fatal.group(2), end - 1, end)
    while begin < len(lines) and not EXCEPTION.match(lines[begin]):
        if lines[begin].strip() and not lines[begin].startswith(" "):
            return Said("Traceback", lines[begin].strip(), begin, begin + 1)
        begin += 1
    if begin == len(lines):
        return Said("Traceback", "", begin, begin)
    found = EXCEPTION.match(lines[begin].rstrip("\r"))
    name, first = found.group("type", "message") if found else ("Traceback", "")
    is_group = lines[begin].startswith(" ")
    end = begin + 1 if is_group else _end_of_paragraph(lines, begin + 1)
    return Said(name, "\n".join([first or "", *lines[begin + 1 : end]]).strip(), begin, end)


def _end_of_paragraph(lines: Sequence[str], start: int) -> int:
    """The next blank line, but no further than a message may go on."""
    end = start
    while end < min(len(lines), start + 50) and lines[end].strip():
        end += 1
    return end


def _first_of_chain(lines: Sequence[str], start: int) -> int:
    """Where the chain of exceptions begins that ends with the traceback at `start`."""
    first = start
    while True:
        at = first - 1
        while at >= 0 and not lines[at].strip():
            at -= 1
        if at < 0 or lines[at].strip() not in CHAINED:
            return first
        while at >= 0 and not TRACEBACK.match(lines[at]):
            at -= 1
        if at < 0:
            return first
        first = at


# ----------------------------------------------------------------------------------------------------------------------
# Processes: starting them, and ending all of them
# ----------------------------------------------------------------------------------------------------------------------


class Child:
    """A process that the launcher itself started."""

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.pid = pid
        self.started_at = time.time()
        self.ended_at: Optional[float] = None
        self.exit_code = 0
        self.signal: Optional[int] = None

    @property
    def ended(self) -> bool:
        """Whether it was waited for."""
        return self.ended_at is not None


class Children:
    """Starts processes and waits for them, and for the orphans that the kernel hands to the launcher."""

    def __init__(self, output: int) -> None:
        self._output = output
        self._running: Dict[int, Child] = {}
        self.reaped = 0
        """How many were waited for so far, orphans included."""

    def start(
        self,
        name: str,
        argv: Sequence[str],
        environment: Mapping[str, str],
        cwd: str,
        pass_fds: Sequence[int] = (),
    ) -> Child:
        """Start a process with the node's log as its output.

        Raises:
            LauncherError: The system does not start it.
        """
        import subprocess

        try:
            popen = subprocess.Popen(
                argv,
                env={**environment, PARENT: str(os.getpid())},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            message = "%s could not be started: %s" % (name, error)
            raise LauncherError("start_failed", message) from error
        popen.returncode = 0  # we wait for it ourselves
        child = Child(name, popen.pid)
        self._running[popen.pid] = child
        return child

    def reap(self) -> None:
        """Wait for whatever has ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.reaped += 1
            child = self._running.pop(pid, None)
            if child:
                child.exit_code, child.signal = exit_of(status)
                child.ended_at = time.time()

    @property
    def running(self) -> List[int]:
        """Ids of those that run."""
        return list(self._running)


class Belongings:
    """Finds all processes of this node in this attempt: the launcher's descendants, and whoever carries our marks.

    The launcher is their subreaper, so that a process whose parents have ended is still its descendant; the marks
    find the rest where the kernel has no such thing. Other nodes on the same machine have other marks.
    """

    def __init__(self, place: Place, children: Children) -> None:
        self._me = os.getpid()
        self._children = children
        marks = (
            "HYPERPOD_RECORDS=" + place.records,
            "HYPERPOD_ATTEMPT=%d" % place.attempt,
            "NODE_RANK=%d" % place.node_rank,
        )
        self._marks = frozenset(os.fsencode(mark) for mark in marks)
        everybody = running_processes()
        # Whatever was the launcher's child before it began (a script that exec'ed it) is none of its business.
        self._spared = {found[:4:3] for found in self._below(everybody)}
        self._lineage = self._ancestors(everybody)

    def _below(self, everybody: Mapping[int, Process]) -> List[Process]:
        below: Dict[int, List[Process]] = {}
        for process in everybody.values():
            below.setdefault(process.parent, []).append(process)
        found, waiting = [], [self._me]
        while waiting:
            for process in below.get(waiting.pop(), ()):
                found.append(process)
                waiting.append(process.pid)
        return found

    def _ancestors(self, everybody: Mapping[int, Process]) -> Set[int]:
        found = {self._me}
        at = everybody.get(self._me)
        while at is not None and at.parent not in found:
            found.add(at.parent)
            at = everybody.get(at.parent)
        return found

    def find(self, marked: bool) -> Dict[int, Process]:
        """Those that run now; the marked ones are looked for if asked, which costs more."""
        everybody = running_processes()
        if not everybody:  # no /proc: what we started is all we know
            me = self._me
            return {pid: Process(pid, me, "?", 0, "?") for pid in self._children.running}
        found = {process.pid: process for process in self._below(everybody)}
        if marked:
            for pid, process in everybody.items():
                if pid not in found and pid not in self._lineage and has_marks(pid, self._marks):
                    found[pid] = process
        return {pid: process for pid, process in found.items() if process[:4:3] not in self._spared}


class Ending:
    """Ends all processes: SIGTERM, `grace` seconds, SIGKILL, until nothing is left.

    SIGTERM goes to the topmost processes only: a rank decides itself what becomes of its helpers, and when it is gone
    they are topmost. SIGKILL goes to all.
    """

    LIMIT = 0.7
    SLOWEST = 0.5

    def __init__(
        self, find: Callable[[bool], Dict[int, Process]], grace: float, patience: float
    ) -> None:
        now = time.monotonic()
        self._find = find
        self._term_at = now + patience
        self._kill_at = now + max(grace, patience)
        self._told: Set[Tuple[int, int]] = set()
        self._look_at = now
        self._pause = 0.05
        self._reaped = -1
        self.killed: Dict[int, str] = {}
        self.left: Dict[int, str] = {}

    def step(self, reaped: int) -> bool:
        """Do what is due; True when nothing is left, or nothing more can be done.

        Args:
            reaped: How many children were waited for so far; looking at all processes is dear, so in a long grace it
                is done when this has changed, and seldom else.
        """
        now = time.monotonic()
        killing = now >= self._kill_at
        if not killing and now < min(self._look_at, self._kill_at) and reaped == self._reaped:
            return False
        self._reaped = reaped
        self._pause = min(self._pause * 1.5, self.SLOWEST)
        self._look_at = now + self._pause
        found = self._find(killing or not self._told) or self._find(True)
        if not found:
            return True
        if killing:
            self._kill(found, now)
        elif now >= self._term_at:
            self._tell(found)
        else:
            self._look_at = min(self._look_at, self._term_at)
        return bool(self.left)

    def _tell(self, found: Mapping[int, Process]) -> None:
        for process in found.values():
            key = (process.pid, process.started)
            if process.parent not in found and key not in self._told:
                self._told.add(key)
                send(process.pid, signal.SIGTERM)

    def _kill(self, found: Mapping[int, Process], now: float) -> None:
        for process in found.values():
            send(process.pid, signal.SIGKILL)
            self.killed[process.pid] = process.name
        if now > self._kill_at + self.LIMIT:
            self.left = {process.pid: process.name for process in found.values()}


# ----------------------------------------------------------------------------------------------------------------------
# Ranks
# ----------------------------------------------------------------------------------------------------------------------


class RankState:
    """One rank in the node's record."""

    def __init__(self, rank: int, local_rank: int) -> None:
        self.rank = rank
        self.local_rank = local_rank
        self.pid: Optional[int] = None
        self.started_at: Optional[float] = None
        self.ended_at: Optional[float] = None
        self.exit_code: Optional[int] = None
        self.signal: Optional[int] = None

    def to_dict(self) -> Dict[str, Any]:
        """The rank as the record has it."""
        return dict(vars(self))


class Failure(NamedTuple):
    """What ended the node: exit code in the shell's manner, and the signal, if one did."""

    exit_code: int
    signal: Optional[int]


STOPPED = Failure(128 + signal.SIGTERM, signal.SIGTERM)
"""The end of a node that was told to stop and whose ranks say nothing of their own."""


def entry_words(*options: str) -> List[str]:
    """The words that start a process through an entry of ours; isolated, whatever the environment says."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), "rank", *options, "--"]


class Launch(NamedTuple):
    """All that is needed to start ranks, once the setup lines have run."""

    plan: Plan
    place: Place
    arguments: NodeArguments
    python: str
    argv: List[str]
    cwd: str
    environment: Dict[str, str]
    children: Children


class Ranks:
    """The ranks of this node."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        first = launch.place.node_rank * launch.plan.processes
        self.states = [
            RankState(first + local_rank, local_rank) for local_rank in range(launch.plan.processes)
        ]
        self.failure: Optional[Failure] = None
        self.error: Optional[LauncherError] = None
        """Why none of them could be started, when only the end tells that."""
        self.told = False
        """Whether we have begun to end them."""

    def start(self) -> None:
        """Start them."""
        raise NotImplementedError

    def refresh(self) -> bool:
        """See what became of them, after the children were waited for; whether something changed."""
        raise NotImplementedError

    @property
    def ended(self) -> bool:
        """Whether all of them have ended."""
        raise NotImplementedError

    @property
    def failing(self) -> bool:
        """Whether one has failed, even if its exit code is not known yet."""
        return self.failure is not None

    @property
    def grace(self) -> float:
        """Seconds that they have from SIGTERM to SIGKILL."""
        return self.launch.plan.stop_grace


class DirectRanks(Ranks):
    """Ranks that the launcher starts itself (`python`, and the single one of `none`)."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._children: List[Child] = []

    def start(self) -> None:
        """Start each through the entry, which becomes the rank, so the process keeps its id."""
        launch = self.launch
        for state in self.states:
            environment = dict(launch.environment)
            environment.update(rank_variables(launch.plan, launch.place, state.local_rank))
            argv = [*entry_words(), *launch.argv]
            child = launch.children.start("rank %d" % state.rank, argv, environment, launch.cwd)
            self._children.append(child)
            state.pid, state.started_at = child.pid, child.started_at

    def refresh(self) -> bool:
        """Take over what waiting told."""
        changed = False
        for state, child in zip(self.states, self._children):
            if child.ended and state.ended_at is None:
                changed = True
                state.ended_at, state.exit_code = child.ended_at, child.exit_code
                state.signal = child.signal
        failed = [state for state in self.states if state.exit_code]
        if self.failure is None and failed:
            first = min(failed, key=lambda state: state.ended_at or 0.0)
            self.failure = Failure(first.exit_code or 1, first.signal)
        return changed

    @property
    def ended(self) -> bool:
        """Whether all were waited for."""
        return all(child.ended for child in self._children)


class AgentReport:
    """What torchrun's agent says of the ranks that failed; it is written for people, so nothing is taken for granted."""

    RANK = re.compile(r"\brank\s*:\s*(\d+)\s*\(local_rank:\s*(\d+)\)")
    EXIT = re.compile(r"\bexit_?code\s*:\s*(-?\d+)")
    EARLY = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+)")

    def __init__(self, text: str) -> None:
        self.exit_codes: Dict[int, int] = {}
        self.root: Optional[int] = None
        local_rank: Optional[int] = None
        root_comes = False
        for line in text.splitlines():
            early = self.EARLY.search(line)
            if early:
                self.root = int(early.group(2))
                self.exit_codes[self.root] = int(early.group(1))
            root_comes = root_comes or line.startswith("Root Cause")
            rank, code = self.RANK.search(line), self.EXIT.search(line)
            if rank:
                local_rank = int(rank.group(2))
            elif code and local_rank is not None:
                self.exit_codes[local_rank] = int(code.group(1))
                if root_comes:
                    self.root, root_comes = local_rank, False
                local_rank = None


class TorchrunRanks(Ranks):
    """Ranks that torchrun's agent starts: one agent on each node, rendezvous by the given address, restarts are ours."""

    CLOSING = re.compile(rb"closing signal|failed \(exitcode")

    def __init__(self, launch: Launch, log: Stream) -> None:
        super().__init__(launch)
        self._log = log
        self._log_from = 0
        self._seen_to = 0
        self._agent: Optional[Child] = None
        self._starts: Dict[int, int] = {}
        self._closing_at: Optional[float] = None
        self._report_read = False

    def start(self) -> None:
        """Start the agent."""
        launch, plan = self.launch, self.launch.plan
        self._log.look()
        self._log_from = self._seen_to = self._log.size
        arguments = launch.arguments
        options = {
            "nnodes": arguments.nodes,
            "node_rank": arguments.node_rank,
            "nproc_per_node": plan.processes,
            "master_addr": arguments.master_addr,
            "master_port": arguments.master_port,
            "rdzv_id": "%s-%d" % (plan.run_id, launch.place.attempt),
            "max_restarts": 0,
            "monitor_interval": 0.1,
        }
        argv = [*entry_words("--keep-output"), launch.python]
        argv += ["-m", "torch.distributed.run", "--no_python"]
        argv += ["--%s=%s" % option for option in options.items()]
        argv += [*entry_words("--write-pid"), *launch.argv]
        environment = dict(launch.environment)
        environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = str(int(plan.stop_grace) + 1)
        self._agent = launch.children.start("torchrun", argv, environment, launch.cwd)

    def refresh(self) -> bool:
        """See which ranks are up, which are gone, and what the agent says."""
        changed = self._look_at_processes()
        if not self.told:
            self._watch_agent()
        if self._agent is not None and self._agent.ended and not self._report_read:
            self._report_read = changed = True
            self._take_report(self._agent)
        return changed

    @property
    def ended(self) -> bool:
        """Whether the agent was waited for."""
        return self._report_read

    @property
    def failing(self) -> bool:
        """Whether the agent has begun to end its ranks, or did end with an error."""
        return self.failure is not None or self._closing_at is not None

    @property
    def grace(self) -> float:
        """What is left of the grace that the agent already gives."""
        grace = super().grace
        if self._closing_at is None:
            return grace
        return max(0.0, self._closing_at + grace - time.monotonic())

    def _look_at_processes(self) -> bool:
        changed = False
        for state in self.states:
            if state.pid is None:
                changed = self._take_pid(state) or changed
            elif state.ended_at is None and state.local_rank in self._starts:
                process = read_process(state.pid)
                started = self._starts[state.local_rank]
                if process is None or process.started != started or process.state in "ZX":
                    state.ended_at = time.time()
                    changed = True
        return changed

    def _take_pid(self, state: RankState) -> bool:
        path = self.launch.place.pid_file(state.local_rank)
        note = read_json(path) or {}
        pid, started_at = note.get("pid"), note.get("time")
        if not isinstance(pid, int) or not isinstance(started_at, float):
            return False
        state.pid, state.started_at = pid, started_at
        process = read_process(pid)
        if process is not None:
            self._starts[state.local_rank] = process.started
        elif os.path.isdir("/proc/self"):
            state.ended_at = time.time()
        with contextlib.suppress(OSError):
            os.unlink(path)
        return True

    def _watch_agent(self) -> None:
        """An agent that ends its ranks has seen one fail; it may take half a minute to say so, we don't."""
        if self._closing_at is None and self._log.size > self._seen_to:
            data, self._seen_to = self._new_bytes(), self._log.size
            if self.CLOSING.search(data):
                self._closing_at = time.monotonic()
        if self._closing_at is not None and self.grace == 0.0:
            self.failure = self.failure or Failure(1, None)

    def _new_bytes(self) -> bytes:
        # A little of what was seen before, in case the words came in two parts.
        start = max(self._log_from, self._seen_to - 64)
        with contextlib.suppress(OSError):
            return os.pread(self._log.descriptor, 1 << 20, start)
        return b""

    def _take_report(self, agent: Child) -> None:
        """Take over what the agent's end and its words tell."""
        self._log.look()
        data, start = self._log.tail(1 << 18)
        report = AgentReport(data[max(0, self._log_from - start) :].decode("utf-8", "replace"))
        for state in self.states:
            state.ended_at = state.ended_at or agent.ended_at
            code = report.exit_codes.get(state.local_rank)
            if agent.exit_code == 0:
                state.exit_code = 0
            elif code is not None:
                state.exit_code, state.signal = (code, None) if code >= 0 else (128 - code, -code)
        if agent.exit_code and (self.failure is None or report.root is not None):
            self.failure = self._failure(agent, report)
        if agent.exit_code and not self.told and not any(state.pid for state in self.states):
            self.error = self._agent_error(agent, last_error(data, start))

    def _failure(self, agent: Child, report: AgentReport) -> Failure:
        roots = [
            state for state in self.states if state.local_rank == report.root and state.exit_code
        ]
        if roots:
            return Failure(roots[0].exit_code or 1, roots[0].signal)
        if self.told:
            return STOPPED
        return Failure(agent.exit_code, agent.signal)

    def _agent_error(self, agent: Child, error: Optional[LoggedError]) -> LauncherError:
        log = os.path.relpath(self.launch.place.node_log, self.launch.place.bundle)
        why = ": %s: %s" % (error.type, error.message) if error else ""
        text = "torchrun did not start the ranks" + why[:1000]
        return LauncherError("torchrun_failed", text, "see " + log, None, agent.exit_code)


class PeerWatch:
    """Sees that another node failed, or that a later attempt has begun; with one cheap look at a time."""

    def __init__(self, place: Place, arguments: NodeArguments) -> None:
        self._place = place
        self._alone = arguments.unshared
        self._single = arguments.nodes == 1
        self._every = 2.0 if self._single else max(1.0, arguments.nodes / 200.0)
        self._next = 0.0

    def look(self) -> Optional[str]:
        """Why this node has to stop, or None."""
        now = time.monotonic()
        if self._alone or now < self._next:
            return None
        self._next = now + self._every
        if os.path.exists(self._place.next_attempt):
            return "superseded"
        failed = None if self._single else read_json(self._place.failed)
        if failed is not None and failed.get("node_rank") != self._place.node_rank:
            return "peer"
        return None


# ----------------------------------------------------------------------------------------------------------------------
# The node
# ----------------------------------------------------------------------------------------------------------------------

TORCH_CHECK = (
    "import importlib.util, sys; sys.exit(3 if importlib.util.find_spec('torch') is None else 0)"
)

Step = Callable[[str, Sequence[str], Mapping[str, str], str, Sequence[int]], Child]
"""Runs something to its end before the ranks start, while the loop turns: name, words, environment, folder, descriptors."""


class Preparation:
    """Makes a plan into a launch: environment, setup lines, interpreter, and whether this node has what it takes."""

    def __init__(
        self, place: Place, arguments: NodeArguments, files: BundleFiles, log: NodeLog
    ) -> None:
        self._place = place
        self._arguments = arguments
        self._files = files
        self._log = log

    def launch(
        self, plan: Plan, secrets: Mapping[str, str], children: Children, run_step: Step
    ) -> Launch:
        """Everything that starting the ranks takes.

        Raises:
            LauncherError: Something of it is missing on this node, or the setup lines failed.
            StopRequested: The node was told to stop meanwhile.
        """
        place, arguments = self._place, self._arguments
        cwd = os.path.join(place.bundle, plan.cwd)
        if not os.path.isdir(cwd):
            hint = "the folder must exist on every node"
            raise LauncherError("cwd_missing", "the working folder %s does not exist" % cwd, hint)
        environment = node_environment(plan, place, arguments, secrets)
        if plan.setup is not None and plan.setup.strip():
            environment = self._run_setup(plan.setup, environment, cwd, run_step)
            environment.update(launcher_variables(plan, place, arguments))
        cpus = max(1, (plan.cpus or available_cpus()) // plan.processes)
        environment.setdefault("OMP_NUM_THREADS", str(cpus))
        environment["PWD"] = cwd
        python = self._find_python(plan, environment, cwd)
        argv = plan.argv(place.bundle, python)
        if find_program(argv[0], environment, cwd) is None:
            hint = "the first word of a command is a program on the node"
            raise LauncherError("command_missing", "%s is no program on this node" % argv[0], hint)
        if plan.launcher == "torchrun":
            self._check_torch(python, environment, cwd, run_step)
        return Launch(plan, place, arguments, python, argv, cwd, environment, children)

    def _find_python(self, plan: Plan, environment: Mapping[str, str], cwd: str) -> str:
        if plan.python is None:
            return sys.executable
        python = find_program(plan.python, environment, cwd)
        if python is None:
            hint = "name another with --python, a path that exists on the nodes"
            raise LauncherError("python_missing", "there is no %s on this node" % plan.python, hint)
        return python

    def _run_setup(
        self, lines: str, environment: Mapping[str, str], cwd: str, run_step: Step
    ) -> Dict[str, str]:
        """Run the setup lines; the environment that they leave."""
        path = self._place.setup_file
        with open(self._files.open(path, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(lines.encode("utf-8", "surrogateescape") + b"\n")
        result = anonymous_file()
        try:
            argv = ["/bin/bash", "-e", "-c", SETUP, "setup", path, str(result)]
            child = run_step("setup", argv, environment, cwd, [result])
            data = os.pread(result, os.fstat(result).st_size, 0)
        finally:
            os.close(result)
        if child.exit_code:
            log = os.path.relpath(self._place.node_log, self._place.bundle)
            message = "the setup lines failed: bash " + describe_end(child.exit_code, child.signal)
            detail = {"exit_code": child.exit_code, "log": log}
            hint = "see " + log
            raise LauncherError("setup_failed", message, hint, detail, child.exit_code)
        left = parse_environment(data)
        if not left:
            self._log.note("the setup lines left no environment, so it stays as it was")
        return left or dict(environment)

    def _check_torch(
        self, python: str, environment: Mapping[str, str], cwd: str, run_step: Step
    ) -> None:
        """See that torchrun can run, before its traceback has to tell."""
        name = "the check for torch"
        child = run_step(name, [python, "-c", TORCH_CHECK], environment, cwd, ())
        if child.exit_code == 3:
            hint = "install torch there, name another --python, or use --launcher python"
            message = "torchrun was asked for, but %s cannot import torch" % python
            raise LauncherError("torch_missing", message, hint, {"python": python})
        if child.exit_code:
            end = describe_end(child.exit_code, child.signal)
            raise LauncherError("python_failed", "%s does not work: it %s" % (python, end))


class ErrorRecorder:
    """Writes down what failed ranks failed with, from their logs, where the runner in the rank did not."""

    def __init__(self, place: Place, streams: Streams, records: Records) -> None:
        self._place = place
        self._streams = streams
        self._records = records

    def record(self, states: Sequence[RankState], secrets: Mapping[str, str]) -> None:
        """Look at the ranks that have ended with something else than 0."""
        for state in states:
            path = self._place.rank_error(state.rank)
            if state.exit_code == 0 or state.ended_at is None or os.path.exists(path):
                continue
            stream = self._streams[str(state.local_rank)]
            with contextlib.suppress(OSError):
                stream.look()
            error = last_error(*stream.tail(ERROR_WINDOW))
            # One whose exit code is unknown, or that was ended, may have got over an error long ago.
            ended = state.exit_code is None or state.signal in (signal.SIGTERM, signal.SIGKILL)
            if error is not None and (error.ends_log or not ended):
                document = self._document(state, error, stream.index.time_of(error.offset))
                for name in ("message", "traceback"):
                    document[name] = without_secrets(document[name], secrets)
                self._records.put_once(path, document)

    def _document(self, state: RankState, error: LoggedError, seen_at: float) -> Dict[str, Any]:
        return {
            "time": seen_at,
            "rank": state.rank,
            "node_rank": self._place.node_rank,
            "local_rank": state.local_rank,
            "type": error.type,
            "message": error.message,
            "traceback": error.traceback,
            "cell": error.cell,
            "line": error.line,
            "file": error.file,
        }


class Node:
    """One node in one attempt, from its first record to its last."""

    ENDING_DELAY = 0.05

    def __init__(
        self, arguments: NodeArguments, place: Place, files: BundleFiles, signals: Signals
    ) -> None:
        self._arguments = arguments
        self._place = place
        self._signals = signals
        self._log = NodeLog(files, place.node_log)
        self._records = Records(files, self._log.note)
        self._outlet = Outlet(1)
        self._streams = Streams(place, files, arguments.nodes, self._outlet, not arguments.quiet)
        self._streams.open("node", place.node_log, "node-%d" % place.node_rank)
        self._errors = ErrorRecorder(place, self._streams, self._records)
        self._children = Children(self._log.descriptor)
        self._belongings = Belongings(place, self._children)
        self._peers = PeerWatch(place, arguments)
        self._preparation = Preparation(place, arguments, files, self._log)
        self._started_at = time.time()
        self._ended_at: Optional[float] = None
        self._plan: Optional[Plan] = None
        self._ranks: Optional[Ranks] = None
        self._ending: Optional[Ending] = None
        self._secrets: Dict[str, str] = {}
        self._stopped_by: Optional[str] = None
        self._error: Optional[LauncherError] = None
        self._outcome: Optional[Failure] = None
        self._announced = False
        self._told_of_stdout = False

    def run(self) -> int:
        """Run the node; its exit code."""
        try:
            self._prepare()
            self._supervise()
        except LauncherError as error:
            self._error = error
        except StopRequested:
            pass  # _stopped_by tells
        except OSError as error:
            text = "the node's storage fails: %s" % error
            self._error = LauncherError("storage", text, "see its free space and quota")
        except Exception as error:  # noqa: BLE001 - a fault of ours must still end the ranks and be told
            import traceback

            self._log.write_line(traceback.format_exc().rstrip())
            text = "the launcher failed: %s" % type(error).__name__
            self._error = LauncherError("internal", text, "see the node's log")
        if self._error is not None:
            self._log.note(str(self._error))
        self._announce_failure()
        self._end_processes()
        return self._finish()

    # ---- the loop

    def turn(self) -> None:
        """One turn of the loop: wait a little, then see to everything that may have happened."""
        delay = self._streams.delay
        self._signals.wait(min(delay, self.ENDING_DELAY) if self._ending else delay)
        for number in self._signals.take():
            self._take_signal(number)
        self._children.reap()
        self._streams.poll(self._records)
        if self._ranks is not None and self._ranks.refresh():
            self._write_record()
        if self._stopped_by is None and self._ending is None:
            reason = self._peers.look()
            if reason is not None:
                self._stop(reason)
        self._records.retry()
        self._tell_of_broken_stdout()

    def _take_signal(self, number: int) -> None:
        if number in WARNING_SIGNALS:
            self._forward(number)
        elif self._ending is None and self._stopped_by is None:
            self._stop(signal_name(number))

    def _stop(self, reason: str) -> None:
        self._stopped_by = reason
        words = {
            "peer": "another node failed",
            "superseded": "a later attempt of this run has begun",
        }
        self._log.note("stopping: " + words.get(reason, "got " + reason))

    def _told_to_stop(self) -> bool:
        return any(number in STOP_SIGNALS for number in self._signals.take())

    def _check_stop(self) -> None:
        if self._stopped_by is not None:
            raise StopRequested(self._stopped_by)

    def _tell_of_broken_stdout(self) -> None:
        if self._outlet.broken is not None and not self._told_of_stdout:
            self._told_of_stdout = True
            text = "stdout: %s; the logs go on in their files only"
            self._log.note(text % self._outlet.broken)

    def _forward(self, number: int) -> None:
        """Pass a warning signal on to the ranks that can do something with it."""
        policy = self._plan.forward_signals if self._plan else "never"
        reached = []
        for state in self._ranks.states if self._ranks and policy != "never" else ():
            if state.pid is None or state.ended_at is not None:
                continue
            targets = [state.pid] if policy == "always" else topmost_catchers(state.pid, number)
            if [target for target in targets if send(target, number)]:
                reached.append(str(state.rank))
        told = "passed to rank " + ", ".join(reached) if reached else "no rank was told"
        self._log.note("%s: %s (%s)" % (signal_name(number), told, policy))

    # ---- from the plan to running ranks

    def _prepare(self) -> None:
        """Read the plan and the secrets, run the setup lines, start the ranks."""
        plan = self._read_plan()
        self._delete_secrets_once_read(False)
        self.turn()
        self._check_stop()
        launch = self._preparation.launch(plan, self._secrets, self._children, self._run_step)
        torchrun = plan.launcher == "torchrun"
        self._ranks = (
            TorchrunRanks(launch, self._streams["node"]) if torchrun else DirectRanks(launch)
        )
        for state in self._ranks.states:
            path = self._place.rank_log(state.local_rank)
            self._streams.open(str(state.local_rank), path, str(state.rank))
        self._check_stop()
        self._ranks.start()
        self._write_record()

    def _read_plan(self) -> Plan:
        """The plan; the node's first record says by its being there that the secrets were read."""
        try:
            self._plan = Plan.load(os.path.join(self._place.bundle, "launch.json"))
            self._secrets = read_secrets(self._place.bundle, self._plan.secrets)
        finally:
            self._say_hello()
            self._write_record()
        return self._plan

    def _say_hello(self) -> None:
        """The machine-readable line: first in the node's log, and on stdout even when that is to be quiet."""
        arguments, plan = self._arguments, self._plan
        document = {
            "run_id": plan.run_id if plan else None,
            "host": os.uname().nodename,
            "node": arguments.node_name,
            "node_rank": arguments.node_rank,
            "attempt": self._place.attempt,
            "local_world_size": plan.processes if plan else None,
            "pid": os.getpid(),
        }
        line = "##hyperpod " + json.dumps(document)
        self._log.write_line(line)
        self._outlet.put(line.encode() + b"\n")
        self._streams["node"].skip_echo()
        if plan is not None and plan.nodes != arguments.nodes:
            text = "the plan is for %d nodes, started on %d"
            self._log.note(text % (plan.nodes, arguments.nodes))

    def _run_step(
        self,
        name: str,
        argv: Sequence[str],
        environment: Mapping[str, str],
        cwd: str,
        fds: Sequence[int],
    ) -> Child:
        words = [*entry_words("--keep-output"), *argv]
        child = self._children.start(name, words, environment, cwd, fds)
        while not child.ended:
            self.turn()
            self._check_stop()
        return child

    def _delete_secrets_once_read(self, failed: bool) -> None:
        """Delete the secrets' files when all nodes have read them, or this one has failed.

        A node's record is there once it has read them.
        """
        plan, place, arguments = self._plan, self._place, self._arguments
        kept = plan is None or plan.keep_secrets or arguments.task is not None
        if kept or plan is None or not plan.secrets:
            return
        nodes = range(1 if arguments.unshared else arguments.nodes)
        others = (node for node in nodes if node != place.node_rank)
        if failed or all(os.path.exists(place.node_record_of(node)) for node in others):
            delete_secrets(place.bundle, plan.secrets)

    # ---- while they run, and the end

    def _supervise(self) -> None:
        """Until all ranks have ended, one has failed, or somebody wants a stop."""
        ranks = self._ranks
        while ranks is not None and not (ranks.ended or ranks.failure or self._stopped_by):
            self.turn()
            self._announce_failure()

    @property
    def _failed(self) -> bool:
        return self._error is not None or (self._ranks is not None and self._ranks.failing)

    def _announce_failure(self) -> None:
        """Let the other nodes know as early as can be, so that they stop, and say what it was."""
        if self._failed and not self._announced:
            self._announced = True
            failure = self._ranks.failure if self._ranks else None
            self._mark_failed(Failure(self._error.exit_code, None) if self._error else failure)
            self._record_errors()

    def _mark_failed(self, failure: Optional[Failure]) -> None:
        document = {
            "time": time.time(),
            "node_rank": self._place.node_rank,
            "exit_code": failure.exit_code if failure else None,
            "signal": failure.signal if failure else None,
        }
        self._records.put_once(self._place.failed, document)

    def _record_errors(self) -> None:
        if self._ranks is not None:
            self._errors.record(self._ranks.states, self._secrets)

    def _end_processes(self) -> None:
        """End whatever of this node still runs: ranks, their helpers, what the setup lines started."""
        ranks = self._ranks
        grace = self._plan.stop_grace if self._plan else 0.0
        natural = False
        if ranks is not None:
            grace, natural = ranks.grace, ranks.ended and not ranks.failing
            ranks.told = True
        # What the ranks leave behind often ends by itself, just after them.
        ending = Ending(self._belongings.find, grace, 0.25 if natural else 0.0)
        self._ending = ending
        while not ending.step(self._children.reaped):
            self.turn()
        self._children.reap()
        if ranks is not None and ranks.refresh():
            self._write_record()
        for words, processes in (("killed", ending.killed), ("cannot be ended", ending.left)):
            if processes:
                names = sorted("%s (%d)" % (name, pid) for pid, name in processes.items())
                self._log.note("%s: %s" % (words, ", ".join(names[:20])))

    def _finish(self) -> int:
        """The last words: errors, logs, records."""
        self._streams.poll(self._records)
        self._record_errors()
        if self._error is None and self._ranks is not None:
            self._error = self._ranks.error
        if self._error is not None:
            self._error.message = without_secrets(self._error.message, self._secrets)
        outcome = self._find_outcome()
        if outcome.exit_code and not self._announced and self._stopped_by != "peer":
            self._mark_failed(outcome)
        self._delete_secrets_once_read(outcome.exit_code != 0)
        self._tell_of_broken_stdout()
        limit, patience = (1.0, 0.5) if self._stopped_by else (30.0, 2.0)
        missing = self._streams.drain(limit, patience, self._told_to_stop)
        if missing:
            text = "stdout did not take the last %d bytes; they are in the log files"
            self._log.note(text % missing)
        self._outcome, self._ended_at = outcome, time.time()
        self._streams.finish(self._records)
        self._write_record()
        self._records.flush(1.0)
        return outcome.exit_code

    def _find_outcome(self) -> Failure:
        if self._error is not None:
            return Failure(self._error.exit_code, None)
        ranks = self._ranks
        if ranks is not None and ranks.failure is not None:
            return ranks.failure
        if self._stopped_by is not None and (ranks is None or not ranks.ended):
            return STOPPED
        return Failure(0, None)

    def _write_record(self) -> None:
        """Write the node's record as things stand."""
        outcome, states = self._outcome, self._ranks.states if self._ranks else []
        document = {
            "format": FORMAT,
            "node_rank": self._place.node_rank,
            "node": self._arguments.node_name,
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "started_at": self._started_at,
            "ended_at": self._ended_at,
            "exit_code": outcome.exit_code if outcome else None,
            "signal": outcome.signal if outcome else None,
            "ranks": [state.to_dict() for state in states],
            "stopped_by": self._stopped_by,
            "error": self._error.to_dict() if self._error else None,
        }
        self._records.put(self._place.node_record, document)


# ----------------------------------------------------------------------------------------------------------------------
# Subcommands
# ----------------------------------------------------------------------------------------------------------------------


def run_rank(words: Sequence[str]) -> int:
    """Become a rank (or with ``--keep-output`` another process of the node); returns only when that fails.

    The log's path comes from the rank's variables, because torchrun starts all ranks with the same words.
    """
    options, argv = list(words[: words.index("--")]), list(words[words.index("--") + 1 :])
    parent = os.environ.pop(PARENT, "")
    die_with_parent(int(parent) if parent.isdigit() else None)
    node_log = os.dup(2)  # closed by exec
    try:
        if "--keep-output" in options:
            os.environ[PARENT] = str(os.getpid())  # torchrun's agent hands it on to its ranks
        else:
            _take_rank_files("--write-pid" in options)
        # Python ignores these for itself; a shell command must not inherit that.
        for name in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.execvp(argv[0], argv)  # noqa: S606 - to become the rank is the point
    except OSError as error:
        label = "rank %s" % os.environ.get("RANK", "?") if not options else argv[0]
        text = "hyperpod: %s: %s cannot be run: %s\n" % (label, argv[0], error.strerror)
        os.write(node_log, os.fsencode(text))
        return 127 if error.errno == errno.ENOENT else 126


def _take_rank_files(write_pid: bool) -> None:
    """Make the rank's log stdout and stderr, and nothing stdin."""
    variables = os.environ
    place = Place(
        variables["HYPERPOD_BUNDLE"],
        variables["HYPERPOD_RECORDS"],
        int(variables["HYPERPOD_ATTEMPT"]),
        int(variables["NODE_RANK"]),
    )
    local_rank = int(variables["LOCAL_RANK"])
    log = os.open(place.rank_log(local_rank), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    if write_pid:
        with contextlib.suppress(OSError):
            files = BundleFiles(place.bundle)
            files.write(place.pid_file(local_rank), {"pid": os.getpid(), "time": time.time()})


def run_node(arguments: NodeArguments) -> int:
    """Run this node; its exit code."""
    bundle = os.path.dirname(os.path.abspath(__file__))
    signals = Signals()
    signals.install()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        files = BundleFiles(bundle)
        place = enter_attempt(files, bundle, arguments, signals)
        node = Node(arguments, place, files, signals)
    except FencedError as error:
        complain("another job (%s) holds this run; this one ends" % error)
        return EXIT_FENCED
    except StopRequested as stop:
        complain("stopped by %s before the attempt began" % stop.reason)
        return STOPPED.exit_code
    except LauncherError as error:
        complain(str(error))
        leave_word(bundle, arguments, error)
        return error.exit_code
    except OSError as error:
        complain("the bundle's storage fails: %s" % error)
        return EXIT_LAUNCHER
    exit_code = node.run()
    signals.ignore()
    return exit_code


def complain(text: str) -> None:
    """Say on stderr why nothing was started."""
    with contextlib.suppress(OSError):
        os.write(2, ("hyperpod: " + text + "\n").encode("utf-8", "backslashreplace"))


def leave_word(bundle: str, arguments: NodeArguments, error: LauncherError) -> None:
    """Record the error of a node that came into no attempt, as far as that can be done."""
    parts = () if arguments.task is None else ("tasks", str(arguments.task))
    folder = os.path.join(bundle, *parts, "status", "unstarted")
    document = {
        "time": time.time(),
        "scheduler_id": arguments.scheduler_id,
        "incarnation": arguments.incarnation,
        "node_rank": arguments.node_rank,
        "node": arguments.node_name,
        "error": error.to_dict(),
    }
    with contextlib.suppress(OSError):
        files = BundleFiles(bundle)
        files.make_folders(folder)
        files.write(os.path.join(folder, "node-%d.json" % arguments.node_rank), document)


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are the launcher's own failures."""

    def error(self, message: str) -> NoReturn:
        """Complain and end."""
        complain(message)
        sys.exit(EXIT_LAUNCHER)


def parse_node(words: Sequence[str]) -> NodeArguments:
    """Read the arguments of ``node``."""
    parser = Parser(prog="launcher.py node", allow_abbrev=False)
    parser.add_argument("--node-rank", type=int, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--master-addr", required=True)
    parser.add_argument("--master-port", type=int, required=True)
    parser.add_argument("--scheduler-id", required=True)
    parser.add_argument("--incarnation", required=True)
    parser.add_argument("--node-name", default=os.uname().nodename)
    parser.add_argument("--task", type=int)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--wait-attempt", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--unshared", action="store_true")
    parser.add_argument("--attempt", type=int)
    arguments = NodeArguments(**vars(parser.parse_args(list(words))))
    if not 0 <= arguments.node_rank < arguments.nodes:
        parser.error("--node-rank must be from 0 to --nodes less 1")
    if arguments.attempt is not None and (arguments.attempt < 1 or not arguments.unshared):
        parser.error("--attempt is a number from 1, and goes with --unshared only")
    if arguments.task is not None and arguments.task < 0:
        parser.error("--task is a number from 0")
    return arguments


def main(words: Sequence[str]) -> int:
    """Run a subcommand; the exit code."""
    if sys.version_info < (3, 8):
        complain("the launcher needs Python 3.8 or newer, this is %d.%d" % sys.version_info[:2])
        return EXIT_LAUNCHER
    if words and words[0] == "rank" and "--" in words:
        return run_rank(words[1:])
    if not words or words[0] != "node":
        complain("usage: launcher.py node ARGUMENTS | launcher.py rank -- COMMAND")
        return EXIT_LAUNCHER
    if sys.getfilesystemencoding().lower().replace("-", "") != "utf8":
        # The plan's text is UTF-8, whatever the node's locale says.
        again = [sys.executable, "-X", "utf8", os.path.abspath(__file__), *words]
        os.execv(sys.executable, again)  # noqa: S606
    hold_standard_descriptors()
    return run_node(parse_node(words[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
