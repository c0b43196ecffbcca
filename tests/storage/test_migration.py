"""Runs from the layout that the partition had before: read as long as they are one's own, and moved."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hyperpod_jlab.core.run_id import shard_of
from hyperpod_jlab.storage.content import ContentStore
from hyperpod_jlab.storage.index import RunIndex, Session
from hyperpod_jlab.storage.migration import migrate, runs_in_old_layout
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.storage.bundles import make_bundle
from tests.storage.users import AS_ROOT, OTHER


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    """A shared one on which an older version has left runs of two users in folders that all may write to."""
    old = Partition(tmp_path)
    for run_id in ("mine", "damaged", "theirs"):
        make_bundle(old, run_id)
    (old.bundle("damaged") / "bundle.json").write_text("{")
    ContentStore(old).put_bytes(b"code", old.bundle("mine") / "code")
    for folder in (old.folder, old.runs, old.content, *old.runs.iterdir(), *old.content.iterdir()):
        folder.chmod(0o1777)
    if os.getuid() == 0:
        os.chown(old.bundle("theirs"), OTHER, OTHER)
    return Partition(tmp_path, shared=True)


def listed(partition: Partition, folder: Path) -> list[str]:
    def read(session: Session) -> list[str]:
        session.refresh(everyone=True)
        return sorted(row[0] for row in session._db.execute("SELECT run_id FROM runs"))

    return RunIndex(partition, folder / "index").use(read)


@AS_ROOT
def test_only_ones_own_runs_of_the_old_layout_are_read(partition: Partition, tmp_path: Path):
    assert BundleReader(partition, "mine").read().damage == ()
    assert BundleReader(partition, "mine").is_own
    assert partition.find("theirs") is None
    assert listed(partition, tmp_path) == ["damaged", "mine"]
    assert sorted(runs_in_old_layout(partition)) == ["damaged", "mine"]


@AS_ROOT
def test_they_are_moved_whole_and_keep_their_ids(partition: Partition, tmp_path: Path):
    before = BundleReader(partition, "mine").read()
    content = BundleReader(partition, "mine").folder / "code"
    inode = content.stat().st_ino
    moved = migrate(partition, ["mine", "damaged"])
    assert (moved.runs, moved.problems, moved.code) == (("mine", "damaged"), (), 1)
    reader = BundleReader(partition, "mine")
    assert reader.folder == partition.runs / shard_of("mine") / "mine"
    assert reader.read() == before
    assert listed(partition, tmp_path) == ["damaged", "mine"]
    assert list(runs_in_old_layout(partition)) == []
    stored = ContentStore(partition).put_bytes(b"code", reader.folder / "again")
    assert stored.copied == 0
    assert (reader.folder / "again").stat().st_ino == inode
    # The other user's are his to move.
    assert Partition(tmp_path).bundle("theirs").is_dir()


def test_moving_again_changes_nothing(partition: Partition):
    assert migrate(partition, ["mine"]).runs == ("mine",)
    again = migrate(partition, list(runs_in_old_layout(partition)))
    assert "mine" not in again.runs
    assert again.code == 0
    assert BundleReader(partition, "mine").read().damage == ()


def test_an_id_that_is_taken_in_the_new_place_stays_where_it_is(partition: Partition):
    make_bundle(partition, "mine", code=3)
    ((run_id, reason),) = migrate(partition, ["mine"]).problems
    assert run_id == "mine"
    assert "same id" in reason


def test_code_that_is_not_what_its_name_says_stays(partition: Partition, tmp_path: Path):
    (stored,) = Partition(tmp_path).content.glob("??/*")
    stored.chmod(0o600)
    stored.write_bytes(b"else")
    assert migrate(partition, ["mine"]).code == 0
    assert not list(partition.content.glob("??/*"))


@AS_ROOT
def test_a_bundle_that_its_folders_owner_exchanged_is_not_taken(partition: Partition):
    os.chown(Partition(partition.root).bundle("mine"), OTHER, OTHER)
    ((run_id, _),) = migrate(partition, ["mine"]).problems
    assert run_id == "mine"
    assert partition.find("mine") is None
