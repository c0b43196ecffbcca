"""Run ids: folder, label, object name and key at once."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.run_id import SHARDS, check_run_id, new_run_id, shard_of, split_run_id

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def test_a_new_one_is_valid_and_a_label():
    run_id = new_run_id()
    assert check_run_id(run_id) == run_id
    assert LABEL.fullmatch(run_id)
    assert len(run_id) <= 40


def test_new_ones_differ_and_sort_by_time():
    now = datetime(2026, 11, 21, 12, 4, 55, tzinfo=UTC)
    same = {new_run_id(now) for _ in range(200)}
    assert len(same) == 200
    assert max(same) < new_run_id(now + timedelta(seconds=1))


def test_the_time_is_utc_wherever_one_is():
    there = datetime(2026, 1, 1, 1, 0, 0, tzinfo=timezone(timedelta(hours=2)))
    assert new_run_id(there).startswith("20251231-230000-")


@pytest.mark.parametrize("run_id", ["a", "0", "a-b", "a--b", "x" * 40, "20261121-120455-k3x9qd"])
def test_valid(run_id):
    assert split_run_id(run_id) == (run_id, None)


@pytest.mark.parametrize(
    "run_id",
    ["", "-a", "a-", "A", "a_b", "a/b", "..", ".", "../x", "a.b", "x" * 41, "a\n", "ä", "a b", "a\0", "\u0661", "a.1.2", "a.01", "a.-1", "a.", ".1", "a.1\n", "a." + "9" * 10],
)  # fmt: skip
def test_not_valid(run_id):
    with pytest.raises(InvalidInputError) as caught:
        split_run_id(run_id)
    assert caught.value.code == "invalid_run_id"
    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_what_is_quoted_of_a_bad_one_is_short():
    with pytest.raises(InvalidInputError) as caught:
        check_run_id("X" * 10_000)
    assert len(caught.value.message) < 100


def test_a_child_is_no_id_for_a_submit():
    with pytest.raises(InvalidInputError):
        check_run_id("a.1")


@pytest.mark.parametrize(("run_id", "parts"), [("a.0", ("a", 0)), ("a-b.17", ("a-b", 17))])
def test_children(run_id, parts):
    assert split_run_id(run_id) == parts
    assert shard_of(run_id) == shard_of(parts[0])


def test_shards_depend_on_the_id_alone_and_are_used_evenly():
    ids = [f"run-{number}" for number in range(SHARDS * 100)]
    shards = [shard_of(run_id) for run_id in ids]
    assert shards[0] == f"{hashlib.sha256(b'run-0').digest()[0] % SHARDS:02x}"
    assert len(set(shards)) == SHARDS
    assert max(shards.count(shard) for shard in set(shards)) < 200
