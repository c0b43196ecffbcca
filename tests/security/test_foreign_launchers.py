"""Whoever else may write somewhere above a bundle: a user's run starts that user's own program, or nothing."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.security.attacks import (
    as_not_begun,
    place_of,
    plant,
    program,
    put,
    runs_folders,
    swap,
    take_common_folders,
    take_own_folder,
)
from tests.security.conftest import Scene
from tests.security.people import Answer, Person

DEADLINE = 40.0


def occupy(person: Person) -> Callable[[], object]:
    """Take all slots of a user's cluster; the answer gives them back."""
    go = person.home / "go"
    command = f"until [ -e {go} ]; do sleep 0.05; done"
    for number in range(person.slots):
        person.hpj("submit", "--no-project-files", "--run-id", f"occupant-{number}", "-c", command).ok()
    return go.touch


def until_over(person: Person, run_id: str) -> Answer:
    """What is told of a run once it has ended, or when it does not."""
    end = time.monotonic() + DEADLINE
    while True:
        shown = person.hpj("show", run_id, "--json").clean()
        ended = shown.code == 0 and shown.json["state"] in {"succeeded", "failed", "cancelled"}
        if shown.code != 0 or ended or time.monotonic() > end:
            return shown


def test_who_made_the_folders_first_cannot_exchange_a_waiting_run(make_scene: Callable[..., Scene]) -> None:
    """Finding 1."""
    scene = make_scene(slots=1)
    alice, bob = scene.alice, scene.bob
    bob.do(lambda: take_common_folders(scene.partition))
    give_back = occupy(alice)
    words = ("--no-project-files", "--run-id", "waits", "-c", "echo mine $(id -u)")
    alice.hpj("submit", *words).ok()
    bundle = alice.bundle("waits")
    launcher = program(scene.canaries, "launcher")
    swapped = bob.do(lambda: swap(bundle, launcher))
    give_back()
    shown = until_over(alice, "waits")
    assert scene.betrayed == []
    assert not swapped, "a bundle of alice's was renamed by bob"
    assert shown.ok().json["state"] == "succeeded"
    assert f"mine {alice.uid}\n" in alice.hpj("logs", "waits").ok().out


def test_who_took_a_users_own_folder_keeps_that_user_out_and_gets_nothing(scene: Scene) -> None:
    """Finding 1, with the folder's new name."""
    alice, bob = scene.alice, scene.bob
    bob.do(lambda: take_own_folder(scene.partition, alice.uid))
    sent = alice.hpj("submit", "--no-project-files", "--json", "--run-id", "mine", "-c", "true").clean()
    if sent.code == 0:
        bundle = alice.bundle("mine")
        for folder in (bundle, *bundle.parents):
            assert folder.lstat().st_uid in {0, alice.uid}
            if folder == scene.partition:
                break
    else:
        assert sent.error["hint"]
    for words in (("runs",), ("runs", "--all-users"), ("clean", "--yes"), ("doctor",), ("storage",)):
        alice.hpj(*words).clean()


@pytest.mark.parametrize("where", ["link", "link to home", "pipe", "file"])
def test_what_lies_under_a_users_folders_name_is_not_followed(scene: Scene, where: str) -> None:
    """Finding 1, with something else in the folder's place."""
    alice, bob = scene.alice, scene.bob
    elsewhere = scene.partition / "bobs"

    def lay() -> None:
        elsewhere.mkdir(mode=0o777)
        elsewhere.chmod(0o777)
        for name in (".hyperpod", f".hyperpod-{alice.uid}"):
            path = scene.partition / name
            if where == "pipe":
                os.mkfifo(path, 0o666)
            elif where == "file":
                path.touch(0o666)
            else:
                path.symlink_to(elsewhere if where == "link" else alice.home / "Documents")

    bob.do(lay)
    before = scene.kept
    for words in (
        ("submit", "--no-project-files", "-c", "true"),
        ("runs", "--all-users"),
        ("clean", "--yes"),
        ("storage",),
    ):
        alice.hpj(*words).clean()
    assert scene.kept == before
    assert list(elsewhere.iterdir()) == []


