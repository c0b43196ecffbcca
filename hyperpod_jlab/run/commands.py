"""``hpj runs``: the list of runs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab.cli.failure import CommandLineError
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import (
    Table,
    colour_state,
    elapsed,
    format_moment,
    print_fields,
    print_json,
    print_list,
    print_notes,
    print_table,
    without_empty,
)
from hyperpod_jlab.cli.parameters import CLUSTER, RUN, AgeParam, SuggestedTextParam
from hyperpod_jlab.cli.terminal import is_terminal, printable, safe_text
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, NotFoundError
from hyperpod_jlab.core.quantities import format_duration, format_size
from hyperpod_jlab.core.run import STATES, Run
from hyperpod_jlab.core.wire import iso_time, to_plain
from hyperpod_jlab.run.listing import RunFilter, check_states
from hyperpod_jlab.storage.big_records import Deadline
from hyperpod_jlab.storage.files import FULL_HINT

if TYPE_CHECKING:
    from hyperpod_jlab.core.cluster import Cluster, Holder, WaitReason
    from hyperpod_jlab.core.cost import Cost
    from hyperpod_jlab.core.job_actions import ActionKind, Change, JobResult
    from hyperpod_jlab.core.spec import JobSpec
    from hyperpod_jlab.core.usage import Usage
    from hyperpod_jlab.features.mlflow.models import RunMlflow
    from hyperpod_jlab.run.access import Access
    from hyperpod_jlab.run.clean import CleanPlan
    from hyperpod_jlab.run.cost import RunCost
    from hyperpod_jlab.run.listing import RunPage
    from hyperpod_jlab.run.metrics import MetricSummary
    from hyperpod_jlab.run.services import Hyperpod
    from hyperpod_jlab.storage.partition import PathMap

_HELP = """\
List runs, newest first: your own, or those of all users with --all-users.

