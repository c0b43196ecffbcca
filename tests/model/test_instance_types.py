"""The table of instance types: it has what HyperPod has, with AWS's figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hyperpod_jlab.core.instance_types import InstanceType, from_ec2, instance_type, table

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_instance_types.py"


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *words], text=True, capture_output=True)


def test_the_table_has_every_type_that_botocore_knows_for_hyperpod():
    done = make("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_type_without_facts_is_named_and_nothing_is_written(tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("")
    before = table()
    done = make("--published", str(empty), str(empty))
    assert done.returncode == 1
    assert "no facts of: c5.12xlarge " in done.stdout
    table.cache_clear()
    assert table() == before


@pytest.mark.parametrize(
    "name",
    ["p3dn.24xlarge", "p3.16xlarge", "trn1.2xlarge", "trn2u.48xlarge", "inf2.48xlarge", "g4dn.metal", "", None],
)  # fmt: skip
def test_what_hyperpod_cannot_have_is_not_known(name):
    assert instance_type(name) is None


@pytest.mark.parametrize(
    ("name", "accelerators", "model", "efa"),
    [
        ("ml.p4d.24xlarge", 8, "a100", 4),
        ("ml.p5.48xlarge", 8, "h100", 32),
        ("p5en.48xlarge", 8, "h200", 16),
        ("ml.p6-b200.48xlarge", 8, "b200", 8),
        ("ml.p6-b300.48xlarge", 8, "b300", 16),
        ("ml.p6e-gb200.36xlarge", 4, "gb200", None),
        ("ml.g6e.48xlarge", 8, "l40s", 4),
        ("ml.g7e.12xlarge", 2, "rtx-pro-server-6000", 1),
        ("ml.gr6.8xlarge", 1, "l4", 1),
        ("ml.trn1n.32xlarge", 16, "trainium", 16),
        ("ml.trn2.3xlarge", 1, "trainium2", 1),
        ("ml.c5.xlarge", 0, None, 0),
    ],
)
def test_facts_of_types(name, accelerators, model, efa):
    facts = instance_type(name)
    assert facts is not None
    assert (facts.accelerators, facts.model, facts.efa) == (accelerators, model, efa)


def test_neuron_cores_are_counted_as_the_runtime_counts_them():
    counts = {name: table()[name].logical_cores for name in ("trn1.32xlarge", "trn2.48xlarge")}
    assert counts == {"trn1.32xlarge": 2, "trn2.48xlarge": 4}


@pytest.mark.parametrize(
    ("name", "slurm", "eks", "efa_only"),
    [
        ("p5.48xlarge", 32, 81, 50),
        ("p6-b300.48xlarge", 17, 66, 50),
        ("trn2.48xlarge", 16, 65, 50),
        ("g5.8xlarge", 1, 30, 30),
    ],
)
def test_addresses_of_an_instance(name, slurm, eks, efa_only):
    facts = table()[name]
    assert facts.address_count(eks=False) == slurm
    assert facts.address_count(eks=True) == eks
    assert facts.address_count(eks=True, efa_only=True) == efa_only
    assert facts.address_count(eks=False, efa_only=True) == 1


def test_what_ec2_says_of_types():
    told = {
        "InstanceType": "trn2.48xlarge",
        "VCpuInfo": {"DefaultVCpus": 192},
        "MemoryInfo": {"SizeInMiB": 2097152},
        "NeuronInfo": {"NeuronDevices": [{"Count": 16, "Name": "Trainium2", "CoreInfo": {"Count": 8}}]},
        "NetworkInfo": {
            "EfaSupported": True,
            "EfaInfo": {"MaximumEfaInterfaces": 16},
            "MaximumNetworkCards": 16,
            "Ipv4AddressesPerInterface": 50,
        },
    }
    assert from_ec2(told) == table()["trn2.48xlarge"]
    several = {"Gpus": [{"Count": 4, "Name": "RTX PRO Server 6000"}, {"Count": 4}]}
    found = from_ec2({"GpuInfo": several, "NetworkInfo": {"EfaSupported": True}})
    # An EFA of which the number is not told is no "none".
    assert found == InstanceType(0, 0, 8, "rtx-pro-server-6000", efa=None)
    assert from_ec2({}) == InstanceType(0, 0)
