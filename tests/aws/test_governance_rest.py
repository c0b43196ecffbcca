"""Task governance, settings and whether one can submit over REST: a real server, real boto3, the testbed's AWS."""

from __future__ import annotations

import asyncio

import pytest

from testbed.aws.example import example_account
from tests.aws.conftest import REGION
from tests.aws.test_rest import at_aws, made, refused, until_loaded
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.conftest import *  # noqa: F403

PATH = "clusters/research-eks/governance"


@pytest.fixture
def example(endpoint, no_aws, tmp_path):
    """The example, from a machine without Slurm."""
    no_aws.setenv("PATH", str(tmp_path))
    endpoint.account = example_account(REGION)
    return endpoint


async def test_governance(example, api):
    answer = await until_loaded(api, PATH)
    assert [one["team"] for one in answer["quotas"]] == ["robots", "speech", "vision"]
    assert answer["policies"][0]["priorities"][0]["name"] == "inference"
    assert answer["problem"] is None
    assert answer["as_of"]
    await asyncio.gather(*(api.get(PATH) for _ in range(5)))
    assert made(example, "sagemaker:ListComputeQuotas") == 1
    assert await until_loaded(api, PATH, refresh="true")
    assert made(example, "sagemaker:ListComputeQuotas") == 2


async def test_what_has_none(example, api):
    status, error = await refused(api, "clusters/ml-cluster/governance")
    assert (status, error["code"]) == (422, "no_governance")
    status, error = await refused(api, "clusters/nope/governance")
    assert (status, error["code"]) == (404, "not_found")


async def test_the_old_ones_stay_when_aws_refuses(example, api):
    first = await until_loaded(api, PATH)
    example.faults.deny("sagemaker:ListComputeQuotas")
    example.faults.deny("sagemaker:ListClusterSchedulerConfigs")
    answer = await until_loaded(api, PATH, refresh="true")
    assert answer["quotas"] == first["quotas"]
    assert answer["problem"]["code"] == "missing_right"


async def test_settings_in_words(example, api):
    cluster = next(one for one in example.account.clusters[REGION] if one.name == "research-eks")
    cluster.settings["AutoScaling"] = {"Mode": "Enable", "Status": "Failed", "FailureMessage": "no role"}
    answer = await until_loaded(api, "clusters/research-eks")
    found = {one["name"]: one for one in answer["cluster"]["hyperpod"]["settings"]}
    assert "HyperPod reboots or replaces" in found["node-recovery"]["meaning"]
    assert "it is Failed: no role" in found["autoscaling"]["meaning"]
    assert "20 % of the memory" in found["tiered-storage"]["meaning"]
    assert found["security-groups"]["value"].startswith("sg-")
    assert found["eks-cluster"]["value"].endswith("cluster/research")


async def test_whether_one_can_submit_is_looked_at_in_the_background(example, api):
    example.faults.slow["eks:DescribeCluster"] = 3.0
    answer = await api.get("clusters")
    seen = set()
    while answer["loading"]:
        reaches = [row["hyperpod"]["reach"] for row in at_aws(answer).values()]
        seen |= {reach["word"] for reach in reaches if reach}
        await asyncio.sleep(0.1)
        answer = await api.get("clusters")
    assert "not-looked" in seen
    rows = {name: row["hyperpod"]["reach"] for name, row in at_aws(answer).items()}
    assert rows["research-eks"]["word"] == "not-in-service"
    assert rows["ml-cluster"]["word"] == "no-file-system"
    assert rows["older-cluster"]["word"] == "no-login-node"
    assert "--login-node" in rows["older-cluster"]["next_step"]
    assert made(example, "eks:DescribeCluster") == 1
    only = await until_loaded(api, "clusters", sort="hyperpod")
    assert only["clusters"][-1]["name"] == "local"
    detail = (await until_loaded(api, "clusters/research-eks"))["cluster"]["hyperpod"]
    assert detail["reach"]["word"] == "not-in-service"
    assert 'eks = "research"' in detail["reach"]["config"]
    assert made(example, "eks:DescribeCluster") == 1
