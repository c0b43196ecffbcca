"""The bill of AWS on the page of usage: asked only when the user says so, since AWS charges for it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from hyperpod_lab import REGION, hyperpod_lab
from lab_page import execute, open_lab, use_theme, violations
from playwright.sync_api import Page, expect

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from testbed.aws.bills import add_days
from testbed.aws.budgets import monthly_budget

USAGE = ".jp-HyperPod-UsagePage"
CONFIG = """
[clusters.ml]
orchestrator = "slurm"
hyperpod = "ml-cluster"
commands = "/nowhere"
"""


def test_the_bill_is_asked_for_by_the_user(page: Page, tmp_path: Path) -> None:
    with hyperpod_lab(tmp_path / "home", config=CONFIG) as (server, endpoint):
        account = endpoint.account
        cluster = next(one for one in account.clusters[REGION] if one.name == "ml-cluster")
        cluster.tags["ClusterName"] = cluster.name
        account.bills.cost_tags["ClusterName"] = "Active"
        name = "hyperpod-jlab-ml-cluster"
        account.budgets[name] = monthly_budget(name, "50")
        usage = [("USW2-Cluster:ml.p5.48xlarge", 96.0, 9438.72)]
        today = datetime.now(UTC).date().isoformat()
        add_days(account.bills, {"ClusterName": cluster.name}, usage, today, 1)
        open_lab(page, server)
        execute(page, "hyperpod:open-usage", {"cluster": "ml"})
        shown = page.locator(USAGE)
        ask = shown.get_by_role("button", name="Ask AWS ($0.02)")
        expect(ask).to_be_visible(timeout=20_000)
        assert not [call for call in endpoint.calls if call.action.startswith("ce:")]
        ask.click()
        expect(shown.get_by_text("$9,438.72")).to_be_visible(timeout=20_000)
        expect(shown.get_by_text("jobs were not counted", exact=False)).to_be_visible()
        expect(shown.get_by_text("$12.50 of the budget of $50.00 spent (25%)")).to_be_visible()
        for theme in ("JupyterLab Dark", "JupyterLab Light"):
            use_theme(page, theme)
            page.wait_for_timeout(1000)
            page.screenshot(path=f"test-results/bill-{theme[11:].lower()}.png")
            assert violations(page, USAGE) == []
        # It is kept, and the page does not ask again.
        paid = len([call for call in endpoint.calls if call.action.startswith("ce:")])
        open_lab(page, server)
        execute(page, "hyperpod:open-usage", {"cluster": "ml"})
        expect(shown.get_by_text("$9,438.72")).to_be_visible(timeout=20_000)
        assert len([call for call in endpoint.calls if call.action.startswith("ce:")]) == paid