def test_an_id_that_was_taken_beforehand_does_not_send_the_others_bundle(scene: Scene) -> None:
    """Finding 2."""
    alice, bob = scene.alice, scene.bob
    put(alice.project / "hello.py", "print('hello')\n")
    words = ("submit", "hello.py", "--no-project-files", "--name", "hello", "--run-id")
    alice.hpj(*words, "nightly-1", "--wait").ok()
    template = alice.bundle("nightly-1")
    launcher = program(scene.canaries, "launcher")

    def edit(place: Path) -> None:
        as_not_begun(place)
        put(place / "launcher.py", launcher)
        local = place / "local.json"
        put(local, local.read_text().replace("nightly-1", "nightly-2"))

    folders = [template.parents[1], *runs_folders(scene.partition, alice.uid, bob.uid)]
    planted = bob.do(lambda: plant(template, "nightly-2", folders, edit=edit))
    assert planted, "bob could lay his bundle nowhere"
    sent = alice.hpj(*words, "nightly-2", "--wait", "--json").clean()
    assert scene.betrayed == []
    if sent.code == 0:
        assert alice.bundle("nightly-2").lstat().st_uid == alice.uid
        assert "hello\n" in alice.hpj("logs", "nightly-2").ok().out
    else:
        assert sent.error["code"] == "run_id_taken"
        assert sent.error["hint"]


def test_a_private_partition_below_a_folder_of_everybodys_is_not_used(make_scene: Callable[..., Scene]) -> None:
    """Finding 11."""
    scene = make_scene(0o777, shared=False, slots=1)
    alice = scene.alice
    first = alice.hpj("submit", "--no-project-files", "--json", "-c", "true").clean()
    if first.code != 0:
        assert first.error["hint"]
        return
    give_back = occupy(alice)
    alice.hpj("submit", "--no-project-files", "--run-id", "waits", "-c", "true").ok()
    _exchange_folder(scene)
    give_back()
    alice.hpj("show", "waits", "--json").clean()
    end = time.monotonic() + 10
    while time.monotonic() < end and not scene.betrayed:
        time.sleep(0.1)
    assert scene.betrayed == []


def test_the_doctor_does_not_call_such_a_partition_private(make_scene: Callable[..., Scene]) -> None:
    """Finding 11."""
    alice = make_scene(0o777, shared=False).alice
    checks = alice.hpj("doctor", "--json").clean().json["checks"]
    said = [check for check in checks if check["group"] == "partition" and check["level"] == "fail"]
    assert said, checks
    assert all(check["fix"] for check in said)


def _exchange_folder(scene: Scene) -> None:
    """Bob, who knows the id of alice's waiting run, lays a folder of his own in the place of hers."""
    bob = scene.bob
    bob.partition = scene.stage.folder / "bobs"
    bob.partition.mkdir()
    os.chown(bob.partition, bob.uid, bob.uid)
    bob.shared = False
    bob.configure()
    bob.hpj("submit", "--no-project-files", "--wait", "--run-id", "template", "-c", "true").ok()
    template = bob.bundle("template")
    launcher = program(scene.canaries, "launcher")
    ours = scene.partition / ".hyperpod"

    def edit(place: Path) -> None:
        as_not_begun(place)
        put(place / "launcher.py", launcher)

    def exchange() -> None:
        ours.rename(scene.partition / ".away")
        plant(template, "waits", [ours / "runs"], edit=edit)
        for folder in (ours, ours / "runs", place_of(ours / "runs", "waits").parent):
            folder.chmod(0o777)
        shutil.copy(template / "spec.json", place_of(ours / "runs", "waits"))

    bob.do(exchange)
