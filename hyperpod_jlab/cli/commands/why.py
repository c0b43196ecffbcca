"""``hpj why``: why a run waits, and what would start now."""

from __future__ import annotations

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.output import moment, print_fields, print_json
from hyperpod_jlab.cli.parameters import RUN
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.cluster import Holder, WaitReason
from hyperpod_jlab.services.hyperpod import Hyperpod

_MOST = 5
"""So many of a list are shown."""


@click.command(
    cls=HpjCommand,
    help="Tell why a run waits, how many are before it, who uses what it needs, and what would start now.",
    examples=("hpj why last",),
)
@click.argument("run", type=RUN)
def why(run: str) -> None:
    """Tell why a run waits."""
    told = with_services(lambda hyperpod: _explain(hyperpod, run), asking=True)
    if invocation().as_json:
        print_json(told.to_dict())
        return
    print(f"{told.run_id}: {printable(told.reason or 'no reason is known')}")
    print_fields(
        [
            ("place", _place(told)),
            ("counted", told.counted),
            ("starts", None if told.expected_start is None else moment(told.expected_start)),
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
        return f"nothing else ({told.tried} other {'way' if told.tried == 1 else 'ways'} tried)"
    return "; ".join(f"sent in its place {way}" for way in told.would_start_now)


async def _explain(hyperpod: Hyperpod, text: str) -> WaitReason:
    return await hyperpod.runs.explain_wait(await find_run(hyperpod, text))
