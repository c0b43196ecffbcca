"""From a space to a real Slurm: the client comes with the script, from packages on the partition, and a job is sent and read back."""

from __future__ import annotations

import hashlib
import json
import pwd
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.lifecycle.image import client_packages
from tests.lifecycle.space import HOME, POINT, Space
from tests.lifecycle.test_in_space import message, returned, steps
from tests.slurm.cluster import ONE, running

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]
"""They install and start things, on machines that have other work too."""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def cluster(package):
    with ONE.only(running(*user_1000(), nodes=1)) as made:
        prepare(made, package)
        yield made


def user_1000():
    """Whom HyperPod calls ubuntu; where this machine has one, its hosts have him too."""
    try:
        pwd.getpwuid(1000)
    except KeyError:
        return ("--users", "ubuntu:1000")
    return ()


def prepare(cluster, package):
    """What the admin lays onto the partition."""
    partition = cluster.partition
    subprocess.run(["cp", "-r", package.folder, partition / "hyperpod-jlab"], check=True)
    client_packages(partition / "slurm")
    known = ("ClusterName", "SlurmctldHost", "SlurmctldPort", "SlurmdPort")
    lines = (cluster.folder / "etc" / "slurm.conf").read_text().splitlines()
    conf = [line for line in lines if line.startswith(known)] + ["AuthType=auth/munge"]
    (partition / "slurm.conf").write_text("\n".join([*conf, ""]))


@pytest.fixture
def slurm_space(cluster, base, conda):
    folder = f"/{cluster.partition_on_nodes.relative_to('/fsx')}".rstrip("./")
    with Space(base / "space", cluster.partition, conda, folder=folder) as started:
        yield started


@pytest.fixture
def slurm_script(script, cluster):
    """For this cluster, with its key as a file that only root can read where it comes from."""

    def make(**changed):
        return script(
            **{
                "package": "hyperpod-jlab",
                "login_nodes": (),
                "slurm_client": "slurm/",
                "slurm_client_sha256": digest(cluster.partition / "slurm" / "SHA256SUMS"),
                "slurm_auth": "munge",
                "munge_key": str(HOME / "munge.key"),
                "munge_key_sha256": digest(cluster.folder / "etc" / "munge.key"),
                "slurm_bin": "/usr/bin",
                "slurm_conf": str(POINT / "slurm.conf"),
                "python": cluster.python_on_nodes,
                **changed,
            }
        )

    return make


def lay_key(space, content):
    (space.home / "munge.key").write_bytes(content)
    space.run("chown", "1000:100", HOME / "munge.key", root=True)


def test_munge_and_a_job(slurm_space, slurm_script, cluster):
    key = (cluster.folder / "etc" / "munge.key").read_bytes()
    lay_key(slurm_space, key)
    assert slurm_space.run("bash", "-c", "command -v sbatch").returncode != 0
    returned(*slurm_space.lifecycle(slurm_script()))
    while steps(slurm_space.status())["client"] in {"waiting", "running"}:
        time.sleep(0.05)
    status = slurm_space.status()
    assert steps(status)["client"] == "done", slurm_space.log()

    done = slurm_space.run(
        "hpj", "submit", "-c", "echo it is $(id -u); cat /proc/mounts | grep -c /", "--wait", "--json"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = json.loads(done.stdout)
    assert (run["cluster"], run["state"]) == ("ml-cluster", "succeeded")
    logs = slurm_space.run("hpj", "logs", run["run_id"])
    assert "it is 1000" in logs.stdout

    slurm_space.ended()
    told = slurm_space.run("stat", "-c", "%U %a", "/etc/munge/munge.key", root=True).stdout
    assert told == "munge 400\n"
    assert slurm_space.run("cat", "/etc/munge/munge.key").returncode != 0
    left = slurm_space.run("bash", "-c", "ls /tmp/hyperpod-jlab-1000-work", root=True).stdout
    assert "munge" not in left
    for text in (slurm_space.log(), json.dumps(status)):
        assert key.hex() not in text
        assert key[:16] not in text.encode(errors="surrogateescape")

    returned(*slurm_space.lifecycle(slurm_script()))
    assert steps(slurm_space.ended())["client"] == "done"
    assert slurm_space.run("pgrep", "-c", "-r", "S,R", "munged", root=True).stdout == "1\n"


@pytest.mark.full
def test_a_key_of_another_cluster_is_not_used(slurm_space, slurm_script):
    lay_key(slurm_space, b"x" * 1024)
    slurm_space.lifecycle(slurm_script())
    status = slurm_space.ended()
    assert steps(status)["client"] == "failed"
    assert message(status, "client") == ("the munge key does not have the SHA-256 that was set, and is not used")
    # Debian's package makes a key of its own; ours is not there.
    assert "xxxx" not in slurm_space.run("cat", "/etc/munge/munge.key", root=True).stdout
    assert slurm_space.run("pgrep", "munged", root=True).returncode == 1


@pytest.mark.full
def test_a_key_that_is_not_there(slurm_space, slurm_script):
    slurm_space.lifecycle(slurm_script())
    status = slurm_space.ended()
    assert message(status, "client") == "the munge key cannot be read"
    assert slurm_space.run("hpj", "--version").returncode == 0


@pytest.mark.full
def test_client_packages_that_were_changed(slurm_space, slurm_script, cluster):
    changed = cluster.partition / "slurm-changed"
    shutil.copytree(cluster.partition / "slurm", changed)
    with next(changed.glob("slurm-client*.deb")).open("ab") as file:
        file.write(b"x")
    slurm_space.lifecycle(slurm_script(slurm_client="slurm-changed"))
    status = slurm_space.ended()
    assert "is not the one in its SHA256SUMS" in message(status, "client")
    assert slurm_space.run("bash", "-c", "command -v sbatch").returncode != 0


@pytest.mark.full
@pytest.mark.parametrize("more", [None, "etc/cron.d/x"], ids=["alone", "with something else"])
def test_an_archive_of_a_client(slurm_space, slurm_script, cluster, tmp_path, more):
    """Nothing but /opt/slurm comes out of it."""
    folder = tmp_path / "opt" / "slurm" / "bin"
    folder.mkdir(parents=True)
    for name in ("sbatch", "squeue", "sinfo", "scontrol", "sacct", "scancel"):
        shutil.copy(f"/usr/bin/{name}", folder)
    if more:
        (tmp_path / more).parent.mkdir(parents=True)
        (tmp_path / more).touch()
    place = cluster.partition / f"client-{len(more or '')}.tar.gz"
    held = ["opt/slurm", more] if more else ["opt/slurm"]
    subprocess.run(["tar", "-C", tmp_path, "-czf", place, *held], check=True)
    slurm_space.lifecycle(
        slurm_script(
            slurm_client=place.name,
            slurm_client_sha256=digest(place),
            slurm_bin="/opt/slurm/bin",
            slurm_auth="none",
            munge_key=None,
            munge_key_sha256=None,
        )
    )
    status = slurm_space.ended()
    conf = f"SLURM_CONF={POINT}/slurm.conf"
    there = slurm_space.run("env", conf, "/opt/slurm/bin/sinfo", "--version")
    if more:
        assert "holds more than opt/slurm" in message(status, "client")
        assert there.returncode != 0
        assert slurm_space.run("test", "-e", f"/{more}").returncode == 1
        return
    assert steps(status)["client"] == "done", slurm_space.log()
    assert there.stdout.startswith("slurm")
    config = slurm_space.run("cat", "/etc/hyperpod-jlab/config.toml").stdout
    assert 'commands = "/opt/slurm/bin"' in config
