"""Apply steps on lifecycle configurations. Steps are idempotent: the actual state is read first, and settings are read, merged and written."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from hyperpod_jlab.admin.fsx.aws import MARK, MAX_TRIES, MountTargetCalls, RetryingAws, is_in_use, target_settings
from hyperpod_jlab.admin.fsx.models import PlanStep
from hyperpod_jlab.admin.lifecycle.models import (
    Attachment,
    AttachStep,
    ConfigStep,
    LifecycleConfig,
    LifecycleStep,
    RemovalStep,
    parse_attachment,
    with_attachment,
    with_own_script,
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
# Read the lifecycle configurations of an account that are ours, or have a name that ours will have.

PREFIX = "hyperpod-jlab"
"""Name prefix of ours, so that the tags of others are not read (`scripts.config_name`)."""

DOMAIN_TAG_PREFIX = f"{MARK}-domain-"
"""Prefix of the tag for a domain that uses a lifecycle configuration: the domain's id follows, so that two admins never write the same tag."""


async def read_configs(aws: Aws, names: Collection[str]) -> tuple[LifecycleConfig, ...]:
    """Lifecycle configurations of this region that may be ours.

    Args:
        aws: AWS in the domain's region.
        names: The desired ones, whose text is read too.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    patient = RetryingAws(aws)
    listing = await patient.list_all(
        "sagemaker", "ListStudioLifecycleConfigs", "StudioLifecycleConfigs", NameContains=PREFIX
    )
    configs = [await _config(patient, item, names) for item in listing]
    return tuple(config for config in configs if config is not None)


async def _config(aws: RetryingAws, item: Mapping[str, Any], names: Collection[str]) -> LifecycleConfig | None:
    """One of the list; None: it was deleted meanwhile."""
    name, arn = str(item["StudioLifecycleConfigName"]), str(item["StudioLifecycleConfigArn"])
    try:
        tags = await _tags(aws, name, arn)
        text = await read_text(aws, name) if name in names else None
    except NotFoundError:
        return None
    domains = frozenset(key.removeprefix(DOMAIN_TAG_PREFIX) for key in tags if key.startswith(DOMAIN_TAG_PREFIX))
    return LifecycleConfig(name, arn, str(item.get("StudioLifecycleConfigAppType") or ""), MARK in tags, domains, text)


async def _tags(aws: RetryingAws, name: str, arn: str) -> Mapping[str, str]:
    try:
        return await aws.tags(arn)
    except InvalidInputError:
        # Reading tags of a deleted one gives the same error; describing it gives not found.
        await read_text(aws, name)
        raise


async def read_text(aws: RetryingAws, name: str) -> str | None:
    """The script of a lifecycle configuration; None: it is not text.

    Raises:
        NotFoundError: It does not exist.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("sagemaker", "DescribeStudioLifecycleConfig", StudioLifecycleConfigName=name)
    try:
        return base64.b64decode(response["StudioLifecycleConfigContent"], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


class LifecycleExecutor:
    """Applies the steps.

    Args:
        aws: AWS in the domain's region.
        domain: The domain's id.
        holders: Reads and writes settings.
    """

    def __init__(self, aws: RetryingAws, domain: str, holders: MountTargetCalls) -> None:
        self._aws = aws
        self._domain = domain
        self._holders = holders
        self._failed = False

    async def do(self, step: LifecycleStep) -> PlanStep | None:
        """Apply a step; returns the step as waiting if it must wait after all.

        Raises:
            RefusedError: Others have changed the settings since the plan was made.
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
        domain_tags = [
            {"Key": MARK, "Value": step.app_type},
            {"Key": f"{DOMAIN_TAG_PREFIX}{self._domain}", "Value": ""},
        ]
        if step.is_there:
            await self._aws.call("sagemaker", "AddTags", ResourceArn=step.arn, Tags=domain_tags[1:])
            return
        try:
            await self._aws.call(
                "sagemaker",
                "CreateStudioLifecycleConfig",
                StudioLifecycleConfigName=step.script.name,
                StudioLifecycleConfigContent=encoded(step.script.text),
                StudioLifecycleConfigAppType=step.app_type,
                Tags=domain_tags,
            )
        except HyperpodError as error:
            # Another admin was faster: the same script is just as good.
            if not is_in_use(error) or await read_text(self._aws, step.script.name) != step.script.text:
                raise
            await self._aws.call("sagemaker", "AddTags", ResourceArn=step.arn, Tags=domain_tags[1:])

    async def _remove(self, step: RemovalStep) -> PlanStep | None:
        config = step.config
        if self._failed:
            reason = "settings may still name it, because some could not be changed"
            return replace(step, state="waits", reason=reason)
        try:
            if step.fate == "deleted":
                await self._aws.call("sagemaker", "DeleteStudioLifecycleConfig", StudioLifecycleConfigName=config.name)
            else:
                await self._unmark(config)
        except NotFoundError:
            return None  # another admin has done it
        except HyperpodError as error:
            if not is_in_use(error):
                raise
            reason = "SageMaker reports that it is still in use: applications that were started with it run until they are stopped"
            return replace(step, state="waits", reason=reason)
        return None

    async def _unmark(self, config: LifecycleConfig) -> None:
        keys = [f"{DOMAIN_TAG_PREFIX}{self._domain}"]
        try:
            await self._aws.call("sagemaker", "DeleteTags", ResourceArn=config.arn, TagKeys=keys)
        except InvalidInputError:
            await read_text(self._aws, config.name)  # a deleted one is not found by its name
            raise

    # ------------------------------------------------------------------------------ settings

    async def _attach(self, step: AttachStep) -> None:
        """Write the settings until they are as desired: others may write them concurrently."""
        last: HyperpodError | None = None
        for _ in range(MAX_TRIES):
            response = await self._holders.wait_until_settled(step.holder)
            settings = target_settings(step.holder, response).get(f"{step.app_type}AppSettings") or {}
            current = parse_attachment(settings)
            _refuse_foreign(step, current)
            new_attachment = with_own_script(current, step.arn, step.start, step.ours)
            if new_attachment == current:
                return
            value = with_attachment(settings, new_attachment)
            try:
                await self._holders.update(step.holder, response, f"{step.app_type}AppSettings", value)
            except (ConflictError, UnreachableError) as error:
                await self._holders.pause_after_conflict(error)
                last = error
        raise last or RefusedError(
            f"someone else changes the {step.holder.words} at the same time",
            code="changed_by_others",
            hint="wait until that change is done, then run this again",
        )


def _refuse_foreign(step: AttachStep, current: Attachment) -> None:
    """Refuse to replace what others have set since the plan was made.

    Raises:
        RefusedError: Others have set it.
    """
    foreign = current.at(step.start)
    if step.arn is None or foreign is None or foreign in step.ours or step.take_over:
        return
    raise RefusedError(
        f"someone else set {foreign} for the {step.holder.words} in the meantime",
        code="set_by_somebody_else",
        hint="use --take-over to change it",
    )