A run whose folder cannot be read is listed with the state 'unknown' and the reason.
"""

_EXAMPLES = ("hpj runs", "hpj runs --state running,waiting --cluster ml-slurm", "hpj runs --limit 20 --json")

_TITLES = ("RUN", "NAME", "CLUSTER", "STATE", "NODES", "SUBMITTED", "RAN", "COST", "NEWEST", "REASON")
_NARROW = (
    *(("NAME", 16), ("NODES", 0), ("CLUSTER", 0), ("SUBMITTED", 0)),
    *(("NEWEST", 20), ("RAN", 0), ("USER", 8), ("NEWEST", 10), ("NAME", 6), ("COST", 0)),
)
"""What gives way to the reason on a narrow terminal."""

_MAX_NUMBERS = 100
"""Runs of which the table shows numbers, as in JupyterLab: each costs a look into its folder."""
_READERS = 4


@click.command(cls=HpjCommand, help=_HELP, examples=_EXAMPLES)
@click.option("--cluster", type=CLUSTER, help="Show only runs on this cluster.")
@click.option(
    "--state",
    "states",
    type=SuggestedTextParam(STATES, "state"),
    multiple=True,
    help=f"Show only runs in this state ({', '.join(STATES)}). Separate several with commas. Repeatable.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most this many. Default: all.")
@click.option(
    "--cursor", metavar="CURSOR", help="Continue after an earlier page: the value of 'next' in its JSON output."
)
@click.option("--all-users", is_flag=True, help="Show the runs of all users of the storage partition.")
def runs(cluster: str | None, states: tuple[str, ...], limit: int | None, cursor: str | None, all_users: bool) -> None:
    """List runs."""
    names = [name.strip() for text in states for name in text.split(",")]
    run_filter = RunFilter(cluster=cluster, states=check_states(names), everyone=all_users, limit=limit, cursor=cursor)
    as_json = invocation().as_json

    async def read(hyperpod: Hyperpod) -> tuple[RunPage, dict[str, str], dict[str, Cost]]:
        from hyperpod_jlab.run.cost import list_costs

        listing = await _list(hyperpod, run_filter)
        costs = await list_costs(hyperpod, listing.runs)
        numbers = {} if as_json else await _numbers(hyperpod, listing.runs)
        return listing, numbers, costs

    listing, numbers, costs = with_services(read, asking=True)
    if as_json:
        documents = [{**to_plain(run), "cost": costs.get(run.run_id)} for run in listing.runs]
        print_list("runs", documents, listing.next)
        return
    titles: tuple[str, ...] = _TITLES
    rows: list[tuple[str, ...]] = [_row(run, costs.get(run.run_id), numbers.get(run.run_id)) for run in listing.runs]
    if all_users:
        titles = (*titles[:3], "USER", *titles[3:])
        users = [run.user or "-" for run in listing.runs]
        rows = [(*row[:3], user, *row[3:]) for row, user in zip(rows, users, strict=True)]
    print_table(without_empty(Table(titles, rows, empty="no runs", narrow=_NARROW)))


async def _list(hyperpod: Hyperpod, run_filter: RunFilter) -> RunPage:
    listing = await hyperpod.runs.list(run_filter)
    if not listing.runs and run_filter.cluster not in {None, *hyperpod.settings.clusters}:
        # Runs of a cluster that is no longer configured are listed; a misspelt name is an error.
        raise hyperpod.settings.unknown_cluster(str(run_filter.cluster))
    return listing


async def _numbers(hyperpod: Hyperpod, listed: Sequence[Run]) -> dict[str, str]:
    """What the table shows of the numbers of the newest runs that have started."""
    from hyperpod_jlab.cli.numbers import format_row

    started = [run for run in listed if run.status.started_at is not None][:_MAX_NUMBERS]
    deadline = Deadline()

    def read(part: Sequence[Run]) -> dict[str, str]:
        return {
            run.run_id: format_row(hyperpod.metrics.newest(run.run_id, ended=run.status.ended, deadline=deadline))
            for run in part
        }

    # Each look waits for the file system, but locally a thread for each run costs more than it saves.
    parts = [started[first::_READERS] for first in range(_READERS)]
    found = await asyncio.gather(*(asyncio.to_thread(read, part) for part in parts if part))
    return {run_id: text for one in found for run_id, text in one.items()}


def _row(run: Run, cost: Cost | None, numbers: str | None) -> tuple[str, ...]:
    from hyperpod_jlab.cli.cost import short_cost

    return (
        run.run_id,
        run.name,
        run.cluster or "-",
        run.state,
        str(run.nodes),
        format_moment(run.submitted_at or run.created_at),
        elapsed(run),
        "-" if cost is None else short_cost(cost),
        numbers or "-",
        run.status.reason or "",
    )


# --------------------------------------------------------------------------------------------------
# ``hpj show``: the details of one run.

_MAX_CHILDREN = 50
_COST_WAIT_S = 3.0
_MAX_SHELLS = 8

_SHOW_HELP = """\
Show a run: its state and the reason for it, its spec, attempts, nodes and resource usage, its first error with the traceback, and the
paths of its files on this machine and on the cluster.

RUN is a run id, the beginning of one, or 'last'.

With the name of a cluster, show that cluster: its state, its instance groups and settings on HyperPod, and whether you can submit to it from here.
"""


@dataclass(frozen=True)
class _RunDetails:
    run: Run
    spec: JobSpec
    paths: PathMap | None
    numbers: MetricSummary
    children: tuple[Run, ...] = ()
    usage: Usage | None = None
    access: Access | None = None
    mlflow: RunMlflow | None = None
    cost: RunCost | None = None

    @property
    def cluster_path(self) -> str | None:
        """The bundle's path on the cluster; None if the cluster does not mount it."""
        if self.paths is None or (self.spec.source.kind == "native" and not self.paths.shared):
            return None
        return str(self.paths.to_cluster_path(self.run.bundle))


