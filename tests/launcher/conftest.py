"""Small bundles, and launchers that really run in them."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hyperpod_jlab.launcher import launcher_source

T = TypeVar("T")

TIMEOUT = 60

NODE_PYTHON = os.environ.get("HYPERPOD_TEST_PYTHON", sys.executable)
"""The interpreter that runs the launcher; set the variable to try an older one."""


def until(look: Callable[[], T], what: str = "it", patience: float = TIMEOUT) -> T:
    """Wait until `look` gives something true; that is the answer."""
    deadline = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not come about in {patience} s"
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def processes_with(mark: str) -> list[int]:
    """Processes with this text in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if alive(pid)]


def kill_processes_with(mark: str) -> None:
    """Kill all processes with this text in their environment, those too that they start meanwhile."""
    empty_looks = 0
    while empty_looks < 2:  # a process that executes another program has no environment for a moment
        left = processes_with(mark)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        empty_looks = 0 if left else empty_looks + 1
        time.sleep(0.02)


@dataclass
class Bundle:
    """A bundle with its plan, and the launchers started in it."""

    folder: Path
    port: int = field(default_factory=free_port)
    launchers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def plan(self, *command: Any, **changes: Any) -> Bundle:
        """Write launch.json; the command's words, and whatever differs from the usual."""
        document = {
            "format": 1,
            "run_id": "test-run",
            "nodes": 1,
            "processes_per_node": 1,
            "launcher": "python",
            "python": sys.executable,
            "command": list(command),
            "cwd": "work",
            "variables": {},
            "secrets": [],
            "setup": None,
            "stop_grace": 1,
            "forward_signals": "caught",
            "cpus": None,
        }
        document.update(changes)
        (self.folder / "launch.json").write_text(json.dumps(document))
        return self

    def script(self, text: str, *arguments: str, **changes: Any) -> Bundle:
        """Have the ranks run a Python script."""
        (self.folder / "code" / "main.py").write_text(text)
        words = [{"python": True}, {"bundle": "code/main.py"}, *arguments]
        return self.plan(*words, **changes)

    def shell(self, command: str, **changes: Any) -> Bundle:
        """Have the ranks run a shell command."""
        return self.plan("/bin/bash", "-c", command, **changes)

    def start(
        self,
        node: int = 0,
        nodes: int = 1,
        *options: str,
        scheduler_id: str = "17",
        incarnation: str = "17.0",
        python: str = NODE_PYTHON,
        **popen: Any,
    ) -> subprocess.Popen[bytes]:
        """Start the launcher of one node."""
        words = [
            python,
            str(self.folder / "launcher.py"),
            "node",
            f"--node-rank={node}",
            f"--nodes={nodes}",
            "--master-addr=127.0.0.1",
            f"--master-port={self.port}",
            f"--scheduler-id={scheduler_id}",
            f"--incarnation={incarnation}",
            f"--node-name=node-{node}",
            *options,
        ]
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        launcher = subprocess.Popen(words, **popen)
        self.launchers.append(launcher)
        return launcher

    def run(self, *arguments: Any, **changes: Any) -> subprocess.CompletedProcess[bytes]:
        """Start the launcher of one node and wait for its end."""
        launcher = self.start(*arguments, **changes)
        out, err = launcher.communicate(timeout=TIMEOUT)
        return subprocess.CompletedProcess(launcher.args, launcher.returncode, out, err)

    def records(self, task: int | None = None) -> Path:
        return self.folder if task is None else self.folder / "tasks" / str(task)

    def status(self, name: str, attempt: int = 1, task: int | None = None) -> Any:
        """A record, or None."""
        path = self.records(task) / "status" / f"attempt-{attempt}" / name
        return json.loads(path.read_text()) if path.exists() else None

    def node(self, node: int = 0, attempt: int = 1, task: int | None = None) -> Any:
        return self.status(f"node-{node}.json", attempt, task)

    def as_if_it_failed(self, attempt: int = 1) -> None:
        """Change the records of an attempt that succeeded, which would be the last one."""
        folder = self.folder / "status" / f"attempt-{attempt}"
        for path in folder.glob("node-*.json"):
            path.write_text(json.dumps({**json.loads(path.read_text()), "exit_code": 1}))

    def logs(self, attempt: int = 1) -> Path:
        return self.folder / "logs" / f"attempt-{attempt}"

    def rank_log(self, local_rank: int = 0, node: int = 0, attempt: int = 1) -> bytes:
        path = self.logs(attempt) / f"node-{node}.rank-{local_rank}.log"
        return path.read_bytes() if path.exists() else b""

    def node_log(self, node: int = 0, attempt: int = 1) -> str:
        path = self.logs(attempt) / f"node-{node}.log"
        return path.read_text() if path.exists() else ""

    def rank_pids(self, node: int = 0, attempt: int = 1) -> list[int]:
        """The ranks' process ids, once all of them say something."""
        record = self.node(node, attempt)
        pids = [rank["pid"] for rank in record["ranks"]] if record else []
        return pids if pids and all(pids) else []

    def until_said(self, text: bytes, local_rank: int = 0, node: int = 0, attempt: int = 1) -> None:
        until(lambda: text in self.rank_log(local_rank, node, attempt), f"{text!r} in the log")


def make_bundle(folder: Path) -> Bundle:
    for part in ("code", "work", "logs", "status"):
        (folder / part).mkdir(parents=True)
    (folder / "launcher.py").write_bytes(launcher_source())
    return Bundle(folder)


@pytest.fixture
def bundle(tmp_path: Path) -> Iterator[Bundle]:
    made = make_bundle(tmp_path / "run")
    yield made
    for launcher in made.launchers:
        if launcher.poll() is None:
            launcher.kill()
        launcher.communicate()
    kill_processes_with(f"HYPERPOD_BUNDLE={made.folder}")


class WebhookServer:
    """A server on this machine, and the documents that were posted to it."""

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []
        posted = self.posted

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                posted.append(json.loads(self.rfile.read(length)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"


@pytest.fixture
def webhook() -> Iterator[WebhookServer]:
    made = WebhookServer()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()
