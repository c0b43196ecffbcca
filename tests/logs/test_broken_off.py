"""Followers that are ended at random moments: nothing of it comes to stderr."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from hyperpod_jlab.engines.kubernetes.api.access import ApiAccess
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.watch import Informers
from hyperpod_jlab.engines.kubernetes.observe.native_recorder import PodRecorder
from hyperpod_jlab.engines.kubernetes.observe.pod_log import PodLog
from hyperpod_jlab.engines.kubernetes.observe.pods import parse_pod
from hyperpod_jlab.logs.follow import Hub
from hyperpod_jlab.logs.service import LogRequest, LogService
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.logs.writing import RunFolder

pytestmark = pytest.mark.local  # a server that prints for ever takes a core

MOMENTS = 40
LONGEST = 0.15

POD: dict[str, Any] = {
    "metadata": {"name": "p", "uid": "u", "resourceVersion": "1"},
    "spec": {"containers": [{"name": "c"}]},
    "status": {
        "phase": "Running",
        "containerStatuses": [
            {"name": "c", "containerID": "containerd://1", "state": {"running": {"startedAt": "2026-11-23T10:00:00Z"}}}
        ],
    },
}


class ApiServer(BaseHTTPRequestHandler):
    """A cluster of one pod, which prints for ever."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        if "watch" in self.path:
            self._say_for_ever(_event)
        elif "/log" in self.path:
            self._say_for_ever(lambda number: b"2026-11-23T10:00:00.%09dZ line\n" % number)
        else:
            found = {"metadata": {"resourceVersion": "1"}, "items": [POD]}
            self._answer(POD if self.path.endswith("/p") else found)

    def _answer(self, document: Mapping[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _say_for_ever(self, line: Callable[[int], bytes]) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for number in range(20 if "/log" in self.path and "follow" not in self.path else 10_000):
                data = line(number)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                time.sleep(0.002)  # the pace of what it sends; nothing waits for it
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _event(number: int) -> bytes:
    metadata = {**POD["metadata"], "resourceVersion": str(number + 2)}
    return json.dumps({"type": "MODIFIED", "object": {**POD, "metadata": metadata}}).encode() + b"\n"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), ApiServer) as made:
        made.daemon_threads = True
        made.handle_error = lambda *_: None
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()


@pytest.fixture(scope="module", autouse=True)
def quick_garbage_collector() -> None:
    """Each moment below ends with a collection, which is to find that moment's garbage and not to walk through all that is here."""
    gc.collect()
    gc.freeze()


def strays(work: Callable[[], Awaitable[None]]) -> list[str]:
    """Run something as `asyncio.run` does; what its end made Python say, which would come to stderr."""
    found: list[str] = []

    def loop_says(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        found.append(f"{context['message']}: {context.get('exception')!r}")

    def python_says(said: sys.UnraisableHookArgs) -> None:
        found.append(f"{said.err_msg}: {said.object!r}: {said.exc_value!r}")

    async def begin() -> None:
        await work()

    before, sys.unraisablehook = sys.unraisablehook, python_says
    try:
        with warnings.catch_warnings(record=True, action="always") as warned:
            with asyncio.Runner() as runner:
                runner.get_loop().set_exception_handler(loop_says)
                runner.run(begin())
            gc.collect()
        return found + [str(one.message) for one in warned]
    finally:
        sys.unraisablehook = before


Follow: TypeAlias = Callable[[str, Path], Any]


@asynccontextmanager
async def pod(server: str, folder: Path) -> AsyncIterator[Awaitable[None]]:
    """A pod's log is stored, as `hpj logs -f` and `hpj show` do for an own manifest."""
    client = KubeClient(ApiAccess(server, False, dict))
    bundle = BundleReader(Partition(folder), "20261121-120455-k3x9qd")
    bundle.folder.mkdir(parents=True, exist_ok=True)
    recorder = PodRecorder(bundle, "mine")
    log = PodLog(bundle, parse_pod(POD), 0, recorder, client, "n")

    async def follow() -> None:
        await log.copy(follow=False)
        await log.copy(follow=True)

    yield follow()
    await client.close()


@asynccontextmanager
async def watch(server: str, folder: Path) -> AsyncIterator[Awaitable[None]]:
    """Pods are watched."""
    client = KubeClient(ApiAccess(server, False, dict))
    watches = Informers(client)

    async def follow() -> None:
        found = watches.get("/api/v1/pods", lambda one: one["metadata"]["resourceVersion"])
        while True:
            await found.changed(found.version)

    yield follow()
    await watches.close()
    await client.close()


@asynccontextmanager
async def files(server: str, folder: Path) -> AsyncIterator[Awaitable[None]]:
    """A log on shared storage is followed, whatever the engine."""
    run = RunFolder(folder)
    run.ended = False
    logs = LogService(run, Hub(notifications=False))

    async def follow() -> None:
        async with aclosing(logs.lines(LogRequest("run", follow=True))) as batches:
            async for batch in batches:
                run.write(0, f"after {len(batch)}\n")
                await asyncio.sleep(0.001)

    run.write(0, "first\n")
    yield follow()
    await logs.close()


@pytest.mark.parametrize("follower", [pod, watch, files])
@pytest.mark.parametrize("tidy", [True, False])
def test_a_follower_is_broken_off(server: str, tmp_path: Path, follower: Follow, tidy: bool) -> None:
    """It is cancelled and waited for, or left to the end of the loop."""
    chance = random.Random(tidy)

    async def work() -> None:
        async with follower(server, tmp_path) as follow:
            task = asyncio.create_task(follow)
            await asyncio.sleep(chance.random() * LONGEST)
            assert not task.done()
            if tidy:
                task.cancel()
                await asyncio.wait([task])

    assert [said for _ in range(MOMENTS) for said in strays(work)] == []
