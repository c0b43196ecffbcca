"""Checks of facts in a temporary domain. Each announces a change before making it, and only changes resources created for it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hyperpod_jlab.admin.fsx.aws import MountTargetCalls, RetryingAws, is_in_use
from hyperpod_jlab.admin.fsx.models import SETTLED_STATE, TRANSIENT_STATES, MountTarget
from hyperpod_jlab.admin.verify.models import (
    CheckContext,
    FactFinding,
    Journal,
    holds,
    unknown,
    wrong,
)
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)

# --------------------------------------------------------------------------------------------------
# A temporary Studio domain with a user profile, a space and a lifecycle configuration, created for
# a test and deleted.
#
# All have the same name, which begins with `PREFIX`, and are created with a tag of the same value,
# so that leftovers of a killed run
# can be found. Resources with another name, or without the tag, are never touched.

T = TypeVar("T")
Tell = Callable[[str], None]
"""Announces the next change."""

PREFIX = "hyperpod-jlab-verify-"
"""Name prefix of all temporary resources."""

TAG = "hyperpod-jlab-verify"
"""The tag on all temporary resources; its value is the name."""

SETTLE_TIMEOUT_S = 1200.0
"""Timeout for creating or deleting a resource, in seconds: a domain takes some minutes."""

POLL_S = 5.0
"""Maximum poll interval in seconds; the first polls are more frequent."""

_SCRIPT = base64.b64encode(b"#!/bin/sh\nexit 0\n").decode()


@dataclass(frozen=True)
class TemporaryLocation:
    """The location of a temporary domain: a VPC with some of its subnets, and the role of its users."""

    vpc: str
    subnets: tuple[str, ...]
    role: str


async def find_location(
    context: CheckContext, vpc: str | None, subnets: Sequence[str], role: str | None
) -> TemporaryLocation:
    """The given location; missing values come from an existing domain.

    Raises:
        InvalidInputError: The domain does not exist, and not all values are given.
        HyperpodError: See `aws.errors`.
    """
    if vpc and subnets and role:
        return TemporaryLocation(vpc, tuple(subnets), role)
    domain = await context.some_domain()
    if domain is None:
        raise InvalidInputError(
            "no Studio domain found in this region to take VPC, subnets and role from",
            hint="give all three: --vpc vpc-... --subnet subnet-... --role arn:aws:iam::...:role/...",
            detail={"field": "vpc"},
        )
    response = await context.aws.call("sagemaker", "DescribeDomain", DomainId=domain)
    domain_role = (response.get("DefaultUserSettings") or {}).get("ExecutionRole")
    vpc_id = vpc or response.get("VpcId")
    # Subnets of another VPC cannot be used.
    subnet_ids = subnets or (
        response.get("SubnetIds", ()) if vpc_id == response.get("VpcId") else ()
    )
    if vpc is not None and not subnet_ids:
        raise InvalidInputError(
            f"{vpc} is not the VPC of the domain {domain}, so its subnets are not known",
            hint="give them with --subnet",
            detail={"field": "subnets"},
        )
    if not (vpc_id and subnet_ids and (role or domain_role)):
        raise InvalidInputError(
            f"the domain {domain} does not have VPC, subnets and role to use",
            hint="give all three: --vpc vpc-... --subnet subnet-... --role arn:aws:iam::...:role/...",
            detail={"field": "vpc"},
        )
    return TemporaryLocation(str(vpc_id), tuple(subnet_ids), str(role or domain_role))


class TemporaryDomain:
    """The temporary resources.

    Args:
        aws: AWS, as the caller.
        location: The domain's location.
        journal: Records the domain.
        tell: Announces each resource.
    """

    def __init__(self, aws: Aws, location: TemporaryLocation, journal: Journal, tell: Tell) -> None:
        self._aws = aws
        self._journal = journal
        self._tell = tell
        self.place = location
        self.name = f"{PREFIX}{secrets.token_hex(4)}"
        self.domain = ""
        self.script = ""
        self._tags = [{"Key": TAG, "Value": self.name}]

    def words(self) -> list[str]:
        """The resources to create, one line each."""
        location = f"{self.place.vpc}, {', '.join(self.place.subnets)}"
        return [
            f"the lifecycle configuration {self.name} (it does nothing)",
            (
                f"the Studio domain {self.name} in {location} with the role {self.place.role}; SageMaker adds an EFS file system and two "
                "security groups"
            ),
            f"in it, a user profile and a space, both named {self.name}; no application is started",
        ]

    async def make(self) -> None:
        """Create everything but the space.

        Raises:
            StorageError: The journal is not writable, so nothing was created.
            HyperpodError: See `aws.errors`; earlier resources exist.
        """
        self._journal.begin(self.name)
        self._tell(f"create the lifecycle configuration {self.name}")
        response = await self._create(
            "CreateStudioLifecycleConfig",
            StudioLifecycleConfigName=self.name,
            StudioLifecycleConfigContent=_SCRIPT,
            StudioLifecycleConfigAppType="JupyterLab",
            Tags=self._tags,
        )
        self.script = str(response["StudioLifecycleConfigArn"])
        self._tell(f"create the domain {self.name} in {self.place.vpc} (this takes some minutes)")
        response = await self._create(
            "CreateDomain",
            DomainName=self.name,
            AuthMode="IAM",
            VpcId=self.place.vpc,
            SubnetIds=list(self.place.subnets),
            DefaultUserSettings={"ExecutionRole": self.place.role},
            Tags=self._tags,
        )
        self.domain = str(response.get("DomainId") or str(response["DomainArn"]).rpartition("/")[2])
        self._journal.add(self.name, self.domain)
        parameters: dict[str, Any] = {"DomainId": self.domain}
        await wait_until_settled(self._aws, "DescribeDomain", **parameters)
        self._tell(f"create the user profile {self.name} in the domain {self.domain}")
        parameters["UserProfileName"] = self.name
        await self._create("CreateUserProfile", **parameters, Tags=self._tags)
        await wait_until_settled(self._aws, "DescribeUserProfile", **parameters)

    async def make_space(self) -> None:
        """Create a space of the user profile.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        self._tell(f"create the space {self.name} in the domain {self.domain}")
        parameters = {"DomainId": self.domain, "SpaceName": self.name}
        await self._create(
            "CreateSpace",
            **parameters,
            OwnershipSettings={"OwnerUserProfileName": self.name},
            SpaceSharingSettings={"SharingType": "Private"},
            SpaceSettings={"AppType": "JupyterLab"},
            Tags=self._tags,
        )
        await wait_until_settled(self._aws, "DescribeSpace", **parameters)

    async def _create(self, operation: str, **parameters: Any) -> dict[str, Any]:
        return await finish_call(self._aws.call("sagemaker", operation, **parameters))


