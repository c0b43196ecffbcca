"""What becomes of a cluster by itself: it is created, grows and shrinks, its nodes fail and are replaced, what fails is rolled back.

It looks at the cluster as data and goes on from what it finds, whoever put it there (a test, an operation of the API, an attached
scheduler): a node that is ``Pending`` runs after a while, one that failed is replaced, and so on. Which state follows which is from AWS'
documentation and field guide; it has not been tried on an account.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Protocol, Self

from testbed.aws.state import Cluster, Event, Group, Node
from testbed.aws.timeline import Timeline

_BUSY = frozenset({"Creating", "Updating"})


@dataclass(frozen=True)
class Timings:
    """How long things take, as on AWS (field guide: a fault is marked after 5 to 30 s, a reboot takes 1 to 3 min, a replacement 20 to 30)."""

    detected: timedelta = timedelta(seconds=15)
    """From a node's failure to its replacement's begin."""
    started: timedelta = timedelta(minutes=20)
    """From a node's launch to its end of life cycle scripts."""
    checked: timedelta = timedelta(0)
    """A deep health check after that; 0: none."""
    rebooted: timedelta = timedelta(minutes=2)
    ended: timedelta = timedelta(minutes=2)

    def times(self, factor: float) -> Self:
        """The same, longer or shorter."""
        return type(self)(**{one.name: getattr(self, one.name) * factor for one in fields(self)})


class Hosts(Protocol):
    """The machines behind the nodes, where there are any. Both return at once."""

    def start(self, node: Node) -> None:
        """A node's machine is to join the cluster."""

    def stop(self, node: Node) -> None:
        """A node's machine goes away."""


