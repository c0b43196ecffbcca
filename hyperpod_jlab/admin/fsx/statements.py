"""What a plan means for people: where their files are, who is kept out of them, what has to be started anew, what profiles to come will have. Pure."""

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
    holders_after,
    is_folder,
    is_of_all,
    mounts_of,
    path_of,
)
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.isolation import LEVEL_LABELS, Level

MOST_NAMES = 5
"""Names that a sentence lists; of more it says how many."""


def statements_of(there: ActualState, plan: StoragePlan) -> Iterator[Effect]:
    """What a plan means, the most important first.

    Args:
        there: What is there.
        plan: Its steps.
    """
    file_system = there.file_system.name
    before = mounts_of(there.holders, file_system)
    after = mounts_of(holders_after(there.holders, plan.steps), file_system)
    yield from _data(there, plan, before, after)
    yield from _isolation(there, after)
    yield from _restarts(there, plan, before, after)
    yield from _new_profiles(plan)


def some(names: Iterable[str]) -> str:
    """Names in a sentence: all where they are few, else the first and how many more."""
    known = list(names)
    if len(known) <= MOST_NAMES + 1:
        return ", ".join(known)
    return f"{', '.join(known[:MOST_NAMES])} and {len(known) - MOST_NAMES} more"


# ---------------------------------------------------------------------------------- where the files are


