"""``hpj why``: why a run waits, and what would start now."""

from __future__ import annotations

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.output import moment, print_fields, print_json
from hyperpod_jlab.cli.parameters import RUN
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.cluster import WaitReason
from hyperpod_jlab.services.hyperpod import Hyperpod


@click.command(
    cls=HpjCommand,
    help="Tell why a run waits, how many are before it, and what would start now.",
    examples=("hpj why last",),
)
@click.argument("run", type=RUN)
def why(run: str) -> None:
    """Tell why a run waits."""
    told = with_services(lambda hyperpod: _explain(hyperpod, run))
    if invocation().as_json:
        print_json(told.to_dict())
        return
    print(f"{told.run_id}: {printable(told.reason or 'no reason is known')}")
    ahead = f" (before it: {', '.join(told.ahead[:5])})" if told.ahead else ""
    print_fields(
        [
            ("place", None if told.position is None else f"{told.position}{ahead}"),
            ("starts", None if told.expected_start is None else moment(told.expected_start)),
            ("would start now", ", ".join(told.would_start_now)),
        ]
    )


async def _explain(hyperpod: Hyperpod, text: str) -> WaitReason:
    return await hyperpod.runs.explain_wait(await find_run(hyperpod, text))
