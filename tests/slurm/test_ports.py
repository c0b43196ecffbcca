"""Ports and shells of runs' nodes, through a step of the run's own job."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from hyperpod_jlab.core.errors import (
    ConflictError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.engines.protocol import PortStream
from hyperpod_jlab.engines.slurm import ports as slurm_ports
from hyperpod_jlab.engines.slurm.ports import STEP, relay_program
from hyperpod_jlab.features.ports.service import open_port, read_access
from hyperpod_jlab.launcher.relay import SILENCE_S
from tests.session import write_config
from tests.slurm.hyperpod_fixtures import SlurmSession, settings_for

PROGRAM = Path(__file__).parent / "port_program.py"
BIG = bytes(range(256)) * 40_960 + b"end"


async def serving(session: SlurmSession, **spec: Any) -> tuple[str, int, int]:
    """A run with the program; its id, the plain port and that of the pages, on node 0."""
    shutil.copy(PROGRAM, session.folder / "program.py")
    source = {"kind": "script", "path": "program.py"}
    run_id = await session.submit(source=source, launcher="python", **spec)
    child = f"{run_id}.1" if "array" in spec else run_id
    await session.until(child, lambda run: run.state == "running" and bool(session.log(child)))
    plain, pages = map(int, session.log(child).split())
    return child, plain, pages


async def connect(session: SlurmSession, run_id: str, port: int, node: int = 0) -> PortStream:
    return await open_port(session.hyperpod.engines, session.hyperpod.runs, run_id, node, port)


def is_open(stream: PortStream) -> bool:
    return stream.alive


async def read_all(stream: PortStream) -> bytes:
    data = bytearray()
    while chunk := await stream.read():
        data += chunk
    return bytes(data)


def steps(session: SlurmSession) -> list[str]:
    """The steps that carry ports."""
    rows = session.cluster.exec("ctl", "squeue", "-h", "-s", "-o", "%i %j").splitlines()
    return [row.split()[0] for row in rows if row.split()[-1] == STEP]


async def no_steps(session: SlurmSession) -> None:
    end = time.monotonic() + 20
    while steps(session):
        assert time.monotonic() < end, steps(session)
        await asyncio.sleep(0.2)


def clients(job: str) -> list[int]:
    """The processes on this machine that carry ports of a job."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if f"--job-name={STEP}" in words and f"--jobid={job}" in words:
                found.append(int(folder.name))
    return found


def in_terminal(command: str, line: str, awaited: str, last: str) -> tuple[int, str]:
    """Run a command in a terminal, type a line until it has been answered, then the last one; its exit code and output."""
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        start_new_session=True,
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


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step without connections ends at once."""
    monkeypatch.setattr(slurm_ports, "_LINGER_S", 0.1)


@pytest.mark.both_transports
async def test_many_connections_share_one_step_and_carry_every_byte(
    session: SlurmSession, impatient: None
) -> None:
    run_id, plain, _ = await serving(session)

    async def fetch() -> bytes:
        stream = await connect(session, run_id, plain)
        await stream.write(b"B")
        data = await read_all(stream)
        await stream.close()
        return data

    # A connection that reads nothing holds up no other.
    slow = await connect(session, run_id, plain)
    await slow.write(b"B")
    assert all(data == BIG for data in await asyncio.gather(*(fetch() for _ in range(8))))
    assert len(steps(session)) == 1
    assert await read_all(slow) == BIG
    await slow.close()
    await no_steps(session)
    # The next connection starts another step.
    assert await fetch() == BIG


@pytest.mark.both_transports
async def test_a_side_that_has_no_more_to_say_still_hears(session: SlurmSession) -> None:
    run_id, plain, _ = await serving(session)
    stream = await connect(session, run_id, plain)
    await stream.write(b"H" + BIG)
    await stream.end()
    said = f"{len(BIG)} {hashlib.sha256(BIG).hexdigest()}"
    assert (await read_all(stream)).decode() == said
    await stream.close()
    echo = await connect(session, run_id, plain)
    await echo.write(b"E")
    for text in (b"one", b"two\n\n"):
        await echo.write(text)
        assert await echo.read() == text
    assert is_open(echo)
    await session.hyperpod.runs.act(run_id, "cancel")
    with contextlib.suppress(UnreachableError):  # a cut, or an end
        assert await read_all(echo) == b""
    assert not is_open(echo)
    await session.ended(run_id)


async def refused(opening: Any) -> HyperpodError:
    with pytest.raises(HyperpodError) as caught:
        await (await opening).close()
    return caught.value


@pytest.mark.both_transports
async def test_what_cannot_be_opened_says_why(session: SlurmSession) -> None:
    run_id, plain, _ = await serving(session)
    error = await refused(connect(session, run_id, 9))
    assert (type(error), error.code) == (RefusedError, "nothing_listens")
    error = await refused(connect(session, run_id, plain, node=1))
    assert (type(error), error.code) == (NotFoundError, "no_such_node")
    waiting = await session.submit("true", after=[run_id])
    await session.hyperpod.runs.act(waiting, "hold")
    error = await refused(connect(session, waiting, plain))
    assert (type(error), error.code) == (ConflictError, "wrong_state")
    await session.hyperpod.runs.act(run_id, "cancel")
    error = await refused(connect(session, run_id, plain))
    assert isinstance(error, ConflictError)


def other_users_program() -> subprocess.Popen[str]:
    """A program of another user that listens and prints its port. The nodes share this machine's ports."""
    text = (
        "import socket, time; s = socket.create_server(('127.0.0.1', 0)); "
        "print(s.getsockname()[1], flush=True); time.sleep(600)"
    )
    return subprocess.Popen(
        ["/usr/bin/python3", "-c", text], user=20001, stdout=subprocess.PIPE, text=True, cwd="/"
    )


