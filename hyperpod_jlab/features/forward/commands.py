"""``hpj forward``: forward a local port to a port of a run's node."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.parameters import RUN
from hyperpod_jlab.cli.terminal import printable

if TYPE_CHECKING:
    from hyperpod_jlab.run.services import Hyperpod

_HELP = """\
Forward a port of a running run to this machine, such as the port of TensorBoard, until you press Ctrl-C or the run ends.

The command listens only on 127.0.0.1. On a shared machine, other users can connect too.

RUN is a run id, the beginning of one, or 'last'. PORT is the port on the node.
"""

_PORT = click.IntRange(1, 65_535)


@click.command(
    cls=HpjCommand, help=_HELP, examples=("hpj forward last 6006", "hpj forward last 8000 --node 1 --local-port 9000")
)
@click.argument("run", type=RUN)
@click.argument("port", type=_PORT, metavar="PORT")
@click.option(
    "--node", type=click.IntRange(min=0), default=0, metavar="N", help="Number of the node, starting at 0. Default: 0."
)
@click.option("--local-port", type=_PORT, metavar="PORT", help="Port on this machine. Default: a free port.")
def forward(run: str, port: int, node: int, local_port: int | None) -> None:
    """Forward a port."""
    with_services(lambda hyperpod: _forward(hyperpod, run, node, port, local_port or 0))


async def _forward(hyperpod: Hyperpod, text: str, node: int, port: int, local_port: int) -> None:
    from hyperpod_jlab.engines.forwarding import LocalEnd
    from hyperpod_jlab.engines.protocol import require
    from hyperpod_jlab.run.access import check_reachable

    run_id = await find_run(hyperpod, text)
    await check_reachable(hyperpod.runs, run_id)
    bundle = await asyncio.to_thread(hyperpod.runs.bundle, run_id)
    engine = hyperpod.engines.get(bundle.head().cluster)
    forwarding = require(engine.forwarding, engine, "do not support port forwarding")

    def on_open(opened: int) -> None:
        if invocation().as_json:
            print_json({"run_id": run_id, "node": node, "port": port, "local_port": opened})
        else:
            far = f"port {port} of node {node} of {run_id}; press Ctrl-C to stop"
            print(f"http://127.0.0.1:{opened} forwards to {far}")
            if find_spec("jupyter_server_proxy") is not None:
                path = urlsplit(os.environ.get("JUPYTER_SERVER_URL", "")).path.rstrip("/")
                rights = "such a page has Jupyter's rights, so open only programs that you trust"
                print(f"in JupyterLab: {path}/proxy/{opened}/; {rights}")
        sys.stdout.flush()

    end = LocalEnd(local_port, on_open, lambda why: click.echo(printable(why), err=True))
    forwarded = asyncio.ensure_future(forwarding.forward(bundle, node, port, end))
    ended = asyncio.ensure_future(hyperpod.runs.wait(run_id))
    try:
        await asyncio.wait([forwarded, ended], return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            forwarded.result()
        print(f"{run_id} has ended ({ended.result().state})", file=sys.stderr)
    finally:
        forwarded.cancel()
        ended.cancel()
        await asyncio.gather(forwarded, ended, return_exceptions=True)
