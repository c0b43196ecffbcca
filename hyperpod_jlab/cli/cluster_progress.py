"""What becomes of a cluster, as it is shown until its end."""

from __future__ import annotations

import sys
import time

from hyperpod_jlab.admin.clusters import Follower, Progress
from hyperpod_jlab.cli.failure import RunEndedError
from hyperpod_jlab.cli.invocation import InterruptionError, invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.hyperpod_events import ClusterEvent
from hyperpod_jlab.model.run import iso_time


class ClusterEndedError(RunEndedError):
    """A cluster that was waited for did not become what was wanted."""

    default_code = "cluster_failed"


def tell_how_to_look(name: str) -> str:
    """How to see later what became of it."""
    return f"look again: hpj clusters --hyperpod, hpj nodes --hyperpod {name}"


def follow(follower: Follower, name: str, wanted: str) -> None:
    """Show it until its end.

    Args:
        follower: Who looks.
        name: The cluster's name.
        wanted: What is to become of it: ``made``, ``changed`` or ``deleted``.

    Raises:
        ClusterEndedError: It ended otherwise.
        InterruptionError: Ctrl-C was pressed; AWS goes on.
    """
    call = invocation()
    call.on_interrupt = lambda: InterruptionError(
        f"nobody looks any more; AWS goes on, and {name} will be {wanted}",
        hint=tell_how_to_look(name),
        detail={"cluster": name},
    )
    failures: list[ClusterEvent] = []

    async def work(_: object) -> Progress:
        last = before = None
        async with slow_steps(f"waiting until {name} is {wanted}") as steps:
            async for last in follower.follow():
                failures.extend(one for one in last.events if one.level == "error")
                steps.clear()
                if not call.as_json:
                    before = _tell(last, before)
        if last is None:
            raise AssertionError("a follower ends with a look")
        return last

    _conclude(with_services(work), failures, wanted)


def _tell(now: Progress, before: str | None) -> str:
    """Print what is new; returns the line that was printed last."""
    groups = "  ".join(f"{one.name} {one.current}/{one.target}" for one in now.groups)
    line = f"{now.status:<12}  {groups}".rstrip()
    if line != before:
        print(printable(f"{_clock(time.time())}  {line}"), flush=True)
    for event in now.events:
        print(printable(f"{_clock(event.time)}    {_words(event)}"), flush=True)
    for note in now.notes:
        print(f"note: {printable(note)}", file=sys.stderr)
    return line


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def _words(event: ClusterEvent) -> str:
    level = f"{event.level}: " if event.level not in {None, "info"} else ""
    where = f"{event.group}: " if event.group else ""
    reason = f" ({event.reason})" if event.reason else ""
    return f"{level}{where}{event.description or event.resource}{reason}"


def _conclude(last: Progress, failures: list[ClusterEvent], wanted: str) -> None:
    """Say how it ended.

    Raises:
        ClusterEndedError: Otherwise than was wanted.
    """
    call = invocation()
    told = {**last.to_dict(), "failures": [one.to_dict() for one in failures]}
    if call.as_json:
        print_json(told)
    if last.good:
        if not call.as_json:
            print(printable(f"the cluster {last.name} is {wanted}"))
        return
    if not call.as_json:
        for event in failures:
            print(printable(f"{iso_time(event.time)}  {_words(event)}"), file=sys.stderr)
    why = f": {last.failure}" if last.failure else ""
    first = next((one.name for one in last.groups if one.status == "Failed"), None)
    stream = f", streams LifecycleConfig/{first}/..." if first else ", streams LifecycleConfig/..."
    raise ClusterEndedError(
        f"the cluster {last.name} was not {wanted}; it is {last.status}{why}",
        hint=f"logs of life cycle scripts: log group {last.logs}{stream}; or: hpj node-logs --hyperpod {last.name}",
        detail=told,
    )
