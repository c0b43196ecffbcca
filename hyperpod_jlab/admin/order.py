"""In which order the steps of a plan are done, and which of them wait for others: pure.

Between two steps nobody is to be left without a folder: an application may start at any moment, and an apply may end at any. So what gives comes before
what takes away: profiles have folders of their own before the domain's default goes, and it is there before they lose theirs. What cannot be given keeps
what would be taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from hyperpod_jlab.admin import entries as lists
from hyperpod_jlab.admin.lifecycle.steps import LifecycleStep
from hyperpod_jlab.admin.plan import ClaimStep, EntryStep, GroupStep, Plan, Step, Wanted
from hyperpod_jlab.admin.statements import some
from hyperpod_jlab.admin.there import There

_ORDER = ("domain", "space defaults", "profile", "space")

_WITHOUT_APPS = frozenset({"Failed", "Deleting", "Delete_Failed"})
"""SageMaker's words for profiles in which nothing can be started."""


def stages(plan: Plan) -> list[list[Step]]:
    """Steps that may be done at the same time, one list after the other.

    Args:
        plan: The plan. Claims are not among them: who claims the domain takes the claim away.
    """
    found: dict[int, list[Step]] = {}
    scripts: dict[int, list[Step]] = {}
    for step in plan.steps:
        if isinstance(step, LifecycleStep):
            scripts.setdefault(step.stage, []).append(step)
        elif not isinstance(step, ClaimStep):
            found.setdefault(_stage(step, plan.wanted), []).append(step)
    return [
        *(found[number] for number in sorted(found, reverse=plan.wanted.mode is None)),
        *(scripts[number] for number in sorted(scripts)),
    ]


def _stage(step: Step, wanted: Wanted) -> int:
    """Both lists of a domain are one thing to SageMaker, and so never written at the same time."""
    if isinstance(step, GroupStep):
        return 0
    if not isinstance(step, EntryStep):
        return 1
    number = _ORDER.index(step.holder.kind)
    late = wanted.mode is not None and step.takes_away and number < 2
    # The defaults' own order is turned round as well: shared spaces lose theirs before profiles do.
    return 7 - number if late else 2 + number


def with_waits(steps: Iterable[Step], there: There, wanted: Wanted) -> tuple[Step, ...]:
    """The steps, those that would leave somebody without a folder as steps that wait.

    Args:
        steps: All steps of a plan.
        there: What is there.
        wanted: What is to be there.
    """
    known = tuple(steps)
    then = {step.target for step in known if step.can_be_done}

    def seen(step: Step) -> Step:
        reason = reason_to_wait(step, there, wanted, then) if step.can_be_done else None
        if reason is None or not isinstance(step, EntryStep):
            return step
        return replace(step, state="waits", reason=reason, at_work=False)

    return tuple(map(seen, known))


def reason_to_wait(
    step: Step, there: There, wanted: Wanted, written: Collection[str]
) -> str | None:
    """Who would be left without a folder by a step, in words; None: nobody.

    Args:
        step: The step.
        there: What is there.
        wanted: What is to be there.
        written: Targets of the lists that are written by then.
    """
    if wanted.mode is None or not isinstance(step, EntryStep) or not step.takes_away:
        return None
    if step.holder.kind == "domain":
        left = [
            one.name
            for one in there.holders
            if one.kind == "profile" and not one.entries and one.status not in _WITHOUT_APPS
            if one.words not in written
        ]
        return (
            f"without a folder of their own yet, and mounting this: {some(left)}" if left else None
        )
    if step.holder.kind == "profile" and not _is_default(there, wanted.shared_path, written):
        return f"{wanted.shared_path} is not the domain's default yet, so nothing would be mounted"
    return None


def _is_default(there: There, path: str, written: Collection[str]) -> bool:
    """Whether profiles without a list mount this folder; not where nobody has looked."""
    for one in there.holders:
        if one.kind == "domain":
            return (
                one.words in written or lists.path_of(one.entries, there.file_system.name) == path
            )
    return False
