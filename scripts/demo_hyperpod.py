"""What `make demo ARGS=--hyperpod` runs on: an AWS API, HyperPod clusters of it with a real Slurm and a real Kubernetes behind, and a space of Studio, all on this machine.

Everything lies in one folder, and all of it is gone when the demo ends, however it ends.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import demo_kubernetes  # noqa: E402 - a script beside this one

from hyperpod_jlab.aws.permissions import FEATURES, policy  # noqa: E402
from testbed.aws import kubernetes_bed  # noqa: E402
from testbed.aws.attached import Attached, BedError  # noqa: E402 - the testbed is no package that is installed
from testbed.aws.endpoint import Endpoint  # noqa: E402
from testbed.aws.example import (  # noqa: E402
    ACCESS_KEY,
    add_file_system,
    add_others,
    add_people,
    client_environment,
    lustre,
)
from testbed.aws.example_telemetry import add_telemetry  # noqa: E402
from testbed.aws.kubernetes_bed import AttachedKubernetes  # noqa: E402
from testbed.aws.lifecycle import Lifecycle, Timings  # noqa: E402
from testbed.aws.server import AwsServer  # noqa: E402
from testbed.aws.slurm_bed import SCRIPT, AttachedSlurm, slurm_bed  # noqa: E402
from testbed.aws.state import Account  # noqa: E402
from testbed.aws.studio import SimulatedStudio, whole_file_system  # noqa: E402
from testbed.aws.timeline import Timeline  # noqa: E402

__all__ = ["CLUSTER", "QUEUE", "BedError", "Place", "hyperpod_testbed", "what_is_missing"]

CLUSTER = "ml-slurm"
EKS_CLUSTER = demo_kubernetes.CLUSTER
REGION = "us-west-2"
GROWING = "research-eks"
ROLE = "StudioRole"
_CACHE = os.environ.get("XDG_CACHE_HOME")
_AS_IT_WAS = "env -u XDG_CACHE_HOME " if _CACHE is None else f"XDG_CACHE_HOME={shlex.quote(_CACHE)} "
"""For commands that look for what is built: in the space, in which this process is soon, the cache folder is another."""

ADMIN = "admin-"
"""What the names of features for admins begin with."""
NODES = 4
QUEUE = "train"
TIMINGS = Timings(
    detected=timedelta(seconds=5),
    started=timedelta(seconds=60),
    rebooted=timedelta(seconds=15),
    ended=timedelta(seconds=15),
)
"""Much shorter than at AWS, where a replacement takes 20 to 30 minutes.

