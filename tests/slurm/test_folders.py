"""Folders of the whole file system by a job of a real Slurm cluster, over both transports, with attacks and faults."""

from __future__ import annotations

import asyncio
import os
import stat

import pytest

from hyperpod_jlab.admin.folders import ROOT, FoldersThere
from hyperpod_jlab.admin.there import Folder
from hyperpod_jlab.model.config import SlurmCluster
from hyperpod_jlab.model.errors import DeniedError, RefusedError, UnreachableError
from hyperpod_jlab.orchestrators.slurm.client import SlurmClient
from hyperpod_jlab.orchestrators.slurm.errand import SlurmErrand
from hyperpod_jlab.orchestrators.slurm.transports.choice import transport_of
from hyperpod_jlab.services.folder_keepers import ANSWERS, FolderPlace, open_keeper, user_number
from hyperpod_jlab.storage.partition import Partition
from tests.slurm.cluster import running
from tests.slurm.hyperpod_fixtures import CLUSTER, settings_for

PERSON, GROUP, JOBS = 200001, 1001, 1000
OPENED = Folder(
    PERSON,
    GROUP,
    0o700,
    acl=(("user", JOBS, 7),),
    default=(
        ("user", None, 7),
        ("user", JOBS, 7),
        ("user", PERSON, 7),
        ("group", None, 0),
        ("other", None, 0),
    ),
)


@pytest.fixture
def place(slurm):
    """The whole file system is what the nodes have at the partition's place."""
    return FolderPlace("slurm", str(slurm.partition_on_nodes))


@pytest.fixture
async def keeper(slurm, transport, place):
    settings = settings_for(slurm, transport)
    async with open_keeper(settings, Partition(slurm.partition), place) as found:
        yield found


@pytest.fixture
def names(slurm):
    """Names of folders that no other test has; removed at the end."""
    made: list[str] = []

    def new(count=1):
        made.extend(f"/p{os.urandom(4).hex()}" for _ in range(count))
        return made[-count:]

    yield new
    for name in made:
        path = slurm.partition / name[1:]
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            path.rmdir()


def config_of(slurm, transport):
    config = settings_for(slurm, transport).clusters[CLUSTER]
    assert isinstance(config, SlurmCluster)
    return config


def jobs_of(slurm):
    """The jobs that Slurm knows of."""
    return slurm.exec("ctl", "squeue", "--noheader", "--states=all", "--format=%j %T").split("\n")


async def test_all_folders_of_a_plan_are_one_job(keeper, slurm, names):
    paths = names(500)
    slurm.forget_calls()
    assert set((await keeper.look([ROOT, *paths])).values()) >= {None}
    wanted = dict.fromkeys(paths, OPENED)
    assert await keeper.make(wanted) == dict.fromkeys(paths)
    assert set((await keeper.look(paths)).values()) == {OPENED}
    sent = [call for call in slurm.calls() if call.name == "sbatch"]
    assert len(sent) == 3
    found = (slurm.partition / paths[0][1:]).stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (PERSON, GROUP, 0o770)


