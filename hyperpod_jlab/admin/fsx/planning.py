"""From what is there and what is wanted to the steps: pure, so that a plan is the same wherever it is made.

In mode ``shared`` the domain's defaults mount one folder for all, so that profiles to come have it too. In mode ``per-user`` the defaults mount
nothing, and each profile mounts a folder of its own name. Nothing is ever moved: what lies in a folder is there when it is mounted again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from posixpath import normpath

from hyperpod_jlab.admin.fsx import models as lists
from hyperpod_jlab.admin.fsx.folders import ROOT
from hyperpod_jlab.admin.fsx.models import (
    COMMON_GID,
    COMMON_UID,
    NOT_KNOWN,
    NOT_MOUNTED,
    PASSING,
    SETTLED,
    ActualState,
    ClaimStep,
    DeletionStep,
    DesiredState,
    EntryStep,
    FileSystemInterface,
    Folder,
    FolderStep,
    Grant,
    GroupStep,
    Mode,
    MountTarget,
    PlanStep,
    StepState,
    StoragePlan,
    holders_after,
    is_folder,
    is_of_all,
    mode_of,
    mounts_of,
    private_path,
    shared_path_of,
)
from hyperpod_jlab.admin.fsx.statements import findings_of, some, statements_of
from hyperpod_jlab.admin.lifecycle.models import LifecycleStep
from hyperpod_jlab.core.errors import HyperpodError, RefusedError
from hyperpod_jlab.core.finding import Finding

# --------------------------------------------------------------------------------------------------
# Which folders of the file system there are to be, whose they are, and who may use them besides: pure.

NOBODY_LOOKS = "folders are not checked: use --folders (in a stack: Folders)"


def folder_steps(there: ActualState, wanted: DesiredState) -> Iterator[FolderStep]:
    """The folders of a plan.

    Args:
        there: What is there.
        wanted: What is to be there.
    """
    if wanted.mode is None or wanted.folders_are_there:
        return
    people = [one for one in there.holders if one.kind == "profile" and wanted.concerns(one.name)]
    shared = {shared_path_of(one, wanted) for one in people if mode_of(one, wanted) == "shared"}
    if wanted.mode == "shared":
        shared.add(wanted.shared_path)
    for path in sorted(shared):
        # With the group's bit, so that what one makes the others may change; sticky, so that nobody exchanges what is another user's.
        folder = Folder(_shared_owner(there, path, people), COMMON_GID, 0o3775)
        yield _step(there, path, folder, wanted.cluster_user)
    for holder in people:
        if mode_of(holder, wanted) == "per-user" and not is_of_all(holder, wanted):
            folder = Folder(holder.uid or COMMON_UID, holder.gid or COMMON_GID, 0o700)
            yield _step(there, private_path(holder.name), folder, wanted.cluster_user)


def _shared_owner(there: ActualState, path: str, people: Iterable[MountTarget]) -> int:
    """Whose the common folder is: the owner may rename all that lies in it, so where people have numbers of their own it is root's. One that is there keeps its owner."""
    found = (there.file_system.folders or {}).get(path)
    if found is not None:
        return 0 if found.uid == 0 else COMMON_UID
    return 0 if any(one.uid for one in people) else COMMON_UID


def folder_findings(there: ActualState, wanted: DesiredState) -> Iterator[Finding]:
    """What is to be said of all folders."""
    if wanted.mode is not None and wanted.cluster_user and not _takes_acls(there):
        yield Finding(
            level="warning",
            code="no_acls",
            message=f"the file system has no ACLs where folders are checked, so uid {wanted.cluster_user} gets access to no folder",
            hint="mount it with ACLs, or run jobs as the owners of the folders",
        )


def without_folder(
    step: EntryStep, there: ActualState, folders: Mapping[str, FolderStep], wanted: DesiredState
) -> EntryStep:
    """The step as it can be while its folder is not there: somebody else's is given to nobody, and one that nobody has seen is not mounted.

    Args:
        step: A list of file systems to write.
        there: What is there.
        folders: The folders' steps by path.
        wanted: What is to be there.
    """
    path = path_behind(step, there.file_system.name)
    folder = folders.get(path or "")
    if not step.can_be_done:
        return step
    if path == wanted.shared_path and _is_private(step.holder, wanted):
        reason = f"the folder {path} cannot be private: all users share it"
        return replace(step, state="blocked", reason=reason, at_work=False)
    if folder is None:
        return step
    if folder.state == "blocked":
        reason = f"the folder {folder.path} cannot be used: {folder.reason}"
        return replace(step, state="blocked", reason=reason, at_work=False)
    if folder.state == "waits" and folder.private:
        reason = f"the folder {folder.path} was not checked"
        return replace(step, state="waits", reason=reason, at_work=False)
    return step


