"""What a cluster's configuration refers to: groups of the other file, file systems, roles, names that are taken."""

from __future__ import annotations

import pytest

from hyperpod_jlab.admin.cluster_config.document import ClusterConfigFiles
from hyperpod_jlab.admin.cluster_config.rules import check
from testbed.aws.example_ground import ROLE
from tests.admin.cluster_files import GONE, SECOND, SLURM, document, spoiled
from tests.admin.test_cluster_config import FIRST, account, messages, of, told
from tests.aws.conftest import REGION

__all__ = ["account", "told"]


def test_a_right_controller_and_a_typing_error_are_told_apart():
    """One group is forgotten; the other sentence is not said twice of one member."""
    second = spoiled(document(SECOND), "worker_groups", [])
    found = messages(check(ClusterConfigFiles(document(SLURM), second), REGION))
    assert sum(one.endswith("add it to worker_groups") for one in found) == 1
    second = spoiled(document(SECOND), "controller_group", True)
    found = messages(check(ClusterConfigFiles(document(SLURM), second), REGION))
    assert not any("controller_group is missing" in one for one in found)


@pytest.mark.parametrize("member", [None, FIRST])
def test_a_file_system_is_not_reached_without_a_network(member):
    """Whichever file names it; a group that has its own network reaches it."""
    config, second = spoiled(document(SLURM), "VpcConfig", GONE), document(SECOND)
    if member:
        second = {name: one for name, one in second.items() if not name.startswith("fsx_")}
        name = document(SECOND)["fsx_dns_name"]
        mount = {"FsxLustreConfig": {"DnsName": name, "MountName": "x5kjbbmv"}}
        config = spoiled(config, f"{FIRST}.InstanceStorageConfigs", [mount])
    report = check(ClusterConfigFiles(config, second), REGION)
    (found,) = [one for one in report.with_level("error") if one.check == "storage"]
    assert "cannot be reached from SageMaker's own network" in found.message
    for number in range(3):
        own = document(SLURM)["VpcConfig"]
        config = spoiled(config, f"InstanceGroups.{number}.OverrideVpcConfig", own)
    report = check(ClusterConfigFiles(config, second), REGION)
    assert not any("cannot be reached" in one for one in messages(report))


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::999999999999:role/HyperPodExecutionRole",
        "arn:aws:iam::111122223333:role/service-role/HyperPodExecutionRole",
    ],
)
def test_a_role_of_another_account_or_path_is_not_there(account, told, arn):
    code, verdicts = told(spoiled(document(SLURM), f"{FIRST}.ExecutionRole", arn), document(SECOND))
    words = f"role {arn} not found did you mean arn:aws:iam::111122223333:role/{ROLE}?"
    assert (code, of(verdicts, "error")) == (2, [f"InstanceGroups[0].ExecutionRole: {words}"])


def test_a_name_that_a_failed_cluster_has(account, told):
    account.add_cluster("vision-slurm", REGION, status="Failed")
    (found,) = of(told(document(SLURM), document(SECOND))[1], "error")
    assert "hpj admin delete-cluster vision-slurm" in found
