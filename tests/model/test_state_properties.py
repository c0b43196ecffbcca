"""What holds of a run's state whatever was recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_jlab.core.records import RunRecords
from hyperpod_jlab.core.run import STATES, Run
from hyperpod_jlab.core.state import StateContext, derive
from hyperpod_jlab.core.wire import from_plain, to_plain
from tests.model.recording import act, attempt, error, intent, node, rank, records, word

LIKE_ALWAYS = settings(deadline=None, derandomize=True, database=None, max_examples=150)
VERDICTS = [
    "TIMEOUT",
    "OOM",
    "NODE_FAIL",
    "PREEMPTED",
    "LOST",
    "CANCELLED",
    "REQUEUED",
    "FAILED",
    "COMPLETED",
    "odd",
    None,
]
TIMES = st.floats(1, 1000)


@st.composite
def nodes(draw: Any, number: int) -> Any:
    end = draw(st.none() | TIMES)
    code = draw(st.sampled_from([0, 1, 3, 86, 137, 255])) if end is not None else None
    signal = draw(st.sampled_from([None, 9, 15])) if code else None
    by = draw(st.sampled_from([None, None, "peer", "SIGTERM"])) if code else None
    ranks = [rank(number, end=end, exit_code=code, signal=signal)]
    return node(number, start=draw(TIMES), end=end, exit_code=code, signal=signal, stopped_by=by, ranks=ranks)


@st.composite
def attempts(draw: Any, number: int, count: int) -> Any:
    present = draw(st.integers(0, count))
    errors = draw(st.lists(st.builds(error, TIMES, st.integers(0, 3)), max_size=2))
    return attempt(*(draw(nodes(n)) for n in range(present)), number=number, errors=tuple(errors))


@st.composite
def words(draw: Any, latest: int) -> Any:
    state = draw(st.sampled_from(["waiting", "running", "ended"]))
    about = draw(st.none() | st.integers(1, latest + 1))
    code = draw(st.sampled_from([None, "held"]))
    if state == "ended" and about is None and draw(st.booleans()):
        code = "submit_interrupted"
    more = {"attempt": about, "verdict": draw(st.sampled_from(VERDICTS)), "reason_code": code}
    return word(draw(TIMES), state, exit_code=draw(st.sampled_from([None, 0, 1])), **more)


@st.composite
def runs(draw: Any) -> RunRecords:
    """Anything that could have been recorded, and more."""
    count, latest = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    return records(
        *(draw(attempts(n + 1, count)) for n in range(latest)),
        nodes=count,
        taken=draw(st.booleans()),
        observations=tuple(draw(st.lists(words(latest), max_size=3))),
        actions=tuple(
            draw(st.lists(st.builds(act, TIMES, st.sampled_from(["cancel", "hold", "requeue"])), max_size=3))
        ),
        intents=tuple(draw(st.lists(st.builds(intent, TIMES), max_size=2))),
        owner=draw(st.none() | st.builds(intent, TIMES)),
        damage=tuple(draw(st.lists(st.just("a.json"), max_size=1))),
    )


MOMENTS = st.builds(
    StateContext, st.floats(0, 5000), st.sampled_from(["alive", "dead", "unknown"]), st.none() | st.just("deaf")
)


@LIKE_ALWAYS
@given(runs(), MOMENTS)
def test_some_state_is_always_told_and_fits_together(given_records, moment):
    status = derive(given_records, moment)
    assert status.state in STATES
    assert len(status.attempts) == len(given_records.attempts)
    if status.state == "succeeded":
        assert status.exit_code == 0
    if status.state == "failed":
        assert status.exit_code != 0
        assert status.reason
        assert status.reason_code
    if not status.ended:
        assert status.exit_code is None
        assert status.ended_at is None
    assert all(one.state != "running" for one in status.attempts[:-1])


@LIKE_ALWAYS
@given(runs(), MOMENTS)
def test_the_same_again_and_the_order_of_records_says_nothing(given_records, moment):
    status = derive(given_records, moment)
    assert derive(given_records, moment) == status
    turned = replace(given_records, actions=given_records.actions[::-1], intents=given_records.intents[::-1])
    assert derive(turned, moment) == status


@LIKE_ALWAYS
@given(runs(), words(3), MOMENTS)
def test_what_succeeded_stays_so_whatever_is_said_later(given_records, later, moment):
    before = derive(given_records, moment)
    after = derive(replace(given_records, observations=(*given_records.observations, later)), moment)
    for old, new in zip(before.attempts, after.attempts, strict=True):
        if old.state == "succeeded":
            assert new == old


@LIKE_ALWAYS
@given(runs(), words(3), MOMENTS)
def test_an_attempt_with_a_verdict_stays_as_it_is_whatever_is_said_later(given_records, later, moment):
    judged = {
        seen.attempt for seen in given_records.observations if seen.verdict not in {None, "LOST"} and seen.attempt
    }
    newest = max((seen.time for seen in given_records.observations), default=0.0)
    later = later.model_copy(update={"time": newest + 1})
    before = derive(given_records, moment)
    after = derive(replace(given_records, observations=(*given_records.observations, later)), moment)
    for old, new in zip(before.attempts[:-1], after.attempts[:-1], strict=True):
        if old.number in judged:
            assert new == old


@LIKE_ALWAYS
@given(runs(), MOMENTS)
def test_a_cancel_after_the_end_changes_nothing(given_records, moment):
    quiet = replace(given_records, actions=(), observations=(), damage=())
    before = derive(quiet, moment)
    if before.ended and before.reason_code != "submit_interrupted":
        end = max(before.ended_at or 0.0, *(one.ended_at or 0.0 for one in before.attempts), 0.0)
        after = derive(replace(quiet, actions=(act(end + 1),)), moment)
        assert after == before


@LIKE_ALWAYS
@given(runs(), MOMENTS)
def test_a_view_comes_back_from_json(given_records, moment):
    status = derive(given_records, moment)
    view = Run(
        **vars(status),
        run_id="run",
        name="run",
        cluster="local",
        orchestrator="local",
        user="ada",
        uid=1000,
        queue=None,
        created_at=1.0,
        submitted_at=None,
        scheduler_id=None,
        parent=None,
        bundle="/b",
    )
    assert to_plain(from_plain(Run, to_plain(view))) == to_plain(view)
