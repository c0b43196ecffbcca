"""Add a HyperPod cluster of the AWS account to the user's configuration, so that runs can be submitted to it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyperpod_jlab.clusters.configuration import add_cluster, user_file
from hyperpod_jlab.core.errors import ConflictError, InvalidInputError
from hyperpod_jlab.core.reach import eks_block, slurm_block
from hyperpod_jlab.core.validation import LABEL

if TYPE_CHECKING:
    from hyperpod_jlab.core.hyperpod import HyperpodCluster
    from hyperpod_jlab.core.reach import SubmitTarget
    from hyperpod_jlab.run.services import Hyperpod


@dataclass(frozen=True)
class Connection:
    """A cluster's table in the configuration file.

    Attributes:
        cluster: Its name in the configuration.
        path: The file.
        config: The table, in TOML.
        written: Whether it is in the file.
    """

    cluster: str
    path: str
    config: str
    written: bool


async def connect(
    services: Hyperpod,
    hyperpod: str,
    name: str | None = None,
    *,
    login_node: str | None = None,
    namespace: str | None = None,
    region: str | None = None,
    dry_run: bool = False,
) -> Connection:
    """Add a HyperPod cluster to the user's configuration file.

    Args:
        services: The services.
        hyperpod: Its name or ARN in AWS.
        name: Its name in the configuration; default: a free one like its name in AWS.
        login_node: Of a Slurm cluster: its login node, ``[user@]host[:port]``; None: Slurm's commands are on this machine.
        namespace: On EKS: namespace of the runs.
        region: Its region; None: see `aws.session.Aws`.
        dry_run: Write nothing.

    Raises:
        InvalidInputError: The name is not valid, an option belongs to the other orchestrator, or the orchestrator is unknown.
        ConflictError: The cluster or the name is already configured.
        StorageError: The file cannot be written.
        HyperpodError: AWS does not describe the cluster (see `aws.errors`).
    """
    if name is not None:
        _check_name(name)
    aws = services.hyperpod_clusters(region)
    cluster = await aws.describe(hyperpod)
    target, commands = aws.reach_checker.target_of(cluster), aws.reach_checker.commands
    name = name or aws.reach_checker.name_for(cluster)
    block = _block(name, cluster, (target, commands), login_node, namespace)
    if dry_run:
        return Connection(name, str(user_file()), block, written=False)
    _check_not_configured(cluster)
    path = await asyncio.to_thread(add_cluster, name, block)
    return Connection(name, str(path), block, written=True)


def _block(
    name: str,
    cluster: HyperpodCluster,
    slurm: tuple[SubmitTarget, str | None],
    login_node: str | None,
    namespace: str | None,
) -> str:
    """The cluster's table.

    Raises:
        InvalidInputError: An option belongs to the other orchestrator, or the orchestrator is unknown.
    """
    config_name = _config_name(cluster)
    if cluster.on_eks:
        if login_node is not None:
            raise _option_error("--login-node", f"{cluster.name} is on EKS", "login_node")
        eks = (cluster.eks_arn or "").rpartition("/")[2]
        return eks_block(config_name, name, eks, namespace or None)
    if cluster.on_slurm:
        if namespace is not None:
            raise _option_error("--namespace", f"{cluster.name} uses Slurm", "namespace")
        target, commands = slurm
        is_local = login_node is None
        return slurm_block(config_name, name, target, commands if is_local else None, login_node)
    raise InvalidInputError(
        f"{cluster.name}: {cluster.reason}",
        code="unknown_orchestrator",
        hint="update the package: pip install --upgrade hyperpod-jlab",
    )


def _config_name(cluster: HyperpodCluster) -> str:
    """The cluster's reference in the configuration: outside the default region an ARN, since a name could mean another cluster."""
    from hyperpod_jlab.aws.session import home_region

    return cluster.name if home_region() in {None, cluster.region} else cluster.arn


def _option_error(option: str, reason: str, field: str) -> InvalidInputError:
    return InvalidInputError(
        f"{option} cannot be used here: {reason}", code="usage", detail={"field": field}
    )


def _check_not_configured(cluster: HyperpodCluster) -> None:
    if cluster.configured_as:
        configured_names = ", ".join(cluster.configured_as)
        raise ConflictError(
            f"{cluster.name} is already in the configuration, as {configured_names}",
            code="cluster_exists",
            hint=f"hpj nodes {cluster.configured_as[0]}",
            detail={"configured_as": list(cluster.configured_as)},
        )


def _check_name(name: str) -> None:
    if not re.fullmatch(LABEL, name):
        raise InvalidInputError(
            f"'{name[:60]}' is not a valid name for a cluster in the configuration",
            hint="use at most 63 letters, digits, dots, underscores and hyphens, starting with a letter or digit",
            detail={"field": "name"},
        )
