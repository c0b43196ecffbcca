"""Add a HyperPod cluster of the AWS account to the user's configuration, so that runs can be submitted to it, and remove it."""

from __future__ import annotations

import asyncio
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyperpod_jlab.clusters.configuration import add_cluster, check_not_used, remove_cluster, user_file
from hyperpod_jlab.core.errors import ConflictError, HyperpodError, InvalidInputError, UnreachableError
from hyperpod_jlab.core.reach import eks_block, slurm_block
from hyperpod_jlab.core.validation import LABEL

if TYPE_CHECKING:
    from hyperpod_jlab.core.hyperpod import HyperpodCluster
    from hyperpod_jlab.core.reach import SubmitTarget
    from hyperpod_jlab.run.services import Hyperpod


_TEST_TIMEOUT_S = 20.0
"""Timeout of the test of a connection, in seconds: ssh alone takes up to ten for a host that does not answer."""


@dataclass(frozen=True)
class Connection:
    """A cluster's table in the configuration file.

    Attributes:
        cluster: Its name in the configuration.
        path: The file.
        config: The table, in TOML.
        written: Whether it is in the file.
        problem: Why the cluster did not answer; None: it answered, or was not asked.
    """

    cluster: str
    path: str
    config: str
    written: bool
    problem: HyperpodError | None = None


async def connect(
    services: Hyperpod,
    hyperpod: str,
    name: str | None = None,
    *,
    login_node: str | None = None,
    namespace: str | None = None,
    region: str | None = None,
    dry_run: bool = False,
    test: bool = False,
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
        test: Ask the cluster's scheduler first. If it does not answer, write nothing.

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
    if test:
        check_not_used(name)
        problem = await _find_problem(services, name, block)
        if problem is not None:
            return Connection(name, str(user_file()), block, written=False, problem=problem)
    path = await asyncio.to_thread(add_cluster, name, block)
    return Connection(name, str(path), block, written=True)


@dataclass(frozen=True)
class Disconnection:
    """A cluster whose table was removed from the configuration file.

    Attributes:
        cluster: Its name.
        path: The file.
    """

    cluster: str
    path: str


async def disconnect(services: Hyperpod, name: str) -> Disconnection:
    """Remove a cluster from the user's configuration file. Its jobs go on, and its runs stay in the list of runs.

    Raises:
        NotFoundError: The cluster is not configured.
        ConflictError: It is in another configuration file, or is the default cluster.
        StorageError: The file cannot be written.
    """
    if name not in services.settings.clusters:
        raise services.settings.unknown_cluster(name)
    if name == services.settings.default_cluster:
        raise ConflictError(
            f"'{name}' is the default cluster",
            code="default_cluster",
            hint=f"first choose another default_cluster in {user_file()}",
            detail={"cluster": name},
        )
    return Disconnection(name, str(await asyncio.to_thread(remove_cluster, name)))


async def _find_problem(services: Hyperpod, name: str, block: str) -> HyperpodError | None:
    """Why runs cannot be submitted to a cluster that is not configured yet: its scheduler does not answer, or the namespace does not exist; None if they can."""
    from pydantic import TypeAdapter

    from hyperpod_jlab.core.config import ClusterConfig
    from hyperpod_jlab.engines.registry import make_orchestrator

    table = tomllib.loads(block)["clusters"][name]
    config: ClusterConfig = TypeAdapter(ClusterConfig).validate_python(table)
    engine = make_orchestrator(name, config, services.partition)
    try:
        async with asyncio.timeout(_TEST_TIMEOUT_S):
            found = await engine.cluster()
    except TimeoutError:
        return UnreachableError(f"no answer within {_TEST_TIMEOUT_S:g} s")
    except HyperpodError as error:
        return error
    finally:
        await engine.close()
    if found.state == "misconfigured":
        return InvalidInputError(found.reason or found.state, code="misconfigured")
    return None


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
    return InvalidInputError(f"{option} cannot be used here: {reason}", code="usage", detail={"field": field})


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
