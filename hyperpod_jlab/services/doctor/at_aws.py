"""What AWS tells of this place, each thing asked for once for all steps that want it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from hyperpod_jlab.aws.domains import Domain, describe_domain
from hyperpod_jlab.aws.lustre import LustreMount, is_mount_of, lustre_mounts
from hyperpod_jlab.aws.network import (
    cluster_place,
    describe_interfaces,
    describe_network_acls,
    describe_route_tables,
    describe_security_groups,
    describe_subnets,
    file_system_place,
)
from hyperpod_jlab.aws.profiles import Profile, describe_profile
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.spaces import Space, describe_space
from hyperpod_jlab.aws.studio import Studio, find_studio
from hyperpod_jlab.model.cluster import Rows
from hyperpod_jlab.model.config import KubernetesCluster, LocalCluster, Settings
from hyperpod_jlab.model.errors import HyperpodError, UnreachableError
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.model.network import Interface, Place, SecurityGroup
from hyperpod_jlab.model.subnets import NetworkAcl, RouteTable, Subnet
from hyperpod_jlab.services.doctor.opened import Opened
from hyperpod_jlab.services.hyperpod_clusters import HyperpodClusters

T = TypeVar("T")

PATIENCE = 25.0
"""Seconds that an answer may take. A step has more, so that this says what was silent."""

_UNREACHABLE = "aws_unreachable"

_FILE_SYSTEM = re.compile(r"(fs-[0-9a-f]+)\.fsx\.")


class AtAws:
    """This place as AWS knows it. All methods raise `HyperpodError` (see `aws.errors`): the same again to who asks again.

    Attributes:
        studio: The place in Studio; None outside of it.
        mounts: The file systems of FSx for Lustre that are mounted here.
        aws: AWS.
    """

    def __init__(self, opened: Opened, only: str | None = None) -> None:
        self.studio: Studio | None = find_studio()
        self.mounts: list[LustreMount] = lustre_mounts()
        self.aws = Aws()
        self._opened = opened
        self._only = only
        self._kept: dict[str, Any] = {}
        self._silent: dict[str, HyperpodError] = {}

    @property
    def concerned(self) -> bool:
        """Whether anything here has to do with AWS: this is Studio, or the configuration names a cluster by its name there."""
        return self.studio is not None or bool(self.named) or self._names_eks

    @property
    def named(self) -> dict[str, str]:
        """The HyperPod clusters that the configuration names, by the names that it gives them."""
        return {
            name: config.hyperpod
            for name, config in self._clusters().items()
            if not isinstance(config, LocalCluster) and config.hyperpod is not None
        }

    @property
    def _names_eks(self) -> bool:
        found = self._clusters().values()
        return any(isinstance(one, KubernetesCluster) and one.eks is not None for one in found)

    def _clusters(self) -> dict[str, Any]:
        if not self._opened.is_open:
            return {}
        clusters = self.settings.clusters
        return {name: one for name, one in clusters.items() if self._only in {None, name}}

    @property
    def settings(self) -> Settings:
        """The configuration."""
        return self._opened.hyperpod.settings

    async def caller(self) -> str:
        """Who this is: an ARN."""

        async def ask() -> str:
            return str((await self.aws.call("sts", "GetCallerIdentity"))["Arn"])

        return await self._once("sts", "caller", ask)

    async def space(self) -> Space | None:
        """The space; None outside of one."""
        studio = self.studio
        if studio is None or not studio.domain_id or not studio.space:
            return None
        domain, name = studio.domain_id, studio.space
        return await self._once(
            "sagemaker", "space", lambda: describe_space(self.aws, domain, name)
        )

    async def domain(self) -> Domain | None:
        """The domain; None outside of Studio."""
        studio = self.studio
        if studio is None or not studio.domain_id:
            return None
        domain = studio.domain_id
        return await self._once("sagemaker", "domain", lambda: describe_domain(self.aws, domain))

    async def profile(self) -> Profile | None:
        """The user profile whose space this is; None where nobody says whose it is."""
        studio = self.studio
        if studio is None or not studio.domain_id:
            return None
        name = studio.user_profile
        if name is None:
            space = await self.space()
            name = space.owner if space else None
        if name is None:
            return None
        domain, wanted = studio.domain_id, name
        return await self._once(
            "sagemaker", "profile", lambda: describe_profile(self.aws, domain, wanted)
        )

    async def clusters(self) -> Rows[HyperpodCluster]:
        """All HyperPod clusters of the account in the region."""
        service = HyperpodClusters(self.settings, self.aws, self.mounts)
        return await self._once("sagemaker", "clusters", service.clusters)

    async def our_clusters(self) -> list[HyperpodCluster]:
        """Those of them that the configuration has; where it has none, those whose file system is mounted here."""
        found = await self.clusters()
        ours = [one for one in found if self._is_wanted(one)]
        return ours or [one for one in found if one.mounted_here and self._only is None]

    def _is_wanted(self, cluster: HyperpodCluster) -> bool:
        return any(self._only in {None, name} for name in cluster.configured_as)

    async def file_systems(self) -> list[str]:
        """The ids of the file systems that matter here: those mounted here, those of the space, those of the clusters that count."""
        found = [one.file_system for one in self.mounts]
        space = await self.known(self.space())
        found += space.file_systems if space else ()
        for cluster in await self.our_clusters():
            found += [file_system_of(one.dns_name) for one in cluster.storage]
        return sorted({one for one in found if one is not None})

    async def is_mounted(self, name: str) -> bool:
        """Whether a file system is mounted here, going by its id, or by what a cluster says of it."""
        if any(mount.file_system == name for mount in self.mounts):
            return True
        return any(
            is_mount_of(mount, one)
            for cluster in await self.our_clusters()
            for one in cluster.storage
            if file_system_of(one.dns_name) == name
            for mount in self.mounts
        )

    async def known(self, answer: Awaitable[T | None]) -> T | None:
        """An answer that others can do without: None where it could not be had, which its own step says."""
        try:
            return await answer
        except HyperpodError:
            return None

    async def place_of_file_system(self, name: str) -> Place:
        """Where a file system is in the network."""
        return await self._once("fsx", name, lambda: file_system_place(self.aws, name))

    async def interfaces_of(self, name: str) -> list[Interface]:
        """The network interfaces of a file system."""
        place = await self.place_of_file_system(name)
        return await self._once(
            "ec2", f"interfaces {name}", lambda: describe_interfaces(self.aws, place.interfaces)
        )

    async def place_of_domain(self) -> Place | None:
        """Where the applications of this space are in the network; None outside of Studio."""
        domain = await self.domain()
        if domain is None:
            return None
        profile = await self.known(self.profile())
        groups = (profile.groups if profile else ()) or domain.groups
        return Place(f"the domain {domain.name}", domain.vpc, domain.subnets, groups)

    async def place_of_cluster(self, name: str) -> Place:
        """Where a HyperPod cluster is in the network."""
        return await self._once(
            "sagemaker", f"cluster {name}", lambda: cluster_place(self.aws, name)
        )

    async def groups(self, names: tuple[str, ...]) -> list[SecurityGroup]:
        """Security groups by their ids."""
        wanted = sorted(names)
        return await self._once(
            "ec2", f"groups {wanted}", lambda: describe_security_groups(self.aws, wanted)
        )

    async def subnets(self, names: Iterable[str]) -> list[Subnet]:
        """Subnets by their ids."""
        wanted = sorted(set(names))
        return await self._once(
            "ec2", f"subnets {wanted}", lambda: describe_subnets(self.aws, wanted)
        )

    async def network_acls(self, subnets: Iterable[str]) -> list[NetworkAcl]:
        """The network ACLs of subnets."""
        wanted = sorted(set(subnets))
        return await self._once(
            "ec2", f"acls {wanted}", lambda: describe_network_acls(self.aws, wanted)
        )

    async def route_tables(self, vpcs: Iterable[str]) -> list[RouteTable]:
        """The route tables of VPCs."""
        wanted = sorted(set(vpcs))
        return await self._once(
            "ec2", f"tables {wanted}", lambda: describe_route_tables(self.aws, wanted)
        )

    async def _once(self, service: str, name: str, ask: Callable[[], Awaitable[T]]) -> T:
        """What was asked for under a name; a service that is silent is not asked again."""
        if name not in self._kept:
            self._kept[name] = self._silent.get(service) or await self._asked(service, ask)
        kept = self._kept[name]
        if isinstance(kept, HyperpodError):
            raise kept
        found: T = kept
        return found

    async def _asked(self, service: str, ask: Callable[[], Awaitable[T]]) -> T | HyperpodError:
        try:
            async with asyncio.timeout(PATIENCE):
                return await ask()
        except TimeoutError:
            error: HyperpodError = UnreachableError(
                f"{service} gives no answer in {PATIENCE:g} s",
                code=_UNREACHABLE,
                hint="try again; a VPC without a way out needs an interface endpoint for it",
            )
        except HyperpodError as refusal:
            error = refusal
        if error.code == _UNREACHABLE:
            self._silent[service] = error
        return error


def file_system_of(dns_name: str) -> str | None:
    """The id of a file system by the name of its server, such as ``fs-....fsx.us-west-2.amazonaws.com``."""
    found = _FILE_SYSTEM.match(dns_name)
    return found[1] if found else None
