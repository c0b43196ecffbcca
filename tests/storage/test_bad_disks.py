"""Disks that are full or read-only, for real."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mounts import on_small_disk


@pytest.fixture
def disk(tmp_path: Path):
    """Runs one of the cases of `small_disk`."""

    def run(case: str, **more: Any) -> Any:
        return on_small_disk("tests.storage.small_disk", case, tmp_path / "disk", **more)

    return run


@pytest.mark.parametrize("case", ["full_while_adding", "full_while_copying_a_file", "full_before_anything"])
def test_a_full_disk_leaves_nothing_of_the_bundle(disk, case):
    assert disk(case) == ["storage_full", []]


def test_a_disk_that_fills_up_at_any_file(disk):
    codes, tries, left = disk("full_at_each_file")
    assert codes == ["done", "storage_full"]
    assert tries > 10
    assert left == ["run-1"]


def test_a_full_disk_leaves_the_earlier_record_whole(disk):
    codes, record, left = disk("full_while_recording")
    assert codes == ["storage_full", "storage_full"]
    assert '"first"' in record
    assert left == ["run-1"]


def test_a_read_only_partition(disk):
    codes, left = disk("read_only")
    assert codes == ["storage_read_only"] * 4
    assert left == ["run-1"]


def test_a_partition_that_becomes_read_only_in_between(disk):
    """Its staging folder cannot be removed then, but nobody lists it."""
    assert disk("read_only_in_between") == ["storage_read_only", [".staging-run-1"]]


def test_a_store_that_cannot_be_linked_from(disk):
    copied, texts, plain, tool, left = disk("store_on_another_file_system")
    assert texts == ["12345", "12345"]
    assert copied == [5, 5]
    assert (plain, tool) == ("0o100400", "0o100500")
    assert left == []


def test_an_index_that_cannot_be_written(disk):
    assert disk("index_on_bad_disk") == [["run-1"], ["run-1"], ["run-1"], ["run-1", "run-2"]]
