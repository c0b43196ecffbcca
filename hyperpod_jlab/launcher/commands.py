"""Subcommands."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import signal
import sys
import time
from typing import NoReturn, Sequence

from .agent import run_agent
from .bundle_files import AttemptPaths, BundleFiles, records_folder
from .claims import enter_attempt, has_restarts_left, is_cancel_requested
from .contract import EXIT_FENCED, EXIT_LAUNCHER
from .environments import run_environment
from .errors import AlreadyDoneError, FencedError, LauncherError, StopRequested
from .logs import Outlet
from .node import Node
from .plan import NodeArguments
from .ranks import STOPPED_FAILURE
from .rendezvous import Member, Peers
from .system import PARENT, PR_SET_CHILD_SUBREAPER, Signals, die_with_parent, hold_standard_descriptors, prctl


def run_rank(raw_args: Sequence[str]) -> int:
    """Become a rank (or with ``--keep-output`` another process of the node); returns only when that fails.

    The log's path comes from the rank's variables, because torchrun starts all ranks with the same words.
    """
    options, argv = (list(raw_args[: raw_args.index("--")]), list(raw_args[raw_args.index("--") + 1 :]))
    parent = os.environ.pop(PARENT, "")
    die_with_parent(int(parent) if parent.isdigit() else None)
    node_log = os.dup(2)  # closed by exec
    try:
        if "--keep-output" in options:
            os.environ[PARENT] = str(os.getpid())  # torchrun's agent hands it on to its ranks
        else:
            _redirect_rank_output("--write-pid" in options)
        # Python ignores these for itself; a shell command must not inherit that.
        for name in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.execvp(argv[0], argv)  # noqa: S606 - to become the rank is the point
    except OSError as error:
        label = "rank %s" % os.environ.get("RANK", "?") if not options else argv[0]
        text = "hyperpod: %s: %s cannot be run: %s\n" % (label, argv[0], error.strerror)
        os.write(node_log, os.fsencode(text))
        return 127 if error.errno == errno.ENOENT else 126


def _redirect_rank_output(write_pid: bool) -> None:
    """Make the rank's log stdout and stderr, and nothing stdin."""
    variables = os.environ
    attempt_paths = AttemptPaths(
        variables["HYPERPOD_BUNDLE"],
        variables["HYPERPOD_RECORDS"],
        int(variables["HYPERPOD_ATTEMPT"]),
        int(variables["NODE_RANK"]),
    )
    local_rank = int(variables["LOCAL_RANK"])
    log = os.open(attempt_paths.rank_log(local_rank), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    if write_pid:
        with contextlib.suppress(OSError):
            files = BundleFiles(attempt_paths.bundle)
            files.write(attempt_paths.pid_file(local_rank), {"pid": os.getpid(), "time": time.time()})


def run_node(arguments: NodeArguments) -> int:
    """Run this node; its exit code."""
    signals = Signals()
    signals.install()
    exit_code = _run_node(arguments, signals)
    signals.ignore()
    return exit_code


def _run_node(arguments: NodeArguments, signals: Signals) -> int:
    bundle = os.path.dirname(os.path.abspath(__file__))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    outlet = Outlet(1)
    try:
        files = BundleFiles(bundle)
        if arguments.incarnation is None:
            return _run_member(files, bundle, arguments, signals)
        attempt_paths, arguments = enter_attempt(files, bundle, arguments, signals)
        peers = Peers(attempt_paths, arguments)
        node = Node(arguments, attempt_paths, files, signals, outlet, peers)
    except FencedError as error:
        print_error("another job (%s) already executes this run; this job ends" % error)
        return EXIT_FENCED
    except AlreadyDoneError as already_done:
        print_error("this run needs no further attempt: %s" % already_done)
        return 0
    except StopRequested as stop:
        print_error("stopped by %s before the attempt started" % stop.reason)
        return STOPPED_FAILURE.exit_code
    except LauncherError as error:
        print_error(str(error))
        write_end_observation(bundle, arguments, error)
        outlet.flush(1.0)
        return error.exit_code
    except OSError as error:
        print_error("the storage of the bundle failed: %s" % error)
        return EXIT_LAUNCHER
    return node.run()


def _run_member(files: BundleFiles, bundle: str, arguments: NodeArguments, signals: Signals) -> int:
    """Run a node that meets the others by itself; its exit code."""
    records = records_folder(bundle, arguments.task)
    if arguments.task is not None and is_cancel_requested(os.path.join(records, "status")):
        print_error("this task was cancelled before it started")
        return STOPPED_FAILURE.exit_code
    member = Member(files, records, arguments, signals)
    previous_exit_code = member.previous_exit_code()
    if previous_exit_code is not None:
        print_error("this run has ended: this pod does nothing and exits with the same code")
        return previous_exit_code
    while True:
        joined = member.wait_for_attempt()
        if member.gave_up is not None:
            hint = "check why the pod does not run"
            raise LauncherError("no_meeting", member.gave_up, hint, exit_code=member.outcome())
        if joined is None:
            return member.outcome()
        paths = AttemptPaths(bundle, records, member.state["attempt"], arguments.node_rank)
        files.make_folders(paths.logs)
        node = Node(joined, paths, files, signals, Outlet(1), member)
        member.end_attempt(node.run(), node.has_failed_itself)


def print_error(text: str) -> None:
    """Say on stderr why nothing was started."""
    with contextlib.suppress(OSError):
        os.write(2, ("hyperpod: " + text + "\n").encode("utf-8", "backslashreplace"))


def write_end_observation(bundle: str, arguments: NodeArguments, error: LauncherError) -> None:
    """Record the error of a node that came into no attempt, as far as that can be done."""
    folder = os.path.join(records_folder(bundle, arguments.task), "status", "unstarted")
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


def rerun(raw_args: Sequence[str]) -> int:
    """Say by the exit code whether the job may start the run once more (0) or not (1)."""
    parser = Parser(prog="launcher.py again", allow_abbrev=False)
    parser.add_argument("--scheduler-id", required=True)
    parser.add_argument("--max-restarts", type=int, required=True)
    parser.add_argument("--task", type=int)
    args = parser.parse_args(list(raw_args))
    bundle = os.path.dirname(os.path.abspath(__file__))
    status = os.path.join(records_folder(bundle, args.task), "status")
    try:
        return 0 if has_restarts_left(status, args.scheduler_id, args.max_restarts) else 1
    except OSError as error:
        print_error("the storage of the bundle failed: %s" % error)
        return 1


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are the launcher's own failures."""

    def error(self, message: str) -> NoReturn:
        """Complain and end."""
        print_error(message)
        sys.exit(EXIT_LAUNCHER)


def find_task(task_list: str, attempt_paths: int) -> int:
    """The task at a place, from 0, of a list such as ``1-3,7``."""
    for part in task_list.split(","):
        first, _, last = part.partition("-")
        count = int(last or first) - int(first) + 1
        if attempt_paths < count:
            return int(first) + attempt_paths
        attempt_paths -= count
    raise SystemExit("hyperpod: the array has no task at position %d" % attempt_paths)


def parse_node(raw_args: Sequence[str]) -> NodeArguments:
    """Read the arguments of ``node``."""
    parser = Parser(prog="launcher.py node", allow_abbrev=False)
    parser.add_argument("--node-rank", type=int, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--master-addr", required=True)
    parser.add_argument("--master-port", type=int, default=0)
    parser.add_argument("--scheduler-id", required=True)
    parser.add_argument("--incarnation", help="of the attempt; without it the nodes meet by themselves")
    parser.add_argument("--node-name", default=os.uname().nodename)
    parser.add_argument("--task", type=int)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--wait-attempt", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--max-restarts", type=int, default=0)
    parser.add_argument("--time-limit", type=float, metavar="SECONDS")
    parser.add_argument("--patience", type=float, default=3600.0, metavar="SECONDS")
    parser.add_argument("--return-patience", type=float, default=900.0, metavar="SECONDS")
    parser.add_argument("--tasks", metavar="1-3,7", help="--task is a position in this list, from 0")
    parser.add_argument("--no-signal-codes", action="store_true")
    parser.add_argument("--instance")
    values = vars(parser.parse_args(list(raw_args)))
    tasks = values.pop("tasks")
    if tasks is not None:
        values["task"] = find_task(tasks, values["task"])
    arguments = NodeArguments(**values)
    if not 0 <= arguments.node_rank < arguments.nodes:
        parser.error("--node-rank must be from 0 to --nodes less 1")
    if arguments.task is not None and arguments.task < 0:
        parser.error("--task is a number from 0")
    return arguments


def main(raw_args: Sequence[str]) -> int:
    """Run a subcommand; the exit code."""
    if sys.version_info < (3, 8):
        print_error("the launcher needs Python 3.8 or newer, this is %d.%d" % sys.version_info[:2])
        return EXIT_LAUNCHER
    if raw_args and raw_args[0] == "rank" and "--" in raw_args:
        return run_rank(raw_args[1:])
    others = {"agent": run_agent, "again": rerun, "environment": run_environment}
    if raw_args and raw_args[0] in others:
        return others[raw_args[0]](raw_args[1:])
    if not raw_args or raw_args[0] != "node":
        print_error("usage: launcher.py node ARGUMENTS | again ARGUMENTS | rank -- COMMAND")
        return EXIT_LAUNCHER
    if sys.getfilesystemencoding().lower().replace("-", "") != "utf8":
        # The plan's text is UTF-8, whatever the node's locale says.
        command = [sys.executable, "-X", "utf8", os.path.abspath(__file__), *raw_args]
        os.execv(sys.executable, command)  # noqa: S606
    hold_standard_descriptors()
    return run_node(parse_node(raw_args[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
