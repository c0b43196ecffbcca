"""``hpj admin budget``: real boto3, AWS Budgets of the test endpoint."""

from __future__ import annotations

import pytest

from hyperpod_jlab.admin.budget.models import (
    OUR_TAG,
    Alert,
    cost_filter,
    desired_budget,
    plan_steps,
)
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.features.cost.bill_models import CostTag
from testbed.aws.budgets import HeldBudget
from testbed.aws.example import example_account
from testbed.aws.replies import ApiError
from tests.aws.conftest import REGION, endpoint, home, hpj, no_aws

__all__ = ["endpoint", "home", "hpj", "no_aws"]

NAME = "hyperpod-jlab-ml-cluster"
TAG = CostTag("ClusterName", "ml-cluster")
TOPIC = "arn:aws:sns:us-east-1:111122223333:budgets"
WANTED = ("--amount", "5000", "--email", "team@example.com")
CHANGES = "budgets:ModifyBudget"


@pytest.fixture
def account(endpoint, hpj):
    endpoint.account = example_account(REGION)
    for cluster in endpoint.account.clusters[REGION]:
        cluster.tags["ClusterName"] = cluster.name
    return endpoint


@pytest.fixture
def run(hpj):
    def call(verb, *words, cluster="ml-cluster"):
        return hpj("admin", "budget", verb, cluster, *words)

    return call


def changes(endpoint):
    return sum(call.action == CHANGES for call in endpoint.calls)


def alerts(held):
    return {(kind, percent): who for (kind, _, percent, _), who in held.alerts.items()}


def test_a_plan_changes_nothing(account, run):
    done = run("plan", *WANTED).ok()
    first = done.out.splitlines()[0]
    assert first.startswith(
        f"+ budget {NAME}: 5,000.00 USD a month for user:ClusterName$ml-cluster"
    )
    assert "alert at 80 % in actual costs to team@example.com" in first
    assert "alert at 100 % in forecast costs" in first
    assert "a budget stops nothing" in done.err
    assert changes(account) == 0
    assert account.account.budgets == {}


def test_apply_makes_it_once(account, run):
    for _ in range(2):
        run("apply", *WANTED, "--sns", TOPIC, "--yes").ok()
    assert changes(account) == 1
    held = account.account.budgets[NAME]
    assert held.description["BudgetLimit"] == {"Amount": "5000.00", "Unit": "USD"}
    assert held.description["CostFilters"] == {"TagKeyValue": ["user:ClusterName$ml-cluster"]}
    assert (held.description["TimeUnit"], held.description["BudgetType"]) == ("MONTHLY", "COST")
    assert held.tags.keys() == {OUR_TAG}
    assert alerts(held).keys() == {("ACTUAL", 80.0), ("ACTUAL", 100.0), ("FORECASTED", 100.0)}
    assert alerts(held)["ACTUAL", 80.0] == [
        {"SubscriptionType": "EMAIL", "Address": "team@example.com"},
        {"SubscriptionType": "SNS", "Address": TOPIC},
    ]


def test_apply_changes_only_what_differs(account, run):
    run("apply", *WANTED, "--yes").ok()
    plan = run(
        *("plan", "--amount", "6000", "--email", "team@example.com", "--at", "80", "--at", "90"),
        "--json",
    ).ok()
    assert [(step["kind"], step["target"]) for step in plan.json["steps"]] == [
        ("change", f"budget {NAME}"),
        ("delete", "alert at 100 % in actual costs"),
        ("keep", "alert at 80 % in actual costs"),
        ("create", "alert at 90 % in actual costs"),
        ("keep", "alert at 100 % in forecast costs"),
    ]
    assert "call" not in plan.json["steps"][0]
    run("apply", "--amount", "6000", "--email", "b@example.com", "--at", "80", "--yes").ok()
    held = account.account.budgets[NAME]
    assert held.description["BudgetLimit"]["Amount"] == "6000.00"
    assert alerts(held).keys() == {("ACTUAL", 80.0), ("FORECASTED", 100.0)}
    assert {who[0]["Address"] for who in held.alerts.values()} == {"b@example.com"}
    before = changes(account)
    again = run("apply", "--amount", "6000", "--email", "b@example.com", "--at", "80").ok()
    assert changes(account) == before
    assert all(line.startswith("=") for line in again.out.splitlines())


def test_destroy_removes_only_ours(account, run):
    run("apply", *WANTED, "--yes").ok()
    account.account.budgets["hyperpod-jlab-other"] = HeldBudget(
        {"BudgetName": "hyperpod-jlab-other"}
    )
    assert f"- budget {NAME}" in run("destroy", "--yes").ok().out
    assert account.account.budgets.keys() == {"hyperpod-jlab-other"}
    assert run("destroy", "--yes").ok().out == "no budget\n"


