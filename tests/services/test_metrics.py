"""What is read of the numbers that ranks print: series, cursors, progress, alarms, and what a foreign file may do."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any, cast

import pytest

from hyperpod_jlab.cli.numbers import format_alarm, format_row
from hyperpod_jlab.core.metric_names import main_name, order_names
from hyperpod_jlab.run import metrics as module
from hyperpod_jlab.run.metrics import MetricSummary, MetricValue, Progress, RunAlarm, RunMetrics


class Bundle:
    """The records of a run, as far as numbers are concerned."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, *, own: bool = True, newest_only: bool = False) -> RunMetrics:
        """A new reader."""
        return RunMetrics(self.folder, is_own=own, newest_only=newest_only)

    def write(self, *documents: Any, attempt: int = 1, node: int = 0) -> None:
        """Append records, or lines as they are."""
        path = self.folder / "logs" / f"attempt-{attempt}" / f"node-{node}.metrics.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            for one in documents:
                file.write(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n")


def numbers(step: int, rank: int = 0, *, total: int | None = None, **values: Any) -> dict[str, Any]:
    """A record, one second a step."""
    document: dict[str, Any] = {"time": 1000.0 + step, "rank": rank, "step": step, "values": values}
    return document if total is None else {**document, "total": total}


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return Bundle(tmp_path)


def test_series_of_ranks_and_attempts(bundle: Bundle) -> None:
    bundle.write({"format": 1}, numbers(1, loss=2.5), numbers(1, rank=1, loss=2.75))
    bundle.write(numbers(1, loss=2.25), attempt=2)
    metrics = bundle.open()
    assert metrics.refresh()
    assert not metrics.refresh()
    found = [(one.rank, one.attempt, one.points) for one in metrics.read(["loss"])[0]]
    assert found == [(0, 1, [(1, 1001.0, 2.5)]), (0, 2, [(1, 1001.0, 2.25)]), (1, 1, [(1, 1001.0, 2.75)])]


def test_a_cursor_gives_what_came_since_and_one_of_another_reader_gives_all(bundle: Bundle) -> None:
    bundle.write(numbers(1, loss=2.5))
    metrics = bundle.open()
    metrics.refresh()
    cursor = metrics.cursor
    bundle.write(numbers(2, loss=2.0), numbers(2, rank=3, loss=9.0))
    metrics.refresh()
    since = metrics.read(cursor=cursor)[0]
    assert [(one.rank, one.points) for one in since] == [(0, [(2, 1002.0, 2.0)]), (3, [(2, 1002.0, 9.0)])]
    assert metrics.read(cursor=metrics.cursor)[0] == []
    other = bundle.open()
    other.refresh()
    for foreign in (cursor, "x", "-1", f"{cursor}9", ""):
        assert other.known(foreign) == 0
        assert sum(len(one.points) for one in other.read(cursor=foreign)[0]) == 3


def test_what_is_not_finite_is_null(bundle: Bundle) -> None:
    bundle.write(numbers(1, loss="nan"), numbers(2, loss="inf"), numbers(3, loss=1.0))
    metrics = bundle.open()
    metrics.refresh()
    (series,) = metrics.read()[0]
    assert [value for _, _, value in series.points] == [None, None, 1.0]
    assert metrics.ranges() == {"loss": (1.0, 1.0)}
    assert metrics.course("loss", 10) == [None, None, 1.0]


def test_many_points_are_thinned_out_with_the_lowest_and_the_highest(bundle: Bundle) -> None:
    values = [math.sin(step / 50) for step in range(5000)]
    values[1234], values[4321] = 50.0, -50.0
    bundle.write(*(numbers(step, loss=value) for step, value in enumerate(values)))
    bundle.write(numbers(5000, loss="nan"), numbers(5001, loss=0.0))
    metrics = bundle.open()
    metrics.refresh()
    (series,) = metrics.read(most=100)[0]
    steps = [step for step, _, _ in series.points]
    assert len(steps) <= 102
    assert steps == sorted(cast("list[int]", steps))
    assert {0, 1234, 4321, 5000, 5001} <= set(steps)
    assert series.count == 5002


def test_what_is_thinned_out_in_blocks_is_what_it_was_before(bundle: Bundle) -> None:
    values: list[float | str] = [math.sin(step * 7919) for step in range(9000)]
    values[31], values[32], values[8998] = 5.0, -5.0, 7.0
    values[4000:4100] = ["nan"] * 100
    bundle.write(*(numbers(step, loss=value) for step, value in enumerate(values)))
    metrics = bundle.open()
    metrics.refresh()

    def steps(begin: float | None = None, end: float | None = None) -> set[int | None]:
        (series,) = metrics.read(most=100, begin=begin, end=end)[0]
        assert len(series.points) <= 110
        return {step for step, _, _ in series.points}

    assert {0, 31, 32, 4000, 8998, 8999} <= steps()
    # A part that begins and ends within blocks has its own lowest and highest.
    part = steps(begin=1033.0, end=9997.0)
    assert {33, 8997} <= part
    assert not {31, 32, 8998} & part
    bundle.write(numbers(9000, loss=9.0), *(numbers(step, loss=0.0) for step in range(9001, 9100)))
    metrics.refresh()
    assert {31, 32, 9000, 9099} <= steps()


def test_memory_has_a_limit_and_the_newest_stays(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OWN", dataclasses.replace(module._OWN, points=1000))
    bundle.write(*(numbers(step, loss=1.0, accuracy=0.5) for step in range(5000)))
    metrics = bundle.open()
    metrics.refresh()
    found = {one.name: one.points for one in metrics.read()[0]}
    assert all(len(points) <= 1000 for points in found.values())
    assert [points[-1][0] for points in found.values()] == [4999, 4999]


def test_progress_and_the_time_left(bundle: Bundle) -> None:
    bundle.write(*(numbers(step, total=100, loss=1.0) for step in range(1, 21)))
    metrics = bundle.open()
    metrics.refresh()
    progress = metrics.summary(ended=False, now=1020.0).progress
    assert progress is not None
    assert (progress.step, progress.total, progress.seconds_left) == (20, 100, 80.0)
    silent = metrics.summary(ended=False, now=5000.0).progress
    ended = metrics.summary(ended=True, now=1020.0).progress
    assert (silent and silent.seconds_left, ended and ended.seconds_left) == (None, None)


def test_the_newest_value_is_of_rank_0_else_of_another(bundle: Bundle) -> None:
    bundle.write(numbers(1, rank=2, loss=3.0, wer=0.5), numbers(1, rank=0, loss=1.0))
    metrics = bundle.open()
    metrics.refresh()
    found = metrics.summary(ended=False).metrics
    assert {name: one.value for name, one in found.items()} == {"loss": 1.0, "wer": 0.5}


def alarm(code: str, rank: int | None, **more: Any) -> dict[str, Any]:
    return {"time": 1001.0, "alarm": code, "rank": rank, "since": 1000.0, **more}


def test_of_a_hang_the_alarm_of_node_0_is_shown(bundle: Bundle) -> None:
    bundle.write(alarm("hang", 9, message="behind step 20: rank 9") | {"since": 999.0}, node=1)
    bundle.write(alarm("hang", 17, message="behind step 20: rank 9, 17"), node=0)
    metrics = bundle.open()
    metrics.refresh()
    (hang,) = metrics.summary(ended=False).alarms
    assert (hang.rank, hang.message) == (17, "behind step 20: rank 9, 17 (1 more node)")


def test_alarms_of_many_ranks_are_one_until_they_are_over(bundle: Bundle) -> None:
    for rank in range(64):
        bundle.write(alarm("nan", rank, message="loss is nan"), node=rank // 8)
    bundle.write(alarm("hang", 3, message="no output"), alarm("unknown", 3, message="x"))
    metrics = bundle.open()
    metrics.refresh()
    nan, hang = metrics.summary(ended=False).alarms
    assert (nan.code, nan.rank, nan.message) == ("nan", 0, "loss is nan (63 more ranks)")
    assert (hang.code, hang.rank) == ("hang", 3)
    bundle.write(alarm("hang", None, over=True))
    metrics.refresh()
    assert [one.code for one in metrics.summary(ended=False).alarms] == ["nan"]
    bundle.write(numbers(1, loss=1.0), attempt=2)
    later = bundle.open()
    later.refresh()
    assert later.summary(ended=False).alarms == []  # those of the attempt before


def test_for_the_newest_numbers_the_end_and_the_alarms_are_read(bundle: Bundle) -> None:
    bundle.write(numbers(1, loss=9.0, wer=0.5), alarm("spike", 0, message="jumped"))
    bundle.write(alarm("nan", 0, message="loss is nan"))
    bundle.write(*(numbers(step, total=40_000, loss=step / 8) for step in range(2, 20_001)))
    bundle.write(alarm("spike", 0, over=True))
    newest, whole = bundle.open(newest_only=True), bundle.open()
    newest.refresh(), whole.refresh()
    found, expected = (one.summary(ended=False, now=21_000.0) for one in (newest, whole))
    assert found.metrics == {"loss": expected.metrics["loss"]}  # "wer" was not printed lately
    assert found.metrics["loss"].step == 20_000
    assert (found.progress, found.alarms) == (expected.progress, expected.alarms)
    assert [one.code for one in found.alarms] == ["nan"]
    assert newest.count < whole.count / 4


def test_for_the_newest_numbers_a_short_file_is_read_whole(bundle: Bundle) -> None:
    bundle.write(*(numbers(step, loss=1.0) for step in range(100)))
    metrics = bundle.open(newest_only=True)
    metrics.refresh()
    assert metrics.count == 100


@pytest.mark.parametrize(
    ("names", "ordered", "main"),
    [
        (["loss", "accuracy", "epoch"], ["loss", "accuracy"], "loss"),
        (["wer", "learning_rate", "eval_loss"], ["eval_loss", "learning_rate", "wer"], "eval_loss"),
        (["wer", "learning_rate"], ["learning_rate", "wer"], "wer"),
        (["step_time", "learning_rate"], ["learning_rate", "step_time"], "learning_rate"),
        (["epoch"], [], None),
        ([], [], None),
    ],
)
def test_the_order_of_names(names: list[str], ordered: list[str], main: str | None) -> None:
    assert order_names(names) == ordered
    assert main_name(names) == main


def test_a_row_has_the_number_the_time_left_and_the_alarms() -> None:
    loss = {"loss": MetricValue(2.3145, 7, 1000.0), "learning_rate": MetricValue(1e-4, 7, 1000.0)}
    alarms = [RunAlarm("nan", "x", 0, 1000.0), RunAlarm("hang", "y", None, 1000.0)]
    assert format_row(MetricSummary()) == ""
    assert format_row(MetricSummary(loss)) == "loss 2.314"
    assert format_row(MetricSummary(loss, Progress(7, 100, 720.0))) == "loss 2.314, 12m 00s left"
    assert format_row(MetricSummary(loss, Progress(7, 100, None), alarms)) == ("loss 2.314, alarm nan, alarm hang")


@pytest.mark.parametrize(
    ("rank", "message", "text"),
    [
        (1, "silent for 7 s; behind step 20: rank 1", "silent for 7 s; behind step 20: rank 1"),
        (5, "behind step 20: rank 1, 5", "behind step 20: rank 1, 5"),
        (1, "behind step 20: rank 12", "rank 1: behind step 20: rank 12"),
        (1, "takes 2 s a step (1 more rank)", "rank 1: takes 2 s a step (1 more rank)"),
        (None, "the last step is 3", "the last step is 3"),
    ],
)
def test_an_alarm_names_its_rank_once_and_when_it_began(rank: int | None, message: str, text: str) -> None:
    alarm = RunAlarm("hang", message, rank, 1000.0)
    assert format_alarm(alarm) == f"hang: {text} (began 1970-01-01T00:16:40.000Z)"


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"{\n",
        b"[]\n",
        b'"x"\n',
        b"\xff\xfe\n",
        b'{"time": "x", "rank": 0, "values": {}}\n',
        b'{"time": 1e999, "rank": 0, "values": {"a": 1}}\n',
        b'{"time": 1, "rank": -1, "values": {"a": 1}}\n',
        b'{"time": 1, "rank": true, "values": {"a": 1}}\n',
        b'{"time": 1, "rank": 0, "values": [1]}\n',
        b'{"time": 1, "rank": 0, "values": {"a": {}}}\n',
        b'{"time": 1, "rank": 0, "values": {"a": "x"}}\n',
        b'{"time": 1, "rank": 0, "step": 1e30, "values": {"a": 1}}\n',
        b'{"time": 1, "alarm": "nan", "rank": "0"}\n',
        b'{"time": 1, "alarm": ["nan"], "rank": 0}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_lines_that_are_no_records_are_left_out(bundle: Bundle, line: bytes) -> None:
    bundle.write(line, numbers(1, loss=2.5), line)
    metrics = bundle.open()
    metrics.refresh()
    assert [one.name for one in metrics.read()[0]] == ["loss"]


def test_a_clock_that_goes_back_does_not_turn_a_curve(bundle: Bundle) -> None:
    bundle.write(numbers(5, loss=1.0), {**numbers(6, loss=2.0), "time": 3.0})
    metrics = bundle.open()
    metrics.refresh()
    assert [moment for _, moment, _ in metrics.read()[0][0].points] == [1005.0, 1005.0]


def test_a_link_in_the_place_of_a_file_is_not_followed(bundle: Bundle, tmp_path: Path) -> None:
    bundle.write(numbers(1, loss=2.5))
    path = tmp_path / "logs" / "attempt-1" / "node-1.metrics.jsonl"
    target = tmp_path / "elsewhere"
    target.write_text(json.dumps(numbers(1, secret=1.0)) + "\n")
    path.symlink_to(target)
    metrics = bundle.open(own=False)
    metrics.refresh()
    assert [one.name for one in metrics.read()[0]] == ["loss"]


def test_names_and_files_without_end(bundle: Bundle) -> None:
    bundle.write({**numbers(1), "values": {"x" * 10_000: 1.0}}, b"{" * 5_000_000)
    metrics = bundle.open()
    metrics.refresh()
    assert [len(one.name) for one in metrics.read()[0]] == [200]
