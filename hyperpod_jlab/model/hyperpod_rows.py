"""HyperPod clusters and their nodes as rows of tables: one value a column, so that they can be sorted and searched."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.model.hyperpod_events import ClusterEvent
from hyperpod_jlab.model.node_join import JoinedNode
from hyperpod_jlab.model.run import iso_time

NOT_LISTED = "not-listed"
"""State of a node that the scheduler has and AWS does not list."""


@dataclass(frozen=True)
class ClusterRow:
    """A HyperPod cluster.

    Attributes:
        name: Its name.
        arn: Its ARN.
        region: Its region.
        state: Its state in our words.
        status: The same in AWS'.
        orchestrator: ``slurm`` or ``kubernetes``; None where it is not known (yet).
        nodes: How many instances it has.
        target: How many it is to have.
        created_at: When it was made (Unix seconds).
        image_status: Whether updates of its software are due.
        configured_as: The names under which the configuration has it.
        mounted_here: Where its file systems are mounted on this machine; None where it is not known which it has.
        described_at: When AWS was asked for its description (Unix seconds); None: not yet, or it could not be had.
        reason: What is to be said of it.
        reach: A word for whether one can submit to it from here (`model.reach.REACHES`).
        reach_reason: The same as a sentence.
        reach_next: What to do about it.
    """

    name: str
    arn: str
    region: str
    state: str
    status: str
    orchestrator: str | None
    nodes: int | None
    target: int | None
    created_at: float | None
    image_status: str | None
    configured_as: tuple[str, ...]
    mounted_here: tuple[str, ...] | None
    described_at: float | None
    reason: str | None
    reach: str | None = None
    reach_reason: str | None = None
    reach_next: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; times are ISO 8601."""
        return {
            **asdict(self),
            "created_at": iso_time(self.created_at),
            "described_at": iso_time(self.described_at),
        }


@dataclass(frozen=True)
class NodeRow:
    """A node of a HyperPod cluster, as AWS and the scheduler know it.

    Attributes:
        name: The instance id; the scheduler's name where AWS lists no instance.
        state: AWS' state in our words; `NOT_LISTED` where AWS lists none.
        status: The same in AWS' words.
        reason: AWS' sentence on the state, and what is to be said where one side does not have the node.
        instance_group: Its instance group.
        instance_type: Its type.
        launched_at: When the instance was started (Unix seconds).
        host: Its name in the private network.
        image_version: Version of its software.
        image_status: Whether updates of it are due.
        node: The scheduler's name of it.
        scheduler_state: The scheduler's state of it.
        scheduler_reason: The scheduler's sentence on that.
        accelerators: How many GPUs or the like the scheduler has there; None where it does not know the node.
        accelerators_free: How many of them a new job can get.
        jobs: The scheduler's ids of the jobs on it.
    """

    name: str
    state: str
    status: str | None
    reason: str | None
    instance_group: str | None
    instance_type: str | None
    launched_at: float | None
    host: str | None
    image_version: str | None
    image_status: str | None
    node: str | None
    scheduler_state: str | None
    scheduler_reason: str | None
    accelerators: int | None
    accelerators_free: int | None
    jobs: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; times are ISO 8601."""
        return {**asdict(self), "launched_at": iso_time(self.launched_at)}


@dataclass(frozen=True)
class EventRow:
    """An event of a HyperPod cluster.

    Attributes:
        event_id: Its id.
        time: When (Unix seconds).
        level: ``info``, ``warn``, ``error``, or AWS' own word.
        resource: What it is of: ``cluster``, ``group``, ``instance``, or AWS' own word.
        group: The instance group.
        instance: The instance id.
        description: AWS' sentence.
        reason: Why it failed, where its details were looked at.
        times: How often it was said within a moment.
        journal: Whether AWS does not list it (any more), and the journal has it.
    """

    event_id: str
    time: float
    level: str | None
    resource: str
    group: str | None
    instance: str | None
    description: str | None
    reason: str | None
    times: int
    journal: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; times are ISO 8601."""
        return {**asdict(self), "time": iso_time(self.time)}


def event_row(event: ClusterEvent) -> EventRow:
    """The row of an event: all but its details."""
    return EventRow(**{field.name: getattr(event, field.name) for field in fields(EventRow)})


def cluster_row(cluster: HyperpodCluster, described_at: float | None) -> ClusterRow:
    """The row of a cluster.

    Args:
        cluster: The cluster, as far as it is known.
        described_at: When its description was asked for (Unix seconds); None: it has none.
    """
    return ClusterRow(
        name=cluster.name,
        arn=cluster.arn,
        region=cluster.region,
        state=cluster.state,
        status=cluster.status,
        orchestrator=cluster.orchestrator,
        nodes=cluster.nodes,
        target=cluster.target,
        created_at=cluster.created_at,
        image_status=cluster.image_status,
        configured_as=cluster.configured_as,
        mounted_here=cluster.mounted_here,
        described_at=described_at,
        reason=cluster.reason,
        reach=cluster.reach.word if cluster.reach else None,
        reach_reason=cluster.reach.sentence if cluster.reach else None,
        reach_next=cluster.reach.next_step if cluster.reach else None,
    )


def node_row(joined: JoinedNode) -> NodeRow:
    """The row of a node that at least one side knows."""
    instance, node = joined.instance, joined.node
    old = instance.replaces if instance else None
    words = (
        instance.reason if instance else None,
        f"it has taken the place of {old}" if old else None,
        joined.remark,
    )
    return NodeRow(
        name=instance.name if instance else node.name if node else "",
        state=instance.state if instance else NOT_LISTED,
        status=instance.status if instance else None,
        reason="; ".join(word.rstrip(".") for word in words if word) or None,
        instance_group=instance.instance_group
        if instance
        else node.instance_group
        if node
        else None,
        instance_type=instance.instance_type if instance else node.instance_type if node else None,
        launched_at=instance.launched_at if instance else None,
        host=instance.host if instance else None,
        image_version=instance.image_version if instance else None,
        image_status=instance.image_status if instance else None,
        node=node.name if node else None,
        scheduler_state=node.state if node else None,
        scheduler_reason=node.reason if node else None,
        accelerators=node.accelerators if node else None,
        accelerators_free=node.accelerators_free if node else None,
        jobs=tuple(node.jobs) if node else (),
    )