async def finish_call(call: Awaitable[T]) -> T:
    """Wait for a call, even if cancelled: the resource that it creates must be known before leftovers are searched."""
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await task
        raise


async def wait_until_settled(aws: Aws, operation: str, **parameters: Any) -> dict[str, Any]:
    """Wait until SageMaker has finished an update; returns the description.

    Raises:
        RefusedError: It failed.
        UnreachableError: SageMaker did not finish in time.
        HyperpodError: See `aws.errors`.
    """
    patient = RetryingAws(aws)
    async for _ in polls(operation.removeprefix("Describe")):
        response = await patient.call("sagemaker", operation, **parameters)
        if response["Status"] == SETTLED_STATE:
            return response
        if response["Status"] not in TRANSIENT_STATES:
            raise RefusedError(
                f"SageMaker reports {response['Status']}: {response.get('FailureReason') or 'no reason'}",
                code="not_in_service",
            )
    raise AssertionError  # `polls` raises on timeout


async def polls(subject: str) -> AsyncIterator[None]:
    """Poll times with increasing intervals.

    Raises:
        UnreachableError: It timed out.
    """
    deadline, pause = time.monotonic() + SETTLE_TIMEOUT_S, 0.1
    while time.monotonic() < deadline:
        yield
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, POLL_S)
    raise UnreachableError(
        f"SageMaker did not finish the change of the {subject} within {SETTLE_TIMEOUT_S:.0f} s",
        code="still_updating",
        hint="later: hpj admin verify-aws --clean-up",
    )


