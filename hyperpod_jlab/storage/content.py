"""The content store: each file of a user's code exists once per partition, hard-linked into the bundles that use it.

A file's name is the SHA-256 of its bytes (with a suffix ``x`` for executables), so the second submit of the same code copies nothing.
Files in the store are read-only and have a fixed modification time, which reveals changes in place; a changed file is replaced. Each user has a
store in a folder that nobody else can write to.
An unused file has a link count of one, which is how `unused` finds it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.files import storage_errors
from hyperpod_jlab.storage.partition import Partition

_STAMP_NS = 946_684_800_000_000_000
_NO_LINKS = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""Errors for a file with the maximum link count, or a file system without links: the content is copied."""
_CHUNK = 1 << 20

DIGEST = re.compile(r"[0-9a-f]{64}")
"""The pattern of a file's digest (for ``fullmatch``)."""


@dataclass(frozen=True)
class StoreResult:
    """The result of storing a file: its digest and the bytes copied (0 if the store had it)."""

    digest: str
    copied: int


def stored_path(folder: Path, digest: str, *, executable: bool) -> Path:
    """The path of a file in the content store of a user's folder; the file need not exist."""
    return folder / "code" / digest[:2] / (digest + ("x" if executable else ""))


class ContentStore:
    """The content store of one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def put_bytes(self, data: bytes, target: Path, *, executable: bool = False) -> StoreResult:
        """Create `target` with these bytes."""
        return self._put(hashlib.sha256(data).hexdigest(), executable, data, target)

    def put_file(self, source: Path, target: Path, *, executable: bool = False) -> StoreResult:
        """Create `target` with the bytes of `source`; if that changes meanwhile, with its bytes at some moment.

        Raises:
            InvalidInputError: The source cannot be read.
        """
        return self._put(_digest_of_source(source), executable, source, target)

    def entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """All stored files, and leftover temporary ones."""
        with storage_errors(self._partition.content):
            for name in sorted(_names(self._partition.content)):
                folder = self._partition.content / name
                for entry in sorted(_names(folder)):
                    with contextlib.suppress(FileNotFoundError):  # another clean-up is running
                        yield folder / entry, descent.state(folder / entry)

    def unused(self) -> Iterator[Path]:
        """Stored files that no bundle uses, and leftover temporary ones."""
        for entry, status in self.entries():
            if status.st_nlink == 1:
                yield entry

    def _put(self, digest: str, executable: bool, content: bytes | Path, target: Path) -> StoreResult:
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        with contextlib.suppress(FileNotFoundError):  # a clean-up removed it in between
            copied_bytes = self._link(self._path(digest, executable), target, size)
            if copied_bytes is not None:
                return StoreResult(digest, copied_bytes)
        return self._add(executable, content, target)

    def _mode(self, executable: bool) -> int:
        mode = 0o555 if executable else 0o444
        return mode if self._partition.shared else mode & 0o700

    def _path(self, digest: str, executable: bool) -> Path:
        return stored_path(self._partition.folder, digest, executable=executable)

    def _link(self, stored_file: Path, target: Path, size: int) -> int | None:
        """Link a stored file; returns the bytes copied, or None if it must be created from its content."""
        if not _is_intact(stored_file, size):
            return None
        try:
            descent.link(stored_file, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return None
        if _is_intact(target, size):
            return 0
        descent.unlink(target)  # it was just changed in place
        return None

    def _add(self, executable: bool, content: bytes | Path, target: Path) -> StoreResult:
        """Create the target from the content itself, and store it under its actual digest."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(descent.open_file(target, flags), "wb") as copy:
                if isinstance(content, bytes):
                    copy.write(content)
                    digest = hashlib.sha256(content).hexdigest()
                else:
                    digest = digest_of(content, copy)
                size = copy.tell()
                copy.flush()  # a later write would change the time
                os.fchmod(copy.fileno(), self._mode(executable))
                os.utime(copy.fileno(), ns=(_STAMP_NS, _STAMP_NS))
        except FileExistsError:
            raise
        except BaseException:
            descent.unlink(target)
            raise
        self._store(target, self._path(digest, executable))
        return StoreResult(digest, size)

    def _store(self, target: Path, stored_file: Path) -> None:
        """Link a finished file into the store; skipped without links, or at the maximum link count."""
        self._partition.make_folder(stored_file.parent)
        temporary = stored_file.parent / f".{secrets.token_hex(8)}.tmp"
        try:
            descent.link(target, temporary)
            descent.rename(temporary, stored_file)
        except FileNotFoundError:
            pass  # a clean-up removed it in between
        except OSError as error:
            if error.errno not in {*_NO_LINKS, errno.EACCES}:
                raise
        finally:
            descent.unlink(temporary)


def _is_intact(path: Path, size: int) -> bool:
    """Whether it is a file that this user stored, unchanged."""
    try:
        status = descent.state(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    is_own_file = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
    return is_own_file and status.st_mtime_ns == _STAMP_NS and status.st_size == size


def _digest_of_source(source: Path) -> str:
    try:
        return digest_of(source)
    except OSError as error:
        raise InvalidInputError(
            f"{source} cannot be read: {error.strerror}",
            code="unreadable_file",
            hint="exclude it with .hyperpodignore, or make it readable",
            detail={"path": str(source)},
        ) from error


def _names(folder: Path) -> list[str]:
    try:
        return descent.list_names(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def digest_of(path: Path, copy: BinaryIO | None = None) -> str:
    """The SHA-256 of a file's bytes, which are also written to `copy`; if the file grows, of its initial size."""
    digest = hashlib.sha256()
    with os.fdopen(_open(path), "rb") as file:
        remaining = os.fstat(file.fileno()).st_size
        while chunk := file.read(min(_CHUNK, remaining)):
            remaining -= len(chunk)
            digest.update(chunk)
            if copy is not None:
                copy.write(chunk)
    return digest.hexdigest()


def _open(path: Path) -> int:
    """Open a file of the user's project, following links; or of a bundle, following none."""
    if any(descent.OWN_FOLDER.fullmatch(part) for part in path.parts):
        return descent.open_file(path)
    return descent.open_file(Path(os.path.realpath(path)))
