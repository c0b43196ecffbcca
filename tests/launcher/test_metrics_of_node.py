"""The process that reads numbers, as a part of a node: it holds nothing up, and its alarms may end the attempt."""

import json

TRAIN = """
import os, time
for step in range(1, 31):
    print(f"step {step}/30 loss {3 / step if step < 20 else float('nan')}", flush=True)
    time.sleep(0.02)
"""


def records_of(bundle):
    path = bundle.folder / "logs" / "attempt-1" / "node-0.metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_last_line_of_a_rank_is_read_before_the_node_ends(bundle):
    bundle.script(TRAIN, processes_per_node=2)
    assert bundle.run().returncode == 0
    last = {one["rank"]: one for one in records_of(bundle) if "values" in one}
    assert {rank: (one["step"], one["total"]) for rank, one in last.items()} == {
        0: (30, 30),
        1: (30, 30),
    }


def test_the_numbers_of_a_rank_that_ends_at_once_are_read(bundle):
    bundle.shell("echo step 1 loss 2.5")
    assert bundle.run().returncode == 0
    assert [one["values"] for one in records_of(bundle) if "values" in one] == [{"loss": 2.5}]


def test_a_run_without_numbers_writes_none(bundle):
    bundle.shell("echo hello; echo port=8080")
    assert bundle.run().returncode == 0
    assert not list((bundle.folder / "logs" / "attempt-1").glob("*.metrics.jsonl"))


def test_an_alarm_ends_the_attempt_if_the_plan_says_so(bundle):
    bundle.script(TRAIN + "time.sleep(600)", alarms={"stop_on": ["nan"]}, stop_grace=1)
    assert bundle.run().returncode == 1
    error = bundle.node()["error"]
    assert error["code"] == "alarm"
    assert error["message"] == "ended by the alarm nan: loss is nan at step 20"


def test_a_pattern_that_never_comes_to_an_end_holds_nothing_up(bundle):
    text = 'print("a" * 60, flush=True)\nfor n in range(1000): print("line", n, flush=True)'
    bundle.script(text, metric_patterns={"x": "(?:a+a+)+(b)"})
    assert bundle.run().returncode == 0
    assert bundle.rank_log().endswith(b"line 999\n")
    assert bundle.node()["ended_at"] is not None


def test_a_full_disk_for_the_numbers_is_no_reason_to_end(bundle):
    logs = bundle.folder / "logs" / "attempt-1"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "node-0.metrics.jsonl").symlink_to("/dev/full")
    bundle.script(TRAIN)
    assert bundle.run().returncode == 0
    assert b"step 30/30" in bundle.rank_log()
