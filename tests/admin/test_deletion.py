"""Folders that are deleted when all is taken back: only when an admin says so twice, only those that were given, and beside people who change them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from hyperpod_jlab.admin.folder_program import removal
from hyperpod_jlab.admin.fsx import apply as applying
from hyperpod_jlab.admin.fsx import commands as taking_back
from hyperpod_jlab.admin.fsx.aws import claim_tag, mount_tag
from hyperpod_jlab.admin.fsx.folders import LocalFolderProvisioner
from hyperpod_jlab.admin.fsx.models import Folder
from hyperpod_jlab.admin.fsx.planning import plan
from hyperpod_jlab.admin.fsx.reconcile import Reconciler
from testbed.aws.state import Profile, lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.admin.folder_cases import unhindered
from tests.admin.test_planning import NOTHING, attached, domain, fsx, profile, space, there

WHERE = ("--domain", DOMAIN, "--file-system", FILE_SYSTEM)
DELETE = ("admin", "destroy", *WHERE, "--delete-data", FILE_SYSTEM)
PERSON, GROUP = 200001, 1001

WITHOUT_DATA = replace(NOTHING, without_data=True)
PRIVATE = Folder(PERSON, GROUP, 0o700)
SHARED = Folder(PERSON, GROUP, 0o3775)
ALICE = profile("alice", fsx("/alice"), mark="/alice")
OURS = domain(fsx("/shared"), mark="/shared")
ONLY_ALICE = replace(WITHOUT_DATA, profiles=frozenset({"alice"}))

PLANS = [
    # what, who there is, folders, what is wanted, steps with state and words of the reason
    ("hers", (domain(), ALICE), {"/alice": PRIVATE}, WITHOUT_DATA, [("/alice", "to do", "")]),
    ("nobody said so", (domain(), ALICE), {"/alice": PRIVATE}, NOTHING, []),
    ("nobody looks", (domain(), ALICE), None, WITHOUT_DATA, [("/alice", "waits", "folders are not checked")]),
    ("it does not exist", (domain(), ALICE), {}, WITHOUT_DATA, [("/alice", "done", "")]),
    ("of somebody else", (domain(), ALICE), {"/alice": replace(PRIVATE, uid=4711)}, WITHOUT_DATA, [("/alice", "blocked", "uid 4711")]),
    ("of root", (domain(), ALICE), {"/alice": Folder(0, 0, 0o755)}, WITHOUT_DATA, [("/alice", "to do", "")]),
    ("of root, with something in it", (domain(), ALICE), {"/alice": Folder(0, 0, 0o755, empty=False)}, WITHOUT_DATA, [("/alice", "blocked", "belongs to root")]),
    ("which another spells otherwise", (OURS, profile("bob", fsx("//team/../shared/x"))), {"/shared": SHARED}, WITHOUT_DATA, [("/shared", "blocked", "profile bob")]),
    ("a link", (domain(), ALICE), {"/alice": Folder(0, 0, 0, other=True)}, WITHOUT_DATA, [("/alice", "blocked", "a link")]),
    ("of all", (OURS, profile()), {"/shared": SHARED}, WITHOUT_DATA, [("/shared", "to do", "")]),
    ("what somebody else has set", (domain(fsx("/x")), profile("alice", fsx("/y"))), {"/x": SHARED, "/y": PRIVATE}, WITHOUT_DATA, []),
    ("which another mounts", (domain(), ALICE, profile("bob", fsx("/alice"))), {"/alice": PRIVATE}, WITHOUT_DATA, [("/alice", "blocked", "profile bob still mounts it")]),
    ("of which another mounts a part", (OURS, profile("bob", fsx("/shared/bob"))), {"/shared": SHARED}, WITHOUT_DATA, [("/shared", "blocked", "profile bob")]),
    ("one alone", (OURS, ALICE), {"/alice": PRIVATE, "/shared": SHARED}, ONLY_ALICE, [("/alice", "to do", "")]),
    ("which the others have too", (OURS, profile("alice", fsx("/shared"), mark="/shared"), profile("bob")), {"/shared": SHARED}, ONLY_ALICE, [("/shared", "blocked", "bob")]),
    ("which is open", (domain(), ALICE, space("work", attached(), owner="alice", apps=("JupyterLab",))), {"/alice": PRIVATE}, WITHOUT_DATA, [("/alice", "waits", "stop space work")]),
    *((f"a mark that is none: {mark!r}", (domain(), replace(ALICE, mark=mark)), {"/alice": PRIVATE, mark: PRIVATE}, WITHOUT_DATA, [])
      for mark in ("/", "", "//", "/.", "/..", "/shared/../alice", "alice", "/alice/", "/a b", "/a\n")),
    ("a number of her own", (domain(), replace(ALICE, uid=210001)), {"/alice": replace(PRIVATE, uid=210001)}, WITHOUT_DATA, [("/alice", "to do", "")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("holders", "folders", "wanted", "steps"), [pytest.param(*case[1:], id=case[0]) for case in PLANS]
)
def test_what_is_to_be_deleted(holders, folders, wanted, steps):
    made = plan(there(*holders, folders=folders), wanted)
    found = made.deletions
    assert [(one.path, one.state) for one in found] == [one[:2] for one in steps]
    for one, (_, _, words) in zip(found, steps, strict=True):
        assert words in (one.reason or "")
    said = [one.text for one in made.statements if one.topic == "data"]
    told = [one.path for one in found if one.state == "to do"]
    assert said[0].startswith("Permanently deleted" if told else "Nothing is moved")
    assert all(path in said[0] for path in told)
    assert not any(path in text for text in said[1:] if "stay in" in text for path in told)


# ---------------------------------------------------------------------------------------- as an admin types it


@pytest.fixture
def wired(account, hpj, disk, monkeypatch):
    """Files in both modes; the one for each is there now."""
    monkeypatch.setattr(applying, "POLL_S", 0.02)
    at = ("--mounted-at", str(disk), "--yes")
    hpj("admin", "apply", *WHERE, "--partition-mode", "shared", *at).ok()
    (disk / "shared" / "data.txt").write_text("of all")
    hpj("admin", "apply", *WHERE, "--partition-mode", "per-user", *at).ok()
    (disk / "alice" / "runs").mkdir()
    (disk / "alice" / "runs" / "log").write_text("out")
    (disk / "others").mkdir()
    return account


def mounted(account):
    return {name for _, name in account.profiles if account.profiles[DOMAIN, name].file_systems}


def test_what_was_given_goes_and_nothing_else(wired, hpj, disk):
    done = hpj(*DELETE, "--mounted-at", str(disk), "--yes").ok()
    assert "data: Permanently deleted with all content" in done.out
    assert "folder /alice: deleted with all its content" in done.out
    # The folder of the mode before has no mark any more.
    assert sorted(one.name for one in disk.iterdir()) == ["others", "shared"]
    assert mounted(wired) == set()
    again = hpj(*DELETE, "--mounted-at", str(disk), "--yes").ok()
    assert again.out.splitlines()[-1] == "7 up to date"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), "not_confirmed", "changes need confirmation"),
        (("--yes", "--delete-data", "fs-0aaaaaaaaaaaaaaaa"), None, "but the file system is"),
        (("--yes", "--delete-data", "yes"), None, "but the file system is"),
        (("--yes", "--folders", "none"), None, "--delete-data needs a place"),
    ],
)
def test_nothing_without_two_words(wired, hpj, disk, words, code, message):
    at = () if "none" in words else ("--mounted-at", str(disk))
    done = hpj(*DELETE, *at, *words, "--json")
    assert (done.code, code or "invalid_input") == (2, done.error["code"])
    assert message in done.error["message"]
    assert (disk / "alice" / "runs" / "log").read_text() == "out"
    assert mounted(wired) == {"alice", "bob", "carol"}


def test_folders_stay_without_the_word_for_them(wired, hpj, disk):
    done = hpj("admin", "destroy", *WHERE, "--mounted-at", str(disk), "--yes", "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, "folders")
    hpj("admin", "destroy", *WHERE, "--yes").ok()
    assert (disk / "alice" / "runs" / "log").read_text() == "out"


def test_while_a_space_runs_nothing_is_done(wired, hpj, disk):
    wired.spaces[DOMAIN, "work"].apps.append("JupyterLab")
    done = hpj(*DELETE, "--mounted-at", str(disk), "--yes", "--json")
    assert (done.code, done.error["code"]) == (2, "data_in_use")
    assert "stop space work" in done.error["message"]
    assert mounted(wired) == {"alice", "bob", "carol"}
    wired.spaces[DOMAIN, "work"].apps.clear()
    hpj(*DELETE, "--mounted-at", str(disk), "--yes").ok()
    assert not (disk / "alice").exists()


def test_while_a_list_stays_no_folder_goes_and_all_may_be_done_again(wired, hpj, disk, endpoint):
    """AWS refuses to change one of them."""
    endpoint.faults.deny("sagemaker:UpdateUserProfile", "bob")
    done = hpj(*DELETE, "--mounted-at", str(disk), "--yes")
    assert done.code == 4
    assert all((disk / name).is_dir() for name in ("alice", "bob", "carol"))
    endpoint.faults.denied.clear()
    hpj(*DELETE, "--mounted-at", str(disk), "--yes").ok()
    assert sorted(one.name for one in disk.iterdir()) == ["others", "shared"]
    assert [profile.tags for profile in wired.profiles.values()] == [{}, {}, {}]


def test_broken_off_it_goes_on(wired, hpj, disk):
    """Something of alice's cannot be deleted at first: the marks tell the next one of it."""
    (disk / "alice" / "runs" / "kept").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk / "alice" / "runs" / "kept"], check=True)
    try:
        done = hpj(*DELETE, "--mounted-at", str(disk), "--yes")
    finally:
        subprocess.run(["umount", disk / "alice" / "runs" / "kept"], check=True)
    assert (done.code, "a file system is mounted" in done.err) == (2, True)
    assert sorted(one.name for one in disk.iterdir()) == ["alice", "others", "shared"]
    done = hpj(*DELETE, "--mounted-at", str(disk), "--yes").ok()
    assert "folder /alice: deleted" in done.out
    assert not (disk / "alice").exists()
    assert hpj("admin", "destroy", *WHERE, "--yes").ok().out.splitlines()[-1] == "7 up to date"


