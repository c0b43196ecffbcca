"""Ports of a run's pods, through the API server: by HTTP and WebSocket at the Jupyter server, and by ``hpj forward``."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import ConflictError, HyperpodError, NotFoundError
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.features.ports.service import open_port, read_access
from tests.kubernetes.acting import Acting, settings, user
from tests.kubernetes.cluster import KubernetesTestbed
from tests.session import write_config

__all__ = ["user"]

TOKEN = secrets.token_hex(8)
PROGRAM = Path(__file__).parent / "port_program.py"


def _environment(cluster: KubernetesTestbed, user: Acting) -> dict[str, str]:
    config = user.folder / "config.toml"
    write_config(parse(Settings, settings(cluster, user.namespace)), config)
    return {**os.environ, "HYPERPOD_CONFIG": str(config), "KUBECONFIG": str(cluster.kubeconfig)}


@contextmanager
def jupyter(environment: dict[str, str], folder: Path) -> Iterator[str]:
    """A Jupyter server; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [
        sys.executable,
        "-m",
        "jupyter_server",
        "--no-browser",
        f"--port={port}",
        "--allow-root",
    ]
    words += [
        f"--IdentityProvider.token={TOKEN}",
        "--ServerApp.base_url=/user/alice/",
        f"--ServerApp.root_dir={folder}",
    ]
    words += [
        "--ServerApp.jpserver_extensions={'hyperpod_jlab': True}",
        "--ServerApp.allow_unauthenticated_access=False",
    ]
    with (folder / "jupyter.log").open("wb") as log:
        server = subprocess.Popen(words, env=environment, stdout=log, stderr=log, cwd=folder)
    try:
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < end, (folder / "jupyter.log").read_text()
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/user/alice/hyperpod/api/v1/"
    finally:
        server.terminate()
        server.wait(20)


async def _answers(user: Acting, run_id: str, node: int) -> bool:
    try:
        stream = await open_port(user.hyperpod.engines, user.hyperpod.runs, run_id, node, 6006)
        try:
            await stream.write(b"GET / HTTP/1.0\r\n\r\n")
            return bool(await stream.read())
        finally:
            await stream.close()
    except HyperpodError:
        return False


async def _serving(user: Acting, **spec: Any) -> str:
    """A run with the program, which listens."""
    shutil.copy(PROGRAM, user.folder / "program.py")
    source = {"kind": "script", "path": "program.py"}
    run_id = await user.submit(source=source, launcher="python", **spec)
    await user.running(run_id)
    for node in range(spec.get("resources", {}).get("nodes", 1)):
        end = time.monotonic() + 30
        while not await _answers(user, run_id, node):
            assert time.monotonic() < end, "it never listened"
            await asyncio.sleep(0.2)
    return run_id


@pytest.mark.full
async def test_pages_and_sockets_of_a_run_pass_through_the_jupyter_server(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    run_id = await _serving(user, resources={"nodes": 2})
    environment = _environment(kubernetes_cluster, user)
    with jupyter(environment, user.folder) as base:
        async with httpx.AsyncClient(base_url=f"{base}runs/{run_id}/ports/", timeout=30) as client:
            await _refuses_strangers(client)
            address = await _open(client, base, "6006")
            await _says_what_is_wrong(client, base)
            other = await _open(client, base, "1:6006")
        async with httpx.AsyncClient(timeout=30, headers={"Origin": "null"}) as page:
            page.base_url = httpx.URL(address)
            await _hands_on(page, client)
            await _streams(page)
            assert [(await page.get(each)).json()["node"] for each in (address, other)] == [
                "0",
                "1",
            ]
        await _echoes(address)
    await user.hyperpod.runs.act(run_id, "cancel")


async def _open(client: httpx.AsyncClient, base: str, port: str) -> str:
    """The address with a key, as a browser gets it that has logged in."""
    if "_xsrf" not in client.cookies:
        page = f"{base.partition('hyperpod/')[0]}login"
        for address in (page, f"{page}?token={TOKEN}"):  # the first sets the XSRF cookie
            await client.get(address)
    xsrf = {"X-XSRFToken": client.cookies["_xsrf"]}
    opened = await client.post(f"{port}/open", json={}, headers=xsrf)
    assert opened.status_code == 200, opened.text
    said = opened.json()
    led = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}
    first = await client.get(f"{base}{said['path']}?ticket={said['ticket']}", headers=led)
    assert first.status_code == 303, first.text
    return str(httpx.URL(base).join(first.headers["Location"]))


async def _refuses_strangers(client: httpx.AsyncClient) -> None:
    assert (await client.get("6006/")).status_code in {302, 403}
    assert (await client.post("6006/open", json={})).status_code == 403
    assert (await client.get("6006/~key/")).status_code == 403
    token = {"Authorization": f"token {TOKEN}"}
    async with httpx.AsyncClient(base_url=client.base_url, headers=token) as user:
        assert (await user.get("6006/")).status_code == 403