async def test_another_users_program_is_not_opened(session: SlurmSession) -> None:
    run_id, plain, _ = await serving(session)
    other = other_users_program()
    try:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        error = await refused(connect(session, run_id, port))
    finally:
        other.kill()
        other.wait()
    assert (type(error), error.code) == (RefusedError, "other_users_port")
    await (await connect(session, run_id, plain)).close()


async def test_a_task_of_an_array_has_its_own_ports(session: SlurmSession) -> None:
    child, plain, _ = await serving(session, array="0-1")
    stream = await connect(session, child, plain)
    await stream.write(b"B")
    assert await read_all(stream) == BIG
    await stream.close()


@pytest.mark.parametrize("transport", ["here"])
async def test_a_killed_client_leaves_no_step(
    session: SlurmSession, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del transport
    program = relay_program().replace(f"SILENCE_S = {SILENCE_S}", "SILENCE_S = 3.0")
    assert program != relay_program()
    monkeypatch.setattr(slurm_ports, "relay_program", lambda: program)
    run_id, plain, _ = await serving(session)
    stream = await connect(session, run_id, plain)
    (step,) = steps(session)
    for pid in clients(step.partition(".")[0]):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(UnreachableError):
        assert await read_all(stream) == b""
    await no_steps(session)
    # A new one is started for the next connection.
    other = await connect(session, run_id, plain)
    await other.write(b"B")
    assert await read_all(other) == BIG
    await other.close()


async def test_a_controller_that_does_not_answer_says_so_and_open_steps_go_on(
    session: SlurmSession,
) -> None:
    run_id, plain, _ = await serving(session, resources={"nodes": 2})
    stream = await connect(session, run_id, plain)
    # A killed one would forget the job, and give its id to the next test's job.
    session.cluster.controller_stop()
    error = await refused(connect(session, run_id, plain, node=1))
    assert isinstance(error, UnreachableError)
    more = await connect(session, run_id, plain)
    for one in (stream, more):
        await one.write(b"B")
        assert await read_all(one) == BIG
        await one.close()


@pytest.mark.both_transports
async def test_the_shells_of_a_run_are_commands_that_work(session: SlurmSession) -> None:
    run_id = await session.submit("echo up; sleep 600", resources={"nodes": 2})
    await session.until(run_id, lambda run: bool(session.log(run_id, 1)))
    access = await read_access(session.hyperpod.engines, session.hyperpod.runs, run_id)
    assert (access.ports, access.reason) == (True, None)
    assert [shell.node_rank for shell in access.shells] == [0, 1]
    for shell in access.shells:
        job = session.job_of(await session.hyperpod.runs.get(run_id))
        line = "echo on:$(hostname):$SLURM_JOB_ID:$(tty | head -c 5)"
        awaited = f"on:{shell.node}:{job}:/dev/"
        code, output = await asyncio.to_thread(in_terminal, shell.command, line, awaited, "exit 7")
        assert (code, awaited in output) == (7, True), output
    await session.hyperpod.runs.act(run_id, "cancel")


@pytest.mark.both_transports
async def test_forward_opens_a_port_here_until_the_runs_end(
    session: SlurmSession, transport: str, tmp_path: Path
) -> None:
    run_id, _, pages = await serving(session)
    config = tmp_path / "config.toml"
    write_config(settings_for(session.cluster, transport), config)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hyperpod_jlab.cli.main", "forward", run_id, str(pages), "--json"),
        env={**os.environ, "HYPERPOD_CONFIG": str(config)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    said = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{said['local_port']}", timeout=30
    ) as client:
        answers = await asyncio.gather(*(client.get("/program.py") for _ in range(6)))
    assert {answer.text for answer in answers} == {PROGRAM.read_text()}
    await session.hyperpod.runs.act(run_id, "cancel")
    _, told = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, "has ended (cancelled)" in told.decode()) == (0, True), told


@pytest.mark.parametrize("transport", ["here"])
async def test_a_studio_space_says_what_to_use_instead(
    session: SlurmSession, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nodes cannot connect to it, which srun needs."""
    del transport
    run_id, plain, _ = await serving(session)
    monkeypatch.setattr(slurm_ports, "find_studio", object)
    error = await refused(connect(session, run_id, plain))
    assert (type(error), error.code) == (UnsupportedError, "no_srun")
    access = await read_access(session.hyperpod.engines, session.hyperpod.runs, run_id)
    assert (access.ports, access.reason) == (False, error.message)


async def test_the_cluster_offers_ports(session: SlurmSession) -> None:
    clusters = await session.hyperpod.clusters.configured()
    assert "ports" in next(one.actions for one in clusters if one.name == "slurm")
