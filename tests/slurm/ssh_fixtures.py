"""Login nodes for tests of the ssh transport: real sshds on loopback, each with a host key of its own, for the user who runs the tests."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.engines.slurm.ssh import Ssh

SSHD = shutil.which("sshd", path="/usr/local/sbin:/usr/sbin:/sbin") or "/usr/sbin/sshd"

NEVER = Path(f"/tmp/hpj-never-{os.getpid()}")
"""Made by whoever reads a word of `ODD` as shell."""

ODD = [
    "a b",
    f"$(touch {NEVER})",
    "`id`",
    'it\'s "so"',
    "a\nb\n",
    "-",
    "",
    "!!",
    "\\0101 \\n \\",
    "%d%s",
    "é😀",
    "*",
    "~",
    ";#&|<>",
    "\x1e\x1f\t",
]
"""Words that a shell, printf or a format would read otherwise."""


@dataclass
class Login:
    """One sshd, all of whose files are below ``folder``."""

    name: str
    folder: Path
    port: int
    settings: dict[str, str]
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start it and wait until it listens."""
        lines = [
            "ListenAddress 127.0.0.1",
            f"Port {self.port}",
            f"HostKey {self.folder}/host_key",
            f"AuthorizedKeysFile {self.folder.parent}/authorized_keys",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitUserEnvironment no",
            "PrintMotd no",
            *(f"{name} {value}" for name, value in self.settings.items()),
        ]
        config = self.folder / "sshd_config"
        config.write_text("\n".join(lines) + "\n")
        self.process = subprocess.Popen(
            [SSHD, "-D", "-f", config, "-E", self.folder / "log"], stdin=subprocess.DEVNULL, start_new_session=True
        )
        end = time.monotonic() + 10
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.02)
        raise RuntimeError(f"sshd does not listen: {(self.folder / 'log').read_text()}")

    def processes(self) -> list[int]:
        """The sshd and all below it, the newest last."""
        found = [self.process.pid] if self.process else []
        for pid in found:
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    found += [int(word) for word in (task / "children").read_text().split()]
        return found

    def signal(self, number: int) -> None:
        """A signal for the sshd and all its sessions."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """As when the machine is gone."""
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait(timeout=10)
            self.process = None

    def rekey(self) -> None:
        """Another host key, as on a machine that was made anew."""
        new_key(self.folder / "host_key")
        self.kill()
        self.start()

    @property
    def host_key(self) -> str:
        """Its public key."""
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])


@dataclass(frozen=True)
class Logins:
    """Several login nodes, and the client's files."""

    folder: Path
    nodes: list[Login]

    @property
    def config(self) -> str:
        """For ``ssh -F``."""
        return str(self.folder / "config")

    @property
    def names(self) -> list[str]:
        """As in the configuration of a cluster."""
        return [node.name for node in self.nodes]

    @property
    def bashrc(self) -> Path:
        """What bash reads at each log-in; not there at first."""
        return self.folder / "home" / ".bashrc"

    @property
    def known_hosts(self) -> Path:
        """The client's file of host keys."""
        return self.folder / "known_hosts"

    def know(self) -> None:
        """Write the host keys of now."""
        lines = [f"[127.0.0.1]:{node.port} {node.host_key}" for node in self.nodes]
        self.known_hosts.write_text("\n".join(lines) + "\n")


def new_key(path: Path) -> None:
    """A new pair of keys in place of the old one."""
    path.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def make_logins(folder: Path, count: int = 2, **settings: str) -> Iterator[Logins]:
    """So many login nodes, login-1 and so on, with a home of their own and further lines for their sshd_config."""
    folder.mkdir(parents=True, exist_ok=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    new_key(folder / "key")
    shutil.copy(folder / "key.pub", folder / "authorized_keys")
    home = folder / "home"
    home.mkdir()
    settings = {"SetEnv": ""} | settings
    settings["SetEnv"] = f"HOME={home} {settings['SetEnv']}".strip()
    logins = Logins(folder, [])
    blocks = []
    for index in range(count):
        own = folder / f"node{index + 1}"
        own.mkdir()
        new_key(own / "host_key")
        node = Login(f"login-{index + 1}", own, free_port(), settings)
        logins.nodes.append(node)
        blocks.append(f"Host {node.name}\n  HostName 127.0.0.1\n  Port {node.port}\n")
    user = pwd.getpwuid(os.getuid()).pw_name
    blocks.append(
        f"Host *\n  User {user}\n  IdentityFile {folder}/key\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
    )
    (folder / "config").write_text("".join(blocks))
    logins.know()
    try:
        for node in logins.nodes:
            node.start()
        yield logins
    finally:
        for node in logins.nodes:
            node.signal(signal.SIGCONT)
            node.kill()


def cluster_config(logins: Logins, **more: Any) -> SlurmCluster:
    """The configuration of a cluster with these login nodes."""
    way = {"orchestrator": "slurm", "transport": "ssh", "ssh_config": logins.config}
    return SlurmCluster.model_validate({**way, "login_nodes": logins.names, **more})


def connection_of(ssh: Ssh, number: int = 0) -> int:
    """The process of the master that a login node's commands share."""
    socket = ssh._nodes[number]._socket
    assert socket is not None
    told = subprocess.run(["ssh", "-O", "check", "-S", socket, "x"], capture_output=True, text=True, check=True).stderr
    return int(told.partition("pid=")[2].partition(")")[0])
