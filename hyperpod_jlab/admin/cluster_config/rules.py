"""The table of rules for a cluster's configuration. No rule hides the findings of another one.

Each function is a row of the table. `rule` marks those that need only the files, `aws_rule` those that ask AWS: such a rule looks at one item at a time, and
where AWS does not answer, its check is ``unknown`` at that item's place. What the second file has is from AWS' base life cycle scripts
(awsome-distributed-ai, 1.architectures/5.sagemaker-hyperpod).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from hyperpod_jlab.admin.cluster_config.document import (
    PROVISIONING,
    ClusterConfigFiles,
    ClusterMount,
    GroupConfig,
    Network,
    Provisioning,
    RuleResult,
    file_system_id,
)
from hyperpod_jlab.admin.cluster_config.facts import Facts
from hyperpod_jlab.admin.cluster_config.schema import input_shape, problems
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, nearest
from hyperpod_jlab.core.network import Rule, SecurityGroup, check_lustre_access
from hyperpod_jlab.core.wire import Wire, wire_property

T = TypeVar("T")


class CheckInfo(NamedTuple):
    """A check: its title, and its message if it found nothing."""

    title: str
    ok_message: str


CHECKS = {
    "files": CheckInfo("The files", "files are readable and have no placeholders left"),
    "schema": CheckInfo("Members and values", "members and values match the AWS API"),
    "groups": CheckInfo("Instance groups", "each group is placed"),
    "scripts": CheckInfo("Lifecycle scripts", "scripts found"),
    "storage": CheckInfo("File systems and volumes", "found and reachable"),
    "network": CheckInfo(
        "Network",
        "subnets are private and large enough, and security groups allow the traffic that is needed",
    ),
    "capacity": CheckInfo(
        "Instance types and quotas", "types are available, and quotas allow them"
    ),
    "role": CheckInfo("Execution roles", "instances can assume them"),
    "cluster": CheckInfo("The cluster's name", "the name is available"),
    "eks": CheckInfo("The EKS cluster", "found and active"),
}
"""Checks in their order."""

OFFLINE = frozenset({"files", "schema", "groups"})
"""Checks that need no AWS; the others are only partly done without it."""


@dataclass(frozen=True)
class Report(Wire):
    """The results of all checks, in order."""

    checks: tuple[RuleResult, ...]

    def with_level(self, level: str) -> list[RuleResult]:
        """The verdicts of a level."""
        return [rule_result for rule_result in self.checks if rule_result.level == level]

    @property
    @wire_property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.with_level("error")


def check(documents: ClusterConfigFiles, region: str | None) -> Report:
    """Check the files alone.

    Args:
        documents: The files.
        region: The region of the cluster; None: unknown.

    Raises:
        UnsupportedError: boto3 is not installed; the check needs its model.
    """
    return _report(documents, _check_files(documents, region), with_aws=False)


async def check_with_aws(aws: Aws, documents: ClusterConfigFiles) -> Report:
    """Check the files with AWS' data.

    Raises:
        UnsupportedError: boto3 is not installed.
        InvalidInputError: The region is unknown.
    """
    facts = Facts(aws, await aws.region(), documents)
    verdicts_found = _check_files(documents, facts.region)
    for rule_results in await asyncio.gather(*(run_rule(facts) for run_rule in AWS_RULES)):
        verdicts_found += rule_results
    return _report(documents, verdicts_found, with_aws=True)


def _check_files(documents: ClusterConfigFiles, region: str | None) -> list[RuleResult]:
    rule_results = list(_files(documents, region))
    for name, run in FILE_RULES:
        rule_results += [replace(rule_result, check=name) for rule_result in run(documents)]
    return rule_results


def _report(
    documents: ClusterConfigFiles, rule_results: Sequence[RuleResult], *, with_aws: bool
) -> Report:
    # One message is enough if several items of a check failed for the same reason.
    by_key: dict[object, RuleResult] = {}
    for rule_result in rule_results:
        by_key.setdefault(
            (rule_result.check, rule_result.message)
            if rule_result.level == "unknown"
            else rule_result,
            rule_result,
        )
    remaining = list(by_key.values())
    names = {rule_result.check for rule_result in remaining}
    for name, (title, ok_message) in CHECKS.items():
        if name == "eks" and not documents.on_eks:
            continue
        if not with_aws and name not in OFFLINE:
            remaining.append(RuleResult(name, "unknown", f"{title}: skipped (--offline)"))
        elif name not in names:
            missing = _missing(name, documents)
            remaining.append(
                RuleResult(name, "unknown" if missing else "ok", missing or ok_message)
            )
            if name == "storage" and not any(documents.mounts):
                remaining[-1] = RuleResult(name, "ok", "the configuration names no file system")
            if name == "scripts" and not any(
                rule_result.script_folder for rule_result in documents.groups
            ):
                remaining[-1] = RuleResult(name, "ok", "the configuration names none")
    check_order = list(CHECKS)
    return Report(
        tuple(sorted(remaining, key=lambda rule_result: check_order.index(rule_result.check)))
    )


def _missing(name: str, documents: ClusterConfigFiles) -> str | None:
    """Why a check found no item, although every cluster has one."""
    if name == "cluster" and not documents.name:
        return "could not be checked: ClusterName is missing"
    if name in {"groups", "capacity", "role"} and not documents.groups:
        return "could not be checked: there are no instance groups"
    if name == "role" and not any(group.role for group in documents.groups):
        return "could not be checked: the configuration names no role"
    return None


# ---------------------------------------------------------------------------------- the table

RuleResults = Iterator[RuleResult]
AsyncRuleResults = AsyncIterator[RuleResult]

FILE_RULES: list[tuple[str, Callable[[ClusterConfigFiles], RuleResults]]] = []
AWS_RULES: list[Callable[[Facts], Awaitable[list[RuleResult]]]] = []


def rule(
    name: str,
) -> Callable[
    [Callable[[ClusterConfigFiles], RuleResults]], Callable[[ClusterConfigFiles], RuleResults]
]:
    """Add a rule that needs only the files to a check."""

    def add(
        run: Callable[[ClusterConfigFiles], RuleResults],
    ) -> Callable[[ClusterConfigFiles], RuleResults]:
        FILE_RULES.append((name, run))
        return run

    return add


def aws_rule(
    name: str, items: Callable[[ClusterConfigFiles], Iterable[T]], path: Callable[[T], str | None]
) -> Callable[[Callable[[Facts, T], AsyncRuleResults]], Callable[[Facts, T], AsyncRuleResults]]:
    """Add a rule that asks AWS to a check.

    Args:
        name: The check.
        items: What it looks at, one by one.
        path: The place of an item in the files.
    """

    def add(run: Callable[[Facts, T], AsyncRuleResults]) -> Callable[[Facts, T], AsyncRuleResults]:
        async def run_one(facts: Facts, item: T) -> list[RuleResult]:
            rule_results = []
            try:
                async for rule_result in run(facts, item):
                    rule_results += [replace(rule_result, check=name)]
            except NotFoundError as error_:
                rule_results.append(
                    RuleResult(name, "error", error_.message, error_.hint, path(item))
                )
            except HyperpodError as error_:
                message = f"could not be checked: {error_.message}"
                rule_results.append(RuleResult(name, "unknown", message, error_.hint, path(item)))
            return rule_results

        async def run_all(facts: Facts) -> list[RuleResult]:
            results = await asyncio.gather(
                *(run_one(facts, target) for target in items(facts.documents))
            )
            return [rule_result for rule_results in results for rule_result in rule_results]

        AWS_RULES.append(run_all)
        return run

    return add


def error(message: str, path: str | None = None, hint: str | None = None) -> RuleResult:
    """A problem that prevents creating the cluster, or breaks it."""
    return RuleResult("", "error", message, hint, path)


def warning(message: str, path: str | None = None, hint: str | None = None) -> RuleResult:
    """A problem that does not prevent creating the cluster."""
    return RuleResult("", "warning", message, hint, path)


def unknown(message: str, path: str | None = None) -> RuleResult:
    """Something that could not be checked."""
    return RuleResult("", "unknown", message, None, path)


# ---------------------------------------------------------------------------------- files and schema


def _files(documents: ClusterConfigFiles, region: str | None) -> RuleResults:
    """What needs more than the documents: the model, and the region."""
    yield from problems(dict(documents.cluster), input_shape("CreateCluster"))
    match = _EKS_ARN.fullmatch(documents.eks_arn or "")
    if documents.on_eks and documents.eks_arn and not match:
        message = f"'{documents.eks_arn[:80]}' is not the ARN of an EKS cluster"
        yield RuleResult("eks", "error", message, None, EKS_PATH)
    elif documents.on_eks and match and region is not None and match["region"] != region:
        message = f"the EKS cluster is in {match['region']}, but the HyperPod cluster is to be created in {region}"
        yield RuleResult("eks", "error", message, None, EKS_PATH)


EKS_PATH = "Orchestrator.Eks.ClusterArn"
_EKS_ARN = re.compile(r"arn:[a-z0-9-]+:eks:(?P<region>[a-z0-9-]+):\d{12}:cluster/.+")


@rule("files")
def _placeholders(documents: ClusterConfigFiles) -> RuleResults:
    """Texts such as ``${ROLE}`` or ``<role>`` were to be replaced."""
    for prefix, document in (
        ("", documents.cluster),
        (f"{PROVISIONING}: ", documents.provisioning or {}),
    ):
        for path, text in _texts(dict(document)):
            if "${" in text or text.startswith("<"):
                yield error(
                    f"'{text[:60]}' is a placeholder that is not filled in", f"{prefix}{path}"
                )


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, element in value.items():
            yield from _texts(element, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, element in enumerate(value):
            yield from _texts(element, f"{path}[{number}]")
    elif isinstance(value, str):
        yield path, value


@rule("files")
def _readable(documents: ClusterConfigFiles) -> RuleResults:
    if documents.unread is not None:
        yield error(documents.unread)


@rule("schema")
def _one_orchestrator(documents: ClusterConfigFiles) -> RuleResults:
    scheduler = documents.cluster.get("Orchestrator")
    if isinstance(scheduler, dict) and {"Eks", "Slurm"} <= scheduler.keys():
        message = "Orchestrator has both Eks and Slurm, but only one is allowed"
        yield error(message, "Orchestrator", "remove one of them")


# ---------------------------------------------------------------------------------- instance groups

_PARTITION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
"""Characters that Slurm accepts in a partition's name without quotes."""

