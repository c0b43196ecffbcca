"""Commands over ssh, against real sshds on loopback: the words, the answers, the connection."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import DeniedError, InvalidInputError, UnreachableError
from hyperpod_jlab.engines.slurm import ssh as module
from hyperpod_jlab.engines.slurm.ssh import Ssh
from tests.slurm.ssh_fixtures import NEVER, ODD, Logins, cluster_config, connection_of, free_port, make_logins, new_key

pytestmark = pytest.mark.local


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Patience for tests, and login nodes in the order of the configuration."""
    monkeypatch.setattr(module, "CONNECT_S", 4.0)
    monkeypatch.setattr(module, "ALIVE_S", 1)
    monkeypatch.setattr(module, "rotate_hosts", lambda hosts, _: list(hosts))


@pytest.fixture(scope="module")
def steady(tmp_path_factory):
    """Login nodes that no test harms."""
    with make_logins(tmp_path_factory.mktemp("ssh")) as logins:
        yield logins


@pytest.fixture
def logins(tmp_path):
    """Login nodes of the test's own."""
    with make_logins(tmp_path / "ssh") as logins:
        yield logins


@pytest.fixture
async def connect():
    """Makes transports that are closed after the test."""
    made = []

    def make(logins: Logins, **more) -> Ssh:
        made.append(Ssh(cluster_config(logins, **more)))
        return made[-1]

    yield make
    for ssh in made:
        await ssh.close()


def script(folder: Path, name: str, text: str) -> str:
    """A program for the login node; returns its folder."""
    (folder / name).write_text(f"#!/bin/sh\n{text}")
    (folder / name).chmod(0o755)
    return str(folder)


def configure(logins: Logins, change) -> None:
    """Change the client's configuration file."""
    config = Path(logins.config)
    config.write_text(change(config.read_text()))


# ------------------------------------------------------------------------------------------------ words and answers


@pytest.mark.parametrize("program", ["printf", "squeue"])
async def test_odd_words_arrive_as_they_are(steady, connect, tmp_path, program):
    folder = script(tmp_path, program, "printf '%s\\0' \"$@\"\n")
    output = await connect(steady, commands=folder).run([program, *ODD])
    assert output.out.split("\0")[:-1] == ODD
    assert not NEVER.exists()


@pytest.mark.parametrize("program", ["cat", "squeue"])
async def test_input_arrives_whole(steady, connect, tmp_path, program):
    folder = script(tmp_path, "squeue", "exec cat\n")
    text = "".join(f"line {n} \\n $(id) é\n" for n in range(10_000)) + "\n\n"
    commands = folder if program == "squeue" else None
    output = await connect(steady, commands=commands).run([program], stdin=text.encode())
    assert len(text) > 200_000
    assert output.out == text


@pytest.mark.parametrize("code", [0, 1, 126, 254])
async def test_the_exit_code_is_the_commands(steady, connect, code):
    output = await connect(steady).run(["sh", "-c", f"echo a; echo b >&2; exit {code}"])
    assert (output.code, output.out, output.err) == (code, "a\n", "b\n")


async def test_a_signal_is_told_as_here(steady, connect):
    output = await connect(steady).run(["sh", "-c", "kill -9 $$"])
    assert output.code == 128 + 9


async def test_what_start_up_files_print_is_not_the_answer(logins, connect):
    logins.bashrc.write_text("echo 'Welcome! 12345'; echo 'quota: 12345' >&2; printf no-newline\n")
    output = await connect(logins).run(["sh", "-c", "echo 7; echo e >&2"])
    assert (output.out, output.err) == ("7\n", "e\n")


async def test_variables_that_change_the_commands_go(logins, connect):
    logins.bashrc.write_text(
        "export SBATCH_ACCOUNT=other SQUEUE_FORMAT='%A\nSBATCH_X=y' SLURM_JOB_ID=7 SLURM_CONF=/a MINE=1 SINFO_FORMAT=x\n"
    )
    output = await connect(logins).run(["env"])
    names = dict(line.partition("=")[::2] for line in output.out.splitlines())
    assert names["SLURM_TIME_FORMAT"] == "%s"
    assert names["SLURM_CONF"] == "/a"
    assert names["MINE"] == "1"
    assert not {"SBATCH_ACCOUNT", "SQUEUE_FORMAT", "SLURM_JOB_ID", "SINFO_FORMAT"} & names.keys()


async def test_the_configured_folder_and_file(logins, connect, tmp_path):
    folder = tmp_path / "o'dd $(x) dir"
    folder.mkdir()
    script(folder, "squeue", 'echo "$SLURM_CONF"; echo "$PATH"\n')
    ssh = connect(logins, commands=str(folder), slurm_conf="/etc/s $(id).conf")
    conf, path = (await ssh.run(["squeue"])).out.splitlines()
    assert conf == "/etc/s $(id).conf"
    assert path.startswith(f"{folder}:")


async def test_a_command_that_is_not_there(steady, connect):
    with pytest.raises(UnreachableError) as caught:
        await connect(steady, commands="/nowhere").run(["squeue"])
    assert caught.value.code == "no_slurm_client"
    assert "login-1" in caught.value.message