async def _hands_on(page: httpx.AsyncClient, client: httpx.AsyncClient) -> None:
    jar = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    headers = {
        "Cookie": f"{jar}; _xsrf=secret",
        "Authorization": f"token {TOKEN}",
        "X-Mine": "yes",
        "Referer": f"http://x/?token={TOKEN}",
        "X-XSRFToken": "secret",
    }
    for cookie in ("", "own=1"):  # the program has set one by its first answer
        path = f"a%20b/c?q=%C3%A4&q=2&token={TOKEN}"
        answer = await page.post(path, content="body", headers=headers)
        assert (answer.status_code, answer.reason_phrase) == (200, "Very well")
        assert "Set-Cookie" not in answer.headers
        assert answer.headers["Content-Security-Policy"].startswith("sandbox ")
        said = answer.json()
        asked = (said["method"], said["path"], said["body"])
        assert asked == ("POST", "/a%20b/c?q=%C3%A4&q=2", "body")
        got = {name.lower(): value for name, value in said["headers"]}
        assert (got["host"], got["x-mine"]) == ("localhost:6006", "yes")
        assert got.get("cookie", "") == cookie
        assert "secret" not in str(said)
        assert TOKEN not in str(said)
    away = await page.get("away")
    assert away.headers["Location"] == f"{page.base_url.path}there?x=1"
    for method in ("PUT", "DELETE", "PATCH"):
        assert (await page.request(method, "")).json()["method"] == method
    foreign = {"Origin": "http://evil.example"}
    assert (await page.get("", headers=foreign)).status_code == 403


async def _streams(page: httpx.AsyncClient) -> None:
    async with page.stream("GET", "slow") as answer:
        times = [(time.monotonic(), chunk) async for chunk in answer.aiter_raw()]
    assert b"".join(chunk for _, chunk in times) == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"
    assert times[-1][0] - times[0][0] > 0.4
    answers = await asyncio.gather(*(page.get("big") for _ in range(8)))
    assert {len(answer.content) for answer in answers} == {5_000_000}


async def _says_what_is_wrong(client: httpx.AsyncClient, base: str) -> None:
    async def said(port: str) -> tuple[int, str]:
        xsrf = {"X-XSRFToken": client.cookies["_xsrf"]}
        answer = await client.post(f"{port}/open", json={}, headers=xsrf)
        return answer.status_code, answer.json()["code"]

    assert await said("0") == (400, "invalid_input")
    assert await said("99999") == (400, "invalid_input")
    assert await said("x80") == (400, "invalid_input")
    assert await said("2:6006") == (404, "no_such_node")
    # That nothing listens may be known only when the address is opened.
    xsrf = {"X-XSRFToken": client.cookies["_xsrf"]}
    opened = await client.post("9/open", json={}, headers=xsrf)
    if opened.status_code == 200:
        opened = await client.get(await _open(client, base, "9"))
    assert (opened.status_code, opened.json()["code"]) == (422, "nothing_listens")


async def _echoes(address: str) -> None:
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus
    from websockets.typing import Origin

    socket = f"ws{address[4:]}socket"
    async with connect(socket, origin=Origin("null"), proxy=None) as opened:
        for text in ("hello", "x" * 60_000, "end"):
            await opened.send(text)
            assert await opened.recv() == text
    foreign = Origin("http://evil.example")
    for place, origin in ((socket, foreign), (socket.replace("/~", "/~x"), Origin("null"))):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(place, origin=origin, proxy=None):
                pass
        assert refused.value.response.status_code == 403


@pytest.mark.full
async def test_what_does_not_run_has_no_ports(user: Acting) -> None:
    run_id = await user.submit("true")
    await user.ended(run_id)
    with pytest.raises(ConflictError, match="has ended"):
        await open_port(user.hyperpod.engines, user.hyperpod.runs, run_id, 0, 80)
    access = await read_access(user.hyperpod.engines, user.hyperpod.runs, run_id)
    assert (access.ports, access.shells) == (False, ())
    with pytest.raises(NotFoundError):
        await open_port(user.hyperpod.engines, user.hyperpod.runs, "20260101-000000-aaaaaa", 0, 80)


@pytest.mark.full
async def test_the_shells_of_a_run_are_commands_that_work(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    run_id = await user.submit("sleep 600", resources={"nodes": 2})
    await user.running(run_id)
    access = await read_access(user.hyperpod.engines, user.hyperpod.runs, run_id)
    assert access.ports
    end = time.monotonic() + 30
    while [shell.node_rank for shell in access.shells] != [0, 1]:  # the workers begin later
        assert time.monotonic() < end, access
        await asyncio.sleep(0.2)
        access = await read_access(user.hyperpod.engines, user.hyperpod.runs, run_id)
    environment = {**os.environ, **kubernetes_cluster.environment}
    for shell in access.shells:
        command = shell.command.replace(" -it ", " -i ")
        done = await asyncio.to_thread(
            subprocess.run,
            command,
            shell=True,
            env=environment,
            input="hostname\n",
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.stdout.strip().endswith(
            f"{'master-0' if shell.node_rank == 0 else 'worker-0'}"
        ), done
    await user.hyperpod.runs.act(run_id, "cancel")


@pytest.mark.full
async def test_forward_opens_a_port_here_until_the_runs_end(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    run_id = await _serving(user)
    words = [sys.executable, "-m", "hyperpod_jlab.cli.main", "forward", run_id, "6006", "--json"]
    process = await asyncio.create_subprocess_exec(
        *words,
        env=_environment(kubernetes_cluster, user),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    said = json.loads(await asyncio.wait_for(process.stdout.readline(), 20))
    assert (said["run_id"], said["node"], said["port"]) == (run_id, 0, 6006)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{said['local_port']}") as client:
        answers = await asyncio.gather(*(client.get("/big") for _ in range(4)))
        assert {len(answer.content) for answer in answers} == {5_000_000}
        assert (await client.get("/x")).json()["path"] == "/x"
    # A program that says all it has to say, closes its half, and then reads.
    reader, writer = await asyncio.open_connection("127.0.0.1", said["local_port"])
    writer.write(b"GET /half HTTP/1.0\r\n\r\n")
    writer.write_eof()
    assert b"/half" in await asyncio.wait_for(reader.read(), 20)
    await user.hyperpod.runs.act(run_id, "cancel")
    _, told = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, "has ended (cancelled)" in told.decode()) == (0, True), told
