"""Instance groups, and whether both files speak of the same: pure.

What the second file has is from AWS' base life cycle scripts (awsome-distributed-ai, 1.architectures/5.sagemaker-hyperpod).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

from hyperpod_jlab.admin.cluster_config.config import ClusterConfig, Group, Provisioning
from hyperpod_jlab.admin.cluster_config.verdict import Verdict, doubtful, wrong
from hyperpod_jlab.core.errors import nearest

PROVISIONING = "provisioning_parameters.json"

_KNOWN = (
    "version",
    "workload_manager",
    "controller_group",
    "login_group",
    "worker_groups",
    "fsx_dns_name",
    "fsx_mountname",
    "fsx_openzfs_dns_name",
    "slurm_configurations",
)
_TEXTS = ("controller_group", "login_group", "fsx_dns_name", "fsx_mountname")
_PARTITION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
"""What Slurm takes for a partition's name without quotes."""

_NO_PARTITION = frozenset({"all", "default"})
"""Words that Slurm reads otherwise where a partition's name stands (slurm.conf(5): PartitionName=DEFAULT)."""


def group_checks(config: ClusterConfig, provisioning: Provisioning | None) -> Iterator[Verdict]:
    """All that is to be said of the groups.

    Args:
        config: The first file.
        provisioning: The second one; None: there is none.
    """
    yield from _names(config)
    if not config.groups:
        yield wrong("groups", "the cluster has no instance group", "InstanceGroups")
    if config.orchestrator == "eks":
        yield from _eks(config, provisioning)
    else:
        yield from _slurm(config, provisioning)


def _names(config: ClusterConfig) -> Iterator[Verdict]:
    for name, times in Counter(one.name for one in config.groups if one.name).items():
        if times > 1:
            places = ", ".join(one.path for one in config.groups if one.name == name)
            yield wrong(
                "groups", f"{times} groups are called {name}: {places}", places.split(",")[0]
            )


def _eks(config: ClusterConfig, provisioning: Provisioning | None) -> Iterator[Verdict]:
    if provisioning is not None:
        yield doubtful(
            "groups",
            f"{PROVISIONING} is of Slurm; a cluster on EKS does not read it",
            None,
            "leave it out",
        )
    for group in config.groups:
        if group.slurm_role:
            yield wrong(
                "groups",
                f"{group.words} has a SlurmConfig, and the cluster is on EKS",
                f"{group.path}.SlurmConfig",
            )


def _slurm(config: ClusterConfig, provisioning: Provisioning | None) -> Iterator[Verdict]:
    own = [group for group in config.groups if group.slurm_role]
    for group in config.groups if own else ():
        if not group.slurm_role:
            yield wrong(
                "groups",
                f"{group.words} says nothing of Slurm, and others do",
                f"{group.path}.SlurmConfig",
                "give each group a SlurmConfig with its NodeType, or none",
            )
    if provisioning is not None:
        if own:
            yield wrong(
                "groups",
                f"the groups say by SlurmConfig what they are, and {PROVISIONING} says it too",
                PROVISIONING,
                f"leave one of them out; with SlurmConfig {PROVISIONING} is not to lie in S3 either",
            )
        yield from _second_file(config, provisioning)
    elif own:
        yield from _by_slurm_config(config)
    elif config.groups:
        yield wrong(
            "groups",
            f"nothing says which group is the controller: there is neither {PROVISIONING} nor a SlurmConfig",
            "InstanceGroups",
            f"hpj admin validate cluster-config.json {PROVISIONING}",
        )


def _by_slurm_config(config: ClusterConfig) -> Iterator[Verdict]:
    controllers = [group for group in config.groups if group.slurm_role == "Controller"]
    if len(controllers) != 1:
        names = ", ".join(str(one.name) for one in controllers)
        said = f"{names} are" if names else "none is"
        yield wrong(
            "groups", f"exactly one group is to be the controller, and {said}", "InstanceGroups"
        )
    for group in controllers:
        yield from _controller(group)
    workers = [group for group in config.groups if group.slurm_role == "Compute"]
    if not workers:
        yield wrong(
            "groups", "no group has the NodeType Compute, so nothing could run", "InstanceGroups"
        )
    for group in config.groups:
        yield from _partitions_of(group)


def _partitions_of(group: Group) -> Iterator[Verdict]:
    path = f"{group.path}.SlurmConfig.PartitionNames"
    if group.slurm_role == "Compute" and not group.partitions:
        yield doubtful(
            "groups", f"{group.words} names no partition, so HyperPod puts it into its own", path
        )
    if group.slurm_role != "Compute" and group.partitions:
        yield wrong("groups", f"{group.words} is no Compute group, and names a partition", path)
    for name in group.partitions:
        yield from _partition(name, path)


