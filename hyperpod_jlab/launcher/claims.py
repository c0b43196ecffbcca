"""The fence and the attempt."""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .bundle_files import AttemptPaths, BundleFiles, read_json, records_folder
from .errors import AlreadyDoneError, FencedError, LauncherError
from .plan import NodeArguments
from .system import Signals


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
    claim = {"scheduler_id": arguments.scheduler_id, "node": arguments.node_name, "time": time.time()}
    files.write_once(os.path.join(status, "claim.json"), claim)
    if not check_fence(status, arguments.scheduler_id):
        raise LauncherError("storage", "the claim in %s cannot be read back" % status)


def free_port() -> int:
    """A port that nobody listens on now, outside of the range that outgoing connections take theirs from."""
    for port in random.sample(range(20000, 32000), 200):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("", port))
            return port
    raise LauncherError("no_free_port", "no port from 20000 to 31999 is free on this node")


def attempt_numbers(status: str) -> List[int]:
    """The attempts that there are."""
    names = os.listdir(status)
    return [int(name[8:]) for name in names if re.fullmatch(r"attempt-[1-9][0-9]*", name)]


def open_attempt(
    files: BundleFiles, status: str, arguments: NodeArguments, members: Optional[Mapping[str, Any]] = None
) -> int:
    """Open the next attempt, by the first free number.

    Args:
        files: What makes files.
        status: The folder of records.
        arguments: This node's.
        members: The launchers that take part, by node; unless a scheduler has started them with the incarnation.
    """
    number = 1
    while not files.claim_folder(os.path.join(status, "attempt-%d" % number)):
        number += 1
    claim: Dict[str, Any] = {
        "scheduler_id": arguments.scheduler_id,
        "incarnation": arguments.incarnation,
        "time": time.time(),
        "master_port": arguments.master_port,
    }
    if members is not None:
        claim["members"] = members
    files.write(os.path.join(status, "attempt-%d" % number, "claim.json"), claim)
    return number


def find_attempt(status: str, arguments: NodeArguments) -> Optional[int]:
    """The newest attempt with our incarnation, unless we were in it already and have been started again."""
    try:
        numbers = attempt_numbers(status)
    except OSError:
        return None
    for number in sorted(numbers, reverse=True):
        folder = os.path.join(status, "attempt-%d" % number)
        claim = read_json(os.path.join(folder, "claim.json")) or {}
        expected = (arguments.scheduler_id, arguments.incarnation)
        if (claim.get("scheduler_id"), claim.get("incarnation")) == expected:
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
        number = find_attempt(status, arguments)
        if number is not None:
            return number
        check_not_done(status, arguments.nodes)
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
) -> Tuple[AttemptPaths, NodeArguments]:
    """Pass the fence and come to the attempt that this node takes part in.

    Where the engine leaves the master's port open (0), node 0 chooses one and the others find it in the attempt's claim.
    """
    records = records_folder(bundle, arguments.task)
    status = os.path.join(records, "status")
    files.make_folders(status)
    if arguments.node_rank == 0:
        if not arguments.master_port:
            arguments = arguments._replace(master_port=free_port())
        claim_fence(files, status, arguments)
        check_not_done(status, arguments.nodes)
        number = open_attempt(files, status, arguments)
    else:
        number = join_attempt(status, arguments, signals.pause)
        if not arguments.master_port:
            arguments = arguments._replace(master_port=chosen_port(status, number))
    attempt_paths = AttemptPaths(bundle, records, number, arguments.node_rank)
    files.make_folders(attempt_paths.logs)
    return attempt_paths, arguments


def check_not_done(status: str, nodes: int) -> None:
    """See that the run has not succeeded.

    Raises:
        DoneError: All nodes of its newest attempt ended with 0.
    """
    newest = max(attempt_numbers(status), default=0)
    if newest and has_succeeded(status, newest, nodes):
        raise AlreadyDoneError("attempt %d succeeded" % newest)


def has_succeeded(status: str, number: int, nodes: int) -> bool:
    """Whether all nodes of an attempt ended with 0."""
    folder = os.path.join(status, "attempt-%d" % number)
    records = [read_json(os.path.join(folder, "node-%d.json" % rank)) for rank in range(nodes)]
    return all(record is not None and record.get("exit_code") == 0 for record in records)


def chosen_port(status: str, number: int) -> int:
    """The port that node 0 chose for an attempt."""
    claim = read_json(os.path.join(status, "attempt-%d" % number, "claim.json")) or {}
    port = claim.get("master_port")
    if not isinstance(port, int):
        raise LauncherError("no_port", "attempt %d: the claim record has no master port" % number)
    return port


def has_restarts_left(status: str, scheduler_id: str, max_restarts: int) -> bool:
    """Whether our job may open another attempt after one that failed by itself.

    Only such ones count: an attempt that was ended from outside (a requeue, a preemption) used up nothing.
    """
    claim = read_json(os.path.join(status, "claim.json")) or {}
    if claim.get("scheduler_id") != scheduler_id or is_cancel_requested(status):
        return False
    numbers = attempt_numbers(status)
    failure_records = [read_json(os.path.join(status, "attempt-%d" % n, "failed.json")) for n in numbers]
    failures = [
        failure_record
        for failure_record in failure_records
        if failure_record is not None and failure_record.get("stopped_by") is None
    ]
    newest = failure_records[numbers.index(max(numbers))] if numbers else None
    return newest in failures and len(failures) <= max_restarts


def is_cancel_requested(status: str) -> bool:
    """Whether the journal holds the user's cancel."""
    folder = os.path.join(status, "actions")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    actions = [read_json(os.path.join(folder, name)) or {} for name in names]
    return any(action.get("action") == "cancel" for action in actions)