MISSING_PROFILE = "hyperpod-jlab-nobody"
"""A user profile that does not exist in the temporary domain."""

_NEEDS_ROLE = "needs --as-role: a role that you can assume and that may do this, for a session without permissions"
_UPDATE = ("sagemaker:DescribeDomain", "sagemaker:UpdateDomain")


TIMEOUT_S = 30.0
"""Seconds after which a write counts as lost."""

Settings = Mapping[str, Any]


@dataclass
class WriteContext:
    """The context of the checks with changes.

    Attributes:
        context: AWS.
        made: The temporary resources.
        tell: Announces the next change.
        file_system: A file system of the VPC for the temporary profile; None: none.
    """

    context: CheckContext
    made: TemporaryDomain
    tell: Tell
    file_system: str | None = None

    @property
    def aws(self) -> Aws:
        """AWS, as the caller."""
        return self.context.aws

    async def update(self, operation: str, **parameters: Any) -> None:
        """Update the domain or its profile, and wait for the end.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        identity: dict[str, str] = {"DomainId": self.made.domain}
        if operation == "UpdateUserProfile":
            identity["UserProfileName"] = self.made.name
        await self.aws.call("sagemaker", operation, **identity, **parameters)
        await wait_until_settled(self.aws, operation.replace("Update", "Describe"), **identity)

    async def read_user_settings(self) -> Settings:
        """The domain's settings of users."""
        response = await wait_until_settled(self.aws, "DescribeDomain", DomainId=self.made.domain)
        settings: Settings = response.get("DefaultUserSettings") or {}
        return settings

    async def read_profile_settings(self) -> Settings:
        """The profile's settings."""
        response = await wait_until_settled(
            self.aws,
            "DescribeUserProfile",
            DomainId=self.made.domain,
            UserProfileName=self.made.name,
        )
        settings: Settings = response.get("UserSettings") or {}
        return settings

    async def wait_for_settings(
        self,
        read_settings: Callable[[], Awaitable[Settings]],
        is_expected: Callable[[Settings], bool],
    ) -> Settings:
        """The settings once they are as expected, or after a timeout: a write may become visible a moment later."""
        deadline, pause = time.monotonic() + TIMEOUT_S, 0.1
        while not is_expected(settings := await read_settings()) and time.monotonic() < deadline:
            await asyncio.sleep(pause)
            pause *= 1.5
        return settings


Check = Callable[[WriteContext], Awaitable[FactFinding]]


async def role_of_space_defaults(trial: WriteContext) -> FactFinding:
    """Whether settings of shared spaces need a role. Runs first: later the domain has one."""
    trial.tell("update the space defaults of the temporary domain without a role")
    try:
        await trial.update("UpdateDomain", DefaultSpaceSettings={"CustomFileSystemConfigs": []})
    except InvalidInputError as error:
        return holds(f"denied: {error.message}")
    return wrong("the update was accepted without a role")


async def update_without_pass_role(trial: WriteContext) -> FactFinding:
    """The same call as in an apply, with and without ``iam:PassRole``."""
    limited_session = await trial.context.limited_session(_UPDATE)
    if limited_session is None:
        return unknown(_NEEDS_ROLE)
    trial.tell("update the space defaults with its own role, in a session that may not pass roles")
    first = await _update_space_defaults(trial, limited_session)
    trial.tell("update the space defaults with its own role, as you")
    own_error = await _update_space_defaults(trial, trial.aws)
    if own_error is not None:
        return unknown(f"the same update fails for you too: {own_error.message}")
    trial.tell("update the space defaults once more, in a session that may not pass roles")
    second = await _update_space_defaults(trial, limited_session)
    for error in (first, second):
        if error is not None and "PassRole" not in error.message:
            return unknown(f"the session failed for another reason: {error.message}")
    if second is not None:
        return wrong(f"denied with the existing role: {second.message}")
    if first is not None:
        return wrong("denied where the space defaults had no role; accepted with a role")
    return holds(
        "accepted twice in a session that may not pass roles: without a role before, and with the same role"
    )


