"""The page for admins: what would change, apply with progress, the other mode and back, take back; and nothing of it for others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hyperpod_lab import hyperpod_lab
from lab_page import PANEL, execute, open_lab, panel_menu, row, use_theme, violations
from lab_server import LabServer
from playwright.sync_api import Locator, Page, expect

from hyperpod_jlab.admin.fsx.aws import claim_tag
from testbed.aws.endpoint import Endpoint
from testbed.aws.example import FILE_SYSTEM
from testbed.aws.state import Profile, Space, lustre_at
from testbed.aws.studio import ROOT_MOUNT, whole_file_system
from testbed.aws.timeline import Timeline

ADMIN = ".jp-HyperPod-Admin"
DOMAIN = "d-example"
PEOPLE = ("bob", "carol", "dave", "erin", "frank")
LIST, UPDATE = "sagemaker:ListUserProfiles", "sagemaker:UpdateUserProfile"
SHOW = "Preview changes"
EACH = f"mount one folder per user profile in {DOMAIN}"
TOPICS = ["Files", "Access", "Restarts", "Future user profiles"]
#: A machine with much to do.
TIMEOUT_MS = 60_000


@pytest.fixture
def account(tmp_path: Path, disk: Path) -> Iterator[tuple[LabServer, Endpoint]]:
    """A Lab of an admin, in an account with a domain of some people."""
    mounts = tmp_path / "mounts"
    mounts.write_text(ROOT_MOUNT + whole_file_system(disk))
    with hyperpod_lab(tmp_path / "home", mounts=mounts) as (server, aws):
        aws.account.timeline = Timeline(runs=True)
        aws.account.update_time = timedelta(seconds=0.2)
        for name in PEOPLE:
            aws.account.profiles[DOMAIN, name] = Profile()
        aws.account.spaces[DOMAIN, "carols"] = Space("carol", apps=["JupyterLab"])
        yield server, aws


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Where the whole file system is mounted on the server's machine."""
    made = tmp_path / "fsx"
    made.mkdir()
    return made


def opened(page: Page, server: LabServer) -> Locator:
    """The page."""
    open_lab(page, server)
    panel_menu(page, "HyperPod Admin")
    shown = page.locator(ADMIN)
    expect(shown.get_by_role("button", name=SHOW)).to_be_visible(timeout=TIMEOUT_MS)
    return shown


def show_plan(shown: Locator, mode: str, disk: Path) -> None:
    """Ask what would change."""
    shown.get_by_role("radio", name=mode).check()
    more = shown.locator(".jp-HyperPod-Admin-options")
    if more.get_attribute("open") is None:
        more.locator("summary").click()
    shown.get_by_label("Create and check folders").select_option("here")
    shown.get_by_label("Mount path of the whole file system").fill(str(disk))
    shown.get_by_role("button", name=SHOW).click()
    expect(status(shown)).to_contain_text(re.compile("To do: |Everything is up to date"))
    unfold(shown)


def unfold(shown: Locator) -> None:
    """Open what is folded of a plan."""
    for details in shown.locator(".jp-HyperPod-Admin-plan > details").all():
        if details.get_attribute("open") is None:
            details.locator("> summary").click()


def status(shown: Locator) -> Locator:
    return shown.locator(".jp-HyperPod-Admin-state")


def heading(shown: Locator) -> Locator:
    return shown.locator(".jp-HyperPod-Admin-plan > h2")


