"""From the actual and the desired state to the steps: pure, so that the plan is the same everywhere.

In mode ``shared`` the domain's defaults mount one folder for all, including new profiles. In mode ``per-user`` the defaults mount
nothing, and each profile mounts a folder of its own name. Data is never moved: a folder's contents are available when it is mounted again.
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
    SETTLED_STATE,
    TRANSIENT_STATES,
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
    apply_to_holders,
    is_folder,
    is_shared_folder,
    mode_of,
    mounts_by_holder,
    private_path,
    shared_path_of,
)
from hyperpod_jlab.admin.fsx.statements import build_findings, build_statements, shorten_names
from hyperpod_jlab.admin.lifecycle.models import LifecycleStep
from hyperpod_jlab.core.errors import HyperpodError, RefusedError
from hyperpod_jlab.core.finding import Finding

# --------------------------------------------------------------------------------------------------
# The desired folders of the file system, their owners, and who else has access: pure.

NOT_CHECKED = "folders are not checked: use --folders (in a stack: Folders)"


def folder_steps(actual: ActualState, desired: DesiredState) -> Iterator[FolderStep]:
    """The folders of a plan.

    Args:
        actual: The actual state.
        desired: The desired state.
    """
    if desired.mode is None or desired.folders_are_there:
        return
    profiles = [target for target in actual.holders if target.kind == "profile" and desired.includes(target.name)]
    shared = {shared_path_of(target, desired) for target in profiles if mode_of(target, desired) == "shared"}
    if desired.mode == "shared":
        shared.add(desired.shared_path)
    for path in sorted(shared):
        # With the setgid bit, so that members can change each other's files; sticky, so that nobody
        # replaces another user's.
        folder = Folder(_shared_owner(actual, path, profiles), COMMON_GID, 0o3775)
        yield _folder_step(actual, path, folder, desired.cluster_user)
    for holder in profiles:
        if mode_of(holder, desired) == "per-user" and not is_shared_folder(holder, desired):
            folder = Folder(holder.uid or COMMON_UID, holder.gid or COMMON_GID, 0o700)
            yield _folder_step(actual, private_path(holder.name), folder, desired.cluster_user)


def _shared_owner(actual: ActualState, path: str, profiles: Iterable[MountTarget]) -> int:
    """The owner of the common folder, who may rename all its entries: root if users have uids of their own. An existing folder stays root's; any other must have the common owner."""
    folder = (actual.file_system.folders or {}).get(path)
    if folder is not None:
        return 0 if folder.uid == 0 else COMMON_UID
    return 0 if any(profile.uid for profile in profiles) else COMMON_UID


def folder_findings(actual: ActualState, desired: DesiredState) -> Iterator[Finding]:
    """Findings on all folders."""
    if desired.mode is not None and desired.cluster_user and not _takes_acls(actual):
        yield Finding(
            level="warning",
            code="no_acls",
            message=f"the file system has no ACLs where folders are checked, so uid {desired.cluster_user} gets access to no folder",
            hint="mount it with ACLs, or run jobs as the owners of the folders",
        )


def while_folder_missing(
    step: EntryStep, actual: ActualState, folders: Mapping[str, FolderStep], desired: DesiredState
) -> EntryStep:
    """The step while its folder is missing: one that cannot be used is not mounted, nor is a private one that was not checked.

    Args:
        step: The list of file systems to write.
        actual: The actual state.
        folders: The folders' steps by path.
        desired: The desired state.
    """
    path = path_mounted_by(step, actual.file_system.name)
    folder = folders.get(path or "")
    if not step.can_be_done:
        return step
    if path == desired.shared_path and _is_private(step.holder, desired):
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


def _is_private(holder: MountTarget, desired: DesiredState) -> bool:
    """Whether the folder of a list is private to one profile."""
    if holder.kind == "profile":
        return mode_of(holder, desired) == "per-user"
    return holder.owner is not None and desired.mode == "per-user"


def path_mounted_by(step: EntryStep, file_system: str) -> str | None:
    """The folder that a step mounts; a private space mounts its owner's. None: none, or unknown here."""
    if step.holder.kind != "space":
        return step.after
    attached = [lists.is_attached(entries, file_system) for entries in (step.holder.entries, step.entries)]
    adds = attached == [False, True]
    return private_path(step.holder.owner) if adds and step.holder.owner else None


