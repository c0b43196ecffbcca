"""HyperPod clusters are made, changed and deleted, and what becomes of them is followed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.aws.clusters import checked
from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.events import EventFilter, describe_event, list_events
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import ConflictError, DeniedError, NotFoundError, UnreachableError
from hyperpod_jlab.core.events import ClusterEvent
from hyperpod_jlab.core.wire import HIDDEN, Wire, shown

LOOK = 10.0
"""Seconds between two looks at a cluster that is on its way: one takes it 10 to 30 minutes."""

_PATIENCE = 20
"""Looks in a row that AWS may leave without an answer."""

_CLOCKS = 300.0
"""Seconds that this machine's clock and AWS' may be apart: more, and AWS takes no call."""

_EVENTS_BEFORE = 5.0
"""Seconds before a change from which on events are taken to be its own."""


@dataclass(frozen=True)
class GroupCount:
    """How many instances a group has, and is to have."""

    name: str
    status: str | None
    current: int
    target: int


@dataclass(frozen=True)
class Progress(Wire):
    """How a cluster is at a look.

    Attributes:
        name: Its name.
        arn: Its ARN.
        status: AWS' word for its state; ``Deleted`` once it is gone.
        failure: Why it failed, or is rolled back.
        groups: Its instance groups.
        events: What happened since the last look, oldest first.
        notes: What could not be had.
        ended: Whether it goes on no further.
        ok: Whether it ended as was wanted.
    """

    name: str
    arn: str
    status: str
    failure: str | None = None
    groups: tuple[GroupCount, ...] = ()
    events: tuple[ClusterEvent, ...] = field(default=(), metadata=HIDDEN)
    notes: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    ended: bool = field(default=False, metadata=HIDDEN)
    ok: bool = False

    @property
    @shown
    def logs(self) -> str:
        """The log group in which its life cycle scripts write."""
        return log_group(self.arn, self.name)


async def describe(aws: Aws, name: str) -> dict[str, Any]:
    """A cluster's description as AWS has it.

    Raises:
        NotFoundError: There is none.
        HyperpodError: See `aws.errors`.
    """
    return await aws.call("sagemaker", "DescribeCluster", ClusterName=checked(name))


async def create(aws: Aws, given: Mapping[str, Any]) -> str:
    """Have a cluster made; returns its ARN.

    Args:
        aws: AWS in its region.
        given: The input of CreateCluster.

    Raises:
        ConflictError: There is one of the name.
        UnreachableError: Whether it is made is not known.
        HyperpodError: See `aws.errors`.
    """
    begin = time.time()
    try:
        told = await aws.call("sagemaker", "CreateCluster", **given)
    except ConflictError as error:
        if not error.detail.get("retries"):
            raise
        # boto3 sends a call again whose answer was lost; then the cluster that is there already is ours.
        told = await describe(aws, str(given["ClusterName"]))
        if told["CreationTime"].timestamp() < begin - _CLOCKS:
            raise
    except UnreachableError as error:
        raise _not_known(error, "made") from error
    return str(told["ClusterArn"])


async def update(aws: Aws, given: Mapping[str, Any]) -> None:
    """Have a cluster changed.

    Args:
        aws: AWS in its region.
        given: The input of UpdateCluster.

    Raises:
        ConflictError: Something is being done to it already.
        UnreachableError: Whether it is changed is not known.
        HyperpodError: See `aws.errors`.
    """
    try:
        await aws.call("sagemaker", "UpdateCluster", **given)
    except UnreachableError as error:
        raise _not_known(error, "changed") from error


async def delete(aws: Aws, name: str) -> None:
    """Have a cluster deleted.

    Raises:
        NotFoundError: There is none.
        ConflictError: Something is being done to it.
        HyperpodError: See `aws.errors`.
    """
    try:
        await aws.call("sagemaker", "DeleteCluster", ClusterName=checked(name))
    except UnreachableError as error:
        raise _not_known(error, "deleted") from error


def _not_known(error: UnreachableError, what: str) -> UnreachableError:
    if error.code == "aws_throttled":
        return error
    return UnreachableError(
        f"whether the cluster is being {what} is not known: {error.message}",
        code=error.code,
        hint="look before you try again: hpj clusters --hyperpod",
        detail=error.detail,
    )


class Follower:
    """Follows a cluster until it is made, changed or deleted.

    Args:
        aws: AWS in its region.
        name: Its name.
        arn: Its ARN.
        deleted: Whether it is to go away.
        since: When the change began (Unix seconds): older events are not its own; default: a moment ago.
        look: Seconds between two looks; default: `LOOK`.
    """

    def __init__(
        self,
        aws: Aws,
        name: str,
        arn: str,
        *,
        deleted: bool = False,
        since: float | None = None,
        look: float | None = None,
    ) -> None:
        self._aws = aws
        self._name, self._arn = name, arn
        self._deleted = deleted
        self._look = LOOK if look is None else look
        self._since = (time.time() if since is None else since) - _EVENTS_BEFORE
        self._seen = set[str]()
        self._rolled_back: str | None = None
        self._told_denied = False
        """Whether events cannot be had, which is said once."""

    async def follow(self) -> AsyncIterator[Progress]:
        """How it is at each look; the last one has ended. Who stops listening stops nothing at AWS.

        Raises:
            HyperpodError: See `aws.errors`; AWS may be silent for some looks.
        """
        silent = 0
        while True:
            try:
                found = await self._at()
            except UnreachableError:
                silent += 1
                if silent > _PATIENCE:
                    raise
            else:
                silent = 0
                yield found
                if found.ended:
                    return
            await asyncio.sleep(self._look)

    async def _at(self) -> Progress:
        # By its ARN: another one of the same name is another cluster.
        try:
            told = await self._aws.call("sagemaker", "DescribeCluster", ClusterName=self._arn)
        except NotFoundError:
            gone = "Deleted"
            return Progress(self._name, self._arn, gone, ended=True, ok=self._deleted)
        status, failure = str(told["ClusterStatus"]), told.get("FailureMessage")
        if status == "RollingBack":
            self._rolled_back = str(failure or "AWS does not say why")
        counts = tuple(map(_count, _groups(told)))
        events, notes = await self._events(told)
        ended, good = self._end(status, counts)
        return Progress(
            self._name,
            self._arn,
            status,
            failure or (None if good else self._rolled_back),
            counts,
            events,
            notes,
            ended,
            good,
        )

    def _end(self, status: str, counts: tuple[GroupCount, ...]) -> tuple[bool, bool]:
        """Whether it goes on no further, and whether that is what was wanted."""
        if self._deleted:
            return status in {"InService", "Failed"}, False
        if status == "Failed":
            return True, False
        settled = status == "InService" and all(
            # One with continuous provisioning is in service before its instances are there.
            one.current == one.target and one.status in {None, "InService", "Failed"}
            for one in counts
        )
        good = self._rolled_back is None and all(one.status != "Failed" for one in counts)
        return settled, settled and good

    async def _events(
        self, told: Mapping[str, Any]
    ) -> tuple[tuple[ClusterEvent, ...], tuple[str, ...]]:
        """What is new, oldest first; clusters without continuous provisioning keep none."""
        if told.get("NodeProvisioningMode") != "Continuous" or self._told_denied:
            return (), ()
        found = list[ClusterEvent]()
        try:
            async for page in list_events(self._aws, self._arn, EventFilter(since=self._since)):
                found += [one for one in page if one.event_id not in self._seen]
        except DeniedError as error:
            self._told_denied = True
            return (), (f"no events: {error.message}",)
        notes = dict[str, None]()
        detailed = [await self._detailed(one, notes) for one in reversed(found)]
        self._seen |= {one.event_id for one in found}
        return tuple(detailed), tuple(notes)

    async def _detailed(self, event: ClusterEvent, notes: dict[str, None]) -> ClusterEvent:
        """An event that tells of a failure with its reason, which only its details tell."""
        if event.level != "error":
            return event
        try:
            return await describe_event(self._aws, self._arn, event.event_id)
        except DeniedError as error:
            notes[f"why it failed is not known: {error.message}"] = None
            return event


def _groups(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(told.get("InstanceGroups") or ()), *(told.get("RestrictedInstanceGroups") or ())]


def _count(told: Mapping[str, Any]) -> GroupCount:
    return GroupCount(
        str(told.get("InstanceGroupName", "")),
        told.get("Status"),
        int(told.get("CurrentCount", 0)),
        int(told.get("TargetCount", 0)),
    )


def what_stays(told: Mapping[str, Any]) -> list[str]:
    """What is there still once a cluster is deleted, from its description: a sentence each."""
    names = sorted(
        {
            str(lustre["DnsName"]).partition(".")[0]
            for group in _groups(told)
            for one in group.get("InstanceStorageConfigs") or ()
            if (lustre := one.get("FsxLustreConfig"))
        }
    )
    folders = sorted(
        {
            str(folder)
            for group in _groups(told)
            if (folder := (group.get("LifeCycleConfig") or {}).get("SourceS3Uri"))
        }
    )
    eks = ((told.get("Orchestrator") or {}).get("Eks") or {}).get("ClusterArn")
    stays = [f"the file system {name} with all its data" for name in names]
    if not names:
        stays.append("file systems that life cycle scripts mount, with all their data")
    stays += [f"life cycle scripts at {folder}" for folder in folders]
    if eks:
        stays.append(f"the EKS cluster {eks}")
    group = log_group(str(told["ClusterArn"]), str(told["ClusterName"]))
    return [*stays, f"the logs in {group}"]