async def _update_space_defaults(trial: WriteContext, aws: Aws) -> HyperpodError | None:
    """Update as an apply does; returns the error."""
    holder = MountTarget("space defaults", trial.made.domain, SETTLED_STATE)
    calls = MountTargetCalls(RetryingAws(aws), trial.made.domain, POLL_S)
    try:
        response = await calls.wait_until_settled(holder)
        await calls.update(holder, response, "CustomFileSystemConfigs", [])
        await calls.wait_until_settled(holder)
    except (DeniedError, InvalidInputError) as error:
        return error
    return None


async def update_keeps_others(trial: WriteContext) -> FactFinding:
    """Whether an update preserves members that it does not name."""
    if not await _attach(trial):
        return unknown("the script that was set is missing")
    trial.tell("update CodeEditorAppSettings of the temporary domain")
    editor = {"CodeEditorAppSettings": {"DefaultResourceSpec": {"InstanceType": "ml.t3.medium"}}}
    await trial.update("UpdateDomain", DefaultUserSettings=editor)
    users = await trial.wait_for_settings(
        trial.read_user_settings, lambda settings: "CodeEditorAppSettings" in settings
    )
    if "CodeEditorAppSettings" not in users:
        return unknown("the settings that were set are missing")
    lost_settings = [] if _script(users) == trial.made.script else ["JupyterLabAppSettings"]
    lost_settings += (
        [] if users.get("ExecutionRole") == trial.made.place.role else ["ExecutionRole"]
    )
    if lost_settings:
        return wrong(f"{' and '.join(lost_settings)} were removed")
    return holds("ExecutionRole and JupyterLabAppSettings are still there")


async def list_is_replaced(trial: WriteContext) -> FactFinding:
    """Whether an empty list removes file systems."""
    if trial.file_system is None:
        return unknown("needs --file-system: an FSx for Lustre file system in the same VPC")
    system = {"FileSystemId": trial.file_system, "FileSystemPath": "/"}
    trial.tell(f"name the file system {trial.file_system} in the temporary profile")
    entries = [{"FSxLustreFileSystemConfig": system}]
    await trial.update("UpdateUserProfile", UserSettings={"CustomFileSystemConfigs": entries})
    if not _list(await trial.wait_for_settings(trial.read_profile_settings, _list)):
        return unknown("the list that was set is missing")
    trial.tell("give the temporary profile an empty list")
    await trial.update("UpdateUserProfile", UserSettings={"CustomFileSystemConfigs": []})
    if _list(
        await trial.wait_for_settings(
            trial.read_profile_settings, lambda settings: not _list(settings)
        )
    ):
        return wrong("the file system is still there after an empty list")
    return holds("an empty list clears it")


async def none_takes_out(trial: WriteContext) -> FactFinding:
    """Whether ``None`` removes a script from settings."""
    trial.tell("set the built-in script of the temporary profile")
    await trial.update("UpdateUserProfile", UserSettings=_built_in(trial.made.script))
    if _script(await trial.wait_for_settings(trial.read_profile_settings, _has_script)) is None:
        return unknown("the script that was set is missing")
    trial.tell("remove the built-in script from the temporary profile")
    try:
        await trial.update("UpdateUserProfile", UserSettings=_built_in("None"))
    except InvalidInputError as error:
        return wrong(f"denied: {error.message}")
    if _has_script(
        await trial.wait_for_settings(
            trial.read_profile_settings, lambda settings: not _has_script(settings)
        )
    ):
        return wrong("the script is still there")
    return holds("the script was removed from the settings")


