"""The endpoint of the testbed: it refuses what botocore's model refuses, and its own answers too."""

from __future__ import annotations

import http.client
import json
import os
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from testbed.aws.endpoint import service_model
from testbed.aws.example import client_environment
from testbed.aws.shapes import problems
from tests.aws.conftest import KEY, REGION

pytestmark = pytest.mark.testbed

ONCE = Config(retries={"total_max_attempts": 1}, parameter_validation=False)


def client(service: str = "sagemaker", region: str = REGION):
    return boto3.Session().client(service, region_name=region, config=ONCE)


def code_of(caught) -> str:
    return caught.value.response["Error"]["Code"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"MaxResults": 0}, "MaxResults is 0, less than 1"),
        ({"MaxResults": 101}, "MaxResults is 101, more than 100"),
        ({"MaxResults": "10"}, "MaxResults: a value of type str is no integer"),
        ({"SortBy": "SIZE"}, "SortBy: 'SIZE' is none of CREATION_TIME, NAME"),
        ({"NameContains": "no such_name"}, "does not match"),
        ({"NameContains": "a" * 64}, "NameContains: its length is 64, more than 63"),
        ({"NameContains": 7}, "NameContains: a value of type int is no string"),
        ({"CreationTimeAfter": "yesterday"}, "no time"),
        ({"NextToken": "made up"}, "The pagination token is invalid"),
    ],
)
def test_input_outside_of_the_model_is_refused(endpoint, given, words):
    # Sent as it is: botocore would refuse or bend some of it itself.
    status, answer = post(json.dumps(given))
    assert status == 400
    assert answer["__type"] == "ValidationException"
    assert words in answer["message"]


def test_complaints_are_counted_as_words_are(endpoint):
    _, one = post('{"MaxResults": 0}')
    assert one["message"].startswith("1 validation error detected: ")
    _, two = post('{"MaxResults": 0, "NextToken": 7}')
    assert two["message"].startswith("2 validation errors detected: ")


def test_its_variables_are_all_that_boto3_needs(endpoint, no_aws):
    for name, value in client_environment(os.environ["AWS_ENDPOINT_URL"], REGION).items():
        no_aws.setenv(name, value)
    assert boto3.Session().client("sagemaker").list_clusters()["ClusterSummaries"] == []


def test_unknown_and_missing_members_are_refused(endpoint):
    _, unknown = post('{"Colour": "red"}')
    assert "Colour: there is no such member" in unknown["message"]
    _, missing = post("{}", "DescribeCluster")
    assert "ClusterName: is missing" in missing["message"]
    _, no_structure = post("[]")
    assert "no structure" in no_structure["message"]
    status, good = post('{"MaxResults": 100}')
    assert (status, good) == (200, {"ClusterSummaries": []})


def test_operations_bodies_and_keys_that_are_none(endpoint):
    assert post("{}", "ListGalaxies")[1]["__type"] == "UnknownOperationException"
    assert post("{", "ListClusters")[1]["__type"] == "SerializationException"
    assert post("{}", headers={"Content-Type": "text/plain"})[1]["__type"] == "SerializationException"
    status, unsigned = post("{}", headers={"Authorization": ""})
    assert (status, unsigned["__type"]) == (403, "MissingAuthenticationToken")
    # The model has it, this endpoint does not: no silent success.
    status, _ = post("{}", "ListHubs")
    assert status == 501
    assert endpoint.calls == []


@pytest.mark.parametrize(
    ("service", "code", "status"),
    [("sagemaker", "UnrecognizedClientException", 400), ("sts", "InvalidClientTokenId", 403)],
)
def test_an_unknown_key(endpoint, no_aws, service, code, status):
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIASOMEBODYELSE0000")
    with pytest.raises(ClientError) as caught:
        ask(service)
    assert code_of(caught) == code
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


@pytest.mark.parametrize("service", ["sagemaker", "sts"])
def test_faults_come_as_boto3_reads_them(endpoint, service):
    action = {"sagemaker": "sagemaker:ListClusters", "sts": "sts:GetCallerIdentity"}[service]
    ask(service)
    endpoint.faults.deny(action)
    with pytest.raises(ClientError, match=f"not authorized to perform: {action}") as caught:
        ask(service)
    assert code_of(caught).startswith("AccessDenied")
    endpoint.faults.denied.clear()
    endpoint.faults.throttled[action] = 1
    with pytest.raises(ClientError, match="Rate exceeded") as caught:
        ask(service)
    assert code_of(caught).startswith("Throttling")
    endpoint.faults.broken[action] = 1
    with pytest.raises(ClientError) as caught:
        ask(service)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    ask(service)


def test_who_am_i(endpoint):
    found = client("sts").get_caller_identity()
    assert found["Account"] == "111122223333"
    assert found["Arn"] == "arn:aws:sts::111122223333:assumed-role/StudioRole/SageMaker"


@pytest.mark.parametrize(
    ("by", "order"), [("NAME", "Ascending"), ("NAME", "Descending"), ("CREATION_TIME", "Descending")]
)
def test_pages_are_without_gaps_and_repeats_in_each_order(endpoint, by, order):
    names = [f"c-{number * 7 % 23:02}" for number in range(23)]
    for name in names:
        endpoint.account.add_cluster(name, REGION)
    pages = (
        client().get_paginator("list_clusters").paginate(SortBy=by, SortOrder=order, PaginationConfig={"PageSize": 5})
    )
    found = [[one["ClusterName"] for one in page["ClusterSummaries"]] for page in pages]
    assert [len(page) for page in found] == [5, 5, 5, 5, 3]
    wanted = sorted(names) if by == "NAME" else names
    assert [name for page in found for name in page] == (wanted[::-1] if order == "Descending" else wanted)


