"""Login nodes of a HyperPod cluster, where its Slurm is configured by AWS' API: there instance groups say what their instances are to Slurm."""

from __future__ import annotations

from dataclasses import dataclass

from hyperpod_jlab.aws.clusters import describe_cluster, list_instances
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import NotFoundError, UnreachableError
from hyperpod_jlab.model.hyperpod import HyperpodCluster, Instance

_LOGIN, _CONTROLLER = "Login", "Controller"
"""What SageMaker's service model calls them (ClusterSlurmNodeType)."""

_RUNNING = "Running"

_NAME_THEM = 'name them in the configuration: login_nodes = ["HOST"]'

_NOT_SLURM = 'open a terminal on a node: hpj terminal NODE; in the configuration, orchestrator = "kubernetes"'

NO_LOGIN_NODES = "no_login_nodes"
"""Code of the errors where a cluster has none."""


@dataclass(frozen=True)
class LoginNodes:
    """Machines of a cluster that take logins.

    Attributes:
        cluster: The cluster.
        instances: Those that run, by their ids, so that everybody has the same order.
        controller: Whether they are the controller's, because no group is one of login nodes.
    """

    cluster: HyperpodCluster
    instances: tuple[Instance, ...]
    controller: bool

    @property
    def note(self) -> str | None:
        """What a user should know of them."""
        if not self.controller:
            return None
        return f"{self.cluster.name} has no instance group of login nodes: its controller is used"


async def find_login_nodes(aws: Aws, cluster: str) -> LoginNodes:
    """The login nodes of a cluster; the controller where it has none.

    Args:
        aws: AWS in the cluster's region.
        cluster: Its name or ARN.

    Raises:
        NotFoundError: There is no such cluster, or AWS knows no login nodes of it (``no_login_nodes``).
        UnreachableError: None of them runs.
        HyperpodError: See `aws.errors`.
    """
    bare = HyperpodCluster(cluster, cluster, await aws.region(), "")
    found = await describe_cluster(aws, bare)
    roles = {group.name: group.slurm_role for group in found.groups or ()}
    role = next((one for one in (_LOGIN, _CONTROLLER) if one in roles.values()), None)
    if role is None:
        why = (
            "its instance groups do not say what they are to Slurm"
            if found.orchestrator == "slurm"
            else "Slurm does not orchestrate it"
        )
        on_slurm = found.orchestrator in {"slurm", None}
        raise NotFoundError(
            f"AWS knows no login nodes of {found.name}: {why}",
            code=NO_LOGIN_NODES,
            hint=_NAME_THEM if on_slurm else _NOT_SLURM,
            detail={"field": "login_nodes"},
        )
    ours = [
        one
        async for page in list_instances(aws, cluster)
        for one in page
        if roles.get(one.instance_group) == role
    ]
    running = [one for one in ours if one.status == _RUNNING and one.host is not None]
    if not running:
        states = ", ".join(f"{one.name} is {one.status}" for one in ours) or "there is none"
        raise UnreachableError(
            f"no login node of {found.name} runs: {states}",
            code=NO_LOGIN_NODES,
            hint=f"try again when one runs, or {_NAME_THEM}",
        )
    running.sort(key=lambda one: one.name)
    return LoginNodes(found, tuple(running), controller=role == _CONTROLLER)
