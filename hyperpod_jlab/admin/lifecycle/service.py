"""Doing steps on lifecycle configurations. Each may be done again: what is there is looked at first, and settings are read, merged and written."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from hyperpod_jlab.admin.fsx.aws import MARK, TRIES, HolderCalls, PatientAws, is_in_use, settings_of
from hyperpod_jlab.admin.fsx.models import PlanStep
from hyperpod_jlab.admin.lifecycle.models import (
    Attachment,
    AttachStep,
    ConfigStep,
    LifecycleConfig,
    LifecycleStep,
    RemovalStep,
    attachment_of,
    with_attachment,
    with_ours,
)
from hyperpod_jlab.admin.lifecycle.scripts import encoded
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import (
    ConflictError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)

# --------------------------------------------------------------------------------------------------
# Reading the lifecycle configurations of an account that are ours, and those that are called as ours are to be.

PREFIX = "hyperpod-jlab"
"""What the names of ours begin with, so that no other's tags are asked for (`scripts.name_of`)."""

DOMAIN_MARK = f"{MARK}-domain-"
"""Begin of the tag by which a lifecycle configuration says for which domain it was made: its end is the domain's id, so that two admins never write the same tag."""


async def read_configs(aws: Aws, names: Collection[str]) -> tuple[LifecycleConfig, ...]:
    """Lifecycle configurations that may be ours, of this region.

    Args:
        aws: AWS in the domain's region.
        names: Those that are wanted: of these the text is read too.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    patient = PatientAws(aws)
    found = await patient.listed(
        "sagemaker", "ListStudioLifecycleConfigs", "StudioLifecycleConfigs", NameContains=PREFIX
    )
    read = [await _config(patient, told, names) for told in found]
    return tuple(one for one in read if one is not None)


async def _config(
    aws: PatientAws, told: Mapping[str, Any], names: Collection[str]
) -> LifecycleConfig | None:
    """One of the list; None: it was deleted since the list was made."""
    name, arn = str(told["StudioLifecycleConfigName"]), str(told["StudioLifecycleConfigArn"])
    try:
        tags = await _tags(aws, name, arn)
        text = await read_text(aws, name) if name in names else None
    except NotFoundError:
        return None
    domains = frozenset(
        key.removeprefix(DOMAIN_MARK) for key in tags if key.startswith(DOMAIN_MARK)
    )
    return LifecycleConfig(
        name,
        arn,
        str(told.get("StudioLifecycleConfigAppType") or ""),
        MARK in tags,
        domains,
        text,
    )


async def _tags(aws: PatientAws, name: str, arn: str) -> Mapping[str, str]:
    try:
        return await aws.tags(arn)
    except InvalidInputError:
        # So is it said of tags of what has been deleted; asked for itself, it is not found.
        await read_text(aws, name)
        raise


async def read_text(aws: PatientAws, name: str) -> str | None:
    """The script of a lifecycle configuration; None: what is there is no text.

    Raises:
        NotFoundError: There is none of this name.
        HyperpodError: See `aws.errors`.
    """
    told = await aws.call(
        "sagemaker", "DescribeStudioLifecycleConfig", StudioLifecycleConfigName=name
    )
    try:
        return base64.b64decode(told["StudioLifecycleConfigContent"], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


class LifecycleExecutor:
    """Does them.

    Args:
        aws: AWS in the domain's region.
        domain: The domain's id.
        holders: Reads and writes settings.
    """

    def __init__(self, aws: PatientAws, domain: str, holders: HolderCalls) -> None:
        self._aws = aws
        self._domain = domain
        self._holders = holders
        self._failed = False

    async def do(self, step: LifecycleStep) -> PlanStep | None:
        """Do a step; what it is now where it has to wait after all.

        Raises:
            RefusedError: Somebody else has set something there since the plan was made.
            HyperpodError: See `aws.errors`.
        """
        if isinstance(step, ConfigStep):
            await self._make(step)
        elif isinstance(step, AttachStep):
            try:
                await self._attach(step)
            except HyperpodError:
                self._failed = True
                raise
        elif isinstance(step, RemovalStep):
            return await self._remove(step)
        return None

    # ------------------------------------------------------------------------------ lifecycle configurations

    async def _make(self, step: ConfigStep) -> None:
        ours = [
            {"Key": MARK, "Value": step.app_type},
            {"Key": f"{DOMAIN_MARK}{self._domain}", "Value": ""},
        ]
        if step.is_there:
            await self._aws.call("sagemaker", "AddTags", ResourceArn=step.arn, Tags=ours[1:])
            return
        try:
            await self._aws.call(
                "sagemaker",
                "CreateStudioLifecycleConfig",
                StudioLifecycleConfigName=step.script.name,
                StudioLifecycleConfigContent=encoded(step.script.text),
                StudioLifecycleConfigAppType=step.app_type,
                Tags=ours,
            )
        except HyperpodError as error:
            # Another admin was quicker: the same script is as good as ours.
            if (
                not is_in_use(error)
                or await read_text(self._aws, step.script.name) != step.script.text
            ):
                raise
            await self._aws.call("sagemaker", "AddTags", ResourceArn=step.arn, Tags=ours[1:])

    async def _remove(self, step: RemovalStep) -> PlanStep | None:
        config = step.config
        if self._failed:
            reason = "settings may still name it, because some could not be changed"
            return replace(step, state="waits", reason=reason)
        try:
            if step.fate == "deleted":
                await self._aws.call(
                    "sagemaker",
                    "DeleteStudioLifecycleConfig",
                    StudioLifecycleConfigName=config.name,
                )
            else:
                await self._unmark(config)
        except NotFoundError:
            return None  # somebody else has done it
        except HyperpodError as error:
            if not is_in_use(error):
                raise
            reason = "SageMaker reports that it is still in use: applications that were started with it run until they are stopped"
            return replace(step, state="waits", reason=reason)
        return None

    async def _unmark(self, config: LifecycleConfig) -> None:
        keys = [f"{DOMAIN_MARK}{self._domain}"]
        try:
            await self._aws.call("sagemaker", "DeleteTags", ResourceArn=config.arn, TagKeys=keys)
        except InvalidInputError:
            await read_text(self._aws, config.name)  # what was deleted is not found by its name
            raise

    # ------------------------------------------------------------------------------ settings

    async def _attach(self, step: AttachStep) -> None:
        """Write the settings until they are as wanted: somebody else may write them at the same time."""
        last: HyperpodError | None = None
        for _ in range(TRIES):
            told = await self._holders.settled(step.holder)
            settings = settings_of(step.holder, told).get(f"{step.app_type}AppSettings") or {}
            found = attachment_of(settings)
            _refuse_foreign(step, found)
            wanted = with_ours(found, step.arn, step.start, step.ours)
            if wanted == found:
                return
            value = with_attachment(settings, wanted)
            try:
                await self._holders.update(step.holder, told, f"{step.app_type}AppSettings", value)
            except (ConflictError, UnreachableError) as error:
                await self._holders.was_in_the_way(error)
                last = error
        raise last or RefusedError(
            f"someone else changes the {step.holder.words} at the same time",
            code="changed_by_others",
            hint="wait until that change is done, then run this again",
        )


def _refuse_foreign(step: AttachStep, found: Attachment) -> None:
    """Refuse to take the place of what somebody else has set since the plan was made.

    Raises:
        RefusedError: Somebody has.
    """
    foreign = found.at(step.start)
    if step.arn is None or foreign is None or foreign in step.ours or step.take_over:
        return
    raise RefusedError(
        f"someone else set {foreign} for the {step.holder.words} in the meantime",
        code="set_by_somebody_else",
        hint="use --take-over to change it",
    )
