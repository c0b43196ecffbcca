"""AWS' data on this environment, requested once for all steps that need it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.domains import Domain, Profile, Space, describe_domain, describe_profile, describe_space
from hyperpod_jlab.aws.file_systems import LustreMount, is_mount_of, lustre_mounts
from hyperpod_jlab.aws.network import (
    describe_interfaces,
    describe_network_acls,
    describe_route_tables,
    describe_security_groups,
    describe_subnets,
    locate_cluster,
    locate_file_system,
)
from hyperpod_jlab.aws.permissions import FEATURES
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.session_manager import RUN_AS, SessionPreferences, find_run_as, session_preferences
from hyperpod_jlab.aws.studio import Studio, find_studio
from hyperpod_jlab.clusters.aws import HyperpodClusters
from hyperpod_jlab.core.check import CheckResult, CheckStep, fail, from_error, ok, unknown, warn
from hyperpod_jlab.core.cluster import Rows
from hyperpod_jlab.core.config import ClusterConfig, Settings
from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.core.network import NetworkAcl, NetworkInterface, NetworkLocation, RouteTable, SecurityGroup, Subnet
from hyperpod_jlab.core.studio import APPS, resolve_idle_shutdown
from hyperpod_jlab.features.doctor.models import CONFIGURATION, LazyServices

T = TypeVar("T")

TIMEOUT_S = 25.0
"""Timeout of a request. A step has more time, so that it can report which service did not answer."""

_UNREACHABLE = "aws_unreachable"

_FILE_SYSTEM = re.compile(r"(fs-[0-9a-f]+)\.fsx\.")


class AwsEnvironment:
    """This environment as AWS describes it. All methods raise `HyperpodError` (see `aws.errors`); errors are cached too.

    Attributes:
        studio: The Studio environment; None outside Studio.
        mounts: The mounted FSx for Lustre file systems.
        aws: AWS.
    """

    def __init__(self, services: LazyServices, only_cluster: str | None = None) -> None:
        self.studio: Studio | None = find_studio()
        self.mounts: list[LustreMount] = lustre_mounts()
        self.aws = Aws()
        self._services = services
        self._only_cluster = only_cluster
        self._results: dict[str, Any] = {}
        self._unavailable: dict[str, HyperpodError] = {}

    @property
    def uses_aws(self) -> bool:
        """Whether AWS is relevant here: this is Studio, or the configuration names a cluster by its AWS name."""
        return self.studio is not None or bool(self.configured_clusters_of) or self._names_eks

    @property
    def configured_clusters_of(self) -> dict[str, str]:
        """The HyperPod clusters that the configuration names, by their names in it."""
        return {
            name: config.hyperpod_cluster
            for name, config in self._clusters().items()
            if config.hyperpod_cluster is not None
        }

    @property
    def _names_eks(self) -> bool:
        return any(config.eks_cluster is not None for config in self._clusters().values())

    def _clusters(self) -> dict[str, ClusterConfig]:
        if not self._services.is_open:
            return {}
        clusters = self.settings.clusters
        return {name: config for name, config in clusters.items() if self._only_cluster in {None, name}}

    @property
    def settings(self) -> Settings:
        return self._services.hyperpod.settings

    async def caller(self) -> str:
        """The caller's ARN."""

        async def ask() -> str:
            return str((await self.aws.call("sts", "GetCallerIdentity"))["Arn"])

        return await self._once("sts", "caller", ask)

    async def space(self) -> Space | None:
        """The space; None if this is not one."""
        studio = self.studio
        if studio is None or not studio.domain_id or not studio.space:
            return None
        domain, name = studio.domain_id, studio.space
        return await self._once("sagemaker", "space", lambda: describe_space(self.aws, domain, name))

    async def domain(self) -> Domain | None:
        """The domain; None outside of Studio."""
        studio = self.studio
        if studio is None or not studio.domain_id:
            return None
        domain = studio.domain_id
        return await self._once("sagemaker", "domain", lambda: describe_domain(self.aws, domain))

    async def profile(self) -> Profile | None:
        """The user profile that owns this space; None if unknown."""
        studio = self.studio
        if studio is None or not studio.domain_id:
            return None
        name = studio.user_profile
        if name is None:
            space = await self.space()
            name = space.owner if space else None
        if name is None:
            return None
        domain, domain_id = studio.domain_id, name
        return await self._once("sagemaker", "profile", lambda: describe_profile(self.aws, domain, domain_id))

    async def clusters(self) -> Rows[HyperpodCluster]:
        """All HyperPod clusters of the account in the region."""
        service = HyperpodClusters(self.settings, self.aws, self.mounts)
        return await self._once("sagemaker", "clusters", service.all_clusters)

    async def own_clusters(self) -> list[HyperpodCluster]:
        """The configured ones among them; if there are none, those whose file system is mounted here."""
        all_listed = await self.clusters()
        own_clusters = [cluster for cluster in all_listed if self._is_own(cluster)]
        return own_clusters or [
            cluster for cluster in all_listed if cluster.mounted_here and self._only_cluster is None
        ]

    def _is_own(self, cluster: HyperpodCluster) -> bool:
        return any(self._only_cluster in {None, name} for name in cluster.configured_as)

    async def file_systems(self) -> list[str]:
        """The ids of the relevant file systems: those mounted here, those of the space, those of the relevant clusters."""
        names_found = [mount.file_system for mount in self.mounts]
        space = await self.or_none(self.space())
        names_found += space.file_systems if space else ()
        for cluster in await self.own_clusters():
            names_found += [file_system_of(mount.dns_name) for mount in cluster.storage]
        return sorted({mount for mount in names_found if mount is not None})

    async def is_mounted(self, name: str) -> bool:
        """Whether a file system is mounted here, by its id or by a cluster's description of it."""
        if any(mount.file_system == name for mount in self.mounts):
            return True
        return any(
            is_mount_of(mount, storage)
            for cluster in await self.own_clusters()
            for storage in cluster.storage
            if file_system_of(storage.dns_name) == name
            for mount in self.mounts
        )

    async def or_none(self, awaitable: Awaitable[T | None]) -> T | None:
        """An optional answer: None if it failed, which its own step reports."""
        try:
            return await awaitable
        except HyperpodError:
            return None

    async def locate_file_system(self, name: str) -> NetworkLocation:
        """Where a file system is in the network."""
        return await self._once("fsx", name, lambda: locate_file_system(self.aws, name))

    async def list_interfaces(self, name: str) -> list[NetworkInterface]:
        """The network interfaces of a file system."""
        location = await self.locate_file_system(name)
        return await self._once("ec2", f"interfaces {name}", lambda: describe_interfaces(self.aws, location.interfaces))

    async def locate_domain(self) -> NetworkLocation | None:
        """The network location of this space's applications; None outside Studio."""
        domain = await self.domain()
        if domain is None:
            return None
        profile = await self.or_none(self.profile())
        groups = (profile.groups if profile else ()) or domain.groups
        return NetworkLocation(f"the domain {domain.name}", domain.vpc, domain.subnets, groups)

    async def locate_cluster(self, name: str) -> NetworkLocation:
        """The network location of a HyperPod cluster."""
        return await self._once("sagemaker", f"cluster {name}", lambda: locate_cluster(self.aws, name))

    async def groups(self, names: tuple[str, ...]) -> list[SecurityGroup]:
        """Security groups by their ids."""
        group_ids = sorted(names)
        return await self._once("ec2", f"groups {group_ids}", lambda: describe_security_groups(self.aws, group_ids))

    async def subnets(self, names: Iterable[str]) -> list[Subnet]:
        """Subnets by their ids."""
        subnet_ids = sorted(set(names))
        return await self._once("ec2", f"subnets {subnet_ids}", lambda: describe_subnets(self.aws, subnet_ids))

    async def network_acls(self, subnets: Iterable[str]) -> list[NetworkAcl]:
        """The network ACLs of subnets."""
        subnet_ids = sorted(set(subnets))
        return await self._once("ec2", f"acls {subnet_ids}", lambda: describe_network_acls(self.aws, subnet_ids))

    async def route_tables(self, vpcs: Iterable[str]) -> list[RouteTable]:
        """The route tables of VPCs."""
        vpc_ids = sorted(set(vpcs))
        return await self._once("ec2", f"tables {vpc_ids}", lambda: describe_route_tables(self.aws, vpc_ids))

    async def _once(self, service: str, name: str, query: Callable[[], Awaitable[T]]) -> T:
        """The cached answer of a request; a service that timed out is not queried again."""
        if name not in self._results:
            self._results[name] = self._unavailable.get(service) or await self._run_query(service, query)
        cached = self._results[name]
        if isinstance(cached, HyperpodError):
            raise cached
        result: T = cached
        return result

    async def _run_query(self, service: str, query: Callable[[], Awaitable[T]]) -> T | HyperpodError:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await query()
        except TimeoutError:
            error: HyperpodError = UnreachableError(
                f"{service} did not answer within {TIMEOUT_S:g} s",
                code=_UNREACHABLE,
                hint="try again; a VPC without internet access needs an interface endpoint for it",
            )
        except HyperpodError as refusal:
            error = refusal
        if error.code == _UNREACHABLE:
            self._unavailable[service] = error
        return error


