"""The storage section of the panel, on a table of mounts that calls the partition a folder of Lustre."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_page import PANEL, execute, open_lab, use_theme, violations
from lab_server import LabServer, lab_server
from playwright.sync_api import Page, expect

SECTION = f"{PANEL} .jp-HyperPod-Section:has([aria-label='File systems'])"


@pytest.fixture
def lustre_lab(tmp_path: Path) -> Iterator[LabServer]:
    """A lab whose partition is the folder /alice of a Lustre file system, and a Slurm cluster that has it at /fsx/alice."""
    home, table = tmp_path / "home", tmp_path / "mountinfo"
    table.write_text(
        "22 1 259:1 / / rw - ext4 /dev/root rw\n"
        f"30 22 0:40 / {home}/fsx rw - lustre 10.0.1.2@tcp:/x5kjbbmv/alice rw,flock\n"
    )
    config = (
        f'[storage]\npath = "{home}/fsx"\n'
        '[clusters.train]\norchestrator = "slurm"\nstorage = "/fsx/alice"\n'
    )
    environment = {
        "HYPERPOD_MOUNT_TABLE": str(table),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
    }
    (home / "fsx").mkdir(parents=True, mode=0o700)
    with lab_server(home, config=config, environment=environment) as server:
        yield server


def test_the_partition_its_isolation_and_its_path_on_each_side(
    page: Page, lustre_lab: LabServer, console: list[str]
) -> None:
    open_lab(page, lustre_lab)
    execute(page, "hyperpod:show-panel")
    section = page.locator(SECTION)
    place = section.get_by_label("File systems").get_by_role("listitem").first
    for words in ("lustre /alice", "mount path only", "runs go here"):
        expect(place).to_contain_text(words)
    place.get_by_text("Who else can read it").focus()
    page.keyboard.press("Enter")
    expect(place.get_by_text("only /alice of the file system is mounted here")).to_be_visible()
    section.get_by_role("button", name="Copy the path on train").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Copied: /fsx/alice").first).to_be_visible()
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        use_theme(page, theme)
        assert violations(page, SECTION) == []
    assert [line for line in console if line.startswith("error: ")] == []
