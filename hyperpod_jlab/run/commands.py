"""``hpj runs``: the list of runs."""

from __future__ import annotations

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
    coloured,
    elapsed,
    moment,
    print_fields,
    print_json,
    print_list,
    print_table,
)
from hyperpod_jlab.cli.parameters import CLUSTER, RUN, AgeParam, WordsParam
from hyperpod_jlab.cli.terminal import is_terminal, printable, shown_text
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, NotFoundError, nearest_hint
from hyperpod_jlab.core.quantities import format_duration, format_size
from hyperpod_jlab.core.run import STATES, Run
from hyperpod_jlab.core.wire import iso_time, plain
from hyperpod_jlab.run.listing import RunFilter, check_states

if TYPE_CHECKING:
    from hyperpod_jlab.core.cluster import Cluster, Holder, WaitReason
    from hyperpod_jlab.core.job_actions import ActionKind, Change, JobResult
    from hyperpod_jlab.core.spec import JobSpec
    from hyperpod_jlab.core.usage import Usage
    from hyperpod_jlab.features.ports.service import Access
    from hyperpod_jlab.run.clean import CleanPlan
    from hyperpod_jlab.run.listing import RunPage
    from hyperpod_jlab.run.services import Hyperpod
    from hyperpod_jlab.storage.partition import PathMap

_HELP = """\
List runs, newest first: your own, or those of all users with --all-users.

A run whose folder cannot be read is listed with the state 'unknown' and the reason.
"""

_EXAMPLES = (
    "hpj runs",
    "hpj runs --state running,waiting --cluster ml-slurm",
    "hpj runs --limit 20 --json",
)

_TITLES = ("RUN", "NAME", "CLUSTER", "STATE", "NODES", "SUBMITTED", "RAN", "REASON")


@click.command(cls=HpjCommand, help=_HELP, examples=_EXAMPLES)
@click.option("--cluster", type=CLUSTER, help="Show only runs on this cluster.")
@click.option(
    "--state",
    "states",
    type=WordsParam(STATES, "state"),
    multiple=True,
    help=f"Show only runs in this state ({', '.join(STATES)}). Separate several with commas. Repeatable.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Show at most this many. Default: all."
)
@click.option(
    "--cursor",
    metavar="CURSOR",
    help="Continue after an earlier page: the value of 'next' in its JSON output.",
)
@click.option(
    "--all-users", is_flag=True, help="Show the runs of all users of the storage partition."
)
def runs(
    cluster: str | None,
    states: tuple[str, ...],
    limit: int | None,
    cursor: str | None,
    all_users: bool,
) -> None:
    """List runs."""
    words = [word.strip() for text in states for word in text.split(",")]
    wanted = RunFilter(
        cluster=cluster,
        states=check_states(words),
        everyone=all_users,
        limit=limit,
        cursor=cursor,
    )
    listing = with_services(lambda hyperpod: _list(hyperpod, wanted), asking=True)
    if invocation().as_json:
        print_list("runs", listing.runs, listing.next)
        return
    titles: tuple[str, ...] = _TITLES
    rows: list[tuple[str, ...]] = [_row(run) for run in listing.runs]
    if all_users:
        titles = (*titles[:3], "USER", *titles[3:])
        users = [run.user or "-" for run in listing.runs]
        rows = [(*row[:3], user, *row[3:]) for row, user in zip(rows, users, strict=True)]
    print_table(Table(titles, rows, empty="no runs"))


async def _list(hyperpod: Hyperpod, wanted: RunFilter) -> RunPage:
    listing = await hyperpod.runs.list(wanted)
    if not listing.runs and wanted.cluster not in {None, *hyperpod.settings.clusters}:
        # Runs of a cluster that is no longer configured are listed; a misspelt name is told.
        raise InvalidInputError(
            f"cluster '{str(wanted.cluster)[:60]}' not found",
            code="unknown_cluster",
            hint=nearest_hint(str(wanted.cluster), hyperpod.settings.clusters),
            detail={"field": "cluster"},
        )
    return listing


def _row(run: Run) -> tuple[str, ...]:
    return (
        run.run_id,
        run.name,
        run.cluster or "-",
        run.state,
        str(run.nodes),
        moment(run.submitted_at or run.created_at),
        elapsed(run),
        run.status.reason or "",
    )