def test_a_node_that_goes_between_two_pages_costs_no_other_its_place(endpoint):
    cluster = endpoint.account.add_cluster("c", REGION)
    cluster.add_group("workers", "ml.g5.xlarge", 6)
    every = [node.instance_id for node in cluster.nodes]
    first = client().list_cluster_nodes(ClusterName="c", MaxResults=3)
    del cluster.nodes[1]
    rest = client().list_cluster_nodes(ClusterName="c", MaxResults=3, NextToken=first["NextToken"])
    both = [one["InstanceId"] for one in first["ClusterNodeSummaries"] + rest["ClusterNodeSummaries"]]
    assert both == every
    assert "NextToken" not in rest


def test_filters_and_the_page_that_nobody_asked_a_size_of(endpoint):
    for number in range(12):
        endpoint.account.add_cluster(f"{'even' if number % 2 == 0 else 'odd'}-{number}", REGION)
    endpoint.account.add_cluster("elsewhere", "eu-west-1")
    assert len(client().list_clusters()["ClusterSummaries"]) == 10
    odd = client().list_clusters(NameContains="odd")["ClusterSummaries"]
    assert {one["ClusterName"][:3] for one in odd} == {"odd"}
    assert len(odd) == 6
    third = endpoint.account.clusters[REGION][3].created
    after = client().list_clusters(CreationTimeAfter=third, MaxResults=100)["ClusterSummaries"]
    assert len(after) == 8
    (only,) = client(region="eu-west-1").list_clusters()["ClusterSummaries"]
    assert only["ClusterName"] == "elsewhere"


def test_one_node_by_its_id(endpoint):
    cluster = endpoint.account.add_cluster("c", REGION)
    cluster.add_group("workers", "ml.g5.xlarge", 2)
    node = cluster.nodes[1]
    found = client().describe_cluster_node(ClusterName=cluster.arn, NodeId=node.instance_id)
    assert found["NodeDetails"]["InstanceId"] == node.instance_id
    assert found["NodeDetails"]["PrivatePrimaryIp"] == node.address
    with pytest.raises(ClientError) as caught:
        client().describe_cluster_node(ClusterName="c", NodeId="i-00000000")
    assert code_of(caught) == "ResourceNotFound"
    with pytest.raises(ClientError) as caught:
        client().describe_cluster_node(ClusterName="c")
    assert code_of(caught) == "ValidationException"


def test_an_answer_of_ours_that_the_model_has_not_is_never_sent(endpoint):
    cluster = endpoint.account.add_cluster("c", REGION, status="Dreaming")
    with pytest.raises(ClientError, match="Dreaming") as caught:
        client().list_clusters()
    assert code_of(caught) == "TestbedDrift"
    assert "ClusterStatus" in endpoint.drift[0]
    cluster.status = "InService"
    cluster.created = datetime(2026, 1, 1)  # noqa: DTZ001 - a time without a zone is the fault
    with pytest.raises(ClientError, match="no time with a time zone"):
        client().list_clusters()
    endpoint.drift.clear()


def test_output_is_checked_for_missing_unknown_and_mistyped_members():
    shape = service_model("sagemaker").operation_model("ListClusterNodes").output_shape
    node = {
        "InstanceGroupName": "g",
        "InstanceId": "i-1",
        "InstanceType": "ml.g5.xlarge",
        "LaunchTime": datetime.now(UTC),
        "InstanceStatus": {"Status": "Running"},
    }
    assert list(problems({"ClusterNodeSummaries": [node]}, shape, wire=False)) == []
    for name in node:
        less = {key: value for key, value in node.items() if key != name}
        (words,) = problems({"ClusterNodeSummaries": [less]}, shape, wire=False)
        assert words == f"ClusterNodeSummaries[0].{name}: is missing"
    bad = {**node, "Colour": "red", "InstanceType": "ml.unheard-of", "LaunchTime": 7}
    words = " | ".join(problems({"ClusterNodeSummaries": [bad]}, shape, wire=False))
    assert "Colour: there is no such member" in words
    assert "'ml.unheard-of' is none of" in words
    assert "LaunchTime: a value of type int is no time" in words


def test_a_union_has_exactly_one_member():
    model = service_model("sagemaker")
    unions = [name for name in model.shape_names if getattr(model.shape_for(name), "is_tagged_union", False)]
    assert unions
    shape = model.shape_for(unions[0])
    assert "exactly one of" in next(problems({}, shape, wire=True))


@pytest.mark.parametrize("minutes", [-6, 6])
@pytest.mark.parametrize("service", ["sagemaker", "sts"])
def test_a_clock_that_is_wrong(endpoint, service, minutes):
    endpoint.faults.clock = timedelta(minutes=minutes)
    with pytest.raises(ClientError, match=r"Signature (expired|not yet current)") as caught:
        ask(service)
    assert "Signature" in code_of(caught)
    endpoint.faults.clock = timedelta(minutes=minutes // 2)
    ask(service)


def ask(service: str):
    if service == "sts":
        return client("sts").get_caller_identity()
    return client().list_clusters()


def post(body: str, operation: str = "ListClusters", headers=None):
    """A request as no boto3 would send it; the HTTP status and the answer."""
    place = urlsplit(os.environ["AWS_ENDPOINT_URL"])
    now = datetime.now(UTC)
    sent = {
        "X-Amz-Target": f"SageMaker.{operation}",
        "Content-Type": "application/x-amz-json-1.1",
        "X-Amz-Date": f"{now:%Y%m%dT%H%M%SZ}",
        "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/{now:%Y%m%d}/{REGION}/sagemaker/aws4_request, "
        f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}",
        **(headers or {}),
    }
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    try:
        connection.request("POST", "/", body, sent)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()