def _folder_step(actual: ActualState, path: str, folder: Folder, cluster_user: int | None) -> FolderStep:
    folders = actual.file_system.folders
    current = None if folders is None else folders.get(path)
    private = not folder.mode & 0o077
    if cluster_user and cluster_user != folder.uid and _takes_acls(actual):
        folder = _with_cluster_user(folder, cluster_user)
    if current is not None and (cluster_user is None or not private):
        folder = _keep_grants(folder, current)
    state_before = NOT_KNOWN if folders is None else "missing"
    state: StepState = "to do"
    reason = None
    if folders is None:
        state, reason = "waits", NOT_CHECKED
    elif current is not None:
        state_before = "no folder" if current.other else current.words
        state, reason = _folder_state(current, folder, private)
    target = f"folder {path}"
    return FolderStep(target, state, state_before, folder.words, reason, path=path, folder=folder)


def _folder_state(current: Folder, folder: Folder, private: bool) -> tuple[StepState, str | None]:
    if current.other:
        return "blocked", "a file or a link is in its place: check what it is, and move it"
    if current == folder:
        return "done", None
    if current.uid not in {folder.uid, 0}:
        return ("blocked", f"it belongs to uid {current.uid}: check its owner, then chown it to uid {folder.uid}")
    if current.uid == 0 and private and not current.empty:
        return ("blocked", f"it belongs to root and is not empty: check its content, then chown it to uid {folder.uid}")
    return "to do", None


def _with_cluster_user(folder: Folder, user: int) -> Folder:
    """With lists that give the cluster's user access, and both that user and the owner access to each other's new files."""
    uids = sorted({user, folder.uid})
    default: tuple[Grant, ...] = (
        ("user", None, 7),
        *(("user", number, 7) for number in uids),
        ("group", None, folder.mode >> 3 & 7),
        ("other", None, folder.mode & 7),
    )
    return replace(folder, acl=(("user", user, 7),), default=default)


def _keep_grants(folder: Folder, current: Folder) -> Folder:
    """Keep existing grants: on a common folder, and on a private one unless the plan says otherwise."""
    return replace(
        folder, acl=_merge_grants(current.acl, folder.acl), default=_merge_grants(current.default, folder.default)
    )


