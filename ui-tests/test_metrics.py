"""Charts of the metrics of HyperPod clusters, on the testbed's AWS."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_page import execute, open_lab, open_tab, use_theme, violations
from lab_server import LabServer, lab_server
from playwright.sync_api import Page, expect

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from testbed.aws.endpoint import Endpoint
from testbed.aws.example import client_environment, example_account
from testbed.aws.example_telemetry import add_telemetry
from testbed.aws.server import AwsServer

REGION = "us-west-2"
PAGE = ".jp-HyperPod-ClusterPage"


@pytest.fixture
def account(tmp_path: Path) -> Iterator[tuple[LabServer, Endpoint]]:
    """A Lab with credentials of an account that has measurements."""
    endpoint = Endpoint(example_account(REGION))
    add_telemetry(endpoint.account, REGION)
    with AwsServer(endpoint) as aws:
        environment = client_environment(aws.url, REGION)
        with lab_server(tmp_path / "home", environment=environment) as server:
            yield server, endpoint
    assert endpoint.drift == []


def picture(page: Page, name: str) -> None:
    """Keep a picture for who wants to look at it (HYPERPOD_TEST_PICTURES names a folder)."""
    folder = os.environ.get("HYPERPOD_TEST_PICTURES")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png")


def test_charts_of_a_cluster_and_of_a_node(account: tuple[LabServer, Endpoint], page: Page, console: list[str]) -> None:
    lab, aws = account
    open_lab(page, lab)
    execute(page, "hyperpod:open-metrics", {"cluster": "research-eks"})
    shown = page.locator(PAGE)
    expect(shown.get_by_role("heading", name="Metrics of research-eks")).to_be_visible()
    charts = shown.get_by_role("img")
    expect(charts).to_have_count(13)
    expect(shown.get_by_role("img", name="GPU utilisation. Latest")).to_be_visible()
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        page.wait_for_timeout(300)
        assert violations(page, PAGE) == []
    before = len(aws.calls)
    shown.get_by_label("Time").select_option("Last 6 hours")
    expect(charts).to_have_count(13)
    page.wait_for_timeout(1000)
    assert [call.action for call in aws.calls[before:]] == [*("sagemaker:DescribeCluster", "cloudwatch:GetMetricData")]
    node = aws.account.clusters[REGION][1].nodes[0].instance_id
    execute(page, "hyperpod:open-metrics", {"cluster": "research-eks", "node": node})
    expect(page.get_by_role("heading", name=f"Metrics of {node}")).to_be_visible()
    expect(page.locator(PAGE).locator("visible=true").get_by_role("img")).to_have_count(12)
    assert [line for line in console if "hyperpod/api" in line or "exception" in line] == []


def test_one_cursor_shows_a_moment_in_all_charts_of_the_clusters_page(
    account: tuple[LabServer, Endpoint], page: Page, console: list[str]
) -> None:
    lab, _ = account
    open_lab(page, lab)
    shown = open_tab(page, "research-eks", "Metrics")
    figures = shown.locator("figure dl")
    expect(shown.locator("figure canvas")).to_have_count(13)
    expect(figures.filter(has_text="Latest")).to_have_count(13)
    full = figures.filter(has_text="Limit").locator("xpath=..").get_by_role("img")
    labels = [chart.get_attribute("aria-label") or "" for chart in full.all()]
    assert [label.partition(".")[0] for label in labels] == ["GPU memory usage", "Memory usage"]
    # The theme's colours, also after a change of the theme.
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        page.mouse.move(5, 5)
        expect(figures.filter(has_text="Latest")).to_have_count(13)
        shown.locator("figure .u-over").first.hover()
        expect(figures.filter(has_text="At cursor")).to_have_count(13)
        picture(page, f"cluster-metrics-{theme.rpartition(' ')[2].lower()}")
    # As many columns as there is room for, two at the most.
    for width, columns in ((1440, 2), (1000, 1)):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(
            """columns => new Set([...document.querySelectorAll('.jp-HyperPod-Metrics figure')]
                 .map(figure => figure.offsetLeft)).size === columns""",
            arg=columns,
        )
    assert [line for line in console if "exception" in line] == []


def test_what_is_missing_is_said(account: tuple[LabServer, Endpoint], page: Page) -> None:
    lab, aws = account
    open_lab(page, lab)
    execute(page, "hyperpod:open-metrics", {"cluster": "first-try"})
    expect(page.locator(PAGE)).to_contain_text("Amazon Managed Service for Prometheus")
    aws.faults.deny("cloudwatch:GetMetricData")
    page.locator(PAGE).get_by_label("Time").select_option("Last day")
    expect(page.locator(PAGE).get_by_role("alert")).to_contain_text("cloudwatch:GetMetricData")
