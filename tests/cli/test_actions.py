"""Cancel, hold, release, requeue, why: what can be done to runs, and what is told of each."""

from __future__ import annotations

import json
import time

import pytest

from .conftest import Hpj, make_home

pytestmark = pytest.mark.local


@pytest.fixture
def home(tmp_path):
    """One slot, so that a second run waits."""
    return make_home(tmp_path, slots=1)


@pytest.fixture
def two(hpj: Hpj):
    """A run that runs and one that waits behind it."""
    for name in ("first", "second"):
        hpj("submit", "-c", "sleep 60", "--run-id", name, "--stop-grace", "1").ok()
        _until(hpj, name, "running" if name == "first" else "waiting")
    yield "first", "second"
    hpj("cancel", "first", "second")


def _until(hpj: Hpj, run_id: str, state: str, reason_code: str | None = None) -> dict[str, object]:
    deadline = time.monotonic() + 30
    while True:
        run: dict[str, object] = hpj("show", run_id, "--json").ok().json
        if run["state"] == state and reason_code in {None, run["reason_code"]}:
            return run
        assert time.monotonic() < deadline, json.dumps(run, indent=1)
        time.sleep(0.1)


def test_why_tells_what_is_before_it(hpj, two):
    _until(hpj, "second", "waiting", "slots")
    told = hpj("why", "second", "--json").ok().json
    assert told["run_id"] == "second"
    assert told["reason"] == "waiting for sleep"
    assert told["position"] == 1
    assert "second: waiting for" in hpj("why", "second").ok().out
    assert "is not waiting" in hpj("why", "first").ok().out


def test_hold_and_release(hpj, two):
    assert hpj("hold", "second").ok().out == "second held\n"
    _until(hpj, "second", "waiting", "held")
    jobs = hpj("jobs", "--json").ok().json["jobs"]
    assert [job["state"] for job in jobs] == ["running", "held"]
    assert hpj("release", "second").ok().out == "second released\n"
    _until(hpj, "second", "waiting", "slots")
    assert hpj("cancel", "first").ok().out == "first running: being cancelled\n"


def test_an_action_that_does_not_fit_is_refused(hpj, two):
    told = hpj("requeue", "second", "--json")
    assert (told.code, told.error["code"]) == (2, "wrong_state")


def test_requeue_opens_the_next_attempt(hpj, two):
    _attempts(hpj, "first", 1)
    hpj("requeue", "first").ok()
    _attempts(hpj, "first", 2)


def _attempts(hpj: Hpj, run_id: str, number: int) -> None:
    deadline = time.monotonic() + 30
    while len(hpj("show", run_id, "--json").ok().json["attempts"]) < number:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_several_are_cancelled_at_once_with_one_result_each(hpj, two):
    told = hpj("cancel", "first", "nobody", "second", "--json")
    assert (told.code, told.error["code"]) == (3, "no_such_run")
    results = told.json["results"]
    assert [(one["run_id"], one["ok"]) for one in results] == [("first", True), ("nobody", False), ("second", True)]
    assert results[0]["run"]["run_id"] == "first"
    assert results[1]["error"]["code"] == "no_such_run"
    assert _until(hpj, "first", "cancelled")["ended_at"]
    _until(hpj, "second", "cancelled")
    again = hpj("cancel", "first", "second").ok()
    assert again.out == "first cancelled\nsecond cancelled\n"


def test_waiting_for_a_run_that_is_cancelled_exits_with_1(hpj, home):
    waiting = home.start("submit", "-c", "sleep 60", "--run-id", "mine", "--wait", "--stop-grace", "1")
    deadline = time.monotonic() + 30
    while hpj("show", "mine").code != 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    run = hpj("cancel", "mine", "--json").ok().json
    assert run["run_id"] == "mine"
    assert waiting.wait(timeout=30) == 1


def test_jobs_of_the_queue_are_acted_on_by_their_ids(hpj, two):
    _until(hpj, "second", "waiting", "slots")
    jobs = {job["run_id"]: job["scheduler_id"] for job in hpj("jobs", "--json").ok().json["jobs"]}
    told = hpj("hold", "--jobs", jobs["second"], "nothing-here", "--json")
    assert (told.code, told.error["code"]) == (3, "no_such_job")
    assert [(one["scheduler_id"], one["ok"]) for one in told.json["results"]] == [
        (jobs["second"], True),
        ("nothing-here", False),
    ]
    _until(hpj, "second", "waiting", "held")
    done = hpj("cancel", "--jobs", *jobs.values()).ok()
    assert done.out == "".join(f"{job} cancelled\n" for job in jobs.values())
    _until(hpj, "first", "cancelled")
    _until(hpj, "second", "cancelled")


def test_the_worst_of_several_errors_makes_the_exit_code(hpj, two):
    told = hpj("hold", "first", "nobody")
    assert told.code == 3
    assert "first is running; to hold it, the run must be waiting" in told.err
    assert "run nobody not found" in told.err


def test_a_change_is_refused_where_it_cannot_be(hpj, two):
    told = hpj("change", "second", "--time-limit", "1h", "--json")
    assert (told.code, told.error["code"]) == (2, "unsupported")
    assert hpj("change", "second", "--json").error["code"] == "nothing_to_change"
    assert hpj("change", "second", "--time-limit", "soon", "--json").code == 2


def test_a_cluster_goes_with_jobs_only(hpj):
    told = hpj("cancel", "first", "--cluster", "local", "--json")
    assert (told.code, told.error["detail"]["option"]) == (2, "--cluster")
