"""Checks of facts in a temporary domain. Each says what it does before it does it, and changes nothing but what was made for it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hyperpod_jlab.admin.fsx.aws import HolderCalls, PatientAws, is_in_use
from hyperpod_jlab.admin.fsx.models import PASSING, SETTLED, MountTarget
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
# A domain of Studio with a user profile, a space and a lifecycle configuration that are made to try something, and deleted.
#
# All of them have one name, which begins with `PREFIX`, and from the call that makes them on a tag of the same value, so that what is left of a run that
# was killed is found. What is not called so, or does not have the tag, is never touched.

T = TypeVar("T")
Tell = Callable[[str], None]
"""Says what is done next, before it is done."""

PREFIX = "hyperpod-jlab-verify-"
"""Begin of the names of all that is made."""

TAG = "hyperpod-jlab-verify"
"""The tag on all that is made; its value is the name."""

LONGEST = 1200.0
"""Seconds until something that is made or deleted is given up: a domain takes some minutes."""

LOOK = 5.0
"""Most seconds between two looks; the first ones come sooner."""

_SCRIPT = base64.b64encode(b"#!/bin/sh\nexit 0\n").decode()


@dataclass(frozen=True)
class ThrowAwayLocation:
    """Where a temporary domain is put: a VPC with some of its subnets, and the role that its people would have."""

    vpc: str
    subnets: tuple[str, ...]
    role: str


async def find_place(
    ground: CheckContext, vpc: str | None, subnets: Sequence[str], role: str | None
) -> ThrowAwayLocation:
    """The place that was named; what was not is taken from a domain that is there.

    Raises:
        InvalidInputError: There is no such domain, and not all was named.
        HyperpodError: See `aws.errors`.
    """
    if vpc and subnets and role:
        return ThrowAwayLocation(vpc, tuple(subnets), role)
    domain = await ground.some_domain()
    if domain is None:
        raise InvalidInputError(
            "no Studio domain found in this region to take VPC, subnets and role from",
            hint="give all three: --vpc vpc-... --subnet subnet-... --role arn:aws:iam::...:role/...",
            detail={"field": "vpc"},
        )
    told = await ground.aws.call("sagemaker", "DescribeDomain", DomainId=domain)
    theirs = (told.get("DefaultUserSettings") or {}).get("ExecutionRole")
    found = vpc or told.get("VpcId")
    # Subnets of another VPC are of no use.
    near = subnets or (told.get("SubnetIds", ()) if found == told.get("VpcId") else ())
    if vpc is not None and not near:
        raise InvalidInputError(
            f"{vpc} is not the VPC of the domain {domain}, so its subnets are not known",
            hint="give them with --subnet",
            detail={"field": "subnets"},
        )
    if not (found and near and (role or theirs)):
        raise InvalidInputError(
            f"the domain {domain} does not have VPC, subnets and role to use",
            hint="give all three: --vpc vpc-... --subnet subnet-... --role arn:aws:iam::...:role/...",
            detail={"field": "vpc"},
        )
    return ThrowAwayLocation(str(found), tuple(near), str(role or theirs))


class ThrowAway:
    """What is made.

    Args:
        aws: AWS, as the caller.
        place: Where the domain is put.
        journal: Where it is noted.
        tell: Says what is made, before it is.
    """

    def __init__(self, aws: Aws, place: ThrowAwayLocation, journal: Journal, tell: Tell) -> None:
        self._aws = aws
        self._journal = journal
        self._tell = tell
        self.place = place
        self.name = f"{PREFIX}{secrets.token_hex(4)}"
        self.domain = ""
        self.script = ""
        self._tags = [{"Key": TAG, "Value": self.name}]

    def words(self) -> list[str]:
        """What will be made, a line each."""
        where = f"{self.place.vpc}, {', '.join(self.place.subnets)}"
        return [
            f"the lifecycle configuration {self.name} (it does nothing)",
            (
                f"the Studio domain {self.name} in {where} with the role {self.place.role}; SageMaker adds an EFS file system and two "
                "security groups"
            ),
            f"in it, a user profile and a space, both named {self.name}; no application is started",
        ]

    async def make(self) -> None:
        """Make all of it but the space.

        Raises:
            StorageError: It cannot be noted, so nothing was made.
            HyperpodError: See `aws.errors`; what was made by then is there.
        """
        self._journal.begin(self.name)
        self._tell(f"create the lifecycle configuration {self.name}")
        told = await self._made(
            "CreateStudioLifecycleConfig",
            StudioLifecycleConfigName=self.name,
            StudioLifecycleConfigContent=_SCRIPT,
            StudioLifecycleConfigAppType="JupyterLab",
            Tags=self._tags,
        )
        self.script = str(told["StudioLifecycleConfigArn"])
        self._tell(f"create the domain {self.name} in {self.place.vpc} (this takes some minutes)")
        told = await self._made(
            "CreateDomain",
            DomainName=self.name,
            AuthMode="IAM",
            VpcId=self.place.vpc,
            SubnetIds=list(self.place.subnets),
            DefaultUserSettings={"ExecutionRole": self.place.role},
            Tags=self._tags,
        )
        self.domain = str(told.get("DomainId") or str(told["DomainArn"]).rpartition("/")[2])
        self._journal.add(self.name, self.domain)
        inside: dict[str, Any] = {"DomainId": self.domain}
        await settled(self._aws, "DescribeDomain", **inside)
        self._tell(f"create the user profile {self.name} in the domain {self.domain}")
        inside["UserProfileName"] = self.name
        await self._made("CreateUserProfile", **inside, Tags=self._tags)
        await settled(self._aws, "DescribeUserProfile", **inside)

    async def make_space(self) -> None:
        """Make a space of the user profile.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        self._tell(f"create the space {self.name} in the domain {self.domain}")
        inside = {"DomainId": self.domain, "SpaceName": self.name}
        await self._made(
            "CreateSpace",
            **inside,
            OwnershipSettings={"OwnerUserProfileName": self.name},
            SpaceSharingSettings={"SharingType": "Private"},
            SpaceSettings={"AppType": "JupyterLab"},
            Tags=self._tags,
        )
        await settled(self._aws, "DescribeSpace", **inside)

    async def _made(self, operation: str, **given: Any) -> dict[str, Any]:
        return await to_its_end(self._aws.call("sagemaker", operation, **given))


