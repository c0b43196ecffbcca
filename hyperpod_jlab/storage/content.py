"""The content store: every file of a user's code once on the partition, hard-linked into the bundles that use it.

A file's name is the SHA-256 of its bytes (with an ``x`` behind it for executables), so the second submit of the same code copies nothing.
Files in the store are read-only and carry a fixed modification time: one that was changed in place is noticed and made anew. Each user has a store of his own,
in a folder that nobody else can write to.
A file that no bundle uses has one link left, which is how `unused` finds it.
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
"""A file has as many links as it can have, or the file system has none: the content is copied."""
_CHUNK = 1 << 20

DIGEST = re.compile(r"[0-9a-f]{64}")
"""What a file's digest looks like (to be used with ``fullmatch``)."""


@dataclass(frozen=True)
class StoreResult:
    """What putting a file took: its digest and the bytes that had to be copied (0 when the store had it)."""

    digest: str
    copied: int


def stored_path(folder: Path, digest: str, *, executable: bool) -> Path:
    """Where a file lies in the content store of a user's folder on the partition, or would."""
    return folder / "code" / digest[:2] / (digest + ("x" if executable else ""))


class ContentStore:
    """The content store of one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def put_bytes(self, data: bytes, target: Path, *, executable: bool = False) -> StoreResult:
        """Make `target` a file with these bytes."""
        return self._put(hashlib.sha256(data).hexdigest(), executable, data, target)

    def put_file(self, source: Path, target: Path, *, executable: bool = False) -> StoreResult:
        """Make `target` a file with the bytes of `source`; of one that changes meanwhile, those that it had at some moment.

        Raises:
            InvalidInputError: The source cannot be read.
        """
        return self._put(_digest_of_source(source), executable, source, target)

    def entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """All stored files, and left-over temporary ones."""
        with storage_errors(self._partition.content):
            for name in sorted(_names(self._partition.content)):
                folder = self._partition.content / name
                for entry in sorted(_names(folder)):
                    with contextlib.suppress(FileNotFoundError):  # another clean-up runs
                        yield folder / entry, descent.state(folder / entry)

    def unused(self) -> Iterator[Path]:
        """Stored files that no bundle uses, and left-over temporary ones."""
        for entry, status in self.entries():
            if status.st_nlink == 1:
                yield entry

    def _put(
        self, digest: str, executable: bool, content: bytes | Path, target: Path
    ) -> StoreResult:
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        with contextlib.suppress(FileNotFoundError):  # a clean-up took it away in between
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
        """Use a stored file; returns the bytes that were copied, or None when it has to be made from its content."""
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
        descent.unlink(target)  # it was changed in place just now
        return None

    def _add(self, executable: bool, content: bytes | Path, target: Path) -> StoreResult:
        """Make the target from the content itself, and put it into the store under the digest that it turned out to have."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(descent.open_file(target, flags), "wb") as copy:
                if isinstance(content, bytes):
                    copy.write(content)
                    digest = hashlib.sha256(content).hexdigest()
                else:
                    digest = digest_of(content, copy)
                size = copy.tell()
                copy.flush()  # a write after this would change the time
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
        """Put a finished file into the store, where that can be: without links, or where links are counted out, it cannot."""
        self._partition.make_folder(stored_file.parent)
        temporary = stored_file.parent / f".{secrets.token_hex(8)}.tmp"
        try:
            descent.link(target, temporary)
            descent.rename(temporary, stored_file)
        except FileNotFoundError:
            pass  # a clean-up took it away in between
        except OSError as error:
            if error.errno not in {*_NO_LINKS, errno.EACCES}:
                raise
        finally:
            descent.unlink(temporary)


def _is_intact(path: Path, size: int) -> bool:
    """Whether it is a file that this user stored, and unchanged."""
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
    """The SHA-256 of a file's bytes, which go into `copy` too; of a file that grows, those that it had at the start."""
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
    """A file of the user's project, through its links; or one of a bundle, through none."""
    if any(descent.OWN_FOLDER.fullmatch(part) for part in path.parts):
        return descent.open_file(path)
    return descent.open_file(Path(os.path.realpath(path)))
