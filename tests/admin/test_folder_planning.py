"""Which folders there are to be, and what waits for them: a table of cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hyperpod_jlab.admin.fsx.folders import ROOT
from hyperpod_jlab.admin.fsx.models import ATTACHED, ROOT_UID, Folder, FolderStep
from hyperpod_jlab.admin.fsx.planning import plan
from tests.admin.test_planning import NOTHING, PER_USER, SHARED, attached, domain, fsx, profile, space, step, there

PRIVATE = Folder(200001, 1001, 0o700)
JOBS = ("user", 1000, 7)
DEFAULT = (("user", None, 7), JOBS, ("user", 200001, 7), ("group", None, 0), ("other", None, 0))
OPENED = replace(PRIVATE, acl=(JOBS,), default=DEFAULT)
WITH_JOBS = replace(PER_USER, cluster_user=1000)

FOLDERS = [
    (None, PER_USER, "waits", "folders are not checked"),
    ({}, PER_USER, "to do", None),
    ({"/alice": None}, PER_USER, "to do", None),
    ({"/alice": PRIVATE}, PER_USER, "done", None),
    ({"/alice": replace(PRIVATE, mode=0o755)}, PER_USER, "to do", None),
    ({"/alice": Folder(0, 0, 0o755)}, PER_USER, "to do", None),
    ({"/alice": Folder(0, 0, 0o755, empty=False)}, PER_USER, "blocked", "is not empty"),
    ({"/alice": replace(PRIVATE, uid=4711)}, PER_USER, "blocked", "uid 4711"),
    ({"/alice": Folder(0, 0, 0, other=True)}, PER_USER, "blocked", "a file or a link"),
    ({"/alice": PRIVATE}, WITH_JOBS, "to do", None),
    ({"/alice": OPENED}, WITH_JOBS, "done", None),
    ({"/alice": replace(OPENED, acl=(("user", 1000, 5),))}, WITH_JOBS, "to do", None),
    ({"/alice": replace(OPENED, default=())}, WITH_JOBS, "to do", None),
    # Nothing is said of the cluster's user, as by a timer that makes folders anew: whoever is let in stays so.
    ({"/alice": OPENED}, PER_USER, "done", None),
    ({"/alice": OPENED}, replace(PER_USER, cluster_user=ROOT_UID), "to do", None),
    ({"/alice": PRIVATE}, replace(PER_USER, cluster_user=ROOT_UID), "done", None),
    ({"/alice": replace(OPENED, acl=(JOBS, ("user", 4711, 7)))}, WITH_JOBS, "to do", None),
]


@pytest.mark.parametrize(("folders", "wanted", "state", "words"), FOLDERS)
def test_a_private_folder(folders, wanted, state, words):
    found = step(plan(there(profile(), folders=folders), wanted), "folder /alice")
    assert found.state == state
    assert (words or "") in (found.reason or "")
    assert (words is None) == (found.reason is None)


def test_the_plan_shows_owner_mode_and_lists_before_and_after():
    found = step(plan(there(profile(), folders={"/alice": PRIVATE}), WITH_JOBS), "folder /alice")
    assert found.before == "owner 200001:1001, mode 0700"
    assert found.after == ("owner 200001:1001, mode 0700, ACL user:1000:rwx, default ACL user:1000:rwx,user:200001:rwx")


def test_a_folder_belongs_to_the_profiles_own_user_number():
    made = plan(there(profile(uid=20007, gid=2000)), WITH_JOBS)
    folder = step(made, "folder /alice").folder
    assert (folder.uid, folder.gid, folder.mode) == (20007, 2000, 0o700)
    assert ("user", 20007, 7) in folder.default
    # Whom the jobs run as needs no leave in a folder of his own.
    own = plan(there(profile(uid=1000, gid=2000)), WITH_JOBS)
    assert step(own, "folder /alice").folder == Folder(1000, 2000, 0o700)


def test_the_folder_of_all_keeps_whom_others_have_let_in():
    made = plan(there(domain()), SHARED)
    assert step(made, "folder /shared").after == "owner 200001:1001, mode 3775"
    theirs = ("group", 4711, 5)
    seen = Folder(200001, 1001, 0o3775, acl=(theirs,))
    with_jobs = replace(SHARED, cluster_user=1000)
    found = step(plan(there(domain(), folders={"/shared": seen}), with_jobs), "folder /shared")
    assert (found.state, found.folder.acl) == ("to do", (JOBS, theirs))
    made = plan(there(domain(), folders={"/shared": found.folder}), SHARED)
    assert step(made, "folder /shared").state == "done"
    assert not [one for one in plan(there(domain()), NOTHING).steps if "folder" in one.target]


def test_a_file_system_without_lists_is_said():
    root = Folder(0, 0, 0o755, takes_acls=False)
    made = plan(there(profile(), folders={ROOT: root, "/alice": PRIVATE}), WITH_JOBS)
    assert [(one.level, one.code) for one in made.findings] == [("warning", "no_acls")]
    assert "uid 1000" in made.findings[0].message
    assert step(made, "folder /alice").state == "done"
    assert plan(there(profile(), folders={ROOT: root}), PER_USER).findings == ()


WAITING = [
    # what is known of the folder, then the profile and its private space
    (None, "waits", "the folder /alice was not checked"),
    ({"/alice": replace(PRIVATE, uid=4711)}, "blocked", "uid 4711"),
    ({}, "to do", None),
    ({"/alice": PRIVATE}, "to do", None),
]


@pytest.mark.parametrize(("folders", "state", "words"), WAITING)
def test_what_mounts_a_folder_waits_for_it(folders, state, words):
    holders = (profile(), space(owner="alice"), space("team"))
    made = plan(there(*holders, folders=folders), PER_USER)
    for target in ("profile alice", "space work"):
        found = step(made, target)
        assert found.state == state
        assert (words or "") in (found.reason or "")
        assert (found.reason is None) == (words is None)
    assert step(made, "space team").state == "done"


def test_what_is_mounted_already_does_not_wait():
    holders = (profile("alice", fsx("/alice"), mark="/alice"), space("work", attached(), owner="alice", mark=ATTACHED))
    made = plan(there(*holders, folders=None), PER_USER)
    assert [one.state for one in made.steps if not isinstance(one, FolderStep)][1:] == ["done"] * 2
    # Taking away needs no folder.
    assert all(one.state == "to do" for one in plan(there(*holders, folders=None), NOTHING).steps)


def test_folders_that_are_there_as_the_admin_says_keep_nobody_waiting():
    holders = (profile(), space(owner="alice"))
    made = plan(there(*holders, folders=None), replace(PER_USER, folders_are_there=True))
    assert not [one for one in made.steps if isinstance(one, FolderStep)]
    assert (step(made, "profile alice").state, step(made, "space work").state) == ("to do", "to do")


def test_a_profile_called_as_the_folder_of_all_keeps_nobody_else_from_theirs():
    holders = (profile("shared"), space(owner="shared"), profile("alice"))
    made = plan(there(*holders), PER_USER)
    assert [(one.level, one.code) for one in made.findings] == [("warning", "shared_folder_of_a_profile")]
    for target in ("profile shared", "space work"):
        assert step(made, target).state == "blocked"
        assert "all users share it" in (step(made, target).reason or "")
    assert step(made, "profile alice").state == "to do"
    assert "folder /shared" not in {one.target for one in made.steps}


def test_the_folder_of_all_may_be_there_though_nobody_looks():
    made = plan(there(domain(), folders=None), SHARED)
    assert step(made, "folder /shared").state == "waits"
    assert step(made, "domain d-example").state == "to do"
