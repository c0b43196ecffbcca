"""Folders of the whole file system by a job of a real Slurm cluster, over both transports, with attacks and faults."""

from __future__ import annotations

import asyncio
import os
import stat

import pytest

from hyperpod_jlab.admin.fsx.folders import RemoteFolderProvisioner
from hyperpod_jlab.admin.fsx.keepers import find_uid, open_provisioner
from hyperpod_jlab.admin.fsx.request import ProvisionerOptions
from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import DeniedError, RefusedError, UnreachableError
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.remote_task import RESULT_FOLDER, SlurmTaskRunner
from hyperpod_jlab.engines.slurm.ssh import build_transport
from hyperpod_jlab.storage.partition import Partition
from tests.admin.folder_cases import JOBS, OPENED, PERSON, STRANGER, JobCases, as_it_is, names
from tests.slurm.cluster import ONE, running
from tests.slurm.hyperpod_fixtures import CLUSTER, settings_for

__all__ = ["names"]


@pytest.fixture
def place(slurm):
    """The whole file system is what the nodes have at the partition's place."""
    return ProvisionerOptions("slurm", str(slurm.partition_on_nodes))


@pytest.fixture
async def keeper(slurm, transport, place):
    settings = settings_for(slurm, transport)
    async with open_provisioner(settings, Partition(slurm.partition), place) as found:
        yield found


@pytest.fixture
async def errand(slurm, transport):
    """Makes errands with other settings."""
    config = settings_for(slurm, transport).clusters[CLUSTER]
    assert isinstance(config, SlurmCluster)
    way = build_transport(config)
    answers = None if transport == "ssh" else slurm.partition / RESULT_FOLDER
    there = str(slurm.partition_on_nodes)
    yield lambda change=as_it_is, root=there, reply=f"/{RESULT_FOLDER}", **more: change(
        SlurmTaskRunner(SlurmClient(way), root, reply, answers, **more)
    )
    await way.close()


@pytest.fixture
def root(slurm):
    return slurm.partition


@pytest.fixture
def jobs_sent(slurm):
    return lambda: len([call for call in slurm.calls() if call.name == "sbatch"])


@pytest.fixture
def jobs_left(slurm):
    words = ("--noheader", "--states=running,pending", "--format=%j %T")
    return lambda: slurm.exec("ctl", "squeue", *words).split("\n")[:-1]


@pytest.fixture
def kill_jobs(slurm):
    return lambda: slurm.exec("ctl", "sh", "-c", "scancel $(squeue --noheader --format=%i)")


class TestFolders(JobCases):
    """As for everybody who sends jobs."""

    killed = "CANCELLED"


@pytest.mark.both_transports
async def test_a_job_of_the_cluster_writes_and_the_person_reads(keeper, slurm, names):
    (path,) = names()
    await keeper.make({path: OPENED})
    folder = slurm.partition / path[1:]
    there = slurm.partition_on_nodes / path[1:]
    done = slurm.run("node1", "setpriv", f"--reuid={JOBS}", f"--regid={JOBS}", "--clear-groups", "sh", "-c", f"echo out > {there}/log")  # fmt: skip
    assert done.returncode == 0, done.stderr
    for uid, code in ((PERSON, 0), (STRANGER, 1)):
        read = slurm.run("node2", "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "cat", f"{there}/log")  # fmt: skip
        assert read.returncode == code
    (folder / "log").unlink()


async def test_the_answers_folder_is_nobodys_else(keeper, slurm, names):
    await keeper.make(dict.fromkeys(names(), OPENED))
    found = (slurm.partition / RESULT_FOLDER).stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o711)
    os.chown(slurm.partition / RESULT_FOLDER, 20001, 20001)
    try:
        with pytest.raises(RefusedError) as caught:
            await keeper.look(["/x"])
        assert "could not be written" in caught.value.message
    finally:
        os.chown(slurm.partition / RESULT_FOLDER, 0, 0)


async def test_where_nothing_is_mounted_no_folder_is_made(errand, slurm, names):
    """Nodes without the file system: their own disk is no place for folders."""
    reply = str(slurm.partition_on_nodes / RESULT_FOLDER).removeprefix("/fsx")
    with pytest.raises(RefusedError) as caught:
        await RemoteFolderProvisioner(errand(root="/fsx", reply=reply)).make(dict.fromkeys(names(), OPENED))
    assert caught.value.code == "not_mounted"


async def test_a_job_that_does_not_start_is_taken_back(errand, slurm, jobs_left):
    await asyncio.to_thread(slurm.exec, "ctl", "scontrol", "update", "nodename=node[1-4]", "state=drain", "reason=test")  # fmt: skip
    with pytest.raises(UnreachableError) as caught:
        await RemoteFolderProvisioner(errand(timeout=3.0)).look(["/x"])
    assert caught.value.code == "job_did_not_end"
    assert "PENDING" in caught.value.message
    assert jobs_left() == []


async def test_one_who_may_not_be_root_is_told(slurm):
    settings = settings_for(slurm, "ssh", user="alice")
    place = ProvisionerOptions("slurm", str(slurm.partition_on_nodes))
    async with open_provisioner(settings, Partition(slurm.partition), place) as keeper:
        with pytest.raises(DeniedError) as caught:
            await keeper.look(["/x"])
    assert caught.value.code == "no_root"
    assert "sudo" in caught.value.message
    assert await find_uid("bob", settings, Partition(slurm.partition), place) == 20002


@pytest.fixture
def with_sudo(tmp_path):
    """A cluster whose user alice may act as root on the nodes, as HyperPod's ubuntu may."""
    with ONE.only(running("--users", "alice:20001", "--login", "1", nodes=1)) as cluster:
        rules = cluster.folder / "etc" / "sudoers"
        rules.write_text("root ALL=(ALL) ALL\nalice ALL=(ALL) NOPASSWD: ALL\n")
        rules.chmod(0o440)
        cluster.exec("node1", "mount", "--bind", rules, "/etc/sudoers")
        yield cluster


async def test_one_who_may_act_as_root_needs_not_be_root(with_sudo):
    settings = settings_for(with_sudo, "ssh", user="alice", login_nodes=["login1"])
    place = ProvisionerOptions("slurm", str(with_sudo.partition_on_nodes))
    async with open_provisioner(settings, Partition(with_sudo.partition), place) as keeper:
        assert await keeper.make({"/alice": OPENED}) == {"/alice": None}
        assert await keeper.look(["/alice"]) == {"/alice": OPENED}