_RESERVED_PARTITIONS = frozenset({"all", "default"})
"""Words that Slurm interprets in place of a partition's name (slurm.conf(5): PartitionName=DEFAULT)."""


@rule("groups")
def _groups_without_second_file(documents: ClusterConfigFiles) -> RuleResults:
    if documents.unread is not None:
        yield unknown("could not be checked without the second file")


@rule("groups")
def _names(documents: ClusterConfigFiles) -> RuleResults:
    if not documents.groups:
        yield error("the cluster has no instance group", "InstanceGroups")
    for name, times in Counter(group.name for group in documents.groups if group.name).items():
        if times > 1:
            paths = [group.path for group in documents.groups if group.name == name]
            yield error(
                f"{times} instance groups have the same name {name}: {', '.join(paths)}", paths[0]
            )


@rule("groups")
def _slurm_on_eks(documents: ClusterConfigFiles) -> RuleResults:
    if not documents.on_eks:
        return
    if documents.second is not None:
        message = f"{PROVISIONING} is for Slurm; a cluster on EKS does not read it"
        yield warning(message, None, "remove it")
    for group in documents.groups:
        if group.slurm_role:
            message = f"{group.title} has a SlurmConfig, but the cluster is on EKS"
            yield error(message, f"{group.path}.SlurmConfig")


