"""Who looks after folders for a function: a Job of the Kubernetes cluster behind the HyperPod cluster, a session on the controller of a Slurm cluster, or nobody."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from hyperpod_jlab.admin.folders import FolderKeeper, FoldersThere
from hyperpod_jlab.admin.lambdas.settings import Settings
from hyperpod_jlab.admin.node_errand import to_controller
from hyperpod_jlab.admin.there import Folder
from hyperpod_jlab.aws.clusters import describe_cluster
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.config import KubernetesCluster
from hyperpod_jlab.model.errors import HyperpodError, InvalidInputError, UnreachableError
from hyperpod_jlab.model.hyperpod import HyperpodCluster


class FoldersOutOfReachError(UnreachableError):
    """Folders cannot be looked at on the cluster's controller. All that needs none can be done without."""

    default_code = "folders_out_of_reach"


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except HyperpodError as error:
        words = f"folders cannot be looked at: {error}"
        raise FoldersOutOfReachError(words, hint=error.hint, detail=error.detail) from error


class _OnController(FoldersThere):
    """Folders by sessions on a cluster's controller."""

    async def look(self, paths: Collection[str]) -> Mapping[str, Folder | None]:
        """See `FolderKeeper`.

        Raises:
            FoldersOutOfReachError: They cannot be looked at.
        """
        with _told():
            return await super().look(paths)


@asynccontextmanager
async def keeper_of(settings: Settings, aws: Aws) -> AsyncIterator[FolderKeeper | None]:
    """Who looks after folders; None: nobody from here.

    Args:
        settings: What the stack says.
        aws: AWS in its region.

    Raises:
        InvalidInputError: It is to be a Job, and nobody says of which cluster, claim or image; or the cluster is none on EKS.
        FoldersOutOfReachError: It is to be the controller, which cannot be found.
        HyperpodError: The cluster cannot be asked for; see `aws.errors`.
    """
    if settings.folders == "cluster" and settings.cluster is not None:
        with _told():
            errand = await to_controller(
                aws, settings.cluster, settings.controller_group, settings.file_system
            )
        yield None if errand is None else _OnController(errand)
        return
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
            hint="for Slurm it is Folders: cluster",
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
