"""A cluster's configuration as words: what of both files has its right type. What has not is the schema's to complain about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Orchestrator = Literal["slurm", "eks"]


@dataclass(frozen=True)
class Lustre:
    """A file system that a group mounts, and where that stands."""

    path: str
    dns_name: str | None
    mount_name: str | None
    mount_path: str | None = None


@dataclass(frozen=True)
class Group:
    """An instance group.

    Attributes:
        path: Where it stands, such as ``InstanceGroups[0]``.
        name: Its name.
        count: How many instances it is to have.
        types: Its instance types.
        script_folder: Where its life cycle scripts lie.
        script: Which of them runs when an instance is made.
        role: ARN of its role.
        threads: Threads for each core.
        lustre: The file systems of FSx for Lustre that it mounts.
        volumes: Its volumes, as they stand there.
        slurm_role: ``Controller``, ``Login`` or ``Compute``, where it says so itself.
        partitions: The Slurm partitions that it says itself.
        subnets: Its own subnets; empty: the cluster's.
        security_groups: Its own security groups; empty: the cluster's.
        plan: ARN of the training plan that its capacity is from.
        efa_only: Whether its instances have interfaces for EFA only, without addresses, besides the first one.
        restricted: Whether it is a restricted group.
    """

    path: str
    name: str | None
    count: int | None = None
    types: tuple[str, ...] = ()
    script_folder: str | None = None
    script: str | None = None
    role: str | None = None
    threads: int | None = None
    lustre: tuple[Lustre, ...] = ()
    volumes: tuple[Mapping[str, Any], ...] = ()
    slurm_role: str | None = None
    partitions: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    plan: str | None = None
    efa_only: bool = False
    restricted: bool = False

    @property
    def words(self) -> str:
        """How it is called in sentences."""
        return f"the group {self.name}" if self.name else self.path


@dataclass(frozen=True)
class ClusterConfig:
    """The input of CreateCluster.

    Attributes:
        name: The cluster's name.
        orchestrator: Who schedules; Slurm where nothing is said, as AWS has it.
        eks_arn: ARN of the EKS cluster.
        groups: All instance groups, the restricted ones last.
        subnets: The cluster's subnets.
        security_groups: The cluster's security groups.
    """

    name: str | None
    orchestrator: Orchestrator
    eks_arn: str | None = None
    groups: tuple[Group, ...] = ()
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()

    def subnets_of(self, group: Group) -> tuple[str, ...]:
        """The subnets in which a group's instances come."""
        return group.subnets or self.subnets

    def security_groups_of(self, group: Group) -> tuple[str, ...]:
        """The security groups that a group's instances have."""
        return group.security_groups or self.security_groups


@dataclass(frozen=True)
class Worker:
    """A worker group of the second file."""

    path: str
    name: str | None
    partition: str | None


@dataclass(frozen=True)
class Provisioning:
    """The file provisioning_parameters.json, from which AWS' life cycle scripts learn what each group is to Slurm."""

    controller: str | None = None
    login: str | None = None
    workers: tuple[Worker, ...] = ()
    dns_name: str | None = None
    mount_name: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


def config_of(raw: Mapping[str, Any]) -> ClusterConfig:
    """The words of an input of CreateCluster, whatever is wrong with it."""
    network, scheduler = _object(raw, "VpcConfig"), _object(raw, "Orchestrator")
    eks = _object(scheduler, "Eks")
    groups = [
        *_groups(raw, "InstanceGroups", restricted=False),
        *_groups(raw, "RestrictedInstanceGroups", restricted=True),
    ]
    return ClusterConfig(
        name=_text(raw, "ClusterName"),
        orchestrator="eks" if "Eks" in scheduler else "slurm",
        eks_arn=_text(eks, "ClusterArn"),
        groups=tuple(groups),
        subnets=_texts(network, "Subnets"),
        security_groups=_texts(network, "SecurityGroupIds"),
    )


def provisioning_of(raw: Mapping[str, Any]) -> Provisioning:
    """The words of the second file, whatever is wrong with it."""
    workers = raw.get("worker_groups")
    found = [
        Worker(
            f"worker_groups[{number}]",
            _text(one, "instance_group_name"),
            _text(one, "partition_name"),
        )
        for number, one in enumerate(workers if isinstance(workers, list) else ())
        if isinstance(one, dict)
    ]
    return Provisioning(
        controller=_text(raw, "controller_group"),
        login=_text(raw, "login_group"),
        workers=tuple(found),
        dns_name=_text(raw, "fsx_dns_name"),
        mount_name=_text(raw, "fsx_mountname"),
        raw=raw,
    )


def _groups(raw: Mapping[str, Any], member: str, *, restricted: bool) -> Iterator[Group]:
    found = raw.get(member)
    for number, one in enumerate(found if isinstance(found, list) else ()):
        if isinstance(one, dict):
            yield _group(one, f"{member}[{number}]", restricted=restricted)


def _group(raw: Mapping[str, Any], path: str, *, restricted: bool) -> Group:
    life, slurm = _object(raw, "LifeCycleConfig"), _object(raw, "SlurmConfig")
    network, needs = _object(raw, "OverrideVpcConfig"), _object(raw, "InstanceRequirements")
    one_type = _text(raw, "InstanceType")
    storage = raw.get("InstanceStorageConfigs")
    configs = [
        one for one in (storage if isinstance(storage, list) else ()) if isinstance(one, dict)
    ]
    return Group(
        path=path,
        name=_text(raw, "InstanceGroupName"),
        count=_number(raw, "InstanceCount"),
        types=(one_type,) if one_type else _texts(needs, "InstanceTypes"),
        script_folder=_text(life, "SourceS3Uri"),
        script=_text(life, "OnCreate"),
        role=_text(raw, "ExecutionRole"),
        threads=_number(raw, "ThreadsPerCore"),
        lustre=tuple(
            Lustre(
                f"{path}.InstanceStorageConfigs[{number}].FsxLustreConfig",
                *(_text(lustre, name) for name in ("DnsName", "MountName", "MountPath")),
            )
            for number, config in enumerate(configs)
            if (lustre := _object(config, "FsxLustreConfig"))
        ),
        volumes=tuple(
            _object(config, "EbsVolumeConfig") for config in configs if "EbsVolumeConfig" in config
        ),
        slurm_role=_text(slurm, "NodeType"),
        partitions=_texts(slurm, "PartitionNames"),
        subnets=_texts(network, "Subnets"),
        security_groups=_texts(network, "SecurityGroupIds"),
        plan=_text(raw, "TrainingPlanArn"),
        efa_only=_text(_object(raw, "NetworkInterface"), "InterfaceType") == "efa-only",
        restricted=restricted,
    )


def _object(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = raw.get(name)
    return found if isinstance(found, dict) else {}


def _text(raw: Mapping[str, Any], name: str) -> str | None:
    found = raw.get(name)
    return found if isinstance(found, str) and found else None


def _number(raw: Mapping[str, Any], name: str) -> int | None:
    found = raw.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _texts(raw: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = raw.get(name)
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()