@rule("groups")
def _roles_are_set_once(documents: ClusterConfigFiles) -> RuleResults:
    """Each group declares its Slurm role, or the second file does for all."""
    if documents.on_eks or documents.unread is not None:
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


@rule("groups")
def _roles_by_slurm_config(documents: ClusterConfigFiles) -> RuleResults:
    by_role: dict[str, list[GroupConfig]] = {}
    for group in documents.groups:
        if group.slurm_role:
            by_role.setdefault(group.slurm_role, []).append(group)
    if documents.on_eks or documents.second or documents.unread is not None or not by_role:
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
            yield warning(
                f"{group.title} names no partition, so HyperPod creates a partition for it", path
            )
        if group.slurm_role != "Compute" and group.partitions:
            yield error(f"{group.title} names a partition, but is not a Compute group", path)
        for name in group.partitions:
            yield from _partition(name, path)


def _controller(group: GroupConfig) -> RuleResults:
    if group.count not in {None, 1}:
        message = (
            f"{group.title} is the controller and must have InstanceCount 1, not {group.count}"
        )
        yield error(message, f"{group.path}.InstanceCount")


def _partition(name: str, path: str) -> RuleResults:
    if not _PARTITION.fullmatch(name):
        hint = "letters, digits, hyphens and underscores"
        yield error(f"'{name[:60]}' is not a valid name of a Slurm partition", path, hint)
    elif name.lower() in _RESERVED_PARTITIONS:
        yield error(f"'{name}' is a reserved word of Slurm", path, "use another name")
    elif name == "dev":
        message = "HyperPod itself creates a partition dev with all nodes"
        yield warning(message, path, "use another name")


# The second file

