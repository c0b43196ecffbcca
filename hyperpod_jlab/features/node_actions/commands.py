"""``hpj node``: reboot, replace, drain and resume nodes, several at once, with one result each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.parameters import cluster_option, region_option
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.node_actions import NodeActionKind
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.features.node_actions.service import NodeActions, NodeRequest

if TYPE_CHECKING:
    from hyperpod_jlab.core.errors import HyperpodError
    from hyperpod_jlab.core.node_actions import NodeActionPlan, NodeResult

_HELP = """\
Reboot, replace, drain or resume nodes of a cluster. AWS reboots or replaces the instances of HyperPod nodes; the scheduler drains and resumes nodes.

NODE is an instance id, the node's name in the scheduler, or its private DNS name. You can name several. Each has its own result, and the exit code
is that of the worst one.

Before a reboot or a replacement, the command shows the effects on nodes and jobs and asks for confirmation. A drained node starts no new jobs; running
jobs continue (on Kubernetes: cordon).
"""

_EXAMPLES = (
    "hpj node reboot i-0123456789abcdef0 --cluster ml-cluster --dry-run",
    "hpj node replace ip-10-1-2-3 --cluster ml-cluster --yes",
    "hpj node drain ip-10-1-2-3 --cluster ml-slurm --reason 'GPU 3 falls off the bus'",
    "hpj node resume ip-10-1-2-3 --cluster ml-slurm",
)

_QUESTION_VERBS = {"reboot": "Reboot", "replace": "Replace"}
"""Actions that need confirmation, since they end what runs there."""

_MAX_NAMES = 3
"""Maximum number of node names in a shared error message."""

_RESULT_LABELS: dict[NodeActionKind, str] = {
    "reboot": "is being rebooted",
    "replace": "is being replaced",
    "drain": "accepts no new jobs",
    "resume": "accepts jobs again",
}


@click.command("node", cls=HpjCommand, help=_HELP, examples=_EXAMPLES)
@click.argument("action", type=click.Choice(get_args(NodeActionKind)), metavar="ACTION")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@cluster_option
@region_option
@click.option("--reason", metavar="TEXT", help="With drain: the reason, which other users can read.")
@click.option("--dry-run", is_flag=True, help="Show the effects. Change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def node(
    action: NodeActionKind,
    nodes: tuple[str, ...],
    cluster: str | None,
    region: str | None,
    reason: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Act on nodes."""
    request = NodeRequest(action, nodes, cluster, region, reason)
    plan = with_services(lambda services: NodeActions(services).plan(request), asking=True)
    as_json = invocation().as_json
    if dry_run:
        _show_plan(plan)
        _raise_worst([(node_plan.name, node_plan.refusal) for node_plan in plan.nodes if node_plan.refusal is not None])
        return
    if action in _QUESTION_VERBS and plan.possible:
        if not as_json:
            _print_plan(plan)
        if not (yes or _confirmed(plan)):
            print("nothing was done", file=sys.stderr)
            return
    results = with_services(lambda services: NodeActions(services).carry_out(plan), asking=True)
    _print_results(action, results, plan)


def _confirmed(plan: NodeActionPlan) -> bool:
    """Whether the user confirms it.

    Raises:
        InvalidInputError: There is no terminal to ask on.
    """
    count = len(plan.possible)
    question = f"{_QUESTION_VERBS[plan.action]} {count} {'node' if count == 1 else 'nodes'}"
    if invocation().as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise InvalidInputError(
            f"this needs confirmation; it would {question.lower()}",
            code="not_confirmed",
            hint="confirm with --yes, or use --dry-run to see the effects",
            detail=to_plain(plan),
        )
    return click.confirm(f"{question}?", err=True)


def _show_plan(plan: NodeActionPlan) -> None:
    if invocation().as_json:
        print_json(plan)
    else:
        _print_plan(plan)


def _print_plan(plan: NodeActionPlan) -> None:
    """Print the effects on the nodes to stdout, before the user confirms."""
    for node_plan in plan.possible:
        about = f", {node_plan.instance.instance_type}" if node_plan.instance else ""
        print(printable(f"{plan.action} {node_plan.label}{about}"))
        for effect in node_plan.effects:
            print(printable(f"  {effect}"))
    for node_plan in plan.nodes if plan.possible else ():
        if node_plan.refusal is not None:
            print(printable(f"skipped: {_with_names([node_plan.name], node_plan.refusal)}"))
    for effect in plan.effects if plan.possible else ():
        print(printable(effect))
    for note in plan.notes:
        print(f"note: {printable(note)}", file=sys.stderr)


def _print_results(action: NodeActionKind, results: list[NodeResult], plan: NodeActionPlan) -> None:
    if invocation().as_json:
        notes = {"notes": list(plan.notes)} if plan.notes else {}
        print_json({"results": results, **notes})
    else:
        for result in results:
            if result.error is None:
                print(printable(f"{result.name} {_RESULT_LABELS[action]}"))
    _raise_worst([(result.name, result.error) for result in results if result.error is not None])


def _raise_worst(errors_by_node: Sequence[tuple[str, HyperpodError]]) -> None:
    """Print all errors, each with its nodes; raise the worst."""
    if not errors_by_node:
        return
    names: dict[tuple[str, str], list[str]] = {}
    errors: dict[tuple[str, str], HyperpodError] = {}
    for name, error in errors_by_node:
        key = (error.code, error.message)
        names.setdefault(key, []).append(name)
        errors.setdefault(key, error)
    worst = max(errors, key=lambda key: errors[key].exit_code)
    if not invocation().as_json:
        for key, error in errors.items():
            if key != worst:
                print(f"error: {printable(_with_names(names[key], error))}", file=sys.stderr)
    error = errors[worst]
    raise type(error)(_with_names(names[worst], error), code=error.code, hint=error.hint, detail=error.detail)


def _with_names(names: Sequence[str], error: HyperpodError) -> str:
    """The message, with the names of its nodes unless it already has them."""
    if len(names) == 1 and names[0] in error.message:
        return error.message
    remainder = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(names[:_MAX_NAMES])}{remainder}: {error.message}"