def file_system_of(dns_name: str) -> str | None:
    """The id of a file system, from the DNS name of its server, such as ``fs-....fsx.us-west-2.amazonaws.com``."""
    match = _FILE_SYSTEM.match(dns_name)
    return match[1] if match else None


# --------------------------------------------------------------------------------------------------
# Steps on Studio and AWS: environment, identity, space, domain, profile, and clusters.
#
# AWS is queried only if it is relevant here. What we have no permission to read is unknown, never a
# failure.

ROLE = "role"
"""The step on the AWS identity; all steps that use AWS need it."""

HYPERPOD = "hyperpod"
"""The step on the HyperPod clusters."""

_UNAVAILABLE_CODES = frozenset({"aws_failed", "aws_throttled", "aws_unreachable"})
"""Error codes that leave the identity unknown."""

_TRANSIENT_STATES = frozenset({"Pending", "Updating"})
"""States of a working domain."""


class StudioChecks:
    """Checks of Studio and AWS."""

    def __init__(self, environment: AwsEnvironment) -> None:
        self._environment = environment

    def steps(self) -> list[CheckStep]:
        """The steps in order."""
        needs = (CONFIGURATION, ROLE)
        return [
            CheckStep("studio", "studio", "metadata", self._place),
            CheckStep(ROLE, "aws", "role", self._role),
            CheckStep("space", "space", "domain", self._space, needs=(ROLE,)),
            CheckStep("domain", "domain", "domain", self._domain, needs=(ROLE,)),
            CheckStep("profile", "user profile", "domain", self._profile, needs=(ROLE,)),
            CheckStep("idle-shutdown", "idle shutdown", "domain", self._idle, needs=(ROLE,)),
            CheckStep(HYPERPOD, "HyperPod", "domain", self._clusters, needs=needs),
            CheckStep("names", "names at AWS", "domain", self._names, needs=(*needs, HYPERPOD)),
        ]

    async def _place(self) -> CheckResult:
        return _place(self._environment.studio)

    async def _role(self) -> CheckResult | None:
        if not self._environment.uses_aws:
            return None
        try:
            caller = await self._environment.caller()
        except HyperpodError as error:
            if error.code in _UNAVAILABLE_CODES:
                # Results of the other services do not depend on this one: their endpoints may be
                # reachable.
                return warn(error.message, error.hint, "admin")
            # Outside Studio runs work without AWS; only its data is missing.
            return from_error(error, "unknown" if self._environment.studio is None else "fail")
        evidence = f"{caller} in {await self._environment.aws.region()}"
        studio = self._environment.studio
        role = studio.role_arn.rpartition("/")[2] if studio and studio.role_arn else None
        if role is not None and f"/{role}/" not in caller:
            return warn(
                f"{evidence}: not the role of this space, {role}",
                "unset AWS_PROFILE and AWS_ACCESS_KEY_ID, or be aware that this terminal uses another identity at AWS",
            )
        return ok(evidence)

    async def _space(self) -> CheckResult | None:
        space = await self._environment.space()
        if space is None:
            return None
        owner = f" of {space.owner}" if space.owner else ""
        if space.shared:
            evidence = "is shared: all its users and runs act as the space"
            return ok(f"{space.name}{owner} {evidence}")
        return ok(f"{space.name} is a private space{owner}")

    async def _domain(self) -> CheckResult | None:
        domain = await self._environment.domain()
        if domain is None:
            return None
        access = {
            "VpcOnly": "VPC-only: AWS is reached through endpoints or NAT of the VPC",
            "PublicInternetOnly": "with public internet access through the network of SageMaker",
        }.get(domain.network or "", domain.network or "network unknown")
        evidence = f"{domain.name}, {access}; in {domain.vpc}, subnets {', '.join(domain.subnets)}"
        if domain.groups:
            evidence += f", security groups {', '.join(domain.groups)}"
        if domain.status == "InService":
            return ok(evidence)
        if domain.status in _TRANSIENT_STATES:
            return warn(f"{evidence}; it is {domain.status}", "wait until it is InService", "admin")
        problem = f": {domain.problem}" if domain.problem else ""
        return fail(
            f"{evidence}; it is {domain.status}{problem}", "check it in the SageMaker console under Domains", "admin"
        )

    async def _profile(self) -> CheckResult | None:
        profile = await self._environment.profile()
        if profile is None:
            return None
        number = f"uid {profile.uid}" if profile.uid else "the uid of all profiles"
        folders = ", ".join(f"{name} (its {folder})" for name, folder in profile.file_systems)
        evidence = f"{profile.name}, {number} on file systems"
        return ok(f"{evidence}; may mount {folders}" if folders else evidence)

    async def _idle(self) -> CheckResult | None:
        studio = self._environment.studio
        if studio is None or studio.app_type not in APPS:
            return None
        app = studio.app_type
        space, domain = await self._environment.space(), await self._environment.domain()
        if domain is None:
            return None
        settings_in_order = [space.idle.get(app) if space else None]
        if space is not None and space.shared:
            settings_in_order.append(domain.shared_idle.get(app))
        else:
            profile = await self._environment.profile()
            settings_in_order += [profile.idle.get(app) if profile else None, domain.idle.get(app)]
        idle_shutdown = resolve_idle_shutdown(settings_in_order)
        if not idle_shutdown.on:
            return ok(f"Studio does not stop {app} when it is idle")
        delay = f"{idle_shutdown.minutes} minutes" if idle_shutdown.minutes else "a while"
        return warn(
            f"Studio stops {app} after {delay} without activity, which also ends runs on the cluster local; runs on other clusters "
            "continue",
            "submit long runs to another cluster than local",
        )

    async def _clusters(self) -> CheckResult | None:
        if not self._environment.uses_aws:
            return None
        clusters = await self._environment.clusters()
        evidence = f"{len(clusters)} clusters in {await self._environment.aws.region()}"
        if clusters:
            evidence += ": " + ", ".join(map(_cluster_text, clusters))
        evidence = "; ".join([evidence, *clusters.notes])
        return warn(evidence) if clusters.notes else ok(evidence)

    async def _names(self) -> CheckResult | None:
        configured = list(self._environment.configured_clusters_of.values())
        if not configured:
            return None
        clusters = await self._environment.clusters()
        known_names = {text for cluster in clusters for text in (cluster.name, cluster.arn)}
        missing = [name for name in configured if name not in known_names]
        region = await self._environment.aws.region()
        if missing:
            evidence = f"the configuration has {', '.join(missing)}, but it does not exist in {region}"
            return warn(evidence, "list clusters with: hpj clusters")
        return ok(f"{', '.join(configured)}: in {region}")


