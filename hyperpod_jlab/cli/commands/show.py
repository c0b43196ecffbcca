"""``hpj show``: all about one run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import click

from hyperpod_jlab.cli.following import last_error
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.output import (
    Table,
    coloured,
    elapsed,
    moment,
    print_fields,
    print_json,
    print_table,
)
from hyperpod_jlab.cli.parameters import RUN
from hyperpod_jlab.cli.terminal import printable, shown_text
from hyperpod_jlab.cli.usage_words import usage_words
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.quantities import format_duration
from hyperpod_jlab.model.run import Run
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.model.usage import Usage
from hyperpod_jlab.services.access import Access
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.storage.translation import PathMap

_SHOWN_CHILDREN = 50
_SHOWN_SHELLS = 8

_HELP = """\
Show one run: its state and why, its spec, attempts and nodes, what it used, the first error with its traceback, and where its files
lie on this machine and on the cluster.

RUN is a run's id, the beginning of one, or 'last'.
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
    help=_HELP,
    examples=("hpj show last", "hpj show 20261121-120455-k3x9qd --json | jq .spec"),
)
@click.argument("run", type=RUN)
def show(run: str) -> None:
    """Show one run."""
    shown = with_services(lambda hyperpod: _look(hyperpod, run), asking=True)
    if invocation().as_json:
        print_json(_document(shown))
    else:
        _print(shown)


async def _look(hyperpod: Hyperpod, text: str) -> _Shown:
    run_id = await find_run(hyperpod, text)
    run = await hyperpod.runs.get(run_id)
    spec = hyperpod.runs.bundle(run_id).spec()
    try:
        paths = hyperpod.engines.get(run.cluster).paths
    except HyperpodError:  # a cluster that is no longer configured: its paths are not known here
        paths = None
    few = 0 < sum(run.children.values()) <= _SHOWN_CHILDREN
    children = await hyperpod.runs.children(run_id) if few else ()
    usage = await hyperpod.runs.usage(run_id) if run.status.ended else None
    access = await hyperpod.access(run_id) if run.state == "running" else None
    return _Shown(run, spec, paths, children, usage, access)


def _document(shown: _Shown) -> dict[str, Any]:
    paths = shown.paths
    return {
        **shown.run.to_dict(),
        "spec": shown.spec.model_dump(mode="json"),
        "usage": shown.usage.to_dict() if shown.usage else None,
        "shells": [asdict(shell) for shell in shown.access.shells] if shown.access else [],
        "paths": {
            "bundle": {"here": shown.run.bundle, "there": shown.there},
            "partition": {
                "here": str(paths.here) if paths else None,
                "there": str(paths.there) if paths else None,
            },
        },
    }


def _print(shown: _Shown) -> None:
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
            ("files there", shown.there if shown.there != run.bundle else None),
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