A replacement takes longer than Slurm needs to miss the node (27 s). When the node is back at just that moment, Slurm 22.05 gives it the order to end its job later on, and ends
the job's next attempt by it (seen: 20 s after that began).
"""

Tell = Callable[[str], None]
"""Says what goes on; called several times a second."""

_PAUSE = 0.2


@dataclass(frozen=True)
class Place:
    """Where the demo is.

    Attributes:
        environment: A file for a shell that is to be in the space of Studio too.
        kill: A command that ends one of the Slurm cluster's machines.
        kill_kubernetes: The same of the cluster on EKS; None: there is none.
        without_kubernetes: Why there is none.
        whole: Where the whole file system is, for an admin; None: this is no admin's space.
    """

    environment: Path
    kill: str
    kill_kubernetes: str | None = None
    without_kubernetes: str | None = None
    whole: Path | None = None


def what_is_missing() -> str | None:
    """What keeps the testbed from being started, and what to do about it."""
    if sys.platform != "linux" or os.getuid() != 0:
        return "--hyperpod needs Linux and root: it starts a Slurm cluster in namespaces"
    if shutil.which("slurmctld") is None or shutil.which("slurmd") is None:
        return "--hyperpod needs Slurm on this machine. Install it with: testbed/install-slurm.sh"
    return None


@contextlib.contextmanager
def hyperpod_testbed(tell: Tell = lambda _: None, *, kubernetes: bool = True, admin: bool = False) -> Iterator[Place]:
    """Start all of it, and let this process and what it starts be in the space of Studio.

    Args:
        tell: Says what goes on.
        kubernetes: Whether there is to be a cluster on EKS too, if it is built.
        admin: Whether the space's role may administer the domain too, which then has more people.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with contextlib.ExitStack() as stack:
        base = Path(tempfile.mkdtemp(prefix="hpj-demo-"))
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        base.chmod(0o755)  # the clusters' daemons go through it
        account = Account(timeline=Timeline(runs=True))
        account.add_caller(ACCESS_KEY, ROLE, _policy(account, admin=admin))
        studio = SimulatedStudio(base / "studio", REGION, user_profile="alice")
        whole = _mounted(stack, base, studio, admin=admin)
        studio.write(account, others=_others(whole))
        slurm, eks, why = _start(stack, base, studio, whole, tell, kubernetes=kubernetes)
        tell("the AWS API")
        endpoint = Endpoint(account)
        server = stack.enter_context(AwsServer(endpoint))
        more = {"timings": TIMINGS, "storage": [lustre(REGION)]}
        beds: list[Attached] = [AttachedSlurm(endpoint, slurm, REGION, CLUSTER, **more)]
        if eks is not None:
            more["entries"] = {ROLE: demo_kubernetes.ENTRY}
            names = (EKS_CLUSTER, demo_kubernetes.EKS)
            beds.append(AttachedKubernetes(endpoint, server.url, eks, REGION, *names, **more))
        _fill(account, studio, admin=admin)
        for bed in beds:
            stack.enter_context(bed)
        variables = {
            **client_environment(server.url, REGION),
            **studio.environment,
            "AWS_CONFIG_FILE": str(base / "no-aws-config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(base / "no-aws-credentials"),
            "HYPERPOD_CONFIG": str(_configuration(base, studio, slurm, eks, whole)),
            "XDG_CACHE_HOME": str(base / "cache"),
            "XDG_STATE_HOME": str(base / "state"),
        }
        os.environ.update(variables)
        os.environ.pop("AWS_PROFILE", None)
        yield Place(_shell(base, variables), f"{SCRIPT} node-kill {slurm} ip-10-0-0-1", _kill(eks), why, whole)


def _kill(eks: Path | None) -> str | None:
    return None if eks is None else f"{_AS_IT_WAS}{kubernetes_bed.SCRIPT} node-kill {eks} node1"


def _fill(account: Account, studio: SimulatedStudio, *, admin: bool) -> None:
    """What there is besides the clusters, one of which grows meanwhile; for an admin people too, and a SageMaker that is quick to update them."""
    add_others(account, REGION)
    (growing,) = (one for one in account.clusters[REGION] if one.name == GROWING)
    life = Lifecycle(account.timeline, growing, TIMINGS)
    life.fail_starts(growing.groups[0].name, "Lifecycle scripts did not run successfully.")
    add_file_system(account, REGION)
    add_telemetry(account, REGION)
    if admin:
        add_people(account)
        account.update_time = timedelta(seconds=3)
        account.spaces[studio.domain, studio.space].apps = ["JupyterLab"]


def _policy(account: Account, *, admin: bool) -> dict[str, Any]:
    """What the space's role may do: what `hpj admin policy` says for all features that it has, and nothing else."""
    granted = [one for one in FEATURES if admin or not one.name.startswith(ADMIN)]
    return policy(granted, account.partition, REGION, account.account_id)


def _mounted(stack: contextlib.ExitStack, base: Path, studio: SimulatedStudio, *, admin: bool) -> Path | None:
    """Make the space's partition; for an admin the whole file system too, of which it is a folder."""
    studio.mount_point.mkdir(parents=True)
    if not admin:
        return None
    whole = base / "fsx"
    inner = whole / studio.partition.strip("/")
    inner.mkdir(parents=True)
    subprocess.run(["mount", "--bind", studio.mount_point, inner], check=True)
    stack.callback(lambda: subprocess.run(["umount", "--lazy", inner], check=False))
    return whole


def _others(whole: Path | None) -> str:
    """What is mounted besides the partition, as the space's table of mounts tells it."""
    line = "" if whole is None else whole_file_system(whole)
    return Path("/proc/self/mountinfo").read_text() + line


def _start(
    stack: contextlib.ExitStack,
    base: Path,
    studio: SimulatedStudio,
    whole: Path | None,
    tell: Tell,
    *,
    kubernetes: bool,
) -> tuple[Path, Path | None, str | None]:
    """Start the clusters, at the same time; that of Kubernetes may be missing, and why is told. For an admin they have the whole file system.

    However this ends, what was begun is brought to its end first, so that it can be stopped.
    """
    queues = f"dev:1-{NODES}:default {QUEUE}:1-{NODES}"
    words = ["--nodes", str(NODES), "--parts", queues, *_programs()]
    if whole is not None:
        words += ["--mount", f"{whole}:/fsx"]
    words += ["--mount", studio.bind]
    begun = [stack.enter_context(contextlib.ExitStack()) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        slurm = threads.submit(begun[0].enter_context, slurm_bed(base / "slurm", *words))
        eks: Future[Path] | None = None
        why = None
        if kubernetes and demo_kubernetes.is_built():
            context = demo_kubernetes.kubernetes(base / "k", whole or studio.mount_point)
            eks = threads.submit(begun[1].enter_context, context)
        elif kubernetes:
            why = f"it is not built; {demo_kubernetes.BUILD} does it, once (minutes)"
        _wait({"Slurm": slurm, **({"Kubernetes": eks} if eks else {})}, tell)
        if eks is not None and isinstance(problem := eks.exception(), BedError):
            return slurm.result(), None, str(problem)
        return slurm.result(), eks.result() if eks else None, why


def _wait(works: dict[str, Future[Path]], tell: Tell) -> None:
    """Wait for what is started, and say for what."""
    while left := [name for name, work in works.items() if not work.done()]:
        tell(f"starting {' and '.join(left)}")
        time.sleep(_PAUSE)


def _programs() -> list[str]:
    """This Python and this package, for jobs on the nodes."""
    paths = {ROOT, Path(sys.prefix), Path(sys.base_prefix)} - {Path("/usr")}
    return [word for path in sorted(paths) for word in ("--bind", str(path))]


def _configuration(base: Path, studio: SimulatedStudio, slurm: Path, eks: Path | None, whole: Path | None) -> Path:
    lines = [
        f'default_cluster = "{CLUSTER}"',
        "[storage]",
        f'path = "{studio.mount_point}"',
        f"[clusters.{CLUSTER}]",
        'orchestrator = "slurm"',
        f'hyperpod = "{CLUSTER}"',
        f'storage = "/fsx{studio.partition}"',
        f'python = "{sys.executable}"',
        f'slurm_conf = "{slurm}/etc/slurm.conf"',
    ]
    if eks is not None:
        folder = studio.partition.strip("/") if whole else ""
        lines += demo_kubernetes.configuration(eks, f"/fsx{studio.partition}", folder)
    path = base / "config.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def _shell(base: Path, variables: dict[str, str]) -> Path:
    """The variables for another terminal, with our programs in its path."""
    path = base / "env.sh"
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
    programs = shlex.quote(str(Path(sys.executable).parent))
    path.write_text("".join([*lines, f"export PATH={programs}:$PATH\n"]))
    return path