def _place(studio: Studio | None) -> CheckResult:
    if studio is None:
        return ok("this is not SageMaker Studio")
    if studio.problems:
        fix = "restart the space; Studio writes its metadata when it starts"
        return warn("; ".join(studio.problems), fix)
    parts = [
        f"{label} {value}"
        for label, value in (
            ("domain", studio.domain_id),
            ("user profile", studio.user_profile),
            ("space", studio.space),
            ("role", studio.role_arn),
        )
        if value
    ]
    return ok(f"{studio.app_type or 'an application'} in " + ", ".join(parts))


def _cluster_text(cluster: HyperpodCluster) -> str:
    """For example ``ml-cluster (slurm, in-service, its file system is here)``."""
    parts = [cluster.orchestrator or "orchestrator unknown", cluster.state]
    if cluster.mounted_here is not None:
        parts.append(f"its file system is {'' if cluster.mounted_here else 'not '}mounted here")
    return f"{cluster.name} ({', '.join(parts)})"


# --------------------------------------------------------------------------------------------------
# The step on this role's read permissions: tries each action with its cheapest call.

_TIMEOUT = 15.0
"""Timeout of one call, in seconds."""


@dataclass(frozen=True)
class _TestCall:
    service: str
    operation: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def action(self) -> str:
        return f"{self.service}:{self.operation}"


