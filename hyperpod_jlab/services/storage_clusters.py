"""Whether configured clusters mount the file system that runs go to, by what AWS says of the HyperPod clusters behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hyperpod_jlab.aws.clusters import describe_cluster
from hyperpod_jlab.aws.lustre import LustreMount
from hyperpod_jlab.model.config import ClusterConfig, KubernetesCluster, SlurmCluster
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.services.hyperpod_clusters import mounted_here
from hyperpod_jlab.services.storage_identity import Asked


async def other_file_systems(
    clusters: Mapping[str, ClusterConfig], mounts: Sequence[LustreMount], point: str, asked: Asked
) -> list[str]:
    """A sentence for each cluster whose instances mount other file systems than the one that runs go to.

    Args:
        clusters: The configured clusters by name.
        mounts: What of Lustre is mounted here.
        point: Where the file system that runs go to is mounted.
        asked: Whom to ask. What cannot be had leaves a note there.
    """
    found: list[str] = []
    for name, config in clusters.items():
        if not isinstance(config, SlurmCluster | KubernetesCluster) or config.hyperpod is None:
            continue
        if asked.aws is None:
            break
        bare = HyperpodCluster(config.hyperpod, "", "", "")
        told = await asked.about(
            "sagemaker",
            f"the HyperPod cluster {config.hyperpod}",
            describe_cluster(asked.aws, bare),
        )
        if isinstance(told, HyperpodCluster):
            found += _words(name, told, mounted_here(told, mounts), point)
    return found


def _words(
    name: str, cluster: HyperpodCluster, here: tuple[str, ...] | None, point: str
) -> list[str]:
    if here is None or point in here:  # life cycle scripts may mount what AWS knows nothing of
        return []
    which = ", ".join(f"{one.dns_name} ({one.mount_name})" for one in cluster.storage)
    if here:
        return [
            f"runs on {name} may not find what is written here: its instances mount {which}, which is mounted at {here[0]} here: name a folder there as path under [storage]"
        ]
    return [
        f"runs on {name} may not find what is written here: its instances mount {which}, which is not mounted on this machine"
    ]
