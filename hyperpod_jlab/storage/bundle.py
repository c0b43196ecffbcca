"""Create a bundle: write everything in a staging folder, then rename it once."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self, TypeGuard

from hyperpod_jlab.core.errors import ConflictError, InternalError, InvalidInputError, NotFoundError
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.acl import grant_traversal, grant_tree, has_acl
from hyperpod_jlab.storage.big_records import Deadline
from hyperpod_jlab.storage.content import DIGEST, ContentStore, StoreResult
from hyperpod_jlab.storage.files import storage_errors, to_json
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.removal import remove_tree

STAGING = ".staging-"
"""Name prefix of a staging folder; listings skip names with a leading dot."""


@dataclass
class CopyCount:
    """Cost of creating a bundle: number of files, and bytes copied (0 for files in the content store)."""

    files: int = 0
    copied: int = 0


@dataclass
class BundleWriter:
    """A bundle being created, used as a context manager: removed unless committed.

    Raises (all methods):
        StorageError: The partition is full, read-only or not trustworthy.
    """

    partition: Partition
    run_id: str
    job_uid: int | None = None
    """The user of its job, if that is not this process's user: gets access by ACL."""
    counts: CopyCount = field(default_factory=CopyCount)

    def __enter__(self) -> Self:
        self.partition.prepare()
        self.final = self.partition.bundle(self.run_id)
        self.partition.make_folder(self.final.parent)
        name = f"{STAGING}{self.run_id}-{secrets.token_hex(4)}"
        self.folder = self.final.parent / name
        self._store = ContentStore(self.partition)
        self._made_folders: set[Path] = set()
        self._listed: list[dict[str, Any]] = []
        try:
            self._make(self.folder)
            for part in ("code", "work", "logs", "status", "status/observations", "status/actions"):
                self._make(self.folder / part)
        except BaseException:
            self._discard()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._discard()

    def _discard(self) -> None:
        # After a commit this name no longer exists, so this does nothing.
        with contextlib.suppress(OSError):
            remove_tree(self.folder)

    def add_bytes(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Add a file of captured code, through the content store."""
        target = self._target(path)
        with storage_errors(target):
            file = self._store.put_bytes(data, target, executable=executable)
        self._list(path, file, executable)

    def add_file(self, path: str, source: Path, *, executable: bool = False, digest: str | None = None) -> None:
        """Add a project file, through the content store.

        Raises:
            ConflictError: Its bytes are not those with the given digest.
        """
        target = self._target(path)
        with storage_errors(target):
            file = self._store.put_file(source, target, executable=executable)
        if digest is not None and file.digest != digest:
            raise ConflictError(
                f"{source} changed while it was copied",
                code="code_gone",
                hint="submit it again from its source",
                detail={"path": str(source)},
            )
        self._list(path, file, executable)

    def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Write a file of this run alone, such as its spec."""
        target = self._target(path)
        with storage_errors(target):
            descent.replace(target, data, mode=self.partition.file_mode if mode is None else mode)
        self._count(len(data))

    def write_secrets(self, values: Mapping[str, str]) -> None:
        """Write secrets as files that only this user may read."""
        for name, value in values.items():
            target = self._target(f"secrets/{name}")
            with storage_errors(target):
                descent.change_mode(target.parent, 0o700)
                descent.replace(target, value.encode(), mode=0o600)

    def open_environments(self) -> None:
        """Create the folder in which the job builds its environment, if that does not exist."""
        folder = self.partition.environments
        self.partition.make_folder(folder)
        if self.job_uid is not None and not has_acl(folder):
            grant_tree(folder, self.job_uid)

    def commit(self) -> bool:
        """Rename the bundle into place; returns whether this call did it (False: the run id is taken)."""
        self.write("files.json", to_json({"format": 1, "files": self._listed}))
        if self.job_uid is not None:
            for folder in (self.partition.folder, self.partition.runs, self.final.parent):
                grant_traversal(folder, self.job_uid)
            grant_tree(self.folder, self.job_uid)
        with storage_errors(self.final):
            try:
                descent.rename(self.folder, self.final)
            except OSError as error:
                if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
                    return False
                raise
        return True

    def _target(self, path: str) -> Path:
        parts = PurePosixPath(path)
        if parts.is_absolute() or not parts.parts or ".." in parts.parts:
            raise InternalError(f"a bundle has no file {path!r}")
        if "\0" in path or not _is_text(path):
            raise InvalidInputError(
                f"the file name {path[:200]!r} is not UTF-8 text",
                code="invalid_file_name",
                hint="rename the file, or leave it out with .hyperpodignore",
                detail={"path": repr(path)},
            )
        target = self.folder.joinpath(*parts.parts)
        for parent in reversed(target.relative_to(self.folder).parents[:-1]):
            self._make(self.folder / parent)
        return target

    def _make(self, folder: Path) -> None:
        if folder in self._made_folders:
            return
        with storage_errors(folder):
            descent.make_folder(folder, self.partition.folder_mode)
        self._made_folders.add(folder)

    def _list(self, path: str, file: StoreResult, executable: bool) -> None:
        """Add a file to ``files.json``: a job may change or remove files in its folders, and a clone needs the submitted ones."""
        self._listed.append({"path": path, "digest": file.digest, "executable": executable})
        self._count(file.copied)

    def _count(self, copied_bytes: int) -> None:
        self.counts.files += 1
        self.counts.copied += copied_bytes


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def withdraw(bundle: Path) -> None:
    """Withdraw a committed bundle: hide it with one rename, then remove it.

    Raises:
        NotFoundError: It does not exist.
        StorageError: It cannot be renamed.
    """
    hidden_path = hide(bundle)
    with contextlib.suppress(OSError):  # the next clean-up removes it
        remove_tree(hidden_path)


def hide(bundle: Path) -> Path:
    """Hide a bundle with one rename, as if it had never been committed; returns its new path.

    Raises:
        NotFoundError: It does not exist.
        StorageError: It cannot be renamed.
    """
    hidden_path = bundle.with_name(f"{STAGING}{bundle.name}-{secrets.token_hex(4)}")
    with storage_errors(bundle):
        try:
            descent.rename(bundle, hidden_path)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(f"run {bundle.name} not found", code="no_such_run") from None
    return hidden_path


# --------------------------------------------------------------------------------------------------
# Validation of a bundle's contents, and limits for reading another user's bundle, which is
# untrusted input.


_FOREIGN_SECONDS = 2.0


class Budget:
    """Limits for reading another user's bundle: files, bytes and seconds."""

    def __init__(self) -> None:
        self._steps = 8192
        self._bytes = 16 << 20
        self._deadline = Deadline(_FOREIGN_SECONDS)

    @property
    def is_spent(self) -> bool:
        """Whether the budget is used up."""
        return self._steps <= 0 or self._bytes <= 0 or self._deadline.is_over()

    def spend(self, size: int) -> bool:
        """Count one step and some bytes; False: the budget is used up."""
        self._steps -= 1
        self._bytes -= size
        return not self.is_spent


def is_command_item(item: object) -> bool:
    """Whether it is a valid command item (see docs/bundle-format.md)."""
    if isinstance(item, dict):
        return item == {"python": True} or (list(item) == ["bundle"] and is_inner_path(item["bundle"]))
    return isinstance(item, str)


def is_inner_path(path: object) -> TypeGuard[str]:
    """Whether it is a relative path that stays in its folder."""
    if not isinstance(path, str) or "\0" in path:
        return False
    return not {"", ".", ".."} & set(path.split("/"))


def is_file_entry(entry: object) -> bool:
    """Whether it names a file below the bundle with a valid digest."""
    if not isinstance(entry, dict):
        return False
    digest = entry.get("digest")
    return (
        is_inner_path(entry.get("path"))
        and isinstance(entry.get("executable"), bool)
        and isinstance(digest, str)
        and DIGEST.fullmatch(digest) is not None
    )


def visible_names(folder: Path, limit: int | None = None) -> list[str]:
    """The names in a folder of a bundle, sorted, without hidden ones; at most `limit`. None if it cannot be listed."""
    try:
        return sorted(name for name in descent.list_names(folder, limit) if not name.startswith("."))
    except OSError:
        return []


# --------------------------------------------------------------------------------------------------
# Logs of jobs that run without our launcher: the bundle has a link to the file that the scheduler
# writes.


def open_linked(path: Path) -> int:
    """Open a regular file for reading, or the target of a link in its place: logs of jobs without our launcher are such links.

    A link must have the same owner as its folder. This user's link may lead anywhere; another user's only to a file of that user on the same
    partition, with no further link in the path.
    """
    with descent.opened_folder(path.parent) as folder:
        try:
            return descent.open_in(folder, path.name)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        owner = os.fstat(folder).st_uid
        if os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_uid != owner:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        target = Path(os.path.normpath(path.parent / os.readlink(path.name, dir_fd=folder)))
    if owner == os.getuid():
        return descent.open_file(Path(os.path.realpath(target)))
    return _open_foreign(Path(descent.split_at_own_folder(path)[0]), target, owner)


def _open_foreign(root: Path, target: Path, owner: int) -> int:
    """Open a user's file on a partition, with no link in its path."""
    steps = target.relative_to(root).parts if target.is_relative_to(root) else ()
    if not steps:
        raise OSError(errno.EPERM, "a link points outside the partition", str(target))
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in steps[:-1]:
            inner_descriptor = os.open(name, descent.STEP_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner_descriptor
        file_descriptor = descent.open_in(descriptor, steps[-1])
    finally:
        os.close(descriptor)
    if os.fstat(file_descriptor).st_uid != owner:
        os.close(file_descriptor)
        raise OSError(errno.EPERM, "a link points to a file of another user", str(target))
    return file_descriptor