def _merge_grants(existing: tuple[Grant, ...], own_grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
    by_grantee = {grant[:2]: grant for grant in (*existing, *own_grants)}
    ranking = ("user", "group", "other")
    return tuple(
        sorted(by_grantee.values(), key=lambda item: (ranking.index(item[0]), item[1] is not None, item[1] or 0))
    )


def _takes_acls(actual: ActualState) -> bool:
    """Whether the file system supports access lists, as far as known."""
    folders = actual.file_system.folders
    root = None if folders is None else folders.get(ROOT)
    return root is None or root.takes_acls


# --------------------------------------------------------------------------------------------------
# The order of a plan's steps, and which of them wait for others: pure.
#
# No user may be without a folder between two steps: an application may start at any moment, and an
# apply may end at any. So steps that add come before
# steps that remove: profiles get their own folders before the domain's default is removed, and the
# default is set before they lose theirs. What cannot be added
# keeps what would be removed.

_ORDER = ("domain", "space defaults", "profile", "space")

_WITHOUT_APPS = frozenset({"Failed", "Deleting", "Delete_Failed"})
"""SageMaker's states of profiles in which nothing can be started."""


def stages(plan: StoragePlan) -> list[list[PlanStep]]:
    """Groups of steps that may run concurrently, one group after the other.

    Args:
        plan: The plan. Excludes claims: the claimant removes the claim.
    """
    steps_by_stage: dict[int, list[PlanStep]] = {}
    scripts: dict[int, list[PlanStep]] = {}
    for step in plan.steps:
        if isinstance(step, LifecycleStep):
            scripts.setdefault(step.stage, []).append(step)
        elif not isinstance(step, ClaimStep):
            steps_by_stage.setdefault(_stage(step, plan.wanted), []).append(step)
    return [
        *(steps_by_stage[number] for number in sorted(steps_by_stage, reverse=plan.wanted.mode is None)),
        *(scripts[number] for number in sorted(scripts)),
    ]


def _stage(step: PlanStep, desired: DesiredState) -> int:
    """Both lists of a domain are one resource at SageMaker, and so never written concurrently."""
    if isinstance(step, GroupStep):
        return 0
    if not isinstance(step, EntryStep):
        return 1
    number = _ORDER.index(step.holder.kind)
    is_late = desired.mode is not None and step.removes_mount and number < 2
    # The order of the defaults is reversed too: shared spaces lose theirs before profiles do.
    return 7 - number if is_late else 2 + number


def with_waits(steps: Iterable[PlanStep], actual: ActualState, desired: DesiredState) -> tuple[PlanStep, ...]:
    """The steps; those that would leave a user without a folder wait.

    Args:
        steps: All steps of a plan.
        actual: The actual state.
        desired: The desired state.
    """
    known_steps = tuple(steps)
    then = {step.target for step in known_steps if step.can_be_done}

    def with_state(step: PlanStep) -> PlanStep:
        reason = reason_to_wait(step, actual, desired, then) if step.can_be_done else None
        if reason is None or not isinstance(step, EntryStep):
            return step
        return replace(step, state="waits", reason=reason, at_work=False)

    return tuple(map(with_state, known_steps))


def reason_to_wait(
    step: PlanStep, actual: ActualState, desired: DesiredState, written_targets: Collection[str]
) -> str | None:
    """Which users a step would leave without a folder, as text; None: none.

    Args:
        step: The step.
        actual: The actual state.
        desired: The desired state.
        written_targets: Targets of the lists that are written before.
    """
    if desired.mode is None or not isinstance(step, EntryStep) or not step.removes_mount:
        return None
    if step.holder.kind == "domain":
        without_folders = [
            holder.name
            for holder in actual.holders
            if holder.kind == "profile" and not holder.entries and holder.status not in _WITHOUT_APPS
            if holder.words not in written_targets
        ]
        return (
            f"profiles without their own folder that mount this: {shorten_names(without_folders)}"
            if without_folders
            else None
        )
    if step.holder.kind == "profile" and not _is_default(actual, desired.shared_path, written_targets):
        return f"{desired.shared_path} is not yet the default of the domain, so nothing would be mounted"
    return None


def _is_default(actual: ActualState, path: str, written_targets: Collection[str]) -> bool:
    """Whether profiles without a list mount this folder; False if unknown."""
    for holder in actual.holders:
        if holder.kind == "domain":
            return (
                holder.words in written_targets or lists.mounted_path(holder.entries, actual.file_system.name) == path
            )
    return False


# --------------------------------------------------------------------------------------------------
# The folders that `destroy` deletes after a second confirmation: pure.
#
# Only folders that a tag names, so that we assigned them, and that nobody mounts afterwards. We
# need not have created them: folders that existed before an
# apply, and that it assigned to their owner, are deleted too. Tags stay until the folders are gone,
# so that an interrupted run can be repeated.

DELETED_TEXT = "deleted with all its content"


def deletion_steps(actual: ActualState, desired: DesiredState, entries: Sequence[EntryStep]) -> Iterator[DeletionStep]:
    """The folders to delete.

    Args:
        actual: The actual state.
        desired: The desired state.
        entries: The lists that are written before.
    """
    if desired.mode is not None or not desired.without_data:
        return
    name = actual.file_system.name
    mounts_before = mounts_by_holder(actual.holders, name)
    mounts_after = mounts_by_holder(apply_to_holders(actual.holders, entries), name)
    for path in sorted(set(_marked_paths(entries))):
        step = _deletion_step(actual, path)
        mounting_holders = [
            holder_name for holder_name, mounted_path in mounts_after.items() if _overlap(path, mounted_path)
        ]
        open_in = _running_targets(actual, path, mounts_before)
        if step.state == "to do" and mounting_holders:
            step = replace(step, state="blocked", reason=f"{shorten_names(mounting_holders)} still mounts it")
        elif step.state == "to do" and open_in:
            reason = f"a running application uses it: stop {shorten_names(open_in)} first"
            step = replace(step, state="waits", reason=reason)
        yield step


def recheck(
    actual: ActualState, now: ActualState, step_now: DeletionStep | None, step_before: DeletionStep
) -> DeletionStep:
    """The step of a folder after another read; new activity may block it.

    Args:
        actual: The actual state when the admin confirmed.
        now: The actual state now.
        step_now: The step by the state now; None: no tag names the folder.
        step_before: The step that the admin saw.
    """
    if step_now is None:
        return replace(step_before, state="blocked", reason="its tag was removed in the meantime")
    if step_now.state == "to do" and step_now.owner != step_before.owner:
        return replace(step_now, state="blocked", reason="it was given to another profile in the meantime")
    open_in = _running_targets(now, step_before.path, mounts_by_holder(actual.holders, actual.file_system.name))
    if step_now.state == "to do" and open_in:
        reason = f"a running application may use it: stop {shorten_names(open_in)} first"
        return replace(step_now, state="waits", reason=reason)
    return step_now


def refusal(step: DeletionStep) -> HyperpodError | None:
    """The error of a folder that cannot be deleted; None: it is already gone."""
    if step.state == "done":
        return None
    return RefusedError(
        f"{step.path} was not deleted: {step.reason}",
        code="data_in_use",
        hint="resolve that and run this again; it continues from the current state",
    )


def _running_targets(actual: ActualState, path: str, mounts: Mapping[str, str]) -> list[str]:
    """Spaces and profiles with running applications that mount a folder, or a part of it."""
    return [
        holder.words
        for holder in actual.holders
        if holder.apps and _overlap(path, mounts.get(holder.words) or mounts.get(f"profile {holder.owner}"))
    ]


def _marked_paths(entries: Iterable[EntryStep]) -> Iterator[str]:
    """The folders that tags name; spaces have none, and a tag may contain anything that somebody wrote into it."""
    for step in entries:
        mark = step.holder.mark
        if step.holder.kind != "space" and mark is not None and is_folder(mark):
            yield mark


def _overlap(path: str, other_path: str | None) -> bool:
    """Whether two folders are the same, or one contains the other."""
    if other_path is None:
        return False
    first, second = (PurePosixPath("/", normpath(item).lstrip("/")) for item in (path, other_path))
    return first.is_relative_to(second) or second.is_relative_to(first)


def _deletion_step(actual: ActualState, path: str) -> DeletionStep:
    folders = actual.file_system.folders
    owner = _owner(actual.holders, path)
    state: StepState = "to do"
    reason, state_before = None, NOT_KNOWN
    if folders is None:
        state, reason = "waits", NOT_CHECKED
    else:
        folder = folders.get(path)
        state_before = "missing" if folder is None else "no folder" if folder.other else folder.words
        state, reason, owner = _deletion_state(folder, owner)
    return DeletionStep(f"folder {path}", state, state_before, DELETED_TEXT, reason, path=path, owner=owner)


def _deletion_state(folder: Folder | None, owner: int) -> tuple[StepState, str | None, int]:
    """Whether a folder can be deleted, why not, and its owner."""
    if folder is None:
        return "done", None, owner
    if folder.other:
        return "blocked", "a file or a link has this path: check what it is", owner
    if folder.uid not in {owner, 0}:
        return "blocked", f"it belongs to uid {folder.uid}: check its owner", owner
    if folder.uid == 0 and not folder.empty:
        return "blocked", "it belongs to root and is not empty: check its content", owner
    return "to do", None, folder.uid


def _owner(holders: Iterable[MountTarget], path: str) -> int:
    """The owner of a folder that we assigned."""
    for holder in holders:
        if holder.kind == "profile" and private_path(holder.name) == path and holder.uid is not None:
            return holder.uid
    return COMMON_UID


MAX_GROUPS = 5
"""Maximum security groups per network interface, unless the account's quota was raised (VPC quotas)."""


def plan(actual: ActualState, desired: DesiredState) -> StoragePlan:
    """The steps in dependency order, including those that are already done.

    Args:
        actual: The actual state.
        desired: The desired state.
    """
    folders = {step.path: step for step in folder_steps(actual, desired)}
    entries = [while_folder_missing(step, actual, folders, desired) for step in _entries(actual, desired)]
    findings = (
        *build_findings(actual, desired),
        *folder_findings(actual, desired),
        *_foreign_findings(entries, desired),
    )
    steps = (
        *_claims(actual, desired),
        *_groups(actual, desired),
        *folders.values(),
        *with_waits(entries, actual, desired),
    )
    deletions = tuple(deletion_steps(actual, desired, entries))
    storage_plan = StoragePlan(desired, steps, findings, deletions=deletions)
    return replace(storage_plan, statements=tuple(build_statements(actual, storage_plan)))


def _claims(actual: ActualState, desired: DesiredState) -> Iterator[PlanStep]:
    if actual.claim is None or desired.profiles is not None:
        return
    reason = "it runs elsewhere (and stops there now) or was interrupted"
    state_before = f"started, not ended: {actual.claim}"
    yield ClaimStep(f"apply to domain {actual.domain}", "to do", state_before, "none started", reason)


def adjust_to_status(state: StepState, reason: str | None, holder: MountTarget) -> tuple[StepState, str | None]:
    """State and reason of a step on a resource that SageMaker may be updating."""
    if state == "to do" and holder.status in TRANSIENT_STATES:
        return "waits", f"SageMaker is changing it ({holder.status})"
    if state == "to do" and holder.status != SETTLED_STATE:
        message = f"its status is {holder.status}; it can be changed only when it is {SETTLED_STATE}"
        return "blocked", message
    return state, reason


def _groups(actual: ActualState, desired: DesiredState) -> Iterator[PlanStep]:
    if actual.group is None or desired.profiles is not None:
        return
    # Removed last: `destroy` writes the lists first.
    for interface in actual.file_system.interfaces:
        step = _group_step(interface, actual.group, desired)
        if step is not None:
            yield step


def _group_step(interface: FileSystemInterface, group: str, desired: DesiredState) -> GroupStep | None:
    has, is_own = group in interface.groups, group in interface.ours
    state: StepState = "done"
    groups, reason = interface.groups, None
    if desired.mode is None:
        if not is_own:
            return None
        groups, state = tuple(group_id for group_id in groups if group_id != group), "to do"
    elif not has:
        groups, state = (*groups, group), "to do"
        if len(groups) > MAX_GROUPS:
            state = "blocked"
            reason = f"it already has {len(interface.groups)} security groups, and {MAX_GROUPS} are allowed"
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


def _profiles(actual: ActualState, desired: DesiredState) -> Iterator[MountTarget]:
    for holder in actual.holders:
        if holder.kind == "profile" and desired.includes(holder.name):
            yield holder


def _entries(actual: ActualState, desired: DesiredState) -> Iterator[EntryStep]:
    chosen_names = {holder.name for holder in _profiles(actual, desired)}
    for holder in actual.holders:
        if holder.kind == "profile":
            is_selected = holder.name in chosen_names
        else:
            # A private space follows its owner; all else concerns the whole domain.
            is_selected = desired.profiles is None or holder.owner in chosen_names
        if is_selected:
            yield (
                _space_step(actual, holder, desired)
                if holder.kind == "space"
                else _setting_step(actual, holder, desired)
            )


def _setting_step(actual: ActualState, holder: MountTarget, desired: DesiredState) -> EntryStep:
    file_system = actual.file_system.name
    current_path = lists.mounted_path(holder.entries, file_system)
    path = _path_for(holder, desired, actual)
    foreign = current_path is not None and not _is_ours(holder, desired, current_path)
    if foreign and path is None and not _conflicts(holder, desired, current_path):
        path = current_path
    state: StepState = "done" if current_path == path else "to do"
    entries = holder.entries
    if state != "done":
        entries = (
            lists.without_path(entries, file_system) if path is None else lists.with_path(entries, file_system, path)
        )
    reason = None
    if foreign and state != "done" and not desired.take_over:
        state = "blocked"
        reason = f"someone else set {current_path} there; use --take-over (in a stack: TakeOver) to change it"
    elif len(entries) > lists.MAX_SETTINGS:
        state = "blocked"
        reason = f"it already has {len(holder.entries)} file systems, and {lists.MAX_SETTINGS} are allowed"
    mark = None if foreign and state == "done" else path
    if desired.without_data:
        mark = holder.mark  # it names the folder until the folder is deleted
    own_mode = _own_mode(holder, desired) if mark is not None else None
    if state == "done":
        state, reason = _mark_state(holder, mark, own_mode)
    entry_step = _build_entry_step(holder, state, reason, current_path, path, entries, mark)
    return replace(entry_step, own_mode=own_mode)


def _conflicts(holder: MountTarget, desired: DesiredState, current_path: str | None) -> bool:
    """Whether another's folder must be removed. The domain's default stays unless it is taken over: it does not affect a profile with a folder of its own."""
    in_the_way = holder.kind == "profile" and desired.mode == "shared"
    return desired.take_over or (in_the_way and current_path != desired.shared_path)


def _foreign_findings(steps: Iterable[EntryStep], desired: DesiredState) -> Iterator[Finding]:
    """Entries of others that are neither changed nor a blocked step."""
    for step in steps:
        holder = step.holder
        if (
            desired.mode == "per-user"
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


def _is_ours(holder: MountTarget, desired: DesiredState, current_path: str) -> bool:
    """Whether we set the folder that a list mounts: the tag names it, or another folder while the list mounts the profile's own or the shared one, which we set at the same time."""
    if holder.mark is None or holder.mark == current_path:
        return holder.mark is not None
    private = private_path(holder.name) if holder.kind == "profile" else None
    return current_path in {private, desired.shared_path}


def _mark_state(holder: MountTarget, mark: str | None, own_mode: Mode | None) -> tuple[StepState, str | None]:
    """Whether a tag must change although the list is already as desired."""
    if mark is None:
        # No folder of ours is set here, or another's list stays unchanged: a tag that is left is
        # removed.
        has_mark = holder.mark is not None
        return ("to do", "our tag is still there") if has_mark else ("done", None)
    if holder.mark not in {None, mark}:
        return "to do", f"our tag there is for {holder.mark}"
    if own_mode == holder.own_mode:
        return "done", None
    reason = "it keeps this mode when the domain's mode changes"
    return "to do", reason if own_mode else "it follows the domain's mode from now on"


def _own_mode(holder: MountTarget, desired: DesiredState) -> Mode | None:
    """The mode that a profile keeps when the domain's changes."""
    if holder.kind != "profile" or desired.mode is None:
        return None
    return holder.own_mode if desired.profiles is None else desired.mode


def _path_for(holder: MountTarget, desired: DesiredState, actual: ActualState) -> str | None:
    """The desired folder of a resource's own list; None: none."""
    if desired.mode is None:
        return None
    if holder.kind != "profile":
        return desired.shared_path if desired.mode == "shared" else None
    if mode_of(holder, desired) == "per-user":
        return private_path(holder.name)
    # The domain's default is for profiles without a list of their own.
    other_entries = lists.without_path(holder.entries, actual.file_system.name)
    is_individual = desired.profiles is not None or holder.own_mode is not None
    return shared_path_of(holder, desired) if other_entries or is_individual else None


def _space_step(actual: ActualState, holder: MountTarget, desired: DesiredState) -> EntryStep:
    """A space names the file system; its owner or the defaults determine the folder."""
    file_system = actual.file_system.name
    has = lists.is_attached(holder.entries, file_system)
    # In a shared space all users act as the space, so the folder of one profile is not offered
    # there.
    attach = desired.mode is not None and (holder.owner is not None or desired.mode == "shared")
    if has and not attach and holder.mark != lists.ATTACHED and not desired.take_over:
        attach = True
    if has == attach:
        has_mark = not has and holder.mark is not None
        return _build_entry_step(
            holder,
            "to do" if has_mark else "done",
            "our tag is still there" if has_mark else None,
            _space_value(has),
            _space_value(attach),
            holder.entries,
            None if has_mark else holder.mark,
        )
    entries = (
        lists.with_attached(holder.entries, file_system)
        if attach
        else lists.without_attached(holder.entries, file_system)
    )
    state: StepState = "to do"
    reason = None
    if len(entries) > lists.MAX_ATTACHED:
        state = "blocked"
        reason = f"it already has {len(holder.entries)} file systems, and {lists.MAX_ATTACHED} are allowed"
    elif holder.apps:
        state = "waits"
        reason = f"it runs {', '.join(holder.apps)}; a space can be changed only while it is stopped"
    mark = lists.ATTACHED if attach else None
    return _build_entry_step(holder, state, reason, _space_value(has), _space_value(attach), entries, mark)


def _space_value(has: bool) -> str | None:
    return lists.ATTACHED if has else None


def _build_entry_step(
    holder: MountTarget,
    state: StepState,
    reason: str | None,
    state_before: str | None,
    state_after: str | None,
    entries: tuple[lists.Entry, ...],
    mark: str | None,
) -> EntryStep:
    is_updating = state == "to do" and holder.status in TRANSIENT_STATES
    state, reason = adjust_to_status(state, reason, holder)
    return EntryStep(
        holder.words,
        state,
        state_before or NOT_MOUNTED,
        state_after or NOT_MOUNTED,
        reason,
        holder.apps if state != "done" else (),
        holder=holder,
        entries=entries,
        mark=mark,
        at_work=is_updating,
    )
