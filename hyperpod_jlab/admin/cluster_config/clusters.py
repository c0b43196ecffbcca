"""Create, change and delete HyperPod clusters, and follow what happens to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.aws.clusters import check_cluster_name
from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.events import describe_event, list_events
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import ConflictError, DeniedError, NotFoundError, UnreachableError
from hyperpod_jlab.core.events import ClusterEvent
from hyperpod_jlab.core.wire import HIDDEN, Wire, wire_property

POLL_S = 10.0
"""Seconds between two polls: a cluster takes 10 to 30 minutes."""

MAX_FAILURES = 20
"""Maximum consecutive polls without an answer."""

MAX_CLOCK_SKEW_S = 300.0
"""Maximum clock skew to AWS, in seconds: with more, AWS refuses all calls."""

EVENTS_MARGIN_S = 5.0
"""Events from this many seconds before a change on are shown as its own."""


@dataclass(frozen=True)
class GroupCount:
    """The current and target number of instances of a group."""

    name: str
    status: str | None
    current: int
    target: int


@dataclass(frozen=True)
class Progress(Wire):
    """The state of a cluster at a poll.

    Attributes:
        name: Its name.
        arn: Its ARN.
        status: Its state as AWS reports it; ``Deleted`` once it is gone.
        failure: Why it failed, or is rolled back.
        groups: Its instance groups.
        events: Events since the last poll, oldest first.
        notes: What could not be read.
        ended: Whether it is final.
        ok: Whether it ended as desired.
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
    @wire_property
    def logs(self) -> str:
        """The log group of its lifecycle scripts."""
        return log_group(self.arn, self.name)


async def describe(aws: Aws, name: str) -> dict[str, Any]:
    """DescribeCluster's answer.

    Raises:
        NotFoundError: The cluster does not exist.
        HyperpodError: See `aws.errors`.
    """
    return await aws.call("sagemaker", "DescribeCluster", ClusterName=check_cluster_name(name))


async def create(aws: Aws, parameters: Mapping[str, Any]) -> str:
    """Create a cluster from an input of CreateCluster; returns its ARN.

    Raises:
        ConflictError: A cluster of this name exists.
        UnreachableError: The outcome is unknown.
        HyperpodError: See `aws.errors`.
    """
    begin = time.time()
    try:
        response = await _change(aws, "CreateCluster", "made", **parameters)
    except ConflictError as error:
        if not error.detail.get("retries"):
            raise
        # boto3 retries a call whose response was lost; then the existing cluster is ours.
        response = await describe(aws, str(parameters["ClusterName"]))
        if response["CreationTime"].timestamp() < begin - MAX_CLOCK_SKEW_S:
            raise
    return str(response["ClusterArn"])


async def update(aws: Aws, parameters: Mapping[str, Any]) -> None:
    """Change a cluster by an input of UpdateCluster.

    Raises:
        ConflictError: Another change is in progress.
        UnreachableError: The outcome is unknown.
        HyperpodError: See `aws.errors`.
    """
    await _change(aws, "UpdateCluster", "changed", **parameters)


async def delete(aws: Aws, name: str) -> None:
    """Delete a cluster.

    Raises:
        NotFoundError: The cluster does not exist.
        ConflictError: Another change is in progress.
        UnreachableError: The outcome is unknown.
        HyperpodError: See `aws.errors`.
    """
    await _change(aws, "DeleteCluster", "deleted", ClusterName=check_cluster_name(name))


async def _change(aws: Aws, operation: str, action: str, **parameters: Any) -> dict[str, Any]:
    try:
        return await aws.call("sagemaker", operation, **parameters)
    except UnreachableError as error:
        if error.code == "aws_throttled":
            raise
        raise UnreachableError(
            f"the request was sent, but the cluster may not be {action}: {error.message}",
            code=error.code,
            hint="check before you try again: hpj clusters",
            detail=error.detail,
        ) from error