def _is_private(holder: MountTarget, wanted: DesiredState) -> bool:
    """Whether what a list mounts is to be for one profile alone."""
    if holder.kind == "profile":
        return mode_of(holder, wanted) == "per-user"
    return holder.owner is not None and wanted.mode == "per-user"


def path_behind(step: EntryStep, file_system: str) -> str | None:
    """The folder that is mounted by what a step writes: a private space mounts its owner's. None: none, or not known here."""
    if step.holder.kind != "space":
        return step.after
    attached = [lists.is_attached(one, file_system) for one in (step.holder.entries, step.entries)]
    adds = attached == [False, True]
    return private_path(step.holder.owner) if adds and step.holder.owner else None


def _step(there: ActualState, path: str, folder: Folder, cluster_user: int | None) -> FolderStep:
    seen = there.file_system.folders
    found = None if seen is None else seen.get(path)
    private = not folder.mode & 0o077
    if cluster_user and cluster_user != folder.uid and _takes_acls(there):
        folder = _opened(folder, cluster_user)
    if found is not None and (cluster_user is None or not private):
        folder = _with_others(folder, found)
    before = NOT_KNOWN if seen is None else "missing"
    state: StepState = "to do"
    reason = None
    if seen is None:
        state, reason = "waits", NOBODY_LOOKS
    elif found is not None:
        before = "no folder" if found.other else found.words
        state, reason = _standing(found, folder, private)
    target = f"folder {path}"
    return FolderStep(target, state, before, folder.words, reason, path=path, folder=folder)


def _standing(found: Folder, folder: Folder, private: bool) -> tuple[StepState, str | None]:
    if found.other:
        return "blocked", "a file or a link is in its place: check what it is, and move it"
    if found == folder:
        return "done", None
    if found.uid not in {folder.uid, 0}:
        return (
            "blocked",
            f"it belongs to uid {found.uid}: check its owner, then chown it to uid {folder.uid}",
        )
    if found.uid == 0 and private and not found.empty:
        return (
            "blocked",
            f"it belongs to root and is not empty: check its content, then chown it to uid {folder.uid}",
        )
    return "to do", None


def _opened(folder: Folder, user: int) -> Folder:
    """With lists that let the cluster's user in, and both him and the owner into what the other makes there."""
    both = sorted({user, folder.uid})
    default: tuple[Grant, ...] = (
        ("user", None, 7),
        *(("user", number, 7) for number in both),
        ("group", None, folder.mode >> 3 & 7),
        ("other", None, folder.mode & 7),
    )
    return replace(folder, acl=(("user", user, 7),), default=default)


def _with_others(folder: Folder, found: Folder) -> Folder:
    """Whoever was let in stays so: into a folder of all, and into a private one where nothing else is said."""
    return replace(
        folder,
        acl=_merged(found.acl, folder.acl),
        default=_merged(found.default, folder.default),
    )


def _merged(found: tuple[Grant, ...], ours: tuple[Grant, ...]) -> tuple[Grant, ...]:
    named = {grant[:2]: grant for grant in (*found, *ours)}
    order = ("user", "group", "other")
    return tuple(
        sorted(
            named.values(),
            key=lambda one: (order.index(one[0]), one[1] is not None, one[1] or 0),
        )
    )


def _takes_acls(there: ActualState) -> bool:
    """Whether the file system keeps access lists, as far as anybody has looked."""
    seen = there.file_system.folders
    root = None if seen is None else seen.get(ROOT)
    return root is None or root.takes_acls


# --------------------------------------------------------------------------------------------------
# In which order the steps of a plan are done, and which of them wait for others: pure.
#
# Between two steps nobody is to be left without a folder: an application may start at any moment, and an apply may end at any. So what gives comes before
# what takes away: profiles have folders of their own before the domain's default goes, and it is there before they lose theirs. What cannot be given keeps
# what would be taken.

_ORDER = ("domain", "space defaults", "profile", "space")

_WITHOUT_APPS = frozenset({"Failed", "Deleting", "Delete_Failed"})
"""SageMaker's words for profiles in which nothing can be started."""