async def to_its_end(call: Awaitable[T]) -> T:
    """Wait for a call. Where this is cancelled meanwhile, the call is waited for all the same: what it makes has to be known before it is looked for."""
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await task
        raise


async def settled(aws: Aws, operation: str, **given: Any) -> dict[str, Any]:
    """Wait until SageMaker is done with something; its description then.

    Raises:
        RefusedError: It failed.
        UnreachableError: SageMaker did not come to an end.
        HyperpodError: See `aws.errors`.
    """
    patient = PatientAws(aws)
    async for _ in looks(operation.removeprefix("Describe")):
        told = await patient.call("sagemaker", operation, **given)
        if told["Status"] == SETTLED:
            return told
        if told["Status"] not in PASSING:
            raise RefusedError(
                f"SageMaker reports {told['Status']}: {told.get('FailureReason') or 'no reason'}",
                code="not_in_service",
            )
    raise AssertionError  # `looks` ends with an error


async def looks(words: str) -> AsyncIterator[None]:
    """Times to look at something, ever further apart.

    Raises:
        UnreachableError: It takes too long.
    """
    deadline, pause = time.monotonic() + LONGEST, 0.1
    while time.monotonic() < deadline:
        yield
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LOOK)
    raise UnreachableError(
        f"SageMaker did not finish the change of the {words} within {LONGEST:.0f} s",
        code="still_updating",
        hint="later: hpj admin verify-aws --clean-up",
    )


NOBODY = "hyperpod-jlab-nobody"
"""A user profile that is not in the temporary domain."""

_NEEDS_ROLE = "needs --as-role: a role that you can assume and that may do this, for a session without permissions"
_UPDATE = ("sagemaker:DescribeDomain", "sagemaker:UpdateDomain")


TIMEOUT = 30.0
"""Seconds until what was written is taken for not being there."""

Settings = Mapping[str, Any]


@dataclass
class WriteContext:
    """What the checks have to do with.

    Attributes:
        ground: AWS.
        made: What was made.
        tell: Says what is done next, before it is done.
        file_system: A file system of the VPC that the temporary profile may name; None: none.
    """

    ground: CheckContext
    made: ThrowAway
    tell: Tell
    file_system: str | None = None

    @property
    def aws(self) -> Aws:
        """AWS, as the caller."""
        return self.ground.aws

    async def update(self, operation: str, **given: Any) -> None:
        """Update the domain or its profile, and wait until that is done.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        whose: dict[str, str] = {"DomainId": self.made.domain}
        if operation == "UpdateUserProfile":
            whose["UserProfileName"] = self.made.name
        await self.aws.call("sagemaker", operation, **whose, **given)
        await settled(self.aws, operation.replace("Update", "Describe"), **whose)

    async def of_users(self) -> Settings:
        """The domain's settings of users."""
        told = await settled(self.aws, "DescribeDomain", DomainId=self.made.domain)
        found: Settings = told.get("DefaultUserSettings") or {}
        return found

    async def of_profile(self) -> Settings:
        """The profile's settings."""
        told = await settled(
            self.aws,
            "DescribeUserProfile",
            DomainId=self.made.domain,
            UserProfileName=self.made.name,
        )
        found: Settings = told.get("UserSettings") or {}
        return found

    async def seen(
        self, read: Callable[[], Awaitable[Settings]], wanted: Callable[[Settings], bool]
    ) -> Settings:
        """Settings once they are as wanted; as they are where that does not come: what was written may be seen a moment later only."""
        deadline, pause = time.monotonic() + TIMEOUT, 0.1
        while not wanted(found := await read()) and time.monotonic() < deadline:
            await asyncio.sleep(pause)
            pause *= 1.5
        return found


