"""Connect in the panel: the dialog shows what is written into the configuration, writes it, and says why it cannot."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hyperpod_lab import hyperpod_lab
from lab_page import CLUSTER_PAGE, CLUSTERS, execute, open_lab, use_theme, violations
from lab_server import LabServer
from playwright.sync_api import Locator, Page, expect

DIALOG = ".jp-Dialog"
CLUSTER = "ml-cluster"
#: Root may write everywhere, but not without these.
AS_OTHERS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
READ_ONLY = """
from jupyter_server.auth import Authorizer

class ReadOnly(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        return resource != "hyperpod" or action == "read"

c.ServerApp.authorizer_class = ReadOnly
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LabServer]:
    """A Lab of the test's own, whose configuration is changed."""
    with hyperpod_lab(tmp_path / "home", started_by=AS_OTHERS) as (server, _):
        yield server


def press_connect(page: Page, server: LabServer) -> Locator:
    """Press Connect of a cluster in the panel; the dialog."""
    open_lab(page, server)
    execute(page, "hyperpod:show-panel")
    cluster = page.locator(CLUSTERS).get_by_role("listitem").filter(has_text=CLUSTER)
    cluster.get_by_role("button", name="Connect", exact=True).click()
    dialog = page.locator(DIALOG)
    expect(dialog.locator(".jp-Dialog-header")).to_have_text(f"Connect to {CLUSTER}")
    return dialog


def test_what_is_shown_is_written_and_the_panel_has_the_cluster(
    page: Page, server: LabServer, console: list[str]
) -> None:
    config = server.home / "config.toml"
    before = config.read_text()
    dialog = press_connect(page, server)
    shown = dialog.locator("pre")
    expect(shown).to_contain_text(f"[clusters.{CLUSTER}]")
    expect(dialog).to_contain_text(f"Adds to {config}:")
    dialog.get_by_label("Login node").fill("ubuntu@127.0.0.1:1")
    dialog.get_by_label("Name").fill("local")
    expect(shown).to_contain_text('login_nodes = ["ubuntu@127.0.0.1:1"]')
    expect(shown).to_contain_text("[clusters.local]")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        assert violations(page, DIALOG) == []

    # The name is taken: nothing is written, and what was typed stays.
    dialog.get_by_role("button", name="Connect").click()
    expect(dialog.get_by_role("alert")).to_contain_text("already has a cluster 'local'")
    assert config.read_text() == before
    expect(dialog.get_by_label("Login node")).to_have_value("ubuntu@127.0.0.1:1")
    dialog.get_by_label("Name").fill("research")
    expect(dialog.get_by_role("alert")).to_have_count(0)
    expect(shown).to_contain_text("[clusters.research]")

    # Nothing answers there: nothing is written, unless the user wants it.
    dialog.get_by_role("button", name="Connect").click()
    expect(dialog.get_by_role("alert")).to_contain_text("127.0.0.1")
    anyway = dialog.get_by_role("checkbox", name="Connect although the cluster does not respond")
    assert violations(page, DIALOG) == []
    assert config.read_text() == before
    anyway.check()

    # The file cannot be written.
    server.home.chmod(0o500)
    dialog.get_by_role("button", name="Connect").click()
    expect(dialog.get_by_role("alert").first).to_contain_text(
        f"Permission denied: the configuration file {config} cannot be written"
    )
    server.home.chmod(0o700)
    assert config.read_text() == before

    entry = shown.inner_text()
    dialog.get_by_role("button", name="Connect").click()
    expect(dialog).to_have_count(0)
    assert config.read_text().startswith(before)
    written = tomllib.loads(config.read_text())["clusters"]["research"]
    assert written == tomllib.loads(entry)["clusters"]["research"]
    assert written["hyperpod"] == CLUSTER
    connected = page.locator(CLUSTERS).get_by_role("listitem").filter(has_text="research")
    connected = connected.filter(has_not_text="eks")
    expect(connected).to_have_count(1)
    expect(page.locator(CLUSTERS).get_by_role("button", name="Connect", exact=True)).to_have_count(0)
    expect(page.locator(CLUSTER_PAGE).get_by_role("tab", name="Jobs")).to_be_visible()
    # And it goes again.
    connected.click(button="right")
    page.locator(".lm-Menu").get_by_text("Disconnect…").click()
    page.locator(DIALOG).get_by_role("button", name="Disconnect").click()
    expect(connected).to_have_count(0)
    assert tomllib.loads(config.read_text()) == tomllib.loads(before)
    expect(page.locator(CLUSTER_PAGE)).to_have_count(0)
    assert [line for line in console if "exception" in line] == []


def test_a_user_who_may_only_read_is_told_so(page: Page, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".jupyter").mkdir(parents=True)
    (home / ".jupyter" / "jupyter_server_config.py").write_text(READ_ONLY)
    with hyperpod_lab(home) as (server, _):
        before = (home / "config.toml").read_text()
        dialog = press_connect(page, server)
        expect(dialog.get_by_role("alert")).to_contain_text("Permission denied")
        expect(dialog.get_by_role("button", name="Connect")).to_be_disabled()
        assert violations(page, DIALOG) == []
        assert (home / "config.toml").read_text() == before
