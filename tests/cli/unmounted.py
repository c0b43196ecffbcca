"""A child in a mount namespace of its own: the partition goes away while a run writes there, and comes back; or it can only be read.

The run has a mount of its own, as nodes of a cluster have; what reads its log is here, where the mount goes: ``hpj logs -f``, a Jupyter server
with its REST API, and a log socket.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from tests.cli.conftest import HPJ
from tests.mounts import tell

LINES = 60
TOKEN = "token-of-the-test"
SCRIPT = """
count() {{ for i in $(seq $1 $2); do echo line $i; sleep 0.05; done; }}
count 1 20
until [ -e {go} ]; do sleep 0.1; done
count 21 {lines}
"""
TIMEOUT = 60


class Space:
    """Where everything lies."""

    def __init__(self, root: Path) -> None:
        self.root, self.point = root, root / "mnt"
        self.real, self.go = root / "real", root / "go"
        for path in (self.real, self.point, root / "work"):
            path.mkdir()
        for name in ("STATE", "CACHE", "DATA", "CONFIG"):
            os.environ[f"XDG_{name}_HOME"] = str(root / name.lower())
        config = root / "config.toml"
        config.write_text(f'[storage]\npath = "{self.point}"\n')
        os.environ["HYPERPOD_CONFIG"] = str(config)
        os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
        os.environ["HOME"] = str(root / "work")

    def mount(self) -> None:
        subprocess.run(["mount", "--bind", self.real, self.point], check=True)

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", self.point], check=True)

    def hpj(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*HPJ, *words], capture_output=True, text=True, cwd=self.root / "work", timeout=TIMEOUT)

    def code(self, *words: str) -> str:
        """The code of the error that a command ends with."""
        last = self.hpj(*words, "--json").stderr.splitlines()[-1]
        return str(json.loads(last)["code"])

    def submit_elsewhere(self) -> str:
        """A run on nodes with a mount of their own."""
        done = subprocess.run(
            ["unshare", "--mount", *HPJ, "submit", "-c", SCRIPT.format(go=self.go, lines=LINES)],
            capture_output=True,
            text=True,
            check=True,
            cwd=self.root / "work",
        )
        return done.stdout.strip()


class Server:
    """A Jupyter server with this extension."""

    def __init__(self, space: Space) -> None:
        words = ["--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0", "--ServerApp.port_retries=50"]
        self._info = space.root / "runtime"
        os.environ["JUPYTER_RUNTIME_DIR"] = str(self._info)
        self._log = (space.root / "server.log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *words, f"--IdentityProvider.token={TOKEN}"],
            cwd=space.root / "work",
            stdout=self._log,
            stderr=self._log,
        )
        until(lambda: bool(list(self._info.glob("jpserver-*.json"))))
        told = json.loads(next(self._info.glob("jpserver-*.json")).read_text())
        self.url = f"{told['url']}hyperpod/api/v1"
        until(lambda: self.get("version")[0] == 200)

    def get(self, path: str) -> tuple[int, Any]:
        request = urllib.request.Request(f"{self.url}/{path}", headers=HEADERS)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except urllib.error.URLError:
            return 0, None

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


HEADERS = {"Authorization": f"token {TOKEN}"}


def until(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not there():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)


def start_reading(run_id: str, out: Path, err: Path) -> subprocess.Popen[bytes]:
    """Follow a run's log in a process of its own."""
    with out.open("wb") as to_out, err.open("wb") as to_err:
        return subprocess.Popen([*HPJ, "logs", "-f", run_id], stdout=to_out, stderr=to_err)


