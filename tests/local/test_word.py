"""What a supervisor has to say reaches the partition, however long that is away, and of a run that is gone nothing does."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.local import attempt as word_module
from hyperpod_jlab.engines.local.attempt import ObservationLog, finish
from hyperpod_jlab.engines.local.board import check_dependencies
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.storage.bundles import make_bundle


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_module, "_RETRY", 0.0)


@pytest.fixture
def bundle(tmp_path: Path) -> BundleReader:
    return make_bundle(Partition(tmp_path / "fsx"), "run-1", code=None)


def ended(bundle: BundleReader) -> ObservationLog:
    """A word that could not be written, for want of the partition."""
    word = ObservationLog(bundle, heartbeat=False)
    word.record(Observation(time=1.0, observer="local", scheduler_id="m", state="ended", verdict="COMPLETED"))
    return word


def test_a_partition_that_is_away_is_waited_for(bundle: BundleReader) -> None:
    root = bundle.partition.root
    aside = root.rename(root.with_name("aside"))
    root.mkdir()  # as where a file system was mounted
    word = ended(bundle)
    pauses = []

    def pause() -> None:
        pauses.append(time.monotonic())
        if len(pauses) == 3:
            root.rmdir()
            aside.rename(root)

    finish([word], pause)
    assert [seen.verdict for seen in bundle.read().observations] == ["COMPLETED"]
    assert len(pauses) == 3


def test_a_run_to_wait_for_is_gone_only_where_the_partition_is_there(bundle: BundleReader) -> None:
    root = bundle.partition.root
    aside = root.rename(root.with_name("aside"))
    away = check_dependencies(bundle.partition, ["run-1"])
    aside.rename(root)
    shutil.rmtree(bundle.folder)
    gone = check_dependencies(bundle.partition, ["run-1"])
    assert away is not None
    assert gone is not None
    assert (away.is_final, gone.is_final) == (False, True)


def test_a_partition_that_does_not_answer_is_waited_for(bundle: BundleReader, monkeypatch: pytest.MonkeyPatch) -> None:
    aside = bundle.folder.rename(bundle.folder.with_name("aside"))
    word = ended(bundle)

    def stale(_: Path) -> os.stat_result:
        raise OSError("Stale file handle")

    def pause() -> None:
        patched.undo()
        aside.rename(bundle.folder)

    with monkeypatch.context() as patched:
        patched.setattr(descent, "state", stale)
        finish([word], pause)
    assert [seen.verdict for seen in bundle.read().observations] == ["COMPLETED"]


def test_of_a_run_that_was_removed_nothing_is_said(bundle: BundleReader) -> None:
    shutil.rmtree(bundle.folder)
    word = ended(bundle)
    finish([word], lambda: pytest.fail("it is waited for"))
    assert not bundle.folder.exists()


def test_several_wait_no_longer_than_one(bundle: BundleReader, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(bundle.partition.root)
    words = [ended(bundle) for _ in range(5)]
    now = 0.0

    def pause() -> None:
        nonlocal now
        now += 1

    monkeypatch.setattr(word_module, "_TIMEOUT", 20)
    monkeypatch.setattr(word_module, "time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    finish(words, pause)
    assert now == 20