def _partition(name: str, path: str) -> Iterator[Verdict]:
    if not _PARTITION.fullmatch(name):
        yield wrong(
            "groups",
            f"'{name[:60]}' is no name of a Slurm partition",
            path,
            "letters, digits, hyphens and underscores",
        )
    elif name.lower() in _NO_PARTITION:
        yield wrong("groups", f"'{name}' means something else to Slurm", path, "take another name")
    elif name == "dev":
        yield doubtful(
            "groups",
            "HyperPod makes a partition dev of all nodes by itself",
            path,
            "take another name",
        )


def _controller(group: Group) -> Iterator[Verdict]:
    if group.count is not None and group.count != 1:
        yield wrong(
            "groups",
            f"{group.words} is the controller and has InstanceCount {group.count}; it is to be 1",
            f"{group.path}.InstanceCount",
        )


# ---------------------------------------------------------------------------------- the second file


def _second_file(config: ClusterConfig, second: Provisioning) -> Iterator[Verdict]:
    yield from _members(second)
    names = {one.name: one for one in config.groups if one.name}
    if second.raw.get("controller_group") in (None, ""):
        yield wrong("groups", "controller_group is missing", f"{PROVISIONING}: controller_group")
    elif second.controller is not None:
        yield from _agrees(second.controller, "controller_group", names)
    if second.controller in names:
        yield from _controller(names[second.controller])
    if second.login is not None:
        yield from _agrees(second.login, "login_group", names)
        if second.login == second.controller:
            yield wrong(
                "groups",
                f"{second.login} is the controller and the login group",
                f"{PROVISIONING}: login_group",
            )
    yield from _workers(second, names)
    spoken = {second.controller, second.login, *(one.name for one in second.workers)}
    for name, group in names.items():
        if name not in spoken:
            yield wrong(
                "groups",
                f"{PROVISIONING} does not speak of the group {name}: its instances would come into no partition",
                group.path,
                "name it among the worker_groups"
                if second.controller in names
                else "name it as the controller_group, or among the worker_groups",
            )


def _members(second: Provisioning) -> Iterator[Verdict]:
    for name in second.raw:
        if name not in _KNOWN:
            near = nearest(name, _KNOWN)
            yield doubtful(
                "groups",
                f"the life cycle scripts know no member {name[:60]}",
                f"{PROVISIONING}: {name[:60]}",
                f"did you mean {near}?" if near else None,
            )
    for name in _TEXTS:
        value = second.raw.get(name)
        if value is not None and not isinstance(value, str):
            words = f"{name} is {json.dumps(value)[:40]}, and is to be a text"
            yield wrong("groups", words, f"{PROVISIONING}: {name}")
    manager = second.raw.get("workload_manager")
    if manager != "slurm":
        said = "is missing" if manager is None else f"is '{str(manager)[:40]}'"
        yield wrong(
            "groups",
            f"workload_manager {said}; it is to be slurm",
            f"{PROVISIONING}: workload_manager",
        )
    if not isinstance(second.raw.get("worker_groups", []), list):
        yield wrong("groups", "worker_groups is no list", f"{PROVISIONING}: worker_groups")


def _agrees(name: str, member: str, names: dict[str, Group]) -> Iterator[Verdict]:
    if name not in names:
        near = nearest(name, names)
        hint = f"did you mean {near}?" if near else f"there are: {', '.join(names) or 'none'}"
        yield wrong(
            "groups", f"the cluster has no group {name[:60]}", f"{PROVISIONING}: {member}", hint
        )


def _workers(second: Provisioning, names: dict[str, Group]) -> Iterator[Verdict]:
    if not second.workers:
        yield wrong(
            "groups",
            "there is no worker group, so nothing could run",
            f"{PROVISIONING}: worker_groups",
        )
    seen = set[str]()
    for worker in second.workers:
        at = f"{PROVISIONING}: {worker.path}"
        if worker.name is None:
            yield wrong("groups", "instance_group_name is missing", at)
            continue
        yield from _agrees(worker.name, worker.path, names)
        if worker.name in {second.controller, second.login}:
            yield wrong(
                "groups",
                f"{worker.name} is a worker group, and the controller or login group too",
                at,
            )
        if worker.name in seen:
            yield wrong("groups", f"{worker.name} is named twice", at)
        seen.add(worker.name)
        if worker.partition is None:
            yield wrong("groups", f"the worker group {worker.name} has no partition_name", at)
        else:
            yield from _partition(worker.partition, at)
