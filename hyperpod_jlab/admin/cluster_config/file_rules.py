"""Rules for a cluster's configuration that need only the files.

What the second file has is from AWS' base life cycle scripts (awsome-distributed-ai, 1.architectures/5.sagemaker-hyperpod).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from hyperpod_jlab.admin.cluster_config.document import (
    PROVISIONING,
    ClusterConfigFiles,
    GroupConfig,
    Provisioning,
    file_system_id,
)
from hyperpod_jlab.admin.cluster_config.results import RuleResult, error, warning
from hyperpod_jlab.admin.cluster_config.schema import create_cluster_shape, problems
from hyperpod_jlab.core.errors import nearest

RuleResults = Iterator[RuleResult]


def check_schema(documents: ClusterConfigFiles) -> RuleResults:
    """What botocore's model of CreateCluster finds.

    Raises:
        UnsupportedError: boto3 is not installed.
    """
    return problems(dict(documents.cluster), create_cluster_shape())


def check_placeholders(documents: ClusterConfigFiles) -> RuleResults:
    """Texts such as ``${ROLE}`` or ``<role>`` were to be replaced."""
    for prefix, document in (("", documents.cluster), (f"{PROVISIONING}: ", documents.provisioning or {})):
        for path, text in _texts(dict(document)):
            if "${" in text or text.startswith("<"):
                yield error(f"'{text[:60]}' is a placeholder that is not filled in", f"{prefix}{path}")


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, element in value.items():
            yield from _texts(element, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, element in enumerate(value):
            yield from _texts(element, f"{path}[{number}]")
    elif isinstance(value, str):
        yield path, value


def check_one_orchestrator(documents: ClusterConfigFiles) -> RuleResults:
    """Slurm or EKS."""
    scheduler = documents.cluster.get("Orchestrator")
    if isinstance(scheduler, dict) and {"Eks", "Slurm"} <= scheduler.keys():
        message = "Orchestrator has both Eks and Slurm, but only one is allowed"
        yield error(message, "Orchestrator", "remove one of them")


_PARTITION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
"""Characters that Slurm accepts in a partition's name without quotes."""

_RESERVED_PARTITIONS = frozenset({"all", "default"})
"""Words that Slurm interprets in place of a partition's name (slurm.conf(5): PartitionName=DEFAULT)."""


def check_group_names(documents: ClusterConfigFiles) -> RuleResults:
    """There are groups, each with its own name and a type."""
    if not documents.groups:
        yield error("the cluster has no instance group", "InstanceGroups")
    for name, times in Counter(group.name for group in documents.groups if group.name).items():
        if times > 1:
            paths = [group.path for group in documents.groups if group.name == name]
            message = f"{times} instance groups have the same name {name}: {', '.join(paths)}"
            yield error(message, paths[0])
    for group in documents.groups:
        if not group.types:
            yield error(f"{group.title} has no instance type", f"{group.path}.InstanceType")


def check_slurm_on_eks(documents: ClusterConfigFiles) -> RuleResults:
    """A cluster on EKS has no settings of Slurm."""
    if not documents.on_eks:
        return
    if documents.second is not None:
        message = f"{PROVISIONING} is for Slurm; a cluster on EKS does not read it"
        yield warning(message, None, "remove it")
    for group in documents.groups:
        if group.slurm_role:
            message = f"{group.title} has a SlurmConfig, but the cluster is on EKS"
            yield error(message, f"{group.path}.SlurmConfig")


def check_roles_are_set_once(documents: ClusterConfigFiles) -> RuleResults:
    """Each group declares its Slurm role, or the second file does for all."""
    if documents.on_eks:
        return
    has_slurm_config = any(group.slurm_role for group in documents.groups)
    for group in documents.groups if has_slurm_config else ():
        if not group.slurm_role:
            message = f"{group.title} has no SlurmConfig, but other groups have one"
            hint = "give either all groups a SlurmConfig with a NodeType, or none"
            yield error(message, f"{group.path}.SlurmConfig", hint)
    if has_slurm_config and documents.second is not None:
        message = f"the roles of groups are given twice: by SlurmConfig and by {PROVISIONING}"
        hint = f"remove one of them; with SlurmConfig, also remove {PROVISIONING} from S3"
        yield error(message, PROVISIONING, hint)
    if not has_slurm_config and documents.second is None and documents.groups:
        message = f"no group is marked as the controller: there is neither {PROVISIONING} nor a SlurmConfig"
        hint = f"hpj admin validate cluster-config.json {PROVISIONING}"
        yield error(message, "InstanceGroups", hint)