async def used_script_stays(trial: WriteContext) -> FactFinding:
    """Whether a script that the domain names can be deleted. It comes last: the script may be gone then."""
    if not await _attach(trial):
        return unknown("the script that was set is missing")
    trial.tell("try to delete the temporary script while the temporary domain uses it")
    parameters = {"StudioLifecycleConfigName": trial.made.name}
    try:
        await trial.aws.call("sagemaker", "DeleteStudioLifecycleConfig", **parameters)
    except HyperpodError as error:
        if is_in_use(error):
            return holds(f"denied: {error.message}")
        raise
    return wrong("it was deleted")


async def rights_come_first(trial: WriteContext) -> FactFinding:
    """Whether a missing right is said of a profile that is not there."""
    parameters = {"DomainId": trial.made.domain, "UserProfileName": MISSING_PROFILE}
    trial.tell(f"update the user profile {MISSING_PROFILE}, which does not exist")
    try:
        await trial.aws.call("sagemaker", "UpdateUserProfile", **parameters)
    except (NotFoundError, InvalidInputError):
        pass
    else:
        return wrong("an update of a missing profile was accepted")
    limited_session = await trial.context.limited_session(_UPDATE)
    if limited_session is None:
        return unknown(_NEEDS_ROLE)
    trial.tell("do the same in a session without the permission")
    try:
        await limited_session.call("sagemaker", "UpdateUserProfile", **parameters)
    except DeniedError:
        return holds(
            "AWS denies the call without the permission, and reports the missing profile with it"
        )
    except (NotFoundError, InvalidInputError):
        return wrong("AWS reports the missing profile even without the permission")
    return wrong("an update of a missing profile was accepted")


async def _attach(trial: WriteContext) -> bool:
    """Let the temporary domain name the script, if it does not; whether it does."""
    if _script(await trial.read_user_settings()) == trial.made.script:
        return True
    trial.tell("name the temporary script in the temporary domain")
    await trial.update("UpdateDomain", DefaultUserSettings=_built_in(trial.made.script))
    return _has_script(await trial.wait_for_settings(trial.read_user_settings, _has_script))


def _built_in(script: str) -> Settings:
    return {"JupyterLabAppSettings": {"BuiltInLifecycleConfigArn": script}}


def _has_script(settings: Settings) -> bool:
    return _script(settings) is not None


def _script(settings: Settings) -> str | None:
    """The built-in script of JupyterLab; None: there is none."""
    app_settings = (settings.get("JupyterLabAppSettings") or {}).get("BuiltInLifecycleConfigArn")
    return None if app_settings in {None, "", "None"} else str(app_settings)


def _list(settings: Settings) -> bool:
    """Whether there is a list of file systems."""
    return bool(settings.get("CustomFileSystemConfigs"))


WRITE_CHECKS: Mapping[str, Check] = {
    "space-defaults-need-role": role_of_space_defaults,
    "update-domain-without-pass-role": update_without_pass_role,
    "update-keeps-other-settings": update_keeps_others,
    "file-system-list-is-replaced": list_is_replaced,
    "none-takes-script-out": none_takes_out,
    "rights-before-existence": rights_come_first,
    "script-in-use-stays": used_script_stays,
}
"""The checks of all facts that are checked so, by the facts' names, in the order in which they are made."""


# --------------------------------------------------------------------------------------------------
# Deleting what was made to verify facts, in this run or in one that was killed.

MIN_AGE_S = 3600.0
"""Seconds for which what another machine has made is left alone: its run may be under way."""

_DELETING = "Deleting"

_RULES = (
    ("RevokeSecurityGroupIngress", "IpPermissions"),
    ("RevokeSecurityGroupEgress", "IpPermissionsEgress"),
)
"""What takes the rules of a security group away, and where they stand in its description."""


