"""The page on storage, on a table of mounts that calls the partition a folder of Lustre."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_page import execute, open_lab, panel_menu, use_theme, violations
from lab_server import PYTHON, LabServer, lab_server
from playwright.sync_api import Page, expect

STORAGE = ".jp-HyperPod-Section:has([aria-label='File systems'])"
STAND_IN = Path(__file__).parents[1] / "tests" / "storage" / "recorded_lfs.py"
"""For Lustre's program."""


@pytest.fixture
def lustre_lab(tmp_path: Path) -> Iterator[LabServer]:
    """A lab whose partition is the folder /alice of a Lustre file system, and a Slurm cluster that has it at /fsx/alice."""
    home, table = tmp_path / "home", tmp_path / "mountinfo"
    table.write_text(
        "22 1 259:1 / / rw - ext4 /dev/root rw\n"
        f"30 22 0:40 / {home}/fsx rw - lustre 10.0.1.2@tcp:/x5kjbbmv/alice rw,flock\n"
    )
    config = f'[storage]\npath = "{home}/fsx"\n[clusters.train]\norchestrator = "slurm"\nstorage = "/fsx/alice"\n'
    environment = {
        "HYPERPOD_MOUNT_TABLE": str(table),
        "LFS_STATES": str(home / "states.json"),
        "PATH": f"{home}/bin:{Path(PYTHON).parent}:/usr/bin:/bin",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
    }
    (home / "fsx").mkdir(parents=True, mode=0o700)
    (home / "bin").mkdir()
    with lab_server(home, config=config, environment=environment) as server:
        yield server


def test_the_partition_its_isolation_and_its_path_on_each_side(
    page: Page, lustre_lab: LabServer, console: list[str]
) -> None:
    open_lab(page, lustre_lab)
    panel_menu(page, "HyperPod Storage")
    section = page.locator(STORAGE)
    place = section.get_by_label("File systems").get_by_role("listitem").first
    for words in ("lustre /alice", "mount path only", "stores runs"):
        expect(place).to_contain_text(words)
    place.get_by_text("Read access").focus()
    page.keyboard.press("Enter")
    expect(place.get_by_text("only /alice of the file system is mounted here")).to_be_visible()
    section.get_by_role("button", name="Copy the path on train").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Copied: /fsx/alice").first).to_be_visible()
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        use_theme(page, theme)
        assert violations(page, STORAGE) == []
    assert [line for line in console if line.startswith("error: ")] == []


@pytest.fixture
def lustre_files(lustre_lab: LabServer) -> LabServer:
    """The same with files, of which the stand-in for Lustre's program says where their bytes are."""
    data = lustre_lab.home / "fsx" / "data"
    data.mkdir()
    table = {"calls": []}
    for name, flags in (("here.tar", 0x9), ("gone.tar", 0xD)):
        (data / name).write_text("x")
        path = lustre_lab.work / "hyperpod-partition" / "data" / name
        table[str(path)] = {"flags": flags, "archive": 1}
    (lustre_lab.home / "states.json").write_text(json.dumps(table))
    program = lustre_lab.home / "bin" / "lfs"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    program.chmod(0o755)
    return lustre_lab


def context_menu(page: Page, name: str, command: str) -> None:
    """Choose a command for a file of the file browser."""
    page.locator(".jp-DirListing-item", has_text=name).click(button="right")
    page.locator(".lm-Menu-item", has_text=command).click()


def test_the_partition_is_opened_in_the_file_browser(page: Page, lustre_files: LabServer, console: list[str]) -> None:
    open_lab(page, lustre_files)
    execute(page, "hyperpod:open-storage")
    button = page.get_by_role("button", name="Open the storage partition in the file browser")
    expect(page.locator(STORAGE).get_by_label("File systems")).to_be_visible()
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".jp-BreadCrumbs-item", has_text="hyperpod-partition")).to_be_visible()
    assert (lustre_files.work / "hyperpod-partition").readlink() == lustre_files.home / "fsx"
    page.locator(".jp-DirListing-item", has_text="data").dblclick()
    context_menu(page, "gone.tar", "Copy Path for a Cluster")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("combobox")).to_have_value("nodes of train: /fsx/alice/data/gone.tar")
    dialog.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied: /fsx/alice/data/gone.tar").first).to_be_visible()
    context_menu(page, "gone.tar", "File Location")
    expect(dialog).to_contain_text("in S3 only; restored when read")
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        use_theme(page, theme)
        assert violations(page, ".jp-Dialog") == []
    dialog.get_by_role("button", name="Restore from S3").click()
    expect(dialog).to_contain_text("requested")
    dialog.get_by_role("button", name="Close").click()
    context_menu(page, "gone.tar", "File Location")
    expect(dialog).to_contain_text("restoring from S3")
    expect(dialog.get_by_role("button", name="Restore from S3")).to_have_count(0)
    dialog.get_by_role("button", name="Close").click()
    assert [line for line in console if line.startswith("error: ")] == []
