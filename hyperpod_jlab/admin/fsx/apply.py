"""Apply a plan's steps: each with its own result, so that a failure does not affect the others.

Steps are idempotent: lists are read again before they are written, so concurrent changes are not lost, and existing entries stay.
The tag that marks our entries is written first: an executor that is killed in between leaves a tag without an entry, which is harmless,
and never an entry of ours without a tag.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hyperpod_jlab.admin.fsx import models as lists
from hyperpod_jlab.admin.fsx.aws import (
    MARK,
    MAX_TRIES,
    POLL_S,
    MountTargetCalls,
    RetryingAws,
    claim_tag,
    is_in_use,
    list_member,
    mode_tag,
    mount_entries,
    mount_tag,
)
from hyperpod_jlab.admin.fsx.folders import FolderProvisioner
from hyperpod_jlab.admin.fsx.models import (
    ActualState,
    DesiredState,
    EntryStep,
    Folder,
    FolderStep,
    GroupStep,
    MountTarget,
    PlanStep,
    StoragePlan,
)
from hyperpod_jlab.admin.fsx.planning import path_mounted_by, reason_to_wait, stages
from hyperpod_jlab.admin.lifecycle.models import LifecycleStep, RemovalStep
from hyperpod_jlab.admin.lifecycle.service import LifecycleExecutor
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import ConflictError, HyperpodError, InvalidInputError, RefusedError, UnreachableError
from hyperpod_jlab.core.finding import raise_on_error

_CONCURRENCY = 8
"""Profiles and spaces that are processed concurrently."""

Guard = Callable[[], Awaitable[None]]
"""Called before each change; raises to stop the rest."""


@dataclass(frozen=True)
class StepResult:
    """The result of a step: done, an error, or neither: there was nothing to do, it waits or is blocked, or it was not started because the apply was stopped."""

    step: PlanStep
    done: bool
    error: HyperpodError | None = None

    @property
    def ok(self) -> bool:
        """Whether it is in the desired state."""
        return self.done or (self.step.state == "done" and self.error is None)


class Executor:
    """Applies steps.

    Args:
        aws: AWS in the domain's region.
        actual: The actual state when the plan was made.
        provisioner: Provisions folders; None: no folders are provisioned.
        interval_s: Maximum poll interval for SageMaker; default: `POLL_S`.
        guard: Called before each change; an exception becomes the step's error.
        stopping: Whether to start no further step: steps in progress finish, the others are reported as not done, without an error.
    """

    def __init__(
        self,
        aws: Aws,
        actual: ActualState,
        provisioner: FolderProvisioner | None = None,
        interval_s: float | None = None,
        guard: Guard | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._aws = RetryingAws(aws)
        self._guard = guard
        self._actual = actual
        self._provisioner = provisioner
        self._missing_folders: set[str] = set()
        self._written_targets: set[str] = set()
        self._desired = DesiredState(None)
        self._file_system = actual.file_system.name
        self._holders = MountTargetCalls(self._aws, actual.domain, POLL_S if interval_s is None else interval_s)
        self._lifecycle = LifecycleExecutor(self._aws, actual.domain, self._holders)
        self._stopping = stopping

    async def apply(self, plan: StoragePlan) -> AsyncIterator[StepResult]:
        """Apply the plan; yields the result of each step as it becomes known.

        Raises:
            RefusedError: The plan has a finding of level ``error``.
        """
        raise_on_error(list(plan.findings))
        self._desired = plan.wanted
        for stage in stages(plan):
            folders = [step for step in stage if isinstance(step, FolderStep)]
            if folders:
                for result in await self._folders(folders):
                    yield result
                continue
            semaphore = asyncio.Semaphore(_CONCURRENCY)
            tasks = [asyncio.create_task(self._run_step(step, semaphore)) for step in stage]
            try:
                for task in asyncio.as_completed(tasks):
                    result = await task
                    if result.done:
                        self._written_targets.add(result.step.target)
                    yield result
            finally:
                for pending_task in tasks:
                    pending_task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_step(self, step: PlanStep, semaphore: asyncio.Semaphore) -> StepResult:
        if not step.can_be_done:
            return StepResult(step, False)
        if isinstance(step, EntryStep) and (reason := self._reason_to_wait(step)):
            return StepResult(replace(step, state="waits", reason=reason, at_work=False), False)
        async with semaphore:
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
        path = path_mounted_by(step, self._file_system)
        if path in self._missing_folders:
            return f"the folder {path} could not be created"
        return reason_to_wait(step, self._actual, self._desired, self._written_targets)

    async def _do(self, step: PlanStep) -> PlanStep | None:
        """Apply a step; returns the step as waiting if it must wait after all."""
        if isinstance(step, GroupStep):
            await self._groups(step)
        elif isinstance(step, EntryStep):
            await self._entries(step)
        elif isinstance(step, LifecycleStep):
            return await self._lifecycle.do(step)
        return None

    # ------------------------------------------------------------------------------ network interfaces and folders

    async def _groups(self, step: GroupStep) -> None:
        interface = next(item for item in self._actual.file_system.interfaces if item.name == step.interface)
        adds = step.group in step.groups
        own_groups = {*interface.ours, step.group} if adds else {*interface.ours} - {step.group}
        tag = {"Key": MARK, "Value": " ".join(sorted(own_groups))}
        if adds:
            await self._aws.call("ec2", "CreateTags", Resources=[step.interface], Tags=[tag])
        await self._set_groups(step, adds=adds)
        if not adds:
            operation = "CreateTags" if own_groups else "DeleteTags"
            tags = [tag] if own_groups else [{"Key": MARK}]
            await self._aws.call("ec2", operation, Resources=[step.interface], Tags=tags)

    async def _set_groups(self, step: GroupStep, *, adds: bool) -> None:
        """Add the group to the interface's current list, or remove it: EC2 replaces the whole list."""
        names = [step.interface]
        response = await self._aws.call("ec2", "DescribeNetworkInterfaces", NetworkInterfaceIds=names)
        group_ids = [str(group["GroupId"]) for group in response["NetworkInterfaces"][0].get("Groups") or ()]
        groups = [group for group in group_ids if group != step.group] + [step.group] * adds
        if set(groups) != set(group_ids):
            await self._aws.call(
                "ec2", "ModifyNetworkInterfaceAttribute", NetworkInterfaceId=step.interface, Groups=groups
            )

    async def _folders(self, steps: Sequence[FolderStep]) -> list[StepResult]:
        """Provision all folders in one batch. Steps that mount a failed folder wait (see `_run_step`)."""
        folders_to_make = {step.path: step.folder for step in steps if step.state == "to do"}
        errors: Mapping[str, HyperpodError | None] = {}
        if folders_to_make:
            try:
                if self._guard is not None:
                    await self._guard()
                errors = await self._make_folders(folders_to_make)
            except HyperpodError as error:
                errors = dict.fromkeys(folders_to_make, error)
        self._missing_folders = {path for path, error in errors.items() if error is not None}
        return [
            StepResult(step, step.path in errors and errors[step.path] is None, errors.get(step.path)) for step in steps
        ]

    async def _make_folders(self, folders_to_make: Mapping[str, Folder]) -> Mapping[str, HyperpodError | None]:
        if self._provisioner is None:
            raise RefusedError(
                "folders cannot be created from here",
                code="nobody_makes_folders",
                hint="choose where: --folders here with --mounted-at, --folders slurm or --folders kubernetes",
            )
        return await self._provisioner.make(folders_to_make)

    # ------------------------------------------------------------------------------ lists of file systems

    async def _entries(self, step: EntryStep) -> None:
        holder, name = step.holder, self._file_system
        mark, mode = mount_tag(holder.kind, name), mode_tag(name)
        tags_before = {mark: step.mark, mode: step.own_mode}
        tags = [{"Key": key, "Value": value} for key, value in tags_before.items() if value is not None]
        if self._desired.mode is None:
            tags = []  # a tag to keep until its folder is deleted exists already, unless another admin removed it
        if tags:
            await self._tag(holder, tags)
        if await self._write(step) and self._guard is not None and tags:
            try:
                await self._guard()
            except RefusedError:
                # A concurrent change may have removed the tag before our entry existed.
                await self._tag(holder, tags)
                raise
        tags_to_set = {mark: mark, mode: holder.own_mode if step.mark is not None else mode}
        removed_tags = [key for key, value in tags_before.items() if value is None and tags_to_set[key] is not None]
        if removed_tags:
            await self._aws.call("sagemaker", "DeleteTags", ResourceArn=holder.arn, TagKeys=removed_tags)

    async def _tag(self, holder: MountTarget, tags: list[dict[str, str]]) -> None:
        try:
            await self._aws.call("sagemaker", "AddTags", ResourceArn=holder.arn, Tags=tags)
        except InvalidInputError:
            await self._holders.describe(holder)  # SageMaker says this of a holder that no longer exists too
            raise

    async def _write(self, step: EntryStep) -> bool:
        """Write the list until it matches the plan: SageMaker has no conditional update, so it is read before and after.

        Returns:
            Whether it was written.

        Raises:
            RefusedError: The list is full, or concurrent changes never stop.
            HyperpodError: See `aws.errors`.
        """
        last: HyperpodError | None = None
        for attempt in range(MAX_TRIES):
            response = await self._holders.wait_until_settled(step.holder)
            current_entries = mount_entries(step.holder, response)
            entries = self._merged(step, current_entries)
            if list(entries) == current_entries:
                return attempt > 0
            _check_limit(step.holder, current_entries, entries)
            if self._guard is not None:
                await self._guard()
            try:
                await self._holders.update(step.holder, response, list_member(step.holder.kind), list(entries))
            except (ConflictError, UnreachableError) as error:
                await self._holders.pause_after_conflict(error)
                last = error
        raise last or RefusedError(
            f"someone else changes the {step.holder.words} at the same time",
            code="changed_by_others",
            hint="wait until that change is done, then run this again",
        )

    def _merged(self, step: EntryStep, entries: Sequence[lists.Entry]) -> tuple[lists.Entry, ...]:
        """The current list, with our entry as planned."""
        name = self._file_system
        if step.holder.kind == "space":
            attach = lists.is_attached(step.entries, name)
            return lists.with_attached(entries, name) if attach else lists.without_attached(entries, name)
        path = lists.mounted_path(step.entries, name)
        return lists.without_path(entries, name) if path is None else lists.with_path(entries, name, path)