_MEMBERS = (
    *("version", "workload_manager", "controller_group", "login_group", "worker_groups"),
    *("fsx_dns_name", "fsx_mountname", "fsx_openzfs_dns_name", "slurm_configurations"),
)


@rule("groups")
def _members_of_second_file(documents: ClusterConfigFiles) -> RuleResults:
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


@rule("groups")
def _roles_by_second_file(documents: ClusterConfigFiles) -> RuleResults:
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


def _check_group_exists(
    name: str, path: str, groups_by_name: Mapping[str, GroupConfig]
) -> RuleResults:
    if name not in groups_by_name:
        suggestion = nearest(name, groups_by_name)
        hint = (
            f"did you mean {suggestion}?"
            if suggestion
            else f"valid values: {', '.join(groups_by_name) or 'none'}"
        )
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


# ---------------------------------------------------------------------------------- life cycle scripts

SCRIPT_PREFIX = "s3://sagemaker-"
"""Buckets that AmazonSageMakerClusterInstanceRolePolicy lets instances read; a role may allow others."""


@rule("scripts")
def _script_names(documents: ClusterConfigFiles) -> RuleResults:
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


def script_folders(documents: ClusterConfigFiles) -> Iterable[GroupConfig]:
    """One group per folder and script in S3."""
    return _first_of_each(
        ((group.script_folder, group.script), group)
        for group in documents.groups
        if group.script_folder and group.script_folder.startswith("s3://")
    )


def _first_of_each(groups: Iterable[tuple[object, GroupConfig]]) -> Iterable[GroupConfig]:
    """The first group of each key."""
    first_by_key: dict[object, GroupConfig] = {}
    for key, group in groups:
        first_by_key.setdefault(key, group)
    return first_by_key.values()


@aws_rule("scripts", script_folders, lambda group: f"{group.path}.LifeCycleConfig")
async def _scripts_exist(facts: Facts, group: GroupConfig) -> AsyncRuleResults:
    folder, script, path = str(group.script_folder), group.script, f"{group.path}.LifeCycleConfig"
    script_names = await facts.scripts(folder)
    second = PROVISIONING in script_names
    if not script_names:
        hint = f"aws s3 cp --recursive SCRIPTS {folder}"
        yield error(f"no files found at {folder}", f"{path}.SourceS3Uri", hint)
    elif script is not None and script not in script_names:
        suggestion = nearest(script, script_names)
        hint = f"did you mean {suggestion}?" if suggestion else ""
        yield error(f"{script} not found at {folder}", f"{path}.OnCreate", hint or None)
    # AWS' scripts read the second file from the same folder.
    if facts.documents.second is not None and script_names and not second:
        hint = f"aws s3 cp {PROVISIONING} {folder}"
        yield warning(f"{PROVISIONING} not found at {folder}", path, hint)
    if not facts.documents.on_eks and group.slurm_role and second:
        message = f"{PROVISIONING} is at {folder}, but the groups have a SlurmConfig"
        yield error(message, path, "remove it from S3: both give the roles of the groups")


# ---------------------------------------------------------------------------------- file systems and volumes

MAX_VOLUMES = 2
"""The root volume and one more (ClusterEbsVolumeConfig)."""

_EFS = re.compile(r"fs-[0-9a-f]+\.efs\.")


@rule("storage")
def _volumes(documents: ClusterConfigFiles) -> RuleResults:
    for group in documents.groups:
        path, title = f"{group.path}.InstanceStorageConfigs", group.title
        volumes = [
            storage["EbsVolumeConfig"] for storage in group.storage if "EbsVolumeConfig" in storage
        ]
        volumes = [storage if isinstance(storage, dict) else {} for storage in volumes]
        roots = [storage for storage in volumes if storage.get("RootVolume") is True]
        data_volumes = [storage for storage in volumes if storage.get("RootVolume") is not True]
        if len(volumes) > MAX_VOLUMES:
            yield error(f"{title} has {len(volumes)} volumes, but {MAX_VOLUMES} are allowed", path)
        for kind, label in ((roots, "root volumes"), (data_volumes, "further volumes")):
            if len(kind) > 1:
                yield error(f"{title} has {len(kind)} {label}, but one is allowed", path)
        for storage in roots:
            if "VolumeSizeInGB" in storage:
                label = f"{title}: the size of the root volume cannot be set"
                yield error(label, path, "remove VolumeSizeInGB")
            if "VolumeKmsKeyId" not in storage:
                label = f"{title}: the root volume has no VolumeKmsKeyId"
                yield error(label, path, "set VolumeKmsKeyId, or remove the root volume")
        if any("VolumeSizeInGB" not in storage for storage in data_volumes):
            yield error(f"{title}: a volume has no VolumeSizeInGB", path)