def confirm(page: Page, shown: Locator, button: str) -> None:
    """Apply what is shown, and wait for the end."""
    shown.get_by_role("button", name=f"{button}…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(status(shown)).to_contain_text("Done: ", timeout=TIMEOUT_MS)


def sound(page: Page, console: list[str]) -> None:
    """Nobody is kept out, in light and dark, and nothing of ours is wrong in the console."""
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        use_theme(page, theme)
        page.wait_for_timeout(300)
        assert violations(page, ADMIN) == []
    assert [line for line in console if "hyperpod/api" in line or "exception" in line] == []


def test_the_plan_and_the_question(
    account: tuple[LabServer, Endpoint], page: Page, console: list[str], disk: Path, tmp_path: Path
) -> None:
    server, aws = account
    profiles = aws.account.profiles
    shown = opened(page, server)
    show_plan(shown, "One folder per user profile", disk)
    bob = row(shown, "profile bob")
    expect(bob).to_contain_text("not set")
    expect(bob).to_contain_text("/bob")
    expect(row(shown, "space carols")).to_contain_text("JupyterLab")
    assert profiles[DOMAIN, "bob"].file_systems == []
    # What is only planned is not said to be so.
    expect(heading(shown)).to_have_text(f"Plan: {EACH}")
    expect(shown.get_by_text("This file system was not set up here.")).to_be_visible()
    expect(shown.locator("dt")).to_have_text(TOPICS)
    page.screenshot(path=tmp_path / "admin-plan.png", full_page=True)
    shown.get_by_label("State").select_option(label="waiting")
    expect(shown.locator("tbody tr")).to_have_count(1)
    shown.get_by_label("State").select_option(label="all")
    sound(page, console)
    page.screenshot(path=tmp_path / "admin-plan-dark.png", full_page=True)
    shown.get_by_role("button", name="Apply changes…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 waiting, 0 blocked")
    expect(dialog).to_contain_text("space carols: JupyterLab")
    page.screenshot(path=tmp_path / "admin-confirm.png")
    page.keyboard.press("Escape")
    assert profiles[DOMAIN, "bob"].file_systems == []


def test_apply_toggle_and_take_back(
    account: tuple[LabServer, Endpoint], page: Page, console: list[str], disk: Path, tmp_path: Path
) -> None:
    server, aws = account
    profiles = aws.account.profiles
    shown = opened(page, server)
    show_plan(shown, "One folder per user profile", disk)
    bob = row(shown, "profile bob")
    confirm(page, shown, "Apply changes")
    expect(bob.locator("[data-state='done']")).to_be_visible()
    expect(heading(shown)).to_have_text(f"Partly done: {EACH}")  # a space waits
    assert profiles[DOMAIN, "bob"].file_systems == [lustre_at(FILE_SYSTEM, "/bob")]
    page.screenshot(path=tmp_path / "admin-applied.png", full_page=True)
    (disk / "bob" / "mine.txt").write_text("bob's")

    # Who comes again finds the mode chosen that is there.
    shown = opened(page, server)
    mine = shown.get_by_role("radio", name="One folder per user profile current")
    expect(mine).to_be_checked()

    # What is chosen after the plan was shown is not what would be applied.
    show_plan(shown, "One shared folder", disk)
    expect(shown.get_by_text("Each user profile has its own folder.")).to_be_visible()
    shown.get_by_role("radio", name="One folder per user profile").check()
    expect(shown.get_by_role("button", name="Apply changes…")).to_be_disabled()
    shown.get_by_role("radio", name="One shared folder").check()
    confirm(page, shown, "Apply changes")
    assert aws.account.domains[DOMAIN].file_systems == [lustre_at(FILE_SYSTEM, "/shared")]
    assert profiles[DOMAIN, "bob"].file_systems == []

    shown.get_by_role("button", name="Remove setup…").click()
    expect(shown.get_by_role("heading", name="remove the storage setup")).to_be_visible()
    expect(shown.get_by_role("button", name="Remove…")).to_be_enabled()
    confirm(page, shown, "Remove")
    assert aws.account.domains[DOMAIN].file_systems == []
    assert (disk / "bob" / "mine.txt").read_text() == "bob's"
    sound(page, console)


def test_it_goes_on_without_a_tab_says_what_failed_and_can_be_stopped(
    account: tuple[LabServer, Endpoint], page: Page, console: list[str], disk: Path, tmp_path: Path
) -> None:
    server, aws = account
    aws.account.update_time = timedelta(seconds=1)
    for number in range(40):
        aws.account.profiles[DOMAIN, f"user-{number:02}"] = Profile()
    shown = opened(page, server)
    show_plan(shown, "One folder per user profile", disk)
    shown.get_by_role("button", name="Apply changes…").click()
    page.get_by_role("dialog").get_by_role("button", name="Apply changes", exact=True).click()
    expect(status(shown)).to_contain_text("steps done…")
    # Somebody deletes a profile in the middle of it.
    del aws.account.profiles[DOMAIN, "frank"]
    # It goes on until the other tab is there, however busy this machine is.
    aws.account.update_time = timedelta(seconds=12)
    expect(status(shown)).to_contain_text(re.compile(r"^[5-8]\d of "), timeout=TIMEOUT_MS)
    page.screenshot(path=tmp_path / "admin-applying.png", full_page=True)
    page.close()
    other = page.context.new_page()
    other.set_default_timeout(TIMEOUT_MS)
    again = opened(other, server)
    expect(again.get_by_role("progressbar")).to_be_visible()
    again.get_by_label("State").select_option(label="failed")
    expect(row(again, "profile frank")).to_contain_text("not found", timeout=TIMEOUT_MS)
    again.get_by_role("button", name="Stop").click()
    expect(status(again)).to_contain_text("Stopped. Done: ", timeout=TIMEOUT_MS)
    expect(row(again, "profile frank")).to_be_visible()
    again.get_by_label("State").select_option(label="all")
    other.screenshot(path=tmp_path / "admin-stopped.png", full_page=True)
    aws.account.update_time = timedelta(seconds=0.1)
    show_plan(again, "One folder per user profile", disk)
    confirm(other, again, "Apply changes")
    assert aws.account.profiles[DOMAIN, "user-39"].file_systems == [lustre_at(FILE_SYSTEM, "/user-39")]
    assert [line for line in console if "exception" in line] == []


def test_what_changed_since_is_shown_before_it_is_done(
    account: tuple[LabServer, Endpoint], page: Page, disk: Path
) -> None:
    server, aws = account
    shown = opened(page, server)
    show_plan(shown, "One folder per user profile", disk)
    aws.account.profiles[DOMAIN, "grace"] = Profile()
    shown.get_by_role("button", name="Apply changes…").click()
    page.get_by_role("dialog").get_by_role("button", name="Apply changes", exact=True).click()
    expect(status(shown)).to_contain_text("Nothing was applied because the domain changed since the preview")
    expect(row(shown, "profile grace")).to_be_visible()
    assert aws.account.profiles[DOMAIN, "bob"].file_systems == []
    confirm(page, shown, "Apply changes")
    assert aws.account.profiles[DOMAIN, "grace"].file_systems == [lustre_at(FILE_SYSTEM, "/grace")]


def test_who_makes_folders_and_what_was_broken_off(
    account: tuple[LabServer, Endpoint], page: Page, console: list[str], disk: Path, tmp_path: Path
) -> None:
    server, aws = account
    claim = {claim_tag(FILE_SYSTEM): "shared /shared"}
    aws.account.domains[DOMAIN].tags.update(claim)
    open_lab(page, server)
    execute(page, "hyperpod:open-admin")
    shown = page.locator(ADMIN)
    shown.get_by_role("radio", name="One folder per user profile").check(timeout=TIMEOUT_MS)
    shown.get_by_role("button", name="Preview changes").click()
    note = shown.get_by_text("User profiles wait for their folders")
    expect(note).to_be_visible(timeout=TIMEOUT_MS)
    unfold(shown)
    broken_off = row(shown, f"apply to domain {DOMAIN}")
    expect(broken_off).to_contain_text("started, not ended: shared /shared")
    expect(shown.locator("dt", has_text="Access").first).to_be_visible()
    page.screenshot(path=tmp_path / "admin-folders.png", full_page=True)
    shown.locator(".jp-HyperPod-Admin-options > summary").click()
    who = shown.get_by_label("Create and check folders with")
    who.select_option("slurm")
    expect(shown.get_by_role("note").get_by_text("has no cluster of this kind")).to_be_visible()
    who.select_option("kubernetes")
    expect(shown.get_by_label("PVC for the whole file system")).to_be_visible()
    who.select_option("here")
    shown.locator(".jp-HyperPod-Admin-options input[required]").fill(str(disk))
    shown.get_by_role("button", name="Preview changes").click()
    expect(note).to_have_count(0, timeout=TIMEOUT_MS)
    sound(page, console)
    page.screenshot(path=tmp_path / "admin-folders-dark.png", full_page=True)


def test_others_do_not_see_it(account: tuple[LabServer, Endpoint], page: Page, tmp_path: Path) -> None:
    server, aws = account
    aws.faults.deny(UPDATE)
    open_lab(page, server)
    with page.expect_response(lambda answer: "admin/rights" in answer.url):
        execute(page, "hyperpod:show-panel")
    page.wait_for_timeout(500)
    page.locator(PANEL).get_by_role("button", name="More", exact=True).click()
    menu = page.locator(".lm-Menu")
    expect(menu.get_by_text("HyperPod Doctor")).to_be_visible()
    expect(menu.get_by_text("HyperPod Admin")).to_have_count(0)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Shift+C")
    palette = page.locator(".lm-CommandPalette")
    palette.get_by_role("textbox").or_(palette.locator("input")).first.fill("HyperPod")
    expect(palette.get_by_text("HyperPod Doctor")).to_be_visible()
    expect(palette.get_by_text("HyperPod Admin")).to_have_count(0)
    page.screenshot(path=tmp_path / "admin-others.png")
    page.keyboard.press("Escape")
    # Whoever opens it by hand is told why it is empty.
    execute(page, "hyperpod:open-admin")
    shown = page.locator(ADMIN)
    expect(shown).to_contain_text(UPDATE)
    expect(shown.get_by_role("button", name=SHOW)).to_have_count(0)
    assert [call.action for call in aws.calls].count(UPDATE) == 1


def test_a_narrow_pane_holds_all_but_the_table(
    account: tuple[LabServer, Endpoint], page: Page, disk: Path, tmp_path: Path
) -> None:
    server, aws = account
    aws.account.domains[DOMAIN].name = "a-domain-with-a-name-as-long-as-sagemaker-takes-them-63-letters"
    page.set_viewport_size({"width": 700, "height": 900})
    shown = opened(page, server)
    expect(shown.get_by_label("Studio domain")).to_contain_text("63-letters")
    show_plan(shown, "One shared folder", disk)
    expect(row(shown, "profile bob")).to_be_visible()
    page.screenshot(path=tmp_path / "admin-narrow.png", full_page=True)
    assert shown.evaluate("pane => pane.scrollWidth - pane.clientWidth") == 0


@pytest.mark.full
def test_five_hundred_profiles_stay_quick(account: tuple[LabServer, Endpoint], page: Page, disk: Path) -> None:
    server, aws = account
    for number in range(500):
        aws.account.profiles[DOMAIN, f"user-{number:03}"] = Profile()
    shown = opened(page, server)
    show_plan(shown, "One folder per user profile", disk)
    expect(shown.locator("tbody tr")).to_have_count(50)
    shown.get_by_label("Filter Steps").fill("profile user-499")
    expect(shown.locator("tbody tr")).to_have_count(1)
    expect(row(shown, "profile user-499")).to_be_visible()
