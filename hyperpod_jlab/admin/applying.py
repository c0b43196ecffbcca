"""Doing the steps of a plan: each by itself with a result of its own, so that one that fails leaves the others.

A step is done again without harm: lists are read anew before they are written, so what somebody else has changed since the plan was made is not
lost, and what is there already is left alone. The tag that says what is ours is written first: an executor that is killed in between leaves a tag
on nothing, which does no harm, and never something of ours that nobody knows for ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hyperpod_jlab.admin import entries as lists
from hyperpod_jlab.admin.folder_planning import path_behind
from hyperpod_jlab.admin.folders import FolderKeeper
from hyperpod_jlab.admin.holder_calls import LOOK, TRIES, HolderCalls, list_of, member_of
from hyperpod_jlab.admin.lifecycle.applying import LifecycleExecutor
from hyperpod_jlab.admin.lifecycle.steps import LifecycleStep
from hyperpod_jlab.admin.order import reason_to_wait, stages
from hyperpod_jlab.admin.patience import PatientAws
from hyperpod_jlab.admin.plan import EntryStep, FolderStep, GroupStep, Plan, Step, Wanted
from hyperpod_jlab.admin.reading import MARK, mode_tag, tag_of
from hyperpod_jlab.admin.there import Folder, Holder, There
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import (
    ConflictError,
    HyperpodError,
    InvalidInputError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.model.finding import refuse_on_error

_AT_ONCE = 8
"""Profiles and spaces that are under way at a time."""

Guard = Callable[[], Awaitable[None]]
"""Called before each change; it raises what is to stop the rest."""


@dataclass(frozen=True)
class Result:
    """What became of a step: done, an error, or neither: there was nothing to do, it waits or is blocked, or it was not begun for somebody has stopped it."""

    step: Step
    done: bool
    error: HyperpodError | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ``ok``: it is as wanted now."""
        return {
            **self.step.to_dict(),
            "ok": self.done or (self.step.state == "done" and self.error is None),
            "error": None if self.error is None else self.error.to_dict(),
        }


