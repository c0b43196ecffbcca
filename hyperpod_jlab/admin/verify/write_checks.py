"""Checks of facts in a throw-away domain. Each says what it does before it does it, and changes nothing but what was made for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.admin.holder_calls import HolderCalls
from hyperpod_jlab.admin.patience import PatientAws, is_in_use
from hyperpod_jlab.admin.there import SETTLED, Holder
from hyperpod_jlab.admin.verify.fact import Finding, holds, unknown, wrong
from hyperpod_jlab.admin.verify.ground import Ground
from hyperpod_jlab.admin.verify.throw_away import LOOK, Tell, ThrowAway, settled
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
)

NOBODY = "hyperpod-jlab-nobody"
"""A user profile that is not in the throw-away domain."""

_NEEDS_ROLE = (
    "needs --as-role: a role that you may assume and that may do this, for a session without rights"
)
_UPDATE = ("sagemaker:DescribeDomain", "sagemaker:UpdateDomain")


PATIENCE = 30.0
"""Seconds until what was written is taken for not being there."""

Settings = Mapping[str, Any]


@dataclass
class Trial:
    """What the checks have to do with.

    Attributes:
        ground: AWS.
        made: What was made.
        tell: Says what is done next, before it is done.
        file_system: A file system of the VPC that the throw-away profile may name; None: none.
    """

    ground: Ground
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
        deadline, pause = time.monotonic() + PATIENCE, 0.1
        while not wanted(found := await read()) and time.monotonic() < deadline:
            await asyncio.sleep(pause)
            pause *= 1.5
        return found


Check = Callable[[Trial], Awaitable[Finding]]


async def role_of_space_defaults(trial: Trial) -> Finding:
    """Whether settings of shared spaces need a role. It comes first: later the domain has one."""
    trial.tell("update the space defaults of the throw-away domain without a role")
    try:
        await trial.update("UpdateDomain", DefaultSpaceSettings={"CustomFileSystemConfigs": []})
    except InvalidInputError as error:
        return holds(f"refused: {error.message}")
    return wrong("the update was taken without a role")


async def update_without_pass_role(trial: Trial) -> Finding:
    """The very call of an apply, with and without ``iam:PassRole``."""
    limited = await trial.ground.limited(_UPDATE)
    if limited is None:
        return unknown(_NEEDS_ROLE)
    trial.tell("update the space defaults with its own role, in a session that may not pass it on")
    first = await _update_space_defaults(trial, limited)
    trial.tell("update the space defaults with its own role, as you")
    own = await _update_space_defaults(trial, trial.aws)
    if own is not None:
        return unknown(f"the same update fails for you too: {own.message}")
    trial.tell("update the space defaults once more, in a session that may not pass the role on")
    second = await _update_space_defaults(trial, limited)
    for error in (first, second):
        if error is not None and "PassRole" not in error.message:
            return unknown(f"the session failed for another reason: {error.message}")
    if second is not None:
        return wrong(f"refused with the role that is there already: {second.message}")
    if first is not None:
        return wrong("refused where the space defaults had no role; with one it is taken")
    return holds(
        "taken twice by a session that may not pass the role on: with no role there before, and with the same"
    )


async def _update_space_defaults(trial: Trial, aws: Aws) -> HyperpodError | None:
    """Update as an apply does; why it did not work."""
    holder = Holder("space defaults", trial.made.domain, SETTLED)
    calls = HolderCalls(PatientAws(aws), trial.made.domain, LOOK)
    try:
        told = await calls.settled(holder)
        await calls.update(holder, told, "CustomFileSystemConfigs", [])
        await calls.settled(holder)
    except (DeniedError, InvalidInputError) as error:
        return error
    return None


async def update_keeps_others(trial: Trial) -> Finding:
    """Whether an update leaves alone what it does not name."""
    if not await _attached(trial):
        return unknown("the script that was set is not there")
    trial.tell("update CodeEditorAppSettings of the throw-away domain")
    editor = {"CodeEditorAppSettings": {"DefaultResourceSpec": {"InstanceType": "ml.t3.medium"}}}
    await trial.update("UpdateDomain", DefaultUserSettings=editor)
    users = await trial.seen(trial.of_users, lambda told: "CodeEditorAppSettings" in told)
    if "CodeEditorAppSettings" not in users:
        return unknown("the settings that were set are not there")
    gone = [] if _script(users) == trial.made.script else ["JupyterLabAppSettings"]
    gone += [] if users.get("ExecutionRole") == trial.made.place.role else ["ExecutionRole"]
    if gone:
        return wrong(f"{' and '.join(gone)} went away")
    return holds("ExecutionRole and JupyterLabAppSettings are still there")


async def list_is_replaced(trial: Trial) -> Finding:
    """Whether an empty list takes file systems away."""
    if trial.file_system is None:
        return unknown("needs --file-system: one of FSx for Lustre in the same VPC")
    one = {"FileSystemId": trial.file_system, "FileSystemPath": "/"}
    trial.tell(f"name the file system {trial.file_system} in the throw-away profile")
    listed = [{"FSxLustreFileSystemConfig": one}]
    await trial.update("UpdateUserProfile", UserSettings={"CustomFileSystemConfigs": listed})
    if not _list(await trial.seen(trial.of_profile, _list)):
        return unknown("the list that was set is not there")
    trial.tell("give the throw-away profile an empty list")
    await trial.update("UpdateUserProfile", UserSettings={"CustomFileSystemConfigs": []})
    if _list(await trial.seen(trial.of_profile, lambda told: not _list(told))):
        return wrong("the file system is still there after an empty list")
    return holds("an empty list clears it")


async def none_takes_out(trial: Trial) -> Finding:
    """Whether ``None`` takes a script out of settings."""
    trial.tell("set the built-in script of the throw-away profile")
    await trial.update("UpdateUserProfile", UserSettings=_built_in(trial.made.script))
    if _script(await trial.seen(trial.of_profile, _has_script)) is None:
        return unknown("the script that was set is not there")
    trial.tell("take the built-in script out of the throw-away profile")
    try:
        await trial.update("UpdateUserProfile", UserSettings=_built_in("None"))
    except InvalidInputError as error:
        return wrong(f"refused: {error.message}")
    if _has_script(await trial.seen(trial.of_profile, lambda told: not _has_script(told))):
        return wrong("the script is still there")
    return holds("it is out of the settings")


async def used_script_stays(trial: Trial) -> Finding:
    """Whether a script that the domain names can be deleted. It comes last: the script may be gone then."""
    if not await _attached(trial):
        return unknown("the script that was set is not there")
    trial.tell("try to delete the throw-away script while the throw-away domain names it")
    given = {"StudioLifecycleConfigName": trial.made.name}
    try:
        await trial.aws.call("sagemaker", "DeleteStudioLifecycleConfig", **given)
    except HyperpodError as error:
        if is_in_use(error):
            return holds(f"refused: {error.message}")
        raise
    return wrong("it was deleted")


async def rights_come_first(trial: Trial) -> Finding:
    """Whether a missing right is said of a profile that is not there."""
    given = {"DomainId": trial.made.domain, "UserProfileName": NOBODY}
    trial.tell(f"update the user profile {NOBODY}, which does not exist")
    try:
        await trial.aws.call("sagemaker", "UpdateUserProfile", **given)
    except (NotFoundError, InvalidInputError):
        pass
    else:
        return wrong("an update of a profile that is not there was taken")
    limited = await trial.ground.limited(_UPDATE)
    if limited is None:
        return unknown(_NEEDS_ROLE)
    trial.tell("do the same in a session without the right to")
    try:
        await limited.call("sagemaker", "UpdateUserProfile", **given)
    except DeniedError:
        return holds("without the right AWS says so, with it that there is no such profile")
    except (NotFoundError, InvalidInputError):
        return wrong("without the right AWS says that there is no such profile")
    return wrong("an update of a profile that is not there was taken")


async def _attached(trial: Trial) -> bool:
    """Let the throw-away domain name the script, if it does not; whether it does."""
    if _script(await trial.of_users()) == trial.made.script:
        return True
    trial.tell("name the throw-away script in the throw-away domain")
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