def _data(
    there: ActualState, plan: StoragePlan, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[Effect]:
    deleted = [step.path for step in plan.deletions if step.state == "to do"]
    yield from _deleted(there, deleted)
    names = [one.name for one in there.holders if one.kind == "profile"]
    yield from _places(names, after, before)
    left = {
        path: people for path, people in _left(names, before, after).items() if path not in deleted
    }
    alone = [people[0] for path, people in left.items() if people == [path[1:]]]
    if len(alone) > 1:
        folders = some(f"/{name}" for name in alone)
        yield Effect(
            "data",
            f"Files in private folders stay there and are no longer mounted: {folders}.",
        )
    for path, people in left.items():
        if len(alone) < 2 or people != [path[1:]]:
            yield Effect(
                "data",
                f"Files of {some(people)} in {path} stay in {path}; they no longer mount it.",
            )
    left = {path: people for path, people in left.items() if is_folder(path)}
    if plan.wanted.mode is None and left:
        yield Effect(
            "data",
            f"{'These' if deleted else 'All'} folders are kept: {some(left)}. 'hpj admin destroy --delete-data' deletes folders too; "
            f"later, delete a folder where the whole file system is mounted, for example at /fsx: rm -r -- /fsx{next(iter(left))}",
        )
    own = [
        one.name
        for one in there.holders
        if one.own_mode is not None and plan.wanted.profiles is None and plan.wanted.mode
    ]
    if own:
        yield Effect(
            "data",
            f"These keep their own mode: {some(own)}. 'hpj admin destroy --profile NAME' removes it, and the next apply gives them the "
            "mode of the domain.",
        )


def _deleted(there: ActualState, paths: list[str]) -> Iterator[Effect]:
    """What becomes of what lies in folders."""
    if not paths:
        yield Effect(
            "data",
            "Nothing is moved, copied or deleted. The content of a folder stays there and is available again when the folder is mounted "
            "again.",
        )
        return
    yield Effect(
        "data",
        f"Permanently deleted with all content, of any user: {', '.join(paths)} of {there.file_system.name}. Cluster jobs and other "
        "domains that use these folders lose them too. If a folder is linked to S3 with automatic export, its objects may be deleted as "
        "well. Nothing else is moved, copied or deleted.",
    )


def _places(
    names: list[str], after: Mapping[str, str], before: Mapping[str, str]
) -> Iterator[Effect]:
    """Where each profile's files are."""
    people: dict[str, list[str]] = defaultdict(list)
    private = []
    for name in names:
        path = after.get(f"profile {name}")
        if path == f"/{name}":
            private.append(name)
        elif path is not None:
            people[path].append(name)
    for path, ones in sorted(people.items()):
        yield Effect("data", f"The files of {some(ones)} are in {path}, shared by all.")
    if private:
        places = some(f"{name} in /{name}" for name in private)
        yield Effect("data", f"Each profile has its own folder: {places}.")
    none = [name for name in names if f"profile {name}" not in after]
    if none and (before or after):
        yield Effect("data", f"{some(none)} mount no folder of the file system.")


def _left(
    names: list[str], before: Mapping[str, str], after: Mapping[str, str]
) -> Mapping[str, list[str]]:
    """Folders that were mounted and are no longer, and by whom."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        path = before.get(f"profile {name}")
        if path is not None and after.get(f"profile {name}") != path:
            found[path].append(name)
    return found


# ---------------------------------------------------------------------------------- who is kept out


def _isolation(there: ActualState, after: Mapping[str, str]) -> Iterator[Effect]:
    levels: dict[Level, list[MountTarget]] = defaultdict(list)
    profiles = [one for one in there.holders if one.kind == "profile"]
    numbers = Counter(one.uid or COMMON_UID for one in profiles)
    at = Counter(after[one.words] for one in profiles if one.words in after)
    for one in profiles:
        if one.words in after:
            alone = after[one.words] == f"/{one.name}" and at[after[one.words]] == 1
            levels[_level(one, numbers, alone=alone)].append(one)
    for level, people in levels.items():
        names = some(one.name for one in people)
        yield Effect("isolation", f"{LEVEL_LABELS[level]}: {names}. {_WHY[level]}")


def _level(profile: MountTarget, numbers: Counter[int], *, alone: bool) -> Level:
    """What keeps others out of a profile's folder."""
    if not alone:
        return "none"
    own = profile.uid is not None and numbers[profile.uid] == 1
    return "posix" if own else "mount_path_only"


_WHY: Mapping[Level, str] = {
    "none": "Everyone who mounts this folder can read and change its content.",
    "mount_path_only": "Profiles are separated only by the mounted path: on the file system they are not separate users (Studio uses uid "
    f"{COMMON_UID} for every profile without its own uid). SageMaker sets CustomPosixUserConfig only when a profile is "
    "created, so existing profiles must be recreated to get one.",
    "posix": "Each profile has its own uid, and its folder has mode 0700. This is not a strong identity: each machine that mounts the "
    "file system maps users itself, and its root can act as any user.",
}


# ---------------------------------------------------------------------------------- what is started anew


def _restarts(
    there: ActualState, plan: StoragePlan, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[Effect]:
    waits = {
        step.holder.words
        for step in plan.steps
        if isinstance(step, EntryStep) and step.holder.kind == "space" and step.state == "waits"
    }
    stopped = [_running(one) for one in there.holders if one.words in waits and one.apps]
    changed = [
        _running(one)
        for one in there.holders
        if one.apps and one.words not in waits and before.get(one.words) != after.get(one.words)
    ]
    if stopped:
        yield Effect(
            "restarts",
            f"Stop these first: {some(stopped)}. A space can be changed only while it is stopped; stop it and run this again.",
        )
    if changed:
        yield Effect(
            "restarts",
            f"Restart these: {some(changed)}. Until then, running applications keep their current mounts.",
        )
    if not (stopped or changed):
        yield Effect("restarts", "No running application needs a restart.")


def _running(holder: MountTarget) -> str:
    return f"{holder.words} ({', '.join(holder.apps)})"


# ---------------------------------------------------------------------------------- profiles to come


def _new_profiles(plan: StoragePlan) -> Iterator[Effect]:
    wanted = plan.wanted
    if wanted.profiles is not None:
        text = (
            f"New profiles are not affected: this applies only to {some(sorted(wanted.profiles))}."
        )
    elif wanted.mode == "shared":
        text = f"New profiles mount {wanted.shared_path} at once through the defaults of the domain. A profile that is created with its own file systems mounts those instead, until the next apply."
    elif wanted.mode == "per-user":
        text = f"New profiles mount {_default_of(plan)} until the next apply, by an administrator or by the stack for new profiles. To separate a profile by POSIX permissions, create it with CustomPosixUserConfig and a unique uid; this cannot be added later."
    else:
        text = "New profiles get no folder."
    yield Effect("new profiles", text)


def _default_of(plan: StoragePlan) -> str:
    """What a profile without a list mounts once the plan is applied as far as it can be."""
    for step in plan.steps:
        if isinstance(step, EntryStep) and step.holder.kind == "domain":
            stays = step.before if step.state in {"waits", "blocked"} else step.after
            return "nothing" if stays == NOT_MOUNTED else f"{stays}, the domain's default,"
    return "nothing"


# --------------------------------------------------------------------------------------------------
# What keeps a domain and a file system apart as a whole, before any step: pure.


def findings_of(there: ActualState, wanted: DesiredState) -> Iterator[Finding]:
    """What is to be said of the whole.

    Args:
        there: What is there.
        wanted: What is to be there.
    """
    if wanted.mode is not None:
        yield from _file_system(there)
        yield from _network(there)
    yield from _domain(there)
    yield from _names(there, wanted)


def _file_system(there: ActualState) -> Iterator[Finding]:
    found = there.file_system
    if found.kind != "LUSTRE":
        yield Finding(
            level="error",
            code="not_lustre",
            message=f"{found.name} is a {found.kind} file system, not Lustre",
            hint="use an FSx for Lustre file system: --file-system fs-...",
        )
    if found.state != "AVAILABLE":
        yield Finding(
            level="error",
            code="file_system_not_available",
            message=f"{found.name} is {found.state}",
            hint="wait until it is AVAILABLE; the FSx console shows its progress",
        )


def _network(there: ActualState) -> Iterator[Finding]:
    found = there.file_system
    if found.vpc != there.vpc:
        yield Finding(
            level="error",
            code="other_vpc",
            message=f"the domain is in {there.vpc}, but {found.name} is in {found.vpc}",
            hint="Studio mounts only file systems in its own VPC; create a domain in the VPC of the file system",
        )
        return
    if not set(found.subnets) & set(there.subnets):
        yield Finding(
            level="error",
            code="other_subnet",
            message=f"{found.name} is in {', '.join(found.subnets)}, which is not a subnet of the domain",
            hint=f"add it: aws sagemaker update-domain --domain-id {there.domain} "
            f"--subnet-ids {' '.join([*there.subnets, *found.subnets])}",
        )
    if there.group is None:
        yield Finding(
            level="error",
            code="no_security_group",
            message=f"security group security-group-for-inbound-nfs-{there.domain} not found",
            hint="SageMaker creates it with the domain; without it Studio cannot reach file systems",
        )


def _domain(there: ActualState) -> Iterator[Finding]:
    for holder in there.holders:
        if holder.kind == "domain" and holder.status in {"Deleting", "Delete_Failed", "Failed"}:
            yield Finding(
                level="error",
                code="domain_not_in_service",
                message=f"the domain {there.domain} is {holder.status}",
                hint="its page in the SageMaker console shows the reason",
            )


def _names(there: ActualState, wanted: DesiredState) -> Iterator[Finding]:
    if wanted.mode is None:
        return
    profiles = [holder for holder in there.holders if holder.kind == "profile"]
    for one in profiles:
        if is_of_all(one, wanted):
            yield _shared_name(there, one, wanted)
    if wanted.mode == "per-user":
        yield from _alike(profiles)


def _shared_name(there: ActualState, profile: MountTarget, wanted: DesiredState) -> Finding:
    """A profile of the shared folder's name. What is private to one is never given to all; but who makes a profile later is not to stop everybody's wiring."""
    mounted = [
        path_of(one.entries, there.file_system.name)
        for one in there.holders
        if one.kind == "domain" and one.mark == wanted.shared_path
    ]
    harmless = wanted.mode == "per-user" or wanted.shared_path in mounted
    return Finding(
        level="warning" if harmless else "error",
        code="shared_folder_of_a_profile",
        message=f"the folder of the user profile {profile.name} is the shared folder"
        + (", so it cannot be private" if harmless else ""),
        hint="choose another shared folder: --shared-path /...",
    )


def _alike(profiles: Sequence[MountTarget]) -> Iterator[Finding]:
    """Profiles that are easily taken for each other, by people or by the file system."""
    names, numbers = defaultdict(list), defaultdict(list)
    for one in profiles:
        names[one.name.casefold()].append(one.name)
        if one.uid is not None:
            numbers[one.uid].append(one.name)
    for same in names.values():
        if len(same) > 1:
            yield Finding(
                level="warning",
                code="names_alike",
                message=f"the user profiles {', '.join(sorted(same))} differ only in case; each has its own folder",
            )
    for number, same in numbers.items():
        if len(same) > 1 and number != COMMON_UID:
            yield Finding(
                level="warning",
                code="numbers_alike",
                message=f"the user profiles {', '.join(sorted(same))} have the same uid {number}: on the file system they are one user",
                hint="recreate all but one with a unique uid (CustomPosixUserConfig)",
            )
