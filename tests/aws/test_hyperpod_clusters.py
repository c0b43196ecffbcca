"""The account's HyperPod clusters, with everything that can be wrong with one of them while the others are shown."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hyperpod_jlab.aws.clusters import NO_ORCHESTRATOR, list_clusters
from hyperpod_jlab.aws.file_systems import LustreMount
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.clusters.aws import HyperpodClusters
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import DeniedError, NotFoundError
from hyperpod_jlab.core.hyperpod import CLUSTER_STATES, GROUP_STATES, INSTANCE_STATES
from hyperpod_jlab.core.wire import to_plain
from testbed.aws.endpoint import service_model
from testbed.aws.example import FILE_SYSTEM, MOUNT_NAME, example_account, lustre
from tests.aws.conftest import REGION

DESCRIBE = "sagemaker:DescribeCluster"


def service(config=None, **given) -> HyperpodClusters:
    return HyperpodClusters(Settings.model_validate({"clusters": config or {}}), **given)


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


async def test_the_clusters_with_all_that_aws_tells(example):
    found = {row.name: row for row in await service().all_clusters()}
    slurm, eks, old, failed = found.values()
    assert (slurm.orchestrator, slurm.state, slurm.nodes, slurm.target) == ("slurm", "in-service", 5, 5)
    assert [group.slurm_role for group in slurm.groups] == ["Controller", "Compute"]
    assert slurm.created_at == example.account.clusters[REGION][0].created.timestamp()
    assert slurm.reason is None
    assert (eks.orchestrator, eks.nodes, eks.target) == ("kubernetes", 6, 8)
    assert [group.state for group in eks.groups or ()] == ["updating"]
    assert eks.provisioning == "Continuous"
    assert eks.eks_arn == f"arn:aws:eks:{REGION}:111122223333:cluster/research"
    assert (old.orchestrator, old.reason, old.state) == ("slurm", NO_ORCHESTRATOR, "updating-software")
    assert failed.reason == "Lifecycle scripts did not run successfully."


async def test_an_account_without_clusters(endpoint):
    found = await service().all_clusters()
    assert (list(found), found.notes) == ([], ())


async def test_which_of_them_are_configured(example):
    arn = example.account.clusters[REGION][2].arn
    eks = {"orchestrator": "kubernetes"}
    config = {
        "one": {"orchestrator": "slurm", "hyperpod": "ml-cluster"},
        "two": {"orchestrator": "slurm", "hyperpod": arn},
        "by-name": {**eks, "eks": "research"},
        "by-context": {**eks, "context": f"arn:aws:eks:{REGION}:111122223333:cluster/research"},
        "another": {**eks, "context": "research"},
    }
    found = {row.name: row.configured_as for row in await service(config).all_clusters()}
    assert found == {
        "ml-cluster": ("one",),
        "research-eks": ("by-name", "by-context"),
        "older-cluster": ("two",),
        "first-try": (),
    }


async def test_which_of_their_file_systems_are_mounted_here(example):
    other = {"FsxLustreConfig": {**lustre(REGION)["FsxLustreConfig"], "MountName": "another1"}}
    example.account.clusters[REGION][1].groups[0].storage = [other]
    here = LustreMount(Path("/mnt/x"), "10.0.0.1@tcp", MOUNT_NAME, "/alice", FILE_SYSTEM)
    found = [row.mounted_here for row in await service(mounts=[here]).all_clusters()]
    assert found == [("/mnt/x",), (), None, None]


async def test_one_that_may_not_be_described_is_listed_all_the_same(example):
    example.faults.deny(DESCRIBE, "research-eks")
    found = await service().all_clusters()
    slurm, eks, *_ = found
    assert slurm.groups is not None
    assert (eks.name, eks.state, eks.groups, eks.nodes, eks.orchestrator) == (
        *("research-eks", "in-service"),
        *(None, None, None),
    )
    assert eks.reason == f"you do not have the permission {DESCRIBE}"
    (note,) = found.notes
    assert note.startswith(f"1 of 4 clusters could not be described: you do not have the permission {DESCRIBE}")
    example.faults.deny(DESCRIBE)
    found = await service().all_clusters()
    assert [row.groups for row in found] == [None] * 4
    assert found.notes[0].startswith("4 of 4")


async def test_without_the_right_to_list_there_is_an_error(example):
    example.faults.deny("sagemaker:ListClusters")
    with pytest.raises(DeniedError, match="sagemaker:ListClusters"):
        await service().all_clusters()


async def test_one_that_is_deleted_while_the_list_is_on_its_way_is_gone(example):
    clusters = example.account.clusters[REGION]
    example.faults.later["sagemaker:ListClusters"] = lambda _: clusters.pop(1)
    found = await service().all_clusters()
    assert [row.name for row in found] == ["ml-cluster", "older-cluster", "first-try"]
    assert found.notes == ()
    assert [call.given.get("ClusterName") for call in example.calls].count("research-eks") == 1


async def test_words_that_are_newer_than_this_package_are_kept(example):
    example.faults.later["sagemaker:ListClusters"] = lambda answer: answer["ClusterSummaries"][0].update(
        ClusterStatus="Hibernating", Mood="good"
    )
    example.faults.later[DESCRIBE] = lambda answer: answer.update(
        ClusterStatus="Hibernating", Orchestrator={"Nomad": {}}, Mood="good"
    )
    example.faults.later["sagemaker:ListClusterNodes"] = lambda answer: answer["ClusterNodeSummaries"][0][
        "InstanceStatus"
    ].update(Status="Dreaming")
    (first, *_) = await service().all_clusters()
    assert (first.status, first.state, first.orchestrator) == ("Hibernating", "Hibernating", None)
    (node, *_) = await service().all_instances("ml-cluster")
    assert (node.status, node.state) == ("Dreaming", "Dreaming")


def test_every_word_of_this_boto3_has_one_of_ours():
    model = service_model("sagemaker")
    for shape, words in (
        ("ClusterStatus", CLUSTER_STATES),
        ("InstanceGroupStatus", GROUP_STATES),
        ("ClusterInstanceStatus", INSTANCE_STATES),
    ):
        assert set(model.shape_for(shape).enum) <= set(words)


async def test_clusters_are_described_a_few_at_a_time(endpoint):
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32))
    for number in range(40):
        endpoint.account.add_cluster(f"c-{number:02}", REGION)
    endpoint.faults.slow[DESCRIBE] = 0.05
    found = await service().all_clusters()
    assert len(found) == 40
    assert 4 <= endpoint.most_at_once <= 8


async def test_all_pages_of_many_clusters_and_nodes(endpoint):
    for number in range(130):
        endpoint.account.add_cluster(f"c-{number:03}", REGION)
    pages = [page async for page in list_clusters(Aws())]
    assert [len(page) for page in pages] == [100, 30]
    cluster = endpoint.account.add_cluster("large", REGION)
    cluster.add_group("workers", "ml.p5.48xlarge", 250)
    found = await service().all_instances("large")
    assert [node.name for node in found] == [node.instance_id for node in cluster.nodes]
    asked = [call for call in endpoint.calls if call.action == "sagemaker:ListClusterNodes"]
    assert len(asked) == 3
    assert all(call.given["MaxResults"] == 100 for call in asked)


async def test_a_node_that_is_on_two_pages_is_one(endpoint):
    endpoint.account.add_cluster("large", REGION).add_group("workers", "ml.p5.48xlarge", 150)
    first: list[dict] = []

    def repeat(answer):
        rows = answer["ClusterNodeSummaries"]
        first.append(rows[0])
        rows.append(first[0])

    endpoint.faults.later["sagemaker:ListClusterNodes"] = repeat
    names = [node.name for node in await service().all_instances("large")]
    assert len(names) == len(set(names)) == 150
    assert names[0] == first[0]["InstanceId"]


async def test_what_aws_tells_of_a_node(example):
    *_, node = await service().all_instances("ml-cluster")
    known = example.account.clusters[REGION][0].nodes[-1]
    assert (node.name, node.instance_group, node.state) == (known.instance_id, "worker-group-1", "failed")
    assert node.reason == known.message
    assert node.launched_at == known.launched.timestamp()
    assert node.host == f"ip-10-0-0-5.{REGION}.compute.internal"
    assert to_plain(node)["launched_at"] == "2026-01-05T09:04:00.000Z"


async def test_a_cluster_that_is_deleted_between_two_pages_of_its_nodes(endpoint):
    cluster = endpoint.account.add_cluster("large", REGION)
    cluster.add_group("workers", "ml.p5.48xlarge", 150)
    endpoint.faults.later["sagemaker:ListClusterNodes"] = lambda _: endpoint.account.clusters.clear()
    with pytest.raises(NotFoundError, match="large"):
        await service().all_instances("large")
