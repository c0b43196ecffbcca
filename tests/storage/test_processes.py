"""Whether the process that wrote a record lives: never a wrong "alive", never a "dead" of what is not ours to say."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from hyperpod_jlab.core.records import ProcessRecord
from hyperpod_jlab.storage.processes import liveness, start_time, this_process


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "100"])
    yield process
    process.kill()
    process.wait()


def record_of(process: subprocess.Popen[bytes], **changes) -> ProcessRecord:
    started = {"pid": process.pid, "start_time": start_time(process.pid)}
    return this_process().model_copy(update={**started, **changes})


def test_this_process_lives():
    assert liveness(this_process()) == "alive"
    assert this_process().pid == os.getpid()


def test_a_child_lives_until_it_is_killed(sleeper):
    record = record_of(sleeper)
    assert liveness(record) == "alive"
    sleeper.kill()
    deadline = time.monotonic() + 10
    while liveness(record) == "alive":  # a zombie is dead, before anybody waits for it
        assert time.monotonic() < deadline
    assert liveness(record) == "dead"
    sleeper.wait()
    assert liveness(record) == "dead"


def test_a_later_process_with_the_same_number_is_another(sleeper):
    record = record_of(sleeper)
    assert liveness(record.model_copy(update={"start_time": record.start_time - 1})) == "dead"


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**31])
def test_numbers_that_no_process_has(pid):
    assert liveness(this_process().model_copy(update={"pid": pid})) == "dead"


@pytest.mark.parametrize("field", ["machine", "pid_namespace"])
def test_elsewhere_is_not_ours_to_say(sleeper, field):
    assert liveness(record_of(sleeper, **{field: "other"})) == "elsewhere"
    long_ago = {"time": 1.0, "heartbeat": 1.0}
    assert liveness(record_of(sleeper, **{field: "other"}, **long_ago)) == "elsewhere"


def test_before_a_restart_of_this_machine_all_are_dead():
    before = this_process().model_copy(update={"boot": "other", "time": time.time() - 60})
    assert liveness(before) == "dead"
    assert liveness(before.model_copy(update={"heartbeat": time.time() - 40})) == "dead"


def test_a_machine_of_the_same_name_that_was_heard_just_now_is_another_one():
    record = this_process().model_copy(update={"boot": "other"})
    assert liveness(record) == "elsewhere"
    beating = {"time": time.time() - 9999, "heartbeat": time.time() - 5}
    assert liveness(record.model_copy(update=beating)) == "elsewhere"


@pytest.mark.parametrize("name", ["a) R 1 2 (b", "((((", "x y\nz", "0 0 0 0"])
def test_a_program_of_any_name(tmp_path: Path, name: str):
    program = tmp_path / name
    shutil.copy("/bin/sleep", program)
    process = subprocess.Popen([program, "100"])
    try:
        deadline = time.monotonic() + 10
        while (Path("/proc") / str(process.pid) / "comm").read_text().strip() != name[:15].strip():
            assert time.monotonic() < deadline
        assert liveness(record_of(process)) == "alive"
        assert isinstance(start_time(process.pid), int)
    finally:
        process.kill()
        process.wait()
    assert start_time(process.pid) is None
