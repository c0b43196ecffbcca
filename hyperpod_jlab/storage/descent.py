"""Everything that is opened in our folders on a partition: step by step by descriptor, never through a link.

On a shared partition the owner of a folder may rename, link or replace what lies in it at any moment, so a path is not followed twice and not trusted once.
From our own folder (``.hyperpod`` or ``.hyperpod-<uid>``) on, each folder is opened by its descriptor without following links; a file is opened only when it is a regular
one, without waiting for a pipe, and read up to a limit. What lies above our folder is the administrator's and is taken as it is. A path with no such folder in it is
taken up to its last part. ``.hyperpod-<uid>`` must belong to the user whose number it has.

All functions raise `OSError` as the system does: ``ENOTDIR`` or ``ELOOP`` for a link, ``EINVAL`` for what is not a regular file, ``EFBIG`` for one that is too large.
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
"""The name of our folder on a partition; on a shared one with its owner's user number."""

MAX_BYTES = 64 << 20
"""Bytes that `read` takes at most."""

STEP_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a folder is opened to go through it: that asks the file server for nothing but its name."""

_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LIST_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a folder is opened to list it."""

_CHUNK_SIZE = 1 << 20


class ForeignFolderError(PermissionError):
    """A ``.hyperpod-<uid>`` belongs to another user than that one."""


@contextlib.contextmanager
def opened_folder(path: Path) -> Iterator[int]:
    """A folder as a descriptor (``O_PATH``) to open and look at what lies in it; closed at the end."""
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
    """A folder that lies in an opened one, as a descriptor (``O_PATH``) that the caller closes."""
    return os.open(name, STEP_FLAGS, dir_fd=folder)


