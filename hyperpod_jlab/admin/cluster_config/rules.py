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
    Documents,
    Group,
    Mount,
    Network,
    Provisioning,
    Verdict,
    file_system_id,
)
from hyperpod_jlab.admin.cluster_config.facts import Facts
from hyperpod_jlab.admin.cluster_config.schema import input_shape, problems
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, nearest
from hyperpod_jlab.core.network import Rule, SecurityGroup, check_lustre_access
from hyperpod_jlab.core.wire import Wire, wire_property

T = TypeVar("T")


class Check(NamedTuple):
    """A check: its title, and what it says when it found nothing."""

    title: str
    well: str


CHECKS = {
    "files": Check("The files", "files are readable and have no placeholders left"),
    "schema": Check("Members and values", "members and values match the AWS API"),
    "groups": Check("Instance groups", "each group is placed"),
    "scripts": Check("Lifecycle scripts", "scripts found"),
    "storage": Check("File systems and volumes", "found and reachable"),
    "network": Check(
        "Network",
        "subnets are private and large enough, and security groups allow the traffic that is needed",
    ),
    "capacity": Check("Instance types and quotas", "types are available, and quotas allow them"),
    "role": Check("Execution roles", "instances can assume them"),
    "cluster": Check("The cluster's name", "the name is available"),
    "eks": Check("The EKS cluster", "found and active"),
}
"""Checks in their order."""

OFFLINE = frozenset({"files", "schema", "groups"})
"""Checks that need no AWS; of the others only a part is done without it."""


@dataclass(frozen=True)
class Report(Wire):
    """The results of all checks, in order."""

    checks: tuple[Verdict, ...]

    def of(self, level: str) -> list[Verdict]:
        """The verdicts of a level."""
        return [one for one in self.checks if one.level == level]

    @property
    @wire_property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.of("error")


def check(documents: Documents, region: str | None) -> Report:
    """What the files alone tell.

    Args:
        documents: The files.
        region: The region of the cluster; None: not known.

    Raises:
        UnsupportedError: boto3 is not installed, whose model is needed.
    """
    return _report(documents, _check_files(documents, region), asked=False)


async def ask_and_check(aws: Aws, documents: Documents) -> Report:
    """What the files and AWS tell.

    Raises:
        UnsupportedError: boto3 is not installed.
        InvalidInputError: The region is not known.
    """
    facts = Facts(aws, await aws.region(), documents)
    found = _check_files(documents, facts.region)
    for verdicts in await asyncio.gather(*(one(facts) for one in AWS_RULES)):
        found += verdicts
    return _report(documents, found, asked=True)


def _check_files(documents: Documents, region: str | None) -> list[Verdict]:
    found = list(_files(documents, region))
    for name, run in FILE_RULES:
        found += [replace(one, check=name) for one in run(documents)]
    return found


def _report(documents: Documents, found: Sequence[Verdict], *, asked: bool) -> Report:
    # One sentence is enough where many items of a check were not answered for one reason.
    kept: dict[object, Verdict] = {}
    for one in found:
        kept.setdefault((one.check, one.message) if one.level == "unknown" else one, one)
    said = list(kept.values())
    names = {one.check for one in said}
    for name, (title, well) in CHECKS.items():
        if name == "eks" and not documents.on_eks:
            continue
        if not asked and name not in OFFLINE:
            said.append(Verdict(name, "unknown", f"{title}: skipped (--offline)"))
        elif name not in names:
            missing = _missing(name, documents)
            said.append(Verdict(name, "unknown" if missing else "ok", missing or well))
            if name == "storage" and not any(documents.mounts):
                said[-1] = Verdict(name, "ok", "the configuration names no file system")
            if name == "scripts" and not any(one.script_folder for one in documents.groups):
                said[-1] = Verdict(name, "ok", "the configuration names none")
    order = list(CHECKS)
    return Report(tuple(sorted(said, key=lambda one: order.index(one.check))))


def _missing(name: str, documents: Documents) -> str | None:
    """Why a check had nothing to look at that every cluster has."""
    if name == "cluster" and not documents.name:
        return "could not be checked: ClusterName is missing"
    if name in {"groups", "capacity", "role"} and not documents.groups:
        return "could not be checked: there are no instance groups"
    if name == "role" and not any(one.role for one in documents.groups):
        return "could not be checked: the configuration names no role"
    return None


# ---------------------------------------------------------------------------------- the table

Found = Iterator[Verdict]
Asked = AsyncIterator[Verdict]

FILE_RULES: list[tuple[str, Callable[[Documents], Found]]] = []
AWS_RULES: list[Callable[[Facts], Awaitable[list[Verdict]]]] = []


def rule(name: str) -> Callable[[Callable[[Documents], Found]], Callable[[Documents], Found]]:
    """Add a rule that needs only the files to a check."""

    def add(run: Callable[[Documents], Found]) -> Callable[[Documents], Found]:
        FILE_RULES.append((name, run))
        return run

    return add


