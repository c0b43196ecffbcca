"""jupyter-scheduler's own pages, with our clusters."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_page import KERNEL_IDLE, job_form, open_lab
from lab_server import LabServer, lab_server
from notebooks import code_cell, write_notebook
from playwright.sync_api import Locator, Page, expect

RELOAD_S = 90.0
"""Seconds until a job has a status: for "Completed" a server starts and nbconvert makes a page."""


@pytest.fixture
def jobs_lab(tmp_path: Path) -> Iterator[LabServer]:
    """A JupyterLab with jupyter-scheduler, as the wheels configure it."""
    with lab_server(tmp_path / "home", notebook_jobs=True) as server:
        yield server


@pytest.mark.timeout(300)
def test_a_job_runs_on_the_cluster_and_outlives_the_server(page: Page, jobs_lab: LabServer) -> None:
    gate = jobs_lab.home / "gate"
    waiting = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists():\n    time.sleep(0.1)\n"
    cells = [code_cell("lr = 0.1"), code_cell(f"{waiting}print('the rate is', lr)")]
    cells[0]["metadata"] = {"tags": ["parameters"]}
    write_notebook(jobs_lab.work, "train.ipynb", cells)
    open_lab(page, jobs_lab)

    jobs = job_form(page, "train.ipynb", "HyperPod: local", lr="0.5")
    jobs.get_by_role("button", name="Create", exact=True).click()
    reload_until(jobs, "In progress")
    while not (runs := json.loads(jobs_lab.hpj("runs", "--json", "--state", "running"))["runs"]):
        page.wait_for_timeout(200)

    page.goto("about:blank")  # a page that loses its server asks what to do
    jobs_lab.kill()
    gate.touch()
    jobs_lab.start()
    open_lab(page, jobs_lab)
    page.locator(".jp-LauncherCard", has_text="Jobs").click()
    reload_until(jobs, "Completed")

    jobs.get_by_title('Open detail view for "train"').click()
    expect(jobs).to_contain_text(runs[0]["run_id"])
    jobs.get_by_role("button", name="Download Job Files").click()
    jobs.get_by_role("link", name="Notebook").click()
    expect(page.locator(".jp-OutputArea-output", has_text="the rate is 0.5")).to_be_visible()
    # A server that is stopped while a kernel starts waits for it.
    page.wait_for_function(KERNEL_IDLE)


def reload_until(jobs: Locator, status: str) -> None:
    """Reload the list of jobs, which does not renew itself, until its only job has a status."""
    deadline = time.monotonic() + RELOAD_S
    while not jobs.get_by_role("cell", name=status).count():
        assert time.monotonic() < deadline, f"never {status!r} in {RELOAD_S:.0f} s"
        jobs.get_by_role("button", name="Reload").click()
        jobs.page.wait_for_timeout(300)
