"""The line of a queue, with those that Kueue leaves out of it while it looks at them."""

from __future__ import annotations

import pytest

from hyperpod_jlab.engines.kubernetes.tables.kueue import WorkloadRow
from hyperpod_jlab.engines.kubernetes.waiting.wait import full_queue_order


def waits(name: str, priority: int | None, second: int) -> WorkloadRow:
    return WorkloadRow(
        namespace="team",
        name=name,
        owner=None,
        job_uid=None,
        queue="gpus",
        priority=priority,
        priority_class=None,
        state="waiting",
        reason=None,
        message=None,
        evicted=None,
        requests=(),
        pods=1,
        created=f"2026-11-22T10:00:{second:02}Z",
    )


HIGH = waits("high", 10, 5)
FIRST = waits("first", 0, 1)
SECOND = waits("second", None, 2)
THIRD = waits("third", 0, 3)


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (["high", "first", "second", "third"], ["high", "first", "second", "third"]),
        (["first", "second", "third"], ["high", "first", "second", "third"]),
        (["high", "second", "third"], ["high", "first", "second", "third"]),
        (["high", "first", "second"], ["high", "first", "second", "third"]),
        ([], ["high", "first", "second", "third"]),
        # Kueue's own order stays: it may have put one that was evicted elsewhere.
        (["third", "first", "high"], ["second", "third", "first", "high"]),
        # One that may not be seen here, or is not known yet, keeps its place.
        (["other", "high", "third"], ["other", "high", "first", "second", "third"]),
    ],
)
def test_who_is_left_out_is_put_back(told: list[str], wanted: list[str]) -> None:
    line = full_queue_order([("team", name) for name in told], [THIRD, SECOND, HIGH, FIRST])
    assert [name for _, name in line] == wanted


def test_a_line_of_nobody() -> None:
    assert full_queue_order([], []) == []
