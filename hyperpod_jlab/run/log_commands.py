"""``hpj logs``: the logs of a run's ranks."""

from __future__ import annotations

import shlex
import sys
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab.cli.following import (
    Reading,
    is_unreachable,
    reporting_states,
    shows_progress,
    unreachable_text,
    write_bytes,
    write_logs,
)
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.parameters import RUN, NumbersParam, SinceParam
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.logs.service import LogRequest, check_choice, no_such_node, node_names

if TYPE_CHECKING:
    from hyperpod_jlab.core.run import Run
    from hyperpod_jlab.run.services import Hyperpod

_MAX_DIGITS = 9

_HELP = """\
Print the logs of a run's ranks, sorted by time. Each line begins with its rank: '3|text', or 'node0|text' for the log of a node.

RUN is a run id, the beginning of one, or 'last'. The run may still be running; -f follows it until it ends. Ctrl-C does not stop the
run; a hint says how to continue at the same place.

For an array, the logs of all children are printed, and each line begins with its child and rank: '2.0|text'. RUN.2 selects one child.

A line longer than 16 KiB is split into pieces. --grep searches each piece separately. With --json, every piece but the last has
"partial": true, and every piece but the first has "continued": true.

On a terminal, colours are kept, and other escape sequences and control characters are removed. --raw prints everything.
"""

_EXAMPLES = (
    "hpj logs -f last",
    "hpj logs 20261121-120455-k3x9qd --rank 0 --tail 100",
    "hpj logs last --since 5m --grep 'loss|error'",
    "hpj logs last --raw --rank 3 > rank-3.log",
    "hpj logs last --json | jq -r .line",
)


@dataclass(frozen=True)
class _LogOptions:
    follow: bool
    node: str | None
    ranks: tuple[tuple[int, ...], ...]
    attempt: int | None
    tail: int | None
    since: float | None
    grep: str | None
    cursor: str | None
    raw: bool


@click.command(cls=HpjCommand, help=_HELP, examples=_EXAMPLES)
@click.argument("run", type=RUN)
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the run ends.")
@click.option("--node", metavar="N", help="Show only this node: its number, starting at 0, or its name.")
@click.option(
    "--rank",
    "ranks",
    type=NumbersParam(),
    multiple=True,
    metavar="RANKS",
    help="Show only these global ranks, such as 0,2-3. Repeatable.",
)
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Show only this attempt, counted from 1.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Start with the last N lines.")
@click.option("--since", type=SinceParam(), help="Start this long ago, such as 5m or 2h, or at a time in ISO 8601.")
@click.option("--grep", metavar="REGEX", help="Show only lines that match this regular expression.")
@click.option(
    "--cursor",
    metavar="CURSOR",
    help="Continue where an earlier call ended: the value of 'cursor' in its last line of JSON output.",
)
@click.option(
    "--raw", is_flag=True, help="Print the exact bytes of one stream: of --rank (default: 0), or of the log of --node."
)
def logs(run: str, **options: Any) -> None:
    """Print logs."""
    log_options = _LogOptions(**options)
    if log_options.raw:
        _check_raw(log_options)
        with_services(lambda hyperpod: _raw(hyperpod, run, log_options))
    else:
        with_services(lambda hyperpod: _lines(hyperpod, run, log_options))


async def _lines(hyperpod: Hyperpod, text: str, log_options: _LogOptions) -> None:
    run = await hyperpod.runs.get(await find_run(hyperpod, text))
    request = LogRequest(
        run.run_id,
        attempt=log_options.attempt,
        node=_node(run, log_options.node),
        ranks=_ranks(log_options),
        tail=log_options.tail,
        since=log_options.since,
        grep=log_options.grep,
        cursor=log_options.cursor,
        follow=log_options.follow,
        partial=shows_progress() and not invocation().as_json,
    )
    check_choice(run, request)
    writer_state = Reading(request, _repeat_options(log_options))
    invocation().on_interrupt = writer_state.interruption
    if log_options.follow:
        async with reporting_states(hyperpod, run.run_id, run):
            await write_logs(hyperpod, writer_state)
    else:
        await write_logs(hyperpod, writer_state)
        if writer_state.written and is_unreachable(run) and not invocation().as_json:
            problem = unreachable_text(run)
            print(f"--- {problem}; newer lines may be missing ---", file=sys.stderr)
    if not writer_state.written and not run.status.ended and not invocation().as_json:
        reason = f": {printable(run.status.reason)}" if run.status.reason else ""
        print(f"no lines; the run is {run.state}{reason}", file=sys.stderr)


async def _raw(hyperpod: Hyperpod, text: str, log_options: _LogOptions) -> None:
    run = await hyperpod.runs.get(await find_run(hyperpod, text))
    ranks, node = _ranks(log_options), _node(run, log_options.node)
    request = LogRequest(run.run_id, log_options.attempt, node, ranks, follow=log_options.follow)
    check_choice(run, request)
    writer_state = Reading(request, _repeat_options(log_options))
    invocation().on_interrupt = writer_state.interruption
    chunks = hyperpod.logs.raw(
        run.run_id, rank=ranks[0] if ranks else None, node=node, attempt=log_options.attempt, follow=log_options.follow
    )
    async with aclosing(chunks):
        async for chunk in chunks:
            write_bytes(chunk)


def _check_raw(log_options: _LogOptions) -> None:
    line_options = ("tail", "since", "grep", "cursor")
    conflicting = [name for name in line_options if getattr(log_options, name) is not None]
    if conflicting:
        raise _usage_error(f"--raw and --{conflicting[0]} cannot be used together")
    if sum(map(len, log_options.ranks)) > 1:
        raise _usage_error("--raw prints one stream; choose it with --rank")
    if invocation().as_json:
        raise _usage_error("--raw and --json cannot be used together")


def _usage_error(message: str) -> InvalidInputError:
    return InvalidInputError(message, code="usage", hint="see: hpj logs --help")


def _ranks(log_options: _LogOptions) -> tuple[int, ...] | None:
    return tuple(sorted({rank for group in log_options.ranks for rank in group})) or None


def _node(run: Run, text: str | None) -> int | None:
    """The rank of a node that is given by rank or name."""
    if text is None:
        return None
    names = node_names(run)
    if text in names:
        return names.index(text)
    if not (text.isascii() and text.isdecimal()) or len(text) > _MAX_DIGITS:
        raise no_such_node(run, text)
    return int(text)


def _repeat_options(log_options: _LogOptions) -> str:
    """The options that select lines, to build a command that resumes."""
    arguments = [f"--rank {','.join(map(str, ranks))}" for ranks in log_options.ranks]
    for name in ("node", "attempt", "grep"):
        value = getattr(log_options, name)
        if value is not None:
            arguments.append(f"--{name} {shlex.quote(str(value))}")
    arguments += ["--raw"] if log_options.raw else []
    return "".join(f" {argument}" for argument in arguments)
