"""A space of Studio as its scripts see it: a root of its own, uid 1000, gid 100, sudo, a home that stays, ``/opt/conda``, and a partition at Studio's path.

Nothing is changed on the machine: the root is this machine's below an overlay in memory, and all processes of the space end with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).parent
FILE_SYSTEM = "fs-0123456789abcdef0"
POINT = Path("/mnt/custom-file-systems/fsx_lustre", FILE_SYSTEM)
HOME = Path("/home/sagemaker-user")
STATE = Path(".local/state/hyperpod-jlab")


@dataclass
class Space:
    """A space; as a context manager it is started and ended. Started again it has its home, and nothing else, of before.

    Attributes:
        base: Where home and settings lie; readable by everybody.
        partition: The folder that is mounted as the partition.
        conda: The image's Python.
        network: Whether it has the machine's network.
        variables: More variables of its processes.
        folder: The mounted folder's path on the file system; None: nothing is mounted, as the table of mounts says.
    """

    base: Path
    partition: Path
    conda: Path
    network: bool = True
    variables: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = "/alice"

    def __post_init__(self) -> None:
        (self.base / "bin").mkdir(parents=True)
        (self.base / "root").mkdir()
        home = self.base / "home"
        (home / "custom-file-systems" / "fsx_lustre").mkdir(parents=True)
        (home / "custom-file-systems" / "fsx_lustre" / FILE_SYSTEM).symlink_to(POINT)
        for path in (home, *home.rglob("*")):
            os.chown(path, 1000, 100, follow_symlinks=False)
        told = {"AppType": "JupyterLab", "DomainId": "d-example", "SpaceName": "work"}
        (self.base / "resource-metadata.json").write_text(json.dumps(told))

    @property
    def home(self) -> Path:
        """The home folder as this machine sees it."""
        return self.base / "home"

    def mark(self, name: str) -> None:
        """Before it is started: ``read-only``, ``read-only-home`` or ``no-sudo``."""
        (self.base / name).touch()

    def program(self, name: str, text: str) -> None:
        """Before it is started: a program in ``/usr/local/bin`` of the image."""
        path = self.base / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def __enter__(self) -> Self:
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL"]
        apart += [] if self.network else ["--net"]
        words = [HERE / "space.sh", self.base, self.base / "root", self.partition, POINT]
        self._process = subprocess.Popen(
            [*apart, "bash", *words, self.conda],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.base / "start.log").open("w"),
        )
        until = time.monotonic() + 20
        while not (first := self._first()):
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.base / "start.log").read_text())
            time.sleep(0.02)
        self._pid = first
        if self.folder is not None:
            line = f"30 22 0:40 / {POINT} rw - lustre 10.0.1.2@tcp:/abcdefgh{self.folder} rw\n"
        else:
            line = ""
        self.run("tee", "/run/mounts", input="22 1 259:1 / / rw - ext4 /dev/root rw\n" + line, root=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def _first(self) -> int | None:
        """The first process, once it sleeps in its root."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for pid in children.read_text().split() if children.exists() else ():
            if Path(f"/proc/{pid}/comm").read_text() == "sleep\n":
                return int(pid)
        return None

    def run(
        self,
        *words: str | Path,
        input: str | None = None,  # noqa: A002
        root: bool = False,
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as Studio's user, with the environment that Studio gives."""
        who = [] if root else ["setpriv", "--reuid=1000", "--regid=100", "--clear-groups", "--"]
        environment = {
            "HOME": str(HOME),
            "USER": "sagemaker-user",
            "PATH": "/opt/conda/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin",
            "LANG": "C.UTF-8",
            "AWS_REGION": "us-west-2",
            "HYPERPOD_MOUNT_TABLE": "/run/mounts",
            "AWS_EC2_METADATA_DISABLED": "true",
            **self.variables,
        }
        given = [f"{name}={value}" for name, value in environment.items()]
        into = [f"--target={self._pid}", "--mount", "--pid", "--net"]
        into += [f"--root=/proc/{self._pid}/root", f"--wd=/proc/{self._pid}/root{HOME}"]
        return subprocess.run(
            ["nsenter", *into, "--", *who, "env", "-i", *given, *words],
            input=input,
            stdin=None if input is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
        )

    def inside(self, path: str) -> Path:
        """A path of the space as this machine sees it, while it runs."""
        return Path(f"/proc/{self._pid}/root{path}")

    def lifecycle(self, script: str) -> tuple[float, subprocess.CompletedProcess[str]]:
        """Run a lifecycle configuration as Studio does; the seconds that it took, and what came of it."""
        path = "/run/lifecycle_script.sh"
        self.run("tee", path, input=script, root=True)
        self.run("chmod", "755", path, root=True)
        begin = time.monotonic()
        done = self.run(path)
        return time.monotonic() - begin, done

    def status(self) -> dict[str, Any]:
        """What the status file says; empty while there is none."""
        path = self.home / STATE / "lifecycle.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def ended(self, timeout: float = 300) -> dict[str, Any]:
        """The same once all is over."""
        until = time.monotonic() + timeout
        while self.status().get("state", "running") == "running":
            if time.monotonic() > until:
                raise TimeoutError(f"{self.status()}\n{self.log()}")
            time.sleep(0.05)
        return self.status()

    def log(self) -> str:
        """The log."""
        path = self.home / STATE / "lifecycle.log"
        return path.read_text() if path.exists() else ""
