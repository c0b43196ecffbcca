"""A terminal on a node of a HyperPod cluster, by AWS Systems Manager: for a person, never to ask nodes for something.

An account can start three sessions a second, and the end of one is not told reliably.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.services.hyperpod_instances import find_cluster, find_instance


@dataclass(frozen=True)
class NodeTerminal:
    """How to open a terminal on a node.

    Attributes:
        instance: The node's instance id.
        target: What Systems Manager calls it: ``sagemaker-cluster:CLUSTERID_GROUP-INSTANCE``.
        command: The command of the AWS CLI, word by word.
    """

    instance: str
    target: str
    command: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"instance": self.instance, "target": self.target, "command": list(self.command)}


async def terminal_on(aws: Aws, cluster: str, node: str) -> NodeTerminal:
    """The way to a terminal on a node. No session is begun.

    Args:
        aws: AWS in the cluster's region.
        cluster: Name or ARN.
        node: The node (see `hyperpod_instances.find_instance`).

    Raises:
        NotFoundError: There is no such cluster or node.
        HyperpodError: See `aws.errors`.
    """
    found = await find_cluster(aws, cluster)
    one = await find_instance(aws, cluster, node)
    ident = found.arn.rpartition("/")[2]
    target = f"sagemaker-cluster:{ident}_{one.instance_group}-{one.name}"
    words = ("aws", "ssm", "start-session", "--target", target, "--region", await aws.region())
    return NodeTerminal(one.name, target, words)
