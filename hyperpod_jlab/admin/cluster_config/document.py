"""A cluster's configuration: parses its two files.

A value of the wrong type counts as missing here; `schema` reports it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import InvalidInputError

PROVISIONING = "provisioning_parameters.json"
"""The second file, in which AWS' base lifecycle scripts find the Slurm role of each group."""

_FILE_SYSTEM = re.compile(r"(fs-[0-9a-f]{8,})\.fsx\..+")


def read_document(path: Path) -> dict[str, Any]:
    """A file's JSON object.

    Raises:
        InvalidInputError: It cannot be read, is not JSON, has a name twice, or is not an object.
    """
    try:
        data = json.loads(
            path.read_text(encoding="utf-8-sig"), object_pairs_hook=_unique_members, parse_constant=_reject_constant
        )
    except UnicodeDecodeError as error:
        raise _syntax_error(path, "is not UTF-8 text") from error
    except OSError as error:
        raise _syntax_error(path, f"cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        location = f"line {error.lineno}, column {error.colno}"
        raise _syntax_error(path, f"is not valid JSON: {location}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise _syntax_error(path, f"contains JSON that AWS does not accept: {error}") from error
    if not isinstance(data, dict):
        raise _syntax_error(path, "must be a JSON object")
    return data


def _syntax_error(path: Path, problem: str) -> InvalidInputError:
    detail = {"field": "file", "file": str(path)}
    return InvalidInputError(f"{path} {problem}", code="bad_file", detail=detail)


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Python keeps the last of two members with one name, which would hide the first."""
    names = [name for name, _ in pairs]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"duplicate name {', '.join(duplicates)} in one object")
    return dict(pairs)


def _reject_constant(number: str) -> Any:
    raise ValueError(f"{number} is not a number")


def file_system_id(dns_name: str | None) -> str | None:
    """The file system of a DNS name; None if it names a cache, or is not from FSx."""
    match = _FILE_SYSTEM.fullmatch(dns_name or "")
    return match[1] if match else None


@dataclass(frozen=True)
class ClusterMount:
    """A Lustre file system that instance groups mount, and where the files say so."""

    path: str
    dns_name: str | None
    mount_name: str | None
    mount_path: str | None = None
    groups: tuple[GroupConfig, ...] = ()


@dataclass(frozen=True)
class GroupConfig:
    """An instance group by the names of CreateCluster; `slurm_role` is its NodeType, `path` its place in the file."""

    path: str
    name: str | None
    count: int | None
    types: tuple[str, ...]
    script_folder: str | None
    script: str | None
    storage: tuple[Mapping[str, Any], ...]
    slurm_role: str | None
    partitions: tuple[str, ...]
    subnets: tuple[str, ...]
    security_groups: tuple[str, ...]
    efa_only: bool
    restricted: bool

    @property
    def title(self) -> str:
        """Its display name."""
        return f"instance group {self.name}" if self.name else self.path

    @property
    def mounts(self) -> tuple[ClusterMount, ...]:
        """The Lustre file systems that it mounts itself."""
        return tuple(
            ClusterMount(
                f"{self.path}.InstanceStorageConfigs[{number}].FsxLustreConfig",
                _text(lustre, "DnsName"),
                _text(lustre, "MountName"),
                _text(lustre, "MountPath"),
                (self,),
            )
            for number, storage in enumerate(self.storage)
            if (lustre := _object(storage, "FsxLustreConfig"))
        )


@dataclass(frozen=True)
class Network:
    """Subnets and security groups, and the instance groups in them."""

    path: str
    subnets: tuple[str, ...]
    security_groups: tuple[str, ...]
    groups: tuple[GroupConfig, ...]


@dataclass(frozen=True)
class Provisioning:
    """What the second file says; `workers` are path, name and partition of each worker group."""

    raw: Mapping[str, Any]
    controller: str | None
    login: str | None
    workers: tuple[tuple[str, str | None, str | None], ...]
    dns_name: str | None
    mount_name: str | None


class ClusterConfigFiles:
    """Both files as they were read, and what they say.

    Args:
        cluster: The input of CreateCluster.
        provisioning: The second file; None: there is none.
    """

    def __init__(self, cluster: Mapping[str, Any], provisioning: Mapping[str, Any] | None = None) -> None:
        self.cluster, self.provisioning = cluster, provisioning
        self.name = _text(cluster, "ClusterName")
        # AWS' default is Slurm.
        self.on_eks = "Eks" in _object(cluster, "Orchestrator")
        network = _object(cluster, "VpcConfig")
        self.subnets = _texts(network, "Subnets")
        self.security_groups = _texts(network, "SecurityGroupIds")
        self.groups = tuple(
            _group(raw_group, f"{member}[{number}]", restricted=member.startswith("Restricted"))
            for member in ("InstanceGroups", "RestrictedInstanceGroups")
            for number, raw_group in enumerate(_list(cluster, member))
            if isinstance(raw_group, dict)
        )
        self.second = None if provisioning is None else _provisioning(provisioning)

    def subnets_of(self, group: GroupConfig) -> tuple[str, ...]:
        """The subnets of a group's instances."""
        return group.subnets or self.subnets

    def security_groups_of(self, group: GroupConfig) -> tuple[str, ...]:
        """The security groups of a group's instances."""
        return group.security_groups or self.security_groups

    @property
    def networks(self) -> Iterator[Network]:
        """Each network that the first file names."""
        without_subnets = tuple(group for group in self.groups if not group.subnets)
        if self.subnets or self.security_groups:
            yield Network("VpcConfig", self.subnets, self.security_groups, without_subnets)
        for group in self.groups:
            if group.subnets:
                path = f"{group.path}.OverrideVpcConfig"
                yield Network(path, group.subnets, self.security_groups_of(group), (group,))

    @property
    def mounts(self) -> Iterator[ClusterMount]:
        """All mounts; every group mounts what the second file names."""
        for group in self.groups:
            yield from group.mounts
        if self.second is not None and self.second.dns_name is not None:
            path = f"{PROVISIONING}: fsx_dns_name"
            yield ClusterMount(path, self.second.dns_name, self.second.mount_name, groups=self.groups)


def _group(raw: Mapping[str, Any], path: str, *, restricted: bool) -> GroupConfig:
    scripts, slurm = _object(raw, "LifeCycleConfig"), _object(raw, "SlurmConfig")
    network, one_type = _object(raw, "OverrideVpcConfig"), _text(raw, "InstanceType")
    return GroupConfig(
        path=path,
        name=_text(raw, "InstanceGroupName"),
        count=_number(raw, "InstanceCount"),
        types=(one_type,) if one_type else _texts(_object(raw, "InstanceRequirements"), "InstanceTypes"),
        script_folder=_text(scripts, "SourceS3Uri"),
        script=_text(scripts, "OnCreate"),
        storage=tuple(storage for storage in _list(raw, "InstanceStorageConfigs") if isinstance(storage, dict)),
        slurm_role=_text(slurm, "NodeType"),
        partitions=_texts(slurm, "PartitionNames"),
        subnets=_texts(network, "Subnets"),
        security_groups=_texts(network, "SecurityGroupIds"),
        efa_only=_text(_object(raw, "NetworkInterface"), "InterfaceType") == "efa-only",
        restricted=restricted,
    )


def _provisioning(raw: Mapping[str, Any]) -> Provisioning:
    workers = tuple(
        (f"worker_groups[{number}]", _text(raw_group, "instance_group_name"), _text(raw_group, "partition_name"))
        for number, raw_group in enumerate(_list(raw, "worker_groups"))
        if isinstance(raw_group, dict)
    )
    names = ("controller_group", "login_group", "fsx_dns_name", "fsx_mountname")
    controller, login, dns_name, mount_name = (_text(raw, name) for name in names)
    return Provisioning(raw, controller, login, workers, dns_name, mount_name)


def _object(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}


def _list(raw: Mapping[str, Any], name: str) -> list[Any]:
    value = raw.get(name)
    return value if isinstance(value, list) else []


def _text(raw: Mapping[str, Any], name: str) -> str | None:
    value = raw.get(name)
    return value if isinstance(value, str) and value else None


def _texts(raw: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(text for text in _list(raw, name) if isinstance(text, str))


def _number(raw: Mapping[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
