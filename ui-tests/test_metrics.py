"""Metrics of HyperPod clusters as small charts, on the testbed's AWS."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_page import execute, open_lab, use_theme, violations
from lab_server import LabServer, lab_server
from playwright.sync_api import Page, expect

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from testbed.aws.endpoint import Endpoint
from testbed.aws.example import ACCESS_KEY, example_account
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
        environment = {
            "AWS_ENDPOINT_URL": aws.url,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": "of-the-testbed",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        with lab_server(tmp_path / "home", environment=environment) as server:
            yield server, endpoint
    assert endpoint.drift == []


def test_charts_of_a_cluster_and_of_a_node(
    account: tuple[LabServer, Endpoint], page: Page, console: list[str]
) -> None:
    lab, aws = account
    open_lab(page, lab)
    execute(page, "hyperpod:open-metrics", {"cluster": "research-eks"})
    shown = page.locator(PAGE)
    expect(shown.get_by_role("heading", name="Metrics of research-eks")).to_be_visible()
    charts = shown.get_by_role("img")
    expect(charts).to_have_count(13)
    expect(shown.get_by_role("img", name="GPU utilisation: from")).to_be_visible()
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        page.wait_for_timeout(300)
        assert violations(page, PAGE) == []
    before = len(aws.calls)
    shown.get_by_label("Time").select_option("Last 6 hours")
    expect(charts).to_have_count(13)
    page.wait_for_timeout(1000)
    assert [call.action for call in aws.calls[before:]] == [
        *("sagemaker:DescribeCluster", "cloudwatch:GetMetricData"),
    ]
    node = aws.account.clusters[REGION][1].nodes[0].instance_id
    execute(page, "hyperpod:open-metrics", {"cluster": "research-eks", "node": node})
    expect(page.get_by_role("heading", name=f"Metrics of {node}")).to_be_visible()
    expect(page.locator(PAGE).locator("visible=true").get_by_role("img")).to_have_count(12)
    assert [line for line in console if "hyperpod/api" in line or "exception" in line] == []


def test_what_is_missing_is_said(account: tuple[LabServer, Endpoint], page: Page) -> None:
    lab, aws = account
    open_lab(page, lab)
    execute(page, "hyperpod:open-metrics", {"cluster": "first-try"})
    expect(page.locator(PAGE)).to_contain_text("Amazon Managed Service for Prometheus")
    aws.faults.deny("cloudwatch:GetMetricData")
    page.locator(PAGE).get_by_label("Time").select_option("Last day")
    expect(page.locator(PAGE).get_by_role("alert")).to_contain_text("cloudwatch:GetMetricData")
