"""Opens everything in our folders on a partition step by step, by descriptor, never following a link.

On a shared partition the owner of a folder may rename, link or replace its entries at any moment, so a path cannot be resolved twice.
From our own folder (``.hyperpod`` or ``.hyperpod-<uid>``) on, each folder is opened by descriptor without following links; a file is opened only if it is a
regular file, without blocking on a pipe, and read up to a limit. Folders above ours belong to the administrator and are trusted. A path without our folder
is trusted up to its last part. ``.hyperpod-<uid>`` must belong to the user with that id.

All functions raise `OSError` like the system: ``ENOTDIR`` or ``ELOOP`` for a link, ``EINVAL`` for other than a
regular file, ``EFBIG`` for one that is too large.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from hyperpod_jlab.storage.acl import is_uid, own_uid

OWN_FOLDER = re.compile(r"\.hyperpod(?:-(0|[1-9][0-9]{0,9}))?")
"""The name of our folder on a partition; on a shared one with its owner's uid."""

MAX_BYTES = 64 << 20
"""Default limit of `read`, in bytes."""

STEP_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags to open a folder for traversal: only looks up its name on the file server."""

_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LIST_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags to open a folder for listing."""

_CHUNK_SIZE = 1 << 20


class ForeignFolderError(PermissionError):
    """A ``.hyperpod-<uid>`` belongs to another user than its name says."""


