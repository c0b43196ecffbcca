"""What admins are told of the addresses that instances take, of the facts behind it, and of buckets with names of their own."""

from __future__ import annotations

import pytest

from hyperpod_jlab.admin.cluster_config.checks import check
from hyperpod_jlab.admin.cluster_config.document import ClusterConfigFiles
from hyperpod_jlab.core import instance_types
from tests.admin.cluster_files import EKS, SECOND, SLURM, document, spoiled
from tests.admin.test_cluster_config import FIRST, account, group_of, messages, of, subnet_of, told

__all__ = ["account", "told"]

P5_ON_EKS = {"InstanceGroups.0.InstanceType": "ml.p5.48xlarge", "InstanceGroups.0.InstanceCount": 2}


@pytest.mark.parametrize(
    ("free", "more", "level", "words"),
    [
        # SageMaker's guide has 81 for a P5 on EKS: 50 of its first card, for pods, and one of each of the others.
        (162, {}, "ok", ""),
        (161, {}, "warning", "2 instances need 162 addresses, but the subnets have 161 free: pods"),
        (63, {}, "error", "2 instances need 162 addresses, but the subnets have 63 free"),
        (100, {"InstanceGroups.0.NetworkInterface": {"InterfaceType": "efa-only"}}, "ok", ""),
        (99, {"InstanceGroups.0.NetworkInterface": {"InterfaceType": "efa-only"}}, "warning", "2 instances need 100 addresses"),
    ],
)  # fmt: skip
def test_addresses_are_counted_as_aws_states_them(account, told, free, more, level, words):
    subnet_of(account).free = free
    config = document(EKS)
    for place, value in (P5_ON_EKS | more).items():
        config = spoiled(config, place, value)
    _, verdicts = told(config)
    (said,) = [one for one in verdicts if one["check"] == "network"]
    assert (said["level"], words in said["message"]) == (level, True)


def test_without_the_right_to_ask_the_table_says_what_types_are(account, told, endpoint):
    endpoint.faults.deny("ec2:DescribeInstanceTypes")
    group_of(account).inbound.pop(0)
    subnet_of(account).free = 129
    _, verdicts = told(document(SLURM), document(SECOND))
    said = of(verdicts, "error")
    assert any("6 instances need 130 addresses" in one for one in said)
    assert any("which EFA on ml.p5.48xlarge needs" in one for one in said)
    assert any("ec2:DescribeInstanceTypes" in one for one in of(verdicts, "unknown"))


def test_a_type_that_nobody_knows_is_said_where_addresses_are_counted(account, told, monkeypatch):
    monkeypatch.setattr(instance_types, "table", dict)
    del account.ground.types["p5.48xlarge"]
    _, verdicts = told(document(SLURM), document(SECOND))
    words = "the number of addresses that an instance of ml.p5.48xlarge needs is unknown; 1 is assumed"
    assert any(words in one for one in of(verdicts, "unknown"))


def test_a_bucket_of_another_name_is_a_warning():
    """Its role may allow more than AWS' managed policy does."""
    given = spoiled(document(SLURM), f"{FIRST}.LifeCycleConfig.SourceS3Uri", "s3://my-bucket/scripts")
    report = check(ClusterConfigFiles(given, document(SECOND)))
    assert messages(report) == []
    (said,) = messages(report, "warning")
    assert "s3://my-bucket/scripts does not begin with s3://sagemaker-" in said
    assert "allow the role of the instances to read this bucket too" in said
