"""Who looks after folders for a function: a Job of the Kubernetes cluster behind the HyperPod cluster, or nobody from here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hyperpod_jlab.admin.folders import FolderKeeper, FoldersThere
from hyperpod_jlab.admin.lambdas.settings import Settings
from hyperpod_jlab.aws.clusters import describe_cluster
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.config import KubernetesCluster
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.hyperpod import HyperpodCluster


@asynccontextmanager
async def keeper_of(settings: Settings, aws: Aws) -> AsyncIterator[FolderKeeper | None]:
    """Who looks after folders; None: nobody from here.

    Args:
        settings: What the stack says.
        aws: AWS in its region.

    Raises:
        InvalidInputError: It is to be a Job, and nobody says of which cluster, claim or image; or the cluster is none on EKS.
        HyperpodError: The cluster cannot be asked for; see `aws.errors`.
    """
    if settings.folders != "kubernetes":
        yield None
        return
    cluster, claim, image = settings.cluster, settings.claim, settings.image
    if cluster is None or claim is None or image is None:
        raise InvalidInputError(
            "Folders: kubernetes needs ClusterName, ClaimName and Image",
            detail={"field": "Folders"},
        )
    bare = HyperpodCluster(cluster, cluster, await aws.region(), "")
    found = await describe_cluster(aws, bare)
    if found.eks_arn is None:
        raise InvalidInputError(
            f"Folders: the cluster {cluster} is not on EKS",
            hint="for Slurm it is Folders: cluster, and 'hpj admin apply --mounted-at' there",
            detail={"field": "Folders"},
        )
    # Heavy, and needed by few.
    from hyperpod_jlab.orchestrators.kubernetes.api.connection import Connection
    from hyperpod_jlab.orchestrators.kubernetes.errand import KubernetesErrand

    eks = found.eks_arn.rpartition("/")[2]
    config = KubernetesCluster(
        orchestrator="kubernetes", hyperpod=cluster, eks=eks, namespace=settings.namespace
    )
    connection = Connection(config)
    try:
        yield FoldersThere(KubernetesErrand(connection, connection.namespace, claim, image))
    finally:
        await connection.close()
