"""Calls of Slurm while nothing happens: at most two a minute, whatever is open, and none while the page is hidden."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_page import PANEL, execute, hide_page, open_lab, open_run, open_tab
from lab_server import LabServer, lab_server
from playwright.sync_api import Page, expect
from slurm_lab import CLUSTER, config_for, sbatch, wait_for_job

from tests.slurm.cluster import SlurmTestbed, running, standard_options

#: The server calls a quiet Slurm less and less often, down to twice a minute after ten minutes.
QUIET_S = 620
#: Without requests, the server stops its calls after 90 seconds.
HIDDEN_S = 100
MEASURE_S = 300

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmTestbed]:
    """A cluster of the test's own."""
    with running(*standard_options(), version="22.05") as cluster:
        yield cluster


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """The file in which each call of a command of Slurm is a line."""
    return tmp_path / "calls"


@pytest.fixture
def server(slurm: SlurmTestbed, calls: Path, tmp_path: Path) -> Iterator[LabServer]:
    """A Lab whose calls of Slurm's commands are written down."""
    folder = tmp_path / "bin"
    folder.mkdir()
    real = slurm.folder / "bin"
    for command in real.iterdir():
        wrapper = folder / command.name
        # Arguments have line breaks of their own.
        note = f"echo $(date +%T) {command.name} >>{calls}"
        wrapper.write_text(f'#!/bin/sh\n{note}\nexec {command} "$@"\n')
        wrapper.chmod(0o755)
    config = config_for(slurm).replace(str(real), str(folder))
    with lab_server(tmp_path / "home", config=config) as server:
        yield server


def count(calls: Path, seconds: float) -> list[str]:
    """The calls of some seconds."""
    calls.write_text("")
    time.sleep(seconds)
    return calls.read_text().splitlines()


def test_idle_and_hidden(page: Page, slurm: SlurmTestbed, server: LabServer, calls: Path) -> None:
    job = sbatch(slurm, "-t60", user="bob")
    wait_for_job(slurm, job, "RUNNING")
    ended = server.hpj("submit", "--cluster", CLUSTER, "-c", "true", "--name", "ended", "--wait")
    open_lab(page, server)
    execute(page, "hyperpod:show-panel", keep=False)
    expect(page.locator(PANEL).get_by_text("ended")).to_be_visible()
    open_run(page, ended)
    for tab in ("Overview", "Jobs", "Nodes"):
        open_tab(page, CLUSTER, tab)
    execute(page, "hyperpod:open-runs", keep=False)
    open_tab(page, CLUSTER, "Overview")
    time.sleep(QUIET_S)
    found = count(calls, MEASURE_S)
    assert 1 <= len(found) <= 2 * MEASURE_S / 60, found
    hide_page(page)
    time.sleep(HIDDEN_S)
    assert count(calls, MEASURE_S) == []
