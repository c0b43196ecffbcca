"""Checks of the installation, each with what to do about it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import platform
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hyperpod_jlab.model.config import LOCAL
from hyperpod_jlab.model.errors import HyperpodError, StorageError
from hyperpod_jlab.model.quantities import format_size
from hyperpod_jlab.orchestrators.local.board import default_folder
from hyperpod_jlab.orchestrators.local.preflight import interpreter
from hyperpod_jlab.services.aws_checks import aws_checks
from hyperpod_jlab.services.checks import Check, of_error
from hyperpod_jlab.services.configuration import config_files
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.runs import Wanted
from hyperpod_jlab.storage.acl import is_opened
from hyperpod_jlab.storage.index import default_path
from hyperpod_jlab.storage.mounts import mount_of, room_at
from hyperpod_jlab.storage.partition import Partition

_LITTLE_ROOM, _NO_ROOM = 5 * 1024**3, 100 * 1024**2
_FEW_FILES = 10_000
_PACKAGES = ("hyperpod_jlab", "pydantic", "click", "jupyter_server", "jupyterlab")


async def examine() -> list[Check]:
    """All checks, in the order in which things build on each other. A broken configuration ends them early."""
    checks = [_versions(), _config()]
    try:
        hyperpod = Hyperpod()
    except HyperpodError as error:
        return [*checks, of_error("configuration", error)]
    try:
        checks += await asyncio.to_thread(lambda: list(_storage(hyperpod.partition)))
        checks.append(await asyncio.to_thread(_board))
        checks.append(await asyncio.to_thread(_python, hyperpod))
        checks.append(await _runs(hyperpod))
        checks += await _clusters(hyperpod)
        checks += await aws_checks(hyperpod.settings)
    finally:
        await hyperpod.close()
    return checks


def _versions() -> Check:
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue  # the command line works without Jupyter
    return Check("versions", "ok", ", ".join(found))


def _config() -> Check:
    used = [str(path) for path in config_files() if path.exists()]
    if used:
        return Check("config files", "ok", ", ".join(used))
    looked = ", ".join(map(str, config_files()))
    return Check("config files", "ok", f"none, defaults are used (looked for {looked})")


def _storage(partition: Partition) -> Iterator[Check]:
    root = partition.root
    mount = mount_of(root)
    kind = f"{mount.kind} at {mount.point}" if mount.kind else mount.point
    yield Check("storage", "ok", f"{root} ({kind})")
    try:
        partition.prepare()
    except HyperpodError as error:
        yield of_error("storage", error)
        return
    yield _mode(partition)
    yield _writing(partition)
    yield _room(root)


def _mode(partition: Partition) -> Check:
    found = partition.folder.stat()
    mode = stat.S_IMODE(found.st_mode)
    if is_opened(partition.folder):
        mode &= ~0o070  # an ACL's mask: nobody but who was let through
    if not partition.shared and mode & 0o077:
        return Check(
            "privacy",
            "warn",
            f"other users may look into {partition.folder} (mode {mode:04o})",
            f"chmod 700 {partition.folder}, or set shared = true under [storage] when that is meant",
        )
    words = "shared by all users of the partition" if partition.shared else "only for this user"
    return Check("privacy", "ok", f"{words} (mode {mode:04o}, owner {found.st_uid})")


def _writing(partition: Partition) -> Check:
    """Do what a submit does: exclusive create, link, rename."""
    first = partition.folder / f".doctor-{secrets.token_hex(6)}"
    second = first.with_name(f"{first.name}-link")
    try:
        first.touch(exist_ok=False)
        try:
            os.link(first, second)
        except OSError as error:
            return Check(
                "writing",
                "warn",
                f"works, but without hard links ({error.strerror}): every submit copies all code",
            )
        second.rename(first)
    except OSError as error:
        return Check(
            "writing",
            "fail",
            f"{partition.folder} cannot be written: {error.strerror}",
            "mend its rights, or name another partition under [storage]",
        )
    finally:
        for path in (first, second):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    return Check("writing", "ok", "files can be made, linked and renamed")


def _room(root: Path) -> Check:
    room = room_at(root)
    words = f"{format_size(room.free)} of {format_size(room.total)} free"
    hint = "remove old runs: hpj clean --older 30d"
    if room.free < _NO_ROOM:
        return Check("room", "fail", words, hint)
    if room.free < _LITTLE_ROOM:
        return Check("room", "warn", words, hint)
    if room.files_free is not None and room.files_free < _FEW_FILES:
        return Check("room", "warn", f"only {room.files_free} more files can be made", hint)
    return Check("room", "ok", words)


def _board() -> Check:
    """The local cluster keeps its board with flock, which some network file systems lack."""
    name = "local board"
    try:
        folder = default_folder()
    except HyperpodError as error:
        return of_error(name, error)
    path = folder / f".doctor-{secrets.token_hex(6)}"
    try:
        with path.open("x") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return Check(
            name,
            "fail",
            f"file locks do not work in {folder}: {error.strerror}",
            "set XDG_STATE_HOME to a folder on this machine's own disk",
        )
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    return Check(name, "ok", f"{folder}, file locks work")


def _python(hyperpod: Hyperpod) -> Check:
    name = "local python"
    config = hyperpod.settings.clusters[LOCAL]
    python = config.python or sys.executable
    try:
        found = interpreter(python)
    except HyperpodError as error:
        return of_error(name, error)
    words = f"{python} ({found.version[0]}.{found.version[1]})"
    if not found.torch:
        hint = f"for torchrun: {python} -m pip install torch"
        return Check(name, "warn", f"{words} has no torch", hint)
    return Check(name, "ok", f"{words} with torch")


async def _runs(hyperpod: Hyperpod) -> Check:
    name = "runs"
    try:
        runs = (await hyperpod.runs.list(Wanted())).runs
    except StorageError as error:
        return Check(name, "fail", f"runs cannot be listed: {error.message}", error.hint)
    except (HyperpodError, OSError) as error:
        index = default_path(hyperpod.partition)
        hint = f"remove the index, it is only a cache: rm {index}" if index is not None else None
        return Check(name, "fail", f"runs cannot be listed: {error}", hint)
    damaged = [run.run_id for run in runs if run.status.reason_code in {"damaged", "newer_format"}]
    words = f"{len(runs)} runs on the partition"
    if damaged:
        some = ", ".join(damaged[:3]) + (", ..." if len(damaged) > 3 else "")
        return Check(
            name, "warn", f"{words}, {len(damaged)} cannot be read: {some}", "see: hpj runs"
        )
    return Check(name, "ok", words)


async def _clusters(hyperpod: Hyperpod) -> Iterable[Check]:
    checks = []
    for cluster in await hyperpod.clusters():
        name = f"cluster {cluster.name}"
        if cluster.state in {"unreachable", "misconfigured"}:
            hint = "look at it under [clusters] in the configuration"
            checks.append(Check(name, "fail", cluster.reason or "does not answer", hint))
        else:
            running = f", {cluster.running} running" if cluster.running is not None else ""
            checks.append(Check(name, "ok", f"{cluster.orchestrator}, {cluster.state}{running}"))
    return checks
