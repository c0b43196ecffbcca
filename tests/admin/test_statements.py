"""What a plan says to people, by topic: a table of domains and wishes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hyperpod_jlab.admin.fsx.models import DesiredState, EntryStep
from hyperpod_jlab.admin.fsx.planning import plan
from hyperpod_jlab.admin.fsx.statements import shorten_names
from hyperpod_jlab.core.wire import to_plain
from tests.admin.test_planning import attached, domain, efs, fsx, profile, space, there

SHARED, PER_USER, NOTHING = (DesiredState("shared"), DesiredState("per-user"), DesiredState(None))
ALICE = DesiredState("per-user", profiles=frozenset({"alice"}))
DEFAULTS = domain(fsx("/shared"), mark="/shared")
OWN = profile("alice", fsx("/alice"), mark="/alice")
RUNS = space("work", attached(), mark="attached", owner="alice", apps=("JupyterLab",))


def said(made, topic):
    return [one.text for one in made.statements if one.topic == topic]


CASES = [
    # what, holders, wanted, topic, words that are said, words that are not
    ("shared", (domain(), profile()), SHARED, "data", ["files of alice are in /shared"], ["no longer"]),
    ("nothing is moved", (domain(), profile()), PER_USER, "data", ["Nothing is moved, copied or deleted"], []),
    ("per user", (domain(), profile(), profile("bob")), PER_USER, "data", ["alice in /alice, bob in /bob"], ["no longer"]),
    ("switch", (DEFAULTS, profile(), profile("bob")), PER_USER, "data", ["Files of alice, bob in /shared stay in /shared"], []),
    ("back", (domain(), OWN), SHARED, "data", ["files of alice are in /shared", "Files of alice in /alice stay in /alice"], []),
    ("taken back", (domain(), OWN), NOTHING, "data", ["All folders are kept: /alice", "rm -r -- /fsx/alice"], []),
    ("nothing to take back", (domain(), profile()), NOTHING, "data", [], ["rm -r", "alice"]),
    ("not ours", (domain(), profile("alice", fsx("/x"))), NOTHING, "data", ["files of alice are in /x"], ["no longer"]),
    ("a mode of its own", (domain(), replace(OWN, own_mode="per-user")), SHARED, "data", ["These keep their own mode: alice"], ["are in /shared"]),
    ("one alone", (DEFAULTS, profile(), profile("bob")), ALICE, "data", ["files of bob are in /shared", "alice in /alice"], []),
    ("blocked", (domain(), profile(status="Failed")), PER_USER, "data", [], ["alice in /alice"]),
    ("none", (domain(), profile()), SHARED, "isolation", ["none: alice. Everyone who mounts"], ["POSIX"]),
    ("path only", (domain(), profile()), PER_USER, "isolation", ["mount path only: alice", "existing profiles must be recreated"], ["POSIX:"]),
    ("POSIX", (domain(), profile(uid=20007)), PER_USER, "isolation", ["POSIX: alice", "not a strong identity", "its root can act as any user"], ["path only"]),
    ("the same number", (domain(), profile(uid=7), profile("bob", uid=7)), PER_USER, "isolation", ["mount path only: alice, bob"], ["POSIX:"]),
    ("each by itself", (domain(), profile(), profile("bob", uid=7)), PER_USER, "isolation", ["path only: alice.", "POSIX: bob."], []),
    ("another has the folder too", (domain(), profile(uid=7), profile("bob", fsx("/alice"), uid=8)), ALICE, "isolation", ["none: alice, bob"], ["POSIX:"]),
    ("nothing mounted", (domain(), profile()), NOTHING, "isolation", [], ["alice"]),
    ("nothing runs", (DEFAULTS, profile()), PER_USER, "restarts", ["No running application"], []),
    ("a space has it and runs", (DEFAULTS, profile(), RUNS), PER_USER, "restarts", ["Restart these: space work (JupyterLab)"], ["Stop these first"]),
    ("it sees no change", (DEFAULTS, profile(), RUNS), SHARED, "restarts", ["No running application"], ["work"]),
    ("it is to be changed itself", (domain(), profile(), replace(RUNS, entries=())), SHARED, "restarts", ["Stop these first: space work (JupyterLab)"], ["anew"]),
    ("a shared space", (domain(), replace(DEFAULTS, kind="space defaults"), replace(RUNS, owner=None)), PER_USER, "restarts", ["Stop these first: space work"], []),
    ("a profile's own application", (domain(), profile(apps=("KernelGateway",))), PER_USER, "restarts", ["Restart these: profile alice (KernelGateway)"], []),
    ("to come, shared", (domain(),), SHARED, "new profiles", ["mount /shared at once", "created with its own file systems"], []),
    ("to come, per user", (domain(),), PER_USER, "new profiles", ["nothing until the next apply", "CustomPosixUserConfig"], []),
    ("to come, one alone", (domain(), profile()), ALICE, "new profiles", ["only to alice"], []),
    ("to come, none", (domain(),), NOTHING, "new profiles", ["get no folder"], []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("holders", "wanted", "topic", "words", "others"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_what_is_said(holders, wanted, topic, words, others):
    made = plan(there(*holders), wanted)
    text = "\n".join(said(made, topic))
    for one in words:
        assert one in text
    for one in others:
        assert one not in text


def test_a_list_of_its_own_hides_the_defaults():
    made = plan(there(DEFAULTS, profile("alice", efs()), profile("bob")), ALICE)
    assert said(made, "data")[1:] == [
        "The files of bob are in /shared, shared by all.",
        "Each profile has its own folder: alice in /alice.",
    ]


def test_many_names_are_counted():
    assert shorten_names("abcdef") == "a, b, c, d, e, f"
    assert shorten_names(map(str, range(500))) == "0, 1, 2, 3, 4 and 495 more"
    made = plan(there(domain(), *(profile(f"u{n}") for n in range(500))), PER_USER)
    assert all(len(one.text) < 500 for one in made.statements)


def test_the_order_and_the_data():
    told = to_plain(plan(there(DEFAULTS, profile(), RUNS), PER_USER))["statements"]
    topics = [one["topic"] for one in told]
    assert topics == sorted(topics, key=["data", "isolation", "restarts", "new profiles"].index)
    assert all(one.keys() == {"topic", "text"} for one in told)


ALONE = [
    # the profile, wanted, its state and path then, the mode it keeps
    (profile(), ALICE, ("to do", "/alice"), "per-user"),
    (OWN, ALICE, ("to do", "/alice"), "per-user"),
    (replace(OWN, own_mode="per-user"), ALICE, ("done", "/alice"), "per-user"),
    (replace(OWN, own_mode="per-user"), SHARED, ("done", "/alice"), "per-user"),
    (replace(OWN, own_mode="per-user"), PER_USER, ("done", "/alice"), "per-user"),
    (replace(OWN, own_mode="per-user"), NOTHING, ("to do", None), None),
    (replace(OWN, own_mode="per-user"), replace(ALICE, mode="shared"), ("to do", "/shared"), "shared"),
    (profile("alice", fsx("/team"), mark="/team", own_mode="shared"), PER_USER, ("done", "/team"), "shared"),
    (profile("alice", fsx("/team"), mark="/team", own_mode="shared"), SHARED, ("done", "/team"), "shared"),
    (replace(OWN, own_mode="per-user"), replace(ALICE, mode=None), ("to do", None), None),
]  # fmt: skip


@pytest.mark.parametrize(("holder", "wanted", "then", "own"), ALONE)
def test_a_mode_given_alone_is_kept(holder, wanted, then, own):
    made = plan(there(domain(), holder), wanted)
    (found,) = [one for one in made.steps if one.target == "profile alice"]
    assert isinstance(found, EntryStep)
    path = next((one["FSxLustreFileSystemConfig"]["FileSystemPath"] for one in found.entries), None)
    assert ((found.state, path), found.own_mode) == (then, own)


def test_folders_are_of_each_ones_mode():
    holders = (
        domain(),
        profile("alice", fsx("/team"), mark="/team", own_mode="shared"),
        replace(OWN, name="bob", own_mode="per-user"),
        profile("carol"),
    )
    made = plan(there(*holders), PER_USER)
    folders = [one.target for one in made.steps if one.target.startswith("folder")]
    assert folders == ["folder /team", "folder /bob", "folder /carol"]
    made = plan(there(*holders), SHARED)
    folders = [one.target for one in made.steps if one.target.startswith("folder")]
    assert folders == ["folder /shared", "folder /team", "folder /bob"]
