"""The process that reads numbers, as a part of a node: it holds nothing up, and its alarms may end the attempt."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from .conftest import until

TRAIN = """
import os, time
for step in range(1, 31):
    print(f"step {step}/30 loss {3 / step if step < 20 else float('nan')}", flush=True)
    time.sleep(0.02)
"""


def records_of(bundle):
    path = bundle.folder / "logs" / "attempt-1" / "node-0.metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def reader_of(launcher):
    """The id of the process that reads the numbers."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    [pid] = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text() == "metrics\n"]
    return int(pid)


def test_the_last_line_of_a_rank_is_read_before_the_node_ends(bundle):
    bundle.script(TRAIN, processes_per_node=2)
    assert bundle.run().returncode == 0
    last = {one["rank"]: one for one in records_of(bundle) if "values" in one}
    assert {rank: (one["step"], one["total"]) for rank, one in last.items()} == {0: (30, 30), 1: (30, 30)}


def test_a_run_without_numbers_writes_none(bundle):
    bundle.shell("echo hello; echo port=8080")
    assert bundle.run().returncode == 0
    assert not list((bundle.folder / "logs" / "attempt-1").glob("*.metrics.jsonl"))


def test_an_alarm_ends_the_attempt_if_the_plan_says_so(bundle):
    bundle.script(TRAIN + "time.sleep(600)", alarms={"stop_on": ["nan"]}, stop_grace=1)
    assert bundle.run().returncode == 1
    error = bundle.node()["error"]
    assert error["code"] == "alarm"
    assert error["message"] == "ended by the alarm nan: rank 0: loss is nan at step 20"


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


HANG = """
import faulthandler, os, pathlib, time
rank = int(os.environ["RANK"])
if rank == 0:
    faulthandler.register(int(os.environ["HYPERPOD_STACK_SIGNAL"]), all_threads=True)

def waits_for_the_others():
    while not pathlib.Path("go").exists():
        time.sleep(0.1)

for step in range(1, 21):
    # The last bar has no end: the stacks give it one, and that is no progress.
    print(f"\\r{step}/100 [00:01<00:09, 9.9it/s, loss=0.5]", end="", flush=True)
    time.sleep(0.05)
waits_for_the_others()
print(flush=True)
while not pathlib.Path("end").exists():
    step += 1
    print(f"step {step}/10000 loss 0.25", flush=True)
    time.sleep(0.1)
"""


def alarms_of(bundle):
    return [one for one in records_of(bundle) if "alarm" in one]


def test_a_rank_that_hangs_writes_its_stacks_and_one_that_does_not_catch_the_signal_goes_on(bundle, tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "py-spy").write_text('#!/bin/sh\necho "py-spy was called with $*"\n')
    (programs / "py-spy").chmod(0o755)
    bundle.script(HANG, processes_per_node=2)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    launcher = bundle.start(env={**os.environ, "PATH": path})
    bundle.until_said(b"waits_for_the_others", 0)
    assert b"Current thread" in bundle.rank_log(0) or b"Thread 0x" in bundle.rank_log(0)
    pids = bundle.rank_pids()
    until(lambda: f"py-spy was called with dump --pid {pids[1]}" in bundle.node_log())
    assert f"dump --pid {pids[0]}" not in bundle.node_log()
    assert b"waits_for_the_others" not in bundle.rank_log(1)
    time.sleep(2)  # in which the stacks might be taken for progress
    (hang,) = alarms_of(bundle)
    assert hang["alarm"] == "hang"
    assert hang["message"].startswith("no output and no progress for ")
    (bundle.folder / "work" / "go").touch()
    until(lambda: [one.get("over") for one in alarms_of(bundle)] == [None, True])
    (bundle.folder / "work" / "end").touch()
    assert launcher.wait(30) == 0


@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_rank_that_ends_at_once_is_read_too(bundle, exit_code):
    bundle.shell(f"echo step 1 loss 2.5; exit {exit_code}")
    assert bundle.run().returncode == exit_code
    assert [one["values"] for one in records_of(bundle) if "values" in one] == [{"loss": 2.5}]


def test_it_is_a_copy_of_the_launcher_that_holds_nothing_of_it(bundle):
    """A pipe of the launcher that stayed open in it would keep its readers waiting."""
    bundle.shell("echo step 1 loss 2.5; sleep 600", stop_grace=1)
    launcher = bundle.start()
    logs = bundle.folder / "logs" / "attempt-1"
    until(lambda: list(logs.glob("*.metrics.jsonl")), "a number")
    pid = reader_of(launcher)
    held = [str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()]
    own = ("/dev/null", str(logs / "node-0.log"), str(logs / "node-0.rank-0.log"))
    assert [one for one in held if not one.startswith((*own, str(logs / "node-0.metrics")))] == [
        one for one in held if one.startswith("pipe:")
    ]
    pipes = {one for one in held if one.startswith("pipe:")}
    theirs = {str(one.readlink()) for one in Path(f"/proc/{launcher.pid}/fd").iterdir()}
    assert pipes
    assert not pipes & theirs
    launcher.terminate()
    launcher.communicate(timeout=30)
    assert launcher.returncode != 0
    until(lambda: not Path(f"/proc/{pid}").exists(), "its end")


def test_a_rank_that_has_ended_does_not_hang(bundle):
    bundle.script(
        """
import os, time
if os.environ["RANK"] == "0":
    for step in range(1, 21):
        print(f"step {step} loss {3 / step}", flush=True)
        time.sleep(0.02)
else:
    for number in range(45):
        print("working", number, flush=True)
        time.sleep(0.2)
""",
        processes_per_node=2,
    )
    assert bundle.run().returncode == 0
    assert alarms_of(bundle) == []


def test_a_reader_that_was_killed_is_started_again(bundle):
    bundle.script(
        "import time\nfor step in range(1, 101): print('step', step, 'loss', 0.5, flush=True); time.sleep(0.05)"
    )
    launcher = bundle.start()
    metrics_file = bundle.folder / "logs" / "attempt-1" / "node-0.metrics.jsonl"
    until(metrics_file.exists, "a number")
    os.kill(reader_of(launcher), signal.SIGKILL)
    assert launcher.wait(30) == 0
    assert "the process that reads numbers was ended by SIGKILL" in bundle.node_log()
    steps = [one["step"] for one in records_of(bundle) if "step" in one]
    assert steps == sorted(set(steps))
    assert steps[-1] == 100
