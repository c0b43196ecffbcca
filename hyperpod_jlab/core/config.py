"""The configuration as data: the storage partition as this machine sees it, and the clusters."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from hyperpod_jlab.core.fields import WHOLE, Described

ClusterName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]

SchedulerName = Literal["slurm", "kubernetes"]
"""Engines of clusters that have nodes of their own."""

LOCAL = "local"
"""Name of the cluster that always exists."""


class StorageConfig(Described):
    """The storage partition as this machine sees it."""

    path: str | None = None
    """Root folder of the partition. Default: Studio's mount, if there is one, otherwise a folder in the user's data directory."""
    shared: bool = False
    """Whether all users of the partition can read its runs. Each user has a folder to which no other user can write."""
    owner: Annotated[int, Field(ge=0), WHOLE] | None = None
    """Your user id on the file system, as the nodes see it. Default: the id that this machine's kernel reports."""


class PodStorage(Described):
    """The storage partition as pods see it."""

    claim: str
    """Name of the persistent volume claim."""
    mount: str = "/data"
    """Mount path in the pod."""
    sub_path: str = ""
    """Folder of the volume that is mounted. Default: the whole volume."""


class AnyCluster(Described):
    """What code outside an engine asks of any cluster's configuration."""

    @property
    def hyperpod_cluster(self) -> str | None:
        """The HyperPod cluster behind it, by name or ARN."""
        return None

    @property
    def eks_cluster(self) -> str | None:
        """The EKS cluster behind it, by name."""
        return None

    @property
    def at_aws(self) -> bool:
        """Whether it is named as a cluster of AWS."""
        return bool(self.hyperpod_cluster or self.eks_cluster)

    def is_eks(self, arn: str | None, *, at_home: bool) -> bool:
        """Whether it is an EKS cluster.

        Args:
            arn: The EKS cluster's ARN; contexts that AWS' own tools make are called by it.
            at_home: Whether that cluster is in the region in which this configuration's plain names are.
        """
        del arn, at_home
        return False

    @property
    def metrics_workspace(self) -> str | None:
        """Address of the workspace of Amazon Managed Service for Prometheus that has its metrics."""
        return None

    @property
    def runs_as(self) -> str | None:
        """The user whom its runs run as, when not this one."""
        return None

    @property
    def volume_claim(self) -> str | None:
        """The claim by which its jobs mount the storage partition."""
        return None

    def storage_on_hosts(self, here: str) -> str | None:
        """The storage partition as it is configured to be on the cluster's hosts; None where jobs mount it by other means.

        Args:
            here: The partition on this machine.
        """
        del here
        return None


class LocalCluster(AnyCluster):
    """The embedded cluster: processes on this machine."""

    orchestrator: Literal["local"] = "local"
    slots: Annotated[int, Field(ge=1, le=1024), WHOLE] | None = None
    """Maximum number of runs at once. Default: one for every two CPUs, at least one."""
    python: str | None = None
    """Python interpreter of the runs. Default: the one in which hyperpod_jlab is installed."""


class SlurmCluster(AnyCluster):
    """A Slurm cluster."""

    orchestrator: Literal["slurm"]
    hyperpod: str | None = None
    """Name or ARN of the HyperPod cluster."""
    transport: Literal["here", "ssh"] = "here"
    """here: run the Slurm commands on this machine. ssh: run them on a login node."""
    login_nodes: list[str] = Field([])
    """Login nodes for ssh: ``[user@]host[:port]``, or host names of the ssh configuration. Users are spread over them. If a login node does not answer, the next one is used. Default: the login nodes that AWS reports for the HyperPod cluster."""
    ssh_config: str | None = None
    """Configuration file for ssh (as ``ssh -F``). Default: that of ssh."""
    commands: str | None = None
    """Folder of the Slurm commands, such as /opt/slurm/bin. Default: the commands on PATH."""
    slurm_conf: str | None = None
    """Slurm's configuration file. Default: $SLURM_CONF, or Slurm's own default."""
    storage: str | None = None
    """Path of the storage partition on the nodes. Default: the same path as on this machine."""
    python: str | None = None
    """Python interpreter on the nodes. Default: the node's python3."""
    user: str | None = None
    """User that the runs run as on the cluster, if it is not the submitting user."""
    prometheus: str | None = None
    """Address of the workspace of Amazon Managed Service for Prometheus with the cluster's metrics. Default: none."""

    @property
    def hyperpod_cluster(self) -> str | None:
        """As configured."""
        return self.hyperpod

    @property
    def metrics_workspace(self) -> str | None:
        """As configured."""
        return self.prometheus

    @property
    def runs_as(self) -> str | None:
        """As configured."""
        return self.user

    def storage_on_hosts(self, here: str) -> str | None:
        """As configured, else the same path as here."""
        return self.storage or here


