"""A partition that is full for a while."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mounts import on_small_disk

pytestmark = pytest.mark.local


def test_a_partition_that_is_full_for_a_while_ends_no_run(tmp_path: Path) -> None:
    told = on_small_disk("tests.local.small_disk", "full_for_a_while", tmp_path / "disk")
    assert told["log"] == "two\n"
    assert told["states"] == {run_id: ["succeeded", None] for run_id in ("goes-on", "ends", "waits")}


def test_a_run_is_cancelled_although_the_partition_is_full(tmp_path: Path) -> None:
    told = on_small_disk("tests.local.small_disk", "cancelled_while_full", tmp_path / "disk")
    assert told == {"left": [], "state": "cancelled"}


def test_a_restart_waits_until_it_can_be_recorded(tmp_path: Path) -> None:
    told = on_small_disk("tests.local.small_disk", "restarted_while_full", tmp_path / "disk")
    assert told == {"state": "succeeded", "attempts": [1, 2]}


def test_a_run_that_fills_the_partition_fails_for_that_reason(tmp_path: Path) -> None:
    told = on_small_disk("tests.local.small_disk", "filled_by_the_run", tmp_path / "disk")
    assert told == {
        "state": "failed",
        "reason": "the storage partition is full",
        "code": "storage_full",
        "reserved": False,
    }


def test_an_array_that_fills_the_partition_fails(tmp_path: Path) -> None:
    told = on_small_disk("tests.local.small_disk", "filled_by_children", tmp_path / "disk")
    assert told == {"state": "failed", "reason": "3 failed"}


def test_an_array_waits_for_space_and_is_charged_for_what_ran(tmp_path: Path) -> None:
    told = on_small_disk("tests.local.small_disk", "array_while_full", tmp_path / "disk")
    reason = "the storage partition is full, so it cannot start"
    assert told == {"why": [reason, "storage_full"], "children": [reason], "state": "failed", "same": True}
