"""A real Slurm of the testbed as a HyperPod cluster's: each slurmd is the machine of an instance.

A slurmd that ends is an instance that failed; the replacement's slurmd is started again, with a new instance id.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testbed.aws.endpoint import Endpoint
from testbed.aws.lifecycle import Lifecycle, Timings
from testbed.aws.state import Cluster, Node

SCRIPT = Path(__file__).parent.parent / "slurm-testbed.sh"
PREFIX = "ip-10-0-0-"
"""The testbed's nodes have to be called so (``--prefix``): AWS names hosts by their addresses."""

GROUP, CONTROLLERS = "worker-group-1", "controller-machine"
MESSAGE = "The instance does not respond."

_PAUSE = 0.2
"""Seconds between two looks at the daemons."""
_PATIENCE = 150
"""Seconds that the testbed may take for an order: its own limit for each of several waits is 60."""


class SlurmBedError(Exception):
    """The testbed does not do what it is told, in its own words."""


@contextmanager
def slurm_bed(folder: Path, *options: str) -> Iterator[Path]:
    """A Slurm cluster of the testbed in a folder, stopped and removed at the end, also when this process is killed.

    Args:
        folder: Where it lies; it must be empty or not there.
        options: Options of ``slurm-testbed.sh start``, besides the names of the nodes.

    Raises:
        SlurmBedError: It does not start.
    """
    try:
        order(folder, "start", "--prefix", PREFIX, "--owner", str(os.getpid()), *options)
        yield folder
    finally:
        subprocess.run([SCRIPT, "stop", folder, "--purge"], capture_output=True, check=False)


def order(folder: Path, command: str, *words: str) -> None:
    """Run a command of the testbed's script.

    Raises:
        SlurmBedError: It fails, or takes too long.
    """
    try:
        done = subprocess.run(
            [SCRIPT, command, folder, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SlurmBedError(f"slurm-testbed.sh {command}: not done after {_PATIENCE} s") from error
    if done.returncode != 0:
        raise SlurmBedError(f"slurm-testbed.sh {command} {' '.join(words)}: {done.stderr.strip()}")


def nodes_of(folder: Path) -> int:
    """How many nodes a testbed has.

    Raises:
        SlurmBedError: There is none, or its nodes are not named as AWS names them.
    """
    state = folder / "etc" / "testbed.env"
    text = state.read_text() if state.exists() else ""
    said = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    if said.get("PREFIX") != PREFIX:
        raise SlurmBedError(f"{folder} is no testbed that was started with --prefix {PREFIX}")
    return int(said["NODES"])


class AttachedSlurm:
    """A HyperPod cluster over a testbed, while it is entered.

    Args:
        endpoint: The account's endpoint.
        folder: The testbed's folder; its Slurm runs, with nodes named by `PREFIX`.
        region: The cluster's region.
        name: The cluster's name.
        timings: How long things take.
        more: What else the instance group has, such as its ``storage``.

    Raises:
        SlurmBedError: There is no such testbed.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        folder: Path,
        region: str,
        name: str = "ml-cluster",
        *,
        timings: Timings | None = None,
        **more: Any,
    ) -> None:
        self.endpoint = endpoint
        self.folder = folder
        self.cluster = self._made(region, name, nodes_of(folder), more)
        self.lifecycle = Lifecycle(endpoint.account.timeline, self.cluster, timings, self)
        self.problems: list[str] = []
        """What the testbed refused to do."""
        self._orders: queue.SimpleQueue[tuple[str, Node]] = queue.SimpleQueue()
        self._up: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def start(self, node: Node) -> None:
        """Start a node's slurmd, soon."""
        self._orders.put(("node-start", node))

    def stop(self, node: Node) -> None:
        """End a node's slurmd and its jobs, soon."""
        self._orders.put(("node-kill", node))

    def _made(self, region: str, name: str, count: int, more: dict[str, Any]) -> Cluster:
        cluster = self.endpoint.account.add_cluster(
            name, region, orchestrator={"Slurm": {"SlurmConfigStrategy": "Managed"}}
        )
        controllers = cluster.add_group(
            CONTROLLERS, "ml.c5.xlarge", 0, slurm_node_type="Controller"
        )
        cluster.add_node(controllers, address="10.0.1.1")
        group = cluster.add_group(GROUP, "ml.p5.48xlarge", 0, slurm_node_type="Compute", **more)
        for number in range(count):
            cluster.add_node(group, address=f"10.0.0.{number + 1}")
        controllers.target, group.target = 1, count
        return cluster

    # ------------------------------------------------------------------------------ the watching thread

    def _watch(self) -> None:
        while not self._over.wait(_PAUSE):
            self._obey()
            with self.endpoint.changing():
                for node in self.cluster.nodes:
                    if node.group == GROUP and node.status == "Running":
                        self._look_at(node)

    def _obey(self) -> None:
        while not self._orders.empty():
            command, node = self._orders.get()
            if command == "node-kill" and not self._alive(node):
                continue
            try:
                order(self.folder, command, _host(node))
            except SlurmBedError as error:
                self.problems.append(str(error))
                if command == "node-start":
                    with self.endpoint.changing():
                        self.lifecycle.fail(node, "Lifecycle scripts did not run successfully.")

    def _look_at(self, node: Node) -> None:
        if self._alive(node):
            self._up.add(node.instance_id)
        elif node.instance_id in self._up:  # else it has not come up yet
            self._up.discard(node.instance_id)
            self.lifecycle.fail(node, MESSAGE)

    def _alive(self, node: Node) -> bool:
        """Whether the node's slurmd runs."""
        try:
            pid = (self.folder / "run" / f"slurmd-{_host(node)}.pid").read_text().strip()
            name, state = re.findall(r"\((.*)\) (\w)", Path("/proc", pid, "stat").read_text())[0]
        except (OSError, IndexError):
            return False
        return bool(name == "slurmd" and state not in "ZX")


def _host(node: Node) -> str:
    return f"ip-{node.address.replace('.', '-')}"
