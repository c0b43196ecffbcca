"""Steps on the storage partition that runs go to: rights, room, and the runs that are there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.model.check import Step, Told, Who, fail, of_error, ok, warn
from hyperpod_jlab.model.errors import HyperpodError, StorageError
from hyperpod_jlab.model.quantities import format_size
from hyperpod_jlab.services.doctor.opened import CONFIGURATION, Opened
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.listing import Wanted
from hyperpod_jlab.services.storage_identity import Asked, find_whose
from hyperpod_jlab.services.storage_places import inspect
from hyperpod_jlab.storage.acl import is_opened
from hyperpod_jlab.storage.index import default_path
from hyperpod_jlab.storage.migration import runs_in_old_layout
from hyperpod_jlab.storage.mounts import mount_of, room_at
from hyperpod_jlab.storage.parents import parents
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.patience import within

STORAGE = "storage"
"""The step on whether the partition can be used at all."""

_PATIENCE = 20.0
"""Seconds that AWS may take to say whose this is; a step has more."""

_LITTLE_ROOM, _NO_ROOM = 5 * 1024**3, 100 * 1024**2
_FEW_FILES = 10_000


def partition_steps(opened: Opened) -> list[Step]:
    """The partition that runs go to."""

    def look(work: Callable[[Partition], Told]) -> Callable[[], Awaitable[Told]]:
        async def told() -> Told:
            partition = opened.hyperpod.partition
            return await within(partition.root, lambda: work(partition))

        return told

    async def privacy() -> Told:
        partition = opened.hyperpod.partition
        told = await look(_mode)()
        if told.level != "ok":
            return told
        return await _identity(partition) or told

    async def runs() -> Told:
        return await _runs(opened.hyperpod)

    needs = (STORAGE,)
    return [
        Step(STORAGE, "storage", "partition", look(_storage), needs=(CONFIGURATION,)),
        Step("parents", "folders above", "partition", look(_parents), needs=(CONFIGURATION,)),
        Step("privacy", "privacy", "partition", privacy, needs=needs),
        Step("layout", "layout", "partition", look(_layout), needs=needs),
        Step("writing", "writing", "partition", look(_writing), needs=needs),
        Step("room", "room", "partition", look(lambda one: _room(one.root)), needs=needs),
        Step("runs", "runs", "partition", runs, needs=needs),
    ]


def _storage(partition: Partition) -> Told:
    root = partition.root
    mount = mount_of(root)
    kind = f"{mount.kind} at {mount.point}" if mount.kind else mount.point
    try:
        partition.prepare()
    except HyperpodError as error:
        return of_error(error)
    return ok(f"{root} ({kind})")


def _mode(partition: Partition) -> Told:
    found = partition.folder.stat()
    mode = stat.S_IMODE(found.st_mode)
    if is_opened(partition.folder):
        mode &= ~0o070  # an ACL's mask: nobody but who was let through
    if not partition.shared and mode & 0o077:
        return warn(
            f"other users may look into {partition.folder} (mode {mode:04o})",
            f"chmod 700 {partition.folder}, or set shared = true under [storage] when that is meant",
        )
    words = (
        "a folder of your own that all users of the partition may read"
        if partition.shared
        else "only for this user"
    )
    return ok(f"{words} (mode {mode:04o}, owner {found.st_uid})")


def _parents(partition: Partition) -> Told:
    """Who owns the folders above ours: they can exchange it, whatever its own mode says."""
    try:
        above = parents(partition.root)
    except OSError as error:
        return fail(
            f"{partition.root} cannot be looked at: {error.strerror}", "see the storage step"
        )
    words = ", ".join(f"{one.path} (owner {one.uid}, mode {one.mode:04o})" for one in above)
    bad = [one for one in above if one.problem is not None]
    for one in bad:
        said = f"another user can exchange your runs: {one.path} {one.reason}"
        if one.problem != "group" or partition.shared:
            return fail(said, one.fix, "admin")
    if bad:
        return warn(f"{bad[0].path} {bad[0].reason}: its members are trusted", bad[0].fix)
    return ok(f"nobody but you and root can exchange your runs: {words}")


def _layout(partition: Partition) -> Told:
    old = sum(1 for _ in runs_in_old_layout(partition))
    if old:
        return warn(
            f"{old} of your runs lie in the layout of an older version, where other users of a shared partition can exchange them",
            "hpj storage migrate",
        )
    return ok(f"runs lie in {partition.runs}")


async def _identity(partition: Partition) -> Told | None:
    """A warning where others are the same user as this one, so that a mode keeps none of them out; None where nothing is known of such."""
    studio = find_studio()
    try:
        whose = await asyncio.wait_for(find_whose(studio, Asked(Aws())), _PATIENCE)
    except TimeoutError:
        whose = await find_whose(studio, Asked(None))
    place = await inspect(partition.folder, whose)
    identity = whose.on_network if place.network else whose.on_disk
    if place.isolation is None or identity.own:
        return None
    who: Who = "you"
    if whose.in_shared_space:
        fix = "use a private space for what only you may see"
    elif studio is not None:
        fix = "ask for a new user profile with a uid of its own (CustomPosixUserConfig; a profile that is there cannot get one)"
        who = "admin"
    else:
        fix = "use an account of your own"
    words = f"isolation: {place.isolation.words}, for {identity.evidence}"
    return warn(f"{words}; modes keep none of them out of {partition.folder}", fix, who)


def _writing(partition: Partition) -> Told:
    """Do what a submit does: exclusive create, link, rename."""
    first = partition.folder / f".doctor-{secrets.token_hex(6)}"
    second = first.with_name(f"{first.name}-link")
    try:
        first.touch(exist_ok=False)
        try:
            os.link(first, second)
        except OSError as error:
            return warn(
                f"works, but without hard links ({error.strerror}): every submit copies all code"
            )
        second.rename(first)
    except OSError as error:
        return fail(
            f"{partition.folder} cannot be written: {error.strerror}",
            "mend its rights, or name another partition under [storage]",
        )
    finally:
        for path in (first, second):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    return ok("files can be made, linked and renamed")


def _room(root: Path) -> Told:
    room = room_at(root)
    words = f"{format_size(room.free)} of {format_size(room.total)} free"
    fix = "remove old runs: hpj clean --older 30d"
    if room.free < _NO_ROOM:
        return fail(words, fix)
    if room.free < _LITTLE_ROOM:
        return warn(words, fix)
    if room.files_free is not None and room.files_free < _FEW_FILES:
        return warn(f"only {room.files_free} more files can be made", fix)
    return ok(words)


async def _runs(hyperpod: Hyperpod) -> Told:
    try:
        runs = (await hyperpod.runs.list(Wanted())).runs
    except StorageError as error:
        return fail(f"runs cannot be listed: {error.message}", error.hint)
    except (HyperpodError, OSError) as error:
        index = default_path(hyperpod.partition)
        fix = f"remove the index, it is only a cache: rm {index}" if index is not None else None
        return fail(f"runs cannot be listed: {error}", fix)
    damaged = [run.run_id for run in runs if run.status.reason_code in {"damaged", "newer_format"}]
    words = f"{len(runs)} runs on the partition"
    if damaged:
        some = ", ".join(damaged[:3]) + (", ..." if len(damaged) > 3 else "")
        return warn(f"{words}, {len(damaged)} cannot be read: {some}", "see: hpj runs")
    return ok(words)
