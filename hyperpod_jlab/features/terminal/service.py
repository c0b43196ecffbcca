"""Interactive terminals on nodes of a HyperPod cluster, by AWS Systems Manager; not for automated queries.

An account can start three sessions a second, and the end of a session is not reported reliably.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from hyperpod_jlab.aws.clusters import ClusterLogins, find_login_nodes, node_target
from hyperpod_jlab.clusters.aws import find_cluster, find_instance
from hyperpod_jlab.core.errors import InternalError, InvalidInputError
from hyperpod_jlab.core.wire import HIDDEN, Wire, wire_property
from hyperpod_jlab.run.services import Hyperpod

PROGRAMS: Final = {
    "aws": "the AWS CLI (https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html)",
    "session-manager-plugin": "its Session Manager plugin "
    "(https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html)",
}
"""Programs that open a terminal, and the packages they belong to."""

_PLAIN = re.compile(r"[A-Za-z0-9-][A-Za-z0-9:_-]*")
"""Words that need no quoting in any shell. The command's words match by AWS' patterns of ids and names of instance groups."""


@dataclass(frozen=True)
class NodeTerminal:
    """How to open a terminal on a node.

    Attributes:
        instance: The node's instance id.
        target: Its name in Systems Manager: ``sagemaker-cluster:CLUSTERID_GROUP-INSTANCE``.
        command: The AWS CLI command, as a list of arguments.
    """

    instance: str
    target: str
    command: tuple[str, ...]

    @property
    def line(self) -> str:
        """The command as a shell command line."""
        return shlex.join(self.command)


async def build_terminal(services: Hyperpod, cluster: str | None, node: str, region: str | None = None) -> NodeTerminal:
    """The command for a terminal on a node. Does not start a session.

    Args:
        services: The services.
        cluster: The cluster (see `Clusters.resolve_hyperpod`).
        region: Its region; default: see `aws.session.Aws`.
        node: The node (see `clusters.aws.find_instance`).

    Raises:
        NotFoundError: The cluster or the node does not exist.
        HyperpodError: See `aws.errors`.
    """
    resolved = await services.clusters.resolve_hyperpod(cluster, region)
    aws = services.hyperpod_clusters(resolved.region).aws
    description = await find_cluster(aws, resolved.aws_name)
    instance = await find_instance(aws, resolved.aws_name, node)
    target = node_target(description.arn, instance)
    return NodeTerminal(instance.name, target, session_command(target, await aws.region()))


def session_command(target: str, region: str) -> tuple[str, ...]:
    """The AWS CLI command that opens a session.

    Raises:
        InternalError: A word needs quoting.
    """
    return check_arguments(("aws", "ssm", "start-session", "--target", target, "--region", region))


def check_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """Check that no shell interprets a word of the command: users paste it, JupyterLab types it.

    Raises:
        InternalError: A word needs quoting.
    """
    for argument in arguments:
        if _PLAIN.fullmatch(argument) is None:
            raise InternalError(
                f"{argument!r} is not safe in a shell command",
                code="strange_name",
                hint="AWS does not use such names; open the terminal yourself with aws ssm start-session",
            )
    return tuple(arguments)


def missing_programs() -> list[str]:
    """The `PROGRAMS` that are not installed on this machine."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


# --------------------------------------------------------------------------------------------------
# ssh configuration for the login nodes of a HyperPod cluster, through AWS Systems Manager: needs no
# open port and no shared network.

_SSH_DOCUMENT_ARGS = "--document-name AWS-StartSSHSession --parameters portNumber=%p"
"""From AWS' documentation of ssh through Session Manager."""

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]*")


@dataclass(frozen=True)
class SshHost:
    """How ssh reaches a login node.

    Attributes:
        name: Its alias: the ``Host`` of the block.
        instance: Its instance id, under which ssh stores its host key.
        target: Its name in Systems Manager.
        proxy: ssh's proxy command.
    """

    name: str
    instance: str
    target: str
    proxy: str


@dataclass(frozen=True)
class SshConfig(Wire):
    """ssh configuration for the login nodes of a cluster.

    Attributes:
        cluster: The cluster's name.
        hosts: The login nodes.
        user: The login user; None: ssh's default.
        note: A note on the nodes.
    """

    cluster: str
    hosts: tuple[SshHost, ...]
    user: str | None = field(metadata=HIDDEN)
    note: str | None

    @property
    @wire_property
    def text(self) -> str:
        """The blocks, and how to use them in our configuration."""
        names = ", ".join(f'"{host.name}"' for host in self.hosts)
        lines = [
            f"# The login nodes of {self.cluster} through AWS Systems Manager. Run the command again after a node was replaced.",
            *([f"# {self.note}."] if self.note else ()),
            f'# In the configuration of hpj: transport = "ssh", login_nodes = [{names}]',
        ]
        for host in self.hosts:
            lines += [
                f"Host {host.name}",
                f"  HostKeyAlias {host.instance}",
                *([f"  User {self.user}"] if self.user is not None else ()),
                f"  ProxyCommand {host.proxy}",
            ]
        return "\n".join(lines) + "\n"


async def ssh_config(
    services: Hyperpod, cluster: str | None, user: str | None = None, region: str | None = None
) -> SshConfig:
    """The ssh configuration for the login nodes of a cluster.

    Args:
        services: The services.
        cluster: The cluster (see `Clusters.resolve_hyperpod`).
        user: The login user.
        region: The cluster's region; default: see `aws.session.Aws`.

    Raises:
        InvalidInputError: The user name is invalid.
        NotFoundError: The cluster does not exist, or AWS lists no login nodes for it.
        HyperpodError: See `aws.errors`.
    """
    if user is not None and not _USER.fullmatch(user):
        raise InvalidInputError(
            f"{user[:80]!r} is not a valid user name",
            hint="give the name that the user has on the cluster",
            detail={"field": "user"},
        )
    resolved = await services.clusters.resolve_hyperpod(cluster, region)
    aws = services.hyperpod_clusters(resolved.region).aws
    nodes = await find_login_nodes(aws, resolved.aws_name)
    return SshConfig(nodes.cluster.name, _hosts(nodes, await aws.region()), user=user, note=nodes.note)


def _hosts(nodes: ClusterLogins, region: str) -> tuple[SshHost, ...]:
    hosts = []
    for number, instance in enumerate(nodes.instances, 1):
        target = node_target(nodes.cluster.arn, instance)
        # AWS documents these quotes: a shell then finds the AWS CLI as in a terminal.
        proxy = f'sh -c "{" ".join(session_command(target, region))} {_SSH_DOCUMENT_ARGS}"'
        hosts.append(SshHost(f"{nodes.cluster.name}-{number}", instance.name, target, proxy))
    return tuple(hosts)