@click.command(
    cls=HpjCommand,
    help=_SHOW_HELP,
    examples=(*("hpj show last", "hpj show 20261121-120455-k3x9qd --json | jq .spec"), "hpj show ml-cluster"),
)
@click.argument("run", type=RUN)
def show(run: str) -> None:
    """Show one run."""
    details = with_services(lambda hyperpod: _run_or_cluster(hyperpod, run), asking=True)
    if not isinstance(details, _RunDetails):
        from hyperpod_jlab.clusters.commands import show_cluster

        show_cluster(details)
    elif invocation().as_json:
        print_json(_document(details))
    else:
        _print(details)


async def _run_or_cluster(hyperpod: Hyperpod, text: str) -> _RunDetails | Cluster:
    """The run of that id, or the cluster of that name."""
    if text in hyperpod.settings.clusters:
        from hyperpod_jlab.clusters.commands import find_cluster

        return await find_cluster(hyperpod, text)
    try:
        return await _load_details(hyperpod, text)
    except HyperpodError as no_run:
        if no_run.code not in {"no_such_run", "invalid_run_id"}:
            raise
        from hyperpod_jlab.clusters.commands import find_cluster

        try:
            return await find_cluster(hyperpod, text)
        except HyperpodError as error:
            if isinstance(error, NotFoundError) or error.code == "no_cluster_name":
                raise type(no_run)(
                    f"no run or cluster named '{text[:256]}' found",
                    code=no_run.code,
                    hint="list runs with: hpj runs; clusters with: hpj clusters",
                    detail=no_run.detail,
                ) from None
            raise type(no_run)(
                f"{no_run.message}; it is unknown whether it is a HyperPod cluster: {error.message}",
                code=no_run.code,
                hint=error.hint or no_run.hint,
                detail=no_run.detail,
            ) from None


async def _load_details(hyperpod: Hyperpod, text: str) -> _RunDetails:
    from hyperpod_jlab.cli.naming import find_run
    from hyperpod_jlab.run.access import read_access

    run_id = await find_run(hyperpod, text)
    run = await hyperpod.runs.get(run_id)
    spec = hyperpod.runs.bundle(run_id).spec()
    try:
        paths = hyperpod.engines.get(run.cluster).paths
    except HyperpodError:  # The cluster is no longer configured, so its paths are unknown.
        paths = None
    has_few_children = 0 < sum((run.children or {}).values()) <= _MAX_CHILDREN
    children = await hyperpod.runs.children(run_id) if has_few_children else ()
    usage = await hyperpod.runs.usage(run_id) if run.status.ended else None
    access = await read_access(hyperpod.engines, hyperpod.runs, run_id) if run.state == "running" else None
    numbers = await asyncio.to_thread(hyperpod.metrics.summary, run_id, ended=run.status.ended, deadline=Deadline())
    mlflow = None
    if spec.mlflow.server is not None:
        from hyperpod_jlab.features.mlflow.service import read_mlflow

        mlflow = await read_mlflow(hyperpod, run)
    cost = await _cost(hyperpod, run)
    return _RunDetails(run, spec, paths, numbers, children, usage, access, mlflow, cost)


async def _cost(hyperpod: Hyperpod, run: Run) -> RunCost | None:
    """What it has cost so far; None if it has not started, or that cannot be told now."""
    from hyperpod_jlab.run.cost import read_run_cost

    if run.started_at is None:
        return None
    try:
        return await asyncio.wait_for(read_run_cost(hyperpod, run.run_id), _COST_WAIT_S)
    except (TimeoutError, HyperpodError):
        return None


