"""What holds of folders whoever looks after them: this machine, a job of Slurm, a Job of Kubernetes.

A module of tests has the cases by a class of its own (``class TestFolders(FolderCases)``, or `JobCases`), the fixture `names`, and fixtures that say where:

- ``root``: the file system as this machine sees it;
- ``keeper``: who looks after its folders;
- ``errand``: makes what sends a job, as a function changes it (`slow`, `cut`);
- ``jobs_sent``: says how many jobs were sent so far; ``jobs_left``: which are there still; ``kill_jobs``: ends those that run.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from dataclasses import replace

import pytest

from hyperpod_jlab.admin.fsx.folders import ROOT, RemoteFolderProvisioner
from hyperpod_jlab.admin.fsx.models import Folder
from hyperpod_jlab.core.errors import RefusedError, UnreachableError

PERSON, GROUP, JOBS, STRANGER = 200001, 1001, 1000, 4711
PLAIN = Folder(PERSON, GROUP, 0o700)
OPENED = replace(
    PLAIN,
    acl=(("user", JOBS, 7),),
    default=(("user", None, 7), ("user", JOBS, 7), ("user", PERSON, 7), ("group", None, 0), ("other", None, 0)),
)
SHARED = Folder(PERSON, GROUP, 0o3775)


@pytest.fixture
def names(root):
    """Names of folders that no other test has; removed at the end."""
    made: list[str] = []

    def new(count=1):
        made.extend(f"/p{os.urandom(4).hex()}" for _ in range(count))
        return made[-count:]

    yield new
    for name in made:
        path = root / name[1:]
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            path.rmdir()


def slow(errand):
    """Its program takes its time for each folder."""
    run, loop = errand.run, '    for folder_spec in request["folders"]:\n'

    async def slowly(program, name):
        assert program.count(loop) == 1
        return await run(program.replace(loop, f"{loop}        time.sleep(0.1)\n"), name)

    errand.run = slowly
    return errand


def cut(errand):
    """What comes back of it is cut off."""
    run = errand.run

    async def half(program, name):
        return (await run(program, name))[:-20]

    errand.run = half
    return errand


async def unhindered():
    """Nothing stands against it."""


def as_it_is(errand):
    """Nothing is changed."""
    return errand


class FolderCases:
    """For everybody."""

    async def test_links_files_and_folders_of_others(self, keeper, root, names):
        link, file, theirs, good, middle = names(5)
        victim = root.parent / "victim"
        victim.mkdir(mode=0o711)
        (root / link[1:]).symlink_to(victim)
        (root / file[1:]).write_text("")
        (root / theirs[1:]).mkdir()
        os.chown(root / theirs[1:], STRANGER, STRANGER)
        (root / middle[1:]).symlink_to(".")
        wanted = dict.fromkeys((link, file, theirs, good, f"{middle}/{good[1:]}x"), OPENED)
        made = await keeper.make(wanted)
        codes = [error and error.code for error in made.values()]
        assert codes == ["no_folder", "no_folder", "foreign_folder", None, "no_folder"]
        assert (victim.stat().st_uid, stat.S_IMODE(victim.stat().st_mode)) == (0, 0o711)
        victim.rmdir()
        assert (root / theirs[1:]).stat().st_uid == STRANGER

    async def test_two_batches_at_once(self, keeper, names):
        wanted = dict.fromkeys(names(100), OPENED)
        for made in await asyncio.gather(keeper.make(wanted), keeper.make(wanted)):
            assert made == dict.fromkeys(wanted), {k: v for k, v in made.items() if v}
        assert set((await keeper.look(wanted)).values()) == {OPENED}

    async def test_what_is_deleted_and_what_is_left(self, keeper, root, names):
        full, empty, missing, theirs, link, kept = names(6)
        victim = root / kept[1:]
        for path in (full, empty, theirs, kept):
            (root / path[1:]).mkdir()
            os.chown(root / path[1:], PERSON, GROUP)
        (root / link[1:]).symlink_to(victim)
        os.chown(root / theirs[1:], STRANGER, STRANGER)
        inner = root / full[1:] / "runs" / "one"
        inner.mkdir(parents=True)
        (victim / "data").write_text("kept")
        (inner / "log").write_text("out")
        (inner / "away").symlink_to(victim)
        (inner.parent / "data").symlink_to(victim / "data")
        os.chown(inner / "log", STRANGER, STRANGER)
        paths = (full, empty, missing, theirs, link)
        ended = await keeper.delete(dict.fromkeys(paths, PERSON), unhindered)
        codes = [error and error.code for error in ended.values()]
        assert codes == [None, None, None, "foreign_folder", "no_folder"]
        assert [(root / path[1:]).is_dir() for path in paths] == [False, False, False, True, True]
        assert (victim / "data").read_text() == "kept"
        (victim / "data").unlink()


class JobCases(FolderCases):
    """For those who send jobs."""

    killed: str
    """What is said of a job that was ended by force (a pattern)."""

    async def test_all_folders_of_a_plan_are_one_job(self, keeper, root, names, jobs_sent):
        paths = names(500)
        before = jobs_sent()
        assert set((await keeper.look([ROOT, *paths])).values()) >= {None}
        wanted = {**dict.fromkeys(paths, OPENED), paths[0]: SHARED}
        assert await keeper.make(wanted) == dict.fromkeys(paths)
        assert await keeper.look(paths) == wanted
        assert jobs_sent() - before == 3
        found = (root / paths[1][1:]).stat()
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (PERSON, GROUP, 0o770)

    async def test_a_job_that_is_killed_half_way_and_once_more(self, keeper, errand, root, names, kill_jobs, jobs_left):
        paths = names(80)
        making = asyncio.create_task(RemoteFolderProvisioner(errand(slow)).make(dict.fromkeys(paths, OPENED)))
        await _there(root, paths[4], making)
        await asyncio.to_thread(kill_jobs)
        with pytest.raises(RefusedError) as caught:
            await making
        assert caught.value.code == "job_failed"
        assert re.search(self.killed, caught.value.message)
        assert not (root / paths[-1][1:]).exists()
        assert await keeper.make(dict.fromkeys(paths, OPENED)) == dict.fromkeys(paths)
        assert set((await keeper.look(paths)).values()) == {OPENED}
        assert jobs_left() == []

    async def test_who_gives_up_takes_the_job_back(self, errand, root, names, jobs_left):
        paths = names(80)
        making = asyncio.create_task(RemoteFolderProvisioner(errand(slow)).make(dict.fromkeys(paths, OPENED)))
        await _there(root, paths[0], making)
        assert jobs_left() != []
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)
        assert jobs_left() == []

    async def test_an_answer_that_is_not_whole_is_none(self, errand, names):
        with pytest.raises(UnreachableError) as caught:
            await RemoteFolderProvisioner(errand(cut)).make(dict.fromkeys(names(), OPENED))
        assert caught.value.code == "no_answer"


async def _there(root, path, making):
    """Wait until a folder is made, by who is at it."""
    while not (root / path[1:]).exists():
        await asyncio.sleep(0.02)
        assert not making.done()