# --------------------------------------------------------------------------------------------------
# ``hpj show``: all about one run.

_SHOWN_CHILDREN = 50
_SHOWN_SHELLS = 8

_SHOW_HELP = """\
Show a run: its state and the reason for it, its spec, attempts, nodes and resource usage, its first error with the traceback, and the
paths of its files on this machine and on the cluster.

RUN is a run id, the beginning of one, or 'last'.

With the name of a cluster, show that cluster: its state, its instance groups and settings on HyperPod, and whether you can submit to it from here.
"""


@dataclass(frozen=True)
class _Shown:
    run: Run
    spec: JobSpec
    paths: PathMap | None
    children: tuple[Run, ...] = ()
    usage: Usage | None = None
    access: Access | None = None

    @property
    def there(self) -> str | None:
        """The bundle as the cluster sees it; None where it does not."""
        if self.paths is None or (self.spec.source.kind == "native" and not self.paths.shared):
            return None
        return str(self.paths.to_there(self.run.bundle))


@click.command(
    cls=HpjCommand,
    help=_SHOW_HELP,
    examples=(
        *("hpj show last", "hpj show 20261121-120455-k3x9qd --json | jq .spec"),
        "hpj show ml-cluster",
    ),
)
@click.argument("run", type=RUN)
def show(run: str) -> None:
    """Show one run."""
    shown = with_services(lambda hyperpod: _run_or_cluster(hyperpod, run), asking=True)
    if not isinstance(shown, _Shown):
        from hyperpod_jlab.clusters.commands import show_cluster

        show_cluster(shown)
    elif invocation().as_json:
        print_json(_document(shown))
    else:
        _print(shown)


async def _run_or_cluster(hyperpod: Hyperpod, text: str) -> _Shown | Cluster:
    """The run of that id, or the cluster of that name."""
    if text in hyperpod.settings.clusters:
        from hyperpod_jlab.clusters.commands import find_cluster

        return await find_cluster(hyperpod, text)
    try:
        return await _look(hyperpod, text)
    except HyperpodError as no_run:
        if no_run.code not in {"no_such_run", "invalid_run_id"}:
            raise
        from hyperpod_jlab.clusters.commands import find_cluster

        try:
            return await find_cluster(hyperpod, text)
        except HyperpodError as error:
            if isinstance(error, NotFoundError) or error.code == "no_cluster_name":
                raise type(no_run)(
                    f"neither a run nor a cluster '{text[:256]}' found",
                    code=no_run.code,
                    hint="see: hpj runs, hpj clusters",
                    detail=no_run.detail,
                ) from None
            raise type(no_run)(
                f"{no_run.message}; it is unknown whether it is a HyperPod cluster: {error.message}",
                code=no_run.code,
                hint=error.hint or no_run.hint,
                detail=no_run.detail,
            ) from None


async def _look(hyperpod: Hyperpod, text: str) -> _Shown:
    from hyperpod_jlab.cli.naming import find_run
    from hyperpod_jlab.features.ports.service import access_of

    run_id = await find_run(hyperpod, text)
    run = await hyperpod.runs.get(run_id)
    spec = hyperpod.runs.bundle(run_id).spec()
    try:
        paths = hyperpod.engines.get(run.cluster).paths
    except HyperpodError:  # a cluster that is no longer configured: its paths are not known here
        paths = None
    few = 0 < sum((run.children or {}).values()) <= _SHOWN_CHILDREN
    children = await hyperpod.runs.children(run_id) if few else ()
    usage = await hyperpod.runs.usage(run_id) if run.status.ended else None
    access = (
        await access_of(hyperpod.engines, hyperpod.runs, run_id) if run.state == "running" else None
    )
    return _Shown(run, spec, paths, children, usage, access)


def _document(shown: _Shown) -> dict[str, Any]:
    paths = shown.paths
    return {
        **plain(shown.run),
        "spec": shown.spec.model_dump(mode="json"),
        "usage": shown.usage,
        "shells": shown.access.shells if shown.access else [],
        "paths": {
            "bundle": {"here": shown.run.bundle, "there": shown.there},
            "partition": {
                "here": str(paths.here) if paths else None,
                "there": str(paths.there) if paths else None,
            },
        },
    }