def _document(details: _RunDetails) -> dict[str, Any]:
    paths = details.paths
    return {
        **to_plain(details.run),
        "spec": details.spec.model_dump(mode="json"),
        "usage": details.usage,
        "cost": details.cost,
        "metrics": details.numbers.metrics,
        "progress": details.numbers.progress,
        "alarms": details.numbers.alarms,
        "mlflow": details.mlflow.mlflow if details.mlflow else None,
        "mlflow_problem": details.mlflow.problem if details.mlflow else None,
        "shells": details.access.shells if details.access else [],
        "paths": {
            "bundle": {"here": details.run.bundle, "there": details.cluster_path},
            "partition": {"here": str(paths.local) if paths else None, "there": str(paths.remote) if paths else None},
        },
    }


def _print(details: _RunDetails) -> None:
    from hyperpod_jlab.cli.cost import format_cost, format_wasted
    from hyperpod_jlab.cli.following import last_error
    from hyperpod_jlab.cli.numbers import format_alarm, format_newest, format_progress
    from hyperpod_jlab.cli.usage import format_usage

    run, spec = details.run, details.spec
    print(f"{run.run_id}  {colour_state(run.state)}  {printable(run.name)}")
    print_fields(
        [
            ("reason", run.status.reason),
            ("hint", FULL_HINT if run.status.reason_code == "storage_full" else None),
            ("exit code", None if run.status.exit_code is None else str(run.status.exit_code)),
            ("cluster", f"{run.cluster} ({run.orchestrator})"),
            ("queue", run.queue),
            ("user", f"{run.user}, for the shared space {run.space}" if run.space else run.user),
            ("job", run.scheduler_id),
            ("kind", run.kind),
            ("array", run.parent),
            ("source", _source(spec)),
            ("arguments", " ".join(json.dumps(argument) for argument in spec.args)),
            ("processes", _processes(run, spec)),
            ("time limit", format_duration(spec.time_limit) if spec.time_limit else None),
            ("after", ", ".join(spec.after)),
            ("submitted", format_moment(run.submitted_at or run.created_at)),
            ("ran", elapsed(run) if run.status.started_at else None),
            ("progress", format_progress(details.numbers.progress)),
            ("newest", format_newest(details.numbers.metrics)),
            *(("alarm", format_alarm(alarm)) for alarm in details.numbers.alarms),
            ("mlflow", _mlflow(details.mlflow, has_ended=run.status.ended) if details.mlflow else None),
            ("used", format_usage(details.usage) if details.usage else None),
            ("cost", format_cost(details.cost) if details.cost else None),
            ("wasted", format_wasted(details.cost) if details.cost else None),
            ("files here", run.bundle),
            ("files on the cluster", details.cluster_path if details.cluster_path != run.bundle else None),
        ]
    )
    if details.cost is not None and details.cost.amount is not None:
        print_notes(details.cost.notes)
    _print_attempts(run)
    _print_children(details)
    _print_shells(details)
    error = last_error(run)
    if error is not None:
        location = f" in cell {error.cell}" if error.cell is not None else ""
        location += f" line {error.line}" if error.line is not None else ""
        message = printable(f"{error.type}: {error.message}")
        print(f"\nfirst error: rank {error.rank}{location}, {message}")
        print(safe_text(error.traceback.rstrip("\n")))


def _print_attempts(run: Run) -> None:
    if not run.status.attempts:
        return
    print()
    rows = [
        (
            str(attempt.number),
            attempt.state,
            "-" if attempt.exit_code is None else str(attempt.exit_code),
            format_moment(attempt.started_at),
            format_moment(attempt.ended_at),
            ",".join(attempt.nodes) or "-",
            attempt.reason or "",
        )
        for attempt in run.status.attempts
    ]
    titles = ("ATTEMPT", "STATE", "EXIT", "STARTED", "ENDED", "NODES", "REASON")
    print_table(Table(titles, rows))


def _print_shells(details: _RunDetails) -> None:
    shells = details.access.shells if details.access else ()
    if not shells:
        return
    label = "task" if details.run.children else "node"
    print(f"\nshells on its {label}s:")
    for shell in shells[:_MAX_SHELLS]:
        print(f"  {label} {shell.node_rank}: {printable(shell.command)}")
    if len(shells) > _MAX_SHELLS:
        print(f"  and {len(shells) - _MAX_SHELLS} more; see --json")


