"""HyperPod clusters over REST: a real server, real boto3, the testbed's AWS."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from hyperpod_jlab.services import looks
from testbed.aws.example import MOUNT_NAME, example_account
from testbed.aws.state import Account
from tests.aws.conftest import KEY, REGION
from tests.conftest import home
from tests.server.conftest import *  # noqa: F403

LIST, DESCRIBE = "sagemaker:ListClusters", "sagemaker:DescribeCluster"
NODES, TAGS = "sagemaker:ListClusterNodes", "sagemaker:ListTags"


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


def made(example, action):
    """How often an action was asked for."""
    return [call.action for call in example.calls].count(action)


async def loaded(api, path, **query):
    """What is there once all of it is there."""
    deadline = time.monotonic() + 30
    answer = await api.get(path, **query)
    while answer["loading"]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
        answer = await api.get(path)
    return answer


async def test_the_clusters_with_what_their_descriptions_tell(example, api):
    answer = await loaded(api, "hyperpod")
    rows = {row["name"]: row for row in answer["clusters"]}
    assert list(rows) == ["first-try", "ml-cluster", "older-cluster", "research-eks"]
    assert (answer["total"], answer["problem"], answer["notes"]) == (4, None, [])
    assert answer["as_of"] is not None
    slurm, eks = rows["ml-cluster"], rows["research-eks"]
    assert (slurm["orchestrator"], slurm["state"], slurm["nodes"]) == ("slurm", "in-service", 5)
    assert slurm["mounted_here"] == []
    assert (eks["orchestrator"], eks["nodes"], eks["target"]) == ("kubernetes", 6, 8)
    assert rows["first-try"]["reason"] == "Lifecycle scripts did not run successfully."
    only = await api.get("hyperpod", filter="KUBERNETES", sort="-nodes")
    assert [row["name"] for row in only["clusters"]] == ["research-eks"]
    assert MOUNT_NAME not in str(answer)
