"""Doing the steps of a plan: each by itself with a result of its own, so that one that fails leaves the others.

A step is done again without harm: lists are read anew before they are written, so what somebody else has changed since the plan was made is not
lost, and what is there already is left alone. The tag that says what is ours is written first: an executor that is killed in between leaves a tag
on nothing, which does no harm, and never something of ours that nobody knows for ours.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hyperpod_jlab.admin.fsx import models as lists
from hyperpod_jlab.admin.fsx.aws import (
    LOOK,
    MARK,
    TRIES,
    HolderCalls,
    PatientAws,
    claim_tag,
    is_in_use,
    list_of,
    member_of,
    mode_tag,
    tag_of,
)
from hyperpod_jlab.admin.fsx.folders import FolderProvisioner
from hyperpod_jlab.admin.fsx.models import (
    ActualState,
    ClaimStep,
    DesiredState,
    EntryStep,
    Folder,
    FolderStep,
    GroupStep,
    MountTarget,
    PlanStep,
    StoragePlan,
)
from hyperpod_jlab.admin.fsx.planning import path_behind, reason_to_wait, stages
from hyperpod_jlab.admin.lifecycle.models import LifecycleStep, RemovalStep
from hyperpod_jlab.admin.lifecycle.service import LifecycleExecutor
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import (
    ConflictError,
    HyperpodError,
    InvalidInputError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.core.finding import refuse_on_error

_AT_ONCE = 8
"""Profiles and spaces that are under way at a time."""

Guard = Callable[[], Awaitable[None]]
"""Called before each change; it raises what is to stop the rest."""


@dataclass(frozen=True)
class StepResult:
    """What became of a step: done, an error, or neither: there was nothing to do, it waits or is blocked, or it was not begun for somebody has stopped it."""

    step: PlanStep
    done: bool
    error: HyperpodError | None = None

    @property
    def ok(self) -> bool:
        """Whether it is as wanted now."""
        return self.done or (self.step.state == "done" and self.error is None)


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
        there: ActualState,
        keeper: FolderProvisioner | None = None,
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
        self._wanted = DesiredState(None)
        self._file_system = there.file_system.name
        self._holders = HolderCalls(self._aws, there.domain, LOOK if look is None else look)
        self._lifecycle = LifecycleExecutor(self._aws, there.domain, self._holders)
        self._stopping = stopping

    async def apply(self, plan: StoragePlan) -> AsyncIterator[StepResult]:
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

    async def _one(self, step: PlanStep, room: asyncio.Semaphore) -> StepResult:
        if not step.can_be_done:
            return StepResult(step, False)
        if isinstance(step, EntryStep) and (reason := self._reason_to_wait(step)):
            return StepResult(replace(step, state="waits", reason=reason, at_work=False), False)
        async with room:
            if self._stopping():
                return StepResult(step, False)
            try:
                if self._guard is not None:
                    await self._guard()
                waiting = await self._do(step)
            except HyperpodError as error:
                return StepResult(step, False, error)
        return StepResult(step, True) if waiting is None else StepResult(waiting, False)

    def _reason_to_wait(self, step: EntryStep) -> str | None:
        path = path_behind(step, self._file_system)
        if path in self._lacking:
            return f"the folder {path} could not be created"
        return reason_to_wait(step, self._there, self._wanted, self._written)

    async def _do(self, step: PlanStep) -> PlanStep | None:
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

    async def _folders(self, steps: Sequence[FolderStep]) -> list[StepResult]:
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
            StepResult(
                step, step.path in errors and errors[step.path] is None, errors.get(step.path)
            )
            for step in steps
        ]

    async def _made(self, wanted: Mapping[str, Folder]) -> Mapping[str, HyperpodError | None]:
        if self._keeper is None:
            raise RefusedError(
                "folders cannot be created from here",
                code="nobody_makes_folders",
                hint="choose where: --folders here with --mounted-at, --folders slurm or --folders kubernetes",
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

    async def _tag(self, holder: MountTarget, tags: list[dict[str, str]]) -> None:
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
            f"someone else changes the {step.holder.words} at the same time",
            code="changed_by_others",
            hint="wait until that change is done, then run this again",
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
    holder: MountTarget, found: Sequence[lists.Entry], entries: Sequence[lists.Entry]
) -> None:
    """Refuse a list that has become too long since the plan was made.

    Raises:
        RefusedError: It has.
    """
    most = lists.MOST_ATTACHED if holder.kind == "space" else lists.MOST_SETTINGS
    if len(entries) > most:
        raise RefusedError(
            f"the {holder.words} already has {len(found)} file systems, and {most} are allowed",
            code="too_many_file_systems",
            hint="remove one from its list first",
        )


# --------------------------------------------------------------------------------------------------
# Applying until all is as wanted, beside others who apply: what has begun is told on the domain, and what was missed is looked for at the end.
#
# SageMaker has neither locks nor updates on a condition. So an apply to a whole domain writes a tag on it first, its claim, which says what it wants.
# Who finds another's claim there stops before the next change: the last to begin wins, and looks through everything once more after its own steps. A
# claim that stays tells that an apply was broken off; whoever reads then looks for marks that it may have left where nothing is set.

log = logging.getLogger(__name__)

ROUNDS = 4
"""Times that everything is looked through again at most."""

OVER = 2.0
"""Seconds after which somebody else who has found our claim has ended the change that was under way."""

_FRESH = 1.0
"""Seconds for which it is believed that nobody else has claimed the domain."""

Folders = Mapping[str, Folder | None]

Planner = Callable[[Folders | None], Awaitable[tuple[ActualState, StoragePlan]]]
"""Reads what is there, but for folders that are known, and plans anew."""

MakeExecutor = Callable[[ActualState, Guard | None], Executor]
"""Makes who does the steps of a plan."""


class DomainClaim:
    """What is told on a domain while an apply is under way.

    Args:
        aws: AWS in the domain's region.
        there: What was there when the plan was made.
        wanted: What is to be there.
    """

    def __init__(self, aws: Aws, there: ActualState, wanted: DesiredState) -> None:
        self._aws = PatientAws(aws)
        self._arn = next(one.arn for one in there.holders if one.kind == "domain")
        self._key = claim_tag(there.file_system.name)
        self._seen = 0.0
        self.is_beside = False
        self.words = words_of(wanted)

    async def take(self) -> None:
        """Claim the domain, and find out whether somebody else has claimed it for something else (`is_beside`).

        Raises:
            HyperpodError: See `aws.errors`.
        """
        found = (await self._aws.tags(self._arn)).get(self._key, self.words)
        self.is_beside = found != self.words
        tag = {"Key": self._key, "Value": self.words}
        await self._aws.call("sagemaker", "AddTags", ResourceArn=self._arn, Tags=[tag])

    async def check(self) -> None:
        """Stop where somebody else has claimed the domain since for something else.

        Raises:
            RefusedError: Somebody has.
            HyperpodError: See `aws.errors`.
        """
        if time.monotonic() - self._seen < _FRESH:
            return
        found = (await self._aws.tags(self._arn)).get(self._key, self.words)
        if found != self.words:
            raise _superseded(found)
        self._seen = time.monotonic()

    async def tidy(self, there: ActualState, results: Iterable[StepResult]) -> bool:
        """Take away marks that were left by what has failed for good, so that nobody has to look for them everywhere from now on.

        Args:
            there: What was there after it.
            results: What became of each step.

        Returns:
            Whether none is left.
        """
        failed = {
            one.step.holder.words: one.error
            for one in results
            if one.error is not None and isinstance(one.step, EntryStep)
        }
        if any(
            isinstance(one, UnreachableError) or one.code == "superseded" for one in failed.values()
        ):
            return False  # it may be done yet, or be somebody else's by now
        name = there.file_system.name
        try:
            for one in there.holders:
                has = lists.path_of(one.entries, name) is not None or lists.is_attached(
                    one.entries, name
                )
                if one.words in failed and one.mark is not None and not has:
                    keys = [tag_of(one.kind, name)]
                    await self.check()
                    await self._aws.call(
                        "sagemaker", "DeleteTags", ResourceArn=one.arn, TagKeys=keys
                    )
        except HyperpodError as error:
            log.warning("tags were not removed: %s", error)
            return False
        return True

    async def release(self) -> None:
        """Say that it has come to its end.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        if (await self._aws.tags(self._arn)).get(self._key) == self.words:
            keys = [self._key]
            await self._aws.call("sagemaker", "DeleteTags", ResourceArn=self._arn, TagKeys=keys)


