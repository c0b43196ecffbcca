"""Doing the steps of a plan: each by itself with a result of its own, so that one that fails leaves the others.

A step is done again without harm: lists are read anew before they are written, so what somebody else has changed since the plan was made is not
lost, and what is there already is left alone. The tag that says what is ours is written first: an executor that is killed in between leaves a tag
on nothing, which does no harm, and never something of ours that nobody knows for ours.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hyperpod_jlab.admin import entries as lists
from hyperpod_jlab.admin.folder_planning import path_behind
from hyperpod_jlab.admin.folders import FolderKeeper
from hyperpod_jlab.admin.plan import EntryStep, FolderStep, GroupStep, Plan, Step
from hyperpod_jlab.admin.reading import MARK, mark_of, tag_of
from hyperpod_jlab.admin.there import Folder, Holder, HolderKind, There
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import HyperpodError, RefusedError, UnreachableError
from hyperpod_jlab.model.finding import refuse_on_error

SETTLED = "InService"
LONGEST_WAIT = 600.0
"""Seconds until something that SageMaker updates is given up: AWS' own samples wait as long."""

LOOK = 2.0
"""Seconds between two looks whether SageMaker is done, the first few of which come sooner."""

_FIRST_LOOK = 0.1

_AT_ONCE = 4
"""Profiles and spaces that are under way at a time."""


@dataclass(frozen=True)
class Result:
    """What became of a step: ``done``, ``skipped`` with the step's own reason, or an error."""

    step: Step
    done: bool
    error: HyperpodError | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            **self.step.to_dict(),
            "ok": self.done,
            "error": None if self.error is None else self.error.to_dict(),
        }