def stages(plan: StoragePlan) -> list[list[PlanStep]]:
    """Steps that may be done at the same time, one list after the other.

    Args:
        plan: The plan. Claims are not among them: who claims the domain takes the claim away.
    """
    found: dict[int, list[PlanStep]] = {}
    scripts: dict[int, list[PlanStep]] = {}
    for step in plan.steps:
        if isinstance(step, LifecycleStep):
            scripts.setdefault(step.stage, []).append(step)
        elif not isinstance(step, ClaimStep):
            found.setdefault(_stage(step, plan.wanted), []).append(step)
    return [
        *(found[number] for number in sorted(found, reverse=plan.wanted.mode is None)),
        *(scripts[number] for number in sorted(scripts)),
    ]


def _stage(step: PlanStep, wanted: DesiredState) -> int:
    """Both lists of a domain are one thing to SageMaker, and so never written at the same time."""
    if isinstance(step, GroupStep):
        return 0
    if not isinstance(step, EntryStep):
        return 1
    number = _ORDER.index(step.holder.kind)
    late = wanted.mode is not None and step.takes_away and number < 2
    # The defaults' own order is turned round as well: shared spaces lose theirs before profiles do.
    return 7 - number if late else 2 + number


def with_waits(
    steps: Iterable[PlanStep], there: ActualState, wanted: DesiredState
) -> tuple[PlanStep, ...]:
    """The steps, those that would leave somebody without a folder as steps that wait.

    Args:
        steps: All steps of a plan.
        there: What is there.
        wanted: What is to be there.
    """
    known = tuple(steps)
    then = {step.target for step in known if step.can_be_done}

    def seen(step: PlanStep) -> PlanStep:
        reason = reason_to_wait(step, there, wanted, then) if step.can_be_done else None
        if reason is None or not isinstance(step, EntryStep):
            return step
        return replace(step, state="waits", reason=reason, at_work=False)

    return tuple(map(seen, known))