async def check_unclaimed(aws: PatientAws, there: ActualState) -> None:
    """See that nobody applies anything to a domain.

    Args:
        aws: AWS in the domain's region.
        there: What is there.

    Raises:
        RefusedError: Somebody does, or an apply was broken off.
        HyperpodError: See `aws.errors`.
    """
    arn = next(one.arn for one in there.holders if one.kind == "domain")
    found = (await aws.tags(arn)).get(claim_tag(there.file_system.name))
    if found is not None:
        raise _superseded(found)


def _superseded(claim: str) -> RefusedError:
    return RefusedError(
        f"another apply to this domain is in progress: {claim}",
        code="superseded",
        hint="wait for its end or agree on one; 'hpj admin status' shows the current state",
    )


def words_of(wanted: DesiredState) -> str:
    """What a claim says."""
    if wanted.mode is None:
        return "nothing"
    return f"{wanted.mode} {wanted.shared_path}" if wanted.mode == "shared" else wanted.mode


async def converge(
    aws: Aws,
    there: ActualState,
    plan: StoragePlan,
    planner: Planner,
    make: MakeExecutor,
    stopping: Callable[[], bool] = lambda: False,
) -> AsyncIterator[StepResult]:
    """Do a plan's steps, then what is left, until nothing is or nothing helps. A step may have several results; the last one counts.

    Args:
        aws: AWS in the domain's region.
        there: What was there when the plan was made.
        plan: The plan.
        planner: Plans anew.
        make: Makes who does the steps.
        stopping: Whether somebody has stopped it: nothing is looked through again then.

    Raises:
        RefusedError: The plan has a finding of level ``error``.
        HyperpodError: The domain cannot be claimed, or not be read anew; see `aws.errors`.
    """
    if plan.wanted.profiles is not None:
        async for result in make(there, None).apply(plan):
            yield result
        return
    claim = DomainClaim(aws, there, plan.wanted)
    await claim.take()
    broken_off = [step for step in plan.steps if isinstance(step, ClaimStep)]
    last: dict[str, StepResult] = {}
    for number in range(ROUNDS):
        async for result in make(there, claim.check).apply(plan):
            last[result.step.target] = result
            yield result
        if stopping():
            break
        if number == 0 and claim.is_beside:
            await asyncio.sleep(OVER)
        there, found = await planner(_known(there, last))
        left = left_to_do(there, found, last)
        if not left:
            break
        plan = replace(found, steps=tuple(left))
    # A mark may have been left else: by what failed, or by what was broken off before and is not looked through to its end.
    is_over = not (broken_off and stopping()) and await claim.tidy(there, last.values())
    if is_over:
        await claim.release()
    for step in broken_off:
        yield StepResult(step, is_over)


