"""Domains of Studio: where their applications are in the network, and which file systems they may mount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.aws.idle_settings import idle_settings
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.idle_shutdown import IdleSettings


@dataclass(frozen=True)
class Domain:
    """A domain.

    Attributes:
        name: Its id.
        status: AWS' word for its state, such as ``InService``.
        network: ``VpcOnly`` or ``PublicInternetOnly``: how its applications reach the internet and AWS.
        vpc: Its VPC.
        subnets: Its subnets.
        groups: The security groups that users' applications have, unless their profiles name others.
        file_systems: The file systems of FSx for Lustre that users may mount, and the folder of each.
        shared_file_systems: The same of its shared spaces.
        problem: Why it does not work.
        idle: Its idle shutdown of users' applications, by the application's type.
        shared_idle: The same of its shared spaces.
    """

    name: str
    status: str
    network: str | None = None
    vpc: str | None = None
    subnets: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    file_systems: tuple[tuple[str, str], ...] = ()
    shared_file_systems: tuple[tuple[str, str], ...] = ()
    problem: str | None = None
    idle: Mapping[str, IdleSettings] = field(default_factory=dict)
    shared_idle: Mapping[str, IdleSettings] = field(default_factory=dict)


async def describe_domain(aws: Aws, name: str) -> Domain:
    """A domain by its id.

    Raises:
        NotFoundError: There is no such domain.
        HyperpodError: See `aws.errors`.
    """
    told = await aws.call("sagemaker", "DescribeDomain", DomainId=name)
    users, spaces = told.get("DefaultUserSettings") or {}, told.get("DefaultSpaceSettings") or {}
    return Domain(
        name,
        status=str(told.get("Status", "")),
        network=told.get("AppNetworkAccessType"),
        vpc=told.get("VpcId"),
        subnets=tuple(told.get("SubnetIds") or ()),
        groups=tuple(users.get("SecurityGroups") or ()),
        file_systems=custom_file_systems(users),
        shared_file_systems=custom_file_systems(spaces),
        problem=told.get("FailureReason"),
        idle=idle_settings(users),
        shared_idle=idle_settings(spaces),
    )


def custom_file_systems(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The file systems of FSx for Lustre in the settings of a user or space: id and folder."""
    found = (
        one.get("FSxLustreFileSystemConfig")
        for one in settings.get("CustomFileSystemConfigs") or ()
    )
    return tuple(
        (str(one["FileSystemId"]), str(one.get("FileSystemPath") or "/")) for one in found if one
    )
