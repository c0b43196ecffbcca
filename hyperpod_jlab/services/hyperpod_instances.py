"""Finding a HyperPod cluster, and an instance of it, by what people call them."""

from __future__ import annotations

from hyperpod_jlab.aws.clusters import describe_cluster, list_instances
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import NotFoundError
from hyperpod_jlab.model.hyperpod import HyperpodCluster, Instance


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
        hint=f"see: hpj nodes --hyperpod {cluster}",
        detail={"field": "node"},
    )
