"""The configuration as data: the storage partition as this machine sees it, and the clusters."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from hyperpod_jlab.core.errors import NotFoundError, nearest_hint
from hyperpod_jlab.core.fields import NOT_BOOL, DescribedModel, MetricPatterns, MlflowName, MlflowUri
from hyperpod_jlab.core.validation import CURRENCY

ClusterName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]

InstanceTypeName = Annotated[str, Field(pattern=r"^(?:ml\.)?[a-z0-9][a-z0-9-]*\.[a-z0-9-]+$")]
"""An instance type, such as ml.p5.48xlarge."""

MAX_MONEY = 1e9
Money = Annotated[float, Field(ge=0, le=MAX_MONEY, allow_inf_nan=False, strict=True)]
"""An amount in the currency of the configuration."""

SchedulerName = Literal["slurm", "kubernetes"]
"""Engines of clusters that have nodes of their own."""

LOCAL = "local"
"""Name of the cluster that always exists."""


class StorageConfig(DescribedModel):
    """The storage partition as this machine sees it."""

    path: str | None = None
    """Root folder of the partition. Default: Studio's mount, if there is one, otherwise a folder in the user's data directory."""
    shared: bool = False
    """Whether all users of the partition can read its runs. Each user has a folder to which no other user can write."""
    owner: Annotated[int, Field(ge=0), NOT_BOOL] | None = None
    """Your user id on the file system, as the nodes see it. Default: the id that this machine's kernel reports."""


class PodStorage(DescribedModel):
    """The storage partition as pods see it."""

    claim: str
    """Name of the persistent volume claim."""
    mount: str = "/data"
    """Mount path in the pod."""
    sub_path: str = ""
    """Folder of the volume that is mounted. Default: the whole volume."""


class MlflowConfig(DescribedModel):
    """The MLflow tracking server of runs. The mlflow of a cluster is used before that of the whole configuration, that of a spec before both."""

    tracking_uri: MlflowUri | None = None
    """URL of the server, or the ARN of a tracking server or an MLflow App of SageMaker. none: no server."""
    experiment: MlflowName | None = None
    """Name of the experiment. Default: MLflow's own, Default."""


class DatedPrice(DescribedModel):
    """A price from a day on."""

    price: Money
    """Price of an instance hour."""
    since: date | None = None
    """First day, in UTC, on which it holds. Default: always."""


def _as_prices(value: object) -> object:
    return value if isinstance(value, list) else [{"price": value}]


def _check_days(prices: list[DatedPrice]) -> list[DatedPrice]:
    if len({one.since for one in prices}) < len(prices):
        raise ValueError("has two prices from the same day on; give each but one a day with since")
    return prices


def _check_quotes(value: object) -> object:
    if isinstance(value, dict):
        tables = [name for name, found in value.items() if isinstance(found, dict)]
        if tables:
            raise ValueError(f'put the instance type in quotes, such as "{tables[0]}.p5.48xlarge" = 98.32')
    return value


QUOTED = BeforeValidator(_check_quotes)
"""On a table by instance type: the dots of a name without quotes would make tables of it."""


class CostConfig(DescribedModel):
    """What nodes cost, and from which cost on a submit needs a confirmation."""

    currency: Annotated[str, Field(pattern=CURRENCY)] = "USD"
    """Currency of all amounts below, as ISO 4217, such as USD or EUR. The AWS Price List is in USD and is used only with USD (with CNY in China)."""
    price_list: Annotated[bool, Field(strict=True)] = True
    """Whether to ask the AWS Price List for the prices of HyperPod's instance types that have none below prices."""
    prices: Annotated[
        dict[
            InstanceTypeName,
            Annotated[
                list[DatedPrice],
                Field(min_length=1),
                BeforeValidator(_as_prices, json_schema_input_type=Money | list[DatedPrice]),
                AfterValidator(_check_days),
            ],
        ],
        QUOTED,
    ] = Field({})
    """Price of an instance hour by instance type; a list if it changes. It is used before the AWS Price List."""
    discounts: Annotated[dict[InstanceTypeName, Annotated[float, Field(ge=0, le=100, strict=True)]], QUOTED] = Field({})
    """Discount on the AWS Price List in percent by instance type, such as that of a training plan."""
    confirm_over: Money | None = None
    """Submits that may cost more than this by their time limit need a confirmation. Default: no limit."""
    refuse_over: Money | None = None
    """Submits that may cost more than this by their time limit are refused. Default: no limit."""
    confirm_gpu_hours_over: Money | None = None
    """The same as confirm_over, in GPU-hours."""
    refuse_gpu_hours_over: Money | None = None
    """The same as refuse_over, in GPU-hours."""

    @model_validator(mode="after")
    def _check_limits(self) -> CostConfig:
        pairs = (
            ("over", self.confirm_over, self.refuse_over),
            ("gpu_hours_over", self.confirm_gpu_hours_over, self.refuse_gpu_hours_over),
        )
        for name, confirm, refuse in pairs:
            if confirm is not None and refuse is not None and refuse <= confirm:
                raise ValueError(f"refuse_{name} must be more than confirm_{name}")
        return self

    @property
    def has_limits(self) -> bool:
        """Whether submits have a limit."""
        limits = (self.confirm_over, self.refuse_over)
        gpu_limits = (self.confirm_gpu_hours_over, self.refuse_gpu_hours_over)
        return any(limit is not None for limit in (*limits, *gpu_limits))


class ClusterCost(DescribedModel):
    """What the nodes of one cluster cost."""

    node_price: Money | None = None
    """Price of an hour of any of its nodes, used before the prices of instance types."""