def reason_to_wait(
    step: PlanStep, there: ActualState, wanted: DesiredState, written: Collection[str]
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
        return f"profiles without their own folder that mount this: {some(left)}" if left else None
    if step.holder.kind == "profile" and not _is_default(there, wanted.shared_path, written):
        return f"{wanted.shared_path} is not yet the default of the domain, so nothing would be mounted"
    return None


def _is_default(there: ActualState, path: str, written: Collection[str]) -> bool:
    """Whether profiles without a list mount this folder; not where nobody has looked."""
    for one in there.holders:
        if one.kind == "domain":
            return (
                one.words in written or lists.path_of(one.entries, there.file_system.name) == path
            )
    return False


# --------------------------------------------------------------------------------------------------
# Which folders are deleted when all is taken back and an admin says twice that they are to be: pure.
#
# Only those that a mark names, so that were given from here, and that nobody mounts then. They need not have been made from here: what was there before an
# apply, and was given to its owner by it, is deleted too. Marks stay until folders are gone, so that what is broken off may be done again.

GONE = "deleted with all its content"


def deletion_steps(
    there: ActualState, wanted: DesiredState, entries: Sequence[EntryStep]
) -> Iterator[DeletionStep]:
    """The folders that are to be deleted.

    Args:
        there: What is there.
        wanted: What is to be there.
        entries: The lists that are written before.
    """
    if wanted.mode is not None or not wanted.without_data:
        return
    name = there.file_system.name
    before = mounts_of(there.holders, name)
    after = mounts_of(holders_after(there.holders, entries), name)
    for path in sorted(set(_given(entries))):
        step = _deletion_step(there, path)
        mounting = [words for words, other in after.items() if _touches(path, other)]
        open_in = _open_in(there, path, before)
        if step.state == "to do" and mounting:
            step = replace(step, state="blocked", reason=f"{some(mounting)} still mounts it")
        elif step.state == "to do" and open_in:
            reason = f"a running application uses it: stop {some(open_in)} first"
            step = replace(step, state="waits", reason=reason)
        yield step


def still_named(
    there: ActualState, now: ActualState, found: DeletionStep | None, asked: DeletionStep
) -> DeletionStep:
    """The step of a folder after another look; what has begun meanwhile may stop it.

    Args:
        there: What was there when an admin was asked.
        now: What is there.
        found: The step by what is there now; None: no mark names the folder any more.
        asked: The step that the admin saw.
    """
    if found is None:
        return replace(asked, state="blocked", reason="its tag was removed in the meantime")
    if found.state == "to do" and found.owner != asked.owner:
        return replace(
            found, state="blocked", reason="it was given to another profile in the meantime"
        )
    open_in = _open_in(now, asked.path, mounts_of(there.holders, there.file_system.name))
    if found.state == "to do" and open_in:
        reason = f"a running application may use it: stop {some(open_in)} first"
        return replace(found, state="waits", reason=reason)
    return found


def refusal(step: DeletionStep) -> HyperpodError | None:
    """The error of a folder that cannot be deleted; None: it is gone already."""
    if step.state == "done":
        return None
    return RefusedError(
        f"{step.path} was not deleted: {step.reason}",
        code="data_in_use",
        hint="resolve that and run this again; it continues from the current state",
    )


def _open_in(there: ActualState, path: str, mounts: Mapping[str, str]) -> list[str]:
    """Spaces and profiles in which something runs that mounts a folder, or a part of it."""
    return [
        one.words
        for one in there.holders
        if one.apps and _touches(path, mounts.get(one.words) or mounts.get(f"profile {one.owner}"))
    ]


def _given(entries: Iterable[EntryStep]) -> Iterator[str]:
    """The folders that marks name; that of a space is none, and what anybody may have written into a tag need not be one either."""
    for step in entries:
        mark = step.holder.mark
        if step.holder.kind != "space" and mark is not None and is_folder(mark):
            yield mark


def _touches(path: str, other: str | None) -> bool:
    """Whether one of two folders is in the other, or both are one."""
    if other is None:
        return False
    one, two = (PurePosixPath("/", normpath(each).lstrip("/")) for each in (path, other))
    return one.is_relative_to(two) or two.is_relative_to(one)


def _deletion_step(there: ActualState, path: str) -> DeletionStep:
    seen = there.file_system.folders
    owner = _owner(there.holders, path)
    state: StepState = "to do"
    reason, before = None, NOT_KNOWN
    if seen is None:
        state, reason = "waits", NOBODY_LOOKS
    else:
        found = seen.get(path)
        before = "missing" if found is None else "no folder" if found.other else found.words
        state, reason, owner = _deletion_standing(found, owner)
    return DeletionStep(f"folder {path}", state, before, GONE, reason, path=path, owner=owner)


def _deletion_standing(found: Folder | None, owner: int) -> tuple[StepState, str | None, int]:
    """Whether a folder can be deleted, why not, and whose it is."""
    if found is None:
        return "done", None, owner
    if found.other:
        return "blocked", "a file or a link has this path: check what it is", owner
    if found.uid not in {owner, 0}:
        return "blocked", f"it belongs to uid {found.uid}: check its owner", owner
    if found.uid == 0 and not found.empty:
        return "blocked", "it belongs to root and is not empty: check its content", owner
    return "to do", None, found.uid


def _owner(holders: Iterable[MountTarget], path: str) -> int:
    """Whose a folder is that was given from here."""
    for one in holders:
        if one.kind == "profile" and private_path(one.name) == path and one.uid is not None:
            return one.uid
    return COMMON_UID


MOST_GROUPS = 5
"""Security groups that a network interface takes, unless the account's quota was raised (VPC quotas)."""


def plan(there: ActualState, wanted: DesiredState) -> StoragePlan:
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
    made = StoragePlan(wanted, steps, findings, deletions=deletions)
    return replace(made, statements=tuple(statements_of(there, made)))


def _claims(there: ActualState, wanted: DesiredState) -> Iterator[PlanStep]:
    if there.claim is None or wanted.profiles is not None:
        return
    reason = "it runs elsewhere (and stops there now) or was interrupted"
    before = f"started, not ended: {there.claim}"
    yield ClaimStep(f"apply to domain {there.domain}", "to do", before, "none started", reason)


def by_status(
    state: StepState, reason: str | None, holder: MountTarget
) -> tuple[StepState, str | None]:
    """State and reason of a step on something that SageMaker may be at work on."""
    if state == "to do" and holder.status in PASSING:
        return "waits", f"SageMaker is changing it ({holder.status})"
    if state == "to do" and holder.status != SETTLED:
        words = f"its status is {holder.status}; it can be changed only when it is {SETTLED}"
        return "blocked", words
    return state, reason


def _groups(there: ActualState, wanted: DesiredState) -> Iterator[PlanStep]:
    if there.group is None or wanted.profiles is not None:
        return
    # Taken off last: `destroy` writes the lists first.
    for interface in there.file_system.interfaces:
        step = _group_step(interface, there.group, wanted)
        if step is not None:
            yield step


def _group_step(
    interface: FileSystemInterface, group: str, wanted: DesiredState
) -> GroupStep | None:
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
            reason = f"it already has {len(interface.groups)} security groups, and {MOST_GROUPS} are allowed"
    return GroupStep(
        f"network interface {interface.name}",
        state,
        "Studio can reach it" if has else "Studio cannot reach it",
        f"security group {group}" if group in groups else f"without security group {group}",
        reason,
        interface=interface.name,
        group=group,
        groups=groups,
    )


def _profiles(there: ActualState, wanted: DesiredState) -> Iterator[MountTarget]:
    for holder in there.holders:
        if holder.kind == "profile" and wanted.concerns(holder.name):
            yield holder


def _entries(there: ActualState, wanted: DesiredState) -> Iterator[EntryStep]:
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


def _setting_step(there: ActualState, holder: MountTarget, wanted: DesiredState) -> EntryStep:
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
        reason = (
            f"someone else set {found} there; use --take-over (in a stack: TakeOver) to change it"
        )
    elif len(entries) > lists.MOST_SETTINGS:
        state = "blocked"
        reason = f"it already has {len(holder.entries)} file systems, and {lists.MOST_SETTINGS} are allowed"
    mark = None if foreign and state == "done" else path
    if wanted.without_data:
        mark = holder.mark  # it names the folder until that is deleted
    own = _own_mode(holder, wanted) if mark is not None else None
    if state == "done":
        state, reason = _of_marks(holder, mark, own)
    made = _step_of(holder, state, reason, found, path, entries, mark)
    return replace(made, own_mode=own)


def _is_in_the_way(holder: MountTarget, wanted: DesiredState, found: str | None) -> bool:
    """Whether somebody else's folder is to go: the domain's default does no harm to whom has a folder of his own, and is left."""
    in_the_way = holder.kind == "profile" and wanted.mode == "shared"
    return wanted.take_over or (in_the_way and found != wanted.shared_path)


def _left_alone(steps: Iterable[EntryStep], wanted: DesiredState) -> Iterator[Finding]:
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
                message=f"the {holder.words} mounts {step.after} for all profiles without their own list; someone else set it, so it is "
                "not changed",
                hint="--take-over removes it",
            )