class Lifecycle:
    """Lets a cluster live on a timeline.

    Args:
        timeline: The account's.
        cluster: The cluster. One that is ``Creating`` and has no nodes gets them.
        timings: How long things take.
        hosts: The machines behind the nodes.
    """

    def __init__(
        self, timeline: Timeline, cluster: Cluster, timings: Timings | None = None, hosts: Hosts | None = None
    ) -> None:
        self.cluster = cluster
        self._timeline = timeline
        self._timings = timings or Timings()
        self._hosts = hosts
        self._seen: dict[str, str] = {}
        self._stable = {group.name: group.target for group in cluster.groups}
        self._addresses: list[str] = []
        self._refused: dict[str, str] = {}
        self._created = cluster.status != "Creating"
        timeline.watch(self._look)

    def scale(self, group: str, target: int) -> None:
        """Ask for another number of nodes, as UpdateCluster does."""
        found = self._group(group)
        found.target, found.status = target, "Updating"
        if self.cluster.provisioning != "Continuous":
            self.cluster.status = "Updating"

    def fail(self, node: Node, message: str) -> None:
        """A node fails."""
        node.status, node.message = "Failure", message
        self._tell(node, f"Instance {node.instance_id} has failed.", message)

    def fail_starts(self, group: str, message: str) -> None:
        """The next node of a group that starts does not come up: its life cycle scripts fail."""
        self._refused[group] = message

    def replace(self, node: Node) -> Node:
        """Put a new instance into a node's place: it keeps the address, and so its name for the scheduler."""
        made = self._add(self.cluster.group_of(node), node.address)
        node.status, node.message = "ShuttingDown", node.message
        return made

    # ------------------------------------------------------------------------------ what goes on

    def _look(self) -> None:
        for group in self.cluster.groups:
            self._fill(group)
        for node in list(self.cluster.nodes):
            before = self._seen.get(node.instance_id)
            if node.status != before:
                self._seen[node.instance_id] = node.status
                self._go_on(node, before)
        self._conclude()

    def _fill(self, group: Group) -> None:
        """Begin what the group's target asks for."""
        continuous = self.cluster.provisioning == "Continuous"
        if self.cluster.status not in _BUSY and not continuous:
            return
        live = [node for node in self._nodes(group) if node.status != "ShuttingDown"]
        for _ in range(group.target - len(live)):
            self._add(group)
        for node in live[group.target :]:
            node.status = "ShuttingDown"

    def _go_on(self, node: Node, before: str | None) -> None:
        """A node has come into a state: what follows, and when."""
        timings = self._timings
        if node.status == "Pending":
            if before is not None:
                self._stop(node)
            self._after(timings.started if before is None else timings.rebooted, node, self._start)
        elif node.status == "DeepHealthCheckInProgress":
            self._after(timings.checked, node, self._run)
        elif node.status == "Failure" and self._recovers(node):
            self._after(timings.detected, node, self.replace)
        elif node.status == "ShuttingDown":
            if before not in {None, "Pending"}:
                self._stop(node)
            self._after(timings.ended, node, self._remove)

    def _after(self, delay: timedelta, node: Node, act: Callable[[Node], object]) -> None:
        """Do something to a node after a while, unless it is in another state by then."""
        status = node.status

        def due() -> None:
            if node.status == status and node in self.cluster.nodes:
                act(node)

        self._timeline.after(delay, due)

    def _recovers(self, node: Node) -> bool:
        """Whether AWS replaces a failed node by itself. A Slurm controller it does not."""
        controller = self.cluster.group_of(node).slurm_node_type == "Controller"
        return self.cluster.node_recovery == "Automatic" and not controller

    def _start(self, node: Node) -> None:
        message = self._refused.pop(node.group, None)
        if message is not None:
            self._roll_back(node, message)
        elif self._timings.checked:
            node.status = "DeepHealthCheckInProgress"
        else:
            self._run(node)

    def _run(self, node: Node) -> None:
        if self._hosts is not None:
            self._hosts.start(node)
        node.status, node.message = "Running", None
        self._tell(node, f"Instance {node.instance_id} is running.")

    def _tell(self, node: Node, words: str, failure: str | None = None) -> None:
        """An event of an instance, where there are any."""
        if self.cluster.provisioning == "Continuous":
            metadata = None if failure is None else {"Instance": {"FailureMessage": failure}}
            level = "Info" if failure is None else "Error"
            self.cluster.events.append(
                Event(self._timeline.now(), *(words, level, "Instance", node.group, node.instance_id, metadata))
            )

    def _stop(self, node: Node) -> None:
        if self._hosts is not None:
            self._hosts.stop(node)

    def _remove(self, node: Node) -> None:
        self.cluster.nodes.remove(node)
        if all(other.address != node.address for other in self.cluster.nodes):
            self._addresses.append(node.address)

    def _roll_back(self, node: Node, message: str) -> None:
        """A node does not come up: with continuous provisioning it is tried again, else all that was begun is taken back."""
        node.status, node.message = "ShuttingDown", message
        self._tell(node, f"Instance {node.instance_id} failed to start.", message)
        if self.cluster.provisioning == "Continuous":
            return
        self.cluster.status, self.cluster.failure = "RollingBack", message
        for group in self.cluster.groups:
            if self._created:
                group.target = self._stable.get(group.name, 0)
            keep = group.target if self._created else 0
            for extra in self._nodes(group)[keep:]:
                extra.status = "ShuttingDown"

    def _conclude(self) -> None:
        """Clusters and groups that have got what they asked for."""
        if any(node.status == "ShuttingDown" for node in self.cluster.nodes):
            return
        if self.cluster.status == "RollingBack" and not self._created:
            self.cluster.status = "Failed"
            for group in self.cluster.groups:
                group.status = "Failed"
            return
        groups = self.cluster.groups
        groups[:] = [one for one in groups if one.status != "Deleting" or self._nodes(one)]
        for group in groups:
            nodes = self._nodes(group)
            if len(nodes) == group.target and all(node.status == "Running" for node in nodes):
                group.status = "InService"
                self._stable[group.name] = group.target
        settled = all(group.status == "InService" for group in self.cluster.groups)
        if self.cluster.status in {*_BUSY, "RollingBack"} and settled:
            if self.cluster.status != "RollingBack":
                self.cluster.failure = None
            self.cluster.status, self._created = "InService", True

    # ------------------------------------------------------------------------------ the cluster

    def _group(self, name: str) -> Group:
        return next(group for group in self.cluster.groups if group.name == name)

    def _nodes(self, group: Group) -> list[Node]:
        return [node for node in self.cluster.nodes if node.group == group.name]

    def _add(self, group: Group, address: str | None = None) -> Node:
        place = address or (self._addresses.pop(0) if self._addresses else None)
        more = {"address": place} if place else {}
        node = self.cluster.add_node(group, launched=self._timeline.now(), **more)
        node.status = "Pending"
        self._tell(node, f"Instance {node.instance_id} is being launched.")
        return node
