"""``hpj forward`` of runs on this machine."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from hyperpod_jlab.run.access import read_access
from tests.forwarding import forward, refusal, start
from tests.local.conftest import LocalCluster

PROGRAM = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    data = b""
    while chunk := connection.recv(65_536):
        data += chunk
    connection.sendall(b"heard " + data)
    connection.close()
"""


async def serving(local: LocalCluster) -> tuple[str, str]:
    """A run with the program; its id and port."""
    (local.folder / "program.py").write_text(PROGRAM)
    source = {"kind": "script", "path": "program.py"}
    run_id = await local.submit(source=source, launcher="python")
    await local.running(run_id)
    return run_id, local.log(run_id).strip()


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


async def test_a_port_of_this_machine_is_itself_or_another_one(local: LocalCluster) -> None:
    run_id, port = await serving(local)
    async with forward(run_id, port) as itself:
        assert str(itself.port) == port
        assert await itself.ask(b"all") == b"heard all"
    wanted = free_port()
    async with forward(run_id, port, "--local-port", wanted) as other:
        assert str(other.port) == wanted
        big = bytes(range(256)) * 10_000
        answers = await asyncio.gather(*(other.ask(big) for _ in range(4)))
        assert set(answers) == {b"heard " + big}
        await local.hyperpod.runs.act(run_id, "cancel")
        code, told = await other.ended()
    assert (code, "has ended (cancelled)" in told) == (0, True), told
    assert await refusal(run_id, port) == "wrong_state"


async def test_an_interrupt_ends_it_though_a_connection_is_open(local: LocalCluster) -> None:
    run_id, port = await serving(local)
    async with forward(run_id, port, "--local-port", free_port()) as forwarded:
        _, writer = await asyncio.open_connection("127.0.0.1", forwarded.port)
        writer.write(b"more follows")
        await writer.drain()
        assert await forwarded.interrupted() == 130
        writer.close()


async def test_what_cannot_be_forwarded_says_why(local: LocalCluster) -> None:
    run_id, port = await serving(local)
    assert await refusal("no-such-run", port) == "no_such_run"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        local_port = str(taken.getsockname()[1])
        assert await refusal(run_id, port, "--local-port", local_port) == "port_taken"
    async with forward(run_id, free_port(), "--local-port", free_port()) as forwarded:
        assert await forwarded.ask(b"") == b""
        await local.hyperpod.runs.act(run_id, "cancel")
        assert "does not take connections" in (await forwarded.ended())[1]


async def test_the_proxy_of_jupyter_is_named_where_it_is_installed(local: LocalCluster, tmp_path: Path) -> None:
    run_id, port = await serving(local)
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "jupyter_server_proxy.py").touch()
    path = f"{packages}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    url = "http://localhost:8888/user/alice/"
    for environment, named in (({}, ""), ({"PYTHONPATH": path, "JUPYTER_SERVER_URL": url}, "in")):
        process = await start(run_id, port, environment=environment)
        assert process.stdout is not None
        first = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
        assert first.startswith(f"http://127.0.0.1:{port} ")
        second = process.stdout.readline()
        if named:
            told = (await asyncio.wait_for(second, 30)).decode()
            assert f" /user/alice/proxy/{port}/;" in told
            assert "Jupyter's rights" in told
            process.terminate()
        else:
            process.terminate()
            assert await second == b""
        await process.wait()


async def test_there_is_no_shell_to_copy(local: LocalCluster) -> None:
    run_id, _ = await serving(local)
    access = await read_access(local.hyperpod.engines, local.hyperpod.runs, run_id)
    assert (access.reason, access.shells) == ("local clusters have no shells on nodes", ())
