"""Which folders of the file system there are to be, whose they are, and who may use them besides: pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from hyperpod_jlab.admin import entries as lists
from hyperpod_jlab.admin.folders import ROOT
from hyperpod_jlab.admin.modes import is_of_all, mode_of, private_path, shared_path_of
from hyperpod_jlab.admin.plan import NOT_KNOWN, EntryStep, FolderStep, StepState, Wanted
from hyperpod_jlab.admin.there import COMMON_GID, COMMON_UID, Folder, Grant, Holder, There
from hyperpod_jlab.model.finding import Finding

NOBODY_LOOKS = "nobody looks at folders: say who is to (--folders, in a stack Folders)"


def folder_steps(there: There, wanted: Wanted) -> Iterator[FolderStep]:
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


def _shared_owner(there: There, path: str, people: Iterable[Holder]) -> int:
    """Whose the common folder is: the owner may rename all that lies in it, so where people have numbers of their own it is root's. One that is there keeps its owner."""
    found = (there.file_system.folders or {}).get(path)
    if found is not None:
        return 0 if found.uid == 0 else COMMON_UID
    return 0 if any(one.uid for one in people) else COMMON_UID


def folder_findings(there: There, wanted: Wanted) -> Iterator[Finding]:
    """What is to be said of all folders."""
    if wanted.mode is not None and wanted.cluster_user and not _takes_acls(there):
        yield Finding(
            level="warning",
            code="no_acls",
            message=f"the file system keeps no access lists (ACLs) where it is looked at: uid {wanted.cluster_user} is let into no folder of its own right",
            hint="mount it with ACLs, or let jobs run as the folders' owners",
        )


def without_folder(
    step: EntryStep, there: There, folders: Mapping[str, FolderStep], wanted: Wanted
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
        reason = f"the folder {path} cannot be private: it is the one that all share"
        return replace(step, state="blocked", reason=reason, at_work=False)
    if folder is None:
        return step
    if folder.state == "blocked":
        reason = f"the folder {folder.path} cannot be had: {folder.reason}"
        return replace(step, state="blocked", reason=reason, at_work=False)
    if folder.state == "waits" and folder.private:
        reason = f"nobody has seen the folder {folder.path}"
        return replace(step, state="waits", reason=reason, at_work=False)
    return step


def _is_private(holder: Holder, wanted: Wanted) -> bool:
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


def _step(there: There, path: str, folder: Folder, cluster_user: int | None) -> FolderStep:
    seen = there.file_system.folders
    found = None if seen is None else seen.get(path)
    private = not folder.mode & 0o077
    if cluster_user and cluster_user != folder.uid and _takes_acls(there):
        folder = _opened(folder, cluster_user)
    if found is not None and (cluster_user is None or not private):
        folder = _with_others(folder, found)
    before = NOT_KNOWN if seen is None else "not there"
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
        return "blocked", "a file or a link is in its place: see what it is, and move it away"
    if found == folder:
        return "done", None
    if found.uid not in {folder.uid, 0}:
        return (
            "blocked",
            f"it belongs to uid {found.uid}: see whose it is, then give it to uid {folder.uid} by chown",
        )
    if found.uid == 0 and private and not found.empty:
        return (
            "blocked",
            f"it is root's, and something is in it: see what, then give it to uid {folder.uid} by chown",
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


def _takes_acls(there: There) -> bool:
    """Whether the file system keeps access lists, as far as anybody has looked."""
    seen = there.file_system.folders
    root = None if seen is None else seen.get(ROOT)
    return root is None or root.takes_acls
