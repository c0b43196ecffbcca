"""The events of a HyperPod cluster: of those with continuous provisioning, since AWS keeps none of others."""

from __future__ import annotations

from hyperpod_jlab.aws.clusters import describe_cluster
from hyperpod_jlab.aws.events import EventFilter, describe_event, list_events
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.cluster import Rows
from hyperpod_jlab.model.errors import HyperpodError, NotFoundError, UnsupportedError
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.model.hyperpod_events import EVENT_LEVELS, KEPT, ClusterEvent, said_once


class HyperpodEvents:
    """Events of the HyperPod clusters of one region.

    Args:
        aws: AWS in that region.
    """

    def __init__(self, aws: Aws) -> None:
        self.aws = aws

    async def events(
        self, cluster: str, wanted: EventFilter | None = None, level: str | None = None
    ) -> Rows[ClusterEvent]:
        """The events of a cluster, newest first; one that AWS tells twice within a moment once.

        Args:
            cluster: Its name or ARN.
            wanted: Which of them AWS is asked for.
            level: The least bad ones: a word of `EVENT_LEVELS`. Those of no known level are there always.

        Raises:
            UnsupportedError: AWS keeps no events of such a cluster.
            NotFoundError: There is no such cluster.
            HyperpodError: See `aws.errors`.
        """
        await self._check(cluster)
        wanted = wanted or EventFilter()
        found = [one async for page in list_events(self.aws, cluster, wanted) for one in page]
        shown = said_once(event for event in found if _as_bad(event, level))
        notes = (f"AWS keeps the newest {KEPT} events of a cluster",) if len(found) >= KEPT else ()
        return Rows(shown, notes)

    async def event(self, cluster: str, event_id: str) -> ClusterEvent:
        """One event with its details.

        Raises:
            HyperpodError: As with `events`.
        """
        await self._check(cluster)
        return await describe_event(self.aws, cluster, event_id)

    async def _check(self, cluster: str) -> None:
        """Refuse a cluster that has no events. Where it may not be described AWS will say so."""
        bare = HyperpodCluster(cluster, cluster, await self.aws.region(), "")
        try:
            found = await describe_cluster(self.aws, bare)
        except NotFoundError:
            raise
        except HyperpodError:
            return
        if found.provisioning != "Continuous":
            raise UnsupportedError(
                f"AWS keeps events of clusters with continuous provisioning only, and {found.name} has another",
                code="no_events",
                hint=f"its states and their reasons: hpj nodes --hyperpod {found.name}",
                detail={"provisioning": found.provisioning},
            )


def _as_bad(event: ClusterEvent, level: str | None) -> bool:
    if level is None or event.level not in EVENT_LEVELS:
        return True
    return EVENT_LEVELS.index(event.level) >= EVENT_LEVELS.index(level)
