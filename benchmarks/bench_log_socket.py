"""The log socket: lines a second, latency beside the log service's own, the server's memory, and what its start gains.

A real Jupyter server of its own process; a client in this one. For latency the client follows the same run by the log service
too, so that the difference is what the server adds.

python benchmarks/bench_log_socket.py [--json] [--quick]
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from log_fixtures import ROUNDS, arguments, median, percentile, report
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

TOKEN = "bench"
LINES = 2_000_000
STAMPS = 200
TABS = 20
LONGEST = 300.0
"""Seconds for one measurement; one that takes longer hangs."""
LONGEST_END = 20.0
LONG = f"seq -f 'step %.0f loss=0.123456 lr=3.0e-04 tokens/s=91000 ok 123456789' {LINES}"
STAMPED = f"""python3 -c "
import time
for _ in range({STAMPS}):
    time.sleep(0.05)
    print(time.monotonic_ns(), flush=True)
time.sleep(2)
" """
START = """
import time
from jupyter_server.serverapp import ServerApp
app = ServerApp(allow_unauthenticated_access=False, jpserver_extensions={"hyperpod_jlab": %s})
begin = time.perf_counter()
app.initialize(argv=["--allow-root"], find_extensions=False, new_httpserver=False)
print((time.perf_counter() - begin) * 1000)
"""