def _known(there: ActualState, results: Mapping[str, StepResult]) -> Folders | None:
    """The folders as they are after a round: to look at them may take a job on the cluster."""
    seen = there.file_system.folders
    if seen is None:
        return None
    steps = [one.step for one in results.values() if one.done]
    return {**seen, **{one.path: one.folder for one in steps if isinstance(one, FolderStep)}}


def left_to_do(
    there: ActualState, plan: StoragePlan, results: Mapping[str, StepResult]
) -> list[PlanStep]:
    """The steps of a new plan that it is worth while to do after a round.

    Args:
        there: What is there by now.
        plan: The new plan.
        results: What became of the steps until now, by their targets.
    """
    possible = {step.target: step for step in plan.steps if step.can_be_done}
    left = {name for name, step in possible.items() if _helps(step, results.get(name))}
    scripts = any(isinstance(possible[name], LifecycleStep) for name in left)
    for name, step in possible.items():
        waited = name in results and results[name].step.state == "waits"
        if isinstance(step, RemovalStep):
            waited = waited and scripts  # it goes once nothing names it
        elif not (isinstance(step, EntryStep) and step.takes_away):
            waited = False
        if waited and reason_to_wait(step, there, plan.wanted, left) is None:
            left.add(name)
    return [step for name, step in possible.items() if name in left]


def _helps(step: PlanStep, before: StepResult | None) -> bool:
    """Whether there is something new to be tried. Folders are not: a job that failed is told at once."""
    if isinstance(step, FolderStep):
        return False
    if before is not None and before.error is not None:
        return isinstance(before.error, UnreachableError) or is_in_use(before.error)
    # Somebody else has changed it since; what is no list is no part of what is claimed, so it is not fought for.
    changed = before is None or before.done or before.step.state == "done"
    return isinstance(step, EntryStep) and changed
