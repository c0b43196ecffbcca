"""Submitting from Python: functions, files, commands, and what is wrong with them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hyperpod_jlab
from hyperpod_jlab import api
from hyperpod_jlab.core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError


def whoami(word: str, *, times: int = 1) -> dict[str, object]:
    """Runs on the cluster."""
    print(f"{word} from {os.environ['RANK']}")
    return {"word": word * times, "rank": int(os.environ["RANK"]), "size": int(os.environ["WORLD_SIZE"])}


class OddError(Exception):
    """An exception of the test's own."""


def test_a_function_gives_back_rank_zeros_value() -> None:
    run = hyperpod_jlab.submit(
        whoami, args=("a",), kwargs={"times": 3}, nodes=2, processes_per_node=2, launcher="python"
    )
    assert run.result(60) == {"word": "aaa", "rank": 0, "size": 4}
    assert run.state == "succeeded"
    assert [line.line for line in run.logs(rank=3)] == ["a from 3"]
    assert sorted(line.line for line in run.logs() if line.rank is not None) == [f"a from {rank}" for rank in range(4)]


def test_the_log_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run = hyperpod_jlab.submit(command="echo from $RANK")
    run.logs(follow=True).print()
    assert capsys.readouterr().out == "0|from 0\n"
    assert str(run.logs()) == "0|from 0"


@pytest.mark.torch
def test_closures_and_arrays_travel() -> None:
    import numpy as np

    weights = np.arange(6.0).reshape(2, 3)

    def double(factor: float) -> object:
        return weights * factor

    value = hyperpod_jlab.submit(double, args=(2.0,)).result(60)
    assert isinstance(value, np.ndarray)
    assert value.tolist() == (weights * 2).tolist()


def test_the_remote_exception_is_raised_here_with_its_traceback() -> None:
    def fails() -> None:
        raise OddError("no luck today")

    run = hyperpod_jlab.submit(fails)
    with pytest.raises(OddError, match="no luck today") as caught:
        run.result(60)
    assert 'raise OddError("no luck today")' in str(caught.value.__cause__)
    assert "rank 0 raised OddError: no luck today" in repr(run)


async def test_runs_can_be_awaited_and_followed_without_blocking() -> None:
    run = hyperpod_jlab.submit(command="echo one; sleep 0.5; echo two")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    lines = [line.line async for line in run.logs(follow=True) if line.rank is not None]
    assert (await run) is run
    ticking.cancel()
    assert lines == ["one", "two"]
    assert ticks > 20


def test_a_file_with_arguments(own_cluster: Path) -> None:
    (own_cluster / "train.py").write_text("import sys\nprint(sys.argv[1:])\n")
    run = hyperpod_jlab.submit("train.py", args=["--lr", 0.1, "$HOME `x`"]).wait(60)
    assert [line.line for line in run.logs(rank=0)] == ["['--lr', '0.1', '$HOME `x`']"]


def test_wait_gives_up_and_the_run_goes_on() -> None:
    run = hyperpod_jlab.submit(command="sleep 300", stop_grace=1)
    with pytest.raises(TimeoutError):
        run.wait(0.5)
    assert run.state in {"waiting", "running"}
    assert run.cancel().wait(30).state == "cancelled"
    with pytest.raises(ConflictError, match="it was cancelled"):
        run.result()


def test_a_value_of_a_run_that_failed_on_another_rank_is_none() -> None:
    def odd() -> str:
        import time

        if os.environ["RANK"] == "0":
            return "fine"
        time.sleep(2)
        raise ValueError("not here")

    run = hyperpod_jlab.submit(odd, processes_per_node=2, launcher="python")
    with pytest.raises(ConflictError, match=r"rank 0 of .* returned, but the run has no result"):
        run.result(60)
    assert run.state == "failed"


def test_a_command_has_no_result() -> None:
    with pytest.raises(ConflictError, match="only a function has a result"):
        hyperpod_jlab.submit(command="true").result(60)


def test_the_same_run_id_is_the_same_run() -> None:
    first = hyperpod_jlab.submit(command="echo x", run_id="mine")
    again = hyperpod_jlab.submit(command="echo x", run_id="mine")
    assert first == again
    with pytest.raises(ConflictError, match="in use by another spec"):
        hyperpod_jlab.submit(command="echo y", run_id="mine")
    assert first.wait(60).state == "succeeded"
    assert len(first.view.status.attempts) == 1


