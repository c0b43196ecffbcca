"""The settings of a HyperPod cluster in words."""

from __future__ import annotations

import botocore.session
import pytest

from hyperpod_jlab.core.hyperpod import _HANDLED_FIELDS, SEPARATE_FIELDS, settings_of


@pytest.mark.parametrize(
    ("told", "name", "value", "meaning"),
    [
        ({"NodeRecovery": "Automatic"}, "node-recovery", "Automatic", "HyperPod reboots"),
        ({"NodeRecovery": "None"}, "node-recovery", "None", "stay as they are"),
        ({"NodeRecovery": "Sometimes"}, "node-recovery", "Sometimes", None),
        ({"NodeProvisioningMode": "Continuous"}, "provisioning", "Continuous", "one by one"),
        ({"AutoScaling": {"Mode": "Disable"}}, "autoscaling", "Disable", "only when you change it"),
        (
            {"AutoScaling": {"Mode": "Enable", "AutoScalerType": "Karpenter", "Status": "Creating"}},
            *("autoscaling", "Enable by Karpenter", "it is Creating"),
        ),
        ({"TieredStorageConfig": {"Mode": "Disable"}}, "tiered-storage", "Disable", "do not keep"),
        ({"VpcConfig": {"Subnets": ["a", "b"]}}, "subnets", "a, b", "network interfaces"),
        ({"ClusterRole": "arn:r"}, "cluster-role", "arn:r", "adds and removes"),
        (
            {"Orchestrator": {"Slurm": {"SlurmConfigStrategy": "Merge"}}},
            *("slurm-configuration", "Merge", "partitions"),
        ),
        (
            {"Orchestrator": {"Slurm": {"AccountingDatabase": {"Endpoint": "db", "Port": 3306}}}},
            *("accounting-database", "db:3306", "accounting"),
        ),
        ({"Orchestrator": {"Nomad": {"A": 1}}}, "Orchestrator.Nomad", '{"A": 1}', None),
        ({"RestrictedInstanceGroups": [{"InstanceGroupName": "nova"}]}, *("restricted-groups", "nova", "Nova")),
        (
            {"RestrictedInstanceGroupsConfig": {"SharedEnvironmentConfig": {"A": "b"}}},
            *("restricted-environment", '{"A": "b"}', "environment"),
        ),
        ({"SomethingNew": {"B": [1], "A": True}}, "SomethingNew", '{"A": true, "B": [1]}', None),
        ({"SomethingNew": "Fast"}, "SomethingNew", "Fast", None),
    ],
)
def test_the_table(told, name, value, meaning):
    (found,) = settings_of(told)
    assert (found.name, found.value) == (name, value)
    assert (found.meaning is None) if meaning is None else (meaning in (found.meaning or ""))


def test_what_is_shown_elsewhere_or_empty_is_none():
    assert settings_of(dict.fromkeys(SEPARATE_FIELDS, "x")) == ()
    assert settings_of({"VpcConfig": {}, "SomethingNew": None, "Other": []}) == ()


def test_all_that_this_boto3_knows_is_known_here():
    model = botocore.session.Session().get_service_model("sagemaker")
    members = set(model.shape_for("DescribeClusterResponse").members)
    assert members <= SEPARATE_FIELDS | _HANDLED_FIELDS
