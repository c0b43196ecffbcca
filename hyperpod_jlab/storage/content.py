"""The content store: every file of code once on the partition, hard-linked into the bundles that use it.

A file's name is the SHA-256 of its bytes (with an ``x`` behind it for executables), so the second submit of the same code copies nothing.
Files in the store are read-only and carry a fixed modification time: one that was changed in place is noticed and made anew. Only files that this
user stored are linked: on a shared partition another one could lay other code under a digest.
A file that no bundle uses has one link left, which is how `unused` finds it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.storage.partition import Partition

_STAMP_NS = 946_684_800_000_000_000
_NO_LINKS = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Stored:
    """What putting a file took: its digest and the bytes that had to be copied (0 when the store had it)."""

    digest: str
    copied: int


class ContentStore:
    """The content store of one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def put_bytes(self, data: bytes, target: Path, *, executable: bool = False) -> Stored:
        """Make `target` a file with these bytes."""
        return self._put(hashlib.sha256(data).hexdigest(), executable, data, target)

    def put_file(self, source: Path, target: Path, *, executable: bool = False) -> Stored:
        """Make `target` a file with the bytes of `source`; of one that changes meanwhile, those that it had at some moment.

        Raises:
            InvalidInputError: The source cannot be read.
        """
        return self._put(_digest_of_source(source), executable, source, target)

    def find(self, digest: str, *, executable: bool = False) -> Path | None:
        """The stored file with this digest, or None."""
        path = self._path(digest, executable)
        return path if path.is_file() else None

    def entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """All stored files, and left-over temporary ones."""
        for folder in sorted(self._partition.content.glob("??")):
            for entry in sorted(folder.iterdir()):
                with contextlib.suppress(FileNotFoundError):  # somebody else cleans up too
                    yield entry, entry.lstat()

    def unused(self) -> Iterator[Path]:
        """Stored files that no bundle uses, and left-over temporary ones."""
        for entry, found in self.entries():
            if found.st_nlink == 1:
                yield entry

    def _put(self, digest: str, executable: bool, content: bytes | Path, target: Path) -> Stored:
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        with contextlib.suppress(FileNotFoundError):  # a clean-up took it away in between
            copied = self._link(self._path(digest, executable), target, size)
            if copied is not None:
                return Stored(digest, copied)
        return self._add(executable, content, target)

    def _mode(self, executable: bool) -> int:
        mode = 0o555 if executable else 0o444
        return mode if self._partition.shared else mode & 0o700

    def _path(self, digest: str, executable: bool) -> Path:
        return self._partition.content / digest[:2] / (digest + ("x" if executable else ""))

    def _link(self, stored: Path, target: Path, size: int) -> int | None:
        """Use a stored file; returns the bytes that were copied, or None when the store does not have it."""
        if not _is_as_we_left_it(stored, size):
            return None
        try:
            os.link(stored, target, follow_symlinks=False)
        except OSError as error:
            if error.errno == errno.EMLINK:  # as many links as can be: a new file takes over
                return None
            if error.errno not in _NO_LINKS:
                raise
            shutil.copy2(stored, target)
            return size
        if _is_as_we_left_it(target, size):
            return 0
        target.unlink()  # another user of a shared partition exchanged it in between
        return None

    def _add(self, executable: bool, content: bytes | Path, target: Path) -> Stored:
        """Make the target from the content itself, and put it into the store under the digest that it turned out to have."""
        try:
            with target.open("xb") as copy:
                if isinstance(content, bytes):
                    copy.write(content)
                    digest = hashlib.sha256(content).hexdigest()
                else:
                    digest = digest_of(content, copy)
                size = copy.tell()
            target.chmod(self._mode(executable))
            os.utime(target, ns=(_STAMP_NS, _STAMP_NS))
        except FileExistsError:
            raise
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        self._keep(target, self._path(digest, executable))
        return Stored(digest, size)

    def _keep(self, target: Path, stored: Path) -> None:
        """Put a finished file into the store, where that can be: without links, or where another user's file has the name, it cannot."""
        self._partition.make_folder(stored.parent, common=True)
        temporary = stored.parent / f".{secrets.token_hex(8)}.tmp"
        try:
            os.link(target, temporary)
            temporary.replace(stored)
        except FileNotFoundError:
            pass  # a clean-up took it away in between
        except OSError as error:
            if error.errno not in {*_NO_LINKS, errno.EACCES}:
                raise
        finally:
            temporary.unlink(missing_ok=True)


def _is_as_we_left_it(path: Path, size: int) -> bool:
    """Whether it is a file that this user stored: what others lay on a shared partition is not for us to run."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()
    return ours and found.st_mtime_ns == _STAMP_NS and found.st_size == size


def _digest_of_source(source: Path) -> str:
    try:
        return digest_of(source)
    except OSError as error:
        raise InvalidInputError(
            f"{source} cannot be read: {error.strerror}",
            code="unreadable_file",
            hint="leave it out with .hyperpodignore, or make it readable",
            detail={"path": str(source)},
        ) from error


def digest_of(path: Path, copy: BinaryIO | None = None) -> str:
    """The SHA-256 of a file's bytes, which go into `copy` too; of a file that grows, those that it had at the start."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        left = os.fstat(file.fileno()).st_size
        while chunk := file.read(min(_CHUNK, left)):
            left -= len(chunk)
            digest.update(chunk)
            if copy is not None:
                copy.write(chunk)
    return digest.hexdigest()