def _print_children(details: _RunDetails) -> None:
    counts = details.run.children
    if not counts:
        return
    print("\nchildren: " + ", ".join(f"{count} {state}" for state, count in counts.items()))
    rows = [(child.run_id, child.state, elapsed(child), child.status.reason or "") for child in details.children]
    print_table(Table(("RUN", "STATE", "RAN", "REASON"), rows))


def _mlflow(found: RunMlflow, *, has_ended: bool) -> str | None:
    if found.mlflow is None:
        return found.problem or ("no run in MLflow" if has_ended else None)
    place = found.mlflow.url or f"hpj mlflow link {found.run_id}"
    return f"{found.mlflow.name} ({found.mlflow.status.lower()}), {place}"


def _source(spec: JobSpec) -> str:
    source = spec.source
    if source.kind == "command":
        return f"command: {source.command}"
    if source.kind == "function":
        return f"function: {source.module}.{source.qualname}"
    text = f"{source.kind}: {source.path}"
    if source.kind == "notebook":
        text += f", cells {source.cells}" if source.cells else ""
        text += f", tag {source.tag}" if source.tag else ""
    return text


def _processes(run: Run, spec: JobSpec) -> str:
    nodes = "1 node" if run.nodes == 1 else f"{run.nodes} nodes"
    gpus = spec.resources.accelerator.count
    if spec.source.kind == "native":  # we do not track the processes that it starts
        return nodes
    text = f"{nodes} with {run.processes_per_node} each, launcher {spec.resolved_launcher}"
    return f"{text}, {gpus} {spec.resources.accelerator.kind} each" if gpus else text


# --------------------------------------------------------------------------------------------------
# ``hpj why``: why a run waits, and what would start now.

_MAX_HOLDERS = 5
"""Maximum number of list entries shown."""


@click.command(
    cls=HpjCommand,
    help="Explain why a run is waiting: its place in the queue, who uses the resources that it needs, and which requests would start now.",
    examples=("hpj why last",),
)
@click.argument("run", type=RUN)
def why(run: str) -> None:
    """Explain why a run waits."""
    wait_reason = with_services(lambda hyperpod: _explain(hyperpod, run), asking=True)
    if invocation().as_json:
        print_json(wait_reason)
        return
    print(f"{wait_reason.run_id}: {printable(wait_reason.reason or 'the reason is unknown')}")
    print_fields(
        [
            ("hint", FULL_HINT if wait_reason.reason_code == "storage_full" else None),
            ("position", _queue_position(wait_reason)),
            ("counted", wait_reason.counted),
            (
                "expected start",
                None if wait_reason.expected_start is None else format_moment(wait_reason.expected_start),
            ),
            ("in use by", "; ".join(_holder(holder) for holder in wait_reason.holders[:_MAX_HOLDERS])),
            ("would start now", _would_start(wait_reason)),
        ]
    )


def _queue_position(wait_reason: WaitReason) -> str | None:
    if wait_reason.position is None:
        return None
    ahead = f" (before it: {', '.join(wait_reason.ahead[:_MAX_HOLDERS])})" if wait_reason.ahead else ""
    return f"{wait_reason.position}{ahead}"


def _holder(holder: Holder) -> str:
    parts = [(holder.accelerators, "accelerator"), (holder.nodes, "node"), (holder.jobs, "job")]
    shares = [f"{count} {name}{'' if count == 1 else 's'}" for count, name in parts if count]
    return f"{holder.user}: {', '.join(shares)}"


def _would_start(wait_reason: WaitReason) -> str | None:
    """What could start instead, or that none of the tried options could; None if nothing was tried."""
    if not wait_reason.tried:
        return None
    if not wait_reason.would_start_now:
        return f"no other request ({wait_reason.tried} {'way' if wait_reason.tried == 1 else 'ways'} tried)"
    return "; ".join(alternative.text for alternative in wait_reason.would_start_now)


