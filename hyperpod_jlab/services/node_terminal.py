"""A terminal on a node of a HyperPod cluster, by AWS Systems Manager: for a person, never to ask nodes for something.

An account can start three sessions a second, and the end of one is not told reliably.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hyperpod_jlab.aws.clusters import node_target
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import InternalError
from hyperpod_jlab.services.hyperpod_instances import find_cluster, find_instance

PROGRAMS: Final = {
    "aws": "the AWS CLI (https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html)",
    "session-manager-plugin": "its Session Manager plugin "
    "(https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html)",
}
"""Programs that open a terminal, and what they are a part of."""

_PLAIN = re.compile(r"[A-Za-z0-9-][A-Za-z0-9:_-]*")
"""Words that are the same to every shell. Those of a command are so by AWS' patterns of ids and names of instance groups."""


@dataclass(frozen=True)
class NodeTerminal:
    """How to open a terminal on a node.

    Attributes:
        instance: The node's instance id.
        target: What Systems Manager calls it: ``sagemaker-cluster:CLUSTERID_GROUP-INSTANCE``.
        command: The command of the AWS CLI, word by word.
    """

    instance: str
    target: str
    command: tuple[str, ...]

    @property
    def line(self) -> str:
        """The command as a line for a shell."""
        return shlex.join(self.command)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"instance": self.instance, "target": self.target, "command": list(self.command)}


async def terminal_on(aws: Aws, cluster: str, node: str) -> NodeTerminal:
    """The way to a terminal on a node. No session is begun.

    Args:
        aws: AWS in the cluster's region.
        cluster: Name or ARN.
        node: The node (see `hyperpod_instances.find_instance`).

    Raises:
        NotFoundError: There is no such cluster or node.
        HyperpodError: See `aws.errors`.
    """
    found = await find_cluster(aws, cluster)
    one = await find_instance(aws, cluster, node)
    target = node_target(found.arn, one)
    return NodeTerminal(one.name, target, session_command(target, await aws.region()))


def session_command(target: str, region: str) -> tuple[str, ...]:
    """The command of the AWS CLI that opens a session there.

    Raises:
        InternalError: A word is not plain.
    """
    return plain_words(("aws", "ssm", "start-session", "--target", target, "--region", region))


def plain_words(words: Sequence[str]) -> tuple[str, ...]:
    """A command, once it is sure that no shell reads anything else in its words: people paste it, JupyterLab types it.

    Raises:
        InternalError: A word is not plain.
    """
    for word in words:
        if _PLAIN.fullmatch(word) is None:
            raise InternalError(
                f"{word!r} is no word of a command for a terminal",
                code="strange_name",
                hint="AWS names clusters, groups and instances otherwise; open the terminal by hand",
            )
    return tuple(words)


def missing_programs() -> list[str]:
    """Those of `PROGRAMS` that this machine does not have."""
    return [program for program in PROGRAMS if shutil.which(program) is None]
