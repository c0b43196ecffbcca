"""An errand: a small program that runs once as root on the controller of a Slurm cluster, by a session of Systems Manager, and prints its answer."""

from __future__ import annotations

import base64
import secrets
import shlex
import textwrap
import zlib

from hyperpod_jlab.aws.clusters import describe_cluster, list_instances
from hyperpod_jlab.aws.node_session import run
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import NotFoundError, RefusedError
from hyperpod_jlab.model.hyperpod import HyperpodCluster

PATIENCE = 60.0
"""Seconds until a session is given up."""

GROUP = "controller-machine"
"""What AWS' samples and its console call the controller's instance group."""

ON_NODES = "/fsx"
"""Where HyperPod's life cycle scripts mount the cluster's file system, if AWS tells of no other place."""

_LINE = 1000
"""Letters of a line: a terminal takes no more than 4,095 at once."""

_READER = (
    "import base64,itertools,os,signal,sys,tty,zlib;signal.alarm(300);"
    "os.isatty(0) and tty.setcbreak(0);print({first!r}+{rest!r},flush=True);"
    "exec(zlib.decompress(base64.b64decode(''.join(itertools.takewhile(lambda line:line!='.\\n',sys.stdin)))))"
)
"""Reads a program and runs it: a session's command takes some kilobytes at most. The terminal does not repeat it, and it ends by itself. What it says first is in
two parts, since a terminal may show the command too.
"""


class NodeErrand:
    """Runs programs on a node.

    Args:
        aws: AWS in the cluster's region.
        target: The node, as Systems Manager calls it.
        root: Where it has the whole file system.
    """

    reply: str | None = None

    def __init__(self, aws: Aws, target: str, root: str) -> None:
        self._aws, self._target = aws, target
        self.root = root

    async def run(self, program: str, name: str) -> str:
        """Run a program that prints its answer (see `admin.folders.Errand`).

        Raises:
            UnreachableError: The node or its session does not answer.
            HyperpodError: See `aws.errors`.
        """
        ready = f"{name}-{secrets.token_hex(6)}"
        packed = base64.b64encode(zlib.compress(program.encode("ascii"), 9)).decode()
        text = "".join(f"{line}\n" for line in (*textwrap.wrap(packed, _LINE), "."))
        return await run(self._aws, self._target, command(ready), ready, text, PATIENCE)


def command(ready: str) -> str:
    """The command: as root, whoever the session's user is."""
    reader = shlex.quote(_READER.format(first=ready[:4], rest=ready[4:]))
    return f'as=; [ "$(id -u)" -eq 0 ] || as="sudo -n"; exec $as python3 -I -c {reader}'


async def to_controller(
    aws: Aws, name: str, group: str | None, file_system: str | None
) -> NodeErrand | None:
    """The way to a cluster's controller; None: it is none of Slurm.

    Args:
        aws: AWS in the cluster's region.
        name: The HyperPod cluster.
        group: The controller's instance group, where the cluster's settings do not say which it is.
        file_system: The file system that the controller is to have; None: the one that it mounts.

    Raises:
        NotFoundError: There is no such cluster, or no controller that runs.
        RefusedError: The controller mounts other file systems.
        HyperpodError: See `aws.errors`.
    """
    found = await describe_cluster(aws, HyperpodCluster(name, name, await aws.region(), ""))
    if found.orchestrator != "slurm":
        return None
    groups = [one for one in found.groups or () if one.slurm_role == "Controller"]
    groups = groups or [one for one in found.groups or () if one.name == (group or GROUP)]
    names = {one.name for one in groups}
    running = [
        (one.instance_group, one.name)
        async for page in list_instances(aws, name)
        for one in page
        if one.instance_group in names and one.status == "Running"
    ]
    if not running:
        raise NotFoundError(
            f"the cluster {name} has no controller that runs"
            + ("" if names else f": it has no instance group {group or GROUP}"),
            code="no_controller",
            hint="name the controller's instance group: ControllerGroup",
            detail={"field": "ControllerGroup"},
        )
    mounts = [storage for one in groups for storage in one.storage]
    fitting = [one for one in mounts if file_system in {None, one.dns_name.partition(".")[0]}]
    if mounts and not fitting:
        raise RefusedError(
            f"the controller of {name} does not mount {file_system}",
            code="not_mounted",
            hint="name the file system that the cluster mounts: FileSystemId",
        )
    root = next((one.path for one in fitting if one.path), ON_NODES)
    ident, (instance_group, instance) = found.arn.rpartition("/")[2], min(running)
    return NodeErrand(aws, f"sagemaker-cluster:{ident}_{instance_group}-{instance}", root)
