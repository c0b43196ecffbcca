"""From what is there and what is wanted to the steps: pure, so that a plan is the same wherever it is made.

In mode ``shared`` the domain's defaults mount one folder for all, so that profiles to come have it too. In mode ``per-user`` the defaults mount
nothing, and each profile mounts a folder of its own name. Nothing is ever moved: what lies in a folder is there when it is mounted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hyperpod_jlab.admin import entries as lists
from hyperpod_jlab.admin.checks import findings_of
from hyperpod_jlab.admin.deletion import deletion_steps
from hyperpod_jlab.admin.folder_planning import (
    folder_findings,
    folder_steps,
    without_folder,
)
from hyperpod_jlab.admin.modes import mode_of, private_path, shared_path_of
from hyperpod_jlab.admin.order import with_waits
from hyperpod_jlab.admin.plan import (
    NOT_MOUNTED,
    ClaimStep,
    EntryStep,
    GroupStep,
    Plan,
    Step,
    StepState,
    Wanted,
)
from hyperpod_jlab.admin.statements import statements_of
from hyperpod_jlab.admin.there import PASSING, SETTLED, Holder, Interface, Mode, There
from hyperpod_jlab.model.finding import Finding

MOST_GROUPS = 5
"""Security groups that a network interface takes, unless the account's quota was raised (VPC quotas)."""


def plan(there: There, wanted: Wanted) -> Plan:
    """The steps, in the order in which they build on each other, also those that are done.

    Args:
        there: What is there.
        wanted: What is to be there.
    """
    folders = {step.path: step for step in folder_steps(there, wanted)}
    entries = [without_folder(step, there, folders, wanted) for step in _entries(there, wanted)]
    findings = (
        *findings_of(there, wanted),
        *folder_findings(there, wanted),
        *_left_alone(entries, wanted),
    )
    steps = (
        *_claims(there, wanted),
        *_groups(there, wanted),
        *folders.values(),
        *with_waits(entries, there, wanted),
    )
    deletions = tuple(deletion_steps(there, wanted, entries))
    made = Plan(wanted, steps, findings, deletions=deletions)
    return replace(made, statements=tuple(statements_of(there, made)))


def _claims(there: There, wanted: Wanted) -> Iterator[Step]:
    if there.claim is None or wanted.profiles is not None:
        return
    reason = "it goes on elsewhere, where it stops then, or was broken off"
    before = f"has begun, not ended: {there.claim}"
    yield ClaimStep(f"apply to domain {there.domain}", "to do", before, "none begun", reason)


def by_status(state: StepState, reason: str | None, holder: Holder) -> tuple[StepState, str | None]:
    """State and reason of a step on something that SageMaker may be at work on."""
    if state == "to do" and holder.status in PASSING:
        return "waits", f"SageMaker is at work on it ({holder.status})"
    if state == "to do" and holder.status != SETTLED:
        words = f"SageMaker says {holder.status}; it can be changed only when it is {SETTLED}"
        return "blocked", words
    return state, reason


def _groups(there: There, wanted: Wanted) -> Iterator[Step]:
    if there.group is None or wanted.profiles is not None:
        return
    # Taken off last: `destroy` writes the lists first.
    for interface in there.file_system.interfaces:
        step = _group_step(interface, there.group, wanted)
        if step is not None:
            yield step


def _group_step(interface: Interface, group: str, wanted: Wanted) -> GroupStep | None:
    has, ours = group in interface.groups, group in interface.ours
    state: StepState = "done"
    groups, reason = interface.groups, None
    if wanted.mode is None:
        if not ours:
            return None
        groups, state = tuple(one for one in groups if one != group), "to do"
    elif not has:
        groups, state = (*groups, group), "to do"
        if len(groups) > MOST_GROUPS:
            state = "blocked"
            reason = f"it has {len(interface.groups)} security groups already, and {MOST_GROUPS} are allowed"
    return GroupStep(
        f"network interface {interface.name}",
        state,
        "Studio may reach it" if has else "Studio may not reach it",
        f"security group {group}" if group in groups else f"without security group {group}",
        reason,
        interface=interface.name,
        group=group,
        groups=groups,
    )


def _profiles(there: There, wanted: Wanted) -> Iterator[Holder]:
    for holder in there.holders:
        if holder.kind == "profile" and wanted.concerns(holder.name):
            yield holder


def _entries(there: There, wanted: Wanted) -> Iterator[EntryStep]:
    chosen = {holder.name for holder in _profiles(there, wanted)}
    for holder in there.holders:
        if holder.kind == "profile":
            concerned = holder.name in chosen
        else:
            # A private space goes with its owner; all else is the whole domain's.
            concerned = wanted.profiles is None or holder.owner in chosen
        if concerned:
            yield (
                _space_step(there, holder, wanted)
                if holder.kind == "space"
                else _setting_step(there, holder, wanted)
            )


def _setting_step(there: There, holder: Holder, wanted: Wanted) -> EntryStep:
    file_system = there.file_system.name
    found = lists.path_of(holder.entries, file_system)
    path = _path_for(holder, wanted, there)
    foreign = found is not None and not _is_ours(holder, wanted, found)
    if foreign and path is None and not _is_in_the_way(holder, wanted, found):
        path = found
    state: StepState = "done" if found == path else "to do"
    entries = holder.entries
    if state != "done":
        entries = (
            lists.without_path(entries, file_system)
            if path is None
            else lists.with_path(entries, file_system, path)
        )
    reason = None
    if foreign and state != "done" and not wanted.take_over:
        state = "blocked"
        reason = f"somebody else has set {found} there; only taking over changes it (--take-over, in a stack TakeOver)"
    elif len(entries) > lists.MOST_SETTINGS:
        state = "blocked"
        reason = f"it has {len(holder.entries)} file systems already, and {lists.MOST_SETTINGS} are allowed"
    mark = None if foreign and state == "done" else path
    if wanted.without_data:
        mark = holder.mark  # it names the folder until that is deleted
    own = _own_mode(holder, wanted) if mark is not None else None
    if state == "done":
        state, reason = _of_marks(holder, mark, own)
    made = _step_of(holder, state, reason, found, path, entries, mark)
    return replace(made, own_mode=own)