class BaseCluster(DescribedModel):
    """What code outside an engine asks of any cluster's configuration."""

    mlflow: MlflowConfig = MlflowConfig()
    """The MLflow tracking server of the cluster's runs."""
    cost: ClusterCost = ClusterCost()
    """What the cluster's nodes cost."""

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

    def is_eks(self, arn: str | None, *, is_same_region: bool) -> bool:
        """Whether it is an EKS cluster.

        Args:
            arn: The EKS cluster's ARN; contexts that AWS' own tools make are called by it.
            is_same_region: Whether that cluster is in the region in which this configuration's plain names are.
        """
        del arn, is_same_region
        return False

    @property
    def metrics_workspace(self) -> str | None:
        """Address of the workspace of Amazon Managed Service for Prometheus that has its metrics."""
        return None

    @property
    def run_user(self) -> str | None:
        """The user whom its runs run as, when not this one."""
        return None

    @property
    def volume_claim(self) -> str | None:
        """The claim by which its jobs mount the storage partition."""
        return None

    def storage_on_hosts(self, local_path: str) -> str | None:
        """The storage partition as it is configured to be on the cluster's hosts; None where jobs mount it by other means.

        Args:
            local_path: The partition on this machine.
        """
        del local_path
        return None


class LocalCluster(BaseCluster):
    """The embedded cluster: processes on this machine."""

    orchestrator: Literal["local"] = "local"
    slots: Annotated[int, Field(ge=1, le=1024), NOT_BOOL] | None = None
    """Maximum number of runs at once. Default: one for every two CPUs, at least one."""
    python: str | None = None
    """Python interpreter of the runs. Default: the one in which hyperpod_jlab is installed."""


class SlurmCluster(BaseCluster):
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
    def run_user(self) -> str | None:
        """As configured."""
        return self.user

    def storage_on_hosts(self, local_path: str) -> str | None:
        """As configured, else the same path as here."""
        return self.storage or local_path


class KubernetesCluster(BaseCluster):
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
    """The storage partition in pods. Runs need it; without it, only your own manifests run."""
    python: str | None = None
    """Python interpreter in the image. Default: python3."""
    runtime: str | None = None
    """Training runtime for TrainJobs. Default: torch-distributed."""
    patch: dict[str, Any] = Field({})
    """Patch of the manifest of each run. The kubernetes.patch of a spec is applied after it."""
    prometheus: str | None = None
    """Address of the workspace of Amazon Managed Service for Prometheus with the cluster's metrics. Default: that of HyperPod's observability add-on."""

    @model_validator(mode="after")
    def _check_one_connection(self) -> KubernetesCluster:
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

    def is_eks(self, arn: str | None, *, is_same_region: bool) -> bool:
        """By its context, or by its name."""
        if arn is None:
            return False
        return self.context == arn or (is_same_region and self.eks == arn.rpartition("/")[2])

    @property
    def metrics_workspace(self) -> str | None:
        """As configured."""
        return self.prometheus

    @property
    def volume_claim(self) -> str | None:
        """As configured."""
        return self.storage.claim if self.storage is not None else None


ClusterConfig = Annotated[LocalCluster | SlurmCluster | KubernetesCluster, Field(discriminator="orchestrator")]


class Settings(DescribedModel):
    """The whole configuration."""

    default_cluster: ClusterName = LOCAL
    """Cluster for runs that do not name a cluster."""
    storage: StorageConfig = StorageConfig()
    """The storage partition."""
    metric_patterns: MetricPatterns = Field({})
    """Further numbers to read from the output of each run, by name: a regular expression with one group, which is the number. A spec's pattern of the same name is used instead."""
    mlflow: MlflowConfig = MlflowConfig()
    """The MLflow tracking server of runs."""
    cost: CostConfig = CostConfig()
    """What nodes cost."""
    clusters: dict[ClusterName, ClusterConfig] = Field({})
    """Clusters by name; ``local`` always exists."""

    def is_on_hyperpod(self, name: str) -> bool:
        """Whether a cluster is said to be one of HyperPod's."""
        cluster = self.clusters.get(name)
        return cluster is not None and cluster.hyperpod_cluster is not None

    def unknown_cluster(self, name: str, why: str | None = None) -> NotFoundError:
        """The error for a cluster that is not found.

        Args:
            name: Its name.
            why: Why it may not have been found.
        """
        hint = nearest_hint(name[:256], self.clusters)
        if hint is not None and hint.startswith("did you mean"):
            why = None  # a misspelt name is the likelier reason
        return NotFoundError(
            f"cluster '{name[:256]}' not found",
            code="unknown_cluster",
            hint="; ".join(part for part in (hint, why) if part) or None,
            detail={"field": "cluster"},
        )

    @field_validator("clusters")
    @classmethod
    def _check_local_cluster(cls, clusters: dict[str, ClusterConfig]) -> dict[str, ClusterConfig]:
        if clusters[LOCAL].orchestrator != "local":
            raise ValueError("'local' is the name of the embedded cluster; choose another name")
        return clusters

    @model_validator(mode="before")
    @classmethod
    def _add_local_cluster(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        clusters = data.get("clusters", {})
        if not isinstance(clusters, dict):
            return data
        local = clusters.get(LOCAL, {})
        if isinstance(local, dict):
            local = {"orchestrator": "local"} | local
        return {**data, "clusters": {LOCAL: local, **{k: v for k, v in clusters.items() if k != LOCAL}}}
