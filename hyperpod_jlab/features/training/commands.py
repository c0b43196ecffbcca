"""``hpj watch`` and ``hpj compare``."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.numbers import format_alarm, format_number, format_progress, sparkline
from hyperpod_jlab.cli.output import Table, print_json, print_table
from hyperpod_jlab.cli.parameters import RUN
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.metric_names import order_names

if TYPE_CHECKING:
    from hyperpod_jlab.core.run import Run
    from hyperpod_jlab.features.training.service import Comparison
    from hyperpod_jlab.run.metrics import RunMetrics
    from hyperpod_jlab.run.services import Hyperpod

_LOOK_EVERY_S = 0.2
_STATE_EVERY_S = 2.0
_MAX_CURVES = 8
_MAX_LABEL = 28
_MAX_VALUE = 60

_WATCH_HELP = """\
Draw the numbers that a run prints in the terminal, live: its curves, how far it is, and its alarms. Ends with the run, or with Ctrl-C.

If the output is not a terminal, the curves are printed once.
"""


@click.command(
    cls=HpjCommand, help=_WATCH_HELP, examples=("hpj watch last", "hpj watch last --name loss"), has_json=False
)
@click.argument("run", type=RUN)
@click.option("--name", "names", multiple=True, metavar="NAME", help="Draw only this curve. Can be repeated.")
def watch(run: str, names: tuple[str, ...]) -> None:
    """Draw curves."""
    if invocation().as_json:
        raise InvalidInputError("hpj watch has no JSON", code="usage", hint=f"hpj metrics {run} --json")
    with_services(lambda hyperpod: _watch(hyperpod, run, names))


async def _watch(hyperpod: Hyperpod, text: str, names: tuple[str, ...]) -> None:
    run_id = await find_run(hyperpod, text)
    await asyncio.to_thread(hyperpod.runs.check_no_array, run_id)
    metrics = await asyncio.to_thread(hyperpod.metrics.get, run_id)
    run = await hyperpod.runs.get(run_id)
    asked_at = drawn_at = time.monotonic()
    height = 0
    is_first = True
    await asyncio.to_thread(metrics.refresh)
    if run.status.ended and (error := metrics.explain_missing(names, (), None, ended=True)) is not None:
        raise error
    while True:
        is_new = await asyncio.to_thread(metrics.refresh)
        now = time.monotonic()
        if is_new or is_first or run.status.ended or now - drawn_at >= 1:
            lines = _lines(metrics, run, names)
            if is_terminal(sys.stdout) and height:
                sys.stdout.write(f"\x1b[{height}F\x1b[J")
            print("\n".join(lines), flush=True)
            height, drawn_at, is_first = len(lines), now, False
        if run.status.ended or not is_terminal(sys.stdout):
            return
        await asyncio.sleep(_LOOK_EVERY_S)
        if now - asked_at >= _STATE_EVERY_S:
            asked_at = now
            run = await hyperpod.runs.get(run_id)


def _lines(metrics: RunMetrics, run: Run, names: tuple[str, ...]) -> list[str]:
    """What is on the screen; no line is wider than it, except the reason of a run that has ended."""
    ended = run.status.ended
    summary = metrics.summary(ended=ended)
    chosen = [one for one in order_names(summary.metrics) if not names or one in names]
    width = shutil.get_terminal_size().columns
    label = min(_MAX_LABEL, max([len(one) for one in chosen[:_MAX_CURVES]] or [0]))
    head = f"{run.run_id}  {run.state}  {printable(run.name)}"
    progress = format_progress(summary.progress)
    lines = [f"{head}  {progress}" if progress else head]
    for one in chosen[:_MAX_CURVES]:
        room = max(10, width - label - 24)
        course = metrics.course(one, room)
        finite = [value for value in course if value is not None]
        curve = sparkline(course, min(finite), max(finite), room) if finite else ""
        number = format_number(summary.metrics[one].value)
        lines.append(f"  {printable(one)[:label]:<{label}}  {number:>10}  {curve}")
        spread = metrics.spread(one)
        if spread.ranks > 1 and spread.lowest is not None:
            limits = f"{format_number(spread.lowest)} to {format_number(spread.highest)}"
            lines.append(f"  {'':<{label}}  {limits} on {spread.ranks} ranks")
    if not chosen:
        error = metrics.explain_missing(names, (), None, ended=ended)
        text = f"no numbers in the output{'' if ended else ' so far'}"
        lines.append(f"  {printable(text if error is None else str(error))}")
    lines += [f"  alarm {printable(format_alarm(alarm))}" for alarm in summary.alarms]
    lines = [line[: max(20, width - 1)] for line in lines]
    if run.status.reason:
        reason = f"  reason {printable(run.status.reason)}"
        lines.insert(1, reason if ended else reason[: max(20, width - 1)])
    return lines


_COMPARE_HELP = """\
Compare runs: the settings and the files of the code that differ, and the newest, lowest and highest value of each number.

RUN is a run id, the beginning of one, or 'last'. The code is compared between the first and the last run that you name.
"""


@click.command(
    cls=HpjCommand,
    help=_COMPARE_HELP,
    examples=("hpj compare 20261121-120455-k3x9qd last", "hpj compare last 20261121 --json | jq .metrics.loss"),
)
@click.argument("runs", type=RUN, nargs=-1, required=True, metavar="RUN RUN...")
@click.option("--diff", is_flag=True, help="Print the lines that differ, too.")
def compare(runs: tuple[str, ...], diff: bool) -> None:
    """Compare runs."""
    from hyperpod_jlab.features.training.service import compare_runs

    async def read(hyperpod: Hyperpod) -> Comparison:
        return await compare_runs(hyperpod, [await find_run(hyperpod, text) for text in runs])

    comparison = with_services(read, asking=True)
    if invocation().as_json:
        print_json(comparison)
        return
    _print(comparison, with_diff=diff)


def _print(comparison: Comparison, *, with_diff: bool) -> None:
    heads = [
        run_id if name == run_id else f"{run_id} {printable(name)}"
        for run_id, name in zip(comparison.runs, comparison.names, strict=True)
    ]
    rows = [(one.path, *(_value(value) for value in one.values)) for one in comparison.spec]
    print_table(Table(("SETTING", *heads), rows, empty="the settings are the same"))
    print()
    files = [(printable(one.path), *(digest or "-" for digest in one.digests)) for one in comparison.code]
    print_table(Table(("FILE", *heads), files, empty="the code is the same"))
    if with_diff:
        for file in comparison.code:
            print(f"\n{printable(file.path)}")
            print("\n".join(printable(line) for line in file.diff))
    print()
    numbers = [
        (name, *map(format_cell, one.found, one.last, one.steps, one.lowest, one.highest))
        for name, one in ((name, comparison.metrics[name]) for name in order_names(comparison.metrics))
    ]
    print_table(Table(("NEWEST (LOWEST TO HIGHEST)", *heads), numbers, empty="no numbers"))


def format_cell(found: bool, last: float | None, step: int | None, low: float | None, high: float | None) -> str:
    """A run's newest number, its step, and the range of all."""
    if not found:
        return "-"
    newest = format_number(last) + ("" if step is None else f" at step {step}")
    if low is None:
        return newest
    return f"{newest} ({format_number(low)} to {format_number(high)})"


def _value(value: object) -> str:
    text = "-" if value is None else json.dumps(value, ensure_ascii=False)
    return printable(text if len(text) <= _MAX_VALUE else text[: _MAX_VALUE - 1] + "…")
