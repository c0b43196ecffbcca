"""Applying until all is as wanted, beside others who apply: what has begun is told on the domain, and what was missed is looked for at the end.

SageMaker has neither locks nor updates on a condition. So an apply to a whole domain writes a tag on it first, its claim, which says what it wants.
Who finds another's claim there stops before the next change: the last to begin wins, and looks through everything once more after its own steps. A
claim that stays tells that an apply was broken off; whoever reads then looks for marks that it may have left where nothing is set.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import replace

from hyperpod_jlab.admin import entries as lists
from hyperpod_jlab.admin.applying import Executor, Guard, Result
from hyperpod_jlab.admin.lifecycle.steps import LifecycleStep, RemovalStep
from hyperpod_jlab.admin.order import reason_to_wait
from hyperpod_jlab.admin.patience import PatientAws, is_in_use
from hyperpod_jlab.admin.plan import ClaimStep, EntryStep, FolderStep, Plan, Step, Wanted
from hyperpod_jlab.admin.reading import claim_tag, tag_of
from hyperpod_jlab.admin.there import Folder, There
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import HyperpodError, RefusedError, UnreachableError

log = logging.getLogger(__name__)

ROUNDS = 4
"""Times that everything is looked through again at most."""

OVER = 2.0
"""Seconds after which somebody else who has found our claim has ended the change that was under way."""

_FRESH = 1.0
"""Seconds for which it is believed that nobody else has claimed the domain."""

Folders = Mapping[str, Folder | None]

Planner = Callable[[Folders | None], Awaitable[tuple[There, Plan]]]
"""Reads what is there, but for folders that are known, and plans anew."""

MakeExecutor = Callable[[There, Guard | None], Executor]
"""Makes who does the steps of a plan."""


class Claim:
    """What is told on a domain while an apply is under way.

    Args:
        aws: AWS in the domain's region.
        there: What was there when the plan was made.
        wanted: What is to be there.
    """

    def __init__(self, aws: Aws, there: There, wanted: Wanted) -> None:
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

    async def tidy(self, there: There, results: Iterable[Result]) -> bool:
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
            log.warning("marks are left: %s", error)
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


async def check_unclaimed(aws: PatientAws, there: There) -> None:
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
        f"somebody else has begun to apply: {claim}",
        code="superseded",
        hint="agree on one; 'hpj admin status' says what there is",
    )


def words_of(wanted: Wanted) -> str:
    """What a claim says."""
    if wanted.mode is None:
        return "nothing"
    return f"{wanted.mode} {wanted.shared_path}" if wanted.mode == "shared" else wanted.mode


async def converge(
    aws: Aws,
    there: There,
    plan: Plan,
    planner: Planner,
    make: MakeExecutor,
    stopping: Callable[[], bool] = lambda: False,
) -> AsyncIterator[Result]:
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
    claim = Claim(aws, there, plan.wanted)
    await claim.take()
    broken_off = [step for step in plan.steps if isinstance(step, ClaimStep)]
    last: dict[str, Result] = {}
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
        yield Result(step, is_over)


def _known(there: There, results: Mapping[str, Result]) -> Folders | None:
    """The folders as they are after a round: to look at them may take a job on the cluster."""
    seen = there.file_system.folders
    if seen is None:
        return None
    steps = [one.step for one in results.values() if one.done]
    return {**seen, **{one.path: one.folder for one in steps if isinstance(one, FolderStep)}}


def left_to_do(there: There, plan: Plan, results: Mapping[str, Result]) -> list[Step]:
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


def _helps(step: Step, before: Result | None) -> bool:
    """Whether there is something new to be tried. Folders are not: a job that failed is told at once."""
    if isinstance(step, FolderStep):
        return False
    if before is not None and before.error is not None:
        return isinstance(before.error, UnreachableError) or is_in_use(before.error)
    # Somebody else has changed it since; what is no list is no part of what is claimed, so it is not fought for.
    changed = before is None or before.done or before.step.state == "done"
    return isinstance(step, EntryStep) and changed
