"""A real Slurm of the testbed as a HyperPod cluster's: each slurmd is the machine of an instance."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.aws.attached import GROUP, Attached, BedError, order
from testbed.aws.endpoint import Endpoint
from testbed.aws.lifecycle import Timings
from testbed.aws.state import Cluster, Node

SCRIPT = Path(__file__).parent.parent / "slurm-testbed.sh"
PREFIX = "ip-10-0-0-"
"""The testbed's nodes have to be called so (``--prefix``): AWS names hosts by their addresses."""

CONTROLLERS = "controller-machine"


@contextmanager
def slurm_bed(folder: Path, *options: str) -> Iterator[Path]:
    """A Slurm cluster of the testbed in a folder, stopped and removed at the end, also when this process is killed.

    Args:
        folder: Where it lies; it must be empty or not there.
        options: Options of ``slurm-testbed.sh start``, besides the names of the nodes.

    Raises:
        BedError: It does not start.
    """
    try:
        order(SCRIPT, folder, "start", "--prefix", PREFIX, "--owner", str(os.getpid()), *options)
        yield folder
    finally:
        subprocess.run([SCRIPT, "stop", folder, "--purge"], capture_output=True, check=False)


def nodes_of(folder: Path) -> int:
    """How many nodes a testbed has.

    Raises:
        BedError: There is none, or its nodes are not named as AWS names them.
    """
    state = folder / "etc" / "testbed.env"
    text = state.read_text() if state.exists() else ""
    said = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    if said.get("PREFIX") != PREFIX:
        raise BedError(f"{folder} is no testbed that was started with --prefix {PREFIX}")
    return int(said["NODES"])


class AttachedSlurm(Attached):
    """A HyperPod cluster over a testbed, while it is entered.

    Args:
        endpoint: The account's endpoint.
        folder: The testbed's folder; its Slurm runs, with nodes named by `PREFIX`.
        region: The cluster's region.
        name: The cluster's name.
        timings: How long things take.
        more: What else the instance group has, such as its ``storage``.

    Raises:
        BedError: There is no such testbed.
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
        self.folder = folder
        super().__init__(endpoint, _made(endpoint, region, name, nodes_of(folder), more), timings)

    def is_up(self, node: Node) -> bool:
        """Whether the node's slurmd runs."""
        try:
            pid = (self.folder / "run" / f"slurmd-{_host(node)}.pid").read_text().strip()
            name, state = re.findall(r"\((.*)\) (\w)", Path("/proc", pid, "stat").read_text())[0]
        except (OSError, IndexError):
            return False
        return bool(name == "slurmd" and state not in "ZX")

    def switch_on(self, node: Node) -> None:
        """Start the node's slurmd."""
        order(SCRIPT, self.folder, "node-start", _host(node))

    def switch_off(self, node: Node) -> None:
        """End the node's slurmd and its jobs."""
        if self.is_up(node):
            order(SCRIPT, self.folder, "node-kill", _host(node))

    def tell(self) -> None:
        """Nothing: Slurm sees for itself which machines are there."""


def _made(endpoint: Endpoint, region: str, name: str, count: int, more: dict[str, Any]) -> Cluster:
    cluster = endpoint.account.add_cluster(name, region, orchestrator={"Slurm": {"SlurmConfigStrategy": "Managed"}})
    controllers = cluster.add_group(CONTROLLERS, "ml.c5.xlarge", 0, slurm_node_type="Controller")
    cluster.add_node(controllers, address="10.0.1.1")
    group = cluster.add_group(GROUP, "ml.p5.48xlarge", 0, slurm_node_type="Compute", **more)
    for number in range(count):
        cluster.add_node(group, address=f"10.0.0.{number + 1}")
    controllers.target, group.target = 1, count
    return cluster


def _host(node: Node) -> str:
    return f"ip-{node.address.replace('.', '-')}"