async def test_a_command_that_takes_too_long(steady, connect):
    ssh = connect(steady)
    with pytest.raises(UnreachableError) as caught:
        await ssh.run(["sleep", "30"], timeout=1.0)
    assert caught.value.code == "no_answer"
    assert ssh.notes == ()


async def test_words_that_cannot_be_sent(steady, connect):
    with pytest.raises(InvalidInputError):
        await connect(steady).run(["echo", "a\0b"])
    assert (await connect(steady).run(["env", "x" * 200_000])).code == 126


# ------------------------------------------------------------------------------------------------ the connection


async def test_fifty_commands_at_once_over_one_connection(steady, connect):
    ssh = connect(steady)
    outputs = await asyncio.gather(*(ssh.run(["echo", str(n)]) for n in range(50)))
    assert [output.out for output in outputs] == [f"{n}\n" for n in range(50)]
    log = (steady.nodes[0].folder / "log").read_text()
    assert "no more sessions" not in log


@pytest.mark.parametrize("sessions", ["1", "3"])
async def test_a_login_node_with_few_sessions(tmp_path, connect, sessions):
    with make_logins(tmp_path / "few", 1, MaxSessions=sessions) as logins:
        ssh = connect(logins)
        outputs = await asyncio.gather(*(ssh.run(["echo", str(n)]) for n in range(12)))
    assert [output.out for output in outputs] == [f"{n}\n" for n in range(12)]


def ssh_processes(logins: Logins, folder: Path = Path("none")) -> set[str]:
    """The ssh processes that use these login nodes, and the master whose socket is in this folder, each with its words."""
    text = subprocess.run(["ps", "-wweo", "pid=,args="], capture_output=True, text=True).stdout
    marks = (f"{logins.config} ", f"{folder}/")
    return {line.strip() for line in text.splitlines() if any(mark in line for mark in marks)}


def wait_for_no_process(logins: Logins, folder: Path) -> None:
    """Wait until the master and all others have ended."""
    end = time.monotonic() + 5
    while left := ssh_processes(logins, folder):
        assert time.monotonic() < end, left
        time.sleep(0.05)


async def test_closing_leaves_nothing(logins):
    ssh = Ssh(cluster_config(logins))
    await ssh.run(["true"])
    folder = ssh._nodes[0]._socket.parent
    (master,) = ssh_processes(logins, folder)
    assert master.startswith(f"{connection_of(ssh)} ")
    waiting = asyncio.create_task(ssh.run(["sleep", "60"]))
    await asyncio.sleep(0.5)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await ssh.close()
    assert not folder.exists()
    await asyncio.to_thread(wait_for_no_process, logins, folder)


async def test_closing_while_a_connection_is_made(logins):
    ssh = Ssh(cluster_config(logins))
    logins.nodes[0].signal(signal.SIGSTOP)
    running = asyncio.create_task(ssh.run(["true"]))
    await asyncio.sleep(0.3)
    await ssh.close()
    with pytest.raises(UnreachableError):
        await running
    assert ssh_processes(logins) == set()


async def test_after_closing_it_can_be_used_again(steady, connect):
    ssh = connect(steady)
    await ssh.run(["true"])
    await ssh.close()
    assert (await ssh.run(["echo", "1"])).out == "1\n"