def _check_limit(holder: MountTarget, entries_now: Sequence[lists.Entry], entries: Sequence[lists.Entry]) -> None:
    """Refuse a list that has become too long since the plan was made.

    Raises:
        RefusedError: It is too long.
    """
    limit = lists.MAX_ATTACHED if holder.kind == "space" else lists.MAX_SETTINGS
    if len(entries) > limit:
        raise RefusedError(
            f"the {holder.words} already has {len(entries_now)} file systems, and {limit} are allowed",
            code="too_many_file_systems",
            hint="remove one from its list first",
        )


# --------------------------------------------------------------------------------------------------
# The claim of an apply on a domain, and what is left after a pass (see `reconcile.Reconciler.apply`).

log = logging.getLogger(__name__)

_CLAIM_CHECK_TTL_S = 1.0
"""TTL of the check for other claims, in seconds."""

Folders = Mapping[str, Folder | None]


class DomainClaim:
    """The claim on a domain during an apply.

    Args:
        aws: AWS in the domain's region.
        actual: The actual state when the plan was made.
        desired: The desired state.
    """

    def __init__(self, aws: Aws, actual: ActualState, desired: DesiredState) -> None:
        self._aws = RetryingAws(aws)
        self._arn = next(holder.arn for holder in actual.holders if holder.kind == "domain")
        self._key = claim_tag(actual.file_system.name)
        self._seen = 0.0
        self.is_contested = False
        self.words = claim_text(desired)

    async def acquire(self) -> None:
        """Claim the domain, and check whether another apply has claimed it for a different state (`is_contested`).

        Raises:
            HyperpodError: See `aws.errors`.
        """
        claim = (await self._aws.tags(self._arn)).get(self._key, self.words)
        self.is_contested = claim != self.words
        tag = {"Key": self._key, "Value": self.words}
        await self._aws.call("sagemaker", "AddTags", ResourceArn=self._arn, Tags=[tag])

    async def check(self) -> None:
        """Raise if another apply has claimed the domain for a different state.

        Raises:
            RefusedError: Another apply has.
            HyperpodError: See `aws.errors`.
        """
        if time.monotonic() - self._seen < _CLAIM_CHECK_TTL_S:
            return
        claim = (await self._aws.tags(self._arn)).get(self._key, self.words)
        if claim != self.words:
            raise _superseded_error(claim)
        self._seen = time.monotonic()

    async def remove_stale_marks(self, actual: ActualState, results: Iterable[StepResult]) -> bool:
        """Remove tags of steps that failed permanently, so that later reads need not search for them.

        Args:
            actual: The actual state after the apply.
            results: The result of each step.

        Returns:
            Whether none is left.
        """
        failed_holders = {
            result.step.holder.words: result.error
            for result in results
            if result.error is not None and isinstance(result.step, EntryStep)
        }
        if any(
            isinstance(result, UnreachableError) or result.code == "superseded" for result in failed_holders.values()
        ):
            return False  # it may still succeed, or belong to another apply by now
        name = actual.file_system.name
        try:
            for result in actual.holders:
                has = lists.mounted_path(result.entries, name) is not None or lists.is_attached(result.entries, name)
                if result.words in failed_holders and result.mark is not None and not has:
                    keys = [mount_tag(result.kind, name)]
                    await self.check()
                    await self._aws.call("sagemaker", "DeleteTags", ResourceArn=result.arn, TagKeys=keys)
        except HyperpodError as error:
            log.warning("tags were not removed: %s", error)
            return False
        return True

    async def release(self) -> None:
        """Remove the claim.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        if (await self._aws.tags(self._arn)).get(self._key) == self.words:
            keys = [self._key]
            await self._aws.call("sagemaker", "DeleteTags", ResourceArn=self._arn, TagKeys=keys)


async def check_unclaimed(aws: RetryingAws, actual: ActualState) -> None:
    """Check that no apply is in progress on a domain.

    Args:
        aws: AWS in the domain's region.
        actual: The actual state.

    Raises:
        RefusedError: An apply is in progress, or was interrupted.
        HyperpodError: See `aws.errors`.
    """
    arn = next(holder.arn for holder in actual.holders if holder.kind == "domain")
    claim = (await aws.tags(arn)).get(claim_tag(actual.file_system.name))
    if claim is not None:
        raise _superseded_error(claim)


def _superseded_error(claim: str) -> RefusedError:
    return RefusedError(
        f"another apply to this domain is in progress: {claim}",
        code="superseded",
        hint="wait for its end or agree on one; 'hpj admin status' shows the current state",
    )


def claim_text(desired: DesiredState) -> str:
    """The text of a claim."""
    if desired.mode is None:
        return "nothing"
    return f"{desired.mode} {desired.shared_path}" if desired.mode == "shared" else desired.mode


def known_folders_after(actual: ActualState, results: Mapping[str, StepResult]) -> Folders | None:
    """The folders after a pass; None: unknown. Reading them again may take a job on the cluster."""
    folders = actual.file_system.folders
    if folders is None:
        return None
    steps = [result.step for result in results.values() if result.done]
    return {**folders, **{result.path: result.folder for result in steps if isinstance(result, FolderStep)}}


def remaining_steps(actual: ActualState, plan: StoragePlan, results: Mapping[str, StepResult]) -> list[PlanStep]:
    """The steps of a new plan that are worth applying after a pass.

    Args:
        actual: The actual state.
        plan: The new plan.
        results: The results so far, by target.
    """
    possible = {step.target: step for step in plan.steps if step.can_be_done}
    retryable = {name for name, step in possible.items() if _is_worth_retry(step, results.get(name))}
    scripts = any(isinstance(possible[name], LifecycleStep) for name in retryable)
    for name, step in possible.items():
        has_waited = name in results and results[name].step.state == "waits"
        if isinstance(step, RemovalStep):
            has_waited = has_waited and scripts  # it is removed once nothing names it
        elif not (isinstance(step, EntryStep) and step.removes_mount):
            has_waited = False
        if has_waited and reason_to_wait(step, actual, plan.wanted, retryable) is None:
            retryable.add(name)
    return [step for name, step in possible.items() if name in retryable]


def _is_worth_retry(step: PlanStep, last_result: StepResult | None) -> bool:
    """Whether a retry could succeed. Folders are not retried: a failed job is reported at once."""
    if isinstance(step, FolderStep):
        return False
    if last_result is not None and last_result.error is not None:
        return isinstance(last_result.error, UnreachableError) or is_in_use(last_result.error)
    # Changed concurrently; only lists are covered by the claim, so other settings are not
    # overwritten again.
    has_changed = last_result is None or last_result.done or last_result.step.state == "done"
    return isinstance(step, EntryStep) and has_changed
