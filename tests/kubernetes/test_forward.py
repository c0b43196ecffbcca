"""Ports of a run's pods on this machine, through the API server, and shells there."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.access import read_access
from tests.forwarding import forward, refusal
from tests.kubernetes.acting import Acting, settings, user
from tests.kubernetes.cluster import KubernetesTestbed
from tests.session import write_config

__all__ = ["user"]

PROGRAM = Path(__file__).parent / "port_program.py"


@pytest.fixture
def environment(kubernetes_cluster: KubernetesTestbed, user: Acting) -> dict[str, str]:
    """The environment of a command of the cluster's user."""
    config = user.folder / "config.toml"
    write_config(parse(Settings, settings(kubernetes_cluster, user.namespace)), config)
    return {"HYPERPOD_CONFIG": str(config), "KUBECONFIG": str(kubernetes_cluster.kubeconfig)}


async def _first_answer(client: httpx.AsyncClient) -> httpx.Response:
    """The answer of a program that may not listen yet."""
    end = time.monotonic() + 30
    while True:
        try:
            return await client.get("/x")
        except httpx.TransportError:
            assert time.monotonic() < end
            await asyncio.sleep(0.2)


@pytest.mark.full
async def test_forward_carries_every_byte_until_the_runs_end(user: Acting, environment: dict[str, str]) -> None:
    shutil.copy(PROGRAM, user.folder / "program.py")
    source = {"kind": "script", "path": "program.py"}
    run_id = await user.submit(source=source, launcher="python", resources={"nodes": 2})
    await user.running(run_id)
    async with forward(run_id, "6006", "--node", "1", environment=environment) as forwarded:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{forwarded.port}") as client:
            said = (await _first_answer(client)).json()
            assert (said["path"], said["node"]) == ("/x", "1")
            answers = await asyncio.gather(*(client.get("/big") for _ in range(4)))
            assert {len(answer.content) for answer in answers} == {5_000_000}
        # A program that says all it has to say, closes its half, and then reads.
        assert b"/half" in await forwarded.ask(b"GET /half HTTP/1.0\r\n\r\n")
        assert await forwarded.interrupted() == 130
    assert await refusal(run_id, "6006", "--node", "2", environment=environment) == "no_such_node"
    async with forward(run_id, "9", environment=environment) as forwarded:
        assert await forwarded.ask(b"") == b""
        await user.hyperpod.runs.act(run_id, "cancel")
        code, told = await forwarded.ended()
    assert code == 0
    assert "port 9 of " in told
    assert "has ended (cancelled)" in told
    assert await refusal(run_id, "6006", environment=environment) == "wrong_state"


@pytest.mark.full
async def test_the_shells_of_a_run_are_commands_that_work(kubernetes_cluster: KubernetesTestbed, user: Acting) -> None:
    run_id = await user.submit("sleep 600", resources={"nodes": 2})
    await user.running(run_id)
    access = await read_access(user.hyperpod.engines, user.hyperpod.runs, run_id)
    assert access.reason is None
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
        assert done.stdout.strip().endswith(f"{'master-0' if shell.node_rank == 0 else 'worker-0'}"), done
    await user.hyperpod.runs.act(run_id, "cancel")