async def _explain(hyperpod: Hyperpod, text: str) -> WaitReason:
    from hyperpod_jlab.cli.naming import find_run

    return await hyperpod.runs.explain_wait(await find_run(hyperpod, text))


# --------------------------------------------------------------------------------------------------
# ``hpj cancel``, ``hold``, ``release``, ``requeue`` and ``change``: actions on runs and jobs,
# several at once, with one result each.

Outcome = tuple[str, Run | HyperpodError]

_NAMES = (
    "RUN is a complete run id (of a run, or of a child of an array, such as ID.3) or 'last'. With --jobs, it is a job id as 'hpj jobs' lists it, "
    "of any user and however the job was submitted. You can name several. Each has its own result, and the exit code is that of the worst one."
)


@dataclass(frozen=True)
class _ActionRequest:
    """An action as the command line requests it."""

    names: tuple[str, ...]
    action: ActionKind
    jobs: bool
    cluster: str | None
    change: Change | None = None


def _command(action: ActionKind, text: str, options: Sequence[Callable[..., Any]] = ()) -> click.Command:
    from hyperpod_jlab.core.job_actions import Change, check_change

    commands = f"hpj {action} last", f"hpj {action} --jobs 4711 4712_3 --cluster ml-slurm"
    if action == "change":
        commands = ("hpj change last --time-limit 2h", "hpj change 20261121-120455-k3x9qd --queue long")

    @click.command(action, cls=HpjCommand, help=f"{text}\n\n{_NAMES}", examples=commands)
    @click.argument("runs", type=RUN, nargs=-1, required=True, metavar="RUN...")
    @click.option("--jobs", is_flag=True, help="RUN is a job id in the cluster's queue, not a run id.")
    @click.option(
        "--cluster", type=CLUSTER, help="With --jobs: cluster of the jobs. Default: the configured default cluster."
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
                "--cluster can be used only with --jobs, because a run has its cluster",
                hint=f"hpj {action} --jobs JOBID --cluster {cluster[:60]}",
                detail={"option": "--cluster"},
            )
        change = None
        if action == "change":
            change = Change(None if time_limit is None else int(time_limit), queue)
        check_change(action, change)
        _carry_out(_ActionRequest(runs, action, jobs, cluster, change))

    for option in options:
        option(command)
    return command


_CHANGES = (
    click.option("--queue", metavar="NAME", help="Move waiting runs to this queue."),
    click.option(
        "--time-limit",
        type=AgeParam(),
        metavar="TIME",
        help="New time limit, counted from the start, such as 2h. Once a run has started, only an operator of the cluster can raise it.",
    ),
)

cancel = _command("cancel", "Cancel runs that are running or waiting. A run that has ended is not changed.")
hold = _command("hold", "Hold waiting runs. They do not start until you release them.")
release = _command("release", "Release held runs, so that they can start.")
requeue = _command(
    "requeue", "End the current attempt of runs and start the next one. The run id and the code stay the same."
)
change = _command("change", "Change the time limit or the queue of waiting or running runs.", _CHANGES)


def _carry_out(request: _ActionRequest) -> None:
    if request.jobs:
        _print_jobs(request, with_services(lambda hyperpod: _act_on_jobs(hyperpod, request), asking=True))
    else:
        outcomes = with_services(lambda hyperpod: _act(hyperpod, request), asking=True)
        _print_runs(request.action, outcomes)


def _act_on_jobs(hyperpod: Hyperpod, request: _ActionRequest) -> Awaitable[list[JobResult]]:
    return hyperpod.act_on_jobs(request.cluster, request.action, request.names, request.change)