def check_roles_by_slurm_config(documents: ClusterConfigFiles) -> RuleResults:
    """One controller and compute groups, by the groups themselves."""
    by_role: dict[str, list[GroupConfig]] = {}
    for group in documents.groups:
        if group.slurm_role:
            by_role.setdefault(group.slurm_role, []).append(group)
    if documents.on_eks or documents.second or not by_role:
        return
    controllers = by_role.get("Controller", [])
    if len(controllers) != 1:
        controller_names = ", ".join(str(controller.name) for controller in controllers)
        subject = f"{controller_names} are" if controller_names else "none is"
        yield error(f"exactly one group must be the controller, but {subject}", "InstanceGroups")
    for group in controllers:
        yield from _controller(group)
    if "Compute" not in by_role:
        message = "no group has the NodeType Compute, so no job could run"
        yield error(message, "InstanceGroups")
    for group in documents.groups:
        path = f"{group.path}.SlurmConfig.PartitionNames"
        if group.slurm_role == "Compute" and not group.partitions:
            message = f"{group.title} names no partition, so HyperPod creates a partition for it"
            yield warning(message, path)
        if group.slurm_role != "Compute" and group.partitions:
            yield error(f"{group.title} names a partition, but is not a Compute group", path)
        for name in group.partitions:
            yield from _partition(name, path)


def _controller(group: GroupConfig) -> RuleResults:
    if group.count not in {None, 1}:
        message = f"{group.title} is the controller and must have InstanceCount 1"
        yield error(f"{message}, not {group.count}", f"{group.path}.InstanceCount")


def _partition(name: str, path: str) -> RuleResults:
    if not _PARTITION.fullmatch(name):
        hint = "letters, digits, hyphens and underscores"
        yield error(f"'{name[:60]}' is not a valid name of a Slurm partition", path, hint)
    elif name.lower() in _RESERVED_PARTITIONS:
        yield error(f"'{name}' is a reserved word of Slurm", path, "use another name")
    elif name == "dev":
        message = "HyperPod itself creates a partition dev with all nodes"
        yield warning(message, path, "use another name")


_MEMBERS = (
    *("version", "workload_manager", "controller_group", "login_group", "worker_groups"),
    *("fsx_dns_name", "fsx_mountname", "fsx_openzfs_dns_name", "slurm_configurations"),
)


def check_second_file_members(documents: ClusterConfigFiles) -> RuleResults:
    """Names and types in the second file."""
    second = None if documents.on_eks else documents.second
    for name, value in second.raw.items() if second else ():
        path = f"{PROVISIONING}: {name[:60]}"
        if name not in _MEMBERS:
            suggestion = nearest(name, _MEMBERS)
            hint = f"did you mean {suggestion}?" if suggestion else None
            yield warning(f"the lifecycle scripts do not know the member {name[:60]}", path, hint)
        elif name == "worker_groups" and not isinstance(value, list):
            yield error("worker_groups must be a list", path)
        elif (
            name in {"controller_group", "login_group", "fsx_dns_name", "fsx_mountname"}
            and value is not None
            and not isinstance(value, str)
        ):
            yield error(f"{name} must be text, not {json.dumps(value)[:40]}", path)
    manager = second.raw.get("workload_manager") if second else "slurm"
    if manager != "slurm":
        problem = "is missing" if manager is None else f"is '{str(manager)[:40]}'"
        path = f"{PROVISIONING}: workload_manager"
        yield error(f"workload_manager {problem}; it must be slurm", path)


def check_roles_by_second_file(documents: ClusterConfigFiles) -> RuleResults:
    """One controller and worker groups, by the second file."""
    second = None if documents.on_eks else documents.second
    if second is None:
        return
    groups_by_name = {item.name: item for item in documents.groups if item.name}
    controller, login = second.controller, second.login
    if second.raw.get("controller_group") in (None, ""):
        yield error("controller_group is missing", f"{PROVISIONING}: controller_group")
    for member, name in (("controller_group", controller), ("login_group", login)):
        if name is not None:
            yield from _check_group_exists(name, f"{PROVISIONING}: {member}", groups_by_name)
    if controller in groups_by_name:
        yield from _controller(groups_by_name[controller])
    if login is not None and login == controller:
        message = f"{login} is both the controller and the login group"
        yield error(message, f"{PROVISIONING}: login_group")
    yield from _workers(second, groups_by_name)
    role_names = {controller, login, *(name for _, name, _ in second.workers)}
    for name, group in groups_by_name.items():
        if name not in role_names:
            message = f"{PROVISIONING} does not name the group {name}, so its instances would be in no partition"
            hint = "add it to worker_groups"
            if controller not in groups_by_name:
                hint = "add it as controller_group or to worker_groups"
            yield error(message, group.path, hint)


def _check_group_exists(name: str, path: str, groups_by_name: Mapping[str, GroupConfig]) -> RuleResults:
    if name not in groups_by_name:
        suggestion = nearest(name, groups_by_name)
        hint = f"valid values: {', '.join(groups_by_name) or 'none'}"
        if suggestion:
            hint = f"did you mean {suggestion}?"
        yield error(f"the cluster has no instance group {name[:60]}", path, hint)