def _print(shown: _Shown) -> None:
    from hyperpod_jlab.cli.following import last_error
    from hyperpod_jlab.cli.usage import usage_words

    run, spec = shown.run, shown.spec
    print(f"{run.run_id}  {coloured(run.state)}  {printable(run.name)}")
    print_fields(
        [
            ("reason", run.status.reason),
            ("exit code", None if run.status.exit_code is None else str(run.status.exit_code)),
            ("cluster", f"{run.cluster} ({run.orchestrator})"),
            ("queue", run.queue),
            ("user", f"{run.user}, for the shared space {run.space}" if run.space else run.user),
            ("job", run.scheduler_id),
            ("kind", run.kind),
            ("array", run.parent),
            ("source", _source(spec)),
            ("arguments", " ".join(json.dumps(word) for word in spec.args)),
            ("processes", _processes(run, spec)),
            ("time limit", format_duration(spec.time_limit) if spec.time_limit else None),
            ("after", ", ".join(spec.after)),
            ("submitted", moment(run.submitted_at or run.created_at)),
            ("ran", elapsed(run) if run.status.started_at else None),
            ("used", usage_words(shown.usage) if shown.usage else None),
            ("files here", run.bundle),
            ("files on the cluster", shown.there if shown.there != run.bundle else None),
        ]
    )
    _print_attempts(run)
    _print_children(shown)
    _print_shells(shown)
    error = last_error(run)
    if error is not None:
        place = f" in cell {error.cell}" if error.cell is not None else ""
        place += f" line {error.line}" if error.line is not None else ""
        words = printable(f"{error.type}: {error.message}")
        print(f"\nfirst error: rank {error.rank}{place}, {words}")
        print(shown_text(error.traceback.rstrip("\n")))


def _print_attempts(run: Run) -> None:
    if not run.status.attempts:
        return
    print()
    rows = [
        (
            str(attempt.number),
            attempt.state,
            "-" if attempt.exit_code is None else str(attempt.exit_code),
            moment(attempt.started_at),
            moment(attempt.ended_at),
            ",".join(attempt.nodes) or "-",
            attempt.reason or "",
        )
        for attempt in run.status.attempts
    ]
    titles = ("ATTEMPT", "STATE", "EXIT", "STARTED", "ENDED", "NODES", "REASON")
    print_table(Table(titles, rows))


def _print_shells(shown: _Shown) -> None:
    shells = shown.access.shells if shown.access else ()
    if not shells:
        return
    word = "task" if shown.run.children else "node"
    print(f"\nshells on its {word}s:")
    for shell in shells[:_SHOWN_SHELLS]:
        print(f"  {word} {shell.node_rank}: {printable(shell.command)}")
    if len(shells) > _SHOWN_SHELLS:
        print(f"  and {len(shells) - _SHOWN_SHELLS} more; see --json")


def _print_children(shown: _Shown) -> None:
    counts = shown.run.children
    if not counts:
        return
    print("\nchildren: " + ", ".join(f"{count} {state}" for state, count in counts.items()))
    rows = [
        (child.run_id, child.state, elapsed(child), child.status.reason or "")
        for child in shown.children
    ]
    print_table(Table(("RUN", "STATE", "RAN", "REASON"), rows))


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
    if spec.source.kind == "native":  # what it starts there is its own business
        return nodes
    text = f"{nodes} with {run.processes_per_node} each, launcher {spec.resolved_launcher}"
    return f"{text}, {gpus} {spec.resources.accelerator.kind} each" if gpus else text


# --------------------------------------------------------------------------------------------------
# ``hpj why``: why a run waits, and what would start now.

_MOST = 5
"""So many of a list are shown."""