async def _act(hyperpod: Hyperpod, request: _ActionRequest) -> list[Outcome]:
    from hyperpod_jlab.cli.naming import find_run

    outcomes: list[Outcome] = []
    for text in dict.fromkeys(request.names):
        try:
            run_id = await find_run(hyperpod, text, exact=True)
            outcomes.append((text, await hyperpod.runs.act(run_id, request.action, request.change)))
        except HyperpodError as error:
            outcomes.append((text, error))
    return outcomes


def _print_runs(action: ActionKind, outcomes: list[Outcome]) -> None:
    """Print each result; the worst error sets the exit code."""
    if not invocation().as_json:
        for _, result in outcomes:
            if isinstance(result, Run):
                print(f"{result.run_id} {_outcome(action, result)}")
    elif len(outcomes) > 1:
        print_json({"results": [_result(text, result) for text, result in outcomes]})
    elif isinstance(outcomes[0][1], Run):
        print_json(outcomes[0][1])
    _raise_worst([result for _, result in outcomes if isinstance(result, HyperpodError)])


def _outcome(action: ActionKind, run: Run) -> str:
    """What was done to a run: the state that it had before may still be shown."""
    if action != "cancel":
        return _RESULT_LABELS[action]
    reason = run.status.reason if run.status.ended else "being cancelled"
    return colour_state(run.state) + (f": {printable(reason)}" if reason else "")


def _result(text: str, result: Run | HyperpodError) -> dict[str, Any]:
    if isinstance(result, Run):
        return {"run_id": result.run_id, "ok": True, "run": result}
    return {"run_id": text[:60], "ok": False, "error": result}


def _print_jobs(request: _ActionRequest, results: list[JobResult]) -> None:
    if invocation().as_json:
        print_json({"results": results})
    else:
        label = _RESULT_LABELS[request.action]
        for result in results:
            if result.error is None:
                print(f"{result.scheduler_id} {label}")
    _raise_worst([result.error for result in results if result.error is not None])


_RESULT_LABELS: dict[ActionKind, str] = {
    "cancel": "cancelled",
    "hold": "held",
    "release": "released",
    "requeue": "requeued",
    "change": "changed",
}


def _raise_worst(errors: list[HyperpodError]) -> None:
    """Print all errors and raise the worst."""
    if not errors:
        return
    worst = max(errors, key=lambda error: error.exit_code)
    if not invocation().as_json:
        for error in errors:
            if error is not worst:
                print(f"error: {printable(error.message)}", file=sys.stderr)
    raise worst


# --------------------------------------------------------------------------------------------------
# ``hpj clean``: remove old runs, and code that no run needs.

_CLEAN_HELP = """\
Remove your old runs with their code and logs, leftovers of interrupted submits, environments that no run has used for as long, and code that no run
needs any more.

The command shows what it would remove and asks for confirmation. It removes only runs that have ended and that no other run waits for.
"""

_CLEAN_EXAMPLES = (
    "hpj clean --older 30d --dry-run",
    "hpj clean --older 2w --keep-failed",
    "hpj clean --older 30d --yes --json",
)


