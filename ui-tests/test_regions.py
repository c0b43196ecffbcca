"""HyperPod clusters of another region than the one that the server finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hyperpod_lab import REGION, hyperpod_lab
from lab_page import CLUSTER_PAGE, CLUSTERS, execute, open_lab, row, use_theme, violations
from lab_server import LabServer
from playwright.sync_api import Page, expect

from testbed.aws.endpoint import Endpoint

ELSEWHERE = "eu-central-1"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LabServer, Endpoint]]:
    """An account with a cluster of the same name in another region."""
    with hyperpod_lab(tmp_path_factory.mktemp("aws") / "home") as (server, aws):
        twin = aws.account.add_cluster("ml-cluster", ELSEWHERE, orchestrator={"Slurm": {}})
        twin.add_group("far-away", "ml.g5.xlarge", 2, slurm_node_type="Compute")
        yield server, aws


def test_another_region_is_chosen_and_remembered(
    account: tuple[LabServer, Endpoint], page: Page, console: list[str]
) -> None:
    server, aws = account
    open_lab(page, server)
    execute(page, "hyperpod:show-panel")
    section = page.locator(CLUSTERS)
    expect(section.get_by_role("listitem")).to_have_count(5)
    field = section.get_by_label("Region")
    expect(field.get_by_role("option", name=f"{REGION} (default)")).to_have_count(1)
    expect(field).to_have_value("")
    field.select_option(ELSEWHERE)
    expect(section.get_by_role("listitem")).to_have_count(2)
    expect(section.get_by_text("g5.xlarge")).to_be_visible()
    aws.calls.clear()
    section.get_by_text("ml-cluster", exact=True).click()
    shown = page.locator(CLUSTER_PAGE)
    expect(shown.get_by_role("heading", name="ml-cluster")).to_be_visible()
    expect(row(shown, "far-away")).to_contain_text("2 of 2")
    expect(page.get_by_role("tab", name="ml-cluster")).to_be_visible()
    shown.get_by_role("tab", name="Nodes").click()
    expect(shown.get_by_text("2 rows")).to_be_visible()
    assert {call.region for call in aws.calls} == {ELSEWHERE}
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        page.wait_for_timeout(300)
        assert violations(page, CLUSTERS) == []

    # The next page has it from the settings.
    open_lab(page, server)
    execute(page, "hyperpod:show-panel")
    expect(field).to_have_value(ELSEWHERE)
    expect(section.get_by_role("listitem")).to_have_count(2)
    field.select_option("")
    expect(section.get_by_role("listitem")).to_have_count(5)
    assert [line for line in console if "hyperpod/api" in line or "exception" in line] == []
