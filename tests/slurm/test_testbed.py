"""The testbed itself: what the other tests take for granted."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.slurm.cluster import INSTALL, SlurmTestbed, running

pytestmark = [pytest.mark.testbed, pytest.mark.slurm]


def until(holds: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "gave up waiting"
        time.sleep(0.1)


def submit(cluster: SlurmTestbed, script: str, *options: str, user: str | None = None) -> str:
    words = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", *options]
    return cluster.exec("ctl", *words, "--wrap", script, user=user).strip()


def state(cluster: SlurmTestbed, job: str) -> str:
    return cluster.exec("ctl", "squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()


def test_a_job_over_two_nodes_gets_its_gpus(slurm_cluster: SlurmTestbed):
    script = 'echo "$(hostname) $CUDA_VISIBLE_DEVICES"'
    output = slurm_cluster.exec("ctl", "srun", "-N2", "--gpus-per-node=2", "sh", "-c", script)
    hosts = [line.split()[0] for line in output.splitlines()]
    assert len(set(hosts)) == 2
    assert all(line.endswith(" 0,1") for line in output.splitlines())


def test_it_is_the_version_that_was_asked_for(slurm_cluster: SlurmTestbed):
    done = subprocess.run(["sinfo", "--version"], env=slurm_cluster.environment, capture_output=True, text=True)
    assert f" {slurm_cluster.version}." in done.stdout


def test_a_user_submits_and_the_job_is_that_users(slurm_cluster: SlurmTestbed):
    output = slurm_cluster.exec("ctl", "srun", "sh", "-c", "id -un; pwd", user="alice")
    assert output.splitlines()[0] == "alice"


def test_the_partition_is_elsewhere_on_the_nodes(slurm_cluster: SlurmTestbed):
    ours, theirs = slurm_cluster.partition, slurm_cluster.partition_on_nodes
    (ours / "word").write_text("here")
    script = f"cat {theirs}/word; test -e {ours}/word || echo hidden"
    assert slurm_cluster.exec("ctl", "srun", "sh", "-c", script) == "herehidden\n"
    assert slurm_cluster.ssh("login1", script).stdout == "herehidden\n"
    assert not theirs.exists()


def test_this_python_runs_in_a_users_job(slurm_cluster: SlurmTestbed):
    code = "import os; print(os.getuid())"
    python = slurm_cluster.python_on_nodes
    assert slurm_cluster.exec("ctl", "srun", python, "-c", code, user="alice") == "20001\n"


def test_a_job_of_root_puts_nothing_in_the_place_of_devices(slurm_cluster: SlurmTestbed):
    words = ("srun", "sh", "-c", "echo x >/dev/null && : >/dev/hpj-test")
    with pytest.raises(RuntimeError, match="/dev/hpj-test: Read-only file system"):
        slurm_cluster.exec("ctl", *words)


def test_login_nodes_take_users_by_ssh(slurm_cluster: SlurmTestbed):
    for host in slurm_cluster.login_hosts:
        done = slurm_cluster.ssh(host, "hostname; id -un; sinfo -h -o %P | sort -u", user="bob")
        assert done.stdout.split() == [host, "bob", "batch", "dev*"], done.stderr


def test_calls_are_counted_from_here_and_from_the_login_nodes(slurm: SlurmTestbed):
    subprocess.run(["squeue", "-h", "-n", "a b\nc"], env=slurm.environment, check=True)
    slurm.ssh("login1", "sinfo -h >/dev/null", user="alice")
    calls = [(call.name, call.args) for call in slurm.calls()]
    assert calls == [("squeue", ("-h", "-n", r"a b\nc")), ("sinfo", ("-h",))]


def test_a_user_without_account_is_refused(slurm_start: Callable[..., SlurmTestbed]):
    users = ["--users", "alice:20001 carol:20003", "--dbd", "--accounts", "research:alice"]
    cluster = slurm_start(*users, "--qos", "high Priority=100 MaxTRESPerUser=gres/gpu=1", nodes=1)
    assert submit(cluster, "true", user="alice")
    assert submit(cluster, "true", "--qos=high", user="alice")
    with pytest.raises(RuntimeError, match="Invalid account"):
        submit(cluster, "true", user="carol")


def test_a_killed_node_takes_its_job_with_it_and_comes_back(slurm_start: Callable[..., SlurmTestbed]):
    cluster = slurm_start("--slurmd-timeout", "2", nodes=2)
    job = submit(cluster, "sleep 1234.5", "-w", "node2", "--no-requeue")
    until(lambda: state(cluster, job) == "RUNNING")
    cluster.node_kill("node2")
    until(lambda: cluster.run("node2", "pgrep", "-f", "^sleep 1234.5").returncode == 1, 10)
    until(lambda: state(cluster, job) == "NODE_FAIL", 60)
    cluster.node_start("node2")
    assert cluster.exec("ctl", "srun", "-w", "node2", "hostname") == "node2\n"


def test_the_controller_ends_dies_and_comes_back(slurm: SlurmTestbed):
    job = submit(slurm, "sleep 60")
    slurm.controller_stop()
    slurm.controller_start()
    slurm.controller_kill()
    assert slurm.run("ctl", "timeout", "1", "squeue").returncode == 124
    slurm.controller_start()
    assert state(slurm, job) in {"RUNNING", "PENDING"}


def test_the_controller_hangs_and_answers_later(slurm: SlurmTestbed):
    slurm.controller_hang()
    asking = subprocess.Popen(["squeue"], env=slurm.environment, stdout=subprocess.DEVNULL)
    with pytest.raises(subprocess.TimeoutExpired):
        asking.wait(1)
    slurm.controller_resume()
    assert asking.wait(10) == 0


def test_without_munge_nothing_goes(slurm: SlurmTestbed):
    slurm.munge_kill()
    # It says so in the end, after 49 s.
    assert slurm.run("ctl", "timeout", "1", "squeue").returncode == 124
    slurm.munge_start()
    slurm.exec("ctl", "squeue")


def test_login_nodes_die_hang_and_change_their_keys(slurm: SlurmTestbed):
    slurm.login_kill("login1")
    assert "refused" in slurm.ssh("login1", "true").stderr
    slurm.login_start("login1")
    assert slurm.ssh("login1", "true").returncode == 0
    slurm.login_hang("login1")
    with pytest.raises(subprocess.TimeoutExpired):
        slurm.ssh("login1", "true", timeout=1)
    slurm.login_resume("login1")
    slurm.login_rekey("login1")
    assert "IDENTIFICATION HAS CHANGED" in slurm.ssh("login1", "true").stderr


def test_after_a_fault_everything_is_well_again(slurm: SlurmTestbed):
    slurm.login_rekey("login1")
    slurm.login_hang("login2")
    slurm.node_clock("node1", "+5m")
    slurm.munge_kill()
    slurm.controller_kill()
    slurm.heal()
    slurm.exec("ctl", "scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=test")
    slurm.heal()
    slurm.exec("ctl", "scontrol", "update", "NodeName=node1", "State=FAIL", "Reason=test")
    slurm.node_kill("node1")
    slurm.heal()
    assert [slurm.ssh(host, "true").returncode for host in slurm.login_hosts] == [0, 0]
    times = slurm.exec("ctl", "srun", "-N4", "date", "+%s").split()
    assert max(map(int, times)) - min(map(int, times)) <= 5


def test_a_node_has_another_time(slurm: SlurmTestbed):
    slurm.node_clock("node2", "+5m")
    times = slurm.exec("ctl", "srun", "-w", "node[1-2]", "-l", "date", "+%s").split()
    seen = {times[0]: int(times[1]), times[2]: int(times[3])}
    assert seen["1:"] - seen["0:"] == pytest.approx(300, abs=5)


def test_a_partition_that_is_not_on_one_node(slurm_start: Callable[..., SlurmTestbed]):
    cluster = slurm_start(nodes=2, on_nodes=["node1"])
    (cluster.partition / "word").touch()
    path = cluster.partition_on_nodes / "word"
    assert cluster.run("node1", "test", "-e", path).returncode == 0
    assert cluster.run("node2", "test", "-e", path).returncode == 1


def test_a_job_is_preempted_and_purged(slurm_start: Callable[..., SlurmTestbed]):
    options = ["--preempt", "--min-job-age", "2", "--gres-extra", "shard:16 gpu:1g.10gb:7"]
    cluster = slurm_start(*options, nodes=1)
    low = submit(cluster, "sleep 60", "--exclusive", "--requeue")
    until(lambda: state(cluster, low) == "RUNNING")
    high = submit(cluster, "sleep 1", "--exclusive", "-p", "high", "--gres=gpu:1g.10gb:2")
    until(lambda: state(cluster, low) == "PENDING")
    cluster.exec("ctl", "scancel", low)
    until(lambda: state(cluster, high) == "COMPLETED" or not state(cluster, high))
    known = ["squeue", "-h", "-t", "all", "-o", "%A"]
    until(lambda: high not in cluster.exec("ctl", *known).split(), 90)


def test_it_ends_with_the_process_that_wanted_it(tmp_path: Path):
    with running(nodes=1) as cluster, subprocess.Popen(["sleep", "60"]) as owner:
        cluster.command("stop")
        cluster.command("start", "--owner", str(owner.pid))
        owner.kill()
        owner.wait()
        until(lambda: not list(cluster.folder.iterdir()))


@pytest.mark.full
def test_two_versions_run_at_a_time():
    with running(version="22.05") as old, running(version="24.11") as new:
        for cluster in (old, new):
            words = ["srun", "-N4", "hostname"]
            assert sorted(cluster.exec("ctl", *words).split()) == list(cluster.nodes)


def test_nothing_of_it_is_left_on_the_machine(slurm_start: Callable[..., SlurmTestbed]):
    cluster = slurm_start(nodes=1)
    job = submit(cluster, "setsid sleep 2345.6 & sleep 60")
    until(lambda: state(cluster, job) == "RUNNING")
    cluster.command("stop", "--purge")
    assert subprocess.run(["pgrep", "-f", "^sleep 2345.6"]).returncode == 1
    assert str(cluster.folder) not in Path("/proc/self/mountinfo").read_text()
    assert list(cluster.folder.iterdir()) == []


def test_nothing_of_an_installation_that_was_killed_goes_on_writing(tmp_path: Path):
    """It stands for debootstrap, which leaves children that write; the next installation removes what is left and begins anew."""
    programs, root = tmp_path / "bin", tmp_path / "root"
    programs.mkdir()
    debootstrap = programs / "debootstrap"
    debootstrap.write_text(
        '#!/bin/sh\n(while sleep 0.01; do mkdir -p "$4/etc"; date >"$4/etc/$(date +%N)"; done) &\nwait\n'
    )
    debootstrap.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    words = [str(INSTALL), "--trixie", str(root)]
    with subprocess.Popen(words, env=environment) as first:
        until(lambda: list(tmp_path.glob("root.??????/etc/*")))
        first.kill()
    debootstrap.write_text("#!/bin/sh\nexit 3\n")
    second = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30)
    assert second.returncode == 1, second.stderr
    assert "cannot remove" not in second.stderr
    assert list(tmp_path.glob("root*")) == []