@rule("storage")
def _mount_paths(documents: ClusterConfigFiles) -> RuleResults:
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


@rule("storage")
def _mount_names(documents: ClusterConfigFiles) -> RuleResults:
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


def list_fsx_mounts(documents: ClusterConfigFiles) -> Iterable[tuple[ClusterMount, str]]:
    """Mounts of file systems of FSx, with the file system's id."""
    for mount in documents.mounts:
        if name := file_system_id(mount.dns_name):
            yield mount, name


def mount_path_of(item: tuple[ClusterMount, str]) -> str:
    """The place of a mount."""
    return item[0].path


@aws_rule("storage", list_fsx_mounts, mount_path_of)
async def _file_systems(facts: Facts, item: tuple[ClusterMount, str]) -> AsyncRuleResults:
    mount, name = item
    description = await facts.file_system(name)
    kind, state, dns_name = (
        description.get(member) for member in ("FileSystemType", "Lifecycle", "DNSName")
    )
    mount_name = (description.get("LustreConfiguration") or {}).get("MountName")
    if kind != "LUSTRE":
        yield error(f"{name} is a {kind} file system, not Lustre", mount.path)
    if state != "AVAILABLE":
        yield error(f"{name} is {state}", mount.path, "wait until it is AVAILABLE")
    if dns_name and mount.dns_name != dns_name:
        message = f"the DNS name of {name} is {dns_name}, not {mount.dns_name}"
        yield error(message, mount.path)
    if mount.mount_name and mount_name and mount.mount_name != mount_name:
        message = f"the mount name of {name} is {mount_name}, not {mount.mount_name}"
        yield error(message, mount.path)


@aws_rule("storage", list_fsx_mounts, mount_path_of)
async def _file_systems_are_near(facts: Facts, item: tuple[ClusterMount, str]) -> AsyncRuleResults:
    mount, name = item
    description = await facts.file_system(name)
    for subnets in dict.fromkeys(map(facts.documents.subnets_of, mount.groups)):
        known_subnets = await facts.known_subnets(subnets)
        vpcs = sorted({subnet["VpcId"] for subnet in known_subnets})
        if vpcs and description.get("VpcId") not in vpcs:
            message = f"{name} is in {description.get('VpcId')}, but the instances will be in {', '.join(vpcs)}"
            yield error(message, mount.path)
        elif known_subnets and not {subnet["SubnetId"] for subnet in known_subnets} & set(
            description.get("SubnetIds") or ()
        ):
            subnet_text = ", ".join(subnet["SubnetId"] for subnet in known_subnets)
            message = f"{name} is in {', '.join(description.get('SubnetIds') or ())}, but the instances will be in {subnet_text}"
            yield warning(message, mount.path, "traffic between zones costs more and is slower")


@aws_rule("storage", list_fsx_mounts, mount_path_of)
async def _lustre_ports(facts: Facts, item: tuple[ClusterMount, str]) -> AsyncRuleResults:
    """Lustre's ports (988, 1018-1023) get through between instances and servers."""
    mount, name = item
    servers, addresses = await facts.interfaces(name)
    groups = await facts.security_groups()
    if not servers:
        message = f"could not be checked: AWS does not show the security groups of {name}"
        yield unknown(message, mount.path)
        return
    for ids in dict.fromkeys(map(facts.documents.security_groups_of, mount.groups)):
        clients = [groups[group_id] for group_id in ids if group_id in groups]
        if not clients or len(clients) < len(ids):
            continue  # the check of the network reports it
        access = check_lustre_access(clients, servers, addresses)
        for gap in access.missing_rules:
            make_verdict = warning if gap.is_reply else error
            yield make_verdict(gap.words(), mount.path, gap.command(facts.region))
        if access.lists:
            message = (
                f"prefix lists decide whether Lustre traffic is allowed: {', '.join(access.lists)}"
            )
            yield unknown(message, mount.path)


# ---------------------------------------------------------------------------------- network


@rule("network")
def _subnets_are_named(documents: ClusterConfigFiles) -> RuleResults:
    if documents.on_eks and not documents.subnets:
        message = "a cluster on EKS needs VpcConfig: its nodes are in the EKS cluster's VPC"
        yield error(message, "VpcConfig")
    elif not documents.subnets:
        message = "the cluster names no subnets, so it will be in a network of SageMaker"
        yield warning(message, "VpcConfig", "with VpcConfig it can reach your file systems")


