"""The fence and the attempt."""

from __future__ import annotations

import os
import re
import time
from typing import Callable, Optional

from .bundle_files import BundleFiles, Place, read_json
from .errors import FencedError, LauncherError
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