def _workers(second: Provisioning, groups_by_name: Mapping[str, GroupConfig]) -> RuleResults:
    if not second.workers:
        message = "there is no worker group, so no job could run"
        yield error(message, f"{PROVISIONING}: worker_groups")
    seen_groups = set[str]()
    for path, name, partition in second.workers:
        file_path = f"{PROVISIONING}: {path}"
        if name is None:
            yield error("instance_group_name is missing", file_path)
            continue
        yield from _check_group_exists(name, file_path, groups_by_name)
        if name in {second.controller, second.login}:
            message = f"{name} is a worker group, but also the controller or login group"
            yield error(message, file_path)
        if name in seen_groups:
            yield error(f"{name} is listed twice", file_path)
        seen_groups.add(name)
        if partition is None:
            yield error(f"the worker group {name} has no partition_name", file_path)
        else:
            yield from _partition(partition, file_path)


SCRIPT_PREFIX = "s3://sagemaker-"
"""Buckets that AmazonSageMakerClusterInstanceRolePolicy lets instances read; a role may allow others."""


def check_script_names(documents: ClusterConfigFiles) -> RuleResults:
    """Folder and name of the lifecycle scripts."""
    for group in documents.groups:
        path, folder, script = f"{group.path}.LifeCycleConfig", group.script_folder, group.script
        if group.restricted:
            continue
        if folder is None and script is None:
            if documents.on_eks or not group.slurm_role:
                hint = "AWS then sets up the instances from their image alone"
                yield warning(f"{group.title} has no lifecycle scripts", path, hint)
            continue
        if folder is None or script is None:
            missing = "SourceS3Uri" if folder is None else "OnCreate"
            message = f"the lifecycle scripts of {group.title} have no {missing}"
            yield error(message, f"{path}.{missing}")
        if folder is not None and not folder.startswith(SCRIPT_PREFIX):
            message = f"{folder[:80]} does not begin with {SCRIPT_PREFIX}"
            hint = "AmazonSageMakerClusterInstanceRolePolicy allows reading only such buckets; allow the role of the instances to read this bucket too"
            yield warning(message, f"{path}.SourceS3Uri", hint)
        if script is not None and script.startswith(("/", "s3:")):
            message = f"OnCreate must be a script's name below SourceS3Uri, not {script[:60]}"
            yield error(message, f"{path}.OnCreate")


_EFS = re.compile(r"fs-[0-9a-f]+\.efs\.")


def check_mount_paths(documents: ClusterConfigFiles) -> RuleResults:
    """Each path is mounted once, and both files agree."""
    second = documents.second
    if second is not None and (second.dns_name is None) != (second.mount_name is None):
        missing = "fsx_mountname" if second.mount_name is None else "fsx_dns_name"
        message = f"{missing} is missing, but its counterpart is set"
        yield error(message, f"{PROVISIONING}: {missing}")
    for group in documents.groups:
        paths = [mount.mount_path for mount in group.mounts]
        for number, mount in enumerate(group.mounts):
            if mount.mount_path in paths[:number]:
                yield error(f"{group.title} mounts two file systems at the same path", mount.path)
            if (
                mount.mount_path in {None, "/fsx"}
                and second is not None
                and None not in (mount.dns_name, second.dns_name)
                and mount.dns_name != second.dns_name
            ):
                message = f"{group.title} mounts {mount.dns_name}, and {PROVISIONING} {second.dns_name}, both at /fsx"
                yield error(message, mount.path)


def check_mount_names(documents: ClusterConfigFiles) -> RuleResults:
    """DNS names are of FSx, and there is a network to reach it from."""
    for mount in documents.mounts:
        name = mount.dns_name
        if name is None:
            continue  # the schema reports it
        if not all(map(documents.subnets_of, mount.groups)):
            message = f"{name[:80]} cannot be reached from SageMaker's own network, and the cluster names no subnets"
            yield error(message, mount.path, "set VpcConfig")
        if _EFS.match(name):
            message = f"'{name[:80]}' is an EFS file system, but a Lustre file system is needed"
            yield error(message, mount.path, "use an FSx for Lustre file system")
        elif file_system_id(name) is None:
            yield warning(f"'{name[:80]}' is not the DNS name of an FSx file system", mount.path)


def check_subnets_are_named(documents: ClusterConfigFiles) -> RuleResults:
    """The cluster is in a network of yours."""
    if documents.on_eks and not documents.subnets:
        message = "a cluster on EKS needs VpcConfig: its nodes are in the EKS cluster's VPC"
        yield error(message, "VpcConfig")
    elif not documents.subnets:
        message = "the cluster names no subnets, so it will be in a network of SageMaker"
        yield warning(message, "VpcConfig", "with VpcConfig it can reach your file systems")
