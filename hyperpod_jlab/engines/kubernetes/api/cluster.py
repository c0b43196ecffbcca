"""The client of one configured cluster, and what is asked of it once for all who ask: made when first needed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.engines.kubernetes.api.access import load_access
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.rights import Rights
from hyperpod_jlab.engines.kubernetes.api.watch import Watches


@dataclass(frozen=True)
class _Made:
    client: KubeClient
    watches: Watches
    rights: Rights


class Connection:
    """The way to a cluster.

    All methods raise as `load_access` does: `UnsupportedError` when a package is missing, `InvalidInputError` when there is no usable kubeconfig or no such context,
    `DeniedError` when its way to log in fails.

    Attributes:
        config: Its configuration.
        namespace: The namespace of its runs.
    """

    def __init__(self, config: KubernetesCluster) -> None:
        self.config = config
        self.namespace = config.namespace or "default"
        self._made: _Made | None = None
        self._lock = asyncio.Lock()

    async def client(self) -> KubeClient:
        """The client."""
        return (await self._all()).client

    async def watches(self) -> Watches:
        """The watches of this process, shared by all who ask for the same."""
        return (await self._all()).watches

    async def rights(self) -> Rights:
        """What the user may do."""
        return (await self._all()).rights

    async def close(self) -> None:
        """End the watches and close the connections."""
        made, self._made = self._made, None
        if made is not None:
            await made.watches.close()
            await made.client.close()

    async def _all(self) -> _Made:
        async with self._lock:
            if self._made is None:
                client = KubeClient(await asyncio.to_thread(load_access, self.config))
                self._made = _Made(client, Watches(client), Rights(client))
        return self._made
