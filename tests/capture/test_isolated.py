"""Capture in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from hyperpod_jlab.capture import capture, isolated
from hyperpod_jlab.capture.isolated import Isolated
from hyperpod_jlab.capture.notebook import read_file
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.spec import CommandSource, JobSpec


@pytest.fixture
async def calls():
    made = Isolated()
    yield made
    await made.close()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_it_returns_what_capture_returns_here(calls: Isolated, tmp_path: Path):
    (tmp_path / "a.py").write_text("1\n")
    spec = JobSpec(source=CommandSource(command="true"))
    assert await calls.call(capture, spec, base=tmp_path) == capture(spec, base=tmp_path)


async def test_an_error_arrives_unchanged(calls: Isolated, tmp_path: Path):
    with pytest.raises(InvalidInputError) as here:
        read_file(tmp_path / "gone.py", "script")
    with pytest.raises(InvalidInputError) as there:
        await calls.call(read_file, tmp_path / "gone.py", "script")
    assert there.value.to_dict() == here.value.to_dict()


async def test_a_bug_comes_with_its_traceback(calls: Isolated):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        await calls.call(divmod, 1, 0)


async def test_one_process_serves_a_row_of_calls_outside_of_the_current_folder(
    calls: Isolated, tmp_path: Path, monkeypatch
):
    (tmp_path / "pickle.py").write_text("raise SystemExit('the one of the project')")
    monkeypatch.chdir(tmp_path)
    first = await calls.call(os.getpid)
    assert first != os.getpid()
    assert await calls.call(os.getpid) == first
    assert await calls.call(os.getcwd) == "/"


async def test_calls_at_the_same_time_have_their_own_processes(calls: Isolated):
    begin = time.monotonic()
    results = await asyncio.gather(*(calls.call(os.getpid) for _ in range(6)))
    assert 1 < len(set(results)) <= 6, time.monotonic() - begin


async def test_it_ends_with_its_children_when_time_is_up(calls: Isolated, monkeypatch):
    pid = await calls.call(os.getpid)
    monkeypatch.setattr(isolated, "MAX_SECONDS", 1)
    with pytest.raises(InvalidInputError) as caught:
        await calls.call(os.system, "sleep 1000")
    assert caught.value.code == "capture_limit"
    assert not alive(pid)
    monkeypatch.setattr(isolated, "MAX_SECONDS", 60)
    assert await calls.call(os.getpid) != pid


async def test_it_ends_when_the_call_is_cancelled(calls: Isolated):
    pid = await calls.call(os.getpid)
    task = asyncio.create_task(calls.call(time.sleep, 1000))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)


async def test_a_crash_is_an_error_and_the_next_call_works(calls: Isolated):
    pid = await calls.call(os.getpid)
    with pytest.raises(InvalidInputError, match="status -11"):
        await calls.call(signal.raise_signal, signal.SIGSEGV)
    assert await calls.call(os.getpid) != pid


async def test_an_ended_process_is_replaced(calls: Isolated):
    pid = await calls.call(os.getpid)
    os.kill(pid, signal.SIGKILL)
    assert await calls.call(os.getpid) != pid


async def test_memory_is_limited(calls: Isolated):
    with pytest.raises(InvalidInputError, match="more than 4 GiB"):
        await calls.call(bytearray, 5 << 30)


async def test_a_huge_result_is_refused(calls: Isolated):
    with pytest.raises(InvalidInputError, match="64 MiB"):
        await calls.call(bytes, 65 << 20)


async def test_it_ends_when_closed():
    calls = Isolated()
    pid = await calls.call(os.getpid)
    await calls.close()
    assert not alive(pid)


async def test_it_needs_no_jupyter(calls: Isolated):
    modules = await calls.call(eval, "sorted(__import__('sys').modules)")
    assert "jupyter_server" not in modules
    assert "hyperpod_jlab.server" not in modules