class ClusterWaiter:
    """Follows a cluster until it is created, changed or deleted.

    Args:
        aws: AWS in its region.
        name: Its name.
        arn: Its ARN.
        deleted: Whether it is being deleted.
        since: When the change began (Unix seconds); older events are not shown.
    """

    def __init__(
        self, aws: Aws, name: str, arn: str, *, deleted: bool = False, since: float
    ) -> None:
        self._aws, self._name, self._arn, self._deleted = aws, name, arn, deleted
        self._since = since - EVENTS_MARGIN_S
        self._seen_events = set[str]()
        self._rolled_back: str | None = None
        self._events_denied = False

    async def follow(self) -> AsyncIterator[Progress]:
        """Its state at each poll, until a final one. Cancelling does not stop AWS.

        Raises:
            HyperpodError: See `aws.errors`; some polls may fail.
        """
        failures_in_row = 0
        while True:
            try:
                progress = await self._read_progress()
            except UnreachableError:
                failures_in_row += 1
                if failures_in_row > MAX_FAILURES:
                    raise
            else:
                failures_in_row = 0
                yield progress
                if progress.ended:
                    return
            await asyncio.sleep(POLL_S)

    async def _read_progress(self) -> Progress:
        # By its ARN: a new cluster of the same name is another cluster.
        try:
            response = await self._aws.call("sagemaker", "DescribeCluster", ClusterName=self._arn)
        except NotFoundError:
            return Progress(self._name, self._arn, "Deleted", ended=True, ok=self._deleted)
        status, failure = str(response["ClusterStatus"]), response.get("FailureMessage")
        if status == "RollingBack":
            self._rolled_back = str(failure or "AWS gives no reason")
        counts = tuple(map(_count, _groups(response)))
        events, notes = await self._events(response)
        ended, is_ok = self._end(status, counts)
        failure = failure or (None if is_ok else self._rolled_back)
        return Progress(self._name, self._arn, status, failure, counts, events, notes, ended, is_ok)

    def _end(self, status: str, counts: tuple[GroupCount, ...]) -> tuple[bool, bool]:
        """Whether the state is final, and as desired."""
        if self._deleted:
            return status in {"InService", "Failed"}, False
        if status == "Failed":
            return True, False
        settled = status == "InService" and all(
            # With continuous provisioning a cluster is in service before its instances exist.
            group.current == group.target and group.status in {None, "InService", "Failed"}
            for group in counts
        )
        is_ok = self._rolled_back is None and all(group.status != "Failed" for group in counts)
        return settled, settled and is_ok

    async def _events(
        self, description: Mapping[str, Any]
    ) -> tuple[tuple[ClusterEvent, ...], tuple[str, ...]]:
        """New events, oldest first; only clusters with continuous provisioning have some. Only its details say why an event failed."""
        if description.get("NodeProvisioningMode") != "Continuous" or self._events_denied:
            return (), ()
        new_events = list[ClusterEvent]()
        try:
            async for page in list_events(self._aws, self._arn, self._since):
                new_events += [
                    summary for summary in page if summary.event_id not in self._seen_events
                ]
        except DeniedError as error:
            self._events_denied = True
            return (), (f"events are not available: {error.message}",)
        notes, detailed = set[str](), list[ClusterEvent]()
        for event in reversed(new_events):
            try:
                is_failure = event.level == "error"
                detailed.append(
                    await describe_event(self._aws, self._arn, event.event_id)
                    if is_failure
                    else event
                )
            except DeniedError as error:
                notes.add(f"the reason of the failure is unknown: {error.message}")
                detailed.append(event)
        self._seen_events |= {summary.event_id for summary in new_events}
        return tuple(detailed), tuple(sorted(notes))


def _groups(description: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        *(description.get("InstanceGroups") or ()),
        *(description.get("RestrictedInstanceGroups") or ()),
    ]


def _count(description: Mapping[str, Any]) -> GroupCount:
    current, target = (
        int(description.get("CurrentCount", 0)),
        int(description.get("TargetCount", 0)),
    )
    return GroupCount(
        str(description.get("InstanceGroupName", "")), description.get("Status"), current, target
    )


def list_remaining_resources(description: Mapping[str, Any]) -> list[str]:
    """The resources that outlive a cluster, from its description: one line each."""
    file_systems, folders = set[str](), set[str]()
    for group in _groups(description):
        for storage in group.get("InstanceStorageConfigs") or ():
            if lustre := storage.get("FsxLustreConfig"):
                file_systems.add(str(lustre["DnsName"]).partition(".")[0])
        if folder := (group.get("LifeCycleConfig") or {}).get("SourceS3Uri"):
            folders.add(str(folder))
    lines = [f"the file system {name} with all its data" for name in sorted(file_systems)]
    if not lines:
        lines.append("file systems that lifecycle scripts mount, with all their data")
    lines += [f"lifecycle scripts at {folder}" for folder in sorted(folders)]
    if eks := ((description.get("Orchestrator") or {}).get("Eks") or {}).get("ClusterArn"):
        lines.append(f"the EKS cluster {eks}")
    logs = log_group(str(description["ClusterArn"]), str(description["ClusterName"]))
    return [*lines, f"the logs in {logs}"]