@click.command(
    cls=HpjCommand,
    help="Explain why a run is waiting: its place in the queue, who uses the resources that it needs, and which requests would start now.",
    examples=("hpj why last",),
)
@click.argument("run", type=RUN)
def why(run: str) -> None:
    """Tell why a run waits."""
    told = with_services(lambda hyperpod: _explain(hyperpod, run), asking=True)
    if invocation().as_json:
        print_json(told)
        return
    print(f"{told.run_id}: {printable(told.reason or 'the reason is unknown')}")
    print_fields(
        [
            ("position", _place(told)),
            ("counted", told.counted),
            (
                "expected start",
                None if told.expected_start is None else moment(told.expected_start),
            ),
            ("in use by", "; ".join(_holder(one) for one in told.holders[:_MOST])),
            ("would start now", _would_start(told)),
        ]
    )


def _place(told: WaitReason) -> str | None:
    if told.position is None:
        return None
    ahead = f" (before it: {', '.join(told.ahead[:_MOST])})" if told.ahead else ""
    return f"{told.position}{ahead}"


def _holder(one: Holder) -> str:
    parts = [(one.accelerators, "accelerator"), (one.nodes, "node"), (one.jobs, "job")]
    words = [f"{count} {name}{'' if count == 1 else 's'}" for count, name in parts if count]
    return f"{one.user}: {', '.join(words)}"


def _would_start(told: WaitReason) -> str | None:
    """What would start in its place, or that nothing of what was tried would; None where nothing was tried."""
    if not told.tried:
        return None
    if not told.would_start_now:
        return f"no other request ({told.tried} {'way' if told.tried == 1 else 'ways'} tried)"
    return "; ".join(f"{way}" for way in told.would_start_now)


async def _explain(hyperpod: Hyperpod, text: str) -> WaitReason:
    from hyperpod_jlab.cli.naming import find_run

    return await hyperpod.runs.explain_wait(await find_run(hyperpod, text))


# --------------------------------------------------------------------------------------------------
# ``hpj cancel``, ``hold``, ``release``, ``requeue`` and ``change``: what can be done to runs and jobs, several at once, with one result each.

Outcome = tuple[str, Run | HyperpodError]

