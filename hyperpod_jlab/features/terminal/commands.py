"""``hpj terminal``: a terminal on a node of a HyperPod cluster."""

from __future__ import annotations

import os
import sys

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.parameters import cluster_argument, cluster_option, region_option
from hyperpod_jlab.cli.terminal import is_terminal
from hyperpod_jlab.core.errors import InvalidInputError, UnsupportedError
from hyperpod_jlab.features.terminal.service import PROGRAMS, build_terminal, missing_programs
from hyperpod_jlab.features.terminal.service import ssh_config as blocks_for

_HELP = """\
Print the command that opens a terminal on a HyperPod node through AWS Systems Manager. With --open, run it.

NODE is an instance id, or the name of a node in Slurm or Kubernetes. You are root on the node, unless the account runs sessions as another user (Run As); 'hpj doctor' shows which.
"""

_EXAMPLES = (
    "hpj terminal ip-10-0-0-5 --cluster ml-cluster",
    "hpj terminal hyperpod-i-0123456789abcdef0 --cluster research-eks --open",
)


@click.command(cls=HpjCommand, help=_HELP, examples=_EXAMPLES)
@click.argument("node")
@cluster_option
@click.option("--open", "opening", is_flag=True, help="Run the command in this terminal.")
@region_option
def terminal(node: str, cluster: str | None, opening: bool, region: str | None) -> None:
    """Print or run the command for a terminal."""
    if opening:
        _check()
    node_terminal = with_services(lambda hyperpod: build_terminal(hyperpod, cluster, node, region), asking=True)
    if opening:
        _open(node_terminal.command)
    elif invocation().as_json:
        print_json(node_terminal)
    else:
        print(node_terminal.line)


def _check() -> None:
    if invocation().as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise InvalidInputError(
            "--open works only in a terminal",
            code="usage",
            hint="leave out --open, and run the printed command in a terminal",
        )
    missing = missing_programs()
    if missing:
        raise UnsupportedError(
            f"a terminal needs programs that are not installed: {', '.join(missing)}",
            code="program_missing",
            hint="install " + " and ".join(PROGRAMS[program] for program in missing),
            detail={"programs": missing},
        )


def _open(command: tuple[str, ...]) -> None:
    """Replace this process with the command, so that it gets all keys and signals."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(command[0], command)  # noqa: S606 - without a shell is what is wanted


# --------------------------------------------------------------------------------------------------
# ``hpj ssh-config``: ssh to login nodes through AWS Systems Manager.

_SSH_CONFIG_HELP = """\
Print Host blocks for ~/.ssh/config, with which ssh reaches the login nodes of a HyperPod cluster through AWS Systems Manager.

If a cluster has no login nodes, the block is for its controller. To connect, ssh needs the AWS CLI, the Session Manager plugin, and your public key on the node.
"""

_SSH_CONFIG_EXAMPLES = ("hpj ssh-config ml-cluster", "hpj ssh-config ml-cluster --user alice >>~/.ssh/config")


@click.command(cls=HpjCommand, help=_SSH_CONFIG_HELP, examples=_SSH_CONFIG_EXAMPLES)
@cluster_argument
@click.option("--user", metavar="USER", help="Your user name on the cluster.")
@region_option
def ssh_config(cluster: str | None, user: str | None, region: str | None) -> None:
    """Print the blocks."""
    ssh_blocks = with_services(lambda hyperpod: blocks_for(hyperpod, cluster, user, region), asking=True)
    if invocation().as_json:
        print_json(ssh_blocks)
    else:
        print(ssh_blocks.text, end="")
