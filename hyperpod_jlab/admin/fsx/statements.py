"""The consequences of a plan for users: where their files are, isolation, what must be restarted, what new profiles will have. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hyperpod_jlab.admin.fsx.models import (
    COMMON_UID,
    NOT_MOUNTED,
    ActualState,
    DesiredState,
    Effect,
    EntryStep,
    MountTarget,
    StoragePlan,
    apply_to_holders,
    is_folder,
    is_shared_folder,
    mounted_path,
    mounts_by_holder,
)
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.isolation import LEVEL_LABELS, Level

MAX_NAMES = 5
"""Maximum number of names in a sentence; of more it gives the count."""


def build_statements(actual: ActualState, plan: StoragePlan) -> Iterator[Effect]:
    """The consequences of a plan, most important first.

    Args:
        actual: The actual state.
        plan: Its steps.
    """
    file_system = actual.file_system.name
    mounts_before = mounts_by_holder(actual.holders, file_system)
    mounts_after = mounts_by_holder(apply_to_holders(actual.holders, plan.steps), file_system)
    yield from _data(actual, plan, mounts_before, mounts_after)
    yield from _isolation(actual, mounts_after)
    yield from _restarts(actual, plan, mounts_before, mounts_after)
    yield from _new_profiles(plan)


def shorten_names(names: Iterable[str]) -> str:
    """Names for a sentence: all if they are few, else the first ones and the number of others."""
    all_names = list(names)
    if len(all_names) <= MAX_NAMES + 1:
        return ", ".join(all_names)
    return f"{', '.join(all_names[:MAX_NAMES])} and {len(all_names) - MAX_NAMES} more"


# ---------------------------------------------------------------------------------- where the files are


def _data(
    actual: ActualState, plan: StoragePlan, mounts_before: Mapping[str, str], mounts_after: Mapping[str, str]
) -> Iterator[Effect]:
    deleted = [step.path for step in plan.deletions if step.state == "to do"]
    yield from _deleted(actual, deleted)
    names = [holder.name for holder in actual.holders if holder.kind == "profile"]
    yield from _profile_folders(names, mounts_after, mounts_before)
    left_behind = {
        path: names_left
        for path, names_left in _unmounted_folders(names, mounts_before, mounts_after).items()
        if path not in deleted
    }
    own_folders_left = [names_left[0] for path, names_left in left_behind.items() if names_left == [path[1:]]]
    if len(own_folders_left) > 1:
        folders = shorten_names(f"/{name}" for name in own_folders_left)
        yield Effect("data", f"Files in private folders stay there and are no longer mounted: {folders}.")
    for path, names_left in left_behind.items():
        if len(own_folders_left) < 2 or names_left != [path[1:]]:
            yield Effect(
                "data", f"Files of {shorten_names(names_left)} in {path} stay in {path}; they no longer mount it."
            )
    left_behind = {path: names_left for path, names_left in left_behind.items() if is_folder(path)}
    if plan.wanted.mode is None and left_behind:
        yield Effect(
            "data",
            f"{'These' if deleted else 'All'} folders are kept: {shorten_names(left_behind)}. 'hpj admin destroy --delete-data' deletes folders too; "
            f"later, delete a folder where the whole file system is mounted, for example at /fsx: rm -r -- /fsx{next(iter(left_behind))}",
        )
    deleted_paths = [
        holder.name
        for holder in actual.holders
        if holder.own_mode is not None and plan.wanted.profiles is None and plan.wanted.mode
    ]
    if deleted_paths:
        yield Effect(
            "data",
            f"These keep their own mode: {shorten_names(deleted_paths)}. 'hpj admin destroy --profile NAME' removes it, and the next apply gives them the "
            "mode of the domain.",
        )


def _deleted(actual: ActualState, paths: list[str]) -> Iterator[Effect]:
    """What happens to the contents of folders."""
    if not paths:
        yield Effect(
            "data",
            "Nothing is moved, copied or deleted. The content of a folder stays there and is available again when the folder is mounted "
            "again.",
        )
        return
    yield Effect(
        "data",
        f"Permanently deleted with all content, of any user: {', '.join(paths)} of {actual.file_system.name}. Cluster jobs and other "
        "domains that use these folders lose them too. If a folder is linked to S3 with automatic export, its objects may be deleted as "
        "well. Nothing else is moved, copied or deleted.",
    )


def _profile_folders(
    names: list[str], mounts_after: Mapping[str, str], mounts_before: Mapping[str, str]
) -> Iterator[Effect]:
    """The folder of each profile's files."""
    names_by_path: dict[str, list[str]] = defaultdict(list)
    private = []
    for name in names:
        path = mounts_after.get(f"profile {name}")
        if path == f"/{name}":
            private.append(name)
        elif path is not None:
            names_by_path[path].append(name)
    for path, profile_names in sorted(names_by_path.items()):
        yield Effect("data", f"The files of {shorten_names(profile_names)} are in {path}, shared by all.")
    if private:
        places_text = shorten_names(f"{name} in /{name}" for name in private)
        yield Effect("data", f"Each profile has its own folder: {places_text}.")
    none = [name for name in names if f"profile {name}" not in mounts_after]
    if none and (mounts_before or mounts_after):
        yield Effect("data", f"{shorten_names(none)} mount no folder of the file system.")


