"""Which folders are deleted when all is taken back and an admin says twice that they are to be: pure.

Only those that a mark names, so that were given from here, and that nobody mounts then. They need not have been made from here: what was there before an
apply, and was given to its owner by it, is deleted too. Marks stay until folders are gone, so that what is broken off may be done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from posixpath import normpath

from hyperpod_jlab.admin.folder_planning import NOBODY_LOOKS
from hyperpod_jlab.admin.modes import is_folder, private_path
from hyperpod_jlab.admin.mounts import holders_after, mounts_of
from hyperpod_jlab.admin.plan import NOT_KNOWN, DeletionStep, EntryStep, StepState, Wanted
from hyperpod_jlab.admin.statements import some
from hyperpod_jlab.admin.there import COMMON_UID, Folder, Holder, There
from hyperpod_jlab.model.errors import HyperpodError, RefusedError

GONE = "deleted with all that is in it"


def deletion_steps(
    there: There, wanted: Wanted, entries: Sequence[EntryStep]
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
        step = _step(there, path)
        mounting = [words for words, other in after.items() if _touches(path, other)]
        open_in = _open_in(there, path, before)
        if step.state == "to do" and mounting:
            step = replace(step, state="blocked", reason=f"it is still mounted by {some(mounting)}")
        elif step.state == "to do" and open_in:
            reason = f"something that runs has it open: stop {some(open_in)} first"
            step = replace(step, state="waits", reason=reason)
        yield step


def still_named(
    there: There, now: There, found: DeletionStep | None, asked: DeletionStep
) -> DeletionStep:
    """The step of a folder after another look; what has begun meanwhile may stop it.

    Args:
        there: What was there when an admin was asked.
        now: What is there.
        found: The step by what is there now; None: no mark names the folder any more.
        asked: The step that the admin saw.
    """
    if found is None:
        return replace(asked, state="blocked", reason="its mark was taken away meanwhile")
    if found.state == "to do" and found.owner != asked.owner:
        return replace(found, state="blocked", reason="it was given to somebody else meanwhile")
    open_in = _open_in(now, asked.path, mounts_of(there.holders, there.file_system.name))
    if found.state == "to do" and open_in:
        reason = f"something that runs may have it open: stop {some(open_in)} first"
        return replace(found, state="waits", reason=reason)
    return found


def refusal(step: DeletionStep) -> HyperpodError | None:
    """The error of a folder that cannot be deleted; None: it is gone already."""
    if step.state == "done":
        return None
    return RefusedError(
        f"{step.path} was not deleted: {step.reason}",
        code="data_in_use",
        hint="see to that and run this again: it goes on from what it finds",
    )


def _open_in(there: There, path: str, mounts: Mapping[str, str]) -> list[str]:
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


def _step(there: There, path: str) -> DeletionStep:
    seen = there.file_system.folders
    owner = _owner(there.holders, path)
    state: StepState = "to do"
    reason, before = None, NOT_KNOWN
    if seen is None:
        state, reason = "waits", NOBODY_LOOKS
    else:
        found = seen.get(path)
        before = "not there" if found is None else "no folder" if found.other else found.words
        state, reason, owner = _standing(found, owner)
    return DeletionStep(f"folder {path}", state, before, GONE, reason, path=path, owner=owner)


def _standing(found: Folder | None, owner: int) -> tuple[StepState, str | None, int]:
    """Whether a folder can be deleted, why not, and whose it is."""
    if found is None:
        return "done", None, owner
    if found.other:
        return "blocked", "a file or a link is in its place: see what it is", owner
    if found.uid not in {owner, 0}:
        return "blocked", f"it belongs to uid {found.uid}: see whose it is", owner
    if found.uid == 0 and not found.empty:
        return "blocked", "it is root's, and something is in it: see what", owner
    return "to do", None, found.uid


def _owner(holders: Iterable[Holder], path: str) -> int:
    """Whose a folder is that was given from here."""
    for one in holders:
        if one.kind == "profile" and private_path(one.name) == path and one.uid is not None:
            return one.uid
    return COMMON_UID
