"""Ports of runs on this machine: only those on which the run itself listens."""

from __future__ import annotations

import socket

import pytest

from hyperpod_jlab.core.errors import ConflictError, HyperpodError, NotFoundError, RefusedError
from hyperpod_jlab.engines.protocol import PortStream
from hyperpod_jlab.features.ports.service import open_port, read_access
from tests.local.conftest import LocalCluster

# The child does what a server with workers does: the rank's own process does not listen.
PROGRAM = """
import os, socket, subprocess, sys, time
text = '''
import socket
server = socket.create_server(("{address}", 0))
print(server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    data = b""
    while chunk := connection.recv(1000):
        data += chunk
    connection.sendall(b"heard " + data)
    connection.close()
'''
subprocess.run([sys.executable, "-c", text])
"""


async def serving(local: LocalCluster, address: str = "127.0.0.1") -> tuple[str, int]:
    (local.folder / "program.py").write_text(PROGRAM.replace("{address}", address))
    source = {"kind": "script", "path": "program.py"}
    run_id = await local.submit(source=source, launcher="python")
    await local.running(run_id)
    return run_id, int(local.log(run_id))


async def connect(local: LocalCluster, run_id: str, port: int, node: int = 0) -> PortStream:
    return await open_port(local.hyperpod.engines, local.hyperpod.runs, run_id, node, port)


async def refused(local: LocalCluster, run_id: str, port: int, node: int = 0) -> HyperpodError:
    with pytest.raises(HyperpodError) as caught:
        await (await connect(local, run_id, port, node)).close()
    return caught.value


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "127.0.0.9"])
async def test_a_program_of_the_run_is_reached_at_its_address(
    local: LocalCluster, address: str
) -> None:
    run_id, port = await serving(local, address)
    stream = await connect(local, run_id, port)
    await stream.write(b"all")
    await stream.end()
    assert await stream.read() == b"heard all"
    assert await stream.read() == b""
    assert not stream.alive
    await stream.close()
    access = await read_access(local.hyperpod.engines, local.hyperpod.runs, run_id)
    assert (access.ports, access.reason, access.shells) == (True, None, ())


async def test_no_other_program_of_this_machine_is_reached(local: LocalCluster) -> None:
    run_id, _ = await serving(local)
    other_run, other_port = await serving(local)
    with socket.create_server(("127.0.0.1", 0)) as own_program:
        ports = (own_program.getsockname()[1], other_port)
        errors = [await refused(local, run_id, port) for port in ports]
    assert {(type(error), error.code) for error in errors} == {(RefusedError, "other_program")}
    error = await refused(local, run_id, 9)
    assert (type(error), error.code) == (RefusedError, "nothing_listens")
    assert isinstance(await refused(local, run_id, other_port, node=1), NotFoundError)
    await (await connect(local, other_run, other_port)).close()


async def test_a_run_that_does_not_run_has_no_ports(local: LocalCluster) -> None:
    run_id, port = await serving(local)
    await local.hyperpod.runs.act(run_id, "cancel")
    await local.ended(run_id)
    assert isinstance(await refused(local, run_id, port), ConflictError)
