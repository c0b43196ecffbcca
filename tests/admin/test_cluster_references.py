"""What a cluster's configuration refers to: groups of the other file, and file systems."""

from __future__ import annotations

import pytest

from hyperpod_jlab.admin.cluster_config.checks import check
from hyperpod_jlab.admin.cluster_config.document import ClusterConfigFiles
from tests.admin.cluster_files import GONE, SECOND, SLURM, document, spoiled
from tests.admin.test_cluster_config import FIRST, messages


def test_a_right_controller_and_a_typing_error_are_told_apart():
    """One group is forgotten; the other sentence is not said twice of one member."""
    second = spoiled(document(SECOND), "worker_groups", [])
    found = messages(check(ClusterConfigFiles(document(SLURM), second)))
    assert sum(one.endswith("add it to worker_groups") for one in found) == 1
    second = spoiled(document(SECOND), "controller_group", True)
    found = messages(check(ClusterConfigFiles(document(SLURM), second)))
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
    report = check(ClusterConfigFiles(config, second))
    (found,) = [one for one in report.with_level("error") if one.check == "storage"]
    assert "cannot be reached from SageMaker's own network" in found.message
    for number in range(3):
        own = document(SLURM)["VpcConfig"]
        config = spoiled(config, f"InstanceGroups.{number}.OverrideVpcConfig", own)
    report = check(ClusterConfigFiles(config, second))
    assert not any("cannot be reached" in one for one in messages(report))
