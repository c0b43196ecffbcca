"""What AWS tells of the HyperPod clusters, kept for all who look at them: with its age, and not asked for while nobody looks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from hyperpod_jlab.aws.clusters import describe_cluster, list_clusters, list_instances, list_tags
from hyperpod_jlab.aws.errors import no_credentials
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import points_to_aws
from hyperpod_jlab.clusters.aws import ClusterRow, HyperpodClusters, cluster_row, undescribed
from hyperpod_jlab.clusters.reach import Reaches
from hyperpod_jlab.core.cache import FRESH, Look, Looks, Shown
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance, Places, is_changing

T = TypeVar("T")

_AT_ONCE = 8
"""Clusters that are described at the same time."""

_A_TURN = 20
"""Descriptions that are read again with each look at the list, the oldest first, so that many clusters cost no more than some."""

CHANGING = 10.0
"""Seconds for which instances are shown while some of them come or go."""

_HOPELESS = frozenset(
    {
        "aws_throttled",
        "aws_unreachable",
        "clock_skew",
        "expired_aws_credentials",
        "invalid_aws_credentials",
        "no_aws_credentials",
    }
)
"""Codes of what fails for one cluster as for all others."""

_LISTS = "clusters"


@dataclass(frozen=True)
class _Description:
    """What the description of a cluster told, or why it could not be had.

    Attributes:
        cluster: The cluster; None where it could not be had.
        at: When it was asked for (Unix seconds).
        status: AWS' word for the cluster's state in the list, then.
        problem: Why it could not be had.
    """

    cluster: HyperpodCluster | None
    at: float
    status: str
    problem: HyperpodError | None = None


class HyperpodWatch:
    """The HyperPod clusters of one region.

    Args:
        clusters: Asks AWS.
    """

    def __init__(self, clusters: HyperpodClusters) -> None:
        self._clusters = clusters
        self._looks = Looks()
        self._known: dict[str, _Description] = {}
        self._places: dict[str, Places] = {}
        self._reaches = Reaches(clusters.settings, clusters.aws, clusters.mounts)

    async def clusters(self, *, refresh: bool = False) -> tuple[Shown[ClusterRow], list[str]]:
        """All clusters, and what is to be said of the table: first as the list has them, soon with their descriptions.

        Args:
            refresh: Ask AWS now, even where nothing on this machine points to an account.

        Raises:
            HyperpodError: Nothing is known (see `aws.errors`).
        """
        if not refresh and not await asyncio.to_thread(self._has_reason):
            raise no_credentials()
        shown: Shown[ClusterRow] = await self._looks.get(
            _LISTS, lambda look: self._read_clusters(look, every=refresh), refresh=refresh
        )
        problems = [
            known.problem
            for row in shown.rows
            if (known := self._known.get(row.arn)) is not None and known.problem is not None
        ]
        rows, looking = self._with_reach(shown.rows, refresh=refresh and not shown.loading)
        shown = replace(shown, rows=rows, loading=shown.loading or looking)
        return shown, undescribed(problems, len(shown.rows))

    async def cluster(self, name: str, *, refresh: bool = False) -> Shown[HyperpodCluster]:
        """One cluster, by its name or ARN: a list of one.

        Raises:
            NotFoundError: There is none (any more).
            HyperpodError: Nothing is known (see `aws.errors`).
        """
        shown: Shown[HyperpodCluster] = await self._looks.get(
            ("cluster", name), lambda look: self._read_cluster(look, name), refresh=refresh
        )
        going = self._reaches.begin(shown.rows, refresh=refresh)
        rows = self._reaches.known(shown.rows)
        return replace(shown, rows=rows, loading=shown.loading or bool(going))

    async def tags(self, arn: str, *, refresh: bool = False) -> Shown[tuple[str, str]]:
        """The tags of a cluster: names and values.

        Raises:
            HyperpodError: Nothing is known (see `aws.errors`).
        """
        return await self._looks.get(
            ("tags", arn), lambda look: self._read_tags(look, arn), refresh=refresh
        )

    async def of_cluster(
        self,
        what: str,
        name: str,
        read: Callable[[Aws, HyperpodCluster], Awaitable[T]],
        *,
        refresh: bool = False,
    ) -> Shown[T]:
        """What a feature reads of one cluster, by its name or ARN: a list of one.

        Args:
            what: The feature's name for it.
            name: The cluster.
            read: Reads it from AWS.
            refresh: Whether it is read now, whatever is known.

        Raises:
            NotFoundError: There is no such cluster (any more).
            HyperpodError: `read` failed, and nothing is known.
        """

        async def load(look: Look[T]) -> None:
            cluster = await self._clusters.cluster(name)
            await look.put({name: await read(self._clusters.aws, cluster)})

        return await self._looks.get((what, name), load, refresh=refresh)

    async def instances(self, name: str, *, refresh: bool = False) -> Shown[Instance]:
        """The instances of a cluster, by its name or ARN: those of the first page at once, the others as they come.

        Raises:
            NotFoundError: There is no such cluster (any more).
            HyperpodError: Nothing is known (see `aws.errors`).
        """
        key = ("instances", name)
        fresh = CHANGING if any(map(is_changing, self._looks.last(key))) else FRESH
        shown: Shown[Instance] = await self._looks.get(
            key, lambda look: self._read_instances(look, name), refresh=refresh, fresh=fresh
        )
        places = self._places.get(name)
        return replace(shown, rows=places.told(shown.rows, time.time())) if places else shown

    def known_instances(self, name: str) -> list[Instance]:
        """The instances that would be shown now, without asking AWS; empty where nobody has looked."""
        return self._looks.last(("instances", name))

    def forget(self, name: str) -> None:
        """Something was changed on a cluster: whoever looks next has AWS asked again.

        Args:
            name: Its name or ARN, as it was asked for.
        """
        self._looks.forget(_LISTS)
        for kind in ("cluster", "instances"):
            self._looks.forget((kind, name))

    async def close(self) -> None:
        """Break off what goes on."""
        await self._looks.close()
        await self._reaches.close()

    def _with_reach(
        self, rows: list[ClusterRow], *, refresh: bool
    ) -> tuple[list[ClusterRow], bool]:
        """The rows with whether one can submit from here, as far as that is known; and whether somebody looks."""
        described = {
            row.arn: replace(
                known.cluster,
                status=row.status,
                configured_as=row.configured_as,
                mounted_here=row.mounted_here,
            )
            for row in rows
            if (known := self._known.get(row.arn)) is not None and known.cluster is not None
        }
        going = self._reaches.begin(described.values(), refresh=refresh)
        found = {one.arn: one for one in self._reaches.known(described.values())}
        return [
            cluster_row(replace(found[row.arn], image_status=row.image_status), row.described_at)
            if row.arn in found
            else row
            for row in rows
        ], bool(going)

    def _has_reason(self) -> bool:
        """Whether the configuration or the machine points to AWS."""
        clusters = self._clusters.settings.clusters.values()
        return any(one.at_aws for one in clusters) or points_to_aws()

    async def _read_clusters(self, look: Look[ClusterRow], *, every: bool) -> None:
        listed: dict[str, HyperpodCluster] = {}
        async for page in list_clusters(self._clusters.aws):
            listed |= {one.arn: one for one in page}
            await look.put({one.arn: self._row(one) for one in page})
        look.end_of_list()
        for arn in self._known.keys() - listed.keys():
            del self._known[arn]
        await self._describe(look, listed, self._due(listed.values(), every))

    def _due(self, listed: Iterable[HyperpodCluster], every: bool) -> list[HyperpodCluster]:
        """Whose description is to be read: of those that have none or another state, and the oldest ones."""
        urgent, old = [], []
        for one in listed:
            known = self._known.get(one.arn)
            if every or known is None or known.status != one.status:
                urgent.append(one)
            elif time.time() - known.at > FRESH / 2:
                old.append((known.at, one))
        old.sort(key=lambda pair: pair[0])
        return [*urgent, *(one for _, one in old[: max(0, _A_TURN - len(urgent))])]

    async def _describe(
        self,
        look: Look[ClusterRow],
        listed: dict[str, HyperpodCluster],
        due: list[HyperpodCluster],
    ) -> None:
        """Read descriptions, several at once.

        Raises:
            HyperpodError: One of `_HOPELESS`: the others were not asked for.
        """
        room = asyncio.Semaphore(_AT_ONCE)
        given_up: list[HyperpodError] = []

        async def one(summary: HyperpodCluster) -> None:
            async with room:
                await look.wanted()
                if given_up:
                    return
                try:
                    self._known[summary.arn] = await self._description(summary)
                except NotFoundError:  # deleted since it was listed
                    look.items.pop(summary.arn, None)
                except HyperpodError as error:
                    given_up.append(error)
                else:
                    look.items[summary.arn] = self._row(listed[summary.arn])

        await asyncio.gather(*map(one, due))
        if given_up:
            raise given_up[0]

    async def _description(self, summary: HyperpodCluster) -> _Description:
        at = time.time()
        try:
            cluster = await describe_cluster(self._clusters.aws, summary)
        except NotFoundError:
            raise
        except HyperpodError as error:
            if error.code in _HOPELESS:
                raise
            return _Description(None, at, summary.status, error)
        return _Description(cluster, at, summary.status)

    def _row(self, summary: HyperpodCluster) -> ClusterRow:
        """A cluster of the list with what is known from its description."""
        known = self._known.get(summary.arn)
        if known is None:
            return cluster_row(self._clusters.placed(summary), None)
        if known.cluster is None:
            words = known.problem.message if known.problem else None
            return cluster_row(self._clusters.placed(replace(summary, reason=words)), None)
        now = replace(known.cluster, status=summary.status, image_status=summary.image_status)
        return cluster_row(self._clusters.placed(now), known.at)

    async def _read_cluster(self, look: Look[HyperpodCluster], name: str) -> None:
        aws = self._clusters.aws
        bare = HyperpodCluster(name, name, await aws.region(), "")
        found = await describe_cluster(aws, bare)
        listed = [row for row in self._looks.last(_LISTS) if row.arn == found.arn]
        image_status = listed[0].image_status if listed else None
        placed = self._clusters.placed(replace(found, image_status=image_status))
        await look.put({found.arn: placed})

    async def _read_tags(self, look: Look[tuple[str, str]], arn: str) -> None:
        tags = await list_tags(self._clusters.aws, arn)
        await look.put(dict(_by_name(tags)))

    async def _read_instances(self, look: Look[Instance], name: str) -> None:
        async for page in list_instances(self._clusters.aws, name):
            await look.put({one.name: one for one in page})
        self._places.setdefault(name, Places()).note(look.items.values())


def _by_name(tags: dict[str, str]) -> Iterable[tuple[Hashable, tuple[str, str]]]:
    return ((name, (name, value)) for name, value in sorted(tags.items()))