def test_listing_and_getting() -> None:
    first = hyperpod_jlab.submit(command="true").wait(60)
    second = hyperpod_jlab.submit(command="exit 3", after=first).wait(60)
    assert hyperpod_jlab.runs() == [second, first]
    assert hyperpod_jlab.runs(state="failed") == [second]
    assert hyperpod_jlab.get(first.run_id) == first
    with pytest.raises(NotFoundError):
        hyperpod_jlab.get("not-there")


def test_secrets_reach_the_rank_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-value")
    run = hyperpod_jlab.submit(command="[ ${#MY_TOKEN} = 12 ]", secret=["MY_TOKEN"]).wait(60)
    assert run.state == "succeeded"
    for path in run.bundle.rglob("*"):
        assert not path.is_file() or b"s3cr3t-value" not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({}, "no_source", "one thing to run"),
        ({"what": 5}, "no_source", "int"),
        ({"what": len, "args": 5}, "invalid_args", "args"),
        ({"what": len, "kwargs": [1]}, "invalid_args", "kwargs"),
        ({"command": "x", "nods": 2}, "unknown_option", "nods"),
        ({"command": "x", "nodes": 0}, "invalid_spec", "resources.nodes"),
        ({"command": "x", "time_limit": "abc"}, "invalid_spec", "time_limit"),
        ({"command": "x", "env": ["A=b"]}, "invalid_input", "dict"),
        ({"command": "x", "name": "../x"}, "invalid_spec", "name"),
        ({"command": "x", "run_id": "a/b"}, "invalid_run_id", "run id"),
    ],
)
def test_bad_input_is_named(options: dict[str, object], code: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        hyperpod_jlab.submit(**options)  # type: ignore[arg-type]
    assert caught.value.code == code
    assert hyperpod_jlab.runs() == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [("metric_patterns", "metric"), ("variables", "env"), ("webhook", "alarm_webhook"), ("nods", "nodes")],
)
def test_the_option_that_was_meant_is_named(name: str, meant: str) -> None:
    with pytest.raises(InvalidInputError, match="unknown option") as caught:
        api._options({name: {}})
    assert caught.value.hint == f"did you mean '{meant}'?"


def test_one_value_of_a_list_needs_no_list() -> None:
    data = api._options({"stop_on": "nan", "include": "*.txt", "metric": {"a": "a ([0-9])"}})
    assert data == {
        "alarms": {"stop_on": ["nan"]},
        "files": {"include": ["*.txt"]},
        "metric_patterns": {"a": "a ([0-9])"},
    }


def test_an_unknown_cluster_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="lokal") as caught:
        hyperpod_jlab.submit(command="x", cluster="lokal")
    assert caught.value.code == "unknown_cluster"
    assert hyperpod_jlab.runs() == []


def test_a_run_to_wait_for_must_exist() -> None:
    with pytest.raises(RefusedError, match="run nope not found"):
        hyperpod_jlab.submit(command="x", after="nope")
    assert hyperpod_jlab.runs() == []


def test_what_cannot_be_pickled_is_named() -> None:
    import threading

    lock = threading.Lock()

    def uses_lock() -> None:
        lock.acquire()

    with pytest.raises((InvalidInputError, RefusedError), match="lock"):
        hyperpod_jlab.submit(uses_lock)
    assert hyperpod_jlab.runs() == []


def test_one_function_sent_again_is_the_same_run(tmp_path: Path) -> None:
    """Whatever lies in the cache of source lines when it is sent first."""
    script = tmp_path / "twice.py"
    script.write_text(
        "import hyperpod_jlab, inspect\n"
        "def told():\n    return inspect.getsource(told)\n"
        "runs = [hyperpod_jlab.submit(told, project_files=False, run_id='again') for _ in range(2)]\n"
        "print(runs[0].run_id == runs[1].run_id, runs[0].result(60).splitlines()[0])\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=90, check=False)
    assert (done.stdout, done.stderr) == ("True def told():\n", "")
