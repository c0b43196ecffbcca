"""``hpj ssh-config``: how ssh gets to login nodes through AWS Systems Manager."""

from __future__ import annotations

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.services.ssh_config import ssh_config as blocks_for

_HELP = """\
Print Host blocks for ~/.ssh/config, by which ssh reaches the login nodes of a HyperPod cluster through AWS Systems Manager.

The controller is taken where a cluster has no login nodes. ssh then needs the AWS CLI and its Session Manager plugin, and your public key on the node.
"""

_EXAMPLES = (
    "hpj ssh-config --hyperpod ml-cluster",
    "hpj ssh-config --hyperpod ml-cluster --user alice >>~/.ssh/config",
)


@click.command(cls=HpjCommand, help=_HELP, examples=_EXAMPLES)
@click.option(
    "--hyperpod",
    "cluster",
    metavar="NAME",
    required=True,
    help="The HyperPod cluster: name or ARN.",
)
@click.option("--user", metavar="USER", help="Your user name on the cluster.")
@click.option(
    "--region",
    metavar="REGION",
    help="AWS region. Default: $AWS_REGION, or that of the AWS configuration or of Studio.",
)
def ssh_config(cluster: str, user: str | None, region: str | None) -> None:
    """Print the blocks."""
    found = with_services(
        lambda hyperpod: blocks_for(hyperpod.hyperpod_clusters(region).aws, cluster, user),
        asking=True,
    )
    if invocation().as_json:
        print_json(found.to_dict())
    else:
        print(found.text, end="")
