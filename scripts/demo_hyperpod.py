"""What `make demo ARGS=--hyperpod` runs on: an AWS API, a HyperPod cluster of it with a real Slurm behind, and a space of Studio, all on this machine.

Everything lies in one folder, and all of it is gone when the demo ends, however it ends.
"""

import contextlib
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.aws.attached import BedError  # noqa: E402 - the testbed is no package that is installed
from testbed.aws.endpoint import Endpoint  # noqa: E402
from testbed.aws.example import (  # noqa: E402
    ACCESS_KEY,
    add_file_system,
    add_others,
    client_environment,
    lustre,
)
from testbed.aws.example_telemetry import add_telemetry  # noqa: E402
from testbed.aws.lifecycle import Timings  # noqa: E402
from testbed.aws.server import AwsServer  # noqa: E402
from testbed.aws.slurm_bed import SCRIPT, AttachedSlurm, slurm_bed  # noqa: E402
from testbed.aws.state import Account  # noqa: E402
from testbed.aws.studio import SimulatedStudio  # noqa: E402
from testbed.aws.timeline import Timeline  # noqa: E402

__all__ = ["CLUSTER", "QUEUE", "BedError", "Place", "hyperpod_testbed", "what_is_missing"]

CLUSTER = "ml-slurm"
REGION = "us-west-2"
NODES = 4
QUEUE = "train"
TIMINGS = Timings(
    detected=timedelta(seconds=5),
    started=timedelta(seconds=30),
    rebooted=timedelta(seconds=15),
    ended=timedelta(seconds=15),
)
"""Much shorter than at AWS, where a replacement takes 20 to 30 minutes."""


@dataclass(frozen=True)
class Place:
    """Where the demo is.

    Attributes:
        environment: A file for a shell that is to be in the space of Studio too.
        kill: A command that ends one of the cluster's machines.
    """

    environment: Path
    kill: str


def what_is_missing() -> str | None:
    """What keeps the testbed from being started, and what to do about it."""
    if sys.platform != "linux" or os.getuid() != 0:
        return "--hyperpod needs Linux and root: it starts a Slurm cluster in namespaces"
    if shutil.which("slurmctld") is None or shutil.which("slurmd") is None:
        return "--hyperpod needs Slurm on this machine. Install it with: testbed/install-slurm.sh"
    return None


@contextlib.contextmanager
def hyperpod_testbed() -> Iterator[Place]:
    """Start all of it, and let this process and what it starts be in the space of Studio."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with contextlib.ExitStack() as stack:
        base = Path(tempfile.mkdtemp(prefix="hpj-demo-"))
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        base.chmod(0o755)  # the cluster's daemons go through it
        account = Account(timeline=Timeline(runs=True))
        account.add_caller(ACCESS_KEY)
        studio = SimulatedStudio(base / "studio", REGION, user_profile="alice")
        studio.write(account, others=Path("/proc/self/mountinfo").read_text())
        studio.mount_point.mkdir(parents=True)
        queues = f"dev:1-{NODES}:default {QUEUE}:1-{NODES}"
        words = ["--nodes", str(NODES), "--parts", queues, "--mount", studio.bind, *_programs()]
        bed = stack.enter_context(slurm_bed(base / "slurm", *words))
        endpoint = Endpoint(account)
        attached = AttachedSlurm(
            endpoint, bed, REGION, CLUSTER, timings=TIMINGS, storage=[lustre(REGION)]
        )
        add_others(account, REGION)
        add_file_system(account, REGION)
        add_telemetry(account, REGION)
        server = stack.enter_context(AwsServer(endpoint))
        stack.enter_context(attached)
        variables = {
            **client_environment(server.url, REGION),
            **studio.environment,
            "AWS_CONFIG_FILE": str(base / "no-aws-config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(base / "no-aws-credentials"),
            "HYPERPOD_CONFIG": str(_configuration(base, studio, bed)),
            "XDG_CACHE_HOME": str(base / "cache"),
        }
        os.environ.update(variables)
        os.environ.pop("AWS_PROFILE", None)
        yield Place(_shell(base, variables), f"{SCRIPT} node-kill {bed} ip-10-0-0-1")


def _programs() -> list[str]:
    """This Python and this package, for jobs on the nodes."""
    paths = {ROOT, Path(sys.prefix), Path(sys.base_prefix)} - {Path("/usr")}
    return [word for path in sorted(paths) for word in ("--bind", str(path))]


def _configuration(base: Path, studio: SimulatedStudio, bed: Path) -> Path:
    lines = (
        f'default_cluster = "{CLUSTER}"',
        "[storage]",
        f'path = "{studio.mount_point}"',
        f"[clusters.{CLUSTER}]",
        'orchestrator = "slurm"',
        f'hyperpod = "{CLUSTER}"',
        f'storage = "/fsx{studio.partition}"',
        f'python = "{sys.executable}"',
        f'slurm_conf = "{bed}/etc/slurm.conf"',
    )
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
