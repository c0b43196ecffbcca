"""Followers that are ended at random moments say nothing of it on stderr."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hyperpod_jlab.orchestrators.kubernetes.api.access import Access
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.api.pod_log import PodLog, Portion
from hyperpod_jlab.orchestrators.kubernetes.watching.pod_spool import PodSpool
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.kubernetes.stray import strays

POD = {
    "metadata": {"name": "p", "uid": "u", "resourceVersion": "1"},
    "spec": {"containers": [{"name": "c"}]},
    "status": {
        "phase": "Running",
        "containerStatuses": [
            {
                "name": "c",
                "restartCount": 0,
                "containerID": "containerd://1",
                "state": {"running": {"startedAt": "2026-11-23T10:00:00Z"}},
            }
        ],
    },
}


class ApiServer(BaseHTTPRequestHandler):
    """A pod that prints for ever."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        if "/log" not in self.path:
            body = json.dumps(POD).encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for number in range(10_000 if "follow" in self.path else 20):
                line = b"2026-11-23T10:00:00.%09dZ line %d\n" % (number, number)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                time.sleep(0.002)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), ApiServer) as made:
        made.daemon_threads = True
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()


class Spool(PodSpool):
    def _begin(self) -> None: ...

    def _put(self, portion: Portion) -> bool:
        time.sleep(0.001)
        return False


@pytest.mark.parametrize("seed", range(3))
def test_x(server: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    found = []
    for _ in range(100):
        moment = chance.random() * 0.15

        async def work() -> None:
            client = KubeClient(Access(server, False, dict))
            bundle = type("B", (), {"records": tmp_path})
            pod = type("P", (), {"name": "p", "uid": "u"})
            spool = Spool(bundle, pod, None)

            async def run():
                log = PodLog(client, "n", "p", "c")
                await spool.catch_up(log)
                await spool.follow(log)

            task = asyncio.create_task(run())
            await asyncio.sleep(moment)
            task.cancel()
            await asyncio.wait([task])
            await client.close()

        found += strays(work)
    from collections import Counter

    print(Counter(found))
    assert not found