def networks(documents: ClusterConfigFiles) -> Iterable[Network]:
    """All networks."""
    return documents.networks


def only(documents: ClusterConfigFiles) -> Iterable[ClusterConfigFiles]:
    """The configuration as a whole."""
    return (documents,)


SUBNETS_PATH = "VpcConfig.Subnets"


@aws_rule("network", networks, lambda _: SUBNETS_PATH)
async def _subnets_exist(facts: Facts, network: Network) -> AsyncRuleResults:
    path, subnets, gateways = f"{network.path}.Subnets", await facts.subnets(), None
    for name in dict.fromkeys(network.subnets):
        if name not in subnets:
            yield error(f"subnet {name} not found in this region", path)
            continue
        gateways = gateways or await facts.gateways()
        if gateways[name]:
            message = f"{name} is a public subnet: its routes go to {', '.join(gateways[name])}"
            hint = "instances have no public address: use a private subnet with a NAT gateway or VPC endpoints"
            yield error(message, path, hint)


@aws_rule("network", networks, lambda _: SUBNETS_PATH)
async def _addresses_are_enough(facts: Facts, network: Network) -> AsyncRuleResults:
    """A group of several types may come in the one that takes most."""
    path, subnets = f"{network.path}.Subnets", await facts.known_subnets(network.subnets)
    instances = least = addresses_needed = 0
    for group in network.groups:
        types = {name: await facts.type_of(name) for name in group.types}
        if missing := [name for name, instance_type in types.items() if instance_type is None]:
            message = f"the number of addresses that an instance of {missing[0][:40]} needs is unknown; 1 is assumed"
            yield unknown(message, path)
        count, facts_known = (
            group.count or 0,
            [instance_type for instance_type in types.values() if instance_type is not None],
        )
        instances += count
        address_counts = [
            [
                instance_type.address_count(eks=eks, efa_only=group.efa_only)
                for instance_type in facts_known
            ]
            for eks in (False, facts.documents.on_eks)
        ]
        least += count * max(address_counts[0], default=1)
        addresses_needed += count * max(address_counts[1], default=1)
    free = sum(int(instance_type["AvailableIpAddressCount"]) for instance_type in subnets)
    if not subnets or len(subnets) < len(network.subnets) or addresses_needed <= free:
        return
    message = (
        f"{instances} instances need {addresses_needed} addresses, but the subnets have {free} free"
    )
    hint = "use larger or more subnets before you create the cluster"
    if least > free:
        yield error(message, path, hint)
    else:
        # On EKS most addresses are for pods: Amazon's VPC CNI allocates them with the pods, or
        # fewer, depending on its configuration.
        yield warning(f"{message}: pods may get no address", path, hint)


@aws_rule("network", only, lambda _: SUBNETS_PATH)
async def _one_vpc(facts: Facts, _: ClusterConfigFiles) -> AsyncRuleResults:
    vpcs = sorted({str(subnet["VpcId"]) for subnet in (await facts.subnets()).values()})
    if len(vpcs) > 1:
        yield error(f"the subnets are in several VPCs: {', '.join(vpcs)}", SUBNETS_PATH)


@aws_rule("network", networks, lambda _: "VpcConfig.SecurityGroupIds")
async def _security_groups(facts: Facts, network: Network) -> AsyncRuleResults:
    path, groups = f"{network.path}.SecurityGroupIds", await facts.security_groups()
    for name in network.security_groups:
        if name not in groups:
            yield error(f"security group {name} not found in this region", path)
    network_groups = [groups[name] for name in network.security_groups if name in groups]
    if network_groups and len(network_groups) == len(network.security_groups):
        for direction in ("inbound", "outbound"):
            async for rule_result in _members_reach_each_other(
                facts, network, network_groups, direction, path
            ):
                yield rule_result


async def _members_reach_each_other(
    facts: Facts, network: Network, groups: Sequence[SecurityGroup], direction: str, path: str
) -> AsyncRuleResults:
    """EFA only works between members of one security group that allows all its own traffic in and out (EC2 user guide, "Get started with EFA")."""
    rules = [(group, rule) for group in groups for rule in _rules(group, direction)]
    if any(rule.protocol == "-1" and group.name in rule.groups for group, rule in rules):
        return
    flow, verb = ("in", "ingress") if direction == "inbound" else ("out", "egress")
    name = groups[0].name
    hint = (
        f"aws ec2 authorize-security-group-{verb} --group-id {name} --ip-permissions "
        f"'IpProtocol=-1,UserIdGroupPairs=[{{GroupId={name}}}]'"
    )
    message = f"no security group allows all traffic of its own members {flow}"
    types = {name: await facts.type_of(name) for rule in network.groups for name in rule.types}
    efa = sorted(name for name, rule in types.items() if rule is not None and rule.efa != 0)
    is_open = any(rule.protocol == "-1" and rule.ranges for _, rule in rules)
    if efa:
        yield error(f"{message}, which EFA on {', '.join(efa)} needs", path, hint)
    elif sum(group.count or 0 for group in network.groups) > 1 and not is_open:
        yield warning(f"{message}: instances could not reach each other", path, hint)