@pytest.fixture
def meanwhile(monkeypatch):
    """Has something done once the lists are taken away, and before folders are looked at again."""
    delete = Reconciler.delete

    def given(do):
        async def later(reconciler, there, asked):
            do()
            return await delete(reconciler, there, asked)

        monkeypatch.setattr(Reconciler, "delete", later)

    return given


def test_what_begins_between_the_question_and_the_deletion(wired, hpj, disk, meanwhile):
    def begin():
        wired.spaces[DOMAIN, "work"].apps.append("JupyterLab")
        wired.profiles[DOMAIN, "bob"].file_systems = [lustre_at(FILE_SYSTEM, "//carol/part")]
        (disk / "dave").mkdir()
        wired.profiles[DOMAIN, "dave"] = Profile(tags={mount_tag("profile", FILE_SYSTEM): "/dave"})

    meanwhile(begin)
    done = hpj(*DELETE, "--mounted-at", str(disk), "--yes")
    assert done.code == 2
    assert "/alice was not deleted: a running application may use it: stop space work" in done.err
    assert "/carol was not deleted: profile bob still mounts it" in done.err
    left = sorted(one.name for one in disk.iterdir())
    assert left == ["alice", "carol", "dave", "others", "shared"]


@pytest.mark.parametrize("do", ["another shared folder", "a list", "a mark", "a space", "an owner"])
def test_what_changes_while_an_admin_thinks(wired, hpj, disk, monkeypatch, do):
    """Between the question and the first change: nothing is done."""
    shared = ("--partition-mode", "shared", "--shared-path", "/alice/sub")
    found = {}

    def answer(count, more):
        assert more == "Permanently delete /alice, /bob, /carol with all content?"
        if do == "another shared folder":
            hpj("admin", "apply", *WHERE, *shared, "--mounted-at", str(disk), "--yes").ok()
        elif do == "a list":
            wired.profiles[DOMAIN, "bob"].file_systems = [lustre_at(FILE_SYSTEM, "/carol/part")]
        elif do == "a mark":
            del wired.profiles[DOMAIN, "carol"].tags[mount_tag("profile", FILE_SYSTEM)]
        elif do == "a space":
            wired.spaces[DOMAIN, "work"].apps.append("JupyterLab")
        else:
            os.chown(disk / "alice", 4711, 4711)
        found.update({key: list(one.file_systems) for key, one in wired.profiles.items()})
        return True

    monkeypatch.setattr(taking_back, "confirmed", answer)
    done = hpj(*DELETE, "--mounted-at", str(disk), "--json")
    assert done.code == 2
    assert done.error["code"] == "changed_meanwhile"
    assert (disk / "alice" / "runs" / "log").read_text() == "out"
    assert {key: one.file_systems for key, one in wired.profiles.items()} == found


