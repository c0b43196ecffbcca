"""From what is there and what is wanted to the steps: a table of cases."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

import pytest

from hyperpod_jlab.admin.fsx.models import (
    ATTACHED,
    ActualState,
    DesiredState,
    EntryStep,
    FileSystemInterface,
    FsxFileSystem,
    GroupStep,
    MountTarget,
    mounted_path,
)
from hyperpod_jlab.admin.fsx.planning import plan
from hyperpod_jlab.core.wire import to_plain

FS, DOMAIN, GROUP = "fs-0123456789abcdef0", "d-example", "sg-0aaa"
SHARED, PER_USER, NOTHING = (DesiredState("shared"), DesiredState("per-user"), DesiredState(None))


def fsx(path, name=FS, **more):
    return {"FSxLustreFileSystemConfig": {"FileSystemId": name, "FileSystemPath": path, **more}}


def efs(name="fs-0efs"):
    return {"EFSFileSystemConfig": {"FileSystemId": name}}


def attached(name=FS):
    return {"FSxLustreFileSystem": {"FileSystemId": name}}


def profile(name="alice", *entries, **more):
    return MountTarget("profile", name, more.pop("status", "InService"), entries, **more)


def domain(*entries, **more):
    return MountTarget("domain", DOMAIN, more.pop("status", "InService"), entries, **more)


def space(name="work", *entries, **more):
    return MountTarget("space", name, more.pop("status", "InService"), entries, **more)


def there(*holders, folders=MappingProxyType({}), groups=(GROUP,), ours=(), **more):
    known = {"kind": "LUSTRE", "state": "AVAILABLE", "vpc": "vpc-1", "subnets": ("subnet-1",), **more}
    interface = FileSystemInterface("eni-1", groups, ours)
    return ActualState(
        DOMAIN,
        "vpc-1",
        ("subnet-1", "subnet-2"),
        GROUP,
        FsxFileSystem(FS, interfaces=(interface,), folders=folders, **known),
        holders,
    )


def step(made, target):
    (found,) = [one for one in made.steps if one.target == target]
    return found


CASES = [
    # what, holder, wanted, (state, path then), words of the reason
    ("defaults get the shared folder", domain(), SHARED, ("to do", "/shared"), None),
    ("they have it", domain(fsx("/shared"), mark="/shared"), SHARED, ("done", "/shared"), None),
    ("per user the defaults have none", domain(fsx("/shared"), mark="/shared"), PER_USER, ("to do", None), None),
    ("what others set stays", domain(fsx("/theirs")), PER_USER, ("done", "/theirs"), None),
    ("what others set is in the way", domain(fsx("/theirs")), SHARED, ("blocked", "/shared"), "--take-over"),
    ("unless it is taken over", domain(fsx("/theirs")), replace(SHARED, take_over=True), ("to do", "/shared"), None),
    ("changed by hand since", domain(fsx("/theirs"), mark="/shared"), SHARED, ("blocked", "/shared"), "/theirs"),
    ("marked as of another folder of ours", domain(fsx("/shared"), mark="/old"), SHARED, ("to do", "/shared"), "/old"),
    ("a profile follows the defaults", profile(), SHARED, ("done", None), None),
    ("one with a list of its own does not", profile("alice", efs()), SHARED, ("to do", "/shared"), None),
    ("back from per user", profile("alice", fsx("/alice"), mark="/alice"), SHARED, ("to do", None), None),
    ("somebody else's, shared", profile("alice", fsx("/theirs")), SHARED, ("blocked", None), "/theirs there; use --take-over"),
    ("by hand as all have it", profile("alice", fsx("/shared")), SHARED, ("done", "/shared"), None),
    ("taken over for all", profile("alice", fsx("/x")), replace(SHARED, take_over=True), ("to do", None), None),
    ("per user", profile(), PER_USER, ("to do", "/alice"), None),
    ("per user, done", profile("alice", fsx("/alice"), mark="/alice"), PER_USER, ("done", "/alice"), None),
    ("per user, by hand", profile("alice", fsx("/alice")), PER_USER, ("done", "/alice"), None),
    ("one alone", profile(), DesiredState("per-user", profiles=frozenset({"alice"})), ("to do", "/alice"), None),
    ("one alone is shared", profile(), DesiredState("shared", profiles=frozenset({"alice"})), ("to do", "/shared"), None),
    ("SageMaker is at work", profile(status="Updating"), PER_USER, ("waits", "/alice"), "Updating"),
    ("a profile that failed", profile(status="Update_Failed"), PER_USER, ("blocked", "/alice"), "Update_Failed"),
    ("one that failed and is right", profile("a", fsx("/a"), status="Failed"), PER_USER, ("done", "/a"), None),
    ("eleven file systems", profile("alice", *map(efs, map(str, range(10)))), PER_USER, ("blocked", "/alice"), "10"),
    ("taken back", profile("alice", fsx("/alice"), mark="/alice"), NOTHING, ("to do", None), None),
    ("not ours to take back", profile("alice", fsx("/alice")), NOTHING, ("done", "/alice"), None),
]  # fmt: skip


@pytest.mark.parametrize(("holder", "wanted", "then", "words"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_lists_of_file_systems(holder, wanted, then, words):
    rest = () if holder.kind == "domain" else (domain(),)
    found = step(plan(there(holder, *rest), wanted), holder.words)
    assert isinstance(found, EntryStep)
    assert (found.state, mounted_path(found.entries, FS)) == then
    assert (words or "") in (found.reason or "")
    assert (found.reason is None) == (words is None)
    # Nobody else's entry is ever lost.
    assert [one for one in found.entries if mounted_path([one], FS) is None] == [
        one for one in holder.entries if mounted_path([one], FS) is None
    ]


SPACES = [
    ("a private one", space(owner="alice"), SHARED, ("to do", True), None),
    ("a private one, per user", space(owner="alice"), PER_USER, ("to do", True), None),
    ("it runs", space(owner="alice", apps=("JupyterLab",)), SHARED, ("waits", False), "JupyterLab"),
    ("it runs and is right", space("s", attached(), owner="a", apps=("JupyterLab",)), SHARED, ("done", True), None),
    ("a shared one", space(), SHARED, ("to do", True), None),
    ("a shared one, per user", space(), PER_USER, ("done", False), None),
    ("a shared one had it of us", space("s", attached(), mark=ATTACHED), PER_USER, ("to do", False), None),
    ("a shared one had it of others", space("s", attached()), PER_USER, ("done", True), None),
    ("full", space("s", *map(attached, "12345"), owner="a"), SHARED, ("blocked", False), "5"),
    ("taken back", space("s", attached(), owner="a", mark=ATTACHED), NOTHING, ("to do", False), None),
    ("not ours", space("s", attached(), owner="a"), NOTHING, ("done", True), None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("holder", "wanted", "then", "words"), [pytest.param(*case[1:], id=case[0]) for case in SPACES]
)
def test_spaces(holder, wanted, then, words):
    found = step(plan(there(holder), wanted), holder.words)
    assert isinstance(found, EntryStep)
    attaches = attached() in found.entries and found.state in {"to do", "done"}
    assert (found.state, attaches) == then
    assert (words or "") in (found.reason or "")
    assert (found.reason is None) == (words is None)


def test_one_profile_alone_leaves_the_others_and_the_domain():
    made = plan(
        there(domain(), profile("alice"), profile("bob"), space("a", owner="alice"), space("b", owner="bob")),
        DesiredState("per-user", profiles=frozenset({"alice"})),
    )
    assert [one.target for one in made.steps] == ["folder /alice", "profile alice", "space a"]


def test_applications_that_have_to_start_anew_are_named():
    made = plan(there(profile(apps=("JupyterLab", "CodeEditor"))), PER_USER)
    assert step(made, "profile alice").restarts == ("JupyterLab", "CodeEditor")
    done = plan(there(profile("a", fsx("/a"), apps=("JupyterLab",))), PER_USER)
    assert step(done, "profile a").restarts == ()


def test_an_entry_keeps_its_place_and_what_is_newer_than_this_package():
    made = plan(there(profile("alice", fsx("/shared", Colour="red"), efs(), mark="/shared")), PER_USER)
    assert step(made, "profile alice").entries == (fsx("/alice", Colour="red"), efs())


GROUPS = [
    (("sg-1",), (), SHARED, "to do", ("sg-1", GROUP)),
    ((GROUP,), (), SHARED, "done", (GROUP,)),
    (tuple("12345"), (), SHARED, "blocked", (*"12345", GROUP)),
    ((GROUP, "sg-1"), (GROUP,), NOTHING, "to do", ("sg-1",)),
]


@pytest.mark.parametrize(("groups", "ours", "wanted", "state", "then"), GROUPS)
def test_security_groups(groups, ours, wanted, state, then):
    found = step(plan(there(groups=groups, ours=ours), wanted), "network interface eni-1")
    assert isinstance(found, GroupStep)
    assert (found.state, found.groups) == (state, then)


def test_a_group_that_others_put_there_is_not_taken_off():
    assert plan(there(groups=(GROUP,)), NOTHING).steps == ()


REFUSED = [
    ({"kind": "OPENZFS"}, SHARED, (), "not_lustre"),
    ({"state": "MISCONFIGURED"}, SHARED, (), "file_system_not_available"),
    ({"vpc": "vpc-2"}, SHARED, (), "other_vpc"),
    ({"subnets": ("subnet-9",)}, SHARED, (), "other_subnet"),
    ({}, SHARED, (domain(status="Failed"),), "domain_not_in_service"),
    ({}, SHARED, (profile("shared"),), "shared_folder_of_a_profile"),
]


@pytest.mark.parametrize(("more", "wanted", "holders", "code"), REFUSED)
def test_what_is_wrong_as_a_whole(more, wanted, holders, code):
    (finding,) = plan(there(*holders, **more), wanted).findings
    assert (finding.level, finding.code) == ("error", code)
    assert finding.hint


def test_who_is_called_as_the_folder_that_all_have_already_stops_nobody():
    holders = (domain(fsx("/shared"), mark="/shared"), profile("shared"), profile("alice", efs()))
    made = plan(there(*holders), SHARED)
    assert [(one.level, one.code) for one in made.findings] == [("warning", "shared_folder_of_a_profile")]
    assert step(made, "profile alice").state == "to do"


def test_profiles_with_one_number_are_a_warning():
    made = plan(there(profile("a", uid=20005), profile("b", uid=20005), profile("c")), PER_USER)
    (finding,) = made.findings
    assert (finding.level, finding.code) == ("warning", "numbers_alike")
    assert "a, b" in finding.message
    assert "20005" in finding.message


def test_without_the_domains_security_group():
    made = plan(replace(there(), group=None), SHARED)
    assert [finding.code for finding in made.findings] == ["no_security_group"]
    assert [one.target for one in made.steps] == ["folder /shared"]


def test_names_that_differ_only_in_case_are_a_warning():
    made = plan(there(profile("Alice"), profile("alice")), PER_USER)
    (finding,) = made.findings
    assert (finding.level, finding.code) == ("warning", "names_alike")
    assert {one.target for one in made.steps} >= {"folder /Alice", "folder /alice"}


def test_there_and_back_again_is_where_it_began():
    """Applying the steps by hand: shared, per user, shared, and nothing of ours is left at the end."""
    before = (domain(), profile("alice"), profile("bob", efs()), space("work", owner="alice"))
    holders = before
    for wanted in (SHARED, PER_USER, SHARED, NOTHING):
        made = plan(there(*holders), wanted)
        found = {one.target: one for one in made.steps if isinstance(one, EntryStep)}
        assert all(one.state in {"done", "to do"} for one in found.values())
        holders = tuple(replace(one, entries=found[one.words].entries, mark=found[one.words].mark) for one in holders)
        again = plan(there(*holders), wanted)
        assert [one.state for one in again.steps if isinstance(one, EntryStep)] == ["done"] * 4
    assert holders == before


def test_as_json():
    made = plan(there(domain(), profile()), PER_USER)
    assert json.loads(json.dumps(to_plain(made)))["mode"] == "per-user"
    assert all(one.target in json.dumps(to_plain(made)) for one in made.drift)
