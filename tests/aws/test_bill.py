"""``hpj bill``, its service and REST: real boto3, Cost Explorer of the test endpoint."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from hyperpod_jlab.core.cost import idle_cost
from hyperpod_jlab.features.cost.bill import read_bill
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage.mounts import own_cache_folder
from testbed.aws.bills import CostLine, add_days
from testbed.aws.budgets import monthly_budget
from testbed.aws.example import example_account
from tests.aws.conftest import REGION
from tests.aws.shell import Shell
from tests.aws.test_rest import made

COSTS, FORECAST, TAGS = (
    "ce:GetCostAndUsage",
    "ce:GetCostForecast",
    "ce:ListCostAllocationTags",
)
PAID = (COSTS, FORECAST, TAGS)
NAMED = {"ClusterName": "ml-cluster"}
USAGE = (
    ("USW2-Cluster:ml.p5.48xlarge", 96.0, 9438.72),
    ("USW2-Cluster:ml.c5.xlarge", 24.0, 4.9),
    ("USW2-Cluster:VolumeUsage.gp2", 16.0, 2.0),
)
TENTH = date(2026, 11, 10)


@pytest.fixture
def account(endpoint, hpj):
    """The example, whose cluster has costs on the nine days from the first of November on."""
    endpoint.account = example_account(REGION)
    endpoint.account.clusters[REGION][0].tags["ClusterName"] = "ml-cluster"
    bills = endpoint.account.bills
    bills.cost_tags["ClusterName"] = "Active"
    add_days(bills, NAMED, USAGE, "2026-11-01", 9)
    add_days(bills, {"ClusterName": "another"}, USAGE, "2026-11-01", 9)
    add_days(bills, NAMED, USAGE, "2026-10-01", 31)
    return endpoint


def ask(today=TENTH, **options):
    async def read():
        services = Hyperpod()
        try:
            options.setdefault("ask", True)
            return await read_bill(services, "ml-cluster", today=today, **options)
        finally:
            await services.close()

    return asyncio.run(read())


def paid(endpoint):
    return sum(made(endpoint, action) for action in PAID)


def test_the_bill_of_the_month(account):
    bill = ask()
    assert (bill.begin, bill.end, bill.currency) == (date(2026, 11, 1), date(2026, 11, 11), "USD")
    assert bill.amount == pytest.approx(9 * 9445.62)
    assert [(row.instance_type, row.hours) for row in bill.rows] == [
        ("ml.p5.48xlarge", 864.0),
        ("ml.c5.xlarge", 216.0),
        (None, None),
    ]
    assert sum(row.amount for row in bill.rows) == pytest.approx(bill.amount)
    assert bill.node_hours_paid == 1080.0
    assert [day.day for day in bill.days] == [date(2026, 11, day) for day in range(1, 10)]
    # 21 days from today on, at 100 a day.
    assert bill.forecast == pytest.approx(bill.amount + 2100)
    assert bill.prices_paid["ml.p5.48xlarge"] == pytest.approx(98.32)
    assert (bill.paid_requests, paid(account)) == (2, 2)
    assert bill.estimated
    assert [note.partition(" ")[0] for note in bill.notes] == ["AWS", "AWS"]
    assert "no costs after 2026-11-09" in bill.notes[1]


def test_nothing_is_paid_unless_asked_for(account, hpj):
    done = hpj("bill", "ml-cluster", "--json")
    assert (done.code, done.error["code"]) == (2, "paid_request")
    assert "$0.01" in done.error["message"]
    assert "--yes" in done.error["hint"]
    assert paid(account) == 0
    assert hpj("bill", "ml-cluster", "--json", "--yes").ok().json["tag"]["key"] == "ClusterName"
    assert paid(account) > 0


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 2)])
def test_a_terminal_is_asked_first(account, home, tmp_path, typed, code):
    shell = Shell(home, tmp_path / "bin")
    done, screen = shell.run("bill", "ml-cluster", typed=typed)
    assert "AWS charges $0.01 for each. Continue? [y/N]" in screen
    assert done == code
    assert (paid(account) > 0) == (code == 0)
    assert ("AWS was not asked" in screen) == (code == 2)


def test_an_answer_is_kept_for_six_hours_and_says_when_it_was_asked(account, hpj):
    first = ask()
    again = ask(ask=False)
    assert again.asked_at == pytest.approx(first.asked_at, abs=0.01)
    assert replace(again, asked_at=first.asked_at) == first
    assert paid(account) == 2
    assert ask(refresh=True).asked_at > first.asked_at
    assert paid(account) == 4
    folder = own_cache_folder()
    assert folder is not None
    file = folder / "bills.json"
    kept = json.loads(file.read_text())
    for one in kept.values():
        moment = datetime.fromisoformat(one["asked_at"]) - timedelta(hours=6, seconds=1)
        one["asked_at"] = moment.isoformat()
    file.write_text(json.dumps(kept))
    ask()
    assert paid(account) == 6
    file.write_text("{")
    ask()
    assert paid(account) == 8
    # In the next month it is another bill, however young this one is.
    ask(date(2026, 12, 1))
    assert paid(account) > 8


def test_each_tag_has_its_own_answer(account):
    account.account.bills.cost_tags["team"] = "Active"
    add_days(account.account.bills, {"team": "vision"}, USAGE[1:2], "2026-11-01", 2)
    assert ask(tag="team=vision").amount == pytest.approx(9.8)
    assert ask().amount > 9.8


def test_many_days_and_types_come_in_pages(account):
    # 27 lines and 40 on a page; with these there are 3 pages.
    usage = [(f"USW2-Cluster:ml.g{number}.large", 1.0, 1.0) for number in range(8)]
    add_days(account.account.bills, NAMED, usage, "2026-11-01", 9)
    bill = ask()
    assert bill.amount == pytest.approx(9 * 9445.62 + 72)
    assert len(bill.rows) == 11
    assert made(account, COSTS) == 3
    assert bill.paid_requests == 4


def test_the_first_day_of_a_month_asks_for_that_day(account):
    bill = ask(date(2026, 12, 1))
    assert (bill.begin, bill.end) == (date(2026, 12, 1), date(2026, 12, 2))
    assert (bill.amount, bill.currency, bill.forecast) == (None, None, None)
    assert "up to a day late" in bill.notes[0]


def test_the_last_day_of_a_year(account):
    add_days(account.account.bills, NAMED, USAGE, "2026-12-01", 31)
    bill = ask(date(2026, 12, 31))
    assert bill.end == date(2027, 1, 1)
    assert bill.forecast == pytest.approx(30 * 9445.62 + 100)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("Inactive", "not active for cost allocation; activate it in the Billing console"),
        (None, "does not know the tag ClusterName yet"),
    ],
)
def test_a_tag_that_is_not_active_is_said_with_the_fix(account, status, words):
    del account.account.bills.cost_tags["ClusterName"]
    if status:
        account.account.bills.cost_tags["ClusterName"] = status
    bill = ask()
    assert bill.amount is None
    assert words in bill.notes[0]
    assert bill.paid_requests == 2


def test_several_currencies_are_not_added(account):
    account.account.bills.lines.append(
        CostLine("2026-11-02", "USW2-Cluster:ml.c5.xlarge", 24.0, 35.0, NAMED, "CNY")
    )
    bill = ask()
    assert bill.currency == "USD"
    assert bill.amount == pytest.approx(9 * 9445.62)
    assert bill.notes[0] == "AWS also has costs of 35.00 CNY, which are not included"


def test_a_forecast_in_another_currency_is_not_added(account):
    account.account.bills.lines = [
        CostLine("2026-11-02", "CNN1-Cluster:ml.c5.xlarge", 24.0, 35.0, NAMED, "CNY")
    ]
    bill = ask()
    assert (bill.currency, bill.amount, bill.forecast) == ("CNY", 35.0, None)
    assert "the forecast of AWS is in USD" in bill.notes[-1]


def test_too_little_data_for_a_forecast(account):
    account.account.bills.per_day = None
    bill = ask()
    assert bill.forecast is None
    assert bill.notes[-1] == "AWS has too little data for a forecast"


def test_without_the_right_to_costs_there_is_no_bill(account, hpj):
    account.faults.deny(COSTS)
    done = hpj("bill", "ml-cluster", "--yes", "--json")
    assert (done.code, done.error["code"]) == (4, "missing_right")
    assert done.error["detail"]["right"] == {"action": COSTS}


def test_without_the_right_to_forecasts_the_rest_is_there(account):
    account.faults.deny(FORECAST)
    bill = ask()
    assert bill.amount
    assert f"permission {FORECAST}" in bill.notes[-1]


def test_without_the_right_to_tags_it_is_said_why_nothing_is_known(account):
    account.faults.deny(TAGS)
    account.account.bills.lines.clear()
    assert f"permission {TAGS}" in ask().notes[0]


def test_throttled_requests_are_repeated_and_counted(account):
    account.faults.throttled[COSTS] = 2
    assert ask().paid_requests == 4


def test_a_cluster_without_a_tag(account, hpj):
    tags = account.account.clusters[REGION][0].tags
    del tags["ClusterName"]
    done = hpj("bill", "ml-cluster", "--yes", "--json")
    assert done.error["code"] == "no_cost_tag"
    assert "Key=ClusterName,Value=ml-cluster" in done.error["hint"]
    tags["ClusterName"] = ""
    assert hpj("bill", "ml-cluster", "--yes", "--json").error["code"] == "no_cost_tag"
    empty = hpj("bill", "ml-cluster", "--tag", "ClusterName=", "--yes", "--json")
    assert (empty.code, empty.error["detail"]) == (2, {"field": "tag"})
    del tags["ClusterName"]
    tags["project"] = "ml-cluster"
    assert str(ask().tag) == "project=ml-cluster"
    tags["other"] = "ml-cluster"
    assert hpj("bill", "ml-cluster", "--yes", "--json").error["code"] == "no_cost_tag"


@pytest.mark.parametrize("tag", ["ClusterName", "=x", ""])
def test_what_is_no_tag(account, hpj, tag):
    done = hpj("bill", "ml-cluster", "--yes", "--json", "--tag", tag)
    assert (done.code, done.error["detail"]["field"]) == (2, "tag")
    assert paid(account) == 0


def test_the_tables(account, hpj):
    today = datetime.now(UTC).date()
    add_days(account.account.bills, NAMED, USAGE, today.isoformat(), 1)
    name = "hyperpod-jlab-ml-cluster"
    account.account.budgets[name] = monthly_budget(name, "5000")
    done = hpj("bill", "ml-cluster", "--yes").ok()
    lines = done.out.splitlines()
    assert lines[0].startswith("ml-cluster: ")
    assert lines[1] == "budget of the month: 12.50 USD of 5,000.00 USD spent"
    assert lines[3].split() == ["INSTANCE", "TYPE", "NODE", "HOURS", "USD"]
    assert lines[4].split()[0] == "ml.p5.48xlarge"
    assert "2 paid requests ($0.02), by the tag ClusterName=ml-cluster" in done.err


def test_idle_nodes_are_paid_and_not_allocated():
    rows = idle_cost(
        {"ml.p5.48xlarge": 864.0, "ml.c5.xlarge": 216.0, "ml.g5.xlarge": 10.0},
        {"ml.p5.48xlarge": 800.0, "ml.g5.xlarge": 12.0, "ml.x": 1.0},
        {"ml.p5.48xlarge": 100.0, "ml.g5.xlarge": 2.0},
    )
    assert [(row.instance_type, row.idle_hours, row.amount) for row in rows] == [
        ("ml.c5.xlarge", 216.0, None),
        ("ml.p5.48xlarge", 64.0, 6400.0),
        ("ml.g5.xlarge", 0.0, 0.0),
    ]