def aws_rule(
    name: str, items: Callable[[Documents], Iterable[T]], at: Callable[[T], str | None]
) -> Callable[[Callable[[Facts, T], Asked]], Callable[[Facts, T], Asked]]:
    """Add a rule that asks AWS to a check.

    Args:
        name: The check.
        items: What it looks at, one by one.
        at: The place of an item in the files.
    """

    def add(run: Callable[[Facts, T], Asked]) -> Callable[[Facts, T], Asked]:
        async def each(facts: Facts, item: T) -> list[Verdict]:
            found = []
            try:
                async for one in run(facts, item):
                    found += [replace(one, check=name)]
            except NotFoundError as error_:
                found.append(Verdict(name, "error", error_.message, error_.hint, at(item)))
            except HyperpodError as error_:
                words = f"could not be checked: {error_.message}"
                found.append(Verdict(name, "unknown", words, error_.hint, at(item)))
            return found

        async def every(facts: Facts) -> list[Verdict]:
            found = await asyncio.gather(*(each(facts, one) for one in items(facts.documents)))
            return [verdict for verdicts in found for verdict in verdicts]

        AWS_RULES.append(every)
        return run

    return add


def error(message: str, at: str | None = None, hint: str | None = None) -> Verdict:
    """Something that keeps the cluster from being made, or from working."""
    return Verdict("", "error", message, hint, at)


def warning(message: str, at: str | None = None, hint: str | None = None) -> Verdict:
    """Something to know before going on."""
    return Verdict("", "warning", message, hint, at)


def unknown(message: str, at: str | None = None) -> Verdict:
    """Something that could not be checked."""
    return Verdict("", "unknown", message, None, at)


# ---------------------------------------------------------------------------------- files and schema


def _files(documents: Documents, region: str | None) -> Found:
    """What needs more than the documents: the model, and the region."""
    yield from problems(dict(documents.cluster), input_shape("CreateCluster"))
    found = _EKS_ARN.fullmatch(documents.eks_arn or "")
    if documents.on_eks and documents.eks_arn and not found:
        words = f"'{documents.eks_arn[:80]}' is not the ARN of an EKS cluster"
        yield Verdict("eks", "error", words, None, EKS_PLACE)
    elif documents.on_eks and found and region is not None and found["region"] != region:
        words = f"the EKS cluster is in {found['region']}, but the HyperPod cluster is to be created in {region}"
        yield Verdict("eks", "error", words, None, EKS_PLACE)


EKS_PLACE = "Orchestrator.Eks.ClusterArn"
_EKS_ARN = re.compile(r"arn:[a-z0-9-]+:eks:(?P<region>[a-z0-9-]+):\d{12}:cluster/.+")


@rule("files")
def _placeholders(documents: Documents) -> Found:
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