def rights_steps(environment: AwsEnvironment) -> list[CheckStep]:
    """Read permissions on the first relevant cluster, and on the account."""

    async def look() -> CheckResult | None:
        return await _rights(environment) if environment.uses_aws else None

    needs = (CONFIGURATION, ROLE)
    return [CheckStep("rights", "IAM permissions", "role", look, needs=needs, seconds=45)]


async def _rights(environment: AwsEnvironment) -> CheckResult:
    test_calls = [
        _TestCall("fsx", "DescribeFileSystems", {"MaxResults": 1}),
        _TestCall("cloudwatch", "ListMetrics", {"Namespace": "/aws/sagemaker/Clusters"}),
    ]
    test_calls += await _cluster_calls(environment)
    refusals = await asyncio.gather(*(_call_refusal(environment, attempt) for attempt in test_calls))
    missing = [str(attempt.detail["action"]) for attempt in refusals if attempt and attempt.code == "missing_right"]
    unreachable = [attempt for attempt in refusals if attempt is not None and attempt.code == "aws_unreachable"]
    if missing:
        names = [
            feature.name for feature in FEATURES if any(attempt.action in missing for attempt in feature.permissions)
        ]
        evidence = "; ".join(f"you do not have the permission {action}" for action in missing)
        return warn(evidence, f"allow what this prints: hpj admin policy {' '.join(names)}", "admin")
    if unreachable:
        return unknown("; ".join(attempt.message for attempt in unreachable), unreachable[0].hint, "admin")
    too_old = [attempt.message for attempt in refusals if attempt and attempt.code == "boto3_too_old"]
    tried_actions = ", ".join(
        attempt.action
        for attempt, error in zip(test_calls, refusals, strict=True)
        if error is None or error.code != "boto3_too_old"
    )
    evidence = f"this role has the permissions that were checked: {tried_actions}"
    return ok("; ".join([evidence, *too_old]))