class Executor:
    """Does steps.

    Args:
        aws: AWS in the domain's region.
        there: What was there when the plan was made.
        keeper: Makes folders; None: nobody does.
        look: Most seconds between two looks whether SageMaker is done; default: `LOOK`.
        guard: Called before each change; what it raises is the step's error.
        stopping: Whether no further step is to begin: those that are under way come to their end, the others are told as not done, without an error.
    """

    def __init__(
        self,
        aws: Aws,
        there: There,
        keeper: FolderKeeper | None = None,
        look: float | None = None,
        guard: Guard | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._aws = PatientAws(aws)
        self._guard = guard
        self._there = there
        self._keeper = keeper
        self._lacking: set[str] = set()
        self._written: set[str] = set()
        self._wanted = Wanted(None)
        self._file_system = there.file_system.name
        self._holders = HolderCalls(self._aws, there.domain, LOOK if look is None else look)
        self._lifecycle = LifecycleExecutor(self._aws, there.domain, self._holders)
        self._stopping = stopping

    async def apply(self, plan: Plan) -> AsyncIterator[Result]:
        """Do what is to be done, and say of each step what became of it, as it becomes known.

        Raises:
            RefusedError: The plan has a finding of level ``error``.
        """
        refuse_on_error(list(plan.findings))
        self._wanted = plan.wanted
        for stage in stages(plan):
            folders = [step for step in stage if isinstance(step, FolderStep)]
            if folders:
                for result in await self._folders(folders):
                    yield result
                continue
            room = asyncio.Semaphore(_AT_ONCE)
            tasks = [asyncio.create_task(self._one(step, room)) for step in stage]
            try:
                for task in asyncio.as_completed(tasks):
                    result = await task
                    if result.done:
                        self._written.add(result.step.target)
                    yield result
            finally:
                for left in tasks:
                    left.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, step: Step, room: asyncio.Semaphore) -> Result:
        if not step.can_be_done:
            return Result(step, False)
        if isinstance(step, EntryStep) and (reason := self._reason_to_wait(step)):
            return Result(replace(step, state="waits", reason=reason, at_work=False), False)
        async with room:
            if self._stopping():
                return Result(step, False)
            try:
                if self._guard is not None:
                    await self._guard()
                waiting = await self._do(step)
            except HyperpodError as error:
                return Result(step, False, error)
        return Result(step, True) if waiting is None else Result(waiting, False)

    def _reason_to_wait(self, step: EntryStep) -> str | None:
        path = path_behind(step, self._file_system)
        if path in self._lacking:
            return f"the folder {path} was not made"
        return reason_to_wait(step, self._there, self._wanted, self._written)

    async def _do(self, step: Step) -> Step | None:
        """Do a step; what it is now where it has to wait after all."""
        if isinstance(step, GroupStep):
            await self._groups(step)
        elif isinstance(step, EntryStep):
            await self._entries(step)
        elif isinstance(step, LifecycleStep):
            return await self._lifecycle.do(step)
        return None

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
        await self._set_groups(step, adds=adds)
        if not adds:
            operation = "CreateTags" if ours else "DeleteTags"
            tags = [tag] if ours else [{"Key": MARK}]
            await self._aws.call("ec2", operation, Resources=[step.interface], Tags=tags)

    async def _set_groups(self, step: GroupStep, *, adds: bool) -> None:
        """Put the group into the interface's list as it is now: EC2 takes the whole list."""
        names = [step.interface]
        told = await self._aws.call("ec2", "DescribeNetworkInterfaces", NetworkInterfaceIds=names)
        found = [str(one["GroupId"]) for one in told["NetworkInterfaces"][0].get("Groups") or ()]
        groups = [one for one in found if one != step.group] + [step.group] * adds
        if set(groups) != set(found):
            await self._aws.call(
                "ec2",
                "ModifyNetworkInterfaceAttribute",
                NetworkInterfaceId=step.interface,
                Groups=groups,
            )

    async def _folders(self, steps: Sequence[FolderStep]) -> list[Result]:
        """All folders in one batch. What mounts one that was not made waits (see `_one`)."""
        wanted = {step.path: step.folder for step in steps if step.state == "to do"}
        errors: Mapping[str, HyperpodError | None] = {}
        if wanted:
            try:
                if self._guard is not None:
                    await self._guard()
                errors = await self._made(wanted)
            except HyperpodError as error:
                errors = dict.fromkeys(wanted, error)
        self._lacking = {path for path, error in errors.items() if error is not None}
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
        holder, name = step.holder, self._file_system
        mark, mode = tag_of(holder.kind, name), mode_tag(name)
        kept = {mark: step.mark, mode: step.own_mode}
        tags = [{"Key": key, "Value": value} for key, value in kept.items() if value is not None]
        if self._wanted.mode is None:
            tags = []  # a mark that stays until its folder is gone is there; another admin may have taken it away
        if tags:
            await self._tag(holder, tags)
        if await self._write(step) and self._guard is not None and tags:
            try:
                await self._guard()
            except RefusedError:
                # Who came between may have taken the mark away before our entry was there.
                await self._tag(holder, tags)
                raise
        had = {mark: mark, mode: holder.own_mode if step.mark is not None else mode}
        gone = [key for key, value in kept.items() if value is None and had[key] is not None]
        if gone:
            await self._aws.call("sagemaker", "DeleteTags", ResourceArn=holder.arn, TagKeys=gone)

    async def _tag(self, holder: Holder, tags: list[dict[str, str]]) -> None:
        try:
            await self._aws.call("sagemaker", "AddTags", ResourceArn=holder.arn, Tags=tags)
        except InvalidInputError:
            await self._holders.described(holder)  # so is it said of what is not there any more
            raise

    async def _write(self, step: EntryStep) -> bool:
        """Write the list until it is as the plan wants it: SageMaker has no update on a condition, so it is looked at before and after.

        Returns:
            Whether it was written at all.

        Raises:
            RefusedError: It has no room, or others write it again and again.
        """
        last: HyperpodError | None = None
        for tried in range(TRIES):
            told = await self._holders.settled(step.holder)
            found = list_of(step.holder, told)
            entries = self._merged(step, found)
            if list(entries) == found:
                return tried > 0
            _check_room(step.holder, found, entries)
            if self._guard is not None:
                await self._guard()
            try:
                await self._holders.update(
                    step.holder, told, member_of(step.holder.kind), list(entries)
                )
            except (ConflictError, UnreachableError) as error:
                await self._holders.was_in_the_way(error)
                last = error
        raise last or RefusedError(
            f"others change the {step.holder.words} at the same time",
            code="changed_by_others",
            hint="see who does; then run this again",
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


def _check_room(
    holder: Holder, found: Sequence[lists.Entry], entries: Sequence[lists.Entry]
) -> None:
    """Refuse a list that has become too long since the plan was made.

    Raises:
        RefusedError: It has.
    """
    most = lists.MOST_ATTACHED if holder.kind == "space" else lists.MOST_SETTINGS
    if len(entries) > most:
        raise RefusedError(
            f"the {holder.words} has {len(found)} file systems already, and {most} are allowed",
            code="too_many_file_systems",
            hint="take one out of its list first",
        )
