"""Blocks for ssh's configuration, by which ssh reaches the login nodes of a HyperPod cluster through AWS Systems Manager: no port has to be open, no network shared."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from hyperpod_jlab.aws.clusters import node_target
from hyperpod_jlab.aws.login_nodes import LoginNodes, find_login_nodes
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.services.node_terminal import session_command

_BY_SSH = "--document-name AWS-StartSSHSession --parameters portNumber=%p"
"""What AWS documents for ssh through Session Manager."""

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]*")


@dataclass(frozen=True)
class SshHost:
    """How ssh gets to a login node.

    Attributes:
        name: What a user calls it: the ``Host`` of the block.
        instance: Its instance id, under which ssh knows its host key.
        target: What Systems Manager calls it.
        proxy: The command that ssh talks through.
    """

    name: str
    instance: str
    target: str
    proxy: str


@dataclass(frozen=True)
class SshConfig:
    """Blocks for the login nodes of a cluster.

    Attributes:
        cluster: The cluster's name.
        hosts: The login nodes.
        user: Who logs in; None: ssh's own choice.
        note: What a user should know of the nodes.
    """

    cluster: str
    hosts: tuple[SshHost, ...]
    user: str | None
    note: str | None

    @property
    def text(self) -> str:
        """The blocks, and what of them belongs into our configuration."""
        names = ", ".join(f'"{host.name}"' for host in self.hosts)
        lines = [
            f"# The login nodes of {self.cluster} through AWS Systems Manager. Write them anew when nodes were replaced.",
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

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        hosts = [asdict(host) for host in self.hosts]
        return {"cluster": self.cluster, "hosts": hosts, "note": self.note, "text": self.text}


async def ssh_config(aws: Aws, cluster: str, user: str | None = None) -> SshConfig:
    """The blocks for the login nodes of a cluster.

    Args:
        aws: AWS in the cluster's region.
        cluster: Name or ARN.
        user: Who logs in.

    Raises:
        InvalidInputError: The user's name has another form.
        NotFoundError: There is no such cluster, or AWS knows no login nodes of it.
        HyperpodError: See `aws.errors`.
    """
    if user is not None and not _USER.fullmatch(user):
        raise InvalidInputError(
            f"{user[:80]!r} is no user's name",
            hint="give the name that the user has on the cluster",
            detail={"field": "user"},
        )
    nodes = await find_login_nodes(aws, cluster)
    return SshConfig(
        nodes.cluster.name, _hosts(nodes, await aws.region()), user=user, note=nodes.note
    )


def _hosts(nodes: LoginNodes, region: str) -> tuple[SshHost, ...]:
    found = []
    for number, one in enumerate(nodes.instances, 1):
        target = node_target(nodes.cluster.arn, one)
        # In these quotes AWS documents it: a shell finds the AWS CLI as in a terminal.
        proxy = f'sh -c "{" ".join(session_command(target, region))} {_BY_SSH}"'
        found.append(SshHost(f"{nodes.cluster.name}-{number}", one.name, target, proxy))
    return tuple(found)
