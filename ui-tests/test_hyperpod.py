"""What AWS knows of HyperPod clusters, in the panel and in pages of their own, on the testbed's AWS."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hyperpod_lab import hyperpod_lab
from lab_page import PANEL, execute, open_lab, use_theme, violations
from lab_server import LabServer
from playwright.sync_api import Page, expect

from testbed.aws.endpoint import Endpoint

SECTION = f"{PANEL} .jp-HyperPod-Aws"
PAGE = ".jp-HyperPod-ClusterPage.jp-HyperPod-Aws"


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LabServer, Endpoint]]:
    """One account for all tests here."""
    with hyperpod_lab(tmp_path_factory.mktemp("aws") / "home") as both:
        yield both


def test_from_the_panel_to_the_instances_of_a_cluster(
    aws: tuple[LabServer, Endpoint], page: Page, console: list[str]
) -> None:
    server, _ = aws
    open_lab(page, server)
    execute(page, "hyperpod:show-panel")
    section = page.locator(SECTION)
    expect(section.get_by_role("listitem")).to_have_count(4)
    page.wait_for_timeout(3000)
    page.screenshot(path="/tmp/w/shot-panel.png")
    section.get_by_role("button", name="ml-cluster").click()
    page.wait_for_timeout(3000)
    page.screenshot(path="/tmp/w/shot-overview.png")
    page.locator(PAGE).get_by_role("tab", name="Nodes").click()
    page.wait_for_timeout(3000)
    page.screenshot(path="/tmp/w/shot-nodes.png")
    use_theme(page, "JupyterLab Dark")
    page.screenshot(path="/tmp/w/shot-nodes-dark.png")
    print(violations(page, PAGE), violations(page, SECTION), console)