def open_file(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a regular file; returns its descriptor, which never blocks on opening."""
    with opened_folder(path.parent) as folder:
        return open_in(folder, path.name, flags, mode)


def open_in(folder: int, name: str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a regular file that lies in an opened folder; returns its descriptor."""
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
    """The bytes of a file that the user names: links to it are followed."""
    return read(Path(os.path.realpath(path)), max_bytes)


def read(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file of at most `max_bytes` bytes."""
    with opened_folder(path.parent) as folder:
        return read_in(folder, path.name, max_bytes)


def read_in(folder: int, name: str, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file that lies in an opened folder, of at most `max_bytes` bytes."""
    with os.fdopen(open_in(folder, name), "rb") as file:
        # By what it says to have, since room is made for what is asked for; then on, since it may grow while it is read.
        size = _size(file.fileno())
        data = file.read(size + 1) if size <= max_bytes else b""
        while 0 < len(data) <= max_bytes and (chunk := file.read(min(_CHUNK_SIZE, max_bytes + 1))):
            data += chunk
        if max(size, len(data)) > max_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {max_bytes} bytes", name)
        return data


def list_names(path: Path, limit: int | None = None) -> list[str]:
    """The names in a folder, in no order; the first `limit` of them."""
    with opened_folder(path) as folder:
        return list_names_in(folder, limit)


def list_names_in(folder: int, limit: int | None = None) -> list[str]:
    """The names in an opened folder, in no order; the first `limit` of them."""
    descriptor = os.open(".", LIST_FLAGS, dir_fd=folder)
    try:
        if limit is None:
            return os.listdir(descriptor)  # noqa: PTH208 - of a descriptor
        with os.scandir(descriptor) as entries:
            return [entry.name for entry, _ in zip(entries, range(limit), strict=False)]
    finally:
        os.close(descriptor)


def state(path: Path) -> os.stat_result:
    """What lies at a path, which may be a link itself."""
    with opened_folder(path.parent) as folder:
        return os.stat(path.name, dir_fd=folder, follow_symlinks=False)


def is_folder(path: Path) -> bool:
    """Whether a folder lies at a path; False also when it cannot be seen."""
    try:
        return stat.S_ISDIR(state(path).st_mode)
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Whether a regular file lies at a path; False also when it cannot be seen."""
    try:
        return stat.S_ISREG(state(path).st_mode)
    except OSError:
        return False


def replace(path: Path, data: bytes, *, mode: int = 0o600, stamp: int | None = None) -> None:
    """Write a file over whatever is there: its readers see the old bytes or the new ones. With a stamp (Unix nanoseconds) it has that time of change."""
    with opened_folder(path.parent) as folder:
        temporary = _write_temporary(folder, path.name, data, mode)
        try:
            if stamp is not None:
                os.utime(temporary, ns=(stamp, stamp), dir_fd=folder, follow_symlinks=False)
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            unlink_in(folder, temporary)
            raise


def create(path: Path, data: bytes, *, mode: int = 0o600) -> bool:
    """Write a file only if nothing is there; tells whether this call did it."""
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
    """Remove a file or link, if it is there."""
    with opened_folder(path.parent) as folder:
        unlink_in(folder, path.name)


def rename(path: Path, target: Path) -> None:
    """Move what lies at a path; an empty folder at the target is replaced."""
    with opened_folder(path.parent) as source_folder, opened_folder(target.parent) as target_folder:
        os.rename(path.name, target.name, src_dir_fd=source_folder, dst_dir_fd=target_folder)


def link(path: Path, target: Path) -> None:
    """Give a file a second name; what lies at the path is taken as it is, a link too."""
    with opened_folder(path.parent) as source_folder, opened_folder(target.parent) as target_folder:
        os.link(
            path.name,
            target.name,
            src_dir_fd=source_folder,
            dst_dir_fd=target_folder,
            follow_symlinks=False,
        )


def make_link(path: Path, target: str) -> None:
    """Make a symbolic link; one that is there is an error."""
    with opened_folder(path.parent) as folder:
        os.symlink(target, path.name, dir_fd=folder)


def read_link(path: Path) -> str:
    """Where a symbolic link leads."""
    with opened_folder(path.parent) as folder:
        return os.readlink(path.name, dir_fd=folder)


def make_folder(path: Path, mode: int) -> bool:
    """Make a folder with this very mode, whatever the umask; tells whether this call did it."""
    with opened_folder(path.parent) as folder:
        try:
            os.mkdir(path.name, 0o700, dir_fd=folder)
        except FileExistsError:
            os.close(os.open(path.name, STEP_FLAGS, dir_fd=folder))  # a link or file is told
            return False
        descriptor = os.open(path.name, LIST_FLAGS, dir_fd=folder)
        try:
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)
        return True


def make_folders(top: Path, path: Path, mode: int) -> None:
    """Make the folders that are missing on the way from `top` to `path`, but never `top` itself: a bundle that was cleaned away must not come back as a torso."""
    parts = path.relative_to(top).parts
    for count in range(1, len(parts) + 1):
        folder = top.joinpath(*parts[:count])
        if not is_folder(folder):
            make_folder(folder, mode)


def change_mode(path: Path, mode: int) -> None:
    """Give a file or folder another mode."""
    with opened_folder(path.parent) as folder:
        _change_mode_in(folder, path.name, mode)


def split_at_own_folder(path: Path) -> tuple[str, tuple[str, ...]]:
    """A folder's path as what is taken as it is and the steps from our folder on."""
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
        raise ForeignFolderError(
            errno.EPERM, f"{name} belongs to user {owner}, not {match[1]}", str(path)
        )


def _size(descriptor: int) -> int:
    return os.fstat(descriptor).st_size


def _write_temporary(folder: int, name: str, data: bytes, mode: int) -> str:
    temporary = f".{name}.{secrets.token_hex(6)}.tmp"
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, mode, dir_fd=folder
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)  # whatever the umask
            file.write(data)
    except BaseException:
        unlink_in(folder, temporary)
        raise
    return temporary


def unlink_in(folder: int, name: str) -> None:
    """Remove a file or link that lies in an opened folder, if it is there."""
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
