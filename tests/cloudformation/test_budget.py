"""The budget of a cluster: whose costs it counts, and who gets its alerts."""

from typing import Any

import pytest

from tests.cloudformation.resolving import Place, RefusedError, resolve

CLUSTER: dict[str, Any] = {"ClusterName": "ml-cluster", "MonthlyAmount": 5000}
TOPIC = "arn:aws:sns:us-west-2:123456789012:costs"


def test_alerts_go_to_the_address_and_the_topic():
    stack = resolve("budget.yaml", **CLUSTER, Email="team@example.com", TopicArn=TOPIC)
    made = stack.properties("Budget")
    assert made["Budget"]["BudgetLimit"] == {"Amount": "5000", "Unit": "USD"}
    assert made["Budget"]["CostFilters"] == {"TagKeyValue": ["user:ClusterName$ml-cluster"]}
    alerts = made["NotificationsWithSubscribers"]
    told = [(one["NotificationType"], one["Threshold"]) for one in (x["Notification"] for x in alerts)]
    assert told == [("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100)]
    email = {"SubscriptionType": "EMAIL", "Address": "team@example.com"}
    topic = {"SubscriptionType": "SNS", "Address": TOPIC}
    assert all(one["Subscribers"] == [email, topic] for one in alerts)
    stack = resolve("budget.yaml", Place("aws-cn", "cn-north-1"), **CLUSTER, TopicArn=TOPIC)
    made = stack.properties("Budget")
    assert made["Budget"]["BudgetLimit"]["Unit"] == "CNY"
    assert made["NotificationsWithSubscribers"][0]["Subscribers"] == [topic]


def test_without_a_reader_it_is_refused():
    with pytest.raises(RefusedError, match="Name who gets the alerts"):
        resolve("budget.yaml", **CLUSTER)