@click.command(cls=HpjCommand, help=_CLEAN_HELP, examples=_CLEAN_EXAMPLES)
@click.option(
    "--older",
    type=AgeParam(),
    default="30d",
    help="Remove runs that ended longer ago than this, such as 12h, 30d or 2w. Default: 30d.",
)
@click.option("--keep-failed", is_flag=True, help="Keep failed runs.")
@click.option("--dry-run", is_flag=True, help="List what would be removed. Remove nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def clean(older: float, keep_failed: bool, dry_run: bool, yes: bool) -> None:
    """Clean up."""
    as_json = invocation().as_json
    asks = not as_json and is_terminal(sys.stdin) and is_terminal(sys.stderr)
    plan = with_services(lambda hyperpod: _plan(hyperpod, older, keep_failed))
    if not as_json:
        _clean_print(plan, is_listed=dry_run)
        if plan.younger:
            runs = _count(plan.younger, "run has", "runs have")
            size = format_size(plan.younger_size)
            advice = "give a shorter --older" + (", such as --older 1h" if older > 3600 else "")
            text = f"{runs} ended more recently, with {size}; to remove newer runs too, {advice}"
            print(text, file=sys.stderr)
    if not (dry_run or plan.empty or yes):
        if not asks:
            raise InvalidInputError(
                f"removing needs confirmation: {_summary(plan)}",
                code="not_confirmed",
                hint="confirm with --yes, or list with --dry-run",
                detail=_clean_document(plan, removed=False),
            )
        if not click.confirm("Remove it?", err=True):
            print("nothing was removed", file=sys.stderr)
            return
    removes = not (dry_run or plan.empty)
    problems = with_services(lambda hyperpod: _clean_carry_out(hyperpod, plan)) if removes else []
    if as_json:
        print_json(_clean_document(plan, removed=removes and not problems))
    elif removes and not problems:
        print("removed", file=sys.stderr)
    for problem in problems[1:]:
        print(f"error: {printable(problem.message)}", file=sys.stderr)
    if problems:
        raise problems[0]


async def _plan(hyperpod: Hyperpod, min_age: float, keep_failed: bool) -> CleanPlan:
    from hyperpod_jlab.cli.slow_steps import slow_steps
    from hyperpod_jlab.run.clean import Cleaner

    async with slow_steps("reading runs and code"):
        return await Cleaner(hyperpod.partition, hyperpod.runs).plan(min_age, keep_failed=keep_failed)


async def _clean_carry_out(hyperpod: Hyperpod, plan: CleanPlan) -> list[HyperpodError]:
    from hyperpod_jlab.cli.slow_steps import slow_steps
    from hyperpod_jlab.run.clean import Cleaner

    async with slow_steps("removing"):
        return await Cleaner(hyperpod.partition, hyperpod.runs).carry_out(plan)


def _summary(plan: CleanPlan) -> str:
    parts = [_count(len(plan.runs), "run", "runs")]
    if plan.staging:
        parts.append(_count(len(plan.staging), "interrupted submit", "interrupted submits"))
    if plan.code:
        parts.append(_count(plan.code, "file of code", "files of code"))
    if plan.secrets:
        parts.append(_count(len(plan.secrets), "run's secrets", "runs' secrets"))
    if plan.environments:
        parts.append(_count(len(plan.environments), "environment", "environments"))
    return f"{', '.join(parts)}: {format_size(plan.size)}"


def _count(number: int, singular: str, many: str) -> str:
    return f"{number} {singular if number == 1 else many}"


def _clean_print(plan: CleanPlan, *, is_listed: bool) -> None:
    for blocked in plan.kept:
        print(f"{blocked.run_id} is kept: {blocked.reason}", file=sys.stderr)
    if is_listed:
        rows = [
            (
                old_run.run.run_id,
                old_run.run.name,
                old_run.run.state,
                format_moment(old_run.run.status.ended_at or old_run.run.created_at),
                format_size(old_run.size),
            )
            for old_run in plan.runs
        ]
        print_table(Table(("RUN", "NAME", "STATE", "ENDED", "SIZE"), rows))
    print("nothing to remove" if plan.empty else _summary(plan))


def _clean_document(plan: CleanPlan, *, removed: bool) -> dict[str, Any]:
    return {
        "removed": removed,
        "bytes": plan.size,
        "runs": [
            {
                "run_id": old_run.run.run_id,
                "name": old_run.run.name,
                "state": old_run.run.state,
                "ended_at": iso_time(old_run.run.status.ended_at),
                "bytes": old_run.size,
            }
            for old_run in plan.runs
        ],
        "kept": [{"run_id": blocked.run_id, "reason": blocked.reason} for blocked in plan.kept],
        "staging": {"folders": len(plan.staging), "bytes": plan.staging_size},
        "code": {"files": plan.code, "bytes": plan.code_size},
        "secrets": len(plan.secrets),
        "environments": {"folders": len(plan.environments), "bytes": plan.environments_size},
    }