def _unmounted_folders(
    names: list[str], mounts_before: Mapping[str, str], mounts_after: Mapping[str, str]
) -> Mapping[str, list[str]]:
    """Folders that are no longer mounted, and by whom they were."""
    names_by_path: dict[str, list[str]] = defaultdict(list)
    for name in names:
        path = mounts_before.get(f"profile {name}")
        if path is not None and mounts_after.get(f"profile {name}") != path:
            names_by_path[path].append(name)
    return names_by_path


# ---------------------------------------------------------------------------------- who is kept out


def _isolation(actual: ActualState, mounts_after: Mapping[str, str]) -> Iterator[Effect]:
    levels: dict[Level, list[MountTarget]] = defaultdict(list)
    profiles = [holder for holder in actual.holders if holder.kind == "profile"]
    numbers = Counter(holder.uid or COMMON_UID for holder in profiles)
    mount_counts = Counter(mounts_after[holder.words] for holder in profiles if holder.words in mounts_after)
    for holder in profiles:
        if holder.words in mounts_after:
            deleted_for_one = (
                mounts_after[holder.words] == f"/{holder.name}" and mount_counts[mounts_after[holder.words]] == 1
            )
            levels[_level(holder, numbers, alone=deleted_for_one)].append(holder)
    for level, profile_names in levels.items():
        names = shorten_names(holder.name for holder in profile_names)
        yield Effect("isolation", f"{LEVEL_LABELS[level]}: {names}. {_LEVEL_REASONS[level]}")


def _level(profile: MountTarget, numbers: Counter[int], *, alone: bool) -> Level:
    """The isolation of a profile's folder."""
    if not alone:
        return "none"
    has_own_uid = profile.uid is not None and numbers[profile.uid] == 1
    return "posix" if has_own_uid else "mount_path_only"


_LEVEL_REASONS: Mapping[Level, str] = {
    "none": "Everyone who mounts this folder can read and change its content.",
    "mount_path_only": "Profiles are separated only by the mounted path: on the file system they are not separate users (Studio uses uid "
    f"{COMMON_UID} for every profile without its own uid). SageMaker sets CustomPosixUserConfig only when a profile is "
    "created, so existing profiles must be recreated to get one.",
    "posix": "Each profile has its own uid, and its folder has mode 0700. This is not a strong identity: each machine that mounts the "
    "file system maps users itself, and its root can act as any user.",
}


# ---------------------------------------------------------------------------------- what is started anew


def _restarts(
    actual: ActualState, plan: StoragePlan, mounts_before: Mapping[str, str], mounts_after: Mapping[str, str]
) -> Iterator[Effect]:
    waiting = {
        step.holder.words
        for step in plan.steps
        if isinstance(step, EntryStep) and step.holder.kind == "space" and step.state == "waits"
    }
    restarted = [_running(holder) for holder in actual.holders if holder.words in waiting and holder.apps]
    changed_holders = [
        _running(holder)
        for holder in actual.holders
        if holder.apps
        and holder.words not in waiting
        and mounts_before.get(holder.words) != mounts_after.get(holder.words)
    ]
    if restarted:
        yield Effect(
            "restarts",
            f"Stop these first: {shorten_names(restarted)}. A space can be changed only while it is stopped; stop it and run this again.",
        )
    if changed_holders:
        yield Effect(
            "restarts",
            f"Restart these: {shorten_names(changed_holders)}. Until then, running applications keep their current mounts.",
        )
    if not (restarted or changed_holders):
        yield Effect("restarts", "No running application needs a restart.")


def _running(holder: MountTarget) -> str:
    return f"{holder.words} ({', '.join(holder.apps)})"


# ---------------------------------------------------------------------------------- profiles to come


def _new_profiles(plan: StoragePlan) -> Iterator[Effect]:
    desired = plan.wanted
    if desired.profiles is not None:
        text = f"New profiles are not affected: this applies only to {shorten_names(sorted(desired.profiles))}."
    elif desired.mode == "shared":
        text = f"New profiles mount {desired.shared_path} at once through the defaults of the domain. A profile that is created with its own file systems mounts those instead, until the next apply."
    elif desired.mode == "per-user":
        text = f"New profiles mount {_default_mount(plan)} until the next apply, by an administrator or by the stack for new profiles. To separate a profile by POSIX permissions, create it with CustomPosixUserConfig and a unique uid; this cannot be added later."
    else:
        text = "New profiles get no folder."
    yield Effect("new profiles", text)


