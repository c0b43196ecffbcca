"""Planning and applying within a time limit, again where it helps: what was in somebody's way a moment ago may be gone."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

from hyperpod_jlab.admin.applying import Result
from hyperpod_jlab.admin.lambdas.limit import Limit
from hyperpod_jlab.admin.patience import is_in_use
from hyperpod_jlab.admin.plan import EntryStep, FolderStep, GroupStep, Plan, Step
from hyperpod_jlab.admin.wiring import Wirer
from hyperpod_jlab.model.errors import HyperpodError, NotFoundError, UnreachableError
from hyperpod_jlab.model.finding import refuse_on_error

log = logging.getLogger(__name__)

ROUNDS = 3
_PAUSE, _LONGEST_PAUSE = 2.0, 15.0
"""Seconds before the second round; the third comes after twice as long, and so on up to the longest."""

_NOT_FROM_HERE = "nobody_makes_folders"
"""The code of what is made elsewhere."""

_NAMED = 8
"""Things that a sentence names; the others are counted."""


@dataclass
class Outcome:
    """What became of a wiring.

    Attributes:
        planned: Whether there was time for a plan.
        done: What was changed.
        settled: How many steps are as wanted.
        held: What waits for something or for somebody's decision.
        failed: What was tried and did not succeed.
        left: What there was no time for.
        blind: Why nobody could look at folders, who was to.
    """

    planned: bool = False
    done: list[Step] = field(default_factory=list)
    settled: int = 0
    held: list[Step] = field(default_factory=list)
    failed: list[Result] = field(default_factory=list)
    left: list[Step] = field(default_factory=list)
    blind: HyperpodError | None = None

    @property
    def total(self) -> int:
        """All steps of the last plan."""
        return self.settled + len(self.held) + len(self.failed) + len(self.left)

    def words(self) -> str:
        """What there is to say, in a sentence."""
        if not self.planned:
            return "there was no time to read what is there"
        parts = [f"{self.settled} of {self.total} steps are as wanted"]
        if self.done:
            parts.append(f"{len(self.done)} were changed")
        if self.failed:
            parts.append(
                f"{len(self.failed)} failed: "
                + _some(f"{one.step.target}: {one.error}" for one in self.failed)
            )
        if self.held:
            parts.append(
                f"{len(self.held)} wait: "
                + _some(f"{one.target}: {one.reason or one.state}" for one in self.held)
            )
        if self.left:
            parts.append(
                f"there was no time for {len(self.left)}: " + _some(one.target for one in self.left)
            )
        if self.blind:
            parts.append(str(self.blind))
        return "; ".join(parts)

    def counts(self) -> dict[str, int]:
        """How many of each, for logs."""
        return {
            "changed": len(self.done),
            "as_wanted": self.settled,
            "waiting": len(self.held),
            "failed": len(self.failed),
            "left": len(self.left),
        }


def is_of_the_whole(step: Step) -> bool:
    """Whether all people of the domain need it, and not a single one."""
    if isinstance(step, EntryStep):
        return step.holder.kind in {"domain", "space defaults"}
    return isinstance(step, GroupStep)


def is_passing(error: HyperpodError | None) -> bool:
    """Whether trying again may help: AWS was busy, or what was to be changed has been deleted meanwhile."""
    return isinstance(error, UnreachableError | NotFoundError) or is_in_use(error)


def waits_for_sagemaker(step: Step) -> bool:
    """Whether SageMaker alone keeps it from being done. What waits for somebody is left to the schedule, which tells it each time."""
    return isinstance(step, EntryStep) and step.at_work


async def converge(
    wirer: Wirer,
    limit: Limit,
    *,
    concerned: Callable[[Step], bool] | None = None,
    told: Callable[[str], None] = lambda _: None,
    patiently: bool = False,
) -> Outcome:
    """Make it so, as far as time allows.

    Args:
        wirer: Plans and applies.
        limit: The time that there is.
        concerned: Which steps are to be done, beside whatever else is under way; None: all.
        told: Called with how far it is, in words.
        patiently: Whether to go on while SageMaker is at work on what is to be changed, to the end of the time.

    Raises:
        RefusedError: The plan has a finding of level ``error``.
        HyperpodError: What is there cannot be read.
    """
    outcome = Outcome()
    for number in itertools.count():
        work = _Round(wirer, concerned, told, outcome.done)
        try:
            async with asyncio.timeout(limit.to_work()):
                await asyncio.sleep(min(number * _PAUSE, _LONGEST_PAUSE))
                await work.run()
        except TimeoutError:
            if work.plan is None:
                return outcome  # that of the round before
        except UnreachableError:
            if number + 1 >= ROUNDS or limit.to_work() == 0:
                raise
            continue
        outcome = work.outcome()
        if not work.may_go_on() or (
            number + 1 >= ROUNDS and not (patiently and work.waits_for_sagemaker())
        ):
            break
    return outcome


class _Round:
    """One plan and its steps."""

    def __init__(
        self,
        wirer: Wirer,
        concerned: Callable[[Step], bool] | None,
        told: Callable[[str], None],
        done: list[Step],
    ) -> None:
        self._wirer, self._concerned, self._told = wirer, concerned, told
        self._done = list(done)
        self._results: dict[str, Result] = {}
        self.plan: Plan | None = None

    async def run(self) -> None:
        """Plan, and do the steps."""
        there, made = await self._wirer.plan()
        refuse_on_error(list(made.findings))
        steps = tuple(filter(self._concerned or (lambda _: True), made.steps))
        self.plan = replace(made, steps=steps)
        # What waits is left for the next round: one profile that is being made is not to keep all others.
        todo = replace(made, steps=tuple(step for step in steps if step.state == "to do"))
        self._told(f"none of {len(steps)} steps was looked at")
        if not todo.steps and there.claim is None:
            return
        # What is done to the whole domain is told on it, and looked through again (`admin.converging`).
        whole = self._concerned is None
        results = (
            self._wirer.apply(there, todo) if whole else self._wirer.executor(there).apply(todo)
        )
        async with contextlib.aclosing(cast("AsyncGenerator[Result]", results)):
            async for result in results:
                self._results[result.step.target] = result
                self._tell(result, len(steps))

    def _tell(self, result: Result, total: int) -> None:
        self._told(f"{len(self._results)} of {total} steps were looked at")
        if result.done:
            log.info("%s: %s -> %s", result.step.target, result.step.before, result.step.after)
        elif result.error is not None and not _is_for_others(result):
            log.warning("%s: %s", result.step.target, result.error)

    def outcome(self) -> Outcome:
        """What became of it."""
        made = Outcome(planned=True, done=self._done)
        for planned in self.plan.steps if self.plan else ():
            result = self._results.get(planned.target)
            step = planned if result is None else result.step
            if result is not None and result.done:
                made.settled += 1
                made.done.append(step)
            elif result is not None and result.error is not None and not _is_for_others(result):
                made.failed.append(result)
            elif step.state == "done":
                made.settled += 1
            elif result is not None or step.state != "to do":
                made.held.append(step)
            else:
                made.left.append(step)
        return made

    def may_go_on(self) -> bool:
        """Whether another round may bring more."""
        errors = [one.error for one in self._results.values()]
        return self.waits_for_sagemaker() or any(map(is_passing, errors))

    def waits_for_sagemaker(self) -> bool:
        """Whether something can be done once SageMaker has ended what it is at work on."""
        errors = [one.error for one in self._results.values()]
        at_work = map(waits_for_sagemaker, self.plan.steps if self.plan else ())
        return any(at_work) or any(map(is_in_use, errors))


def _is_for_others(result: Result) -> bool:
    """Whether it is a folder that is made elsewhere: where the file system is mounted."""
    error = result.error
    return (
        isinstance(result.step, FolderStep) and error is not None and error.code == _NOT_FROM_HERE
    )


def _some(words: Iterator[str]) -> str:
    found = list(words)
    more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more


def plain(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain data: counts, and what is to be said."""
    return {**outcome.counts(), "summary": outcome.words()}