Check = Callable[[WriteContext], Awaitable[FactFinding]]


async def role_of_space_defaults(trial: WriteContext) -> FactFinding:
    """Whether settings of shared spaces need a role. It comes first: later the domain has one."""
    trial.tell("update the space defaults of the temporary domain without a role")
    try:
        await trial.update("UpdateDomain", DefaultSpaceSettings={"CustomFileSystemConfigs": []})
    except InvalidInputError as error:
        return holds(f"denied: {error.message}")
    return wrong("the update was accepted without a role")


async def update_without_pass_role(trial: WriteContext) -> FactFinding:
    """The very call of an apply, with and without ``iam:PassRole``."""
    limited = await trial.ground.limited(_UPDATE)
    if limited is None:
        return unknown(_NEEDS_ROLE)
    trial.tell("update the space defaults with its own role, in a session that may not pass roles")
    first = await _update_space_defaults(trial, limited)
    trial.tell("update the space defaults with its own role, as you")
    own = await _update_space_defaults(trial, trial.aws)
    if own is not None:
        return unknown(f"the same update fails for you too: {own.message}")
    trial.tell("update the space defaults once more, in a session that may not pass roles")
    second = await _update_space_defaults(trial, limited)
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
    """Update as an apply does; why it did not work."""
    holder = MountTarget("space defaults", trial.made.domain, SETTLED)
    calls = HolderCalls(PatientAws(aws), trial.made.domain, LOOK)
    try:
        told = await calls.settled(holder)
        await calls.update(holder, told, "CustomFileSystemConfigs", [])
        await calls.settled(holder)
    except (DeniedError, InvalidInputError) as error:
        return error
    return None


async def update_keeps_others(trial: WriteContext) -> FactFinding:
    """Whether an update leaves alone what it does not name."""
    if not await _attached(trial):
        return unknown("the script that was set is missing")
    trial.tell("update CodeEditorAppSettings of the temporary domain")
    editor = {"CodeEditorAppSettings": {"DefaultResourceSpec": {"InstanceType": "ml.t3.medium"}}}
    await trial.update("UpdateDomain", DefaultUserSettings=editor)
    users = await trial.seen(trial.of_users, lambda told: "CodeEditorAppSettings" in told)
    if "CodeEditorAppSettings" not in users:
        return unknown("the settings that were set are missing")
    gone = [] if _script(users) == trial.made.script else ["JupyterLabAppSettings"]
    gone += [] if users.get("ExecutionRole") == trial.made.place.role else ["ExecutionRole"]
    if gone:
        return wrong(f"{' and '.join(gone)} were removed")
    return holds("ExecutionRole and JupyterLabAppSettings are still there")


async def list_is_replaced(trial: WriteContext) -> FactFinding:
    """Whether an empty list takes file systems away."""
    if trial.file_system is None:
        return unknown("needs --file-system: an FSx for Lustre file system in the same VPC")
    one = {"FileSystemId": trial.file_system, "FileSystemPath": "/"}
    trial.tell(f"name the file system {trial.file_system} in the temporary profile")
    listed = [{"FSxLustreFileSystemConfig": one}]
    await trial.update("UpdateUserProfile", UserSettings={"CustomFileSystemConfigs": listed})
    if not _list(await trial.seen(trial.of_profile, _list)):
        return unknown("the list that was set is missing")
    trial.tell("give the temporary profile an empty list")
    await trial.update("UpdateUserProfile", UserSettings={"CustomFileSystemConfigs": []})
    if _list(await trial.seen(trial.of_profile, lambda told: not _list(told))):
        return wrong("the file system is still there after an empty list")
    return holds("an empty list clears it")


