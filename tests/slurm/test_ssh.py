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
from hyperpod_jlab.engines.slurm.connection import SocketFolder, SshTimeouts
from hyperpod_jlab.engines.slurm.ssh import Ssh
from tests.slurm.ssh_fixtures import NEVER, ODD, Logins, free_port, make_logins, new_key

pytestmark = pytest.mark.local

SOON = SshTimeouts(connect=4.0, shell=3.0, alive=1, idle=300.0)


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

    def make(logins: Logins, *, patience: SshTimeouts = SOON, **more) -> Ssh:
        options = {"config": logins.config} | more
        made.append(Ssh(options.pop("nodes", logins.names), timeouts=patience, **options))
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


@pytest.mark.parametrize("code", [0, 1, 127, 255])
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
    start = time.monotonic()
    ssh = connect(steady)
    with pytest.raises(UnreachableError) as caught:
        await ssh.run(["sleep", "30"], timeout=1.0)
    assert caught.value.code == "no_answer"
    assert time.monotonic() - start < 10
    assert ssh.notes == ()


@pytest.mark.parametrize("words", [["a\0b"], ["x" * 200_000]])
async def test_words_that_cannot_be_sent(steady, connect, words):
    with pytest.raises(InvalidInputError):
        await connect(steady).run(["echo", *words])


# ------------------------------------------------------------------------------------------------ the connection


async def test_fifty_commands_at_once_over_one_connection(steady, connect):
    ssh = connect(steady)
    outputs = await asyncio.gather(*(ssh.run(["echo", str(n)]) for n in range(50)))
    assert [output.out for output in outputs] == [f"{n}\n" for n in range(50)]
    log = (steady.nodes[0].folder / "log").read_text()
    assert "no more sessions" not in log


async def test_a_login_node_with_few_sessions(tmp_path, connect):
    with make_logins(tmp_path / "few", 1, MaxSessions="3") as logins:
        ssh = connect(logins)
        outputs = await asyncio.gather(*(ssh.run(["echo", str(n)]) for n in range(12)))
    assert [output.out for output in outputs] == [f"{n}\n" for n in range(12)]


async def test_a_login_node_with_one_session(tmp_path, connect):
    with make_logins(tmp_path / "one", 1, MaxSessions="1") as logins:
        error = await refused(connect(logins), UnreachableError)
    assert error.code == "ssh_sessions"


def ssh_processes(logins: Logins) -> set[str]:
    """The ssh processes of the transports that use these login nodes, each with its words."""
    text = subprocess.run(["ps", "-wweo", "pid=,args="], capture_output=True, text=True).stdout
    return {line.strip() for line in text.splitlines() if f"{logins.config} " in line}


async def test_closing_leaves_nothing(logins):
    ssh = Ssh(logins.names, config=logins.config, timeouts=SOON)
    await ssh.run(["true"])
    folder = ssh._folder.path
    assert ssh_processes(logins)
    waiting = asyncio.create_task(ssh.run(["sleep", "60"]))
    await asyncio.sleep(0.5)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await ssh.close()
    assert ssh_processes(logins) == set()
    assert not folder.exists()


async def test_closing_while_a_connection_is_made(logins):
    ssh = Ssh(logins.names, config=logins.config, timeouts=SOON)
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
def test_a_process_that_ends_without_closing_leaves_nothing(logins, tmp_path, end):
    code = (
        "import asyncio, os, sys\n"
        "from hyperpod_jlab.engines.slurm.ssh import Ssh\n"
        f"ssh = Ssh({logins.names!r}, config={logins.config!r})\n"
        "asyncio.run(ssh.run(['true']))\n"
        "print(ssh._folder.path, flush=True)\n"
        f"{'os.kill(os.getpid(), 9)' if end == 'kill' else 'sys.exit(0)'}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    folder = Path(done.stdout.strip())
    deadline = time.monotonic() + 5
    while ssh_processes(logins) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert folder.name.startswith("hpj-ssh-"), done.stderr
    assert ssh_processes(logins) == set()
    SocketFolder().close()
    assert not folder.exists()


def test_a_folder_of_sockets_is_private_and_stays_while_its_process_lives(tmp_path):
    first = SocketFolder(tmp_path)
    second = SocketFolder(tmp_path)
    assert first.path.is_dir()
    assert first.path.stat().st_mode & 0o777 == 0o700
    first.close()
    second.close()
    assert list(tmp_path.iterdir()) == []


async def test_a_connection_that_nobody_uses_is_closed_and_made_anew(steady, connect):
    ssh = connect(steady, patience=SshTimeouts(connect=4, shell=3, alive=1, idle=0.2))
    await ssh.run(["true"])
    node = ssh._candidates[0].node
    await asyncio.wait_for(node._connection._process.wait(), 5)
    assert not node.connected
    assert (await ssh.run(["echo", "1"])).out == "1\n"
    assert ssh.notes == ()


async def test_a_connection_that_was_killed_is_made_anew_on_the_same_node(steady, connect):
    ssh = connect(steady)
    await ssh.run(["true"])
    os.kill(ssh._candidates[0].node._connection._process.pid, signal.SIGKILL)
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
    error = await refused(connect(logins, nodes=["login-1"]))
    assert error.code == "host_key_unknown"
    assert "fingerprint" in error.hint
    assert f"ssh -F {logins.config} login-1" in error.hint
    assert logins.known_hosts.read_text() == ""


async def test_a_host_key_that_has_changed(logins, connect):
    configure(logins, lambda text: f"StrictHostKeyChecking no\n{text}")
    before = logins.known_hosts.read_text()
    logins.nodes[0].rekey()
    error = await refused(connect(logins, nodes=["login-1"]))
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
    error = await refused(connect(logins, nodes=["login-1"]), InvalidInputError)
    assert error.code == "ssh_config"


@pytest.mark.parametrize(
    "host", ["nobody.invalid", f"127.0.0.1:{free_port()}"], ids=["no name", "no answer"]
)
async def test_a_login_node_that_is_not_there(logins, connect, host):
    error = await refused(connect(logins, nodes=[host]), UnreachableError)
    assert error.code == "login_unreachable"
    assert host in error.message


async def test_a_login_node_by_user_host_and_port(logins, connect):
    node = logins.nodes[0]
    ssh = connect(logins, nodes=[f"root@127.0.0.1:{node.port}"])
    configure(logins, lambda text: text.replace("User root", "User nobody-there"))
    assert (await ssh.run(["echo", "1"])).out == "1\n"


async def test_a_jump_host_of_the_users_configuration(logins, connect):
    configure(
        logins, lambda text: text.replace("Host login-1", "Host login-1\n  ProxyJump login-2")
    )
    ssh = connect(logins, nodes=["login-1"])
    output = await ssh.run(["sh", "-c", "echo $SSH_CONNECTION"])
    assert output.out.endswith(f" {logins.nodes[0].port}\n")
    assert "login-2" in " ".join(ssh_processes(logins))
    await ssh.close()
    assert ssh_processes(logins) == set()


async def test_a_connection_of_the_users_own_is_left_alone(logins, connect, tmp_path):
    own = tmp_path / "own"
    configure(
        logins, lambda text: f"ControlMaster auto\nControlPath {own}\nControlPersist 1m\n{text}"
    )
    assert (await connect(logins).run(["echo", "1"])).out == "1\n"
    assert not own.exists()
