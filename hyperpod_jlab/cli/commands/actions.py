"""``hpj cancel``, ``hold``, ``release`` and ``requeue``: what can be done to runs, several at once, with one result each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.output import coloured, print_json
from hyperpod_jlab.cli.parameters import RUN
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.records import ActionKind
from hyperpod_jlab.model.run import Run
from hyperpod_jlab.services.hyperpod import Hyperpod

Outcome = tuple[str, Run | HyperpodError]

_NAMES = "RUN is a run's whole id (also of an array's child, such as ID.3), or 'last'; several may be given."


def _command(action: ActionKind, text: str) -> click.Command:
    @click.command(
        action,
        cls=HpjCommand,
        help=f"{text}\n\n{_NAMES}",
        examples=(f"hpj {action} last", f"hpj {action} 20261121-120455-k3x9qd"),
    )
    @click.argument("runs", type=RUN, nargs=-1, required=True, metavar="RUN...")
    def command(runs: tuple[str, ...]) -> None:
        outcomes = with_services(lambda hyperpod: _act(hyperpod, runs, action))
        _print(outcomes)

    return command


cancel = _command(
    "cancel",
    "End runs, or take them out of the queue. A run that has ended stays as it is.",
)
hold = _command("hold", "Keep waiting runs from starting, until they are released.")
release = _command("release", "Let runs start that were held.")
requeue = _command(
    "requeue", "End the running attempt of runs and start the next one: same run, same code."
)


async def _act(hyperpod: Hyperpod, texts: Sequence[str], action: ActionKind) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for text in dict.fromkeys(texts):
        try:
            run_id = await find_run(hyperpod, text, whole=True)
            outcomes.append((text, await hyperpod.runs.act(run_id, action)))
        except HyperpodError as error:
            outcomes.append((text, error))
    return outcomes


def _print(outcomes: list[Outcome]) -> None:
    """Print each result; the first error makes the exit code."""
    errors = [(text, found) for text, found in outcomes if isinstance(found, HyperpodError)]
    runs = [found for _, found in outcomes if isinstance(found, Run)]
    if invocation().as_json:
        _print_document(len(outcomes), runs, errors)
    else:
        for run in runs:
            reason = f": {printable(run.status.reason)}" if run.status.reason else ""
            print(f"{run.run_id} {coloured(run.state)}{reason}")
        for _, error in errors[1:]:
            print(f"error: {printable(error.message)}", file=sys.stderr)
    if errors:
        raise errors[0][1]


def _print_document(asked: int, runs: list[Run], errors: list[tuple[str, HyperpodError]]) -> None:
    if asked == 1:
        if runs:
            print_json(runs[0].to_dict())
        return
    document: dict[str, Any] = {"runs": [run.to_dict() for run in runs], "next": None}
    document["errors"] = [{"run": text[:60], **error.to_dict()} for text, error in errors]
    print_json(document)
