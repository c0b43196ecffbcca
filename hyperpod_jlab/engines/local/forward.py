"""Ports of runs on this machine: they need no forwarding, unless another local port is wanted."""

from __future__ import annotations

from typing import NoReturn

from hyperpod_jlab.engines.forwarding import LOOPBACK, LocalEnd, serve_tcp, wait_cancelled
from hyperpod_jlab.storage.records import BundleReader


class LocalForwarding:
    """Ports of this machine's runs, whose nodes are all this machine."""

    async def forward(self, bundle: BundleReader, node: int, port: int, end: LocalEnd) -> NoReturn:
        """Forward a port (see `engines.protocol.Forwarding`)."""
        del bundle, node
        if end.port in {0, port}:
            end.on_open(port)
            await wait_cancelled()
        await serve_tcp(LOOPBACK, port, end)
