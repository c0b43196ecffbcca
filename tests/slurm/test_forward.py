"""Ports of runs' nodes on this machine, and shells there."""

from __future__ import annotations

import asyncio
import hashlib
import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from hyperpod_jlab.engines.slurm import run_nodes
from hyperpod_jlab.run.access import read_access
from tests.forwarding import forward, refusal
from tests.session import write_config
from tests.slurm.hyperpod_fixtures import SlurmSession, settings_for

PROGRAM = Path(__file__).parent / "port_program.py"
BIG = bytes(range(256)) * 40_960 + b"end"


async def serving(session: SlurmSession, **spec: Any) -> tuple[str, str, str]:
    """A run with the program; its id, the plain port and that of the pages, on node 0."""
    shutil.copy(PROGRAM, session.folder / "program.py")
    source = {"kind": "script", "path": "program.py"}
    run_id = await session.submit(source=source, launcher="python", **spec)
    child = f"{run_id}.1" if "array" in spec else run_id
    await session.until(child, lambda run: run.state == "running" and bool(session.log(child)))
    plain, pages = session.log(child).split()
    return child, plain, pages


@pytest.fixture
def environment(session: SlurmSession, transport: str, tmp_path: Path) -> dict[str, str]:
    """The environment of a command of the cluster's user."""
    config = tmp_path / "config.toml"
    write_config(settings_for(session.cluster, transport), config)
    return {"HYPERPOD_CONFIG": str(config)}


def in_terminal(command: str, line: str, awaited: str, last: str) -> tuple[int, str]:
    """Run a command in a terminal, type a line until it has been answered, then the last one; its exit code and output."""
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], stdin=other_end, stdout=other_end, stderr=other_end, start_new_session=True
    )
    os.close(other_end)
    output, end, typed_at = "", time.monotonic() + 60, 0.0
    try:
        while time.monotonic() < end:
            # What is typed before the far shell listens is thrown away.
            if awaited not in output and time.monotonic() > typed_at + 1:
                os.write(terminal, f"{line}\n".encode())
                typed_at = time.monotonic()
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    output += os.read(terminal, 65_536).decode(errors="replace")
                except OSError:  # the command has ended
                    break
                if awaited in output and last:
                    os.write(terminal, f"{last}\n".encode())
                    last = ""
        return process.wait(10), output
    finally:
        process.kill()
        os.close(terminal)


@pytest.mark.both_transports
async def test_forward_carries_every_byte_until_the_runs_end(
    session: SlurmSession, environment: dict[str, str]
) -> None:
    run_id, plain, pages = await serving(session)
    async with forward(run_id, plain, environment=environment) as forwarded:
        answers = await asyncio.gather(*(forwarded.ask(b"B") for _ in range(4)))
        assert all(data == BIG for data in answers)
        said = f"{len(BIG)} {hashlib.sha256(BIG).hexdigest()}"
        assert (await forwarded.ask(b"H" + BIG)).decode() == said
    async with forward(run_id, pages, environment=environment) as forwarded:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{forwarded.port}", timeout=30) as client:
            pages_got = await asyncio.gather(*(client.get("/program.py") for _ in range(6)))
        assert {page.text for page in pages_got} == {PROGRAM.read_text()}
        await session.hyperpod.runs.act(run_id, "cancel")
        code, told = await forwarded.ended()
    assert (code, "has ended (cancelled)" in told) == (0, True), told


@pytest.mark.both_transports
async def test_what_cannot_be_forwarded_says_why(session: SlurmSession, environment: dict[str, str]) -> None:
    run_id, plain, _ = await serving(session)
    assert await refusal(run_id, plain, "--node", "1", environment=environment) == "no_such_node"
    async with forward(run_id, plain, environment=environment) as forwarded:
        taken = ("--local-port", str(forwarded.port))
        assert await refusal(run_id, plain, *taken, environment=environment) == "port_taken"
        assert await forwarded.interrupted() == 130
    async with forward(run_id, "9", environment=environment) as forwarded:
        assert await forwarded.ask(b"") == b""  # the command says why, and goes on
        waiting = await session.submit("true", after=[run_id])
        await session.hyperpod.runs.act(waiting, "hold")
        assert await refusal(waiting, plain, environment=environment) == "wrong_state"
        await session.hyperpod.runs.act(run_id, "cancel")
        assert "connect" in (await forwarded.ended())[1]


async def test_a_task_of_an_array_has_its_own_ports(session: SlurmSession, environment: dict[str, str]) -> None:
    child, plain, _ = await serving(session, array="0-1")
    async with forward(child, plain, environment=environment) as forwarded:
        assert await forwarded.ask(b"B") == BIG


@pytest.mark.both_transports
async def test_the_shells_of_a_run_are_commands_that_work(session: SlurmSession) -> None:
    run_id = await session.submit("echo up; sleep 600", resources={"nodes": 2})
    await session.until(run_id, lambda run: bool(session.log(run_id, 1)))
    access = await read_access(session.hyperpod.engines, session.hyperpod.runs, run_id)
    assert access.reason is None
    assert [shell.node_rank for shell in access.shells] == [0, 1]
    for shell in access.shells:
        job = session.job_of(await session.hyperpod.runs.get(run_id))
        line = "echo on:$(hostname):$SLURM_JOB_ID:$(tty | head -c 5)"
        awaited = f"on:{shell.node}:{job}:/dev/"
        code, output = await asyncio.to_thread(in_terminal, shell.command, line, awaited, "exit 7")
        assert (code, awaited in output) == (7, True), output
    await session.hyperpod.runs.act(run_id, "cancel")


@pytest.mark.parametrize("transport", ["here"])
async def test_a_studio_space_says_what_to_use_for_shells(
    session: SlurmSession, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nodes cannot connect to it, which srun needs."""
    del transport
    run_id, _, _ = await serving(session)
    monkeypatch.setattr(run_nodes, "find_studio", object)
    access = await read_access(session.hyperpod.engines, session.hyperpod.runs, run_id)
    assert access.shells == ()
    assert "srun" in str(access.reason)


async def test_the_cluster_offers_shells(session: SlurmSession) -> None:
    clusters = await session.hyperpod.clusters.configured()
    assert "shells" in next(one.actions for one in clusters if one.name == "slurm")