class KubernetesCluster(AnyCluster):
    """A Kubernetes cluster."""

    orchestrator: Literal["kubernetes"]
    hyperpod: str | None = None
    """Name or ARN of the HyperPod cluster."""
    context: str | None = None
    """Context of the kubeconfig. Default: the current context."""
    eks: str | None = None
    """Name of an EKS cluster, instead of a context."""
    namespace: str | None = None
    """Namespace of the runs. Default: the namespace default."""
    image: str | None = None
    """Container image of the runs."""
    storage: PodStorage | None = None
    """The storage partition in pods. Default: none; then code travels in the job, and logs come from the pods."""
    python: str | None = None
    """Python interpreter in the image. Default: python3."""
    runtime: str | None = None
    """Training runtime for TrainJobs. Default: torch-distributed."""
    patch: dict[str, Any] = Field({})
    """Patch of the manifest of each run. The kubernetes.patch of a spec is applied after it."""
    prometheus: str | None = None
    """Address of the workspace of Amazon Managed Service for Prometheus with the cluster's metrics. Default: that of HyperPod's observability add-on."""

    @model_validator(mode="after")
    def _one_way_in(self) -> KubernetesCluster:
        if self.context is not None and self.eks is not None:
            raise ValueError("set context or eks, not both")
        return self

    @property
    def hyperpod_cluster(self) -> str | None:
        """As configured."""
        return self.hyperpod

    @property
    def eks_cluster(self) -> str | None:
        """As configured."""
        return self.eks

    def is_eks(self, arn: str | None, *, at_home: bool) -> bool:
        """By its context, or by its name."""
        if arn is None:
            return False
        return self.context == arn or (at_home and self.eks == arn.rpartition("/")[2])

    @property
    def metrics_workspace(self) -> str | None:
        """As configured."""
        return self.prometheus

    @property
    def volume_claim(self) -> str | None:
        """As configured."""
        return self.storage.claim if self.storage is not None else None


ClusterConfig = Annotated[
    LocalCluster | SlurmCluster | KubernetesCluster, Field(discriminator="orchestrator")
]


class Settings(Described):
    """The whole configuration."""

    default_cluster: ClusterName = LOCAL
    """Cluster for runs that do not name a cluster."""
    storage: StorageConfig = StorageConfig()
    """The storage partition."""
    clusters: dict[ClusterName, ClusterConfig] = Field({})
    """Clusters by name; ``local`` always exists."""

    def is_on_hyperpod(self, name: str) -> bool:
        """Whether a cluster is said to be one of HyperPod's."""
        found = self.clusters.get(name)
        return found is not None and found.hyperpod_cluster is not None

    @field_validator("clusters")
    @classmethod
    def _local_is_local(cls, clusters: dict[str, ClusterConfig]) -> dict[str, ClusterConfig]:
        if clusters[LOCAL].orchestrator != "local":
            raise ValueError("'local' is the name of the embedded cluster; choose another name")
        return clusters

    @model_validator(mode="before")
    @classmethod
    def _local_always(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        clusters = data.get("clusters", {})
        if not isinstance(clusters, dict):
            return data
        local = clusters.get(LOCAL, {})
        if isinstance(local, dict):
            local = {"orchestrator": "local"} | local
        return {
            **data,
            "clusters": {LOCAL: local, **{k: v for k, v in clusters.items() if k != LOCAL}},
        }