def _default_mount(plan: StoragePlan) -> str:
    """The folder that a profile without a list mounts after the plan."""
    for step in plan.steps:
        if isinstance(step, EntryStep) and step.holder.kind == "domain":
            entry_text = step.before if step.state in {"waits", "blocked"} else step.after
            return "nothing" if entry_text == NOT_MOUNTED else f"{entry_text}, the domain's default,"
    return "nothing"


# --------------------------------------------------------------------------------------------------
# Obstacles between a domain and a file system as a whole, before any step: pure.


def build_findings(actual: ActualState, desired: DesiredState) -> Iterator[Finding]:
    """Findings on the whole plan.

    Args:
        actual: The actual state.
        desired: The desired state.
    """
    if desired.mode is not None:
        yield from _file_system(actual)
        yield from _network(actual)
    yield from _domain(actual)
    yield from _names(actual, desired)


def _file_system(actual: ActualState) -> Iterator[Finding]:
    file_system = actual.file_system
    if file_system.kind != "LUSTRE":
        yield Finding(
            level="error",
            code="not_lustre",
            message=f"{file_system.name} is a {file_system.kind} file system, not Lustre",
            hint="use an FSx for Lustre file system: --file-system fs-...",
        )
    if file_system.state != "AVAILABLE":
        yield Finding(
            level="error",
            code="file_system_not_available",
            message=f"{file_system.name} is {file_system.state}",
            hint="wait until it is AVAILABLE; the FSx console shows its progress",
        )


def _network(actual: ActualState) -> Iterator[Finding]:
    file_system = actual.file_system
    if file_system.vpc != actual.vpc:
        yield Finding(
            level="error",
            code="other_vpc",
            message=f"the domain is in {actual.vpc}, but {file_system.name} is in {file_system.vpc}",
            hint="Studio mounts only file systems in its own VPC; create a domain in the VPC of the file system",
        )
        return
    if not set(file_system.subnets) & set(actual.subnets):
        yield Finding(
            level="error",
            code="other_subnet",
            message=f"{file_system.name} is in {', '.join(file_system.subnets)}, which is not a subnet of the domain",
            hint=f"add it: aws sagemaker update-domain --domain-id {actual.domain} "
            f"--subnet-ids {' '.join([*actual.subnets, *file_system.subnets])}",
        )
    if actual.group is None:
        yield Finding(
            level="error",
            code="no_security_group",
            message=f"security group security-group-for-inbound-nfs-{actual.domain} not found",
            hint="SageMaker creates it with the domain; without it Studio cannot reach file systems",
        )


def _domain(actual: ActualState) -> Iterator[Finding]:
    for holder in actual.holders:
        if holder.kind == "domain" and holder.status in {"Deleting", "Delete_Failed", "Failed"}:
            yield Finding(
                level="error",
                code="domain_not_in_service",
                message=f"the domain {actual.domain} is {holder.status}",
                hint="its page in the SageMaker console shows the reason",
            )


def _names(actual: ActualState, desired: DesiredState) -> Iterator[Finding]:
    if desired.mode is None:
        return
    profiles = [holder for holder in actual.holders if holder.kind == "profile"]
    for profile in profiles:
        if is_shared_folder(profile, desired):
            yield _shared_name(actual, profile, desired)
    if desired.mode == "per-user":
        yield from _similar_names(profiles)


def _shared_name(actual: ActualState, profile: MountTarget, desired: DesiredState) -> Finding:
    """A profile with the shared folder's name: a private folder never becomes shared, but a profile created later must not block the whole plan."""
    mounted = [
        mounted_path(holder.entries, actual.file_system.name)
        for holder in actual.holders
        if holder.kind == "domain" and holder.mark == desired.shared_path
    ]
    harmless = desired.mode == "per-user" or desired.shared_path in mounted
    return Finding(
        level="warning" if harmless else "error",
        code="shared_folder_of_a_profile",
        message=f"the folder of the user profile {profile.name} is the shared folder"
        + (", so it cannot be private" if harmless else ""),
        hint="choose another shared folder: --shared-path /...",
    )


def _similar_names(profiles: Sequence[MountTarget]) -> Iterator[Finding]:
    """Profiles whose names users or the file system may confuse."""
    names, numbers = defaultdict(list), defaultdict(list)
    for profile in profiles:
        names[profile.name.casefold()].append(profile.name)
        if profile.uid is not None:
            numbers[profile.uid].append(profile.name)
    for similar in names.values():
        if len(similar) > 1:
            yield Finding(
                level="warning",
                code="names_alike",
                message=f"the user profiles {', '.join(sorted(similar))} differ only in case; each has its own folder",
            )
    for number, similar in numbers.items():
        if len(similar) > 1 and number != COMMON_UID:
            yield Finding(
                level="warning",
                code="numbers_alike",
                message=f"the user profiles {', '.join(sorted(similar))} have the same uid {number}: on the file system they are one user",
                hint="recreate all but one with a unique uid (CustomPosixUserConfig)",
            )
