"""Folders where the file system is mounted: as root on a file system of the test's own, with attacks."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from hyperpod_jlab.admin.folder_program import work as folder_work
from hyperpod_jlab.admin.fsx.folders import ROOT, LocalFolderProvisioner, folder_program
from hyperpod_jlab.core.errors import RefusedError
from tests.admin.folder_cases import GROUP, JOBS, OPENED, PERSON, PLAIN, FolderCases, names

__all__ = ["names"]


@pytest.fixture
def disk(tmp_path):
    """A folder bound to another place, so that what is above it is not the file system's."""
    real, made = tmp_path / "real", tmp_path / "fsx"
    real.mkdir(mode=0o755)
    made.mkdir()
    subprocess.run(["mount", "--bind", real, made], check=True)
    yield made
    subprocess.run(["umount", made], check=True)


@pytest.fixture
def root(disk):
    return disk


@pytest.fixture
def keeper(disk):
    return LocalFolderProvisioner(disk)


class TestFolders(FolderCases):
    """As for everybody."""


def as_user(uid, *words, gid=None, given=None):
    """Run a program as somebody else, with a group of his own unless another is given."""
    return subprocess.run(
        ["setpriv", f"--reuid={uid}", f"--regid={gid or uid}", "--clear-groups", *words],
        input=given,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def ram(tmp_path):
    """A file system that keeps no lists."""
    place = tmp_path / "ram"
    place.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "ramfs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.fixture
def swapping(disk, tmp_path):
    """Somebody who may write to the root puts a link in the folder's place, again and again; where it leads."""
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o711)
    code = f"""
import os
while True:
    for make in (lambda: os.symlink({str(victim)!r}, "alice"), lambda: os.unlink("alice"), lambda: os.rmdir("alice")):
        try: make()
        except OSError: pass
"""
    attacker = subprocess.Popen([sys.executable, "-c", code], cwd=disk)
    yield victim
    attacker.kill()
    attacker.wait()


@pytest.fixture
def reachable(disk):
    """All may come as far as the file system."""
    for folder in disk.parents:
        if folder.stat().st_uid == os.getuid() and not folder.stat().st_mode & 1:
            folder.chmod(folder.stat().st_mode | 0o111)


async def test_a_person_and_the_clusters_jobs_share_a_folder_and_nobody_else(keeper, disk, reachable):
    assert await keeper.make({"/alice": OPENED}) == {"/alice": None}
    assert await keeper.look(["/alice"]) == {"/alice": OPENED}
    folder = disk / "alice"
    made = as_user(JOBS, "sh", "-c", f"mkdir {folder}/run && echo out > {folder}/run/log")
    assert made.returncode == 0, made.stderr
    assert as_user(PERSON, "cat", f"{folder}/run/log").stdout == "out\n"
    assert as_user(PERSON, "sh", "-c", f"echo more >> {folder}/run/log").returncode == 0
    assert as_user(PERSON, "sh", "-c", f"echo mine > {folder}/mine").returncode == 0
    assert as_user(JOBS, "cat", f"{folder}/mine").stdout == "mine\n"
    assert as_user(4711, "cat", f"{folder}/run/log").returncode != 0
    assert as_user(4711, "ls", str(folder)).returncode != 0


async def test_the_group_is_never_let_in_by_the_lists_mask(keeper, disk, reachable):
    await keeper.make({"/alice": OPENED})
    assert as_user(4711, "ls", str(disk / "alice"), gid=GROUP).returncode != 0
    await keeper.make({"/alice": PLAIN})
    assert stat.S_IMODE((disk / "alice").stat().st_mode) == 0o700
    assert os.listxattr(disk / "alice") == []
    assert as_user(JOBS, "ls", str(disk / "alice")).returncode != 0


async def test_a_folder_of_all_keeps_the_bit_of_the_group(keeper, disk):
    shared = replace(OPENED, mode=0o3775)
    assert await keeper.make({"/shared": shared}) == {"/shared": None}
    assert await keeper.look(["/shared"]) == {"/shared": shared}
    assert (disk / "shared").stat().st_mode & stat.S_ISGID


async def test_again_changes_nothing_and_what_lies_in_it_stays(keeper, disk):
    await keeper.make({"/alice": OPENED})
    (disk / "alice" / "data").write_text("kept")
    before = (disk / "alice").stat().st_ctime_ns
    assert await keeper.make({"/alice": OPENED}) == {"/alice": None}
    assert (disk / "alice").stat().st_ctime_ns == before
    assert (disk / "alice" / "data").read_text() == "kept"


async def test_half_made_by_one_who_was_killed_is_made_whole(keeper, disk):
    (disk / "alice").mkdir(mode=0o700)  # as it is between the two calls
    assert await keeper.make({"/alice": OPENED}) == {"/alice": None}
    os.setxattr(disk / "alice", "system.posix_acl_access", os.getxattr(disk / "alice", "system.posix_acl_access"))  # fmt: skip
    os.removexattr(disk / "alice", "system.posix_acl_default")
    assert await keeper.make({"/alice": OPENED}) == {"/alice": None}
    assert await keeper.look(["/alice"]) == {"/alice": OPENED}


@pytest.mark.parametrize("kind", ["link", "file", "fifo", "link-out", "dangling"])
async def test_something_else_in_its_place(keeper, disk, tmp_path, kind):
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o711)
    place = disk / "alice"
    if kind == "file":
        place.write_text("")
    elif kind == "fifo":
        os.mkfifo(place)
    elif kind == "link":
        (disk / "bob").mkdir()
        place.symlink_to("bob")
    else:
        place.symlink_to(victim if kind == "link-out" else "/nowhere")
    found = await keeper.look(["/alice", "/bob2"])
    assert found["/alice"].other
    assert found["/bob2"] is None
    made = await keeper.make({"/alice": OPENED, "/bob2": PLAIN})
    assert made["/alice"].code == "no_folder"
    assert made["/bob2"] is None
    assert (victim.stat().st_uid, stat.S_IMODE(victim.stat().st_mode)) == (0, 0o711)