def _texts(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _texts(one, f"{at}.{name}" if at else name)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _texts(one, f"{at}[{number}]")
    elif isinstance(value, str):
        yield at, value


@rule("files")
def _readable(documents: Documents) -> Found:
    if documents.unread is not None:
        yield error(documents.unread)


@rule("schema")
def _one_orchestrator(documents: Documents) -> Found:
    scheduler = documents.cluster.get("Orchestrator")
    if isinstance(scheduler, dict) and {"Eks", "Slurm"} <= scheduler.keys():
        words = "Orchestrator has both Eks and Slurm, but only one is allowed"
        yield error(words, "Orchestrator", "remove one of them")


# ---------------------------------------------------------------------------------- instance groups

_PARTITION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
"""What Slurm takes for a partition's name without quotes."""

_NO_PARTITION = frozenset({"all", "default"})
"""Slurm reads these words otherwise where a partition's name stands (slurm.conf(5): PartitionName=DEFAULT)."""


@rule("groups")
def _groups_without_second_file(documents: Documents) -> Found:
    if documents.unread is not None:
        yield unknown("could not be checked without the second file")


@rule("groups")
def _names(documents: Documents) -> Found:
    if not documents.groups:
        yield error("the cluster has no instance group", "InstanceGroups")
    for name, times in Counter(one.name for one in documents.groups if one.name).items():
        if times > 1:
            places = [one.path for one in documents.groups if one.name == name]
            yield error(
                f"{times} instance groups have the same name {name}: {', '.join(places)}", places[0]
            )


@rule("groups")
def _slurm_on_eks(documents: Documents) -> Found:
    if not documents.on_eks:
        return
    if documents.second is not None:
        words = f"{PROVISIONING} is for Slurm; a cluster on EKS does not read it"
        yield warning(words, None, "remove it")
    for group in documents.groups:
        if group.slurm_role:
            words = f"{group.title} has a SlurmConfig, but the cluster is on EKS"
            yield error(words, f"{group.path}.SlurmConfig")


@rule("groups")
def _one_way_to_say_roles(documents: Documents) -> Found:
    """Each group says what it is to Slurm, or the second file says it of all."""
    if documents.on_eks or documents.unread is not None:
        return
    own = any(group.slurm_role for group in documents.groups)
    for group in documents.groups if own else ():
        if not group.slurm_role:
            words = f"{group.title} has no SlurmConfig, but other groups have one"
            hint = "give either all groups a SlurmConfig with a NodeType, or none"
            yield error(words, f"{group.path}.SlurmConfig", hint)
    if own and documents.second is not None:
        words = f"the roles of groups are given twice: by SlurmConfig and by {PROVISIONING}"
        hint = f"remove one of them; with SlurmConfig, also remove {PROVISIONING} from S3"
        yield error(words, PROVISIONING, hint)
    if not own and documents.second is None and documents.groups:
        words = f"no group is marked as the controller: there is neither {PROVISIONING} nor a SlurmConfig"
        hint = f"hpj admin validate cluster-config.json {PROVISIONING}"
        yield error(words, "InstanceGroups", hint)


@rule("groups")
def _roles_by_slurm_config(documents: Documents) -> Found:
    by_role: dict[str, list[Group]] = {}
    for group in documents.groups:
        if group.slurm_role:
            by_role.setdefault(group.slurm_role, []).append(group)
    if documents.on_eks or documents.second or documents.unread is not None or not by_role:
        return
    controllers = by_role.get("Controller", [])
    if len(controllers) != 1:
        listed = ", ".join(str(one.name) for one in controllers)
        said = f"{listed} are" if listed else "none is"
        yield error(f"exactly one group must be the controller, but {said}", "InstanceGroups")
    for group in controllers:
        yield from _controller(group)
    if "Compute" not in by_role:
        words = "no group has the NodeType Compute, so no job could run"
        yield error(words, "InstanceGroups")
    for group in documents.groups:
        at = f"{group.path}.SlurmConfig.PartitionNames"
        if group.slurm_role == "Compute" and not group.partitions:
            yield warning(
                f"{group.title} names no partition, so HyperPod creates a partition for it", at
            )
        if group.slurm_role != "Compute" and group.partitions:
            yield error(f"{group.title} names a partition, but is not a Compute group", at)
        for name in group.partitions:
            yield from _partition(name, at)


def _controller(group: Group) -> Found:
    if group.count not in {None, 1}:
        words = f"{group.title} is the controller and must have InstanceCount 1, not {group.count}"
        yield error(words, f"{group.path}.InstanceCount")


def _partition(name: str, at: str) -> Found:
    if not _PARTITION.fullmatch(name):
        hint = "letters, digits, hyphens and underscores"
        yield error(f"'{name[:60]}' is not a valid name of a Slurm partition", at, hint)
    elif name.lower() in _NO_PARTITION:
        yield error(f"'{name}' is a reserved word of Slurm", at, "use another name")
    elif name == "dev":
        words = "HyperPod itself creates a partition dev with all nodes"
        yield warning(words, at, "use another name")


# The second file

_MEMBERS = (
    *("version", "workload_manager", "controller_group", "login_group", "worker_groups"),
    *("fsx_dns_name", "fsx_mountname", "fsx_openzfs_dns_name", "slurm_configurations"),
)


@rule("groups")
def _members_of_second_file(documents: Documents) -> Found:
    second = None if documents.on_eks else documents.second
    for name, value in second.raw.items() if second else ():
        at = f"{PROVISIONING}: {name[:60]}"
        if name not in _MEMBERS:
            near = nearest(name, _MEMBERS)
            hint = f"did you mean {near}?" if near else None
            yield warning(f"the lifecycle scripts do not know the member {name[:60]}", at, hint)
        elif name == "worker_groups" and not isinstance(value, list):
            yield error("worker_groups must be a list", at)
        elif (
            name in {"controller_group", "login_group", "fsx_dns_name", "fsx_mountname"}
            and value is not None
            and not isinstance(value, str)
        ):
            yield error(f"{name} must be text, not {json.dumps(value)[:40]}", at)
    manager = second.raw.get("workload_manager") if second else "slurm"
    if manager != "slurm":
        said = "is missing" if manager is None else f"is '{str(manager)[:40]}'"
        at = f"{PROVISIONING}: workload_manager"
        yield error(f"workload_manager {said}; it must be slurm", at)


@rule("groups")
def _roles_by_second_file(documents: Documents) -> Found:
    second = None if documents.on_eks else documents.second
    if second is None:
        return
    known = {one.name: one for one in documents.groups if one.name}
    controller, login = second.controller, second.login
    if second.raw.get("controller_group") in (None, ""):
        yield error("controller_group is missing", f"{PROVISIONING}: controller_group")
    for member, name in (("controller_group", controller), ("login_group", login)):
        if name is not None:
            yield from _known(name, f"{PROVISIONING}: {member}", known)
    if controller in known:
        yield from _controller(known[controller])
    if login is not None and login == controller:
        words = f"{login} is both the controller and the login group"
        yield error(words, f"{PROVISIONING}: login_group")
    yield from _workers(second, known)
    named = {controller, login, *(name for _, name, _ in second.workers)}
    for name, group in known.items():
        if name not in named:
            words = f"{PROVISIONING} does not name the group {name}, so its instances would be in no partition"
            hint = "add it to worker_groups"
            if controller not in known:
                hint = "add it as controller_group or to worker_groups"
            yield error(words, group.path, hint)


def _known(name: str, at: str, known: Mapping[str, Group]) -> Found:
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else f"valid values: {', '.join(known) or 'none'}"
        yield error(f"the cluster has no instance group {name[:60]}", at, hint)


def _workers(second: Provisioning, known: Mapping[str, Group]) -> Found:
    if not second.workers:
        words = "there is no worker group, so no job could run"
        yield error(words, f"{PROVISIONING}: worker_groups")
    seen = set[str]()
    for path, name, partition in second.workers:
        at = f"{PROVISIONING}: {path}"
        if name is None:
            yield error("instance_group_name is missing", at)
            continue
        yield from _known(name, at, known)
        if name in {second.controller, second.login}:
            words = f"{name} is a worker group, but also the controller or login group"
            yield error(words, at)
        if name in seen:
            yield error(f"{name} is listed twice", at)
        seen.add(name)
        if partition is None:
            yield error(f"the worker group {name} has no partition_name", at)
        else:
            yield from _partition(partition, at)


# ---------------------------------------------------------------------------------- life cycle scripts

READABLE = "s3://sagemaker-"
"""Buckets that AmazonSageMakerClusterInstanceRolePolicy lets instances read; a role may allow others, too."""


@rule("scripts")
def _script_names(documents: Documents) -> Found:
    for group in documents.groups:
        at, folder, script = f"{group.path}.LifeCycleConfig", group.script_folder, group.script
        if group.restricted:
            continue
        if folder is None and script is None:
            if documents.on_eks or not group.slurm_role:
                hint = "AWS then sets up the instances from their image alone"
                yield warning(f"{group.title} has no lifecycle scripts", at, hint)
            continue
        if folder is None or script is None:
            missing = "SourceS3Uri" if folder is None else "OnCreate"
            words = f"the lifecycle scripts of {group.title} have no {missing}"
            yield error(words, f"{at}.{missing}")
        if folder is not None and not folder.startswith(READABLE):
            words = f"{folder[:80]} does not begin with {READABLE}"
            hint = "AmazonSageMakerClusterInstanceRolePolicy allows reading only such buckets; allow the role of the instances to read this bucket too"
            yield warning(words, f"{at}.SourceS3Uri", hint)
        if script is not None and script.startswith(("/", "s3:")):
            words = f"OnCreate must be a script's name below SourceS3Uri, not {script[:60]}"
            yield error(words, f"{at}.OnCreate")


def script_folders(documents: Documents) -> Iterable[Group]:
    """A group of each folder and script in S3."""
    return _first(
        ((one.script_folder, one.script), one)
        for one in documents.groups
        if one.script_folder and one.script_folder.startswith("s3://")
    )


def _first(groups: Iterable[tuple[object, Group]]) -> Iterable[Group]:
    """The first group of each key."""
    found: dict[object, Group] = {}
    for key, group in groups:
        found.setdefault(key, group)
    return found.values()


@aws_rule("scripts", script_folders, lambda group: f"{group.path}.LifeCycleConfig")
async def _scripts_exist(facts: Facts, group: Group) -> Asked:
    folder, script, at = str(group.script_folder), group.script, f"{group.path}.LifeCycleConfig"
    found = await facts.scripts(folder)
    second = PROVISIONING in found
    if not found:
        hint = f"aws s3 cp --recursive SCRIPTS {folder}"
        yield error(f"no files found at {folder}", f"{at}.SourceS3Uri", hint)
    elif script is not None and script not in found:
        near = nearest(script, found)
        hint = f"did you mean {near}?" if near else ""
        yield error(f"{script} not found at {folder}", f"{at}.OnCreate", hint or None)
    # AWS' scripts read the second file from the same folder.
    if facts.documents.second is not None and found and not second:
        hint = f"aws s3 cp {PROVISIONING} {folder}"
        yield warning(f"{PROVISIONING} not found at {folder}", at, hint)
    if not facts.documents.on_eks and group.slurm_role and second:
        words = f"{PROVISIONING} is at {folder}, but the groups have a SlurmConfig"
        yield error(words, at, "remove it from S3: both give the roles of the groups")


# ---------------------------------------------------------------------------------- file systems and volumes

MAX_VOLUMES = 2
"""The root volume and one more (ClusterEbsVolumeConfig)."""

_EFS = re.compile(r"fs-[0-9a-f]+\.efs\.")


@rule("storage")
def _volumes(documents: Documents) -> Found:
    for group in documents.groups:
        at, title = f"{group.path}.InstanceStorageConfigs", group.title
        every = [one["EbsVolumeConfig"] for one in group.storage if "EbsVolumeConfig" in one]
        every = [one if isinstance(one, dict) else {} for one in every]
        roots = [one for one in every if one.get("RootVolume") is True]
        others = [one for one in every if one.get("RootVolume") is not True]
        if len(every) > MAX_VOLUMES:
            yield error(f"{title} has {len(every)} volumes, but {MAX_VOLUMES} are allowed", at)
        for kind, words in ((roots, "root volumes"), (others, "further volumes")):
            if len(kind) > 1:
                yield error(f"{title} has {len(kind)} {words}, but one is allowed", at)
        for one in roots:
            if "VolumeSizeInGB" in one:
                words = f"{title}: the size of the root volume cannot be set"
                yield error(words, at, "remove VolumeSizeInGB")
            if "VolumeKmsKeyId" not in one:
                words = f"{title}: the root volume has no VolumeKmsKeyId"
                yield error(words, at, "set VolumeKmsKeyId, or remove the root volume")
        if any("VolumeSizeInGB" not in one for one in others):
            yield error(f"{title}: a volume has no VolumeSizeInGB", at)


@rule("storage")
def _mount_paths(documents: Documents) -> Found:
    """A path is mounted once, and both files mean the same."""
    second = documents.second
    if second is not None and (second.dns_name is None) != (second.mount_name is None):
        missing = "fsx_mountname" if second.mount_name is None else "fsx_dns_name"
        words = f"{missing} is missing, but its counterpart is set"
        yield error(words, f"{PROVISIONING}: {missing}")
    for group in documents.groups:
        paths = [one.mount_path for one in group.mounts]
        for number, one in enumerate(group.mounts):
            if one.mount_path in paths[:number]:
                yield error(f"{group.title} mounts two file systems at the same path", one.path)
            if (
                one.mount_path in {None, "/fsx"}
                and second is not None
                and None not in (one.dns_name, second.dns_name)
                and one.dns_name != second.dns_name
            ):
                words = f"{group.title} mounts {one.dns_name}, and {PROVISIONING} {second.dns_name}, both at /fsx"
                yield error(words, one.path)


@rule("storage")
def _mount_names(documents: Documents) -> Found:
    for mount in documents.mounts:
        name = mount.dns_name
        if name is None:
            continue  # the schema reports it
        if not all(map(documents.subnets_of, mount.groups)):
            words = f"{name[:80]} cannot be reached from SageMaker's own network, and the cluster names no subnets"
            yield error(words, mount.path, "set VpcConfig")
        if _EFS.match(name):
            words = f"'{name[:80]}' is an EFS file system, but a Lustre file system is needed"
            yield error(words, mount.path, "use an FSx for Lustre file system")
        elif file_system_id(name) is None:
            yield warning(f"'{name[:80]}' is not the DNS name of an FSx file system", mount.path)


def fsx_mounts(documents: Documents) -> Iterable[tuple[Mount, str]]:
    """Mounts of file systems of FSx, with the file system's id."""
    for one in documents.mounts:
        if name := file_system_id(one.dns_name):
            yield one, name


def mount_place(item: tuple[Mount, str]) -> str:
    """The place of a mount."""
    return item[0].path


@aws_rule("storage", fsx_mounts, mount_place)
async def _file_systems(facts: Facts, item: tuple[Mount, str]) -> Asked:
    mount, name = item
    found = await facts.file_system(name)
    kind, state, dns_name = (
        found.get(member) for member in ("FileSystemType", "Lifecycle", "DNSName")
    )
    mount_name = (found.get("LustreConfiguration") or {}).get("MountName")
    if kind != "LUSTRE":
        yield error(f"{name} is a {kind} file system, not Lustre", mount.path)
    if state != "AVAILABLE":
        yield error(f"{name} is {state}", mount.path, "wait until it is AVAILABLE")
    if dns_name and mount.dns_name != dns_name:
        words = f"the DNS name of {name} is {dns_name}, not {mount.dns_name}"
        yield error(words, mount.path)
    if mount.mount_name and mount_name and mount.mount_name != mount_name:
        words = f"the mount name of {name} is {mount_name}, not {mount.mount_name}"
        yield error(words, mount.path)


@aws_rule("storage", fsx_mounts, mount_place)
async def _file_systems_are_near(facts: Facts, item: tuple[Mount, str]) -> Asked:
    mount, name = item
    found = await facts.file_system(name)
    for subnets in dict.fromkeys(map(facts.documents.subnets_of, mount.groups)):
        known = await facts.known_subnets(subnets)
        vpcs = sorted({one["VpcId"] for one in known})
        if vpcs and found.get("VpcId") not in vpcs:
            words = (
                f"{name} is in {found.get('VpcId')}, but the instances will be in {', '.join(vpcs)}"
            )
            yield error(words, mount.path)
        elif known and not {one["SubnetId"] for one in known} & set(found.get("SubnetIds") or ()):
            theirs = ", ".join(one["SubnetId"] for one in known)
            words = f"{name} is in {', '.join(found.get('SubnetIds') or ())}, but the instances will be in {theirs}"
            yield warning(words, mount.path, "traffic between zones costs more and is slower")


@aws_rule("storage", fsx_mounts, mount_place)
async def _lustre_ports(facts: Facts, item: tuple[Mount, str]) -> Asked:
    """Lustre's ports (988, 1018-1023) get through between instances and servers."""
    mount, name = item
    servers, addresses = await facts.interfaces(name)
    known = await facts.security_groups()
    if not servers:
        words = f"could not be checked: AWS does not show the security groups of {name}"
        yield unknown(words, mount.path)
        return
    for ids in dict.fromkeys(map(facts.documents.security_groups_of, mount.groups)):
        clients = [known[one] for one in ids if one in known]
        if not clients or len(clients) < len(ids):
            continue  # the check of the network reports it
        passage = check_lustre_access(clients, servers, addresses)
        for gap in passage.missing_rules:
            say = warning if gap.is_reply else error
            yield say(gap.words(), mount.path, gap.command(facts.region))
        if passage.lists:
            words = (
                f"prefix lists decide whether Lustre traffic is allowed: {', '.join(passage.lists)}"
            )
            yield unknown(words, mount.path)


# ---------------------------------------------------------------------------------- network


@rule("network")
def _subnets_are_named(documents: Documents) -> Found:
    if documents.on_eks and not documents.subnets:
        words = "a cluster on EKS needs VpcConfig: its nodes are in the EKS cluster's VPC"
        yield error(words, "VpcConfig")
    elif not documents.subnets:
        words = "the cluster names no subnets, so it will be in a network of SageMaker"
        yield warning(words, "VpcConfig", "with VpcConfig it can reach your file systems")


def networks(documents: Documents) -> Iterable[Network]:
    """All networks."""
    return documents.networks


def only(documents: Documents) -> Iterable[Documents]:
    """The configuration as a whole."""
    return (documents,)


SUBNETS = "VpcConfig.Subnets"


@aws_rule("network", networks, lambda _: SUBNETS)
async def _subnets_exist(facts: Facts, network: Network) -> Asked:
    at, known, gateways = f"{network.path}.Subnets", await facts.subnets(), None
    for name in dict.fromkeys(network.subnets):
        if name not in known:
            yield error(f"subnet {name} not found in this region", at)
            continue
        gateways = gateways or await facts.gateways()
        if gateways[name]:
            words = f"{name} is a public subnet: its routes go to {', '.join(gateways[name])}"
            hint = "instances have no public address: use a private subnet with a NAT gateway or VPC endpoints"
            yield error(words, at, hint)


@aws_rule("network", networks, lambda _: SUBNETS)
async def _addresses_are_enough(facts: Facts, network: Network) -> Asked:
    """A group of several types may come in the one that takes most."""
    at, known = f"{network.path}.Subnets", await facts.known_subnets(network.subnets)
    instances = least = needed = 0
    for group in network.groups:
        types = {name: await facts.type_of(name) for name in group.types}
        if missing := [name for name, one in types.items() if one is None]:
            words = f"the number of addresses that an instance of {missing[0][:40]} needs is unknown; 1 is assumed"
            yield unknown(words, at)
        count, facts_known = group.count or 0, [one for one in types.values() if one is not None]
        instances += count
        taken = [
            [one.address_count(eks=eks, efa_only=group.efa_only) for one in facts_known]
            for eks in (False, facts.documents.on_eks)
        ]
        least += count * max(taken[0], default=1)
        needed += count * max(taken[1], default=1)
    free = sum(int(one["AvailableIpAddressCount"]) for one in known)
    if not known or len(known) < len(network.subnets) or needed <= free:
        return
    words = f"{instances} instances need {needed} addresses, but the subnets have {free} free"
    hint = "use larger or more subnets before you create the cluster"
    if least > free:
        yield error(words, at, hint)
    else:
        # On EKS most of them are for pods: Amazon's VPC CNI takes them as pods come, or fewer, as it is set up.
        yield warning(f"{words}: pods may get no address", at, hint)


@aws_rule("network", only, lambda _: SUBNETS)
async def _one_vpc(facts: Facts, _: Documents) -> Asked:
    vpcs = sorted({str(one["VpcId"]) for one in (await facts.subnets()).values()})
    if len(vpcs) > 1:
        yield error(f"the subnets are in several VPCs: {', '.join(vpcs)}", SUBNETS)


@aws_rule("network", networks, lambda _: "VpcConfig.SecurityGroupIds")
async def _security_groups(facts: Facts, network: Network) -> Asked:
    at, known = f"{network.path}.SecurityGroupIds", await facts.security_groups()
    for name in network.security_groups:
        if name not in known:
            yield error(f"security group {name} not found in this region", at)
    found = [known[name] for name in network.security_groups if name in known]
    if found and len(found) == len(network.security_groups):
        for direction in ("inbound", "outbound"):
            async for one in _members_reach_each_other(facts, network, found, direction, at):
                yield one


async def _members_reach_each_other(
    facts: Facts, network: Network, found: Sequence[SecurityGroup], direction: str, at: str
) -> Asked:
    """EFA passes only between members of one security group that lets all of itself in and out (EC2 user guide, "Get started with EFA")."""
    rules = [(group, one) for group in found for one in _rules(group, direction)]
    if any(one.protocol == "-1" and group.name in one.groups for group, one in rules):
        return
    way, verb = ("in", "ingress") if direction == "inbound" else ("out", "egress")
    name = found[0].name
    hint = (
        f"aws ec2 authorize-security-group-{verb} --group-id {name} --ip-permissions "
        f"'IpProtocol=-1,UserIdGroupPairs=[{{GroupId={name}}}]'"
    )
    words = f"no security group allows all traffic of its own members {way}"
    types = {name: await facts.type_of(name) for one in network.groups for name in one.types}
    efa = sorted(name for name, one in types.items() if one is not None and one.efa != 0)
    opened = any(one.protocol == "-1" and one.ranges for _, one in rules)
    if efa:
        yield error(f"{words}, which EFA on {', '.join(efa)} needs", at, hint)
    elif sum(group.count or 0 for group in network.groups) > 1 and not opened:
        yield warning(f"{words}: instances could not reach each other", at, hint)


def _rules(group: SecurityGroup, direction: str) -> tuple[Rule, ...]:
    return group.inbound if direction == "inbound" else group.outbound


@aws_rule("network", networks, lambda _: SUBNETS)
async def _security_groups_of_vpc(facts: Facts, network: Network) -> Asked:
    vpcs = sorted({one["VpcId"] for one in await facts.known_subnets(network.subnets)})
    known = await facts.security_groups()
    for name in network.security_groups if vpcs else ():
        if name in known and known[name].vpc not in vpcs:
            words = f"{name} is in {known[name].vpc}, but the subnets are in {', '.join(vpcs)}"
            yield error(words, f"{network.path}.SecurityGroupIds")


# ---------------------------------------------------------------------------------- instance types and quotas

MOST_IN_CLUSTER = "Maximum number of instances allowed per SageMaker HyperPod cluster"
MOST_IN_ALL = "Total number of instances allowed across SageMaker HyperPod clusters"


@rule("capacity")
def _type_names(documents: Documents) -> Found:
    for group in documents.groups:
        at = f"{group.path}.InstanceType"
        if not group.types:
            yield error(f"{group.title} has no instance type", at)
        for name in group.types:
            if not name.startswith("ml."):
                yield error(f"{name[:40]} is an EC2 name", at, f"did you mean ml.{name[:40]}?")


def types_of_groups(documents: Documents) -> Iterable[tuple[Group, str]]:
    """Each instance type of each group."""
    return [(group, name) for group in documents.groups for name in group.types]


def nowhere(_: object) -> None:
    """No place: it is about several."""


@aws_rule("capacity", types_of_groups, nowhere)
async def _types_exist(facts: Facts, item: tuple[Group, str]) -> Asked:
    group, name = item
    found = (await facts.types()).get(name)
    at = f"{group.path}.InstanceType"
    if found is None:
        if name.startswith("ml."):
            yield warning(f"EC2 has no instance type {name.removeprefix('ml.')} in this region", at)
        return
    threads = (found.get("VCpuInfo") or {}).get("ValidThreadsPerCore") or ()
    if group.threads is not None and threads and group.threads not in threads:
        allowed = " or ".join(map(str, threads))
        words = f"{name} allows {allowed} threads per core, not {group.threads}"
        yield error(words, f"{group.path}.ThreadsPerCore")
    if not found.get("CurrentGeneration", True):
        yield warning(f"{name} is of an old generation, whose capacity at AWS shrinks", at)


@aws_rule("capacity", types_of_groups, nowhere)
async def _types_are_in_zone(facts: Facts, item: tuple[Group, str]) -> Asked:
    group, name = item
    zones, offered = set[str](), (await facts.zones()).get(name, set())
    for subnet in await facts.known_subnets(facts.documents.subnets_of(group)):
        zones.add(str(subnet["AvailabilityZone"]))
    # A training plan has its own zone.
    if zones and offered and not zones & offered and group.training_plan is None:
        hint = f"it is available in {', '.join(sorted(offered))}: use a subnet there"
        words = f"{name} is not available in {', '.join(sorted(zones))}"
        yield error(words, f"{group.path}.InstanceType", hint)


@aws_rule("capacity", only, nowhere)
async def _quotas(facts: Facts, documents: Documents) -> Asked:
    known, wanted = await facts.quotas(), Counter[str]()
    for group in documents.groups:
        # A group of several types may come in any of them; a training plan has its own quota.
        if len(group.types) == 1 and group.training_plan is None:
            wanted[f"{group.types[0]} for cluster usage"] += group.count or 0
    wanted = Counter(dict(sorted((+wanted).items())))
    every = sum(group.count or 0 for group in documents.groups)
    wanted.update({title: every for title in (MOST_IN_CLUSTER, MOST_IN_ALL) if title in known})
    for title, count in wanted.items():
        if title not in known:
            yield unknown(f"quota '{title}' not found, so {count} instances could not be checked")
        elif count > known[title]:
            words = (
                f"{count} instances are requested, but the quota '{title}' is {known[title]:.0f}"
            )
            hint = "request an increase in the Service Quotas console, under Amazon SageMaker"
            yield error(words, "InstanceGroups", hint)


# ---------------------------------------------------------------------------------- role, name, EKS cluster

SERVICE = "sagemaker.amazonaws.com"
"""The service that a role of instances has to trust (SageMaker's guide, "IAM role for SageMaker HyperPod")."""


def groups_by_role(documents: Documents) -> Iterable[Group]:
    """A group of each role."""
    groups = documents.groups
    return _first((one.role, one) for one in groups if one.role and one.role.startswith("arn:"))


@aws_rule("role", groups_by_role, lambda group: f"{group.path}.ExecutionRole")
async def _roles(facts: Facts, group: Group) -> Asked:
    role, at = str(group.role), f"{group.path}.ExecutionRole"
    try:
        policy = await facts.trust_policy(role)
    except NotFoundError as missing:
        yield error(f"role {role} not found", at, missing.hint)
        return
    if not trusts(policy):
        words = f"{role.rpartition('/')[2]} does not trust {SERVICE}, so instances cannot assume it"
        hint = f"allow sts:AssumeRole for the service {SERVICE} in its trust policy"
        yield error(words, at, hint)


def trusts(policy: Mapping[str, Any], service: str = SERVICE) -> bool:
    """Whether a trust policy lets a service take the role; conditions are not looked at."""
    effects = set[str]()
    for one in _listed(policy.get("Statement")):
        principal = one.get("Principal") if isinstance(one, dict) else None
        services = principal.get("Service") if isinstance(principal, dict) else principal
        if {service, "*"} & {*_listed(services)} and {"sts:AssumeRole", "sts:*", "*"} & {
            *_listed(one.get("Action"))
        }:
            effects.add(one.get("Effect"))
    return "Allow" in effects and "Deny" not in effects


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


@aws_rule("cluster", lambda one: [one.name] if one.name else [], lambda _: "ClusterName")
async def _name_is_free(facts: Facts, name: str) -> Asked:
    status = await facts.cluster_status(name)
    if status is not None:
        instead = f"delete-cluster {name}" if status == "Failed" else "update-cluster"
        words = f"a cluster {name} already exists ({status})"
        yield error(words, "ClusterName", f"use another name, or: hpj admin {instead}")


def eks_clusters(documents: Documents) -> Iterable[str]:
    """The EKS cluster, if there is one."""
    return [documents.eks_arn] if documents.on_eks and documents.eks_arn else []


@aws_rule("eks", eks_clusters, lambda _: EKS_PLACE)
async def _eks_is_ready(facts: Facts, arn: str) -> Asked:
    found = await facts.eks(arn)
    if found.get("status") != "ACTIVE":
        words = f"the EKS cluster is {found.get('status')}"
        yield error(words, EKS_PLACE, "wait until it is ACTIVE")
    if (found.get("accessConfig") or {}).get("authenticationMode") == "CONFIG_MAP":
        words = "the EKS cluster authenticates users by a ConfigMap only, but HyperPod needs access entries"
        hint = "aws eks update-cluster-config --access-config authenticationMode=API_AND_CONFIG_MAP"
        yield error(words, EKS_PLACE, hint)
    if not (found.get("resourcesVpcConfig") or {}).get("vpcId"):
        yield unknown("could not be checked: AWS does not show its VPC", EKS_PLACE)


@aws_rule("eks", eks_clusters, lambda _: SUBNETS)
async def _eks_vpc(facts: Facts, arn: str) -> Asked:
    try:
        vpc = ((await facts.eks(arn)).get("resourcesVpcConfig") or {}).get("vpcId")
    except HyperpodError:
        return  # the rule above reports it
    vpcs = sorted({one["VpcId"] for one in (await facts.subnets()).values()})
    if vpc and vpcs and vpc not in vpcs:
        words = f"the EKS cluster is in {vpc}, but the subnets are in {', '.join(vpcs)}"
        yield error(words, SUBNETS)