@pytest.mark.parametrize(
    "verb", [("plan", *WANTED), ("apply", *WANTED, "--yes"), ("destroy", "--yes")]
)
def test_a_budget_of_the_same_name_that_is_not_ours_stays(account, run, verb):
    run("apply", *WANTED, "--yes").ok()
    held = account.account.budgets[NAME]
    held.tags.clear()
    if verb[0] == "plan":
        del held.description["BudgetLimit"]  # AWS adjusts the amount
    before = changes(account)
    done = run(*verb, "--json")
    assert (done.code, done.error["code"]) == (2, "not_ours")
    assert changes(account) == before
    assert NAME in account.account.budgets


def test_without_a_terminal_it_needs_yes(account, run):
    done = run("apply", *WANTED, "--json")
    assert (done.code, done.error["code"]) == (2, "not_confirmed")
    assert changes(account) == 0


@pytest.mark.parametrize(
    "right",
    ["budgets:ViewBudget", "budgets:ModifyBudget", "budgets:TagResource"],
)
def test_each_right_that_is_missing_is_named(account, run, right):
    account.faults.deny(right)
    done = run("apply", *WANTED, "--yes", "--json")
    assert (done.code, done.error["code"]) == (4, "missing_right")
    assert done.error["detail"]["right"] == {"action": right}
    assert account.account.budgets == {}


def test_an_interrupted_change_is_completed(account, run):
    run("apply", *WANTED, "--yes").ok()
    left = [2]

    def fail(action, when):
        if action == CHANGES and when == "before":
            left[0] -= 1
            if left[0] < 0:
                raise ApiError("InternalErrorException", "no", 400)

    account.faults.interrupt = fail
    other = ("--amount", "5000", "--sns", TOPIC, "--yes")
    assert run("apply", *other, "--json").code != 0
    account.faults.interrupt = None
    run("apply", *other).ok()
    held = account.account.budgets[NAME]
    assert len(held.alerts) == 3
    assert {who[0]["Address"] for who in held.alerts.values()} == {TOPIC}


def test_throttled_requests_are_repeated(account, run):
    account.faults.throttled[CHANGES] = 2
    run("apply", *WANTED, "--yes").ok()
    assert NAME in account.account.budgets


def test_quotas_of_teams_are_shown_for_eks(account, run):
    done = run("plan", *WANTED, cluster="research-eks").ok()
    assert "quota of the team vision: 4 ml.g5.8xlarge (active)" in done.out
    assert "console.aws.amazon.com" in done.err
    account.faults.deny("sagemaker:ListComputeQuotas")
    assert (
        "permission sagemaker:ListComputeQuotas"
        in run("plan", *WANTED, cluster="research-eks").ok().err
    )


def test_a_limit_of_an_account_needs_the_clusters_scheduler(account, run):
    done = run("plan", *WANTED, "--account", "research", "--gpu-hours", "10", "--json")
    assert done.error["code"] == "not_configured"
    assert run("plan", *WANTED, "--account", "research", "--json").error["code"] == "usage"
    assert run("apply", *WANTED, "--apply-slurm", "--json").error["code"] == "usage"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--amount", "0", "--email", "a@b.de"), "amount"),
        (("--amount", "-5", "--email", "a@b.de"), "amount"),
        (("--amount", "nan", "--email", "a@b.de"), "amount"),
        (("--amount", "inf", "--email", "a@b.de"), "amount"),
        (("--amount", "5"), "email"),
        (("--amount", "5", "--email", "nobody"), "email"),
        (("--amount", "5", "--email", "a@b.de, c@d.de"), "email"),
        (("--amount", "5", "--sns", "arn:aws:sqs:us-east-1:111122223333:q"), "sns"),
        (("--amount", "5", "--sns", TOPIC, "--sns", f"{TOPIC}2"), "sns"),
        (("--amount", "5", "--email", "a@b.de", "--at", "0"), "at"),
        (("--amount", "5", "--email", "a@b.de", "--forecast", "nan"), "forecast"),
        (("--amount", "5", "--email", "a@b.de", "--tag", "x"), "tag"),
    ],
)
def test_bad_values_are_refused(account, run, words, field):
    done = run("plan", *words, "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, field)
    assert done.error["hint"]


def test_too_many_alerts_are_refused():
    with pytest.raises(InvalidInputError, match="1 to 10 alerts, not 11"):
        desired_budget("c", TAG, 1.0, "USD", emails=["a@b.de"], at=list(range(1, 12)))


def test_tags_of_aws_have_no_prefix_more():
    assert cost_filter(CostTag("aws:createdBy", "x")) == {"TagKeyValue": ["aws:createdBy$x"]}


def test_the_order_of_steps_is_stable():
    budget = desired_budget("c", TAG, 1.0, "USD", emails=["b@b.de", "a@b.de"], at=[90, 80])
    assert list(budget.alerts) == [Alert("ACTUAL", 80), Alert("ACTUAL", 90)]
    assert [step.kind for step in plan_steps("1", budget, budget)] == ["keep", "keep", "keep"]
    assert plan_steps("1", None, None) == []
