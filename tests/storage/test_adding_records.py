"""Records that faces and engines add to a bundle."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.records import Observation, ProcessRecord, Submission
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.storage.bundles import PROCESS, make_bundle, write_files
from tests.storage.racing import race


@pytest.fixture
def bundle(tmp_path: Path) -> BundleReader:
    return make_bundle(Partition(tmp_path), "run-1", code=None)


def word(**more) -> Observation:
    return Observation(**{"time": 1.0, "observer": "local", "state": "running", **more})


def write_all(bundle: BundleReader) -> None:
    bundle.add_action("hold", "ada")
    bundle.add_observation(word(attempt=1, verdict="FAILED", state="waiting"))
    bundle.add_intent(ProcessRecord(**PROCESS))
    bundle.write_owner(ProcessRecord(**PROCESS))
    bundle.write_submission(Submission(scheduler_id="17", submitted_at=2.0))


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("run_id", ["run-1", "run-1.3"])
def test_modes_are_exactly_the_documented_ones(tmp_path, umask, shared, run_id):
    partition = Partition(tmp_path, shared=shared)
    folder = make_bundle(partition, "run-1", code=None, array="0-9").folder
    shutil.rmtree(folder / "status", ignore_errors=True)
    known = {path for path in folder.rglob("*") if path.name != "submission.json"}
    before = os.umask(umask)
    try:
        write_all(BundleReader(partition, run_id))
    finally:
        os.umask(before)
    for path in set(folder.rglob("*")) - known:
        wanted = (0o755 if shared else 0o700) if path.is_dir() else (0o644 if shared else 0o600)
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_what_is_added_is_read_again(bundle):
    write_all(bundle)
    records = bundle.read()
    assert [action.action for action in records.actions] == ["hold"]
    assert [action.user for action in records.actions] == ["ada"]
    assert records.owner == ProcessRecord(**PROCESS)
    assert records.intents == (ProcessRecord(**PROCESS),)
    assert records.submission.submitted_at == 2.0
    assert records.damage == ()


def test_an_observer_says_only_its_newest_word(bundle):
    bundle.add_observation(word(time=1.0))
    bundle.add_observation(word(time=2.0, state="ended"))
    bundle.add_observation(word(time=1.5, observer="other"))
    seen = {one.observer: one.time for one in bundle.read().observations}
    assert seen == {"local": 2.0, "other": 1.5}


def test_the_first_verdict_on_each_attempt_stays(bundle):
    bundle.add_observation(word(time=1.0, attempt=1, verdict="NODE_FAIL", state="waiting"))
    bundle.add_observation(word(time=2.0))
    bundle.add_observation(word(time=3.0, attempt=2, verdict="TIMEOUT", state="ended"))
    bundle.add_observation(word(time=4.0, attempt=2, verdict="LOST", state="ended"))
    told = sorted((one.time, one.attempt, one.verdict) for one in bundle.read().observations)
    assert told == [(1.0, 1, "NODE_FAIL"), (3.0, 2, "TIMEOUT"), (4.0, 2, "LOST")]


def test_actions_come_in_the_order_of_their_times(bundle):
    for action in ("hold", "release", "requeue", "cancel"):
        bundle.add_action(action, "ada")
    assert [one.action for one in bundle.actions()] == ["hold", "release", "requeue", "cancel"]


def test_what_is_asked_of_an_array_is_asked_of_its_children(bundle):
    child = BundleReader(bundle.partition, "run-1.3")
    bundle.add_action("hold", "ada")
    child.add_action("cancel", "ada")
    assert [one.action for one in child.actions()] == ["hold", "cancel"]
    assert [one.action for one in bundle.actions()] == ["hold"]
    assert BundleReader(bundle.partition, "run-1.4").actions() == bundle.actions()


def test_eight_add_at_once_and_nothing_is_lost(bundle):
    def add(number: int) -> None:
        for turn in range(20):
            bundle.add_action("hold", f"user-{number}")
            bundle.add_observation(word(time=turn, observer=f"o{number}"))

    assert race(add) == [None] * 8
    records = bundle.read()
    assert records.damage == ()
    assert len(records.actions) == 160
    assert {one.time for one in records.observations} == {19.0}
    assert not [path for path in bundle.folder.rglob("*") if path.name.endswith(".tmp")]


def test_a_bundle_that_was_removed_does_not_come_back(bundle):
    shutil.rmtree(bundle.folder)
    with pytest.raises(HyperpodError):
        bundle.add_observation(word())
    assert not bundle.folder.exists()


def test_a_word_with_what_the_eye_does_not_see(bundle):
    odd = "\x1b[31m\n\r\t\u202e'\"\\ ü 🚀"
    bundle.add_observation(word(reason=odd))
    assert bundle.read().observations[0].reason == odd


def test_readers_of_both_forms_agree(bundle):
    write_files(bundle.folder, {"status/intent-0.json": PROCESS}.items())
    assert bundle.read() == BundleReader(bundle.partition, "run-1").read()


def test_an_action_that_was_not_done_is_taken_back(bundle):
    bundle.add_action("hold", "ada")
    made = bundle.add_action("cancel", "ada")
    bundle.drop_action(made)
    assert [one.action for one in bundle.actions()] == ["hold"]
    bundle.drop_action(made)
    assert [one.action for one in bundle.actions()] == ["hold"]
