"""A real Jupyter server for the browser: a scratch home, partition and state, its own port and token; it can be killed and started again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

START_TIMEOUT = 60.0
PYTHON = os.environ.get("LAB_PYTHON", sys.executable)
"""The interpreter of the environment under test (`scripts/check-versions.sh` sets another one)."""
LAB_EXTENSIONS = "share/jupyter/labextensions"
TOKEN = "token-of-the-browser-tests"


def free_port() -> int:
    """A TCP port on loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class LabServer:
    """JupyterLab (or Notebook 7) as a user starts it, in a home of its own.

    Attributes:
        home: The user's home; `work` in it is the server's root folder.
        work: What the file browser shows.
        port: Where it listens, from its first start on.

    Args:
        home: See above; its folder is made.
        application: `lab` or `notebook`.
        slots: Of the embedded cluster.
        config: The configuration, in place of one with only that cluster.
        notebook_jobs: Whether jupyter-scheduler is switched on.
    """

    def __init__(
        self,
        home: Path,
        application: str = "lab",
        *,
        slots: int = 4,
        config: str | None = None,
        notebook_jobs: bool = False,
    ) -> None:
        self.home = home
        self.work = home / "work"
        self.work.mkdir(parents=True)
        self.application = application
        self.port: int | None = None
        #: What the server is started by, such as setpriv.
        self.started_by: tuple[str, ...] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._extensions = {"jupyter_scheduler": notebook_jobs}
        own = f'[storage]\npath = "{home / "fsx"}"\n[clusters.local]\nslots = {slots}\n'
        (home / "config.toml").write_text(own if config is None else config)
        self.set_setting("@jupyterlab/apputils-extension/notification", {"fetchNews": "false"})
        bin_folder = Path(PYTHON).parent
        self._front_ends = bin_folder.parent / LAB_EXTENSIONS
        if not notebook_jobs:
            self._front_ends = _without_scheduler(self._front_ends, home / "labextensions")
        self.environment = {
            "HOME": str(home),
            "PATH": f"{bin_folder}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HYPERPOD_CONFIG": str(home / "config.toml"),
            "JUPYTER_PREFER_ENV_PATH": "1",
            "AWS_EC2_METADATA_DISABLED": "true",  # no test asks a real AWS
            **{f"XDG_{name}_HOME": str(home / name.lower()) for name in ("STATE", "CACHE", "DATA")},
        }

    @property
    def url(self) -> str:
        """The server's base URL, without the token."""
        assert self.port is not None, "the server was never started"
        return f"http://127.0.0.1:{self.port}"

    @property
    def page_url(self) -> str:
        """Where the application's page is, token included."""
        page = "lab" if self.application == "lab" else "tree"
        return f"{self.url}/{page}?token={TOKEN}"

    @property
    def log(self) -> str:
        """What the server has written so far."""
        return (self.home / "server.log").read_text(errors="replace")

    def set_setting(self, plugin: str, values: dict[str, object]) -> None:
        """Set what the user has set of a plugin (`package/name`), before the page is opened."""
        path = self.home / ".jupyter/lab/user-settings" / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))

    def start(self) -> None:
        """Start the server and wait until it answers; each time on the same port, where its pages look for it."""
        if self.port is None:
            self.port = free_port()
        command = [*self.started_by, PYTHON, "-m", "jupyter", self.application, "--no-browser", "--allow-root"]
        command += [f"--ServerApp.port={self.port}", "--ServerApp.port_retries=0"]
        command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={self.work}"]
        command += [f"--IdentityProvider.token={TOKEN}"]
        command += [f"--ServerApp.jpserver_extensions={self._extensions}"]
        command += [f"--LabServerApp.labextensions_path={self._front_ends}"]
        command += ["--expose-app-in-browser", "--LabApp.news_url=None"]
        command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
        with (self.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.work, env=self.environment, stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server does not start:\n{self.log[-3000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill -9, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End the server as Ctrl-C does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def hpj(self, *arguments: str) -> str:
        """Run `hpj` as the same user; returns what it prints."""
        hpj = Path(PYTHON).parent / "hpj"
        done = subprocess.run(
            [hpj, *arguments],
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def cancel_all(self) -> None:
        """Cancel what still runs."""
        for run in json.loads(self.hpj("runs", "--json"))["runs"]:
            if run["state"] in {"submitting", "waiting", "running"}:
                self.hpj("cancel", run["run_id"])

    def _answers(self) -> bool:
        request = urllib.request.Request(
            f"{self.url}/hyperpod/api/v1/version", headers={"Authorization": f"token {TOKEN}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _without_scheduler(installed: Path, folder: Path) -> Path:
    """A folder with links to the installed front ends but jupyter-scheduler's. A page loads one that is switched off, too, and warns of its versions."""
    for manifest in [*installed.glob("*/package.json"), *installed.glob("@*/*/package.json")]:
        name = manifest.parent.relative_to(installed)
        if name != Path("@jupyterlab/scheduler"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(manifest.parent)
    return folder


@contextmanager
def lab_server(
    home: Path,
    application: str = "lab",
    config: str | None = None,
    environment: Mapping[str, str] | None = None,
    started_by: tuple[str, ...] = (),
    *,
    notebook_jobs: bool = False,
) -> Iterator[LabServer]:
    """A server that runs until the block ends, and leaves no run behind; `environment` is what it has beyond its own."""
    server = LabServer(home, application, config=config, notebook_jobs=notebook_jobs)
    server.started_by = started_by
    server.environment.update(environment or {})
    try:
        server.start()
        yield server
    finally:
        server.stop()
        if (home / "fsx").exists():
            server.cancel_all()
