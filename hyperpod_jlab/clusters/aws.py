"""The HyperPod clusters of the AWS account: asked of AWS for all who look, kept with their age, not asked while nobody looks."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from hyperpod_jlab.aws.clusters import describe_cluster, list_clusters, list_instances, list_tags
from hyperpod_jlab.aws.errors import no_credentials
from hyperpod_jlab.aws.file_systems import LustreMount, is_mount_of, lustre_mounts
from hyperpod_jlab.aws.session import Aws, home_region
from hyperpod_jlab.aws.studio import points_to_aws
from hyperpod_jlab.clusters.reach import Reaches
from hyperpod_jlab.core.cache import FRESH_S, CachedRows, RowCache, RowLoad
from hyperpod_jlab.core.cluster import Rows
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, nearest
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.core.nodes import ReplacementTracker, is_changing

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


class HyperpodClusters:
    """The HyperPod clusters of one region.

    All answers are kept and shared. An answer that takes long comes in parts: `Shown.loading` says that more is on its way, and `wait` how many seconds to
    wait for all of it.

    Args:
        settings: The configuration.
        aws: AWS in that region.
        mounts: The Lustre file systems that are mounted here; default: those of this machine at the time.
    """

    def __init__(
        self,
        settings: Settings,
        aws: Aws | None = None,
        mounts: Sequence[LustreMount] | None = None,
    ) -> None:
        self.settings = settings
        self.aws = aws or Aws()
        self.mounts = mounts
        self._looks = RowCache()
        self._known: dict[str, _Description] = {}
        self._places: dict[str, ReplacementTracker] = {}

    @cached_property
    def reaches(self) -> Reaches:
        """Whether you can submit to the clusters from here."""
        return Reaches(self.settings, self.aws, self.mounts)

    async def clusters(
        self, *, refresh: bool = False, wait: float | None = None, reach: bool = True
    ) -> tuple[CachedRows[HyperpodCluster], list[str]]:
        """All clusters, and notes on the table: first as the list has them, soon with their descriptions and whether you can submit to them from here.

        Args:
            refresh: Ask AWS now, even where nothing on this machine points to an account.
            wait: Seconds to wait for all of it; default: only for the list.
            reach: Whether to look whether you can submit to them from here.

        Raises:
            HyperpodError: Nothing is known (see `aws.errors`).
        """
        if not refresh and not await asyncio.to_thread(self.points_to_aws):
            raise no_credentials()
        shown: CachedRows[HyperpodCluster] = await self._looks.get(
            _LISTS,
            lambda look: self._read_clusters(look, every=refresh),
            refresh=refresh,
            wait=wait,
        )
        problems = [
            known.problem
            for row in shown.rows
            if (known := self._known.get(row.arn)) is not None and known.problem is not None
        ]
        if reach:
            shown = await self._with_reach(shown, wait, refresh=refresh and not shown.loading)
        return shown, undescribed(problems, len(shown.rows))

    async def cluster(
        self, name: str, *, refresh: bool = False, wait: float | None = None
    ) -> CachedRows[HyperpodCluster]:
        """One cluster, by its name or ARN: a list of one.

        Args:
            name: The cluster.
            refresh: Ask AWS now.
            wait: Seconds to wait until it shows whether you can submit to it from here; default: none.

        Raises:
            NotFoundError: There is none (any more).
            HyperpodError: Nothing is known (see `aws.errors`).
        """
        shown: CachedRows[HyperpodCluster] = await self._looks.get(
            ("cluster", name), lambda look: self._read_cluster(look, name), refresh=refresh
        )
        return await self._with_reach(shown, wait, refresh=refresh)

    async def every_cluster(self) -> Rows[HyperpodCluster]:
        """All clusters, however long that takes, without whether you can submit to them. One that AWS does not describe says why in its reason.

        Raises:
            HyperpodError: They could not be listed (see `aws.errors`).
        """
        shown, notes = await self.clusters(refresh=True, wait=float("inf"), reach=False)
        if shown.problem is not None:
            notes.append(f"AWS does not describe all clusters: {shown.problem.message}")
        return Rows(shown.rows, notes)

    async def described(self, name: str) -> HyperpodCluster:
        """One cluster as AWS describes it.

        Raises:
            NotFoundError: There is none (any more).
            HyperpodError: Nothing is known (see `aws.errors`).
        """
        return (await self.cluster(name)).rows[0]

    async def every_instance(self, name: str) -> list[Instance]:
        """All instances of a cluster, however long that takes.

        Raises:
            NotFoundError: There is no such cluster (any more).
            HyperpodError: They could not all be listed (see `aws.errors`).
        """
        shown = await self.instances(name, wait=float("inf"))
        if shown.problem is not None:
            raise shown.problem
        return shown.rows

    async def tags(self, arn: str, *, refresh: bool = False) -> CachedRows[tuple[str, str]]:
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
    ) -> CachedRows[T]:
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

        async def load(look: RowLoad[T]) -> None:
            await look.put({name: await read(self.aws, await self.described(name))})

        return await self._looks.get((what, name), load, refresh=refresh)

    async def instances(
        self, name: str, *, refresh: bool = False, wait: float | None = None
    ) -> CachedRows[Instance]:
        """The instances of a cluster, by its name or ARN: those of the first page at once, the others as they come.

        Raises:
            NotFoundError: There is no such cluster (any more).
            HyperpodError: Nothing is known (see `aws.errors`).
        """
        key = ("instances", name)
        fresh = CHANGING if any(map(is_changing, self._looks.last(key))) else FRESH_S
        shown: CachedRows[Instance] = await self._looks.get(
            key,
            lambda look: self._read_instances(look, name),
            refresh=refresh,
            fresh=fresh,
            wait=wait,
        )
        places = self._places.get(name)
        return (
            replace(shown, rows=places.with_replacements(shown.rows, time.time()))
            if places
            else shown
        )

    def known_instances(self, name: str) -> list[Instance]:
        """The instances that would be shown now, without asking AWS; empty where nobody has looked."""
        return self._looks.last(("instances", name))

    def placed(self, cluster: HyperpodCluster) -> HyperpodCluster:
        """The same cluster, with what this machine knows of it: under which names it is configured, and where its files are."""
        mounts = lustre_mounts() if self.mounts is None else self.mounts
        return replace(
            cluster,
            configured_as=configured_as(self.settings, cluster),
            mounted_here=mounted_here(cluster, mounts),
        )

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
        if "reaches" in self.__dict__:
            await self.reaches.close()

    async def _with_reach(
        self, shown: CachedRows[HyperpodCluster], wait: float | None, *, refresh: bool
    ) -> CachedRows[HyperpodCluster]:
        """The clusters with whether you can submit to them from here, as far as that is known."""
        looking = self.reaches.begin(shown.rows, refresh=refresh)
        if looking and wait is not None:
            await asyncio.wait(looking, timeout=wait)
            looking = [one for one in looking if not one.done()]
        # Before AWS has described a cluster there is nothing to say.
        tried = [one for one in shown.rows if one.groups is not None or one.arn in self._known]
        found = {one.arn: one for one in self.reaches.known(tried)}
        rows = [found.get(one.arn, one) for one in shown.rows]
        return replace(shown, rows=rows, loading=shown.loading or bool(looking))

    def points_to_aws(self) -> bool:
        """Whether the configuration or the machine points to AWS; may read files."""
        clusters = self.settings.clusters.values()
        return any(one.at_aws for one in clusters) or points_to_aws()

    async def _read_clusters(self, look: RowLoad[HyperpodCluster], *, every: bool) -> None:
        listed: dict[str, HyperpodCluster] = {}
        async for page in list_clusters(self.aws):
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
            elif time.time() - known.at > FRESH_S / 2:
                old.append((known.at, one))
        old.sort(key=lambda pair: pair[0])
        return [*urgent, *(one for _, one in old[: max(0, _A_TURN - len(urgent))])]

    async def _describe(
        self,
        look: RowLoad[HyperpodCluster],
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
            cluster = await describe_cluster(self.aws, summary)
        except NotFoundError:
            raise
        except HyperpodError as error:
            if error.code in _HOPELESS:
                raise
            return _Description(None, at, summary.status, error)
        return _Description(cluster, at, summary.status)

    def _row(self, summary: HyperpodCluster) -> HyperpodCluster:
        """A cluster of the list with what is known from its description."""
        known = self._known.get(summary.arn)
        if known is None:
            return self.placed(summary)
        if known.cluster is None:
            words = known.problem.message if known.problem else None
            return self.placed(replace(summary, reason=words))
        return self.placed(
            replace(
                known.cluster,
                status=summary.status,
                image_status=summary.image_status,
                described_at=known.at,
            )
        )

    async def _read_cluster(self, look: RowLoad[HyperpodCluster], name: str) -> None:
        at = time.time()
        try:
            found = await find_cluster(self.aws, name)
        except NotFoundError as error:
            near = nearest(name, self.settings.clusters)
            hint = f"did you mean '{near}'?" if near is not None else error.hint
            raise NotFoundError(
                error.message, code=error.code, hint=hint, detail=error.detail
            ) from None
        listed = [row for row in self._looks.last(_LISTS) if row.arn == found.arn]
        image_status = listed[0].image_status if listed else None
        found = replace(found, image_status=image_status, described_at=at)
        await look.put({found.arn: self.placed(found)})

    async def _read_tags(self, look: RowLoad[tuple[str, str]], arn: str) -> None:
        tags = await list_tags(self.aws, arn)
        await look.put(dict(_by_name(tags)))

    async def _read_instances(self, look: RowLoad[Instance], name: str) -> None:
        async for page in list_instances(self.aws, name):
            await look.put({one.name: one for one in page})
        self._places.setdefault(name, ReplacementTracker()).update(look.items.values())


def _by_name(tags: dict[str, str]) -> Iterable[tuple[Hashable, tuple[str, str]]]:
    return ((name, (name, value)) for name, value in sorted(tags.items()))


def undescribed(problems: Sequence[HyperpodError], total: int) -> list[str]:
    """What is to be said of clusters that are listed without their description: a sentence for each reason.

    Args:
        problems: Why; one for each of these clusters.
        total: How many clusters there are.
    """
    hints = {problem.message: problem.hint for problem in problems}
    return [
        f"{count} of {total} clusters could not be described: {words}"
        + (f" ({hints[words]})" if hints[words] else "")
        for words, count in Counter(problem.message for problem in problems).items()
    ]


def configured_as(settings: Settings, cluster: HyperpodCluster) -> tuple[str, ...]:
    """The names of the configuration's clusters that are this HyperPod cluster.

    A plain name in the configuration is one of the region that is found where nobody names one; in others there may be a cluster of the same name.
    """
    at_home = home_region() in {None, cluster.region}
    names = {cluster.arn, *([cluster.name] if at_home else [])}
    return tuple(
        name
        for name, config in settings.clusters.items()
        if config.hyperpod_cluster in names
        or config.is_eks(cluster.eks_arn, is_same_region=at_home)
    )


def mounted_here(cluster: HyperpodCluster, mounts: Sequence[LustreMount]) -> tuple[str, ...] | None:
    """Where the cluster's file systems are mounted on this machine; None where AWS names none of the cluster."""
    storage = cluster.storage
    if not storage:
        return None
    return tuple(
        str(mount.point) for mount in mounts if any(is_mount_of(mount, one) for one in storage)
    )