class Executor:
    """Does steps.

    Args:
        aws: AWS in the domain's region.
        there: What was there when the plan was made.
        keeper: Makes folders; None: nobody does.
        look: Seconds between two looks whether SageMaker is done; default: `LOOK`.
    """

    def __init__(
        self,
        aws: Aws,
        there: There,
        keeper: FolderKeeper | None = None,
        look: float | None = None,
    ) -> None:
        self._aws = aws
        self._there = there
        self._keeper = keeper
        self._lacking: set[str] = set()
        self._look = LOOK if look is None else look
        self._file_system = there.file_system.name

    async def apply(self, plan: Plan) -> AsyncIterator[Result]:
        """Do what is to be done, and say of each step what became of it, as it becomes known.

        Raises:
            RefusedError: The plan has a finding of level ``error``.
        """
        refuse_on_error(list(plan.findings))
        for stage in _stages(plan):
            folders = [step for step in stage if isinstance(step, FolderStep)]
            if folders:
                for result in await self._folders(folders):
                    yield result
                continue
            room = asyncio.Semaphore(_AT_ONCE)
            tasks = [asyncio.create_task(self._one(step, room)) for step in stage]
            try:
                for task in asyncio.as_completed(tasks):
                    yield await task
            finally:
                for left in tasks:
                    left.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, step: Step, room: asyncio.Semaphore) -> Result:
        if step.state != "to do":
            return Result(step, False)
        if isinstance(step, EntryStep):
            path = path_behind(step, self._file_system)
            if path in self._lacking:
                reason = f"the folder {path} was not made"
                return Result(replace(step, state="waits", reason=reason), False)
        async with room:
            try:
                await self._do(step)
            except HyperpodError as error:
                return Result(step, False, error)
        return Result(step, True)

    async def _do(self, step: Step) -> None:
        if isinstance(step, GroupStep):
            await self._groups(step)
        elif isinstance(step, EntryStep):
            await self._entries(step)

    # ------------------------------------------------------------------------------ network interfaces and folders

    async def _groups(self, step: GroupStep) -> None:
        interface = next(
            one for one in self._there.file_system.interfaces if one.name == step.interface
        )
        adds = step.group in step.groups
        ours = {*interface.ours, step.group} if adds else {*interface.ours} - {step.group}
        tag = {"Key": MARK, "Value": " ".join(sorted(ours))}
        if adds:
            await self._aws.call("ec2", "CreateTags", Resources=[step.interface], Tags=[tag])
        await self._aws.call(
            "ec2",
            "ModifyNetworkInterfaceAttribute",
            NetworkInterfaceId=step.interface,
            Groups=list(step.groups),
        )
        if not adds:
            operation = "CreateTags" if ours else "DeleteTags"
            tags = [tag] if ours else [{"Key": MARK}]
            await self._aws.call("ec2", operation, Resources=[step.interface], Tags=tags)

    async def _folders(self, steps: Sequence[FolderStep]) -> list[Result]:
        """All folders in one batch. What mounts one that was not made waits (see `_one`)."""
        wanted = {step.path: step.folder for step in steps if step.state == "to do"}
        errors: Mapping[str, HyperpodError | None] = {}
        if wanted:
            try:
                errors = await self._made(wanted)
            except HyperpodError as error:
                errors = dict.fromkeys(wanted, error)
        self._lacking = {path for path in wanted if path not in errors or errors[path] is not None}
        return [
            Result(step, step.path in errors and errors[step.path] is None, errors.get(step.path))
            for step in steps
        ]

    async def _made(self, wanted: Mapping[str, Folder]) -> Mapping[str, HyperpodError | None]:
        if self._keeper is None:
            raise RefusedError(
                "folders cannot be made from here",
                code="nobody_makes_folders",
                hint="say who is to: --folders here, with --mounted-at; or slurm, or kubernetes",
            )
        return await self._keeper.make(wanted)

    # ------------------------------------------------------------------------------ lists of file systems

    async def _entries(self, step: EntryStep) -> None:
        holder = step.holder
        told = await self._settled(holder)
        if step.mark is not None:
            tag = {"Key": tag_of(holder), "Value": mark_of(self._file_system, step.mark)}
            await self._aws.call("sagemaker", "AddTags", ResourceArn=holder.arn, Tags=[tag])
        found = _list(holder, told)
        entries = self._merged(step, found)
        if list(entries) != found:
            await self._update(holder, told, entries)
            await self._settled(holder)
        if step.mark is None:
            await self._aws.call(
                "sagemaker", "DeleteTags", ResourceArn=holder.arn, TagKeys=[tag_of(holder)]
            )

    def _merged(self, step: EntryStep, found: Sequence[lists.Entry]) -> tuple[lists.Entry, ...]:
        """The list as it is now, with our entry as the plan wants it."""
        name = self._file_system
        if step.holder.kind == "space":
            wants = lists.is_attached(step.entries, name)
            return (
                lists.with_attached(found, name) if wants else lists.without_attached(found, name)
            )
        path = lists.path_of(step.entries, name)
        return (
            lists.without_path(found, name) if path is None else lists.with_path(found, name, path)
        )

    async def _settled(self, holder: Holder) -> dict[str, Any]:
        """Wait until SageMaker is done with it; its description then.

        Raises:
            UnreachableError: SageMaker did not come to an end.
            RefusedError: It failed.
        """
        deadline = time.monotonic() + LONGEST_WAIT
        pause = min(_FIRST_LOOK, self._look)
        while True:
            told = await self._described(holder)
            status = str(told["Status"])
            if status == SETTLED:
                return told
            if status not in {"Pending", "Updating"}:
                raise RefusedError(
                    f"SageMaker says of the {holder.words}: {status}",
                    code="not_in_service",
                    hint=str(
                        told.get("FailureReason") or "its page in SageMaker's console says why"
                    ),
                )
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"SageMaker has been at work on the {holder.words} for {LONGEST_WAIT:.0f} s",
                    code="still_updating",
                    hint="run this again later: it goes on where it was",
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._look)

    async def _described(self, holder: Holder) -> dict[str, Any]:
        operation, name = _DESCRIBED[holder.kind]
        given = {name: holder.name} if name else {}
        return await self._aws.call("sagemaker", operation, DomainId=self._there.domain, **given)

    async def _update(
        self, holder: Holder, told: Mapping[str, Any], entries: Sequence[lists.Entry]
    ) -> None:
        settings, member = _PLACES[holder.kind]
        given: dict[str, Any] = {settings: {member: list(entries)}}
        if holder.kind == "space defaults":
            # SageMaker takes these only with a role; the users' is what spaces have without one.
            role = (told.get(settings) or {}).get("ExecutionRole") or (
                told.get("DefaultUserSettings") or {}
            ).get("ExecutionRole")
            if role:
                given[settings]["ExecutionRole"] = role
        operation = {"profile": "UpdateUserProfile", "space": "UpdateSpace"}.get(
            holder.kind, "UpdateDomain"
        )
        name = _DESCRIBED[holder.kind][1]
        if name:
            given[name] = holder.name
        await self._aws.call("sagemaker", operation, DomainId=self._there.domain, **given)


_DESCRIBED: Mapping[HolderKind, tuple[str, str | None]] = {
    "domain": ("DescribeDomain", None),
    "space defaults": ("DescribeDomain", None),
    "profile": ("DescribeUserProfile", "UserProfileName"),
    "space": ("DescribeSpace", "SpaceName"),
}
"""How each kind is described: the operation, and the member that names one."""

_PLACES: Mapping[HolderKind, tuple[str, str]] = {
    "domain": ("DefaultUserSettings", "CustomFileSystemConfigs"),
    "space defaults": ("DefaultSpaceSettings", "CustomFileSystemConfigs"),
    "profile": ("UserSettings", "CustomFileSystemConfigs"),
    "space": ("SpaceSettings", "CustomFileSystems"),
}
"""Where each kind has its list, in the description and in the update."""


def _list(holder: Holder, told: Mapping[str, Any]) -> list[lists.Entry]:
    settings, member = _PLACES[holder.kind]
    return list((told.get(settings) or {}).get(member) or ())


_ORDER = ("domain", "space defaults", "profile", "space")


def _stages(plan: Plan) -> list[list[Step]]:
    """Steps that may be done at the same time. Both lists of a domain are one thing to SageMaker; what is taken away goes the other way round."""
    stages: dict[int, list[Step]] = {}
    for step in plan.steps:
        if isinstance(step, EntryStep):
            number = 2 + _ORDER.index(step.holder.kind)
        else:
            number = 0 if isinstance(step, GroupStep) else 1
        stages.setdefault(number, []).append(step)
    return [stages[number] for number in sorted(stages, reverse=plan.wanted.mode is None)]