def test_beside_an_apply_nothing_is_begun(wired, hpj, disk):
    wired.domains[DOMAIN].tags[claim_tag(FILE_SYSTEM)] = "shared /alice"
    done = hpj(*DELETE, "--mounted-at", str(disk), "--yes", "--json")
    assert (done.code, done.error["code"]) == (2, "superseded")
    assert mounted(wired) == {"alice", "bob", "carol"}
    wired.domains[DOMAIN].tags[claim_tag(FILE_SYSTEM)] = "nothing"  # a destroy that was broken off
    hpj(*DELETE, "--mounted-at", str(disk), "--yes").ok()
    assert not (disk / "alice").exists()


def test_an_apply_that_begins_ends_it(wired, hpj, disk, meanwhile):
    def begin():
        wired.domains[DOMAIN].tags[claim_tag(FILE_SYSTEM)] = "shared /alice"

    meanwhile(begin)
    done = hpj(*DELETE, "--mounted-at", str(disk), "--yes")
    assert (done.code, "another apply to this domain is in progress" in done.err) == (2, True)
    assert (disk / "alice" / "runs" / "log").read_text() == "out"


# ---------------------------------------------------------------------------------------- beside others


@pytest.fixture
def folder(disk):
    made = disk / "alice"
    made.mkdir()
    os.chown(made, PERSON, GROUP)
    return made


