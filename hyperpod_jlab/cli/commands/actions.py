"""``hpj cancel``, ``hold``, ``release``, ``requeue`` and ``change``: what can be done to runs and jobs, several at once, with one result each."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from hyperpod_jlab.cli.failure import CommandLineError
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.output import coloured, print_json
from hyperpod_jlab.cli.parameters import CLUSTER, RUN, AgeParam
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.job_actions import Change, JobResult, check_change
from hyperpod_jlab.model.records import ActionKind
from hyperpod_jlab.model.run import Run
from hyperpod_jlab.services.hyperpod import Hyperpod

Outcome = tuple[str, Run | HyperpodError]

_NAMES = (
    "RUN is a run's whole id (also of an array's child, such as ID.3), or 'last'; with --jobs it is a job's id of the cluster's queue, "
    "as 'hpj jobs' lists them, whoever sent it and however. Several may be given: each has its own result, and the worst makes the exit code."
)


@dataclass(frozen=True)
class _Order:
    """What the command line asks for."""

    names: tuple[str, ...]
    action: ActionKind
    jobs: bool
    cluster: str | None
    change: Change | None = None


def _command(
    action: ActionKind, text: str, options: Sequence[Callable[..., Any]] = ()
) -> click.Command:
    words = f"hpj {action} last", f"hpj {action} --jobs 4711 4712_3 --cluster ml-slurm"
    if action == "change":
        words = "hpj change last --time-limit 2h", "hpj change 20261121-120455-k3x9qd --queue long"

    @click.command(action, cls=HpjCommand, help=f"{text}\n\n{_NAMES}", examples=words)
    @click.argument("runs", type=RUN, nargs=-1, required=True, metavar="RUN...")
    @click.option("--jobs", is_flag=True, help="The names are jobs of a cluster's queue.")
    @click.option(
        "--cluster",
        type=CLUSTER,
        help="With --jobs: the jobs' cluster. Default: the configured default cluster.",
    )
    def command(
        runs: tuple[str, ...],
        jobs: bool,
        cluster: str | None,
        time_limit: float | None = None,
        queue: str | None = None,
    ) -> None:
        if cluster is not None and not jobs:
            raise CommandLineError(
                "--cluster goes with --jobs: a run knows its cluster",
                hint=f"hpj {action} --jobs JOBID --cluster {cluster[:60]}",
                detail={"option": "--cluster"},
            )
        change = None
        if action == "change":
            change = Change(None if time_limit is None else int(time_limit), queue)
        check_change(action, change)
        _carry_out(_Order(runs, action, jobs, cluster, change))

    for option in options:
        option(command)
    return command


_CHANGES = (
    click.option("--queue", metavar="NAME", help="The queue to move them to, while they wait."),
    click.option(
        "--time-limit",
        type=AgeParam(),
        metavar="TIME",
        help="The new time limit, counted from the start, such as 2h. Of what runs it can only be lowered, unless you are an operator of the cluster.",
    ),
)

cancel = _command(
    "cancel",
    "End runs, or take them out of the queue. A run that has ended stays as it is.",
)
hold = _command("hold", "Keep waiting runs from starting, until they are released.")
release = _command("release", "Let runs start that were held.")
requeue = _command(
    "requeue", "End the running attempt of runs and start the next one: same run, same code."
)
change = _command(
    "change", "Change the time limit or the queue of runs that wait or run.", _CHANGES
)


def _carry_out(order: _Order) -> None:
    if order.jobs:
        _print_jobs(
            order, with_services(lambda hyperpod: _act_on_jobs(hyperpod, order), asking=True)
        )
    else:
        _print_runs(with_services(lambda hyperpod: _act(hyperpod, order), asking=True))


def _act_on_jobs(hyperpod: Hyperpod, order: _Order) -> Awaitable[list[JobResult]]:
    return hyperpod.act_on_jobs(order.cluster, order.action, order.names, order.change)


async def _act(hyperpod: Hyperpod, order: _Order) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for text in dict.fromkeys(order.names):
        try:
            run_id = await find_run(hyperpod, text, whole=True)
            outcomes.append((text, await hyperpod.runs.act(run_id, order.action, order.change)))
        except HyperpodError as error:
            outcomes.append((text, error))
    return outcomes


def _print_runs(outcomes: list[Outcome]) -> None:
    """Print each result; the worst error makes the exit code."""
    if not invocation().as_json:
        for _, found in outcomes:
            if isinstance(found, Run):
                reason = f": {printable(found.status.reason)}" if found.status.reason else ""
                print(f"{found.run_id} {coloured(found.state)}{reason}")
    elif len(outcomes) > 1:
        print_json({"results": [_result(text, found) for text, found in outcomes]})
    elif isinstance(outcomes[0][1], Run):
        print_json(outcomes[0][1].to_dict())
    _raise_worst([found for _, found in outcomes if isinstance(found, HyperpodError)])


def _result(text: str, found: Run | HyperpodError) -> dict[str, Any]:
    if isinstance(found, Run):
        return {"run_id": found.run_id, "ok": True, "run": found.to_dict()}
    return {"run_id": text[:60], "ok": False, "error": found.to_dict()}


def _print_jobs(order: _Order, results: list[JobResult]) -> None:
    if invocation().as_json:
        print_json({"results": [result.to_dict() for result in results]})
    else:
        done = _DONE[order.action]
        for result in results:
            if result.error is None:
                print(f"{result.scheduler_id} {done}")
    _raise_worst([result.error for result in results if result.error is not None])


_DONE: dict[ActionKind, str] = {
    "cancel": "cancelled",
    "hold": "held",
    "release": "released",
    "requeue": "requeued",
    "change": "changed",
}


def _raise_worst(errors: list[HyperpodError]) -> None:
    """Tell all errors; the worst is raised."""
    if not errors:
        return
    worst = max(errors, key=lambda error: error.exit_code)
    if not invocation().as_json:
        for error in errors:
            if error is not worst:
                print(f"error: {printable(error.message)}", file=sys.stderr)
    raise worst
