"""The second half of `make demo`: JupyterLab with the example notebook and the panel open.

It works in a copy of the examples (`.demo/examples/`), so that what is tried there changes nothing in the repository, and keeps its layout in a folder of its own.
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from jupyterlab_server.workspaces_handler import WorkspacesManager

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".demo" / "examples"
LOG = WORK.parent / "lab.log"
NOTEBOOK = "train_ddp.ipynb"
WORKSPACE = "hyperpod-demo"
PANEL = "hyperpod-panel"
FIRST_PORT = 8888
TIMEOUT = 60.0


def copy_examples() -> None:
    """Make the working copy; what is there already stays as the user left it."""
    for source in (ROOT / "examples").rglob("*"):
        target = WORK / source.relative_to(ROOT / "examples")
        if source.is_file() and not target.exists() and "__pycache__" not in source.parts:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def write_workspace(folder: Path) -> None:
    """The layout: our panel in front at the left, the notebook in the middle."""
    layout = {
        "left": {"collapsed": False, "visible": True, "current": PANEL, "widgets": [PANEL]},
        "main": {"current": f"notebook:{NOTEBOOK}"},
        "relativeSizes": [0.24, 0.76, 0],
    }
    data = {"data": {"layout-restorer:data": layout}, "metadata": {"id": WORKSPACE}}
    WorkspacesManager(str(folder)).save(WORKSPACE, json.dumps(data))


def free_port() -> int:
    """The first port from 8888 on that nobody listens on."""
    for port in range(FIRST_PORT, FIRST_PORT + 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError(f"no free port from {FIRST_PORT} on")


def answers(url: str) -> bool:
    """Whether the server is up."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def lab_process(port: int, token: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """JupyterLab on loopback; its own words go to a log file beside the examples."""
    display = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    command = [sys.executable, "-m", "jupyter", "lab", f"--ServerApp.port={port}"]
    command += ["--ServerApp.ip=127.0.0.1", "--ServerApp.port_retries=0", "--allow-root"]
    command += [f"--ServerApp.root_dir={WORK}", f"--LabApp.workspaces_dir={folder}"]
    command += [f"--LabApp.default_url=/lab/workspaces/{WORKSPACE}/tree/{NOTEBOOK}"]
    command += [] if display else ["--no-browser"]
    variables = {**os.environ, "JUPYTER_TOKEN": token, "JUPYTER_PREFER_ENV_PATH": "1"}
    with LOG.open("wb") as log:
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


def serve() -> int:
    """Start JupyterLab, say where it is, and wait for Ctrl-C; returns the exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # a closed terminal ends JupyterLab too
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    WORK.mkdir(parents=True, exist_ok=True)
    copy_examples()
    port, token = free_port(), secrets.token_hex(16)
    url = f"http://127.0.0.1:{port}/lab/workspaces/{WORKSPACE}/tree/{NOTEBOOK}?token={token}"
    with tempfile.TemporaryDirectory() as folder:
        write_workspace(Path(folder))
        with lab_process(port, token, Path(folder)) as process:
            deadline = time.monotonic() + TIMEOUT
            while not answers(f"http://127.0.0.1:{port}/api"):
                if process.poll() is not None or time.monotonic() > deadline:
                    print(f"demo: JupyterLab did not start; see {LOG}", file=sys.stderr)
                    return 1
                time.sleep(0.2)
            print(f"\n4. JupyterLab, with {NOTEBOOK} and the panel open (Ctrl-C ends it):\n   {url}", flush=True)
            try:
                return process.wait()
            except KeyboardInterrupt:
                print("\nJupyterLab has stopped; runs continue.", flush=True)
                return 0