@dataclass(frozen=True)
class Leftover:
    """What is there of a run.

    Attributes:
        name: The name of all of it.
        domains: Ids of its domains.
        gone: Ids of domains that may be gone, of which security groups may be left.
        script: Whether its lifecycle configuration is there.
        age: Seconds since it was made; None: a note of this machine says that its run is over.
    """

    name: str
    domains: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    script: bool = False
    age: float | None = None

    @property
    def may_be_in_use(self) -> bool:
        """Whether a run on another machine may be using it."""
        return self.age is not None and self.age < MIN_AGE_S

    @property
    def words(self) -> str:
        """What it is, for people."""
        parts = [f"the domain {domain}" for domain in self.domains]
        parts += ["its lifecycle configuration"] if self.script else []
        parts = parts or [f"security groups of the domain {domain}" for domain in self.gone]
        age_text = "" if self.age is None else f", made {self.age / 60:.0f} min ago"
        return f"{self.name} ({', '.join(parts) or 'nothing left'}{age_text})"


class CleanUp:
    """Finds and deletes what was made; nothing else.

    Args:
        aws: AWS, as the caller.
        journal: The notes of this machine.
        tell: Says what is deleted, before it is.
    """

    def __init__(self, aws: Aws, journal: Journal, tell: Tell) -> None:
        self._aws = RetryingAws(aws)
        self._journal = journal
        self._tell = tell

    async def list_leftovers(self) -> list[Leftover]:
        """What runs have left that are over; of runs on other machines that is not known, see `Leftover.age`.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        notes = {item.name: item for item in self._journal.list_leftovers()}
        leftovers: dict[str, Leftover] = {
            name: Leftover(name, gone=note.domains) for name, note in notes.items()
        }
        domains, scripts = await self._domains(), await self._scripts()
        for name in (domains.keys() | scripts.keys()) - leftovers.keys():
            if self._journal.is_running(name):
                continue
            times = [*domains.get(name, {}).values(), *scripts.get(name, {}).values()]
            leftovers[name] = Leftover(name, age=time.time() - min(times))
        return [
            Leftover(name, tuple(domains.get(name, ())), item.gone, name in scripts, item.age)
            for name, item in sorted(leftovers.items())
        ]

    async def delete(self, leftover: Leftover) -> None:
        """Delete all of it.

        Raises:
            RefusedError: Something else is in a domain, which stays then.
            HyperpodError: See `aws.errors`.
        """
        try:
            await self._delete_all(leftover)
            self._journal.end(leftover.name)
        finally:
            self._journal.release(leftover.name)

    async def _delete_all(self, leftover: Leftover) -> None:
        domains = (await self._domains()).get(leftover.name, {})
        for domain in domains:
            await self._delete_domain(leftover.name, domain)
        if leftover.name in await self._scripts():
            self._tell(f"delete the lifecycle configuration {leftover.name}")
            await self._call("DeleteStudioLifecycleConfig", StudioLifecycleConfigName=leftover.name)
        for domain in {*leftover.gone, *leftover.domains, *domains}:
            await self._delete_groups(domain)

    async def _domains(self) -> dict[str, dict[str, float]]:
        """Ids and times of the domains that are ours, by name."""
        domains: dict[str, dict[str, float]] = {}
        for item in await self._aws.list_all("sagemaker", "ListDomains", "Domains"):
            name = str(item["DomainName"])
            if name.startswith(PREFIX) and await self._is_ours(name, str(item["DomainArn"])):
                created_at = item["CreationTime"].timestamp()
                domains.setdefault(name, {})[str(item["DomainId"])] = created_at
        return domains

    async def _scripts(self) -> dict[str, dict[str, float]]:
        """ARNs and times of the lifecycle configurations that are ours, by name."""
        scripts: dict[str, dict[str, float]] = {}
        operation, member = "ListStudioLifecycleConfigs", "StudioLifecycleConfigs"
        for item in await self._aws.list_all("sagemaker", operation, member, NameContains=TAG):
            name, arn = (
                str(item["StudioLifecycleConfigName"]),
                str(item["StudioLifecycleConfigArn"]),
            )
            if name.startswith(PREFIX) and await self._is_ours(name, arn):
                scripts[name] = {arn: item["CreationTime"].timestamp()}
        return scripts

    async def _is_ours(self, name: str, arn: str) -> bool:
        try:
            return (await self._aws.tags(arn)).get(TAG) == name
        except (NotFoundError, InvalidInputError):
            return False  # it went away meanwhile

    async def _delete_domain(self, name: str, domain: str) -> None:
        parameters = {"DomainIdEquals": domain}
        spaces = await self._aws.list_all("sagemaker", "ListSpaces", "Spaces", **parameters)
        profiles = await self._aws.list_all(
            "sagemaker", "ListUserProfiles", "UserProfiles", **parameters
        )
        names = [item["SpaceName"] for item in spaces] + [
            item["UserProfileName"] for item in profiles
        ]
        other_names = sorted(set(map(str, names)) - {name})
        if other_names:
            raise RefusedError(
                f"the domain {domain} has {', '.join(other_names[:5])}, which this command did not create",
                code="not_ours",
                hint="delete that, then run: hpj admin verify-aws --clean-up",
            )
        if spaces:
            await self._delete(
                *("DescribeSpace", "DeleteSpace"),
                f"the space {name}",
                DomainId=domain,
                SpaceName=name,
            )
        if profiles:
            await self._delete(
                *("DescribeUserProfile", "DeleteUserProfile"),
                f"the user profile {name}",
                DomainId=domain,
                UserProfileName=name,
            )
        retention = {"RetentionPolicy": {"HomeEfsFileSystem": "Delete"}}
        await self._delete(
            *("DescribeDomain", "DeleteDomain"),
            f"the domain {domain} with its EFS file system",
            retention,
            DomainId=domain,
        )

    async def _delete(
        self,
        describe: str,
        delete: str,
        message: str,
        filters: Mapping[str, Any] | None = None,
        **parameters: str,
    ) -> None:
        """Delete something, and wait until it is gone."""
        is_announced = False
        async for _ in polls(message):
            try:
                status = (await self._call(describe, **parameters))["Status"]
            except NotFoundError:
                return
            if status in TRANSIENT_STATES or status == _DELETING:
                continue
            if not is_announced:
                self._tell(f"delete {message}")
                is_announced = True
            try:
                await finish_call(self._call(delete, **parameters, **(filters or {})))
            except NotFoundError:
                return
            except HyperpodError as error:
                if not is_in_use(error):
                    raise

    async def _delete_groups(self, domain: str) -> None:
        """Delete the security groups that SageMaker made for a domain, and leaves when it is deleted; they name each other."""
        names = [
            f"security-group-for-{direction}-nfs-{domain}" for direction in ("inbound", "outbound")
        ]
        filters = [{"Name": "group-name", "Values": names}]
        response = await self._aws.call("ec2", "DescribeSecurityGroups", Filters=filters)
        groups = response.get("SecurityGroups") or ()
        for group in groups:
            ident = str(group["GroupId"])
            self._tell(f"empty the security group {ident} ({group['GroupName']})")
            for revoke, member in _RULES:
                if group.get(member):
                    parameters = {"GroupId": ident, "IpPermissions": group[member]}
                    await self._aws.call("ec2", revoke, **parameters)
        for group in groups:
            self._tell(f"delete the security group {group['GroupId']}")
            async for _ in polls(f"security group {group['GroupId']}"):
                if await self._delete_group(str(group["GroupId"])):
                    break

    async def _delete_group(self, ident: str) -> bool:
        """Delete a security group; False while the file system's interfaces still have it."""
        try:
            await self._aws.call("ec2", "DeleteSecurityGroup", GroupId=ident)
        except NotFoundError:
            return True
        except HyperpodError as error:
            if (error.detail or {}).get("aws_code") != "DependencyViolation":
                raise
            return False
        return True

    async def _call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        return await self._aws.call("sagemaker", operation, **parameters)