def _rules(group: SecurityGroup, direction: str) -> tuple[Rule, ...]:
    return group.inbound if direction == "inbound" else group.outbound


@aws_rule("network", networks, lambda _: SUBNETS_PATH)
async def _security_groups_of_vpc(facts: Facts, network: Network) -> AsyncRuleResults:
    vpcs = sorted({subnet["VpcId"] for subnet in await facts.known_subnets(network.subnets)})
    groups = await facts.security_groups()
    for name in network.security_groups if vpcs else ():
        if name in groups and groups[name].vpc not in vpcs:
            message = f"{name} is in {groups[name].vpc}, but the subnets are in {', '.join(vpcs)}"
            yield error(message, f"{network.path}.SecurityGroupIds")


# ---------------------------------------------------------------------------------- instance types and quotas

CLUSTER_QUOTA = "Maximum number of instances allowed per SageMaker HyperPod cluster"
TOTAL_QUOTA = "Total number of instances allowed across SageMaker HyperPod clusters"


@rule("capacity")
def _type_names(documents: ClusterConfigFiles) -> RuleResults:
    for group in documents.groups:
        path = f"{group.path}.InstanceType"
        if not group.types:
            yield error(f"{group.title} has no instance type", path)
        for name in group.types:
            if not name.startswith("ml."):
                yield error(f"{name[:40]} is an EC2 name", path, f"did you mean ml.{name[:40]}?")


def types_of_groups(documents: ClusterConfigFiles) -> Iterable[tuple[GroupConfig, str]]:
    """Each instance type of each group."""
    return [(group, name) for group in documents.groups for name in group.types]


def no_path(_: object) -> None:
    """No path: it concerns several."""


@aws_rule("capacity", types_of_groups, no_path)
async def _types_exist(facts: Facts, item: tuple[GroupConfig, str]) -> AsyncRuleResults:
    group, name = item
    description = (await facts.types()).get(name)
    path = f"{group.path}.InstanceType"
    if description is None:
        if name.startswith("ml."):
            yield warning(
                f"EC2 has no instance type {name.removeprefix('ml.')} in this region", path
            )
        return
    threads = (description.get("VCpuInfo") or {}).get("ValidThreadsPerCore") or ()
    if group.threads is not None and threads and group.threads not in threads:
        allowed = " or ".join(map(str, threads))
        message = f"{name} allows {allowed} threads per core, not {group.threads}"
        yield error(message, f"{group.path}.ThreadsPerCore")
    if not description.get("CurrentGeneration", True):
        yield warning(f"{name} is of an old generation, whose capacity at AWS shrinks", path)


@aws_rule("capacity", types_of_groups, no_path)
async def _types_are_in_zone(facts: Facts, item: tuple[GroupConfig, str]) -> AsyncRuleResults:
    group, name = item
    zones, offered = set[str](), (await facts.zones()).get(name, set())
    for subnet in await facts.known_subnets(facts.documents.subnets_of(group)):
        zones.add(str(subnet["AvailabilityZone"]))
    # A training plan has its own zone.
    if zones and offered and not zones & offered and group.training_plan is None:
        hint = f"it is available in {', '.join(sorted(offered))}: use a subnet there"
        message = f"{name} is not available in {', '.join(sorted(zones))}"
        yield error(message, f"{group.path}.InstanceType", hint)


@aws_rule("capacity", only, no_path)
async def _quotas(facts: Facts, documents: ClusterConfigFiles) -> AsyncRuleResults:
    quotas, instance_counts = await facts.quotas(), Counter[str]()
    for group in documents.groups:
        # A group of several types may come in any of them; a training plan has its own quota.
        if len(group.types) == 1 and group.training_plan is None:
            instance_counts[f"{group.types[0]} for cluster usage"] += group.count or 0
    instance_counts = Counter(dict(sorted((+instance_counts).items())))
    total = sum(group.count or 0 for group in documents.groups)
    instance_counts.update(
        {title: total for title in (CLUSTER_QUOTA, TOTAL_QUOTA) if title in quotas}
    )
    for title, count in instance_counts.items():
        if title not in quotas:
            yield unknown(f"quota '{title}' not found, so {count} instances could not be checked")
        elif count > quotas[title]:
            message = (
                f"{count} instances are requested, but the quota '{title}' is {quotas[title]:.0f}"
            )
            hint = "request an increase in the Service Quotas console, under Amazon SageMaker"
            yield error(message, "InstanceGroups", hint)