def _is_ours(holder: MountTarget, wanted: DesiredState, found: str) -> bool:
    """Whether we have set the folder that a list mounts: the mark says so, or is of another folder that we set at the same time."""
    if holder.mark is None or holder.mark == found:
        return holder.mark is not None
    private = private_path(holder.name) if holder.kind == "profile" else None
    return found in {private, wanted.shared_path}


def _of_marks(
    holder: MountTarget, mark: str | None, own: Mode | None
) -> tuple[StepState, str | None]:
    """Whether something is to be done where the list is as wanted already: what says whose it is."""
    if mark is None:
        # Where a list of somebody else's stays as it is, a mark tells that it was ours; it goes with all else.
        left = holder.mark is not None
        return ("to do", "our tag is still there") if left else ("done", None)
    if holder.mark not in {None, mark}:
        return "to do", f"our tag there is for {holder.mark}"
    if own == holder.own_mode:
        return "done", None
    words = "it keeps this mode when the domain's mode changes"
    return "to do", words if own else "it follows the domain's mode from now on"


def _own_mode(holder: MountTarget, wanted: DesiredState) -> Mode | None:
    """The mode that a profile is to keep when the domain's changes."""
    if holder.kind != "profile" or wanted.mode is None:
        return None
    return holder.own_mode if wanted.profiles is None else wanted.mode


def _path_for(holder: MountTarget, wanted: DesiredState, there: ActualState) -> str | None:
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


def _space_step(there: ActualState, holder: MountTarget, wanted: DesiredState) -> EntryStep:
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
            "our tag is still there" if left else None,
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
        reason = f"it already has {len(holder.entries)} file systems, and {lists.MOST_ATTACHED} are allowed"
    elif holder.apps:
        state = "waits"
        reason = (
            f"it runs {', '.join(holder.apps)}; a space can be changed only while it is stopped"
        )
    mark = lists.ATTACHED if wants else None
    return _step_of(holder, state, reason, _space_words(has), _space_words(wants), entries, mark)


def _space_words(has: bool) -> str | None:
    return lists.ATTACHED if has else None


def _step_of(
    holder: MountTarget,
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
