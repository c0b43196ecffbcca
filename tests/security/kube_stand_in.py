"""As much of Kubernetes' API as shows one running job with one pod, which prints what the test says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL

STAMP = "2026-11-21T12:00:00.000000000Z"
_TIME = "2026-11-21T12:00:00Z"


class StandIn(ThreadingHTTPServer):
    """The API server.

    Args:
        run_id: The run whose job and pod there are.
        lines: What the pod prints.
    """

    daemon_threads = True

    def __init__(self, run_id: str, lines: list[bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lines = lines
        self.asked: list[str] = []
        labels = {
            RUN_LABEL: run_id,
            "batch.kubernetes.io/job-completion-index": "0",
            "batch.kubernetes.io/job-name": f"run-{run_id}",
        }
        common = {"namespace": "default", "resourceVersion": "7", "creationTimestamp": _TIME}
        self.job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {**common, "name": f"run-{run_id}", "uid": "job-uid", "labels": labels},
            "spec": {"completions": 1, "parallelism": 1, "completionMode": "Indexed"},
            "status": {"active": 1, "ready": 1, "startTime": _TIME},
        }
        main = {
            "name": "run",
            "containerID": "containerd://0123456789abcdef",
            "ready": True,
            "restartCount": 0,
            "started": True,
            "state": {"running": {"startedAt": _TIME}},
        }
        self.pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**common, "name": f"run-{run_id}-0-abcde", "uid": "pod-uid-1", "labels": labels},
            "spec": {"nodeName": "n1", "containers": [{"name": "run", "image": "i"}]},
            "status": {"phase": "Running", "startTime": _TIME, "containerStatuses": [main]},
        }

    @property
    def kubeconfig(self) -> str:
        """A kubeconfig for it."""
        port = self.server_address[1]
        one = {"cluster": "c", "user": "u"}
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "x",
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "x", "context": one}],
            }
        )

    def answer(self, path: str) -> Any:
        """What there is at a path, or None."""
        lists = {
            "/apis/batch/v1/namespaces/default/jobs": ("JobList", [self.job]),
            "/api/v1/namespaces/default/pods": ("PodList", [self.pod]),
        }
        if path in lists:
            kind, items = lists[path]
            return {"kind": kind, "metadata": {"resourceVersion": "7"}, "items": items}
        for place, (_, (item,)) in lists.items():
            if path == f"{place}/{item['metadata']['name']}":  # type: ignore[index]
                return item
        if path == "/version":
            return {"major": "1", "minor": "34", "gitVersion": "v1.34.4"}
        return None


class _Handler(BaseHTTPRequestHandler):
    server: StandIn
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        self.server.asked.append(self.path)
        found = self.server.answer(parts.path)
        if parts.path.endswith("/log"):
            self._head(200, "text/plain")
            for line in self.server.lines:
                self.wfile.write(STAMP.encode() + b" " + line + b"\n")
            self.wfile.flush()
            self._hold(asked.get("follow") == "true")
        elif asked.get("watch"):
            self._head(200, "application/json")
            self.wfile.flush()
            self._hold(True)
        elif found is None:
            self._say(404, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
        else:
            self._say(200, found)

    def do_POST(self) -> None:
        self.do_GET()

    def _say(self, status: int, document: Any) -> None:
        self._head(status, "application/json")
        self.wfile.write(json.dumps(document).encode())

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()

    def _hold(self, held: bool) -> None:
        """Keep a stream open for a while."""
        if held:
            time.sleep(20)

    def log_message(self, *_: object) -> None:
        """Not on the test's terminal."""


@contextmanager
def standing_in(run_id: str, lines: list[bytes], kubeconfig: Path) -> Iterator[StandIn]:
    """Serve, and write the kubeconfig."""
    with StandIn(run_id, lines) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        kubeconfig.write_text(server.kubeconfig)
        yield server
        server.shutdown()
