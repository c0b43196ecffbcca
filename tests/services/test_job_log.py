"""The log of jobs that were seen on a cluster without accounting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hyperpod_jlab.core.cluster import Job
from hyperpod_jlab.run.job_log import JobLog

DAY = 86_400.0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "hyperpod-jlab"


def job(name: str, state: str = "running", start: float | None = 10.0, **more: float) -> Job:
    return Job(name, name, "alice", state, started_at=start, ends_at=more.get("end"))


def seen(log: JobLog, begin: float = 0, end: float = 1e9) -> list[tuple[str, str, float | None]]:
    return [(one.name, one.state, one.ends_at) for one in log.between(begin, end)]


def test_a_job_that_is_gone_ended_when_it_was_seen_last() -> None:
    log = JobLog("c")
    log.note([job("a"), job("waits", "waiting", None)], now=100)
    assert seen(log) == [("a", "running", None)]
    log.note([job("a")], now=200)
    log.note([], now=300)
    assert seen(log) == [("a", "unknown", 200.0)]
    assert seen(log, 201) == []
    assert seen(log, 0, 10) == []
    assert (log.since(), JobLog("c").since(), JobLog("other").since()) == (10.0, 10.0, None)


def test_the_end_that_the_cluster_tells_stays_and_a_second_execution_is_another_row() -> None:
    log = JobLog("c")
    log.note([job("a", "failed", end=50.0)], now=100)
    log.note([job("a", "running", 60.0)], now=110)
    log.note([job("a", "succeeded", 60.0, end=120.0)], now=130)
    assert seen(log) == [("a", "succeeded", 120.0), ("a", "failed", 50.0)]


def test_an_ended_job_keeps_the_nodes_that_it_had() -> None:
    log = JobLog("c")
    log.note([replace(job("a"), nodes=("n1", "n2"))], now=100)
    JobLog("c").note([job("a", "succeeded", end=50.0)], now=110)
    assert [(one.state, one.nodes) for one in log.between(0, 1e9)] == [("succeeded", ("n1", "n2"))]


def test_old_rows_are_forgotten_and_a_damaged_file_is_begun_anew(cache: Path) -> None:
    log = JobLog("c")
    log.note([job("old", "succeeded", end=20.0)], now=100)
    log.note([job("new", "succeeded", end=401 * DAY)], now=401 * DAY)
    assert seen(log) == [("new", "succeeded", 401 * DAY)]
    (file,) = cache.glob("jobs-*.sqlite")
    file.write_bytes(b"not a database" * 1000)
    log.note([job("a", "succeeded", end=20.0)], now=100)
    assert seen(log) == [("a", "succeeded", 20.0)]


def test_without_a_folder_nothing_is_noted_and_nothing_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    monkeypatch.setattr("tempfile.tempdir", str(file))
    log = JobLog("c")
    log.note([job("a")], now=100)
    assert seen(log) == []
    assert log.since() is None