async def test_a_job_of_the_cluster_writes_and_the_person_reads(keeper, slurm, names):
    (path,) = names()
    await keeper.make({path: OPENED})
    folder = slurm.partition / path[1:]
    there = slurm.partition_on_nodes / path[1:]
    done = slurm.run("node1", "setpriv", f"--reuid={JOBS}", f"--regid={JOBS}", "--clear-groups", "sh", "-c", f"echo out > {there}/log")  # fmt: skip
    assert done.returncode == 0, done.stderr
    for uid, code in ((PERSON, 0), (4711, 1)):
        read = slurm.run("node2", "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "cat", f"{there}/log")  # fmt: skip
        assert read.returncode == code
    (folder / "log").unlink()


async def test_links_files_and_folders_of_others(keeper, slurm, names):
    link, file, theirs, good, middle = names(5)
    root = slurm.partition
    victim = root.parent / "victim"
    victim.mkdir(mode=0o711)
    (root / link[1:]).symlink_to(victim)
    (root / file[1:]).write_text("")
    (root / theirs[1:]).mkdir()
    os.chown(root / theirs[1:], 20001, 20001)
    (root / middle[1:]).symlink_to(".")
    wanted = dict.fromkeys((link, file, theirs, good, f"{middle}/{good[1:]}x"), OPENED)
    made = await keeper.make(wanted)
    codes = [error and error.code for error in made.values()]
    assert codes == ["no_folder", "no_folder", "foreign_folder", None, "no_folder"]
    assert (victim.stat().st_uid, stat.S_IMODE(victim.stat().st_mode)) == (0, 0o711)
    victim.rmdir()
    assert (root / theirs[1:]).stat().st_uid == 20001


async def test_two_batches_at_once(keeper, names):
    wanted = dict.fromkeys(names(100), OPENED)
    for made in await asyncio.gather(keeper.make(wanted), keeper.make(wanted)):
        assert made == dict.fromkeys(wanted)


class Slow(SlurmErrand):
    """Its program takes its time for each folder."""

    async def run(self, program, name):
        loop = '    for wanted in order["folders"]:\n'
        assert program.count(loop) == 1
        return await super().run(program.replace(loop, f"{loop}        time.sleep(0.1)\n"), name)


async def test_a_job_that_is_killed_half_way_and_once_more(keeper, slurm, transport, names):
    paths = names(60)
    config = config_of(slurm, transport)
    way = transport_of(config)
    answers = None if transport == "ssh" else slurm.partition / ANSWERS
    errand = Slow(SlurmClient(way), str(slurm.partition_on_nodes), f"/{ANSWERS}", answers)
    making = asyncio.create_task(FoldersThere(errand).make(dict.fromkeys(paths, OPENED)))
    while not (slurm.partition / paths[4][1:]).exists():
        await asyncio.sleep(0.02)
        assert not making.done()
    await asyncio.to_thread(slurm.exec, "ctl", "sh", "-c", "scancel $(squeue --noheader --format=%i)")  # fmt: skip
    with pytest.raises(RefusedError) as caught:
        await making
    assert caught.value.code == "job_failed"
    assert "CANCELLED" in caught.value.message
    assert not (slurm.partition / paths[-1][1:]).exists()
    assert await keeper.make(dict.fromkeys(paths, OPENED)) == dict.fromkeys(paths)
    assert set((await keeper.look(paths)).values()) == {OPENED}
    await way.close()


async def test_who_gives_up_takes_the_job_back(slurm, transport, names):
    paths = names(60)
    way = transport_of(config_of(slurm, transport))
    errand = Slow(SlurmClient(way), str(slurm.partition_on_nodes), f"/{ANSWERS}")
    making = asyncio.create_task(FoldersThere(errand).make(dict.fromkeys(paths, OPENED)))
    while not (slurm.partition / paths[0][1:]).exists():
        await asyncio.sleep(0.02)
        assert not making.done()
    making.cancel()
    await asyncio.gather(making, return_exceptions=True)
    assert not [line for line in jobs_of(slurm) if "RUNNING" in line or "PENDING" in line]
    await way.close()


async def test_an_answer_that_is_not_whole_is_none(slurm, transport, names):
    """The program writes its answer; what comes back of it is cut off."""
    config = config_of(slurm, transport)

    class Cut(SlurmErrand):
        async def run(self, program, name):
            return (await super().run(program, name))[:-20]

    way = transport_of(config)
    answers = None if transport == "ssh" else slurm.partition / ANSWERS
    cut = Cut(SlurmClient(way), str(slurm.partition_on_nodes), f"/{ANSWERS}", answers)
    with pytest.raises(UnreachableError) as caught:
        await FoldersThere(cut).make(dict.fromkeys(names(), OPENED))
    assert caught.value.code == "no_answer"
    await way.close()


async def test_the_answers_folder_is_nobodys_else(keeper, slurm, names):
    await keeper.make(dict.fromkeys(names(), OPENED))
    found = (slurm.partition / ANSWERS).stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o711)
    os.chown(slurm.partition / ANSWERS, 20001, 20001)
    try:
        with pytest.raises(RefusedError) as caught:
            await keeper.look(["/x"])
        assert "could not be written" in caught.value.message
    finally:
        os.chown(slurm.partition / ANSWERS, 0, 0)


async def test_where_nothing_is_mounted_no_folder_is_made(slurm, transport, names):
    """Nodes without the file system: their own disk is no place for folders."""
    config = config_of(slurm, transport)
    way = transport_of(config)
    answers = None if transport == "ssh" else slurm.partition / ANSWERS
    reply = str(slurm.partition_on_nodes / ANSWERS).removeprefix("/fsx")
    keeper = FoldersThere(SlurmErrand(SlurmClient(way), "/fsx", reply, answers))
    with pytest.raises(RefusedError) as caught:
        await keeper.make(dict.fromkeys(names(), OPENED))
    assert caught.value.code == "not_mounted"
    await way.close()


async def test_a_job_that_does_not_start_is_taken_back(slurm, transport):
    config = config_of(slurm, transport)
    way = transport_of(config)
    client = SlurmClient(way)
    errand = SlurmErrand(client, "/fsx/team", f"/{ANSWERS}", patience=3.0)
    await asyncio.to_thread(slurm.exec, "ctl", "scontrol", "update", "nodename=node[1-4]", "state=drain", "reason=test")  # fmt: skip
    with pytest.raises(UnreachableError) as caught:
        await FoldersThere(errand).look(["/x"])
    assert caught.value.code == "job_did_not_end"
    assert "PENDING" in caught.value.message
    assert all("PENDING" not in line for line in jobs_of(slurm))
    await way.close()


async def test_one_who_may_not_be_root_is_told(slurm):
    settings = settings_for(slurm, "ssh", user="alice")
    place = FolderPlace("slurm", str(slurm.partition_on_nodes))
    async with open_keeper(settings, Partition(slurm.partition), place) as keeper:
        with pytest.raises(DeniedError) as caught:
            await keeper.look(["/x"])
    assert caught.value.code == "no_root"
    assert "sudo" in caught.value.message
    assert await user_number("bob", settings, place) == 20002


@pytest.fixture
def with_sudo(tmp_path):
    """A cluster whose user alice may act as root on the nodes, as HyperPod's ubuntu may."""
    with running("--users", "alice:20001", "--login", "1", nodes=1) as cluster:
        rules = cluster.folder / "etc" / "sudoers"
        rules.write_text("root ALL=(ALL) ALL\nalice ALL=(ALL) NOPASSWD: ALL\n")
        rules.chmod(0o440)
        cluster.exec("node1", "mount", "--bind", rules, "/etc/sudoers")
        yield cluster


async def test_one_who_may_act_as_root_needs_not_be_root(with_sudo):
    settings = settings_for(with_sudo, "ssh", user="alice", login_nodes=["login1"])
    place = FolderPlace("slurm", str(with_sudo.partition_on_nodes))
    async with open_keeper(settings, Partition(with_sudo.partition), place) as keeper:
        assert await keeper.make({"/alice": OPENED}) == {"/alice": None}
        assert await keeper.look(["/alice"]) == {"/alice": OPENED}
