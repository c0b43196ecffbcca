"""Events of HyperPod clusters with continuous provisioning, as AWS keeps them: the newest 500. It keeps none for other clusters."""

from __future__ import annotations

from dataclasses import replace

from hyperpod_jlab.aws.events import describe_event, list_events
from hyperpod_jlab.clusters.aws import HyperpodClusters
from hyperpod_jlab.core.cache import CachedRows, RowCache, RowLoad
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, UnsupportedError
from hyperpod_jlab.core.events import MAX_EVENTS, ClusterEvent
from hyperpod_jlab.run.services import Hyperpod


class ClusterEvents:
    """The events of the HyperPod clusters of one region: a shared cache.

    Args:
        clusters: The clusters.
    """

    def __init__(self, clusters: HyperpodClusters) -> None:
        self._clusters = clusters
        self._cache = RowCache()
        self._reasons: dict[str, str] = {}

    async def events(
        self, cluster: str, *, refresh: bool = False, wait: float | None = None
    ) -> tuple[CachedRows[ClusterEvent], list[str]]:
        """The events of a cluster in no order, and notes. Those whose details were read have their reason, which AWS' list does not tell.

        Args:
            cluster: Its name or ARN.
            refresh: Query AWS now.
            wait: Seconds to wait for all of them; default: a moment.

        Raises:
            UnsupportedError: AWS keeps no events for it.
            NotFoundError: The cluster does not exist.
            HyperpodError: AWS failed and nothing is cached (see `aws.errors`).
        """
        cached: CachedRows[ClusterEvent] = await self._cache.get(
            cluster, lambda load: self._read(load, cluster), refresh=refresh, wait=wait
        )
        rows = [replace(event, reason=self._reasons.get(event.event_id, event.reason)) for event in cached.rows]
        is_full = len(rows) >= MAX_EVENTS
        notes = [f"AWS keeps the newest {MAX_EVENTS} events of a cluster"] if is_full else []
        return replace(cached, rows=rows), notes

    async def event(self, cluster: str, event_id: str) -> ClusterEvent:
        """One event with its details.

        Raises:
            HyperpodError: As with `events`.
        """
        await self._check(cluster)
        described = await describe_event(self._clusters.aws, cluster, event_id)
        if described.reason is not None:
            self._reasons[event_id] = described.reason
        return described

    def forget(self, cluster: str) -> None:
        """Invalidate the cache after a change to the cluster."""
        self._cache.forget(cluster)

    async def close(self) -> None:
        await self._cache.close()

    async def _read(self, load: RowLoad[ClusterEvent], cluster: str) -> None:
        await self._check(cluster)
        async for page in list_events(self._clusters.aws, cluster):
            await load.put({event.event_id: event for event in page})

    async def _check(self, cluster: str) -> None:
        """Check that AWS keeps events of a cluster. If it cannot be described, AWS itself says so when it is asked for events.

        Raises:
            UnsupportedError: It does not (``no_events``).
            NotFoundError: The cluster does not exist.
        """
        try:
            described = await self._clusters.describe(cluster)
        except NotFoundError:
            raise
        except HyperpodError:
            return
        if described.provisioning != "Continuous":
            raise UnsupportedError(
                f"AWS records events only for clusters with continuous provisioning; {described.name} does not use it",
                code="no_events",
                hint=f"'hpj nodes {described.name}' shows states and their reasons",
                detail={"provisioning": described.provisioning},
            )


def cluster_events(services: Hyperpod, region: str | None) -> ClusterEvents:
    """The events of HyperPod clusters of a region; shared by all callers."""
    return services.get_or_make(ClusterEvents, region, lambda: ClusterEvents(services.hyperpod_clusters(region)))
