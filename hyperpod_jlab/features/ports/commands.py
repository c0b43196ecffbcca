"""``hpj forward``: forward a local port to a port of a run's node."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.parameters import RUN
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.features.ports.service import MAX_PORT, forward_port, open_port

if TYPE_CHECKING:
    from hyperpod_jlab.core.errors import HyperpodError
    from hyperpod_jlab.run.services import Hyperpod

_HELP = """\
Forward a port of a running run to this machine, such as the port of TensorBoard, until you press Ctrl-C or the run ends.

The command listens only on 127.0.0.1. On a shared machine, other users can connect too.

RUN is a run id, the beginning of one, or 'last'. PORT is the port on the node.
"""


@click.command(
    cls=HpjCommand,
    help=_HELP,
    examples=("hpj forward last 6006", "hpj forward last 8000 --node 1 --local-port 9000"),
)
@click.argument("run", type=RUN)
@click.argument("port", type=click.IntRange(1, MAX_PORT), metavar="PORT")
@click.option(
    "--node",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Number of the node, starting at 0. Default: 0.",
)
@click.option(
    "--local-port",
    type=click.IntRange(1, MAX_PORT),
    metavar="PORT",
    help="Port on this machine. Default: a free port.",
)
def forward(run: str, port: int, node: int, local_port: int | None) -> None:
    """Forward a port."""
    with_services(lambda hyperpod: _forward(hyperpod, run, node, port, local_port or 0))


async def _forward(hyperpod: Hyperpod, text: str, node: int, port: int, local_port: int) -> None:
    run_id = await find_run(hyperpod, text)
    # Report now whether the port can be reached at all; a listener may still appear.
    first = await open_port(hyperpod.engines, hyperpod.runs, run_id, node, port)
    await first.close()

    async with forward_port(
        lambda: open_port(hyperpod.engines, hyperpod.runs, run_id, node, port),
        local_port,
        _print_error,
    ) as listening_port:
        if invocation().as_json:
            print_json({"run_id": run_id, "node": node, "port": port, "local_port": listening_port})
        else:
            print(
                f"http://127.0.0.1:{listening_port} forwards to port {port} of node {node} of {run_id}; press Ctrl-C to stop"
            )
        sys.stdout.flush()
        ended = await hyperpod.runs.wait(run_id)
    print(f"{run_id} has ended ({ended.state})", file=sys.stderr)


def _print_error(error: HyperpodError) -> None:
    print(printable(str(error)), file=sys.stderr, flush=True)