def _is_in_the_way(holder: Holder, wanted: Wanted, found: str | None) -> bool:
    """Whether somebody else's folder is to go: the domain's default does no harm to whom has a folder of his own, and is left."""
    in_the_way = holder.kind == "profile" and wanted.mode == "shared"
    return wanted.take_over or (in_the_way and found != wanted.shared_path)


def _left_alone(steps: Iterable[EntryStep], wanted: Wanted) -> Iterator[Finding]:
    """What somebody else has set, and is neither changed nor a step that is blocked."""
    for step in steps:
        holder = step.holder
        if (
            wanted.mode == "per-user"
            and holder.kind in {"domain", "space defaults"}
            and step.state == "done"
            and step.after != NOT_MOUNTED
        ):
            yield Finding(
                level="warning",
                code="set_by_somebody_else",
                message=f"the {holder.words} mounts {step.after} for all that have no list of their own; somebody else has set it, and it is left alone",
                hint="--take-over takes it away",
            )


def _is_ours(holder: Holder, wanted: Wanted, found: str) -> bool:
    """Whether we have set the folder that a list mounts: the mark says so, or is of another folder that we set at the same time."""
    if holder.mark is None or holder.mark == found:
        return holder.mark is not None
    private = private_path(holder.name) if holder.kind == "profile" else None
    return found in {private, wanted.shared_path}


def _of_marks(holder: Holder, mark: str | None, own: Mode | None) -> tuple[StepState, str | None]:
    """Whether something is to be done where the list is as wanted already: what says whose it is."""
    if mark is None:
        # Where a list of somebody else's stays as it is, a mark tells that it was ours; it goes with all else.
        left = holder.mark is not None
        return ("to do", "a mark of ours is left there") if left else ("done", None)
    if holder.mark not in {None, mark}:
        return "to do", f"our mark there is of {holder.mark}"
    if own == holder.own_mode:
        return "done", None
    words = "it keeps this when the domain's mode changes"
    return "to do", words if own else "it goes with the domain from now on"


def _own_mode(holder: Holder, wanted: Wanted) -> Mode | None:
    """The mode that a profile is to keep when the domain's changes."""
    if holder.kind != "profile" or wanted.mode is None:
        return None
    return holder.own_mode if wanted.profiles is None else wanted.mode


def _path_for(holder: Holder, wanted: Wanted, there: There) -> str | None:
    """The folder that this one's own list is to mount; None: none."""
    if wanted.mode is None:
        return None
    if holder.kind != "profile":
        return wanted.shared_path if wanted.mode == "shared" else None
    if mode_of(holder, wanted) == "per-user":
        return private_path(holder.name)
    # The domain's default is for those without a list of their own.
    others = lists.without_path(holder.entries, there.file_system.name)
    alone = wanted.profiles is not None or holder.own_mode is not None
    return shared_path_of(holder, wanted) if others or alone else None


def _space_step(there: There, holder: Holder, wanted: Wanted) -> EntryStep:
    """A space names the file system; which folder it mounts is its owner's, or the defaults', to say."""
    file_system = there.file_system.name
    has = lists.is_attached(holder.entries, file_system)
    # In a shared space everybody acts as the space, so a folder of one profile is not offered there.
    wants = wanted.mode is not None and (holder.owner is not None or wanted.mode == "shared")
    if has and not wants and holder.mark != lists.ATTACHED and not wanted.take_over:
        wants = True
    if has == wants:
        left = not has and holder.mark is not None
        return _step_of(
            holder,
            "to do" if left else "done",
            "a mark of ours is left there" if left else None,
            _space_words(has),
            _space_words(wants),
            holder.entries,
            None if left else holder.mark,
        )
    entries = (
        lists.with_attached(holder.entries, file_system)
        if wants
        else lists.without_attached(holder.entries, file_system)
    )
    state: StepState = "to do"
    reason = None
    if len(entries) > lists.MOST_ATTACHED:
        state = "blocked"
        reason = f"it has {len(holder.entries)} file systems already, and {lists.MOST_ATTACHED} are allowed"
    elif holder.apps:
        state = "waits"
        reason = (
            f"it runs {', '.join(holder.apps)}: a space can be changed only while it is stopped"
        )
    mark = lists.ATTACHED if wants else None
    return _step_of(holder, state, reason, _space_words(has), _space_words(wants), entries, mark)


def _space_words(has: bool) -> str | None:
    return lists.ATTACHED if has else None


def _step_of(
    holder: Holder,
    state: StepState,
    reason: str | None,
    before: str | None,
    after: str | None,
    entries: tuple[lists.Entry, ...],
    mark: str | None,
) -> EntryStep:
    at_work = state == "to do" and holder.status in PASSING
    state, reason = by_status(state, reason, holder)
    return EntryStep(
        holder.words,
        state,
        before or NOT_MOUNTED,
        after or NOT_MOUNTED,
        reason,
        holder.apps if state != "done" else (),
        holder=holder,
        entries=entries,
        mark=mark,
        at_work=at_work,
    )