async def none_takes_out(trial: WriteContext) -> FactFinding:
    """Whether ``None`` takes a script out of settings."""
    trial.tell("set the built-in script of the temporary profile")
    await trial.update("UpdateUserProfile", UserSettings=_built_in(trial.made.script))
    if _script(await trial.seen(trial.of_profile, _has_script)) is None:
        return unknown("the script that was set is missing")
    trial.tell("remove the built-in script from the temporary profile")
    try:
        await trial.update("UpdateUserProfile", UserSettings=_built_in("None"))
    except InvalidInputError as error:
        return wrong(f"denied: {error.message}")
    if _has_script(await trial.seen(trial.of_profile, lambda told: not _has_script(told))):
        return wrong("the script is still there")
    return holds("the script was removed from the settings")


async def used_script_stays(trial: WriteContext) -> FactFinding:
    """Whether a script that the domain names can be deleted. It comes last: the script may be gone then."""
    if not await _attached(trial):
        return unknown("the script that was set is missing")
    trial.tell("try to delete the temporary script while the temporary domain uses it")
    given = {"StudioLifecycleConfigName": trial.made.name}
    try:
        await trial.aws.call("sagemaker", "DeleteStudioLifecycleConfig", **given)
    except HyperpodError as error:
        if is_in_use(error):
            return holds(f"denied: {error.message}")
        raise
    return wrong("it was deleted")


async def rights_come_first(trial: WriteContext) -> FactFinding:
    """Whether a missing right is said of a profile that is not there."""
    given = {"DomainId": trial.made.domain, "UserProfileName": NOBODY}
    trial.tell(f"update the user profile {NOBODY}, which does not exist")
    try:
        await trial.aws.call("sagemaker", "UpdateUserProfile", **given)
    except (NotFoundError, InvalidInputError):
        pass
    else:
        return wrong("an update of a missing profile was accepted")
    limited = await trial.ground.limited(_UPDATE)
    if limited is None:
        return unknown(_NEEDS_ROLE)
    trial.tell("do the same in a session without the permission")
    try:
        await limited.call("sagemaker", "UpdateUserProfile", **given)
    except DeniedError:
        return holds(
            "AWS denies the call without the permission, and reports the missing profile with it"
        )
    except (NotFoundError, InvalidInputError):
        return wrong("AWS reports the missing profile even without the permission")
    return wrong("an update of a missing profile was accepted")


async def _attached(trial: WriteContext) -> bool:
    """Let the temporary domain name the script, if it does not; whether it does."""
    if _script(await trial.of_users()) == trial.made.script:
        return True
    trial.tell("name the temporary script in the temporary domain")
    await trial.update("UpdateDomain", DefaultUserSettings=_built_in(trial.made.script))
    return _has_script(await trial.seen(trial.of_users, _has_script))


def _built_in(script: str) -> Settings:
    return {"JupyterLabAppSettings": {"BuiltInLifecycleConfigArn": script}}


def _has_script(settings: Settings) -> bool:
    return _script(settings) is not None


def _script(settings: Settings) -> str | None:
    """The built-in script of JupyterLab; None: there is none."""
    named = (settings.get("JupyterLabAppSettings") or {}).get("BuiltInLifecycleConfigArn")
    return None if named in {None, "", "None"} else str(named)


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

YOUNG = 3600.0
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
        return self.age is not None and self.age < YOUNG

    @property
    def words(self) -> str:
        """What it is, for people."""
        parts = [f"the domain {one}" for one in self.domains]
        parts += ["its lifecycle configuration"] if self.script else []
        parts = parts or [f"security groups of the domain {one}" for one in self.gone]
        since = "" if self.age is None else f", made {self.age / 60:.0f} min ago"
        return f"{self.name} ({', '.join(parts) or 'nothing left'}{since})"