# --------------------------------------------------------------------------------------------------
# Finding a HyperPod cluster, and an instance of it, by what people call them.


async def find_cluster(aws: Aws, cluster: str) -> HyperpodCluster:
    """A cluster by its name or ARN.

    Raises:
        NotFoundError: There is none.
        HyperpodError: See `aws.errors`.
    """
    return await describe_cluster(aws, HyperpodCluster(cluster, cluster, await aws.region(), ""))


def is_called(instance: Instance, node: str) -> bool:
    """Whether people call an instance so: by its id, or its name in Kubernetes, in Slurm or in the private network."""
    host = instance.host or ""
    known = {host, host.partition(".")[0]} if host else set()
    return node.removeprefix("hyperpod-") == instance.name or node in known


async def find_instance(aws: Aws, cluster: str, node: str) -> Instance:
    """An instance of a cluster by what people call a node.

    Args:
        aws: AWS in the cluster's region.
        cluster: Name or ARN of the cluster.
        node: Its instance id, its name in Kubernetes (``hyperpod-i-...``), or its name in the private network, which Slurm shortens to
            its first part.

    Raises:
        NotFoundError: There is no such cluster, or no such node (``no_such_node``).
        HyperpodError: See `aws.errors`.
    """
    async for page in list_instances(aws, cluster):
        for one in page:
            if is_called(one, node):
                return one
    raise NotFoundError(
        f"the cluster {cluster} has no node {node}",
        code="no_such_node",
        hint=f"see: hpj nodes {cluster}",
        detail={"field": "node"},
    )
