"""Children of arrays: what exists is looked at, and once it has ended only once."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.run.view import ArrayFacts, EndedChildren, first_children, view_of
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.index import RunIndex
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.storage.bundles import make_bundle, write_files

MANY = 300


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path / "fsx")


@pytest.fixture
def ended(partition: Partition, tmp_path: Path) -> EndedChildren:
    return EndedChildren(RunIndex(partition, tmp_path / "index"))


def end_child(bundle: BundleReader, index: int, code: int = 0) -> None:
    """The records of a child that ended."""
    job = f"m:{bundle.run_id}_{index}"
    rank = {"rank": 0, "local_rank": 0, "ended_at": 3.0, "exit_code": code}
    node = {"node_rank": 0, "node": "n0", "started_at": 2.0, "ended_at": 3.0}
    write_files(
        bundle.folder / "tasks" / str(index),
        {
            "status/claim.json": {"scheduler_id": job, "time": 2.0},
            "status/attempt-1/claim.json": {"scheduler_id": job, "incarnation": "1", "time": 2.0},
            "status/attempt-1/node-0.json": {**node, "exit_code": code, "ranks": [rank]},
        }.items(),
    )


def array(partition: Partition, indices: str, done: int) -> BundleReader:
    bundle = make_bundle(partition, "array", code=None, array=indices)
    for index in range(done):
        end_child(bundle, index, code=int(index == 7))
    return bundle


def test_a_child_that_ended_is_not_looked_at_again(partition: Partition, ended: EndedChildren):
    bundle = array(partition, f"0-{MANY}", MANY)
    first = view_of(bundle, bundle.read(), ArrayFacts(ended=ended))
    assert first.children == {"succeeded": MANY - 1, "failed": 1, "waiting": 1}
    for index in range(MANY):  # its folder stays, and nothing can be read there
        shutil.rmtree(bundle.folder / "tasks" / str(index) / "status")
    again = view_of(bundle, bundle.read(), ArrayFacts(ended=ended))
    assert again.children == first.children
    # Another process reads what this one has found from the index.
    other = EndedChildren(ended._index)
    assert view_of(bundle, bundle.read(), ArrayFacts(ended=other)).children == first.children


def test_a_child_that_the_scheduler_speaks_of_is_looked_at(partition: Partition, ended: EndedChildren):
    bundle = array(partition, f"0-{MANY - 1}", MANY)
    assert view_of(bundle, bundle.read(), ArrayFacts(ended=ended)).state == "failed"
    word = Observation(time=time.time(), observer="test", state="waiting", scheduler_id="m:array_7")
    shutil.rmtree(bundle.folder / "tasks" / "7")
    words = {"array.7": word}
    run = view_of(bundle, bundle.read(), ArrayFacts(observations=words, ended=ended))
    assert run.children == {"succeeded": MANY - 1, "waiting": 1}
    assert not run.status.ended


def test_a_list_that_runs_out_of_time_goes_on_with_the_next(partition: Partition, ended: EndedChildren):
    bundle = array(partition, f"0-{MANY - 1}", MANY)
    run = view_of(bundle, bundle.read(), ArrayFacts(ended=ended, seconds=-1.0))
    assert (run.children, run.state) == ({"unknown": MANY}, "running")
    assert run.status.reason == f"0 of {MANY} children counted so far"
    view_of(bundle, bundle.read(), ArrayFacts(ended=ended))
    run = view_of(bundle, bundle.read(), ArrayFacts(ended=ended, seconds=-1.0))
    assert ((run.children or {})["succeeded"], run.state) == (MANY - 1, "failed")


def test_the_size_that_a_record_claims_costs_nothing(partition: Partition, monkeypatch: pytest.MonkeyPatch):
    """By the number of folders that are opened, not by the clock."""
    opened = 0
    open_folder = descent.opened_folder

    def counted(path: Path):
        nonlocal opened
        opened += 1
        return open_folder(path)

    bundle = array(partition, "0-99999", 3)
    monkeypatch.setattr(descent, "opened_folder", counted)
    run = view_of(bundle, bundle.read(), ArrayFacts())
    assert run.children == {"succeeded": 3, "waiting": 99_997}
    assert opened < 150


def test_children_that_have_begun_are_shown_before_the_others(partition: Partition):
    bundle = make_bundle(partition, "array", code=None, array="0-99999")
    for index in (500, 70_000):
        end_child(bundle, index)
    shown = [one.index for one in first_children(bundle, "0-99999", 4)]
    assert shown == [0, 1, 500, 70_000]
    assert [one.index for one in first_children(bundle, "3,5", 4)] == [3, 5]


def test_what_lies_among_the_children_and_is_none_is_left_alone(partition: Partition):
    bundle = array(partition, "0-1", 1)
    (bundle.folder / "tasks" / "00").mkdir()
    (bundle.folder / "tasks" / "9").mkdir()
    (bundle.folder / "tasks" / "x").write_text(json.dumps({}))
    run = view_of(bundle, bundle.read(), ArrayFacts())
    assert run.children == {"succeeded": 1, "waiting": 1}