async def _cluster_calls(environment: AwsEnvironment) -> list[_TestCall]:
    """The calls to try on a cluster, if one is known."""
    try:
        clusters = await environment.own_clusters() or list(await environment.clusters())
    except HyperpodError:  # its own step reports it
        return []
    if not clusters:
        return []
    cluster_parameters = {"ClusterName": clusters[0].name, "MaxResults": 1}
    group = log_group(clusters[0].arn, clusters[0].name)
    return [
        _TestCall("sagemaker", "ListClusterNodes", cluster_parameters),
        _TestCall("sagemaker", "ListClusterEvents", cluster_parameters),
        _TestCall("logs", "DescribeLogStreams", {"logGroupName": group, "limit": 1}),
    ]


async def _call_refusal(environment: AwsEnvironment, attempt: _TestCall) -> HyperpodError | None:
    """The error if permission is denied. Any other error, such as a missing log group, means that it was granted."""
    try:
        async with asyncio.timeout(_TIMEOUT):
            await environment.aws.call(attempt.service, attempt.operation, **attempt.parameters)
    except TimeoutError:
        return None
    except HyperpodError as error:
        return error
    return None


# --------------------------------------------------------------------------------------------------
# The step on the user of a terminal on a node: root, or Session Manager's Run As user.

_ROLE = re.compile(r"arn:[^:]+:sts::\d+:assumed-role/([^/]+)/.*")

_SESSION_TAG_NOTE = "an identity provider may pass it with the session, which is not checked"


def run_as_steps(environment: AwsEnvironment) -> list[CheckStep]:
    """The user of terminals, if there are relevant clusters."""

    async def look() -> CheckResult | None:
        if not environment.uses_aws or not await environment.own_clusters():
            return None
        return await _run_as(environment)

    needs = (CONFIGURATION, ROLE, HYPERPOD)
    return [CheckStep("run-as", "terminals on nodes", "role", look, needs=needs)]


async def _run_as(environment: AwsEnvironment) -> CheckResult:
    region = await environment.aws.region()
    preferences = await session_preferences(environment.aws)
    match = _ROLE.fullmatch(await environment.caller())
    role = match[1] if match else None
    tag = f"aws iam tag-role --role-name {role or 'ROLE'} --tags Key={RUN_AS},Value=USER"
    if not preferences.run_as:
        return warn(
            f"everyone who can open a terminal on a node is root there: Run As is off in the Session Manager preferences in {region}",
            f"turn on Run As in the console (Systems Manager > Session Manager > Preferences) and set the user of each role: {tag}",
            "admin",
        )
    default_text = _default_user_text(preferences)
    if role is None:
        return unknown(f"only tags of roles are read, and this identity is not a role; without a tag {default_text}")
    try:
        # IAM has no endpoint in most VPCs: do not wait for it.
        user = await find_run_as(Aws(region, fail_fast=True), role)
    except HyperpodError as error:
        evidence = f"the tags of the role {role} are unknown: {error.message}; without {RUN_AS} {default_text}"
        return unknown(evidence, error.hint, "admin")
    if user is not None:
        return ok(f"terminals on nodes run as {user}, set by the tag {RUN_AS} of the role {role}")
    evidence = f"the role {role} has no tag {RUN_AS}, so {default_text} ({_SESSION_TAG_NOTE})"
    return warn(evidence, tag, "admin")


def _default_user_text(preferences: SessionPreferences) -> str:
    """The user of a session for a role without a tag."""
    if preferences.default_user is None:
        return "Session Manager does not open a terminal"
    return f"terminals on nodes run as {preferences.default_user}, the default"
