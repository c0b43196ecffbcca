"""The bill over REST: a real server, real boto3, Cost Explorer of the test endpoint."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from testbed.aws.bills import add_days
from testbed.aws.example import example_account
from tests.aws.conftest import REGION
from tests.aws.test_bill import NAMED, PAID, USAGE, paid
from tests.aws.test_rest import made, refused
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.admin_calls import posted
from tests.server.conftest import *  # noqa: F403

PATH = "clusters/ml-cluster/bill"


@pytest.fixture
def account(endpoint, no_aws, tmp_path):
    no_aws.setenv("PATH", str(tmp_path))
    endpoint.account = example_account(REGION)
    endpoint.account.clusters[REGION][0].tags |= NAMED
    endpoint.account.bills.cost_tags["ClusterName"] = "Active"
    today = datetime.now(UTC).date()
    add_days(endpoint.account.bills, NAMED, USAGE, today.isoformat(), 1)
    return endpoint


async def test_only_a_request_that_asks_for_it_is_paid(account, api):
    status, error = await refused(api, PATH)
    assert (status, error["code"]) == (422, "paid_request")
    status, error = await api.request("POST", PATH, {})
    assert (status, error["code"]) == (422, "paid_request")
    assert paid(account) == 0
    bill = await posted(api, PATH, {"ask": True})
    assert bill["paid_requests"] == paid(account) == 2
    assert bill["currency"] == "USD"
    assert bill["rows"][0]["instance_type"] == "ml.p5.48xlarge"
    assert await api.get(PATH) == bill
    assert paid(account) == 2
    again = await posted(api, PATH, {"ask": True, "refresh": True})
    assert again["asked_at"] > bill["asked_at"]
    assert made(account, PAID[0]) == 2
