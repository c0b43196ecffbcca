"""The stage itself: two users who can do what two users of a machine can, and no more."""

from __future__ import annotations

import os

import pytest


def test_each_acts_with_a_uid_of_their_own(scene):
    assert scene.alice.do(lambda: (os.getresuid(), os.getgroups())) == ((3001, 3001, 3001), [])
    (scene.partition / "roots").write_text("x")
    with pytest.raises(PermissionError):
        scene.bob.do(lambda: list(scene.alice.home.iterdir()))
    with pytest.raises(PermissionError):
        scene.bob.do((scene.partition / "roots").unlink)


def test_hpj_runs_as_either_in_this_process_and_as_a_program(scene):
    for person in (scene.alice, scene.bob):
        done = person.hpj("submit", "--no-project-files", "--follow", "-c", "id -un; id -u").ok()
        assert f"|{person.name}\n" in done.out
        assert f"|{person.uid}\n" in done.out
        shown = person.program("hpj", "runs", "--json").answer().ok().json["runs"]
        assert [run["user"] for run in shown] == [person.name]
        assert {path.lstat().st_uid for path in person.bundle("last").rglob("*")} == {person.uid}
