"""The state of an array as the sum of its children's."""

from __future__ import annotations

import pytest

from hyperpod_jlab.core.run import Status, summarize_children

HELD = Status("waiting", reason="held by its user", reason_code="held")
GONE = Status("failed", reason="lost", reason_code="lost", ended_at=9.0)


def summed(parent: Status, children: list[Status]) -> Status:
    return summarize_children(parent, [(one, 1) for one in children])


def child(state, **more):
    ended = {"ended_at": 20.0} if state in {"succeeded", "failed", "cancelled"} else {}
    return Status(state, **{**ended, **more})


@pytest.mark.parametrize(
    ("children", "state", "reason"),
    [
        ("waiting waiting", "waiting", "2 waiting"),
        ("submitting submitting", "waiting", "2 submitting"),
        ("waiting running", "running", "1 waiting, 1 running"),
        ("running running", "running", "2 running"),
        ("succeeded waiting", "running", "1 succeeded, 1 waiting"),
        ("failed waiting", "running", "1 failed, 1 waiting"),
        ("succeeded running failed", "running", "1 succeeded, 1 running, 1 failed"),
        ("succeeded succeeded", "succeeded", None),
        ("succeeded failed succeeded", "failed", "2 succeeded, 1 failed"),
        ("succeeded cancelled", "cancelled", "1 succeeded, 1 cancelled"),
        ("failed cancelled", "failed", "1 failed, 1 cancelled"),
        ("succeeded unknown", "unknown", "1 succeeded, 1 unknown"),
        ("unknown cancelled", "unknown", "1 unknown, 1 cancelled"),
        ("unknown failed", "failed", "1 unknown, 1 failed"),
        ("unknown running", "running", "1 unknown, 1 running"),
    ],
)
def test_worst_state_once_all_have_ended(children, state, reason):
    status = summed(Status("running"), [child(one) for one in children.split()])
    assert (status.state, status.reason) == (state, reason)
    assert (status.ended_at is None) == (state in {"waiting", "running", "unknown"}) or state == "unknown"


def test_exit_code_is_the_first_failed_childs():
    children = [
        child("succeeded", exit_code=0),
        child("cancelled", exit_code=143),
        child("failed", exit_code=3),
        child("failed", exit_code=4),
    ]
    assert summed(Status("running"), children).exit_code == 3


def test_exit_code_of_a_good_array_is_zero_and_its_times_span_the_children():
    children = [
        child("succeeded", exit_code=0, started_at=5.0, ended_at=9.0),
        child("succeeded", exit_code=0, started_at=3.0, ended_at=7.0),
    ]
    status = summed(Status("running"), children)
    assert (status.exit_code, status.started_at, status.ended_at) == (0, 3.0, 9.0)


def test_a_failed_child_without_an_exit_code():
    assert summed(Status("running"), [child("failed")]).exit_code is None


def test_children_that_live_on_without_a_supervisor():
    status = summed(GONE, [child("succeeded"), child("running")])
    assert status.state == "running"
    assert status.reason == "its supervisor is not running; 1 succeeded, 1 running"


def test_children_count_more_than_the_arrays_own_end():
    assert summed(GONE, [child("succeeded")] * 2).state == "succeeded"


def test_a_held_array_says_that_it_is_held():
    status = summed(HELD, [child("waiting"), child("waiting")])
    assert (status.state, status.reason_code) == ("waiting", "held")


def test_children_that_wait_for_the_same_reason_tell_it():
    held = child("waiting", reason="held by its user", reason_code="held")
    status = summed(Status("running"), [held, held, child("waiting")])
    assert (status.state, status.reason_code) == ("waiting", "held")
    assert status.reason == "3 waiting: held by its user"
    slots = child("waiting", reason="all slots taken", reason_code="slots")
    assert summed(Status("running"), [held, slots]).reason_code is None


def test_children_of_whom_nothing_is_known_are_counted_at_once():
    status = summarize_children(Status("running"), [(child("running"), 1), (child("waiting"), 99_999)])
    assert (status.state, status.reason) == ("running", "99999 waiting, 1 running")