@contextlib.contextmanager
def opened_folder(path: Path) -> Iterator[int]:
    """A folder's descriptor (``O_PATH``) for access to its entries; closed at the end."""
    base_path, steps = split_at_own_folder(path)
    descriptor = os.open(base_path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number, name in enumerate(steps):
            inner_descriptor = os.open(name, STEP_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner_descriptor
            if number == 0:
                _check_owner(descriptor, name, path)
        yield descriptor
    finally:
        os.close(descriptor)


def step(folder: int, name: str) -> int:
    """A subfolder of an opened folder, as a descriptor (``O_PATH``) that the caller closes."""
    return os.open(name, STEP_FLAGS, dir_fd=folder)


def open_file(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a regular file; returns its descriptor. Opening never blocks."""
    with opened_folder(path.parent) as folder:
        return open_in(folder, path.name, flags, mode)


def open_in(folder: int, name: str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a regular file in an opened folder; returns its descriptor."""
    descriptor = os.open(name, flags | _FILE, mode, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", name)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_foreign(path: Path) -> bool:
    """Whether a path leads into another user's folder on a shared partition, by that folder's name."""
    matches = (OWN_FOLDER.fullmatch(part) for part in path.parts)
    uid = next((match[1] for match in matches if match), None)
    return uid is not None and int(uid) != own_uid()


def read_named(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file that the user names: follows links."""
    return read(Path(os.path.realpath(path)), max_bytes)


def read(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file of at most `max_bytes` bytes."""
    with opened_folder(path.parent) as folder:
        return read_in(folder, path.name, max_bytes)


def read_in(folder: int, name: str, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file in an opened folder, at most `max_bytes` bytes."""
    with os.fdopen(open_in(folder, name), "rb") as file:
        # Read its reported size first, since the buffer is allocated in advance; then continue,
        # since it may grow.
        size = _size(file.fileno())
        data = file.read(size + 1) if size <= max_bytes else b""
        while 0 < len(data) <= max_bytes and (chunk := file.read(min(_CHUNK_SIZE, max_bytes + 1))):
            data += chunk
        if max(size, len(data)) > max_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {max_bytes} bytes", name)
        return data


def list_names(path: Path, limit: int | None = None) -> list[str]:
    """The names in a folder, unordered; at most `limit`."""
    with opened_folder(path) as folder:
        return list_names_in(folder, limit)


def list_names_in(folder: int, limit: int | None = None) -> list[str]:
    """The names in an opened folder, unordered; at most `limit`."""
    descriptor = os.open(".", LIST_FLAGS, dir_fd=folder)
    try:
        if limit is None:
            return os.listdir(descriptor)  # noqa: PTH208 - of a descriptor
        with os.scandir(descriptor) as entries:
            return [entry.name for entry, _ in zip(entries, range(limit), strict=False)]
    finally:
        os.close(descriptor)


def state(path: Path) -> os.stat_result:
    """The lstat of a path."""
    with opened_folder(path.parent) as folder:
        return os.stat(path.name, dir_fd=folder, follow_symlinks=False)


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False if it is not accessible."""
    try:
        return stat.S_ISDIR(state(path).st_mode)
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Whether a path is a regular file; False if it is not accessible."""
    try:
        return stat.S_ISREG(state(path).st_mode)
    except OSError:
        return False


def replace(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace a file atomically: readers see the old bytes or the new ones."""
    with opened_folder(path.parent) as folder:
        temporary = _write_temporary(folder, path.name, data, mode)
        try:
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            unlink_in(folder, temporary)
            raise


def create(path: Path, data: bytes, *, mode: int = 0o600) -> bool:
    """Write a file only if the path does not exist; returns whether this call did it."""
    with opened_folder(path.parent) as folder:
        temporary = _write_temporary(folder, path.name, data, mode)
        try:
            os.link(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError:
            return False
        finally:
            unlink_in(folder, temporary)
    return True


def unlink(path: Path) -> None:
    """Remove a file or link, if it exists."""
    with opened_folder(path.parent) as folder:
        unlink_in(folder, path.name)


def rename(path: Path, target: Path) -> None:
    """Rename a path; replaces a file or an empty folder at the target."""
    with opened_folder(path.parent) as source_folder, opened_folder(target.parent) as target_folder:
        os.rename(path.name, target.name, src_dir_fd=source_folder, dst_dir_fd=target_folder)


def link(path: Path, target: Path) -> None:
    """Hard-link a file; does not follow a symbolic link."""
    with opened_folder(path.parent) as source_folder, opened_folder(target.parent) as target_folder:
        os.link(path.name, target.name, src_dir_fd=source_folder, dst_dir_fd=target_folder, follow_symlinks=False)


def make_link(path: Path, target: str) -> None:
    """Create a symbolic link; fails if it exists."""
    with opened_folder(path.parent) as folder:
        os.symlink(target, path.name, dir_fd=folder)


def read_link(path: Path) -> str:
    """The target of a symbolic link."""
    with opened_folder(path.parent) as folder:
        return os.readlink(path.name, dir_fd=folder)


def make_folder(path: Path, mode: int) -> bool:
    """Create a folder with exactly this mode, regardless of the umask; returns whether this call did it."""
    with opened_folder(path.parent) as folder:
        try:
            os.mkdir(path.name, 0o700, dir_fd=folder)
        except FileExistsError:
            os.close(os.open(path.name, STEP_FLAGS, dir_fd=folder))  # a link or file raises
            return False
        descriptor = os.open(path.name, LIST_FLAGS, dir_fd=folder)
        try:
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)
        return True


def make_folders(top: Path, path: Path, mode: int) -> None:
    """Create the missing folders below `top`, up to and including `path`, but never `top` itself: a removed bundle must not reappear in part."""
    parts = path.relative_to(top).parts
    for count in range(1, len(parts) + 1):
        folder = top.joinpath(*parts[:count])
        if not is_folder(folder):
            make_folder(folder, mode)


def change_mode(path: Path, mode: int) -> None:
    """Change the mode of a file or folder."""
    with opened_folder(path.parent) as folder:
        _change_mode_in(folder, path.name, mode)


def split_at_own_folder(path: Path) -> tuple[str, tuple[str, ...]]:
    """Split a folder's path into the trusted part and the steps from our folder on."""
    parts = path.parts
    for index, part in enumerate(parts):
        if part.startswith(".hyperpod") and OWN_FOLDER.fullmatch(part):
            steps = parts[index:]
            if ".." in steps:
                raise OSError(errno.EINVAL, "it points outside its folder", str(path))
            return str(Path(*parts[:index])), steps
    return str(path), ()


def _check_owner(descriptor: int, name: str, path: Path) -> None:
    match = OWN_FOLDER.fullmatch(name)
    if match is None or match[1] is None:
        return
    owner = os.fstat(descriptor).st_uid
    if not is_uid(owner, int(match[1])):
        raise ForeignFolderError(errno.EPERM, f"{name} belongs to user {owner}, not {match[1]}", str(path))


def _size(descriptor: int) -> int:
    return os.fstat(descriptor).st_size


def _write_temporary(folder: int, name: str, data: bytes, mode: int) -> str:
    temporary = f".{name}.{secrets.token_hex(6)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, mode, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)  # regardless of the umask
            file.write(data)
    except BaseException:
        unlink_in(folder, temporary)
        raise
    return temporary


def unlink_in(folder: int, name: str) -> None:
    """Remove a file or link in an opened folder, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _change_mode_in(folder: int, name: str, mode: int) -> None:
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101 - fchmod refuses O_PATH
    finally:
        os.close(descriptor)
