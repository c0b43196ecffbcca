"""Numbers in what ranks print: read by the launcher's own process, into records."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.launcher.alarms import Alarm, Course, HangAlarm, LossAlarms
from hyperpod_jlab.launcher.assemble import launcher_source
from hyperpod_jlab.launcher.bundle_files import AttemptPaths
from hyperpod_jlab.launcher.metric_lines import LineNumbers, MetricParser, may_have_numbers
from hyperpod_jlab.launcher.metrics import MetricsProcess, RankReader, Spacing, compile_patterns
from hyperpod_jlab.launcher.webhook import Webhook

RECORDS = Path(__file__).parent / "trainers"


def read(text: bytes, patterns: Mapping[str, str] | None = None) -> list[LineNumbers]:
    """All numbers of a text, as they come when it is read in one go."""
    parser = MetricParser(compile_patterns(patterns or {}))
    found = []
    for line in text.replace(b"\r", b"\n").split(b"\n"):
        found += parser.read(line)
    return found + parser.flush()


def values(text: bytes) -> dict[str, float]:
    """The values of the last numbers of a text."""
    return read(text)[-1].values


@pytest.mark.parametrize(
    ("line", "step", "total", "expected"),
    [
        (b"step 10 loss 2.31", 10, None, {"loss": 2.31}),
        (b"step=10 loss=2.31 lr=1e-4", 10, None, {"loss": 2.31, "learning_rate": 1e-4}),
        (b"loss: 2.31", None, None, {"loss": 2.31}),
        (b'{"step": 3, "loss": 0.5, "custom": 7}', 3, None, {"loss": 0.5, "custom": 7.0}),
        (b"12,892 tok/s | step 1/60 | loss 2.2", 1, 60, {"loss": 2.2, "tokens_per_second": 12892.0}),
        (b"iter 10: loss 3.2, time 120.33ms", 10, None, {"loss": 3.2, "step_time": 0.12033}),
        (b"\x1b[31mstep: 1  \x1b[32mloss:  7.5\x1b[0m", 1, None, {"loss": 7.5}),
        (b"[10]\ttrain-rmse:0.5\teval-rmse:0.6", 10, None, {"train-rmse": 0.5, "eval-rmse": 0.6}),
        (b"validation: loss 1.5, accuracy 65.72%", None, None, {"eval_loss": 1.5, "eval_accuracy": 65.72}),
        (b"Test set: Average loss: 0.5, Accuracy: 98/100 (98%)", None, None, {"eval_loss": 0.5, "eval_accuracy": 0.98}),
    ],
)
def test_lines_with_numbers(line: bytes, step: int | None, total: int | None, expected: dict[str, float]) -> None:
    assert may_have_numbers(line)
    (found,) = read(line)
    assert (found.step, found.total) == (step, total)
    assert found.values == expected


@pytest.mark.parametrize(
    "line",
    [
        b"packet loss 0%",
        b"we saw a loss of 3 percent",
        b"data loss prevention: 3 rules",
        b"loss.py:12: warning",
        b"learning_rate: 0.001",
        b"Namespace(lr=0.001, epochs=3)",
        b"Namespace(lr=0.1, loss=0.5, epochs=3)",
        b"config: TrainConfig(loss=0.5, lr=0.1)",
        b'    loss = {"loss": 2.31}["losses"]',
        b"assert loss == 2.31",
        b"GET /train?step=1&loss=2.1 HTTP/1.1",
        b"Map:  30%|###| 300/1000 [00:01<00:02, 250.00 examples/s]",
        b"Downloading: 45%|###  | 1.2G/2.5G [00:10<00:12, 110MB/s]",
        "loss \N{ARABIC-INDIC DIGIT THREE}.5 step \N{ARABIC-INDIC DIGIT ONE}".encode(),
    ],
)
def test_lines_without(line: bytes) -> None:
    assert read(line) == []


@pytest.mark.parametrize("text", [b"nan", b"NaN", b"NAN", b"inf", b"-inf", b"Infinity"])
def test_all_spellings_of_what_is_not_finite(text: bytes) -> None:
    assert not math.isfinite(values(b"step 3 loss " + text)["loss"])


def test_the_result_of_a_trainer_is_no_configuration() -> None:
    line = b"TrainOutput(global_step=60, training_loss=1.25, metrics={'epoch': 3.0})"
    assert values(line)["loss"] == 1.25


def test_bad_numbers_and_names() -> None:
    assert read(b"step 1 loss " + b"9" * 401) == []
    assert read(b"step 1 loss 1e400") == []
    assert read(b"x" * 10_000 + b"=1 step 1") == []
    assert values(b"step 1 loss 0.5 " + b"x" * 10_000)["loss"] == 0.5


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step 1 loss=0.5 metric_number=3", {"loss": 0.5, "metric_number": 3.0}),
        ("step 1 loss=0.5 a_number=3", {"loss": 0.5, "a_number": 3.0}),
        ("step 1 loss=0.5 number=3", {"loss": 0.5}),
        ("loss=0.5 step_number=3 number_of_nodes=2", {"loss": 0.5}),
        ("{'loss': 0.5, 'a b': 3}", {"loss": 0.5, "a_b": 3.0}),
        ('{"loss": 0.5, "my own loss": 3}', {"loss": 0.5, "my_own_loss": 3.0}),
        ("{'train loss': 0.5, 'mean loss': 3}", {"loss": 0.5}),
        ("{'loss': 0.5, 'a+b': 3, 'a b c d e': 4}", {"loss": 0.5}),
        ("{'loss': 0.5, 'naïve': 3, 'größe': 2}", {"loss": 0.5}),
        ("step 3 loss 0.5 naïve=3", {"loss": 0.5}),
        ("当前loss: 0.5", {"loss": 0.5}),
    ],
)
def test_a_name_is_whole_or_not_read(line: str, expected: dict[str, float]) -> None:
    assert values(line.encode()) == expected


@pytest.mark.parametrize(
    ("line", "step", "expected"),
    [
        (b"Training loss (for one batch) at step 7: 131.37", 7, {"loss": 131.37}),
        (b"Loss at step 7: 1.5", 7, {"loss": 1.5}),
        (b"val_loss at epoch 2: 1.5", 2, {"eval_loss": 1.5, "epoch": 2.0}),
        (b"loss at step 7: nan", 7, {"loss": math.nan}),
        (b"loss is 0.31", None, {"loss": 0.31}),
        (b"The training loss is 0.31.", None, {"loss": 0.31}),
        (b"Loss is nan, stopping training", None, {"loss": math.nan}),
        (b"step 7 loss 0.33.", 7, {"loss": 0.33}),
        (b"loss: 0.33. Saved.", None, {"loss": 0.33}),
    ],
)
def test_a_loss_in_words(line: bytes, step: int | None, expected: dict[str, float]) -> None:
    (found,) = read(line)
    assert found.step == step
    assert found.values == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    "line", [b"the packet loss is 0.5", b"loss is 3", b"loss 1.2.3", b"loss 0.33..0.5", b"mode is 0.5"]
)
def test_words_that_are_no_loss(line: bytes) -> None:
    assert read(line) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"loss=3", {"loss": 3.0}),
        (b"Loss: 3", {"loss": 3.0}),
        (b"val_loss=3", {"eval_loss": 3.0}),
        (b"{'loss': 4}", {"loss": 4.0}),
        (b"{'learning_rate': 1, 'loss': 4}", {"learning_rate": 1.0, "loss": 4.0}),
    ],
)
def test_a_loss_that_is_a_whole_number(line: bytes, expected: dict[str, float]) -> None:
    assert values(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"loss: 3 packets",
        b"packet loss: 3",
        b"  loss: 1",
        b"loss=0%",
        b"rtt=5 loss=3",
        b"{'packet loss': 3}",
        b"{'loss_weight': 3}",
        b"{'loss': 3} and more",
    ],
)
def test_a_whole_number_that_may_be_no_loss(line: bytes) -> None:
    assert read(line) == []


def test_steps_that_begin_anew_with_each_epoch_go_on() -> None:
    text = b"".join(b"Epoch: %d, Step: %d, Loss: 2.5\n" % (epoch, step) for epoch in (1, 2) for step in (10, 20))
    assert [one.step for one in read(text)] == [10, 20, 30, 40]


def test_a_bar_is_told_once_a_step_with_its_last_values() -> None:
    bar = b"\r 10%%|#| %d/100 [00:01<00:09,  9.9it/s, loss=%s]"
    text = b"".join(bar % one for one in ((1, b"9.0"), (1, b"2.5"), (2, b"2.5"), (2, b"2.0")))
    found = read(text)
    assert [(one.step, one.total, one.values["loss"]) for one in found] == [(1, 100, 2.5), (2, 100, 2.0)]


BAR = b"\r 10%%|#| %d/100 [00:01<00:09,  9.9it/s]"
WITH_TQDM = b"\r" + b" " * 40 + b"\r{'loss': '%s', 'epoch': '0.5'}\n"
"""What `tqdm.write` does: it removes the bar, writes a line, and draws the bar again, which may be newer by then."""


def test_a_dictionary_that_tqdm_writes_has_the_step_of_the_bar_that_follows() -> None:
    text = BAR % 3 + WITH_TQDM % b"2.5" + BAR % 10 + BAR % 12 + WITH_TQDM % b"2.0" + BAR % 20
    assert [(one.step, one.total, one.values["loss"]) for one in read(text) if one.values] == [
        (10, 100, 2.5),
        (20, 100, 2.0),
    ]


def test_a_dictionary_that_is_printed_behind_a_bar_has_the_step_of_that_bar() -> None:
    text = BAR % 3 + b"{'loss': 2.5}\n" + BAR % 10 + b"{'loss': 2.0}\n" + BAR % 11
    assert [(one.step, one.values["loss"]) for one in read(text) if one.values] == [(3, 2.5), (10, 2.0)]


def test_the_user_s_rules() -> None:
    (found,) = read(b"PSNR 31.5 dB", {"psnr": r"PSNR ([0-9.]+)", "bad": "("})
    assert found.values == {"psnr": 31.5}


# --------------------------------------------------------------------------------------------------
# Recorded output of trainers, and of programs that train nothing (trainers/README.md).


EXPECTED: dict[str, Any] = json.loads((RECORDS / "expected.json").read_text())
"""Of each record: how its series are read, which are not read, and which names are read that the truth does not list."""


def is_close(one: float, other: float) -> bool:
    """Whether a printed value is that of the truth."""
    return abs(one - other) <= 1e-6 * max(1.0, abs(other))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_recorded_trainers(name: str) -> None:
    truth = json.loads((RECORDS / f"{name}.json").read_text())["series"]
    expected = EXPECTED[name]
    found = read((RECORDS / f"{name}.log").read_bytes())
    assert {*expected["series"], *expected["not_read"]} == set(truth)
    for series, how in expected["series"].items():
        printed = [
            (one.step, one.values[series])
            for one in found
            if series in one.values and math.isfinite(one.values[series])
        ]
        points = [(step, value) for step, value in truth[series] if value is not None]
        if how == "contained":  # beside other numbers of that name, such as a bar's
            rest = iter(printed)
            assert all(any(is_close(one, value) for _, one in rest) for _, value in points), series
            continue
        assert len(printed) == len(points), series
        assert all(is_close(one[1], other[1]) for one, other in zip(printed, points, strict=True)), series
        if how == "exact":
            assert [step for step, _ in printed] == [step for step, _ in points], series
    names = {one for each in found for one in each.values}
    assert names - set(truth) == set(expected["others"])


@pytest.mark.parametrize("path", sorted((RECORDS / "ordinary").glob("*.log")), ids=lambda path: path.stem)
def test_ordinary_logs_give_no_series(path: Path) -> None:
    assert read(path.read_bytes()) == []


def test_losses_of_many_trainers_are_read() -> None:
    families = {re.split(r"[_\d]", name)[0] for name, one in EXPECTED.items() if "loss" in one["series"]}
    assert len(families) >= 15
    assert len(list((RECORDS / "ordinary").glob("*.log"))) >= 50


# --------------------------------------------------------------------------------------------------
# Following a log.


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "node-0.rank-0.log"
    path.touch()
    return path


def poll(reader: RankReader, *, is_last: bool = False) -> list[Mapping[str, Any]]:
    """The records of one turn."""
    return reader.poll(time.monotonic(), is_last)[0]


def test_a_line_that_comes_in_pieces_is_one(log: Path) -> None:
    reader = RankReader(str(log), 3, {})
    found = []
    for part in (b"step 1 lo", b"ss 2.", b"5\nstep 2 loss 2.25"):
        with log.open("ab") as file:
            file.write(part)
        found += poll(reader)
    found += poll(reader, is_last=True)
    assert [(one["rank"], one["step"], one["values"]) for one in found] == [
        (3, 1, {"loss": 2.5}),
        (3, 2, {"loss": 2.25}),
    ]


def test_the_bar_behind_a_dictionary_needs_no_end_and_is_told_once(log: Path) -> None:
    reader = RankReader(str(log), 0, {})
    bar = b"\r 10%%|#| %d/100 [00:01<00:09,  9.9it/s, acc=0.5]"
    log.write_bytes(bar % 3 + WITH_TQDM % b"2.5" + bar % 10)
    found = reader.poll(100.0, False)[0]
    assert [(one["step"], one["values"].get("loss")) for one in found] == [(3, None), (10, 2.5)]
    found = reader.poll(101.0, False)[0]
    assert [(one["step"], one["values"]) for one in found] == [(10, {"accuracy": 0.5, "step_time": 0.101})]
    assert reader.poll(102.0, False)[0] == []
    with log.open("ab") as file:
        file.write(b"{'loss': 2.0}\n" + bar % 11)
    found = reader.poll(103.0, False)[0]
    assert [(one["step"], one["values"]) for one in found] == [(10, {"loss": 2.0})]
    found = reader.poll(104.0, True)[0]
    assert [one["step"] for one in found] == [11]


def test_of_a_flood_the_newest_and_what_is_not_finite(log: Path) -> None:
    reader = RankReader(str(log), 0, {})
    lines = [b"step %d loss 0.%d\n" % (step, step) for step in range(2000)]
    lines[1500] = b"step 1500 loss nan\n"
    log.write_bytes(b"".join(lines))
    found = poll(reader)
    steps = [one["step"] for one in found]
    assert steps[-1] == 1999
    assert len(steps) <= reader.MAX_LINES + 1
    assert {"loss": "nan"} in [one["values"] for one in found]


def test_a_log_that_is_replaced_is_read_from_its_beginning(log: Path) -> None:
    reader = RankReader(str(log), 0, {})
    log.write_bytes(b"step 1 loss 2.5\nstep 2 loss 2.25\n")
    assert len(poll(reader)) == 2
    log.write_bytes(b"step 3 loss 2.0\n")
    assert [one["step"] for one in poll(reader)] == [3]


def test_many_records_get_farther_apart_and_the_newest_stays() -> None:
    spacing = Spacing()
    now = 0.0
    kept = 0
    for step in range(40_000):
        now += 0.01
        kept += len(spacing.take({"time": now, "step": step, "values": {"loss": 1.0}}, now))
    assert 20_000 < kept < 21_000
    assert [one["step"] for one in spacing.flush()] == [39_999]


# --------------------------------------------------------------------------------------------------
# Alarms, with the time as they are told it.


def test_a_loss_that_is_not_finite_is_told_once_until_it_is_over() -> None:
    alarms = LossAlarms(2)
    told = []
    course = [1.0] * 3 + [math.nan] * 5 + [1.0] * 12 + [math.inf]
    for step, loss in enumerate(course):
        told += alarms.add({"loss": loss, "grad_norm": math.nan}, step, float(step))
    assert [(one.code, one.is_over, one.rank) for one in told] == [
        ("nan", False, 2),
        ("nan", True, 2),
        ("nan", False, 2),
    ]
    assert told[0].message == "loss is nan at step 3"


@pytest.mark.parametrize("value", ["nan", "NaN", "NAN", "inf", "-inf", "Infinity"])
@pytest.mark.parametrize("form", ["step 29/30 loss {} lr 1e-3", "loss: {} acc 0.5 at", "loss={} lr=0.1"])
def test_a_value_that_is_not_finite_is_no_part_of_the_next_name(value: str, form: str) -> None:
    (found,) = read(form.format(value).encode())
    assert not math.isfinite(found.values["loss"])
    assert len(found.values) == 2


def test_the_best_loss_so_far_begins_as_infinite() -> None:
    alarms = LossAlarms(0)
    names = ("best_loss", "best_val_loss", "min_loss", "val/best loss", "lowest-loss")
    assert alarms.add(dict.fromkeys(names, math.inf), 0, 1.0) == []
    assert [one.code for one in alarms.add({"aux_loss": math.nan}, 0, 1.0)] == ["nan"]
    assert [one.code for one in alarms.add({"minority_loss": math.inf}, 0, 1.0)] == ["nan"]


def test_an_alarm_is_posted_once_in_a_while_by_one_of_all_nodes(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = {"format": 1, "run_id": "r", "nodes": 2, "alarms": {"webhook": "https://example.org"}}
    (bundle / "launch.json").write_text(json.dumps(plan))
    told: list[tuple[str, int, int | None]] = []
    one, other = (MetricsProcess(AttemptPaths(str(bundle), str(bundle), 1, node)) for node in (0, 1))

    def post(_: Webhook, document: Mapping[str, Any]) -> None:
        told.append((document["code"], document["node_rank"], document["rank"]))

    monkeypatch.setattr(Webhook, "post", post)

    def tell(process: MetricsProcess, code: str, rank: int) -> None:
        process._write([], [Alarm(code, "", None, 1.0, True), Alarm(code, "text", rank, 1.0)])

    tell(one, "nan", 0)
    tell(one, "nan", 1)
    tell(other, "nan", 2)
    tell(other, "hang", 3)
    assert told == [("nan", 0, 0), ("hang", 1, 3)]
    monkeypatch.setattr(MetricsProcess, "REPEAT_S", 0.0)
    tell(other, "nan", 2)
    assert told[2:] == [("nan", 1, 2)]


def test_a_loss_far_above_its_course() -> None:
    alarms = LossAlarms(0)
    told = []
    for step in range(60):
        told += alarms.add({"loss": 2.0 + 0.01 * (step % 5)}, step, step)
    assert told == []
    assert alarms.add({"loss": 9.0}, 60, 60) == []  # one bad batch
    assert alarms.add({"loss": 2.0}, 61, 61) == []
    for step in range(62, 66):
        told += alarms.add({"loss": 9.0}, step, step)
    assert [(one.code, one.since) for one in told] == [("spike", 64)]


def courses(count: int, seconds: float, steps: int = 20) -> list[Course]:
    """Ranks that reported so many steps, one each so many seconds."""
    ranks = [Course(rank) for rank in range(count)]
    for course in ranks:
        for step in range(steps):
            course.report(step, step * seconds)
            course.printed_at = step * seconds
    return ranks


def test_a_hang_is_found_within_three_steps_and_ten_seconds() -> None:
    ranks = courses(2, 2.0)
    ranks[0].report(20, 40.0)
    hang = HangAlarm()
    found = next(
        (now, alarm) for now in range(40, 80) if (alarm := hang.check(ranks, float(now), 1000.0 + now)) is not None
    )
    assert found[0] - 40 <= 3 * 2 + 10
    assert (found[1].code, found[1].rank) == ("hang", 1)
    assert "behind step 20: rank 1" in found[1].message
    assert hang.check(ranks, 90.0, 1090.0) is None  # told once
    ranks[1].report(20, 91.0)
    ranks[1].printed_at = ranks[0].printed_at = 91.0
    over = hang.check(ranks, 91.5, 1091.5)
    assert over is not None
    assert over.is_over


def test_a_pause_that_was_there_before_is_no_hang() -> None:
    ranks = courses(1, 1.0)
    ranks[0].report(20, 60.0)  # a checkpoint of 41 s
    ranks[0].printed_at = 60.0
    assert HangAlarm().check(ranks, 105.0, 0.0) is None


def test_output_without_numbers_is_no_hang_and_ranks_without_numbers_are_never_one() -> None:
    ranks = courses(1, 1.0)
    ranks[0].printed_at = 200.0
    assert HangAlarm().check(ranks, 201.0, 0.0) is None
    assert HangAlarm().check([Course(0)], 1e6, 0.0) is None


# --------------------------------------------------------------------------------------------------
# The process itself.

READ = """
import sys
folder = sys.argv[1]
sys.path.insert(0, folder)
import launcher
secrets = dict(word.split("=", 1) for word in sys.argv[2:])
sys.exit(launcher.run_metrics(launcher.AttemptPaths(folder, folder, 1, 0), False, secrets))
"""
"""Starts it as the launcher does, in a process of its own."""

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (tmp_path / "launcher.py").write_bytes(launcher_source())
    (tmp_path / "logs" / "attempt-1").mkdir(parents=True)
    (tmp_path / "status" / "attempt-1").mkdir(parents=True)
    (tmp_path / "logs" / "attempt-1" / "node-0.rank-0.log").touch()
    return tmp_path


@pytest.fixture
def start(bundle: Path) -> Any:
    processes = []

    def begin(*secrets: str, **plan: Any) -> subprocess.Popen[bytes]:
        document = {"format": 1, "run_id": "r", "launcher": "python", **plan}
        (bundle / "launch.json").write_text(json.dumps(document))
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", READ, str(bundle), *secrets], stdout=subprocess.PIPE
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.wait()


def records(bundle: Path) -> list[dict[str, Any]]:
    """What the process has written."""
    path = bundle / "logs" / "attempt-1" / "node-0.metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write(bundle: Path, text: bytes) -> None:
    with (bundle / "logs" / "attempt-1" / "node-0.rank-0.log").open("ab") as file:
        file.write(text)


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_it_follows_and_reads_the_rest_when_it_is_to_end(bundle: Path, start: Start) -> None:
    process = start()
    write(bundle, b"step 1 loss 2.5\n")
    until(lambda: len(records(bundle)) == 2)
    write(bundle, b"step 2 loss 2.25")
    process.terminate()
    assert process.wait(10) == 0
    found = records(bundle)
    assert found[0] == {"format": 1}
    assert [(one["step"], one["values"]) for one in found[1:]] == [(1, {"loss": 2.5}), (2, {"loss": 2.25})]


def test_an_alarm_ends_the_attempt(bundle: Path, start: Start) -> None:
    process = start(alarms={"stop_on": ["nan"]})
    write(bundle, b"step 1 loss nan\nstep 2 loss nan\n")
    assert process.wait(20) == 10
    stop = json.loads((bundle / "status" / "attempt-1" / ".node-0.alarm.json").read_text())
    assert stop == {"message": "nan: rank 0: loss is nan at step 1"}
    (alarm,) = [one for one in records(bundle) if "alarm" in one]
    assert (alarm["alarm"], alarm["rank"]) == ("nan", 0)
    assert process.stdout is not None
    assert b"hyperpod: alarm nan: rank 0: loss is nan at step 1" in process.stdout.read()


def test_an_alarm_ends_nothing_unless_the_spec_says_so(bundle: Path, start: Start) -> None:
    process = start()
    write(bundle, b"step 1 loss nan\n")
    until(lambda: any("alarm" in one for one in records(bundle)))
    write(bundle, b"step 2 loss 1.5\n")
    until(lambda: any(one.get("step") == 2 for one in records(bundle)))
    assert process.poll() is None


def test_a_webhook_that_hangs_holds_nothing_up(bundle: Path, start: Start) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        process = start(alarms={"webhook": f"http://127.0.0.1:{port}/alarm"})
        write(bundle, b"step 1 loss nan\n")
        connection, _ = server.accept()
        with connection:
            write(bundle, b"step 2 loss 1.5\n")
            until(lambda: any(one.get("step") == 2 for one in records(bundle)))
            connection.settimeout(20)
            assert b"POST /alarm" in connection.recv(4096)
        process.terminate()
        assert process.wait(10) == 0


def test_a_webhook_is_sent_though_the_attempt_ends_at_once(bundle: Path, start: Start) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        alarms = {"webhook": f"http://127.0.0.1:{port}/alarm", "stop_on": ["nan"]}
        process = start(alarms=alarms)
        write(bundle, b"step 1 loss nan\n")
        connection, _ = server.accept()
        with connection:
            connection.settimeout(20)
            text = b""
            while b'"since"' not in text:
                text += connection.recv(4096)
            connection.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        assert process.wait(20) == 10
        assert json.loads(text.partition(b"\r\n\r\n")[2])["code"] == "nan"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_webhook_follows_no_redirect(bundle: Path, start: Start, status: int) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as inside:
        inside.settimeout(0.1)
        port, other = (one.getsockname()[1] for one in (server, inside))
        alarms = {"webhook": f"http://127.0.0.1:{port}/alarm", "stop_on": ["nan"]}
        process = start(alarms=alarms)
        write(bundle, b"step 1 loss nan\n")
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            place = f"Location: http://127.0.0.1:{other}/\r\nContent-Length: 0\r\nConnection: close"
            connection.sendall(f"HTTP/1.1 {status} Go\r\n{place}\r\n\r\n".encode())
        assert process.wait(20) == 10
        assert process.stdout is not None
        assert b"hyperpod: the webhook failed: HTTP Error" in process.stdout.read()
        with pytest.raises(TimeoutError):
            inside.accept()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "", "${GONE}"])
def test_a_webhook_is_http_whatever_the_plan_says(bundle: Path, start: Start, url: str) -> None:
    process = start(alarms={"webhook": url, "stop_on": ["nan"]})
    write(bundle, b"step 1 loss nan\n")
    assert process.wait(20) == 10
    assert process.stdout is not None
    assert b"hyperpod: the webhook failed: " in process.stdout.read()


def test_the_url_of_a_webhook_may_be_a_secret(bundle: Path, start: Start) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/services/very-secret"
        process = start(f"HOOK={url}\n", alarms={"webhook": "${HOOK}", "stop_on": ["nan"]})
        write(bundle, b"step 1 loss nan\n")
        connection, _ = server.accept()
        with connection:
            assert b"POST /services/very-secret " in connection.recv(4096)
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        assert process.wait(20) == 10
        assert process.stdout is not None
        log = process.stdout.read()
    assert b"the webhook failed: HTTPError 404" in log
    assert b"secret" not in log
    assert not [path for path in bundle.rglob("*") if path.is_file() and b"very-" in path.read_bytes()]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/a b\x01very-secret", "gopher://very-secret"])
def test_a_secret_url_that_is_none_stands_in_no_log(bundle: Path, start: Start, url: str) -> None:
    process = start(f"HOOK={url}", alarms={"webhook": "${HOOK}", "stop_on": ["nan"]})
    write(bundle, b"step 1 loss nan\n")
    assert process.wait(20) == 10
    assert process.stdout is not None
    log = process.stdout.read()
    assert b"the webhook failed: " in log
    assert b"very-secret" not in log


def test_a_pattern_that_takes_too_long_is_dropped_and_the_rest_is_read(bundle: Path, start: Start) -> None:
    process = start(metric_patterns={"slow": "(?:a+a+)+(b)", "psnr": "PSNR ([0-9.]+)"})
    write(bundle, b"a" * 60 + b"\nPSNR 31.5\nstep 1 loss 2.5\n")
    until(lambda: {"psnr": 31.5} in [one.get("values") for one in records(bundle)])
    process.terminate()
    assert process.wait(10) == 0
    assert process.stdout is not None
    assert b"the pattern of the metric 'slow' takes too long" in process.stdout.read()


def test_a_hang_ends_an_attempt_only_after_ten_minutes() -> None:
    ranks = courses(2, 1.0)
    hang = HangAlarm()
    assert hang.check(ranks, 40.0, 0.0) is not None
    assert not hang.is_certain(ranks, 300.0)
    assert hang.is_certain(ranks, 19.0 + 601.0)


def test_what_comes_after_the_last_step_is_no_hang() -> None:
    ranks = courses(1, 1.0)
    ranks[0].is_done = True
    assert HangAlarm().check(ranks, 500.0, 0.0) is None


def test_a_time_in_which_nobody_looked_is_no_silence() -> None:
    ranks = courses(1, 1.0)
    ranks[0].shift(300.0)
    assert HangAlarm().check(ranks, 320.0, 0.0) is None


def test_a_loss_that_stays_high_has_a_new_course() -> None:
    alarms = LossAlarms(0)
    told = []
    for step in range(200):
        told += alarms.add({"loss": 2.0 if step < 60 else 9.0 + 0.01 * (step % 5)}, step, step)
    assert [(one.code, one.is_over) for one in told] == [("spike", False), ("spike", True)]


def test_one_loss_that_recovers_does_not_end_the_alarm_of_another() -> None:
    alarms = LossAlarms(0)
    told = alarms.add({"loss": math.nan, "eval_loss": math.nan}, 0, 0)
    for step in range(1, 15):
        told += alarms.add({"loss": 1.0}, step, step)
    assert [one.is_over for one in told] == [False, False]


def test_two_trainers_that_take_turns_do_not_add_up_steps() -> None:
    lines = [b"Epoch: %d, Step: %d, Loss: 2.5\n" % (epoch, step) for step in (10, 20, 30) for epoch in (1, 3)]
    assert max(one.step or 0 for one in read(b"".join(lines))) <= 60


@pytest.mark.parametrize(
    ("line", "loss"),
    [
        (b"{'loss': np.float64(2.31), 'step': 3}", 2.31),
        (b"step 3 loss=Array(2.5, dtype=float32)", 2.5),
        (b"====> Epoch: 1 Average loss: 108.9", 108.9),
        (b"Epoch 1; loss 0.5; acc 0.9", 0.5),
        (b"metrics={'loss': 0.5}", 0.5),
        (b"step 3 loss: tensor(2.5, device='cuda:0')", 2.5),
    ],
)
def test_more_ways_to_print(line: bytes, loss: float) -> None:
    assert may_have_numbers(line)
    assert values(line)["loss"] == loss
    assert "cuda" not in values(line)


def test_a_decimal_comma_is_no_number() -> None:
    assert read(b"step 10 loss: 0,512") == []


@pytest.mark.parametrize("line", [b"top1=0.76", b"elbo: -12.31"])
def test_no_word_is_missing_in_the_first_look(line: bytes) -> None:
    assert may_have_numbers(line)
    assert read(line)