# ---------------------------------------------------------------------------------- role, name, EKS cluster

SERVICE_PRINCIPAL = "sagemaker.amazonaws.com"
"""The service that a role of instances must trust (SageMaker's guide, "IAM role for SageMaker HyperPod")."""


def groups_by_role(documents: ClusterConfigFiles) -> Iterable[GroupConfig]:
    """One group per role."""
    groups = documents.groups
    return _first_of_each(
        (group.role, group) for group in groups if group.role and group.role.startswith("arn:")
    )


@aws_rule("role", groups_by_role, lambda group: f"{group.path}.ExecutionRole")
async def _roles(facts: Facts, group: GroupConfig) -> AsyncRuleResults:
    role, path = str(group.role), f"{group.path}.ExecutionRole"
    try:
        policy = await facts.trust_policy(role)
    except NotFoundError as missing:
        yield error(f"role {role} not found", path, missing.hint)
        return
    if not allows_service(policy):
        message = f"{role.rpartition('/')[2]} does not trust {SERVICE_PRINCIPAL}, so instances cannot assume it"
        hint = f"allow sts:AssumeRole for the service {SERVICE_PRINCIPAL} in its trust policy"
        yield error(message, path, hint)


def allows_service(policy: Mapping[str, Any], service: str = SERVICE_PRINCIPAL) -> bool:
    """Whether a trust policy lets a service assume the role; ignores conditions."""
    effects = set[str]()
    for statement in _as_list(policy.get("Statement")):
        principal = statement.get("Principal") if isinstance(statement, dict) else None
        services = principal.get("Service") if isinstance(principal, dict) else principal
        if {service, "*"} & {*_as_list(services)} and {"sts:AssumeRole", "sts:*", "*"} & {
            *_as_list(statement.get("Action"))
        }:
            effects.add(statement.get("Effect"))
    return "Allow" in effects and "Deny" not in effects


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


@aws_rule("cluster", lambda one: [one.name] if one.name else [], lambda _: "ClusterName")
async def _name_is_free(facts: Facts, name: str) -> AsyncRuleResults:
    status = await facts.cluster_status(name)
    if status is not None:
        instead = f"delete-cluster {name}" if status == "Failed" else "update-cluster"
        message = f"a cluster {name} already exists ({status})"
        yield error(message, "ClusterName", f"use another name, or: hpj admin {instead}")


def eks_clusters(documents: ClusterConfigFiles) -> Iterable[str]:
    """The EKS cluster, if any."""
    return [documents.eks_arn] if documents.on_eks and documents.eks_arn else []


@aws_rule("eks", eks_clusters, lambda _: EKS_PATH)
async def _eks_is_ready(facts: Facts, arn: str) -> AsyncRuleResults:
    description = await facts.eks(arn)
    if description.get("status") != "ACTIVE":
        message = f"the EKS cluster is {description.get('status')}"
        yield error(message, EKS_PATH, "wait until it is ACTIVE")
    if (description.get("accessConfig") or {}).get("authenticationMode") == "CONFIG_MAP":
        message = "the EKS cluster authenticates users by a ConfigMap only, but HyperPod needs access entries"
        hint = "aws eks update-cluster-config --access-config authenticationMode=API_AND_CONFIG_MAP"
        yield error(message, EKS_PATH, hint)
    if not (description.get("resourcesVpcConfig") or {}).get("vpcId"):
        yield unknown("could not be checked: AWS does not show its VPC", EKS_PATH)


@aws_rule("eks", eks_clusters, lambda _: SUBNETS_PATH)
async def _eks_vpc(facts: Facts, arn: str) -> AsyncRuleResults:
    try:
        vpc = ((await facts.eks(arn)).get("resourcesVpcConfig") or {}).get("vpcId")
    except HyperpodError:
        return  # the rule above reports it
    vpcs = sorted({subnet["VpcId"] for subnet in (await facts.subnets()).values()})
    if vpc and vpcs and vpc not in vpcs:
        message = f"the EKS cluster is in {vpc}, but the subnets are in {', '.join(vpcs)}"
        yield error(message, SUBNETS_PATH)