class CleanUp:
    """Finds and deletes what was made; nothing else.

    Args:
        aws: AWS, as the caller.
        journal: The notes of this machine.
        tell: Says what is deleted, before it is.
    """

    def __init__(self, aws: Aws, journal: Journal, tell: Tell) -> None:
        self._aws = PatientAws(aws)
        self._journal = journal
        self._tell = tell

    async def left(self) -> list[Leftover]:
        """What runs have left that are over; of runs on other machines that is not known, see `Leftover.age`.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        notes = {one.name: one for one in self._journal.left()}
        found: dict[str, Leftover] = {
            name: Leftover(name, gone=note.domains) for name, note in notes.items()
        }
        domains, scripts = await self._domains(), await self._scripts()
        for name in (domains.keys() | scripts.keys()) - found.keys():
            if self._journal.lives(name):
                continue
            made = [*domains.get(name, {}).values(), *scripts.get(name, {}).values()]
            found[name] = Leftover(name, age=time.time() - min(made))
        return [
            Leftover(name, tuple(domains.get(name, ())), one.gone, name in scripts, one.age)
            for name, one in sorted(found.items())
        ]

    async def delete(self, one: Leftover) -> None:
        """Delete all of it.

        Raises:
            RefusedError: Something else is in a domain, which stays then.
            HyperpodError: See `aws.errors`.
        """
        try:
            await self._delete_all(one)
            self._journal.end(one.name)
        finally:
            self._journal.release(one.name)

    async def _delete_all(self, one: Leftover) -> None:
        domains = (await self._domains()).get(one.name, {})
        for domain in domains:
            await self._delete_domain(one.name, domain)
        if one.name in await self._scripts():
            self._tell(f"delete the lifecycle configuration {one.name}")
            await self._call("DeleteStudioLifecycleConfig", StudioLifecycleConfigName=one.name)
        for domain in {*one.gone, *one.domains, *domains}:
            await self._delete_groups(domain)

    async def _domains(self) -> dict[str, dict[str, float]]:
        """Ids and times of the domains that are ours, by name."""
        found: dict[str, dict[str, float]] = {}
        for one in await self._aws.listed("sagemaker", "ListDomains", "Domains"):
            name = str(one["DomainName"])
            if name.startswith(PREFIX) and await self._is_ours(name, str(one["DomainArn"])):
                made = one["CreationTime"].timestamp()
                found.setdefault(name, {})[str(one["DomainId"])] = made
        return found

    async def _scripts(self) -> dict[str, dict[str, float]]:
        """ARNs and times of the lifecycle configurations that are ours, by name."""
        found: dict[str, dict[str, float]] = {}
        operation, member = "ListStudioLifecycleConfigs", "StudioLifecycleConfigs"
        for one in await self._aws.listed("sagemaker", operation, member, NameContains=TAG):
            name, arn = str(one["StudioLifecycleConfigName"]), str(one["StudioLifecycleConfigArn"])
            if name.startswith(PREFIX) and await self._is_ours(name, arn):
                found[name] = {arn: one["CreationTime"].timestamp()}
        return found

    async def _is_ours(self, name: str, arn: str) -> bool:
        try:
            return (await self._aws.tags(arn)).get(TAG) == name
        except (NotFoundError, InvalidInputError):
            return False  # it went away meanwhile

    async def _delete_domain(self, name: str, domain: str) -> None:
        inside = {"DomainIdEquals": domain}
        spaces = await self._aws.listed("sagemaker", "ListSpaces", "Spaces", **inside)
        profiles = await self._aws.listed("sagemaker", "ListUserProfiles", "UserProfiles", **inside)
        names = [one["SpaceName"] for one in spaces] + [one["UserProfileName"] for one in profiles]
        others = sorted(set(map(str, names)) - {name})
        if others:
            raise RefusedError(
                f"the domain {domain} has {', '.join(others[:5])}, which this command did not create",
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
        words: str,
        more: Mapping[str, Any] | None = None,
        **named: str,
    ) -> None:
        """Delete something, and wait until it is gone."""
        told_of = False
        async for _ in looks(words):
            try:
                status = (await self._call(describe, **named))["Status"]
            except NotFoundError:
                return
            if status in PASSING or status == _DELETING:
                continue
            if not told_of:
                self._tell(f"delete {words}")
                told_of = True
            try:
                await to_its_end(self._call(delete, **named, **(more or {})))
            except NotFoundError:
                return
            except HyperpodError as error:
                if not is_in_use(error):
                    raise

    async def _delete_groups(self, domain: str) -> None:
        """Delete the security groups that SageMaker made for a domain, and leaves when it is deleted; they name each other."""
        names = [f"security-group-for-{way}-nfs-{domain}" for way in ("inbound", "outbound")]
        wanted = [{"Name": "group-name", "Values": names}]
        told = await self._aws.call("ec2", "DescribeSecurityGroups", Filters=wanted)
        groups = told.get("SecurityGroups") or ()
        for one in groups:
            ident = str(one["GroupId"])
            self._tell(f"empty the security group {ident} ({one['GroupName']})")
            for revoke, member in _RULES:
                if one.get(member):
                    given = {"GroupId": ident, "IpPermissions": one[member]}
                    await self._aws.call("ec2", revoke, **given)
        for one in groups:
            self._tell(f"delete the security group {one['GroupId']}")
            async for _ in looks(f"security group {one['GroupId']}"):
                if await self._group_is_gone(str(one["GroupId"])):
                    break

    async def _group_is_gone(self, ident: str) -> bool:
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

    async def _call(self, operation: str, **given: Any) -> dict[str, Any]:
        return await self._aws.call("sagemaker", operation, **given)
