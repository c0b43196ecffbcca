"""What AWS tells of all that a configuration names. Each piece is what was found, or the error with which it could not be had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.instance_types import InstanceType, instance_type
from hyperpod_jlab.core.network import SecurityGroup

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Subnet:
    """A subnet: its VPC, its zone, how many addresses are free in it."""

    name: str
    vpc: str
    zone: str
    free: int


@dataclass(frozen=True)
class RouteTable:
    """A route table: the subnets that have it, whether it is its VPC's main one, and the internet gateways that it leads to."""

    vpc: str
    subnets: tuple[str, ...]
    main: bool
    gateways: tuple[str, ...]


@dataclass(frozen=True)
class FileSystemSeen:
    """A file system: its state, kind, names and place."""

    name: str
    kind: str
    state: str
    dns_name: str | None
    mount_name: str | None
    vpc: str
    subnets: tuple[str, ...]
    interfaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class InterfacesSeen:
    """The network interfaces of a file system: their security groups and addresses."""

    groups: tuple[SecurityGroup, ...]
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class InstanceTypeSeen:
    """What EC2 says of an instance type: its facts, which numbers of threads a core may have, whether it is of a current generation."""

    facts: InstanceType
    threads: tuple[int, ...]
    current: bool


@dataclass(frozen=True)
class EksSeen:
    """An EKS cluster: its state, its VPC, and how it knows people."""

    status: str
    vpc: str | None
    authentication: str | None


@dataclass(frozen=True)
class Seen:
    """All of it. Subnets, security groups and types that are not in their mappings are not there.

    Attributes:
        subnets: Subnets by id.
        routes: The route tables of their VPCs.
        groups: Security groups by id.
        file_systems: File systems by id.
        interfaces: Their network interfaces, by the file system's id.
        roles: What each role trusts, as its policy document, by ARN.
        scripts: The names of the files in each folder of life cycle scripts, by its address.
        quotas: SageMaker's quotas by their names.
        types: EC2's instance types by SageMaker's names.
        zones: The zones in which each of them is, by the same names.
        existing: The status of a cluster of the name; None: there is none.
        eks: The EKS cluster; None: the cluster is on Slurm.
    """

    subnets: Mapping[str, Subnet] | HyperpodError = field(default_factory=dict)
    routes: tuple[RouteTable, ...] | HyperpodError = ()
    groups: Mapping[str, SecurityGroup] | HyperpodError = field(default_factory=dict)
    file_systems: Mapping[str, FileSystemSeen | HyperpodError] = field(default_factory=dict)
    interfaces: Mapping[str, InterfacesSeen | HyperpodError] = field(default_factory=dict)
    roles: Mapping[str, Mapping[str, Any] | HyperpodError] = field(default_factory=dict)
    scripts: Mapping[str, frozenset[str] | HyperpodError] = field(default_factory=dict)
    quotas: Mapping[str, float] | HyperpodError = field(default_factory=dict)
    types: Mapping[str, InstanceTypeSeen] | HyperpodError = field(default_factory=dict)
    zones: Mapping[str, frozenset[str]] | HyperpodError = field(default_factory=dict)
    existing: str | HyperpodError | None = None
    eks: EksSeen | HyperpodError | None = None

    def facts_of(self, name: str) -> InstanceType | None:
        """What is known of an instance type: by EC2, else by the table."""
        told = None if isinstance(self.types, HyperpodError) else self.types.get(name)
        return told.facts if told is not None else instance_type(name)
