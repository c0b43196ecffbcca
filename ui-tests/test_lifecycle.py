"""The line on the script that makes a space ready: written by the script's own code, shown while it works and where it failed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from lab_page import PANEL, execute, open_lab, use_theme, violations
from lab_server import LabServer
from playwright.sync_api import Page, expect

LINE = f"{PANEL} .jp-HyperPod-Lifecycle"
PARTS = Path(__file__).parents[1] / "lifecycle-configs" / "begin"
#: The parts of a script that write its status, with steps that wait until they are let on.
SCRIPT = """\
APP=jupyterlab
STEPS=(package client doctor)
source "{parts}/status.sh"
LOGS=$(state_folder) WORK="{work}" STARTED=$(now) WORST="done"
mkdir -p "$WORK"
let_on() {{ while [[ ! -e "$WORK/$1" ]]; do sleep 0.1; done; }}
do_package() {{ let_on package; tell "hyperpod_jlab is installed"; }}
do_client() {{ let_on client; tell "no partition is mounted, which slurm.tar.gz is to be on"; return 1; }}
do_doctor() {{ return 2; }}
for name in "${{STEPS[@]}}"; do step "$name" >>"$LOGS/lifecycle.log" 2>&1; done
write_status "$WORST"
"""


def test_shown_while_it_works_and_what_failed_with_its_log(
    page: Page, own_lab: LabServer, console: list[str], tmp_path: Path
) -> None:
    work = tmp_path / "work"
    bash = shutil.which("bash")
    assert bash is not None
    script = tmp_path / "script.sh"
    script.write_text(SCRIPT.format(parts=PARTS, work=work))
    with subprocess.Popen([bash, str(script)], env=own_lab.environment) as process:
        try:
            open_lab(page, own_lab)
            execute(page, "hyperpod:show-panel")
            line = page.locator(LINE)
            expect(line.get_by_role("status")).to_contain_text("HyperPod extension")
            expect(line.get_by_role("progressbar")).to_have_attribute("value", "0")
            (work / "package").touch()
            expect(line.get_by_role("status")).to_contain_text("Slurm commands")
            expect(line.get_by_role("progressbar")).to_have_attribute("value", "1")
            line.get_by_text("Steps", exact=True).focus()
            page.keyboard.press("Enter")
            first = line.get_by_role("listitem").first
            expect(first).to_contain_text("hyperpod_jlab is installed")
            _sound(page, tmp_path, "running")
            (work / "client").touch()
            expect(line.get_by_role("alert")).to_contain_text("is incomplete")
            expect(line).to_contain_text("no partition is mounted, which slurm.tar.gz is to be on")
            _sound(page, tmp_path, "failed")
        finally:
            process.terminate()
    line.get_by_role("button", name="Open log").focus()
    page.keyboard.press("Enter")
    log = page.locator("#hyperpod-lifecycle-log")
    expect(log.locator("pre")).to_contain_text("== ")
    expect(log.locator("pre")).to_contain_text("no partition is mounted")
    page.screenshot(path=tmp_path / "log.png")
    assert violations(page, "#hyperpod-lifecycle-log") == []
    line.get_by_role("button", name="Dismiss").click()
    expect(line).to_be_empty()
    page.reload()
    expect(page.locator(LINE).get_by_role("alert")).to_be_visible()
    assert [one for one in console if "hyperpod/api" in one or "exception" in one] == []


def _sound(page: Page, folder: Path, name: str) -> None:
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        use_theme(page, theme)
        page.wait_for_timeout(300)
        assert violations(page, PANEL) == []
        page.screenshot(path=folder / f"{name}-{theme[-5:].strip().lower()}.png")
