"""Doing steps on lifecycle configurations. Each may be done again: what is there is looked at first, and settings are read, merged and written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from hyperpod_jlab.admin.lifecycle.attachment import attachment_of, with_attachment, with_ours
from hyperpod_jlab.admin.lifecycle.reading import DOMAIN_MARK, read_text
from hyperpod_jlab.admin.lifecycle.scripts import encoded
from hyperpod_jlab.admin.lifecycle.steps import AttachStep, ConfigStep, LifecycleStep, RemovalStep
from hyperpod_jlab.admin.plan import Step
from hyperpod_jlab.admin.reading import MARK
from hyperpod_jlab.admin.there import Holder, HolderKind
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import HyperpodError, NotFoundError, RefusedError

SETTINGS: Mapping[HolderKind, str] = {
    "domain": "DefaultUserSettings",
    "space defaults": "DefaultSpaceSettings",
    "profile": "UserSettings",
}
"""Where each kind has its settings, in the description and in the update."""

_IN_USE = "ResourceInUse"

Settled = Callable[[Holder], Awaitable[dict[str, Any]]]
"""Waits until SageMaker is done with something; its description then."""


class Update(Protocol):
    """Writes one member of something's settings."""

    async def __call__(
        self, holder: Holder, told: Mapping[str, Any], member: str, value: Any
    ) -> None:
        """Write it; `told` is the description."""


class LifecycleExecutor:
    """Does them.

    Args:
        aws: AWS in the domain's region.
        domain: The domain's id.
        settled: Waits for SageMaker.
        update: Writes settings.
    """

    def __init__(self, aws: Aws, domain: str, settled: Settled, update: Update) -> None:
        self._aws = aws
        self._domain = domain
        self._settled = settled
        self._update = update
        self._failed = False

    async def do(self, step: LifecycleStep) -> Step | None:
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
                not _is_in_use(error)
                or await read_text(self._aws, step.script.name) != step.script.text
            ):
                raise
            await self._aws.call("sagemaker", "AddTags", ResourceArn=step.arn, Tags=ours[1:])

    async def _remove(self, step: RemovalStep) -> Step | None:
        config = step.config
        if self._failed:
            reason = "settings may still name it, since not all could be changed"
            return replace(step, state="waits", reason=reason)
        try:
            if step.fate == "deleted":
                await self._aws.call(
                    "sagemaker",
                    "DeleteStudioLifecycleConfig",
                    StudioLifecycleConfigName=config.name,
                )
            else:
                keys = [f"{DOMAIN_MARK}{self._domain}"]
                await self._aws.call(
                    "sagemaker", "DeleteTags", ResourceArn=config.arn, TagKeys=keys
                )
        except NotFoundError:
            return None  # somebody else has done it
        except HyperpodError as error:
            if not _is_in_use(error):
                raise
            reason = "SageMaker says that something still uses it: applications that were started with it go on until they are stopped"
            return replace(step, state="waits", reason=reason)
        return None

    # ------------------------------------------------------------------------------ settings

    async def _attach(self, step: AttachStep) -> None:
        holder, member = step.holder, f"{step.app_type}AppSettings"
        told = await self._settled(holder)
        settings = (told.get(SETTINGS[holder.kind]) or {}).get(member) or {}
        found = attachment_of(settings)
        foreign = found.at(step.start)
        if (
            step.arn is not None
            and foreign is not None
            and foreign not in step.ours
            and not step.take_over
        ):
            raise RefusedError(
                f"somebody else has set {foreign} for the {holder.words} meanwhile",
                code="set_by_somebody_else",
                hint="--take-over changes it",
            )
        wanted = with_ours(found, step.arn, step.start, step.ours)
        if wanted != found:
            await self._update(holder, told, member, with_attachment(settings, wanted))
            await self._settled(holder)


def _is_in_use(error: HyperpodError) -> bool:
    return error.detail.get("aws_code") == _IN_USE