_NAMES = (
    "RUN is a complete run id (of a run, or of a child of an array, such as ID.3) or 'last'. With --jobs, it is a job id as 'hpj jobs' lists it, "
    "of any user and however the job was submitted. You can name several. Each has its own result, and the exit code is that of the worst one."
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
    from hyperpod_jlab.core.job_actions import Change, check_change

    words = f"hpj {action} last", f"hpj {action} --jobs 4711 4712_3 --cluster ml-slurm"
    if action == "change":
        words = "hpj change last --time-limit 2h", "hpj change 20261121-120455-k3x9qd --queue long"

    @click.command(action, cls=HpjCommand, help=f"{text}\n\n{_NAMES}", examples=words)
    @click.argument("runs", type=RUN, nargs=-1, required=True, metavar="RUN...")
    @click.option(
        "--jobs", is_flag=True, help="RUN is a job id in the cluster's queue, not a run id."
    )
    @click.option(
        "--cluster",
        type=CLUSTER,
        help="With --jobs: cluster of the jobs. Default: the configured default cluster.",
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
        _carry_out(_Order(runs, action, jobs, cluster, change))

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

cancel = _command(
    "cancel",
    "Cancel runs that are running or waiting. A run that has ended is not changed.",
)
hold = _command("hold", "Hold waiting runs. They do not start until you release them.")
release = _command("release", "Release held runs, so that they can start.")
requeue = _command(
    "requeue",
    "End the current attempt of runs and start the next one. The run id and the code stay the same.",
)
change = _command(
    "change", "Change the time limit or the queue of waiting or running runs.", _CHANGES
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
    from hyperpod_jlab.cli.naming import find_run

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
        print_json(outcomes[0][1])
    _raise_worst([found for _, found in outcomes if isinstance(found, HyperpodError)])


def _result(text: str, found: Run | HyperpodError) -> dict[str, Any]:
    if isinstance(found, Run):
        return {"run_id": found.run_id, "ok": True, "run": found}
    return {"run_id": text[:60], "ok": False, "error": found}


def _print_jobs(order: _Order, results: list[JobResult]) -> None:
    if invocation().as_json:
        print_json({"results": results})
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


# --------------------------------------------------------------------------------------------------
# ``hpj adopt``: take a job that was sent elsewhere into the list of runs.


@click.command(
    cls=HpjCommand,
    help="Add a job that was submitted elsewhere, such as with sbatch or kubectl, to the runs, and print the run's id. "
    "Its state and logs are then available like those of other runs.\n\n"
    "JOB is the job's id as 'hpj jobs' lists it: a number on Slurm, NAME or KIND/NAME on Kubernetes.",
    examples=(
        "hpj jobs --cluster ml-slurm",
        "hpj adopt 1234 --cluster ml-slurm",
        "hpj adopt pytorchjob/train --cluster ml-eks",
    ),
)
@click.argument("job", metavar="JOB")
@click.option(
    "--cluster", type=CLUSTER, help="Cluster of the job. Default: the configured default cluster."
)
@click.option("--name", metavar="NAME", help="Name of the run. Default: the job's name.")
def adopt(job: str, cluster: str | None, name: str | None) -> None:
    """Adopt a job."""
    with_services(lambda hyperpod: _adopt(hyperpod, job, cluster, name), asking=True)


async def _adopt(hyperpod: Hyperpod, job: str, cluster: str | None, name: str | None) -> None:
    run_id = await hyperpod.adopt(job, cluster, name)
    if invocation().as_json:
        print_json(await hyperpod.runs.get(run_id))
    else:
        print(run_id)


# --------------------------------------------------------------------------------------------------
# ``hpj clean``: remove old runs, and code that no run needs.

_CLEAN_HELP = """\
Remove your old runs with their code and logs, leftovers of interrupted submits, and code that no run needs any more.

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
        _clean_print(plan, listed=dry_run)
    if not (dry_run or plan.empty or yes):
        if not asks:
            raise InvalidInputError(
                f"removing needs confirmation: {_sum(plan)}",
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


async def _plan(hyperpod: Hyperpod, older: float, keep_failed: bool) -> CleanPlan:
    from hyperpod_jlab.cli.slow_steps import slow_steps
    from hyperpod_jlab.run.clean import Cleaner

    async with slow_steps("reading runs and code"):
        return await Cleaner(hyperpod.partition, hyperpod.runs).plan(older, keep_failed=keep_failed)


async def _clean_carry_out(hyperpod: Hyperpod, plan: CleanPlan) -> list[HyperpodError]:
    from hyperpod_jlab.cli.slow_steps import slow_steps
    from hyperpod_jlab.run.clean import Cleaner

    async with slow_steps("removing"):
        return await Cleaner(hyperpod.partition, hyperpod.runs).carry_out(plan)


def _sum(plan: CleanPlan) -> str:
    parts = [_count(len(plan.runs), "run", "runs")]
    if plan.staging:
        parts.append(_count(len(plan.staging), "interrupted submit", "interrupted submits"))
    if plan.code:
        parts.append(_count(plan.code, "file of code", "files of code"))
    if plan.secrets:
        parts.append(_count(len(plan.secrets), "run's secrets", "runs' secrets"))
    return f"{', '.join(parts)}: {format_size(plan.size)}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _clean_print(plan: CleanPlan, *, listed: bool) -> None:
    for kept in plan.kept:
        print(f"{kept.run_id} is kept: {kept.reason}", file=sys.stderr)
    if listed:
        rows = [
            (
                old.run.run_id,
                old.run.name,
                old.run.state,
                moment(old.run.status.ended_at or old.run.created_at),
                format_size(old.size),
            )
            for old in plan.runs
        ]
        print_table(Table(("RUN", "NAME", "STATE", "ENDED", "SIZE"), rows))
    print("nothing to remove" if plan.empty else _sum(plan))


def _clean_document(plan: CleanPlan, *, removed: bool) -> dict[str, Any]:
    return {
        "removed": removed,
        "bytes": plan.size,
        "runs": [
            {
                "run_id": old.run.run_id,
                "name": old.run.name,
                "state": old.run.state,
                "ended_at": iso_time(old.run.status.ended_at),
                "bytes": old.size,
            }
            for old in plan.runs
        ],
        "kept": [{"run_id": kept.run_id, "reason": kept.reason} for kept in plan.kept],
        "staging": {"folders": len(plan.staging), "bytes": plan.staging_size},
        "code": {"files": plan.code, "bytes": plan.code_size},
        "secrets": len(plan.secrets),
    }
