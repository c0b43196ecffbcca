"""Runs over ssh on a real cluster, with login nodes that go away while they are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.core.run_id import new_run_id
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import SlurmSession, make_hyperpod

COMMANDS = ("sbatch", "squeue", "sinfo", "sacct", "sacctmgr", "scontrol", "scancel", "srun")

FIND = """
pid=$$
until grep -q '^sshd' /proc/$pid/comm; do pid=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$pid/status); done
"""
# Ends the sshd that this very session came in by, as when the connection breaks before the answer.
CUT = FIND + 'kill -9 "$pid"\n'


# What preflight asks is not what is sent.
ASKS = 'case " $* " in *" --test-only "*) exec {real} "$@" ;; esac\n'


def commands_folder(cluster: SlurmTestbed, **instead: str) -> Path:
    """Slurm's commands, with other programs in place of some; ``{real}`` in them is the real one."""
    folder = cluster.folder / "other-bin"
    folder.mkdir(exist_ok=True)
    for name in COMMANDS:
        real = cluster.folder / "bin" / name
        text = instead.get(name, 'exec {real} "$@"\n').replace("{real}", str(real))
        (folder / name).write_text(f"#!/bin/sh\n{text}")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
async def start(slurm, tmp_path, monkeypatch):
    """Makes sessions over ssh that are closed after the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = []

    def make(**more) -> SlurmSession:
        made.append(SlurmSession(slurm, make_hyperpod(slurm, "ssh", **more), tmp_path))
        return made[-1]

    yield make
    for session in made:
        await session.hyperpod.close()


async def reason(session: SlurmSession) -> str:
    """What the cluster's line says; empty when there is nothing to say."""
    clusters = await session.hyperpod.clusters.configured()
    return next(cluster.reason or "" for cluster in clusters if cluster.name == "slurm")


def sent(cluster: SlurmTestbed) -> int:
    """How often a script was sent for good."""
    calls = [call for call in cluster.calls() if call.name == "sbatch"]
    return len([call for call in calls if "--test-only" not in call.args])


async def test_an_answer_of_sbatch_that_is_lost_is_no_fault(start, slurm):
    session = start(commands=str(commands_folder(slurm, sbatch=ASKS + '{real} "$@"\n' + CUT)))
    run_id = await session.submit("echo once")
    run = await session.ended(run_id)
    assert run.state == "succeeded"
    assert session.log(run_id) == "once\n"
    jobs = slurm.exec("ctl", "squeue", "-h", "-t", "all", "-o", "%A %k").splitlines()
    assert len([job for job in jobs if run_id in job]) == 1
    assert sent(slurm) == 1
    assert "login2 is used" in await reason(session)


async def test_a_connection_that_breaks_before_sbatch_is_told_and_the_run_can_be_sent_again(start, slurm):
    """Whether sbatch ran cannot be known, so it is not sent again without being asked to."""
    cut = f'test "$(hostname)" = login2 || {{ {CUT} exit 1; }}\nexec {{real}} "$@"\n'
    session = start(commands=str(commands_folder(slurm, sbatch=ASKS + cut)))
    run_id = new_run_id()
    with pytest.raises(UnreachableError) as caught:
        await session.submit("echo once", run_id=run_id)
    assert caught.value.code == "answer_lost"
    assert sent(slurm) == 0
    assert await session.submit("echo once", run_id=run_id) == run_id
    run = await session.ended(run_id)
    assert run.state == "succeeded"
    assert sent(slurm) == 1


async def submit_until_known(session: SlurmSession, command: str, run_id: str) -> None:
    """Submit, and again if the result is unknown."""
    try:
        await session.submit(command, run_id=run_id)
    except UnreachableError as error:
        if error.code != "answer_lost":
            raise
        await session.submit(command, run_id=run_id)


async def test_wherever_the_connection_breaks_during_a_submit_one_job_runs(start, slurm):
    marks, broken = "marks-cut", 0
    for delay in ("00", "02", "04", "06", "08", "10", "15", "20"):
        late = f'test "$(hostname)" = login2 || {{ {FIND} (sleep 0.{delay}; kill -9 "$pid") >/dev/null 2>&1 & }}\n'
        session = start(commands=str(commands_folder(slurm, sbatch=ASKS + late + 'exec {real} "$@"\n')))
        run_id = new_run_id()
        command = f"echo {run_id} >> '{slurm.partition_on_nodes}/{marks}'"
        await submit_until_known(session, command, run_id)
        broken += "login2 is used" in await reason(session)
        assert (await session.ended(run_id)).state == "succeeded"
        jobs = slurm.exec("ctl", "squeue", "-h", "-t", "all", "-o", "%A %k").splitlines()
        assert len([job for job in jobs if run_id in job]) == 1, delay
        assert (slurm.partition / marks).read_text().splitlines().count(run_id) == 1
    assert broken


async def test_a_login_node_that_dies_under_a_run_is_a_note(start, slurm):
    session = start()
    run_id = await session.submit("sleep 3; echo done")
    await session.running(run_id)
    assert await reason(session) == ""
    slurm.login_kill("login1")
    other = await session.submit("echo more")
    assert (await session.ended(run_id)).state == "succeeded"
    assert (await session.ended(other)).state == "succeeded"
    told = await reason(session)
    assert "login1" in told
    assert "login2 is used" in told


async def test_all_login_nodes_are_down(start, slurm):
    session = start()
    for host in slurm.login_hosts:
        slurm.login_kill(host)
    told = await reason(session)
    assert "login1" in told
    assert "login2" in told


async def test_a_host_key_that_has_changed_stops_everything(start, slurm):
    session = start()
    for host in slurm.login_hosts:
        slurm.login_rekey(host)
    try:
        told = await reason(session)
    finally:
        for host in slurm.login_hosts:
            slurm.login_rekey(host, back=True)
    assert "the host key of login1 has changed" in told
    assert slurm.calls() == []


async def test_users_log_in_as_themselves(start, slurm):
    session = start(user="alice")
    view = session.hyperpod.engines.get("slurm")
    assert (await view._client.transport.run(["id", "-un"])).out == "alice\n"
