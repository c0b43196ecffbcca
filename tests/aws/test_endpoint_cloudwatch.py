"""The testbed's CloudWatch: metrics in each protocol that a botocore speaks, and logs page by page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.aws.conftest import REGION

pytestmark = pytest.mark.testbed

ONCE = Config(retries={"total_max_attempts": 1}, parameter_validation=False)
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
GROUP = "/aws/sagemaker/Clusters/c/0123456789ab"


@pytest.fixture(params=["json", "smithy-rpc-v2-cbor", "query"])
def cloudwatch(endpoint, no_aws, request):
    """CloudWatch as a botocore asks it that knows one protocol only; older ones know just the last."""
    no_aws.setattr("botocore.model.PRIORITY_ORDERED_SUPPORTED_PROTOCOLS", (request.param,))
    made = boto3.Session().client("cloudwatch", region_name=REGION, config=ONCE)
    assert made.meta.service_model.resolved_protocol == request.param
    return made


def logs_client():
    return boto3.Session().client("logs", region_name=REGION, config=ONCE)


def measure(endpoint, name="gpu", node="i-1", values=(1.0, 3.0, 8.0), start=NOON):
    dimensions = {"ClusterName": "c", "InstanceId": node}
    timed = [(start + timedelta(minutes=minute), value) for minute, value in enumerate(values)]
    endpoint.account.telemetry.measure(REGION, "Insights", name, dimensions, timed)


def query(stat="Average", period=60, ident="m0", **more):
    dimensions = [{"Name": "InstanceId", "Value": "i-1"}, {"Name": "ClusterName", "Value": "c"}]
    metric = {"Namespace": "Insights", "MetricName": "gpu", "Dimensions": dimensions, **more}
    return {"Id": ident, "MetricStat": {"Metric": metric, "Period": period, "Stat": stat}}


def ask(cloudwatch, *queries, **more):
    given = {"StartTime": NOON, "EndTime": NOON + timedelta(minutes=10), "ScanBy": "TimestampAscending", **more}
    return cloudwatch.get_metric_data(MetricDataQueries=list(queries), **given)["MetricDataResults"]


def test_measurements_in_periods(endpoint, cloudwatch):
    measure(endpoint)
    fine, coarse, most, none = ask(
        cloudwatch,
        query(),
        query(period=120, ident="m1"),
        query("Maximum", 300, "m2"),
        query(ident="m3", MetricName="nothing"),
    )
    assert fine["Values"] == [1.0, 3.0, 8.0]
    assert fine["Timestamps"] == [NOON + timedelta(minutes=minute) for minute in range(3)]
    assert coarse["Values"] == [2.0, 8.0]
    assert most["Values"] == [8.0]
    assert (none["Id"], none["Values"], none["StatusCode"]) == ("m3", [], "Complete")
    (last,) = ask(cloudwatch, query(), StartTime=NOON + timedelta(minutes=2))
    assert last["Values"] == [8.0]


def test_metrics_by_name_and_dimension_over_pages(endpoint, cloudwatch):
    for node in range(510):
        measure(endpoint, node=f"i-{node:03}", values=())
    measure(endpoint, "cpu")
    given = {"Namespace": "Insights", "MetricName": "gpu", "Dimensions": [{"Name": "ClusterName"}]}
    first = cloudwatch.list_metrics(**given)
    rest = cloudwatch.list_metrics(**given, NextToken=first["NextToken"])
    assert [len(page["Metrics"]) for page in (first, rest)] == [500, 10]
    assert "NextToken" not in rest
    one = [{"Name": "InstanceId", "Value": "i-007"}]
    (found,) = cloudwatch.list_metrics(Namespace="Insights", Dimensions=one)["Metrics"]
    assert {pair["Name"]: pair["Value"] for pair in found["Dimensions"]} == {"ClusterName": "c", "InstanceId": "i-007"}
    assert cloudwatch.list_metrics(Namespace="Other")["Metrics"] == []


@pytest.mark.parametrize(
    ("queries", "more", "words"),
    [
        ([query(period=90)], {}, "multiple of 60"),
        ([query(ident="M0")], {}, "begin with a-z"),
        ([query(), query()], {}, "unique"),
        ([query(ident=f"m{n}") for n in range(501)], {}, "1 to 500"),
        ([query()], {"EndTime": NOON}, "less than"),
        ([query()], {"ScanBy": "Sideways"}, "none of TimestampDescending"),
    ],
)
def test_questions_that_cloudwatch_refuses(endpoint, cloudwatch, queries, more, words):
    with pytest.raises(ClientError, match=words):
        ask(cloudwatch, *queries, **more)


def test_refusals_come_as_boto3_reads_them(endpoint, cloudwatch):
    endpoint.faults.deny("cloudwatch:GetMetricData")
    with pytest.raises(ClientError, match="not authorized to perform: cloudwatch") as caught:
        ask(cloudwatch, query())
    assert caught.value.response["Error"]["Code"].startswith("AccessDenied")
    endpoint.faults.throttled["cloudwatch:ListMetrics"] = 1
    with pytest.raises(ClientError, match="Rate exceeded"):
        cloudwatch.list_metrics()


def write(endpoint, count, stream="s", step=1000):
    lines = [(1_700_000_000_000 + n * step, f"line {n}") for n in range(count)]
    endpoint.account.telemetry.write(REGION, GROUP, stream, lines)


def walk(key, **given):
    """All lines, until the token stays the same; how many pages that were, and how many without a line."""
    client, token, empty, pages = logs_client(), None, 0, 0
    found: list[str] = []
    while True:
        more: dict[str, str] = {"nextToken": token} if token else {}
        page = client.get_log_events(logGroupName=GROUP, logStreamName="s", **given, **more)
        if page[key] == token:
            return found, pages, empty
        texts = [event["message"] for event in page["events"]]
        found = found + texts if key == "nextForwardToken" else texts + found
        pages, empty, token = pages + 1, empty + (not texts), page[key]


@pytest.mark.parametrize("looked_at", [10_000, 7])
def test_a_log_forward_and_backward_without_gaps(endpoint, looked_at):
    write(endpoint, 40)
    endpoint.account.telemetry.looked_at = looked_at
    wanted = [f"line {n}" for n in range(40)]
    assert walk("nextForwardToken", startFromHead=True, limit=9)[0] == wanted
    assert walk("nextBackwardToken", limit=9)[0] == wanted
    late, _, empty = walk("nextForwardToken", startFromHead=True, startTime=1_700_000_030_000)
    assert late == wanted[30:]
    # Pages without a line, which are not the end, come where AWS looked at too few that fit.
    assert (empty > 0) == (looked_at == 7)
    assert walk("nextForwardToken", startFromHead=True, endTime=1_700_000_002_000)[0] == wanted[:2]


def test_a_page_takes_a_megabyte(endpoint):
    lines = [(1_700_000_000_000 + n, f"{n}:" + "x" * 200_000) for n in range(12)]
    endpoint.account.telemetry.write(REGION, GROUP, "s", lines)
    found, pages, _ = walk("nextForwardToken", startFromHead=True)
    assert [text.partition(":")[0] for text in found] == [str(n) for n in range(12)]
    assert pages == 3


def test_streams_in_both_orders(endpoint):
    for number in range(60):
        write(endpoint, 60 - number, f"stream-{number:02}")
    given = {"logGroupName": GROUP, "orderBy": "LastEventTime", "descending": True}
    first = logs_client().describe_log_streams(**given)
    rest = logs_client().describe_log_streams(**given, nextToken=first["nextToken"])
    names = [one["logStreamName"] for one in first["logStreams"] + rest["logStreams"]]
    assert names == [f"stream-{number:02}" for number in range(60)]
    found = logs_client().describe_log_streams(logGroupName=GROUP, logStreamNamePrefix="stream-1")
    assert len(found["logStreams"]) == 10
    with pytest.raises(ClientError, match="LastEventTime"):
        logs_client().describe_log_streams(**given, logStreamNamePrefix="s")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"logGroupName": "/aws/other"}, "log group does not exist"),
        ({"logStreamName": "t"}, "log stream does not exist"),
        ({"nextToken": "f/x"}, "nextToken is invalid"),
        ({"limit": 10_001}, "more than 10000"),
    ],
)
def test_logs_that_are_not_there(endpoint, more, words):
    write(endpoint, 1)
    with pytest.raises(ClientError, match=words):
        logs_client().get_log_events(**{"logGroupName": GROUP, "logStreamName": "s", **more})