async def test_a_link_in_the_middle(keeper, disk, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (disk / "teams").symlink_to(victim)
    assert (await keeper.look(["/teams/shared"]))["/teams/shared"].other
    made = await keeper.make({"/teams/shared": PLAIN})
    assert made["/teams/shared"].code == "no_folder"
    assert list(victim.iterdir()) == []
    assert (await keeper.make({"/none/shared": PLAIN}))["/none/shared"].code == "no_parent"


@pytest.mark.parametrize(
    ("owner", "mode", "taken"),
    [
        (4711, 0o755, False),
        (4711, 0o1777, False),
        (0, 0o777, False),
        (0, 0o757, False),
        (0, 0o1777, True),
        (PERSON, 0o755, True),
        (0, 0o755, True),
    ],
)
@pytest.mark.parametrize("path", ["/teams/alice", "/teams/inner/alice"])
@pytest.mark.parametrize("is_new", [True, False])
async def test_nothing_is_given_below_a_folder_in_which_others_could_replace_it(
    keeper, disk, owner, mode, taken, path, is_new
):
    teams = disk / "teams"
    (teams / "inner").mkdir(parents=True)
    if not is_new:
        (disk / path[1:]).mkdir()
    os.chown(teams, owner, owner)
    teams.chmod(mode)
    error = (await keeper.make({path: PLAIN}))[path]
    assert (error and error.code) == (None if taken else "foreign_parent")
    if not taken:
        assert "teams" in error.message
        assert (disk / path[1:]).exists() is not is_new
        assert is_new or (disk / path[1:]).stat().st_uid == 0


@pytest.mark.parametrize("path", ["/..", "/a/../../etc", "alice", "/a\0b", "/."])
async def test_no_path_leads_out(keeper, path):
    with pytest.raises(RefusedError) as caught:
        await keeper.look([path])
    assert caught.value.code == "no_path"
    assert (await keeper.make({path: PLAIN}))[path].code == "no_path"


async def test_a_folder_of_somebody_else_stays_his_whatever_the_plan_saw(keeper, disk):
    (disk / "alice").mkdir(mode=0o755)
    os.chown(disk / "alice", 4711, 4711)
    (disk / "apps").mkdir()
    (disk / "apps" / "tool").write_text("root's")
    made = await keeper.make({"/alice": OPENED, "/apps": OPENED, "/bob": OPENED})
    assert [error and error.code for error in made.values()] == ["foreign_folder"] * 2 + [None]
    assert "4711" in made["/alice"].message
    for name, uid in (("alice", 4711), ("apps", 0)):
        found = (disk / name).stat()
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (uid, 0o755)


async def test_names_that_differ_only_in_case_are_two_folders(keeper, disk):
    made = await keeper.make({"/Alice": PLAIN, "/alice": replace(PLAIN, uid=20007)})
    assert made == {"/Alice": None, "/alice": None}
    assert (disk / "Alice").stat().st_uid != (disk / "alice").stat().st_uid


async def test_a_swap_while_it_works_gives_nothing_away(keeper, swapping):
    seen, tries, end = set(), 0, time.monotonic() + 30
    while tries < 300 or ("no_folder" not in seen and time.monotonic() < end):
        error = (await keeper.make({"/alice": OPENED}))["/alice"]
        seen.add(error and error.code)
        tries += 1
    assert "no_folder" in seen  # it was there in time, now and then
    assert (swapping.stat().st_uid, stat.S_IMODE(swapping.stat().st_mode)) == (0, 0o711)
    assert os.listxattr(swapping) == []


async def test_a_file_system_without_lists_says_so(ram):
    keeper = LocalFolderProvisioner(ram)
    assert not (await keeper.look([ROOT]))[ROOT].takes_acls
    assert (await keeper.make({"/alice": OPENED}))["/alice"].code == "no_acl"
    found = (ram / "alice").stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (PERSON, 0o700)
    assert await keeper.make({"/alice": PLAIN}) == {"/alice": None}


def test_without_root_nothing_is_left_half_done(disk, reachable):
    """As somebody who may make folders, but give none away: what was made is taken away again."""
    disk.chmod(0o777)
    folder = {"path": "/alice", "uid": 4712, "gid": 4712, "mode": 0o700, "acl": [], "default": []}
    order = {"root": str(disk), "do": "make", "folders": [folder]}
    code = f"import json, sys; text = {{}}; exec(sys.stdin.read(), text); print(json.dumps(text['work']({order!r})))"
    text = folder_program()
    done = as_user(4711, "/usr/bin/python3", "-c", code, given=text)
    assert '"denied"' in done.stdout, done.stderr
    assert list(disk.iterdir()) == []


def test_an_answer_that_was_cut_off_or_forged_is_none():
    line = folder_work.seal_response({"version": 1, "results": []}, "key")
    around = f"some warning\n{line}bye\n"
    assert folder_work.open_response(around, "key") == {"version": 1, "results": []}
    assert folder_work.open_response(around, "other key") is None
    assert all(folder_work.open_response(line[:end], "key") is None for end in range(len(line) - 2))
    assert folder_work.open_response(line.replace("hyperpod-folders ", "hyperpod-folders x"), "key") is None  # fmt: skip
