"""Requests that open ports of runs for the browser."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hyperpod_jlab.features.ports.service import open_port as open_port_of_run
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.port_keys import TICKET_TTL_S, parse_address

_SETTLE_SECONDS = 0.5


@dataclass(frozen=True)
class OpenedPort:
    """The URL, below the API's own, that opens a port in the browser: once, for this user, within `seconds`."""

    path: str
    ticket: str
    seconds: int


async def open_port(call: Call, run_id: str, port: str) -> OpenedPort:
    """Open a port of a running run's node for the browser: ``{port}`` of node 0, ``{node}:{port}`` of another node."""
    address = parse_address(run_id, port)
    hyperpod = await call.hyperpod()
    stream = await open_port_of_run(
        hyperpod.engines, hyperpod.runs, address.run_id, address.node, address.port
    )
    try:
        # A missing listener on a pod's port only shows after connecting. Most programs send nothing
        # first.
        async with asyncio.timeout(_SETTLE_SECONDS):
            await stream.read(1)
    except TimeoutError:
        pass
    finally:
        await stream.close()
    return OpenedPort(
        path=f"runs/{run_id}/ports/{port}/",
        ticket=call.process.port_keys.issue(call.username, address),
        seconds=int(TICKET_TTL_S),
    )
