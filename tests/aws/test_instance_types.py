"""Facts of instance types: what EC2 says first, what the table says where EC2 cannot be asked, and what is said where neither knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hyperpod_jlab.aws.clusters import describe_instance_types, find_instance_type
from hyperpod_jlab.aws.session import Aws, forget_session
from hyperpod_jlab.core.errors import DeniedError
from hyperpod_jlab.core.instance_types import InstanceType, from_ec2, table
from hyperpod_jlab.storage.mounts import own_cache_folder
from testbed.aws import ground
from testbed.aws.example import example_account
from testbed.aws.instance_types import CHECKED
from tests.aws.conftest import REGION

ASK = "ec2:DescribeInstanceTypes"
NEW = "p3dn.24xlarge"
"""A type that EC2 has, and the table does not."""

ON_EKS = """
[clusters.on-eks]
orchestrator = "kubernetes"
eks = "research"
image = "registry/train:1"
storage = { claim = "fsx-claim", mount = "/fsx" }
"""


@pytest.fixture
def asked(endpoint, tmp_path, no_aws):
    """How often EC2 was asked."""
    no_aws.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    endpoint.account.ground.add_types(
        # Figures that no table has, to see whose they are.
        ground.InstanceType("p5.48xlarge", efa=31, gpus=(8, "H100"), cards=32, addresses=50),
        ground.InstanceType(NEW, efa=9, gpus=(8, "V 100"), cards=9),
    )
    return lambda: sum(call.action == ASK for call in endpoint.calls)


def memory() -> Path:
    """The file of what EC2 has said."""
    folder = own_cache_folder()
    assert folder is not None
    return folder / "instance-types.json"


def grow_old(seconds):
    """Let what is remembered be so much older."""
    file = memory()
    rows = json.loads(file.read_text())
    file.write_text(json.dumps({name: [row, at - seconds] for name, (row, at) in rows.items()}))


async def test_ec2_is_asked_first_and_once(asked):
    found = [await find_instance_type(name) for name in ("ml.p5.48xlarge", "p5.48xlarge", f"ml.{NEW}")]
    assert [one.efa for one in found] == [31, 31, 9]
    assert found[2] == InstanceType(8, 32768, 8, "v-100", 0, 9, 9, 15)
    assert asked() == 2
    grow_old(29 * 86400)
    await find_instance_type("ml.p5.48xlarge")
    assert asked() == 2
    grow_old(2 * 86400)
    await find_instance_type("ml.p5.48xlarge")
    assert asked() == 3


async def test_where_ec2_may_not_be_asked_the_table_says(asked, endpoint):
    endpoint.faults.deny(ASK)
    for _ in range(2):
        assert await find_instance_type("ml.p5.48xlarge") == table()["p5.48xlarge"]
    assert asked() == 1
    endpoint.faults.denied.clear()
    grow_old(3601)
    assert (await find_instance_type("ml.p5.48xlarge")).efa == 31


async def test_a_type_that_neither_knows(asked, endpoint):
    assert await find_instance_type("ml.p7.48xlarge") is None
    assert await find_instance_type("no name; of a type") is None
    assert await find_instance_type("ml.g7e.48xlarge") == table()["g7e.48xlarge"]
    assert asked() == 2
    endpoint.faults.deny(ASK)
    refusal = await find_instance_type(f"ml.{NEW}")
    assert isinstance(refusal, DeniedError)
    assert ASK in refusal.message
    # As soon as it may be asked, it is.
    endpoint.faults.denied.clear()
    assert (await find_instance_type(f"ml.{NEW}")).efa == 9


async def test_without_aws_the_table_says(no_aws, tmp_path):
    no_aws.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert await find_instance_type("ml.p5.48xlarge") == table()["p5.48xlarge"]


@pytest.mark.parametrize("text", ["", "[]", '{"p5.48xlarge": [{"vcpus": 1}, 1]}', '{"p5.48xlarge": 3}'])  # fmt: skip
async def test_a_broken_memory_is_none(asked, text):
    memory().write_text(text)
    assert (await find_instance_type("ml.p5.48xlarge")).efa == 31


def efa_of(done):
    """The EFA interfaces that the manifest of a dry run asks for."""
    job = yaml.safe_load(done.ok().json["rendered"])
    (container,) = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"]
    return container["resources"]["limits"].get("vpc.amazonaws.com/efa")


def test_a_manifest_asks_for_what_ec2_says(asked, endpoint, home, hpj):
    endpoint.account.add_cluster("ml", REGION, orchestrator=endpoint.account.eks("research", REGION))
    with home.config.open("a") as config:
        config.write(ON_EKS)
    words = ["submit", "--cluster", "on-eks", "--command", "true", "--dry-run", "--json"]
    words += ["--nodes", "2", "--gpus-per-node", "8", "--instance-type"]
    assert efa_of(hpj(*words, "ml.p5.48xlarge")) == "31"
    assert efa_of(hpj(*words, f"ml.{NEW}")) == "9"
    endpoint.faults.deny(ASK)
    forget_session()
    assert efa_of(hpj(*words, "ml.p5en.48xlarge")) == "16"
    assert efa_of(hpj(*words, "ml.p7.48xlarge")) is None


async def test_the_example_account_has_every_type(endpoint, asked):
    """Those of which the figures are written there by hand are the table's too; of all others it is the table that answers."""
    endpoint.account = example_account(REGION)
    told = await describe_instance_types(Aws(), table())
    assert set(told) == set(table())
    assert {name: from_ec2(one) for name, one in told.items()} == table()
    assert {one.name for one in CHECKED} < set(told)
