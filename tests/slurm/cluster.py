"""Real Slurm clusters on this machine: the testbed's script as an object."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.shared import OneAtATime

TESTBED = Path(__file__).parent.parent.parent / "testbed"
SCRIPT = TESTBED / "slurm-testbed.sh"
INSTALL = TESTBED / "install-slurm.sh"

ONE = OneAtATime()
"""The clusters of a worker start by it, but for tests that need two."""

# Known before any test gives itself another cache folder.
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
_ROOTS = {"22.05": None, "24.11": _CACHE / "hyperpod-jlab" / "slurm-24.11"}

#: alice and bob are users of the hosts, not of this machine.
USERS = {"root": 0, "alice": 20001, "bob": 20002}
PARTITION_ON_NODES = Path("/fsx/team")

_LEFT = "squeue -h -o %F && sinfo -h -N -o %N -t drain,fail,down"
"""Jobs, and nodes that are not in use."""
_BROKEN = set[Path]()
"""Folders of the clusters of which something may not run."""


@dataclass(frozen=True)
class Call:
    """One call of a Slurm command."""

    at: float
    name: str
    args: tuple[str, ...]


@dataclass(frozen=True)
class SlurmTestbed:
    """A running cluster, all of whose state is below ``folder``."""

    folder: Path
    version: str
    partition: Path
    """The shared folder where the user has it: on this machine and on ``ctl``."""
    nodes: tuple[str, ...]
    login_hosts: tuple[str, ...]
    partition_on_nodes: Path = PARTITION_ON_NODES
    """The same folder on the nodes and the login nodes, where ``partition`` is not to be seen."""

    # ------------------------------------------------------------------------------ clients

    @property
    def environment(self) -> dict[str, str]:
        """What a process on this machine needs in its environment to be a client of the cluster (its calls are counted)."""
        return {
            "SLURM_CONF": str(self.folder / "etc" / "slurm.conf"),
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }

    @property
    def ssh_config(self) -> Path:
        """For ``ssh -F``; it knows ``login_hosts`` by their names, their keys and root's and the users' key."""
        return self.folder / "ssh" / "config"

    @property
    def ssh_key(self) -> Path:
        """The private key that root and all users are let in with."""
        return self.folder / "ssh" / "id_ed25519"

    @property
    def python_on_nodes(self) -> str:
        """A Python that all users can run on all hosts: this very one where it can be shown there."""
        if self.version != "22.05" and Path(sys.base_prefix) == Path("/usr"):
            return "/usr/bin/python3"
        return sys.executable

    def calls(self) -> list[Call]:
        """The Slurm commands that were called through ``environment`` or on a login node, in order."""
        found = []
        for line in (self.folder / "calls.log").read_text().split("\n")[:-1]:
            at, name, *args = line.split("\x1f")
            found.append(Call(float(at), name, tuple(args)))
        return found

    def forget_calls(self) -> None:
        """Counts from now on."""
        os.truncate(self.folder / "calls.log", 0)

    # ------------------------------------------------------------------------------ programs on hosts

    def run(
        self,
        host: str,
        *args: str | Path,
        user: str | None = None,
        input: str | None = None,  # noqa: A002
        environment: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program on ``ctl`` (the controller; it has the user's view of the partition), a node or a login node."""
        who = ["--as", user] if user else []
        return subprocess.run(
            [SCRIPT, "exec", self.folder, *who, host, *args],
            input=input,
            stdin=None if input is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, **(environment or {})},
            timeout=timeout,
        )

    def exec(self, host: str, *args: str | Path, user: str | None = None, timeout: float = 60) -> str:
        """The same; returns what it prints, raises when it fails."""
        done = self.run(host, *args, user=user, timeout=timeout)
        if done.returncode != 0:
            raise RuntimeError(f"{args} on {host}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def ssh(self, host: str, *args: str, user: str = "root", timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Runs a command on a login node as a user would, by ssh from this machine."""
        return subprocess.run(
            ["ssh", "-F", self.ssh_config, "-o", "BatchMode=yes", f"{user}@{host}", *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    # ------------------------------------------------------------------------------ faults

    def command(self, name: str, *args: str, timeout: float = 90) -> str:
        """Runs a command of the testbed's script; returns what it prints, raises with its complaint."""
        _BROKEN.add(self.folder)
        done = subprocess.run(
            [SCRIPT, name, self.folder, *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if done.returncode != 0:
            raise RuntimeError(f"slurm-testbed.sh {name} {args}: {done.returncode}: {done.stderr}")
        return done.stdout

    def node_kill(self, node: str) -> None:
        """As a crash: slurmd and all processes of its jobs are gone."""
        self.command("node-kill", node)

    def node_start(self, node: str) -> None:
        """Starts slurmd again; returns when the controller can use the node."""
        self.command("node-start", node)

    def node_clock(self, node: str, offset: str) -> None:
        """Gives what starts on the node from now on another time of day: ``+5m``, ``-300``; ``off``."""
        self.command("node-clock", node, offset)

    def controller_kill(self) -> None:
        """The controller is gone at once, and with it the jobs that came in its last seconds: it saves its state later."""
        self.command("ctl-kill")

    def controller_stop(self) -> None:
        """The controller ends in good order."""
        self.command("ctl-stop")

    def controller_start(self) -> None:
        """Starts the controller again; returns when it answers."""
        self.command("ctl-start")

    def controller_hang(self) -> None:
        """The controller takes connections and says nothing, until ``controller_resume``."""
        self.command("ctl-hang")

    def controller_resume(self) -> None:
        """It answers what it was asked meanwhile."""
        self.command("ctl-resume")

    def munge_kill(self) -> None:
        """No credentials for anyone."""
        self.command("munge-kill")

    def munge_start(self) -> None:
        """Credentials again."""
        self.command("munge-start")

    def login_kill(self, host: str) -> None:
        """sshd and all sessions there are gone; connections are refused."""
        self.command("login-kill", host)

    def login_start(self, host: str) -> None:
        """Starts sshd again."""
        self.command("login-start", host)

    def login_hang(self, host: str) -> None:
        """sshd and all sessions say nothing; connections are taken, until ``login_resume``."""
        self.command("login-hang", host)

    def login_resume(self, host: str) -> None:
        """They go on."""
        self.command("login-resume", host)

    def login_rekey(self, host: str, *, back: bool = False) -> None:
        """Gives the login node another host key, which ``ssh_config`` does not know; ``back``: the one that it knows."""
        self.command("login-rekey", host, *(["--back"] if back else []))

    # ------------------------------------------------------------------------------ between tests

    def heal(self) -> None:
        """Makes it usable for the next test: everything runs, no jobs, all nodes in use, no calls.

        Where no command has broken anything since, one look tells whether there is something to do: the whole cure is a dozen of them.
        """
        if self.folder not in _BROKEN:
            left = self.run("ctl", "sh", "-c", _LEFT)
            if left.returncode == 0 and not left.stdout:
                if (self.folder / "calls.log").exists():
                    self.forget_calls()
                return
        self.command("heal")
        _BROKEN.discard(self.folder)


def install(version: str) -> None:
    """Installs what is missing for this version; raises with the reason when that cannot be done."""
    root = _ROOTS[version]
    command: list[str | Path] = [INSTALL, "--trixie", root] if root else [INSTALL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise RuntimeError(f"Slurm {version} is not installed and cannot be: {done.stdout}{done.stderr}")
    if os.getuid() != 0:
        raise RuntimeError("The tests on a real Slurm need root: it takes namespaces and users.")


def standard_options() -> list[str]:
    """A cluster as users have it: accounts, accounting, two login nodes, 4 nodes with 8 GPUs, a short queue and a long one."""
    people = [f"{name}:{uid}" for name, uid in USERS.items() if uid]
    return [
        *("--users", " ".join(people), "--dbd", "--accounts", "research:alice,bob"),
        *("--login", "2", "--partition-extra", "dev=MaxTime=60 DefaultTime=10"),
    ]


def _binds() -> list[str]:
    """This Python and this package, for jobs of all users on all hosts."""
    paths = {TESTBED.parent, Path(sys.prefix), Path(sys.base_prefix)} - {Path("/usr")}
    return [word for path in sorted(paths) for word in ("--bind", str(path))]


@contextmanager
def running(
    *options: str, version: str = "22.05", on_nodes: Sequence[str] = (), nodes: int = 4
) -> Iterator[SlurmTestbed]:
    """A cluster with these options of ``slurm-testbed.sh start``, stopped at the end however that comes.

    Users, login nodes and accounting are there only when the options say so; ``on_nodes`` are the nodes that
    have the partition (all).
    """
    install(version)
    root = _ROOTS[version]
    # Not below pytest's own folder, which only its user may enter: jobs run as others.
    base = Path(tempfile.mkdtemp(prefix="hpj-slurm-"))
    base.chmod(0o755)
    partition = base / "home" / "fsx"
    partition.mkdir(parents=True)
    partition.chmod(0o1777)
    mount = f"{partition}:{PARTITION_ON_NODES}" + (f":{','.join(on_nodes)}" if on_nodes else "")
    logins = int(options[options.index("--login") + 1]) if "--login" in options else 0
    cluster = SlurmTestbed(
        folder=base / "cluster",
        version=version,
        partition=partition,
        nodes=tuple(f"node{number + 1}" for number in range(nodes)),
        login_hosts=tuple(f"login{number + 1}" for number in range(logins)),
    )
    words = ["--nodes", str(nodes), "--mount", mount, "--count-calls", "--owner", str(os.getpid())]
    words += [*_binds(), *options]
    if root:
        words += ["--root", str(root)]
    try:
        try:
            cluster.command("start", *words, timeout=150)
        except RuntimeError as error:  # seen once, on a machine that stopped other clusters
            print(f"the cluster did not come up, once more: {error}")
            subprocess.run([SCRIPT, "stop", cluster.folder, "--purge"], capture_output=True)
            cluster.command("start", *words, timeout=150)
        yield cluster
    finally:
        subprocess.run([SCRIPT, "stop", cluster.folder, "--purge"], capture_output=True)
        shutil.rmtree(base, ignore_errors=True)
