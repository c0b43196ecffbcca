"""``hpj node-logs``: logs of the nodes of a HyperPod cluster from CloudWatch."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.cli.following import write_bytes
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import InterruptionError, invocation, with_services
from hyperpod_jlab.cli.output import Table, format_moment, print_list, print_table
from hyperpod_jlab.cli.parameters import SinceParam, cluster_option, region_option
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.text import terminal_json
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.features.node_logs.models import NODE_KINDS
from hyperpod_jlab.features.node_logs.service import MAX_LINES, TAIL, NodeLogs, lines_of
from hyperpod_jlab.features.node_logs.spool import Spools
from hyperpod_jlab.logs.service import LogRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hyperpod_jlab.features.node_logs.models import NodeLog, NodeLogLine
    from hyperpod_jlab.run.services import Hyperpod

_HELP = """\
Print the CloudWatch logs of a HyperPod node: of its lifecycle scripts ('lifecycle|text') and of health monitoring ('health|text').

NODE is an instance id, or the name of a node in Slurm or Kubernetes. Use the instance id for a node that was replaced. Without NODE and
--stream, the command lists the logs, most recently written first.
"""

_EXAMPLES = (
    "hpj node-logs --cluster ml-cluster",
    "hpj node-logs i-0123456789abcdef0 --cluster ml-cluster",
    "hpj node-logs ip-10-0-0-5 --cluster ml-cluster --log lifecycle --since 2h",
    "hpj node-logs -f ip-10-0-0-5 --cluster ml-cluster",
)


@dataclass
class _NodeLogOptions:
    """The options, and the position in the logs."""

    cluster: str | None
    node: str | None
    log: str | None
    streams: tuple[str, ...]
    follow: bool
    tail: int | None
    since: float | None
    cursor: str | None
    limit: int | None
    region: str | None

    def interruption(self) -> InterruptionError:
        """The message when Ctrl-C ends it."""
        arguments = ["hpj", "node-logs", *([self.node] if self.node else []), "-f"]
        options = {"--cluster": self.cluster, "--log": self.log, "--region": self.region}
        for name, value in {**options, "--cursor": self.cursor}.items():
            arguments += [name, value] if value is not None else []
        for stream in self.streams:
            arguments += ["--stream", stream]
        return InterruptionError(
            "interrupted",
            hint=f"continue with: {shlex.join(arguments)}" if self.follow else None,
            detail={"cursor": self.cursor},
        )


@click.command(cls=HpjCommand, help=_HELP, examples=_EXAMPLES)
@click.argument("node", required=False)
@cluster_option
@click.option("--log", type=click.Choice(NODE_KINDS), help="Show only this log of the node.")
@click.option(
    "--stream",
    "streams",
    metavar="NAME",
    multiple=True,
    help="Show the log with this name in the list, such as that of a deep health check, instead of the logs of a node. Repeatable.",
)
@click.option("-f", "--follow", is_flag=True, help="Print new lines until Ctrl-C.")
@click.option(
    "--tail", type=click.IntRange(0, MAX_LINES), metavar="N", help=f"Start with the last N lines. Default: {TAIL}."
)
@click.option("--since", type=SinceParam(), help="Start this long ago, such as 5m or 2h, or at a time in ISO 8601.")
@click.option(
    "--cursor",
    metavar="CURSOR",
    help="Continue where an earlier call ended: the value of 'cursor' in its last line of JSON output.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="List at most this many logs. Default: all.")
@region_option
def node_logs(**options: Any) -> None:
    """Print logs of nodes."""
    log_options = _NodeLogOptions(**options)
    _check(log_options)
    if log_options.node is None and not log_options.streams:
        _list(log_options)
        return
    invocation().on_interrupt = log_options.interruption
    with_services(lambda hyperpod: _write(hyperpod, log_options))


def _check(log_options: _NodeLogOptions) -> None:
    if log_options.limit is not None and (log_options.node is not None or log_options.streams):
        raise _usage_error("--limit limits the list of logs; use --tail for the number of lines")
    if log_options.node is not None and log_options.streams:
        raise _usage_error("give a node or --stream, not both")
    start_options = [name for name in ("tail", "since", "cursor") if getattr(log_options, name) is not None]
    if len(start_options) > 1:
        raise _usage_error(f"--{start_options[0]} and --{start_options[1]} cannot be used together")
    if log_options.node is None:
        conflicting = [name for name in ("log", *start_options) if getattr(log_options, name) is not None]
        if conflicting and (conflicting[0] == "log" or not log_options.streams):
            raise _usage_error(f"--{conflicting[0]} needs a node")
        if log_options.follow and not log_options.streams:
            raise _usage_error("--follow needs a node or --stream")


def _usage_error(message: str) -> InvalidInputError:
    return InvalidInputError(message, code="usage", hint="see: hpj node-logs --help")


def _list(log_options: _NodeLogOptions) -> None:
    async def read(hyperpod: Hyperpod) -> Sequence[NodeLog]:
        service, cluster = await _service(hyperpod, log_options)
        return await service.logs(cluster, log_options.limit)

    logs = with_services(read, asking=True)
    if invocation().as_json:
        print_list("logs", logs, None)
        return
    rows = [
        (log.kind, log.instance_group or "-", log.instance or "-", format_moment(log.last_at), log.stream)
        for log in logs
    ]
    print_table(Table(("LOG", "GROUP", "INSTANCE", "LAST LINE", "STREAM"), rows, empty="no logs"))


async def _write(hyperpod: Hyperpod, log_options: _NodeLogOptions) -> None:
    service, cluster = await _service(hyperpod, log_options)
    streams = log_options.streams
    if log_options.node is not None:
        streams = await service.streams_of(cluster, log_options.node, log_options.log)
    has_start = log_options.since is not None or log_options.cursor is not None
    tail = TAIL if log_options.tail is None and not has_start else log_options.tail
    request = LogRequest("", tail=tail, since=log_options.since, cursor=log_options.cursor, follow=log_options.follow)
    as_json = invocation().as_json
    async with aclosing(service.lines(cluster, streams, request)) as batches:
        async for batch in batches:
            lines = lines_of(batch)
            if not as_json:
                for line in batch:
                    if line.mark is not None:
                        print(f"--- {printable(line.line)} ---", file=sys.stderr, flush=True)
            text = "".join(map(_as_json if as_json else _as_text, lines))
            note = partial(setattr, log_options, "cursor", batch.end_position.text())
            write_bytes(text.encode("utf-8", "backslashreplace"), note)


async def _service(hyperpod: Hyperpod, log_options: _NodeLogOptions) -> tuple[NodeLogs, str]:
    """The logs, and the cluster's name or ARN in AWS."""
    resolved = await hyperpod.clusters.resolve_hyperpod(log_options.cluster, log_options.region)
    spools = hyperpod.get_or_make(Spools, resolved.region, Spools)
    return NodeLogs(Aws(resolved.region), spools), resolved.aws_name


def _as_json(line: NodeLogLine) -> str:
    return terminal_json(json.dumps(to_plain(line), ensure_ascii=False)) + "\n"


def _as_text(line: NodeLogLine) -> str:
    return f"{line.log.kind}|{printable(line.line.expandtabs())}\n"