def places(home: Path) -> dict[str, str]:
    """An environment in which nothing of the user's own is touched."""
    found = {f"XDG_{name}_HOME": str(home / name) for name in ("DATA", "STATE", "CACHE", "CONFIG")}
    found |= {f"JUPYTER_{name}_DIR": str(home / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    return {**os.environ, **found, "HOME": str(home)}


def send(home: Path, command: str, run_id: str, *more: str) -> None:
    """Send a run to the local cluster."""
    hpj = [sys.executable, "-m", "hyperpod_jlab.cli.main", "submit", "-c", command]
    subprocess.run([*hpj, "--run-id", run_id, *more], env=places(home), cwd=home, check=True, capture_output=True)


@contextlib.contextmanager
def server(home: Path, environment: dict[str, str] | None = None, *extensions: str) -> Iterator[tuple[str, int]]:
    """A Jupyter server; its address and process id.

    Args:
        home: Of its user, and its root folder.
        environment: In place of one with that home.
        extensions: Modules with more server extensions.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = {
        "ServerApp.port": port,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "ServerApp.root_dir": home,
        "IdentityProvider.token": TOKEN,
        "ServerApp.jpserver_extensions": dict.fromkeys(("hyperpod_jlab", *extensions), True),
    }
    command = [sys.executable, "-m", "jupyter_server"]
    command += [f"--{name}={value}" for name, value in options.items()]
    with (
        (home / "server.log").open("wb") as log,
        subprocess.Popen(command, env=environment or places(home), cwd=home, stderr=log) as process,
    ):
        address = f"127.0.0.1:{port}/hyperpod/api/v1"
        try:
            wait_for(f"http://{address}/version?token={TOKEN}")
            yield address, process.pid
        finally:
            process.terminate()
            try:
                process.wait(LONGEST_END)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_for(url: str) -> None:
    """Wait until a server answers.

    Raises:
        TimeoutError: It does not.
    """
    for _ in range(600):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(0.1)
    raise TimeoutError("the server does not answer")


async def connect(address: str, run_id: str, **choice: Any) -> WebSocketClientConnection:
    """A socket that follows a run."""
    request = HTTPRequest(f"ws://{address}/logs", headers={"Authorization": f"token {TOKEN}"})
    page = await websocket_connect(request, max_message_size=1 << 30)
    message = {"type": "subscribe", "id": 1, "run_id": run_id, "ranks": [0], **choice}
    await page.write_message(json.dumps(message))
    return page


async def next_message(page: WebSocketClientConnection) -> str:
    """What the server sends next.

    Raises:
        ConnectionError: It has closed the socket.
    """
    message = await page.read_message()
    if message is None:
        raise ConnectionError("the server closed the socket")
    return str(message)


async def throughput(address: str) -> float:
    """Lines a second to a client that looks at the messages' text only."""
    begin = time.perf_counter()
    page = await connect(address, "long")
    count = 0
    while True:
        message = await next_message(page)
        if message.startswith('{"type":"frame"'):
            seq = int(message.split('"seq":', 1)[1].split(",", 1)[0])
            await page.write_message(json.dumps({"type": "ack", "id": 1, "seq": seq}))
            count += message.count("step ")
        elif message.startswith('{"type":"end"'):
            page.close()
            assert count == LINES, count
            return count / (time.perf_counter() - begin)
        elif message.startswith('{"type":"error"'):
            raise RuntimeError(message)


async def by_socket(address: str, run_id: str) -> list[float]:
    """Latencies in ms of stamped lines by the socket."""
    page = await connect(address, run_id)
    found: list[float] = []
    while len(found) < STAMPS:
        message = json.loads(await next_message(page))
        now = time.monotonic_ns()
        if message["type"] in {"end", "error"}:
            raise RuntimeError(f"{len(found)} of {STAMPS} lines came: {message}")
        if message["type"] == "frame":
            for block in message["blocks"]:
                found += [(now - int(line)) / 1e6 for line in (block["lines"] or "").split()]
            await page.write_message(json.dumps({"type": "ack", "id": 1, "seq": message["seq"]}))
    page.close()
    return found


async def by_service(run_id: str) -> list[float]:
    """The same by the log service in this process."""
    from hyperpod_jlab.logs.service import LogRequest
    from hyperpod_jlab.run.services import Hyperpod

    hyperpod = Hyperpod()
    found: list[float] = []
    async for batch in hyperpod.logs.lines(LogRequest(run_id, ranks=(0,), follow=True)):
        now = time.monotonic_ns()
        for block in batch.blocks:
            found += [(now - int(text)) / 1e6 for text in block.texts() if text.isdecimal()]
    await hyperpod.close()
    return found


def memory_of(pid: int) -> float:
    """A process' memory in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def tabs(address: str, pid: int) -> dict[str, float]:
    """The server's memory with no tab, and with many that follow the long log and take nothing in."""
    before = memory_of(pid)
    pages = [await connect(address, "long") for _ in range(TABS)]
    await asyncio.sleep(5)
    after = memory_of(pid)
    for page in pages:
        page.close()
    return {"before": before, "after": after}


def starts(rounds: int) -> list[float]:
    """What the server's start takes with this extension beyond one without any, in ms."""

    def one(extension: bool) -> float:
        done = subprocess.run([sys.executable, "-c", START % extension], capture_output=True, text=True, check=True)
        return float(done.stdout)

    one(True)
    return [one(True) - one(False) for _ in range(rounds)]


async def measure(home: Path, rounds: int) -> list[dict[str, Any]]:
    """All figures."""
    os.environ.update(places(home))
    send(home, LONG, "long", "--wait")
    rows: list[dict[str, Any]] = []
    with server(home) as (address, pid):
        async with asyncio.timeout(LONGEST * rounds):
            rates = [await throughput(address) for _ in range(rounds)]
        rows.append({"what": "lines/s to the socket", "value": round(median(rates))})
        send(home, STAMPED, "stamped")
        async with asyncio.timeout(LONGEST):
            ours, core = await asyncio.gather(by_socket(address, "stamped"), by_service("stamped"))
        for name, found in (("socket", ours), ("service", core)):
            for share in (0.5, 0.99):
                value = round(percentile(found, share), 1)
                rows.append({"what": f"{name}, p{share * 100:.0f} ms", "value": value})
        held = await tabs(address, pid)
        rows.append({"what": "server's MB", "value": round(held["before"])})
        rows.append({"what": f"with {TABS} stuck tabs", "value": round(held["after"])})
    rows.append({"what": "server's start gains, ms", "value": round(median(starts(rounds)), 1)})
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        rows = asyncio.run(measure(Path(name), rounds))
    report(options, f"The log socket, median of {rounds}", rows)


if __name__ == "__main__":
    main()
