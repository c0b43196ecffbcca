"""``hpj config``: the configuration file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.group import Entry, HpjCommand, LazyGroup, Section
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.clusters.configuration import add_cluster, user_file
from hyperpod_jlab.core.errors import ConflictError, InvalidInputError
from hyperpod_jlab.core.reach import eks_block, slurm_block
from hyperpod_jlab.core.validation import LABEL

if TYPE_CHECKING:
    from hyperpod_jlab.core.hyperpod import HyperpodCluster
    from hyperpod_jlab.core.reach import SubmitTarget
    from hyperpod_jlab.run.services import Hyperpod

_COMMANDS = (
    Section(
        "Clusters",
        (Entry("add", "clusters.config_commands", "Add a HyperPod cluster of your AWS account."),),
    ),
)

_ADD_HELP = """\
Add a HyperPod cluster of your AWS account to your configuration file, so that you can submit runs to it. NAME is its name in the file.

The command appends the cluster's table to the file and changes nothing else. 'hpj show NAME' shows whether you can submit to it from here.
"""

_ADD_EXAMPLES = (
    "hpj config add ml-cluster",
    "hpj config add train --hyperpod ml-cluster --login-node ubuntu@10.1.2.3",
    "hpj config add research-eks --namespace hyperpod-ns-vision --dry-run",
)


@click.group(
    cls=LazyGroup,
    sections=_COMMANDS,
    help="Change your configuration file.",
    examples=_ADD_EXAMPLES[:1],
)
def config() -> None:
    """The configuration file."""


@click.command(cls=HpjCommand, help=_ADD_HELP, examples=_ADD_EXAMPLES)
@click.argument("name")
@click.option("--hyperpod", metavar="CLUSTER", help="HyperPod cluster: name or ARN. Default: NAME.")
@click.option(
    "--login-node",
    metavar="[USER@]HOST[:PORT]",
    help="Login node of a Slurm cluster, reached by SSH. Default: use the Slurm commands on this machine.",
)
@click.option(
    "--namespace",
    metavar="NAMESPACE",
    help="On EKS: namespace of the runs. Default: default.",
)
@click.option(
    "--region",
    metavar="REGION",
    help="AWS region. Default: $AWS_REGION, the region of the AWS configuration, or the region of Studio.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be added. Change nothing.")
def add(
    name: str,
    hyperpod: str | None,
    login_node: str | None,
    namespace: str | None,
    region: str | None,
    dry_run: bool,
) -> None:
    """Add a cluster to the configuration."""
    _check_name(name)

    async def read(services: Hyperpod) -> tuple[HyperpodCluster, SubmitTarget, str | None]:
        aws = services.hyperpod_clusters(region)
        summary = await aws.describe(hyperpod or name)
        return summary, aws.reach_checker.target_of(summary), aws.reach_checker.commands

    cluster, target, commands = with_services(read, asking=True)
    block = _block(name, cluster, (target, commands), login_node, namespace)
    if dry_run:
        path = user_file()
    else:
        _check_not_configured(cluster)
        path = add_cluster(name, block)
    if invocation().as_json:
        print_json({"cluster": name, "path": str(path), "config": block, "written": not dry_run})
        return
    if dry_run:
        for line in block.splitlines():
            print(printable(line))
        return
    print(f"{name} is added to {printable(str(path))}. Try it: hpj nodes {name}")


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
