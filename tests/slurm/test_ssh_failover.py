"""Login nodes that go away: the next one takes over, nothing runs twice, and the user is told."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.engines.slurm import ssh as module
from hyperpod_jlab.engines.slurm.ssh import Ssh, command_script
from tests.slurm.ssh_fixtures import Logins, cluster_config, make_logins

pytestmark = pytest.mark.local


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Patience for tests, and login nodes in the order of the configuration."""
    monkeypatch.setattr(module, "CONNECT_S", 3.0)
    monkeypatch.setattr(module, "ALIVE_S", 1)
    monkeypatch.setattr(module, "rotate_hosts", lambda hosts, _: list(hosts))


@pytest.fixture
def logins(tmp_path):
    with make_logins(tmp_path / "ssh") as logins:
        yield logins


@pytest.fixture
async def ssh(logins, tmp_path):
    """A transport whose Slurm is three small programs that write down each call of theirs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in {
        # Which login node it runs on, by the port that the user came in through.
        "squeue": 'set -- $SSH_CONNECTION; echo "$4"\n',
        "sacct": f"sleep 2; echo slow; date >>{tmp_path}/sacct.ran\n",
        "sbatch": f"cat >>{tmp_path}/sbatch.ran; echo run >>{tmp_path}/calls; sleep $1; echo 77\n",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}")
        (folder / name).chmod(0o755)
    ssh = Ssh(cluster_config(logins, commands=str(folder)))
    yield ssh
    await ssh.close()


async def node_used(ssh: Ssh, logins: Logins) -> str:
    """The login node that a reading command ran on."""
    port = int((await ssh.run(["squeue"])).out)
    return next(node.name for node in logins.nodes if node.port == port)


def calls(tmp_path: Path) -> int:
    """How often sbatch ran."""
    file = tmp_path / "calls"
    return len(file.read_text().splitlines()) if file.exists() else 0


async def test_the_first_one_is_used_and_nothing_is_said(ssh, logins):
    assert await node_used(ssh, logins) == "login-1"
    assert ssh.notes == ()


async def test_one_that_is_down_from_the_start(ssh, logins):
    logins.nodes[0].kill()
    assert await node_used(ssh, logins) == "login-2"
    assert len(ssh.notes) == 1
    assert "login-1" in ssh.notes[0]
    assert ssh.notes[0].endswith("; login-2 is used")


async def test_one_that_dies_between_commands(ssh, logins, tmp_path):
    assert await node_used(ssh, logins) == "login-1"
    logins.nodes[0].kill()
    assert (await ssh.run(["sbatch", "0"], stdin=b"x")).out == "77\n"
    assert await node_used(ssh, logins) == "login-2"
    assert calls(tmp_path) == 1
    assert "login-2 is used" in ssh.notes[0]


async def test_one_that_dies_during_commands_that_read(ssh, logins):
    await ssh.run(["squeue"])
    running = [asyncio.create_task(ssh.run(["sacct"])) for _ in range(12)]
    await asyncio.sleep(0.7)
    logins.nodes[0].kill()
    outputs = await asyncio.gather(*running)
    assert {output.out for output in outputs} == {"slow\n"}
    assert await node_used(ssh, logins) == "login-2"


async def test_an_answer_of_sbatch_that_is_lost_is_not_asked_for_again(ssh, logins, tmp_path):
    await ssh.run(["squeue"])
    sending = asyncio.create_task(ssh.run(["sbatch", "3"], stdin=b"#!/bin/sh\n"))
    await asyncio.sleep(1)
    logins.nodes[0].kill()
    with pytest.raises(UnreachableError) as caught:
        await sending
    assert caught.value.code == "answer_lost"
    assert calls(tmp_path) == 1
    assert await node_used(ssh, logins) == "login-2"


@pytest.mark.parametrize("cut", [0, 1, 20, 100_000])
def test_a_script_that_came_in_part_is_not_run(tmp_path, logins, cut):
    stdin = b"#!/bin/sh\n" + b"x" * 100_000
    sent = command_script(["tee", str(tmp_path / "ran")], stdin, "mark", cluster_config(logins))
    subprocess.run(["sh"], input=sent[: len(sent) - 2 - cut], capture_output=True)
    assert not (tmp_path / "ran").exists()
    subprocess.run(["sh"], input=sent, capture_output=True)
    assert (tmp_path / "ran").read_bytes() == stdin


async def test_one_that_hangs_before_a_command(ssh, logins, tmp_path):
    """Reading commands go on to the next one; whether sbatch ran is unknown, so it is not sent again."""
    await ssh.run(["squeue"])
    logins.nodes[0].signal(signal.SIGSTOP)
    sending = asyncio.create_task(ssh.run(["sbatch", "0"], stdin=b"x"))
    outputs = await asyncio.gather(*(ssh.run(["squeue"]) for _ in range(20)))
    assert {int(output.out) for output in outputs} == {logins.nodes[1].port}
    await asyncio.wait([sending])
    error = sending.exception()
    if isinstance(error, UnreachableError):
        assert error.code == "answer_lost"
    else:  # its ssh began when the connection was known to be dead
        assert sending.result().out == "77\n"
    sent = int(error is None)
    assert calls(tmp_path) == sent
    assert (await ssh.run(["sbatch", "0"], stdin=b"x")).out == "77\n"
    assert calls(tmp_path) == sent + 1
    assert "login-2 is used" in ssh.notes[0]


async def test_one_that_hangs_at_log_in(ssh, logins):
    logins.nodes[0].signal(signal.SIGSTOP)
    assert await node_used(ssh, logins) == "login-2"


async def test_the_only_one_that_is_there_takes_long(logins, ssh, monkeypatch):
    monkeypatch.setattr(module, "CONNECT_S", 30.0)
    logins.nodes[0].signal(signal.SIGSTOP)
    logins.nodes[1].kill()
    running = asyncio.create_task(node_used(ssh, logins))
    await asyncio.sleep(1.5)
    assert not running.done()
    logins.nodes[0].signal(signal.SIGCONT)
    assert await running == "login-1"


async def test_one_that_hangs_during_a_command(ssh, logins):
    await ssh.run(["squeue"])
    running = asyncio.create_task(ssh.run(["sacct"]))
    await asyncio.sleep(0.7)
    logins.nodes[0].signal(signal.SIGSTOP)
    assert (await running).out == "slow\n"
    assert await node_used(ssh, logins) == "login-2"


@pytest.mark.parametrize("connected", [False, True])
async def test_start_up_files_that_hang(ssh, logins, tmp_path, connected):
    """As with a home folder that does not answer. Over an open connection, a command times out first."""
    if connected:
        await ssh.run(["squeue"])
    logins.bashrc.write_text('set -- $SSH_CONNECTION; test "$4" = ' + f"{logins.nodes[1].port} || sleep 60\n")
    if connected:
        with pytest.raises(UnreachableError) as caught:
            await ssh.run(["squeue"], timeout=1.0)
        assert caught.value.code == "no_answer"
    assert (await ssh.run(["sbatch", "0"], stdin=b"x")).out == "77\n"
    assert calls(tmp_path) == 1
    assert await node_used(ssh, logins) == "login-2"
    assert "login-1 does not answer" in ssh.notes[0]


async def test_none_answers(ssh, logins):
    await ssh.run(["squeue"])
    for node in logins.nodes:
        node.kill()
    with pytest.raises(UnreachableError) as caught:
        await ssh.run(["squeue"])
    assert "login-1" in caught.value.message
    assert "login-2" in caught.value.message
    assert caught.value.code == "login_unreachable"
    assert len(ssh.notes) == 2


async def test_none_answered_and_now_one_does(ssh, logins):
    for node in logins.nodes:
        node.kill()
    with pytest.raises(UnreachableError):
        await ssh.run(["squeue"])
    logins.nodes[1].start()
    assert await node_used(ssh, logins) == "login-2"


async def test_one_that_is_back_is_used_again_and_the_note_goes(ssh, logins, monkeypatch):
    monkeypatch.setattr(module, "RETRY_S", 0.5)
    logins.nodes[0].kill()
    assert await node_used(ssh, logins) == "login-2"
    logins.nodes[0].start()
    assert await node_used(ssh, logins) == "login-2"
    await asyncio.sleep(0.6)
    end = time.monotonic() + 10
    while await node_used(ssh, logins) != "login-1":
        assert time.monotonic() < end
    assert ssh.notes == ()
