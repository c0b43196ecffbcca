"""What a run used, as a pure function of its records."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_jlab.core.records import AttemptRecords, Head, NodeRecord, Observation, RankRecord, RunRecords
from hyperpod_jlab.core.spec import Accelerators
from hyperpod_jlab.core.usage import signal_of, usage_of_records

HEAD = Head(
    run_id="run-1",
    name="run",
    user="alice",
    host="here",
    created_at=0,
    cluster="c",
    orchestrator="o",
    spec_digest="",
    nodes=2,
)
TWO_GPUS = Accelerators(count=2)


def node(rank: int, start: float, end: float | None, **more: Any) -> NodeRecord:
    return NodeRecord(node_rank=rank, node=f"node{rank}", started_at=start, ended_at=end, **more)


def run(*attempts: list[NodeRecord], said: tuple[Observation, ...] = ()) -> RunRecords:
    made = [AttemptRecords(number, nodes=tuple(nodes)) for number, nodes in enumerate(attempts, 1)]
    return RunRecords(HEAD, attempts=tuple(made), observations=said)


def test_accelerators_count_on_each_node_for_as_long_as_it_ran() -> None:
    usage = usage_of_records([run([node(0, 100, 110), node(1, 100, 130)])], TWO_GPUS)
    assert usage.accelerator_seconds == 2 * (10 + 30)


def test_all_attempts_count() -> None:
    usage = usage_of_records([run([node(0, 100, 110)], [node(0, 200, 205)])], TWO_GPUS)
    assert (usage.elapsed, usage.accelerator_seconds, usage.attempts) == (15, 30, 2)


def test_accelerators_that_nobody_knows_are_unknown_and_not_none() -> None:
    assert usage_of_records([run([node(0, 100, 110)])], None).accelerator_seconds is None


def test_clocks_that_differ_add_nothing() -> None:
    usage = usage_of_records([run([node(0, 100, 110), node(1, 400, 410)])], TWO_GPUS)
    assert usage.elapsed == 10


@pytest.mark.parametrize("attempt", [1, None])
def test_a_node_that_left_no_word_ended_when_the_scheduler_said_so(attempt: int | None) -> None:
    said = Observation(time=160, observer="s", state="ended", verdict="NODE_FAIL", attempt=attempt)
    usage = usage_of_records([run([node(0, 100, None)], said=(said,))], TWO_GPUS)
    assert usage.elapsed == 60


def test_a_node_that_left_no_word_ended_with_the_last_of_the_others() -> None:
    usage = usage_of_records([run([node(0, 100, None), node(1, 100, 120)])], TWO_GPUS)
    assert usage.accelerator_seconds == 2 * 2 * 20


def test_memory_is_the_most_and_cpu_time_the_sum_of_those_that_say_it() -> None:
    nodes = [node(0, 1, 2, max_memory=5, cpu_seconds=1.5), node(1, 1, 2, max_memory=7, cpu_seconds=2), node(2, 1, 2)]
    usage = usage_of_records([run(nodes)], TWO_GPUS)
    assert (usage.max_memory, usage.cpu_seconds) == (7, 3.5)


def test_records_of_an_earlier_version_leave_them_unknown() -> None:
    usage = usage_of_records([run([node(0, 1, 2)])], TWO_GPUS)
    assert (usage.max_memory, usage.cpu_seconds) == (None, None)


def test_a_run_that_never_began_used_nothing() -> None:
    usage = usage_of_records([run()], TWO_GPUS)
    assert (usage.elapsed, usage.accelerator_seconds, usage.nodes) == (0, 0, None)


@pytest.mark.parametrize(
    ("exit_code", "signal", "found"), [(139, 11, 11), (139, 15, None), (3, 11, None), (None, 11, None)]
)
def test_the_signal_is_the_one_of_the_exit_code(exit_code: int | None, signal: int, found: int | None) -> None:
    rank = RankRecord(rank=0, local_rank=0, exit_code=128 + signal, signal=signal)
    assert signal_of(run([node(0, 1, 2, ranks=[rank])]), exit_code) == found
