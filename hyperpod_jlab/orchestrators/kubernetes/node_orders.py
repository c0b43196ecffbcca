"""What Kubernetes is told to do to nodes: no new pods (cordon), or pods again (uncordon)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.node_actions import DrainKind
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import CORDON_ANNOTATION

_AT_ONCE = 8


async def set_nodes(
    client: KubeClient, action: DrainKind, nodes: Sequence[str], reason: str | None
) -> dict[str, HyperpodError | None]:
    """Cordon or uncordon nodes. Pods that run there stay.

    Args:
        client: The cluster.
        action: What to do.
        nodes: Their names.
        reason: With ``drain``: why, in one line; it is kept with the node.

    Returns:
        By name: None where it was done, else why not.
    """
    room = asyncio.Semaphore(_AT_ONCE)
    drains = action == "drain"
    change = {
        "metadata": {"annotations": {CORDON_ANNOTATION: reason if drains else None}},
        "spec": {"unschedulable": True if drains else None},
    }

    async def one(name: str) -> HyperpodError | None:
        async with room:
            try:
                await client.patch(f"/api/v1/nodes/{name}", change)
            except HyperpodError as error:
                return error
        return None

    return dict(zip(nodes, await asyncio.gather(*map(one, nodes)), strict=True))
