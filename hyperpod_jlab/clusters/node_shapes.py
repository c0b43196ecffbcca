"""What the nodes of clusters have, by name. Nodes that are gone are remembered: an ended run is priced by the nodes that it had.

The file is in the user's cache folder, and can be deleted at any time.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from hyperpod_jlab.core.cost import Shape
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.storage.cache_file import read_cache, write_cache

if TYPE_CHECKING:
    from hyperpod_jlab.clusters.service import Clusters
    from hyperpod_jlab.core.cluster import Node

_MAX_AGE_S = 86_400.0
_RETRY_S = 60.0
"""How long a node that the cluster does not know is not asked for again."""
_FORGET_S = 400 * 86_400.0
_WAIT_S = 5.0


@dataclass(frozen=True)
class KnownNode:
    """A node as it was seen last (Unix seconds)."""

    seen_at: float
    shape: Shape
    queues: tuple[str, ...] = ()
    instance_group: str | None = None
    accelerator_type: str | None = None
    launched_at: float | None = None


@dataclass(frozen=True)
class KnownNodes:
    """The nodes of a cluster by name, and when the cluster listed them; `problem` says why the list is old."""

    read_at: float = 0.0
    nodes: Mapping[str, KnownNode] | None = None
    problem: str | None = None

    @property
    def present(self) -> dict[str, KnownNode]:
        """The nodes that the last list had."""
        return {name: node for name, node in self._all.items() if node.seen_at >= self.read_at}

    @property
    def shapes(self) -> dict[str, Shape]:
        """What the nodes have, by name; those that are gone too."""
        return {name: node.shape for name, node in self._all.items()}

    @property
    def launched(self) -> dict[str, tuple[str, float]]:
        """The instance types of the present nodes whose launch time is known, with that time (Unix seconds), by name."""
        return {
            name: (node.shape.instance_type, node.launched_at)
            for name, node in self.present.items()
            if node.shape.instance_type is not None and node.launched_at is not None
        }

    @property
    def only(self) -> Shape | None:
        """What the cluster's only node has; None if there are several. The embedded cluster calls it by other names."""
        shapes = [node.shape for node in self.present.values()]
        return shapes[0] if len(shapes) == 1 else None

    @property
    def _all(self) -> Mapping[str, KnownNode]:
        return self.nodes or {}


_ADAPTER = TypeAdapter(KnownNodes)


async def known_nodes(
    clusters: Clusters, cluster: str, wanted: Collection[str] = (), *, cached_only: bool = False
) -> KnownNodes:
    """The nodes of a configured cluster. The cluster is asked at most once a day, but for nodes that are not known yet.

    Args:
        clusters: The clusters.
        cluster: Its name in the configuration.
        wanted: Names of nodes that are needed.
        cached_only: Whether the cluster must not be asked.
    """
    known = await asyncio.to_thread(read_cache, _file(cluster), _ADAPTER) or KnownNodes()
    age = time.time() - known.read_at
    is_complete = set(wanted) <= known.shapes.keys()
    if cached_only or 0 <= age < (_MAX_AGE_S if is_complete else _RETRY_S):
        return known
    try:
        listed = await clusters.nodes(cluster, wait=_WAIT_S)
    except HyperpodError as error:
        return KnownNodes(known.read_at, known.nodes, str(error))
    now = time.time()
    if listed.loading or listed.partial:  # a type or a whole node may be missing
        problem = f"not all nodes of {cluster} are listed: {'; '.join(listed.notes) or 'AWS has not listed them yet'}"
        return KnownNodes(known.read_at, _merged(known, listed.nodes, now), problem)
    merged = KnownNodes(now, _merged(known, listed.nodes, now))
    await asyncio.to_thread(write_cache, _file(cluster), _ADAPTER, merged)
    return merged


def _merged(known: KnownNodes, nodes: list[Node], now: float) -> dict[str, KnownNode]:
    merged = {name: node for name, node in (known.nodes or {}).items() if now - node.seen_at < _FORGET_S}
    for node in nodes:
        old = merged.get(node.name)
        instance_type = node.instance_type or (old.shape.instance_type if old else None)
        merged[node.name] = KnownNode(
            now,
            Shape(instance_type, node.cpus, node.accelerators),
            node.queues,
            node.instance_group,
            node.accelerator_type,
            node.launched_at,
        )
    return merged


def _file(cluster: str) -> str:
    return f"nodes-{hashlib.sha256(cluster.encode()).hexdigest()[:16]}.json"