@pytest.mark.parametrize("end", ["kill", "exit"])
def test_after_a_process_that_ends_without_closing_nothing_stays(logins, tmp_path, monkeypatch, end):
    code = (
        "import asyncio, os, sys\n"
        "from hyperpod_jlab.engines.slurm import ssh as module\n"
        "from tests.slurm.ssh_fixtures import Logins, cluster_config\n"
        "from pathlib import Path\n"
        "module.IDLE_S = 1\n"
        f"ssh = module.Ssh(cluster_config(Logins(Path({str(logins.folder)!r}), []), login_nodes=['login-1']))\n"
        "asyncio.run(ssh.run(['true']))\n"
        "print(ssh._nodes[0]._socket.parent, flush=True)\n"
        f"{'os.kill(os.getpid(), 9)' if end == 'kill' else 'sys.exit(0)'}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    folder = Path(done.stdout.strip())
    assert folder.name.startswith("hpj-ssh-"), done.stderr
    deadline = time.monotonic() + 10
    while list(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(folder.iterdir()) == []
    monkeypatch.setattr(module, "_STALE_S", 0.0)
    module._make_folder().rmdir()
    assert not folder.exists()


async def test_the_folder_of_a_socket_is_private(steady, connect):
    ssh = connect(steady)
    await ssh.run(["true"])
    assert ssh._nodes[0]._socket.parent.stat().st_mode & 0o777 == 0o700
    assert len(str(ssh._nodes[0]._socket)) < 60


async def test_a_connection_that_nobody_uses_is_closed_and_made_anew(steady, connect, monkeypatch):
    monkeypatch.setattr(module, "IDLE_S", 1)
    ssh = connect(steady)
    await ssh.run(["true"])
    end = time.monotonic() + 10
    while ssh._nodes[0].connected:
        assert time.monotonic() < end
        await asyncio.sleep(0.05)
    assert (await ssh.run(["echo", "1"])).out == "1\n"
    assert ssh._nodes[0].connected
    assert ssh.notes == ()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_without_its_connection_a_command_goes_to_the_same_node(steady, connect, number):
    ssh = connect(steady)
    await ssh.run(["true"])
    os.kill(connection_of(ssh), number)
    outputs = await asyncio.gather(*(ssh.run(["echo", str(n)]) for n in range(9)))
    assert [output.out for output in outputs] == [f"{n}\n" for n in range(9)]
    assert ssh.notes == ()


# ------------------------------------------------------------------------------------------------ who is let in


async def refused(ssh: Ssh, kind: type[Exception] = DeniedError):
    with pytest.raises(kind) as caught:
        await ssh.run(["touch", str(NEVER)])
    assert not NEVER.exists()
    return caught.value


async def test_a_key_that_is_refused(logins, connect):
    new_key(logins.folder / "key")
    error = await refused(connect(logins))
    assert error.code == "ssh_key_refused"
    assert "login-1" in error.message
    assert "login-2" in error.message


async def test_a_host_key_that_is_unknown_is_not_added(logins, connect):
    logins.known_hosts.write_text("")
    configure(logins, lambda text: f"StrictHostKeyChecking no\n{text}")
    error = await refused(connect(logins, login_nodes=["login-1"]))
    assert error.code == "host_key_unknown"
    assert "fingerprint" in error.hint
    assert f"ssh -F {logins.config} login-1" in error.hint
    assert logins.known_hosts.read_text() == ""


async def test_a_host_key_that_has_changed(logins, connect):
    configure(logins, lambda text: f"StrictHostKeyChecking no\n{text}")
    before = logins.known_hosts.read_text()
    logins.nodes[0].rekey()
    error = await refused(connect(logins, login_nodes=["login-1"]))
    assert error.code == "host_key_changed"
    assert f"line 1 of {logins.known_hosts}" in error.message
    assert "admin" in error.hint
    assert error.detail["fingerprint"] in error.hint
    assert logins.known_hosts.read_text() == before


async def test_a_changed_host_key_is_told_although_another_node_works(logins, connect):
    logins.nodes[0].rekey()
    ssh = connect(logins)
    assert (await ssh.run(["echo", "1"])).out == "1\n"
    assert len(ssh.notes) == 1
    assert "host key of login-1 has changed" in ssh.notes[0]
    assert ssh.notes[0].endswith("login-2 is used")


async def test_a_changed_host_key_is_the_first_thing_to_know(logins, connect):
    logins.nodes[0].kill()
    logins.nodes[1].rekey()
    error = await refused(connect(logins))
    assert error.code == "host_key_changed"


async def test_a_login_node_that_runs_no_commands(tmp_path, connect):
    with make_logins(tmp_path / "no", 1, ForceCommand="echo 'account expired'; exit 1") as logins:
        error = await refused(connect(logins), UnreachableError)
    assert "account expired" in error.message


async def test_a_configuration_file_that_ssh_does_not_understand(logins, connect):
    configure(logins, lambda text: "Nonsense yes\n")
    error = await refused(connect(logins, login_nodes=["login-1"]), InvalidInputError)
    assert error.code == "ssh_config"


@pytest.mark.parametrize("host", ["nobody.invalid", f"127.0.0.1:{free_port()}"], ids=["no name", "no answer"])
async def test_a_login_node_that_is_not_there(logins, connect, host):
    error = await refused(connect(logins, login_nodes=[host]), UnreachableError)
    assert error.code == "login_unreachable"
    assert host in error.message


async def test_a_login_node_by_user_host_and_port(logins, connect):
    node = logins.nodes[0]
    ssh = connect(logins, login_nodes=[f"root@127.0.0.1:{node.port}"])
    configure(logins, lambda text: text.replace("User root", "User nobody-there"))
    assert (await ssh.run(["echo", "1"])).out == "1\n"


async def test_a_jump_host_of_the_users_configuration(logins, connect):
    configure(logins, lambda text: text.replace("Host login-1", "Host login-1\n  ProxyJump login-2"))
    ssh = connect(logins, login_nodes=["login-1"])
    output = await ssh.run(["sh", "-c", "echo $SSH_CONNECTION"])
    assert output.out.endswith(f" {logins.nodes[0].port}\n")
    assert "login-2" in " ".join(ssh_processes(logins))
    folder = ssh._nodes[0]._socket.parent
    await ssh.close()
    await asyncio.to_thread(wait_for_no_process, logins, folder)


async def test_a_connection_of_the_users_own_is_left_alone(logins, connect, tmp_path):
    own = tmp_path / "own"
    configure(logins, lambda text: f"ControlMaster auto\nControlPath {own}\nControlPersist 1m\n{text}")
    assert (await connect(logins).run(["echo", "1"])).out == "1\n"
    assert not own.exists()