async def follow(server: Server, run_id: str, lines: list[str]) -> str:
    """Read a run's log from the socket until it ends; returns the last message's type."""
    request = HTTPRequest(server.url.replace("http", "ws", 1) + "/logs", headers=HEADERS)
    socket = await websocket_connect(request)
    await socket.write_message(json.dumps({"type": "subscribe", "id": 1, "run_id": run_id}))
    while True:
        message = await asyncio.wait_for(socket.read_message(), TIMEOUT)
        told: dict[str, Any] = json.loads(message) if message is not None else {"type": "closed"}
        if told["type"] not in {"subscribed", "frame"}:
            return str(told["type"])
        for block in told.get("blocks", ()):
            lines += (block["lines"] or "").splitlines()
        if "seq" in told:
            await socket.write_message(json.dumps({"type": "ack", "id": 1, "seq": told["seq"]}))


async def main(space: Space) -> dict[str, Any]:
    space.mount()
    run_id = space.submit_elsewhere()
    server = await asyncio.to_thread(Server, space)
    out, err = (space.root / name for name in ("out", "err"))
    reader = await asyncio.to_thread(start_reading, run_id, out, err)
    seen: list[str] = []
    socket = asyncio.create_task(follow(server, run_id, seen))
    try:
        await asyncio.to_thread(until, lambda: len(seen) > 5 and "line 5" in out.read_text())
        await asyncio.to_thread(server.get, "runs")
        (index,) = (space.root / "cache").rglob("index-*.sqlite")
        before = index.stat().st_ino
        space.unmount()
        gone = await asyncio.to_thread(while_gone, space, server, run_id)
        space.go.touch()
        await asyncio.sleep((LINES - 20) * 0.05 + 3)  # the run ends while nobody here can see it
        gone["follows"] = reader.poll() is None and not socket.done()
        space.mount()
        end = await asyncio.wait_for(socket, TIMEOUT)
        code = await asyncio.to_thread(reader.wait, TIMEOUT)
        status, run = await asyncio.to_thread(server.get, f"runs/{run_id}")
    finally:
        reader.kill()
        server.stop()
    listed = json.loads(space.hpj("runs", "--json").stdout)["runs"]
    return {
        "gone": gone,
        "socket": [end, seen],
        "reader": [code, out.read_text().splitlines(), err.read_text()],
        "run": [status, run.get("state")],
        "listed": [[one["run_id"] == run_id, one["state"]] for one in listed],
        "same_index": index.stat().st_ino == before,
    }


def while_gone(space: Space, server: Server, run_id: str) -> dict[str, Any]:
    """What is answered while nothing is mounted."""
    return {
        "commands": {
            name: space.code(*words)
            for name, words in {
                "runs": ("runs",),
                "show": ("show", run_id),
                "submit": ("submit", "-c", "true"),
                "link": ("storage", "link", "some-link"),
            }.items()
        },
        "rest": [[status, answer["code"]] for status, answer in (server.get("runs"), server.get(f"runs/{run_id}"))],
        "left": sorted(path.name for path in space.point.iterdir()),
    }


def read_only(space: Space) -> dict[str, Any]:
    """What can be done where the partition can only be read, with a run on it from before."""
    space.mount()
    before = space.hpj("submit", "-c", "echo there", "--wait", "--json")
    run_id = json.loads(before.stdout)["run_id"]
    # A run is told as ended a moment before its supervisor closes its last file, and a mount with an open writer is busy.
    until(lambda: subprocess.call(["mount", "-o", "remount,bind,ro", space.point]) == 0)
    files = sorted(str(path) for path in space.real.rglob("*"))
    refused = space.hpj("submit", "-c", "true", "--json")
    return {
        "refused": [refused.returncode, refused.stdout, json.loads(refused.stderr.splitlines()[-1])],
        "left": sorted(str(path) for path in space.real.rglob("*")) == files,
        "listed": [one["state"] for one in json.loads(space.hpj("runs", "--json").stdout)["runs"]],
        "log": space.hpj("logs", run_id).stdout,
        "storage": json.loads(space.hpj("storage", "--json", "--no-aws").stdout),
    }


if __name__ == "__main__":
    place = Space(Path(sys.argv[2]))
    tell(read_only(place) if sys.argv[1] == "read-only" else asyncio.run(main(place)))
