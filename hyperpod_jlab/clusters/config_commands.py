"""``hpj config``: the configuration file."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.group import Entry, HpjCommand, LazyGroup, Section
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.clusters.connect import connect, disconnect

if TYPE_CHECKING:
    from hyperpod_jlab.clusters.connect import Connection, Disconnection
    from hyperpod_jlab.run.services import Hyperpod

_COMMANDS = (
    Section(
        "Clusters",
        (
            Entry("add", "clusters.config_commands", "Add a HyperPod cluster of your AWS account."),
            Entry("remove", "clusters.config_commands", "Remove a cluster."),
        ),
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


@click.group(cls=LazyGroup, sections=_COMMANDS, help="Change your configuration file.", examples=_ADD_EXAMPLES[:1])
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
@click.option("--namespace", metavar="NAMESPACE", help="On EKS: namespace of the runs. Default: default.")
@click.option(
    "--region",
    metavar="REGION",
    help="AWS region. Default: $AWS_REGION, the region of the AWS configuration, or the region of Studio.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be added. Change nothing.")
def add(
    name: str, hyperpod: str | None, login_node: str | None, namespace: str | None, region: str | None, dry_run: bool
) -> None:
    """Add a cluster to the configuration."""

    async def write(services: Hyperpod) -> Connection:
        return await connect(
            services, hyperpod or name, name, login_node=login_node, namespace=namespace, region=region, dry_run=dry_run
        )

    connection = with_services(write, asking=True)
    if invocation().as_json:
        print_json(asdict(connection))
    elif dry_run:
        for line in connection.config.splitlines():
            print(printable(line))
    else:
        print(f"{name} is added to {printable(connection.path)}. Try it: hpj nodes {name}")


_REMOVE_HELP = """\
Remove a cluster from your configuration file. Its jobs go on, and its runs stay in the list of runs.
"""


@click.command(cls=HpjCommand, help=_REMOVE_HELP, examples=("hpj config remove ml-cluster",))
@click.argument("name")
def remove(name: str) -> None:
    """Remove a cluster from the configuration."""

    async def write(services: Hyperpod) -> Disconnection:
        return await disconnect(services, name)

    disconnection = with_services(write)
    if invocation().as_json:
        print_json(asdict(disconnection))
    else:
        print(f"{printable(name)} is removed from {printable(disconnection.path)}.")