async def deleted(disk):
    error = (await LocalFolderProvisioner(disk).delete({"/alice": PERSON}, unhindered))["/alice"]
    return error and error.code


async def test_as_deep_as_folders_go(disk, folder):
    place = os.open(folder, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=place))
    os.close(place)
    assert await deleted(disk) is None
    assert not folder.exists()


async def test_in_several_goes(disk, folder, monkeypatch):
    for number in range(20):
        (folder / f"d{number}").mkdir()
        for file in range(100):
            (folder / f"d{number}" / f"f{file}").touch()
    answers = []
    monkeypatch.setattr(LocalFolderProvisioner, "deletes", 0.01)
    answer = LocalFolderProvisioner._run_request

    async def counted(self, do, folders):
        answers.append(await answer(self, do, folders))
        return answers[-1]

    monkeypatch.setattr(LocalFolderProvisioner, "_run_request", counted)
    assert await deleted(disk) is None
    assert not folder.exists()
    assert len(answers) > 1


@pytest.fixture(params=[False, True], ids=["another file system", "a folder of the same"])
def inner(folder, request):
    """Something is mounted in it."""
    place = folder / "runs" / "mounted"
    place.mkdir(parents=True)
    (folder.parent / "others").mkdir(exist_ok=True)
    bind = ["--bind", folder.parent / "others"]
    subprocess.run(["mount", *(bind if request.param else ["-t", "tmpfs", "tmpfs"]), place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


async def test_what_is_mounted_in_it_is_left(disk, inner):
    (inner / "data").write_text("of another")
    assert await deleted(disk) == "mounted_below"
    assert (inner / "data").read_text() == "of another"


@pytest.fixture
def covered(disk, folder):
    """Another folder of the same owner is in its place."""
    other = disk / "others"
    other.mkdir()
    os.chown(other, PERSON, GROUP)
    (other / "data").write_text("of others")
    subprocess.run(["mount", "--bind", other, folder], check=True)
    yield other
    subprocess.run(["umount", folder], check=True)


async def test_what_is_mounted_in_its_place_is_left(disk, covered):
    assert await deleted(disk) == "mounted_below"
    assert (covered / "data").read_text() == "of others"


async def test_an_empty_folder_of_root_is_no_more_than_removed(disk):
    (disk / "alice").mkdir()
    (disk / "alice" / "data").touch()
    keeper = LocalFolderProvisioner(disk)
    assert (await keeper.delete({"/alice": 0}, unhindered))["/alice"].code == "foreign_folder"
    (disk / "alice" / "data").unlink()
    assert await keeper.delete({"/alice": 0, "/no/x": 0}, unhindered) == {"/alice": None, "/no/x": None}
    assert not (disk / "alice").exists()


@pytest.fixture
def beside():
    """Runs a program until the test ends."""
    begun = []
    yield lambda *words: begun.append(subprocess.Popen([sys.executable, "-c", *map(str, words)]))
    for one in begun:
        one.kill()
        one.wait()


WRITING = """
import os, sys
while True:
    for number in range(50):
        try:
            os.makedirs(f"{sys.argv[1]}/d{number}", exist_ok=True)
            open(f"{sys.argv[1]}/d{number}/f", "w").close()
        except OSError:
            if not os.path.isdir(sys.argv[1]):
                sys.exit()
"""


async def test_who_goes_on_writing_is_told_of_or_has_lost(disk, folder, beside):
    beside(WRITING, folder)
    assert await deleted(disk) in {None, "in_use"}


async def test_a_link_in_a_folder_s_place_leads_nowhere(disk, folder, tmp_path, monkeypatch):
    """It is put there once a folder was seen, and before that is opened."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "data").write_text("kept")
    (folder / "runs").mkdir()
    look = removal._remove_files

    def swapped(level, until):
        done = look(level, until)
        if "runs" in level.inner:
            (folder / "runs").rmdir()
            (folder / "runs").symlink_to(victim)
        return done

    monkeypatch.setattr(removal, "_remove_files", swapped)
    assert await deleted(disk) is None
    assert not folder.exists()
    assert (victim / "data").read_text() == "kept"
