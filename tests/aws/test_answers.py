"""A boto3 that is older than the service: what it does not know comes through all the same."""

from __future__ import annotations

import json
from types import SimpleNamespace

import botocore.session
import pytest

from hyperpod_jlab.aws.errors import keep_unknown_fields
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.clusters.aws import HyperpodClusters
from hyperpod_jlab.core.config import Settings
from testbed.aws.endpoint import service_model
from testbed.aws.example import example_account
from tests.aws.conftest import REGION

# What boto3 1.37.3, which the image 3.9 of SageMaker Distribution has, does not know of these shapes.
UNKNOWN = {
    "ClusterOrchestrator": ("Slurm",),
    "ClusterSummary": ("ImageVersionStatus",),
    "ClusterNodeSummary": ("PrivateDnsHostname", "CurrentImageReleaseVersion", "ImageVersionStatus"),
    "ClusterInstanceGroupDetails": ("SlurmConfig",),
}


@pytest.fixture
def old_boto3(endpoint, no_aws, tmp_path):
    """The service model without them, for clients; the endpoint has the whole one."""
    service_model("sagemaker")
    loader = botocore.session.Session().get_component("data_loader")
    model = json.loads(json.dumps(loader.load_service_model("sagemaker", "service-2")))
    for shape, names in UNKNOWN.items():
        for name in names:
            del model["shapes"][shape]["members"][name]
    model["shapes"]["ClusterOrchestrator"].pop("union", None)
    folder = tmp_path / "models" / "sagemaker" / service_model("sagemaker").api_version
    folder.mkdir(parents=True)
    (folder / "service-2.json").write_text(json.dumps(model))
    no_aws.setenv("AWS_DATA_PATH", str(tmp_path / "models"))
    endpoint.account = example_account(REGION)


async def test_clusters_and_nodes_are_the_same_with_an_old_boto3(old_boto3):
    service = HyperpodClusters(Settings())
    slurm, eks, old, _ = await service.all_clusters()
    assert (slurm.orchestrator, eks.orchestrator, old.orchestrator) == ("slurm", "kubernetes", "slurm")
    assert eks.image_status == "UpdateAvailable"
    assert [group.slurm_role for group in slurm.groups or ()] == ["Controller", "Compute"]
    node, *_ = await service.all_instances("ml-cluster")
    assert node.host == f"ip-10-0-0-1.{REGION}.compute.internal"
    assert (node.image_version, node.image_status) == ("1.2.0", "UpToDate")


async def test_members_that_nobody_knows_yet_are_in_the_answer(endpoint):
    endpoint.account = example_account(REGION)
    endpoint.faults.later["sagemaker:DescribeCluster"] = lambda answer: answer.update(
        Mood="good", Orchestrator={"Nomad": {}}
    )
    told = await Aws().call("sagemaker", "DescribeCluster", ClusterName="ml-cluster")
    assert told["Mood"] == "good"
    found = await HyperpodClusters(Settings()).all_clusters()
    assert found[0].orchestrator is None
    assert found[0].reason == "its orchestrator Nomad is not supported"


@pytest.mark.parametrize(
    ("kind", "status", "told", "after"),
    [
        ("application/x-amz-json-1.1", 200, {"a": {"b": 1, "c": [2]}, "d": None}, {"a": {"b": 1, "x": 1, "c": [2]}}),
        ("application/x-amz-json-1.1", 200, {"a": {"b": 9, "l": 5}}, {"a": {"b": 1, "x": 1, "l": 5}}),
        ("application/x-amz-json-1.1", 400, {"e": 1}, {"a": {"b": 1, "x": 1}}),
        ("text/xml", 200, {"e": 1}, {"a": {"b": 1, "x": 1}}),
    ],
)
def test_what_is_known_stays_and_the_rest_is_put_beside_it(kind, status, told, after):
    parsed = {"a": {"b": 1, "x": 1}}
    answer = SimpleNamespace(headers={"Content-Type": kind}, status_code=status, content=json.dumps(told).encode())
    keep_unknown_fields(answer, parsed, model=None, context={})
    assert parsed == after


def test_rows_of_a_list_get_what_is_theirs():
    parsed = {"rows": [{"a": 1}, {"a": 2}]}
    told = {"rows": [{"a": 1, "b": 3}, {"a": 2, "b": 4}]}
    answer = SimpleNamespace(
        headers={"Content-Type": "application/x-amz-json-1.1"}, status_code=200, content=json.dumps(told).encode()
    )
    keep_unknown_fields(answer, parsed)
    assert parsed == told
