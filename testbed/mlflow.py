"""A real MLflow server for tests and demos, from PyPI's package, and a gate before it that can be as bad as a server gets."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from testbed.loopback import Handler, Loopback

_READY_S = 90.0
_TRIES = 3
"""Starts, each with another port, if its port is taken before it listens."""

Mode = Literal["open", "failing", "denied", "hanging"]


class MlflowServer:
    """An MLflow tracking server with SQLite on a port of loopback while it is entered."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="hyperpod-mlflow-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._port: int | None = None

    @property
    def url(self) -> str:
        """Where it is, once it is entered."""
        assert self._port is not None, "the server was not entered"
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        try:
            for _ in range(_TRIES):
                if self._await_ready(self._start()):
                    return self
            raise RuntimeError(f"MLflow found its port taken {_TRIES} times")
        except BaseException:
            self._end()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        """Start it on a port that is free now; it listens some seconds later."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        words = (
            *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"),
            *("--port", str(self._port), "--workers", "1"),
            *("--backend-store-uri", f"sqlite:///{self._folder}/mlflow.db"),
            *("--artifacts-destination", str(self._folder / "artifacts")),
        )
        quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={**os.environ, **quiet},
                start_new_session=True,
            )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # it has workers
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def post(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Call an operation of its REST API."""
        request = urllib.request.Request(
            f"{self.url}/api/2.0/mlflow/{path}", json.dumps(document).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            found: dict[str, Any] = json.load(response)
            return found

    def runs_of(self, run_id: str) -> list[dict[str, Any]]:
        """Its runs with the tag of a run of ours, in all experiments, the oldest first."""
        known = self.post("experiments/search", {"max_results": 1000})["experiments"]
        found = self.post(
            "runs/search",
            {
                "experiment_ids": [one["experiment_id"] for one in known],
                "filter": f"tags.`hyperpod.run_id` = '{run_id}'",
                "order_by": ["attributes.start_time ASC"],
            },
        )
        runs: list[dict[str, Any]] = found.get("runs", [])
        return runs

    def _await_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether it listens; not if it has ended because its port was taken meanwhile."""
        end = time.monotonic() + _READY_S
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return True
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    text = (self._folder / "log").read_text(errors="replace")[-2000:]
                    if process.poll() is not None and "address already in use" in text:
                        return False
                    raise RuntimeError(f"MLflow did not start:\n{text}") from None
                time.sleep(0.1)


class MlflowGate(Loopback):
    """Passes requests on to a server, or does not, as its `mode` says.

    Attributes:
        mode: ``failing`` answers 500, ``denied`` 403, ``hanging`` never.
        asked: Paths of the requests so far, with their headers.
    """

    def __init__(self, server: str) -> None:
        self.server = server
        self.mode: Mode = "open"
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.released = threading.Event()
        """Ends what hangs."""
        super().__init__(_handler(self))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        super().__exit__(kind, error, trace)


def _handler(gate: MlflowGate) -> type[Handler]:
    class ToServer(Handler):
        def take(self) -> None:
            body = self.body()
            gate.asked.append((self.path, dict(self.headers)))
            if gate.mode == "hanging":
                gate.released.wait()
            if gate.released.is_set():
                self.close_connection = True
            elif gate.mode == "failing":
                self.answer(500, b"<html>Internal Server Error</html>")
            elif gate.mode == "denied":
                self.answer(403, b'{"error_code": "PERMISSION_DENIED", "message": "not yours"}')
            else:
                self.answer(*forward(f"{gate.server}{self.path}", body or None))

    return ToServer


def forward(url: str, body: bytes | None) -> tuple[int, bytes, dict[str, str]]:
    """Ask a server; its status, its answer and that one's type."""
    kind = {"Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, kind), timeout=30) as told:
            return told.status, told.read(), kind
    except urllib.error.HTTPError as error:
        return error.code, error.read(), kind
