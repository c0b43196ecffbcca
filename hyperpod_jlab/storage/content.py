"""The content store: every file of code once on the partition, hard-linked into the bundles that use it.

A file's name is the SHA-256 of its bytes (with an ``x`` behind it for executables), so the second submit of the same code copies nothing.
Files in the store are read-only and carry a fixed modification time: one that was changed in place is noticed and made anew.
A file that no bundle uses has one link left, which is how `unused` finds it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
        """Make `target` a file with the bytes of `source`."""
        return self._put(_digest(source), executable, source, target)

    def unused(self) -> Iterator[Path]:
        """Stored files that no bundle uses, and left-over temporary ones."""
        for folder in sorted(self._partition.content.glob("??")):
            for entry in sorted(folder.iterdir()):
                if entry.lstat().st_nlink == 1:
                    yield entry

    def _put(self, digest: str, executable: bool, content: bytes | Path, target: Path) -> Stored:
        for _ in range(3):
            stored, copied = self._ensure(digest, executable, content)
            try:
                self._link(stored, target)
            except FileNotFoundError:  # a clean-up took it away in between
                continue
            return Stored(digest, copied)
        raise OSError(errno.EAGAIN, "the content store is being cleaned", str(target))

    def _mode(self, executable: bool) -> int:
        mode = 0o555 if executable else 0o444
        return mode if self._partition.shared else mode & 0o700

    def _path(self, digest: str, executable: bool) -> Path:
        return self._partition.content / digest[:2] / (digest + ("x" if executable else ""))

    def _ensure(self, digest: str, executable: bool, content: bytes | Path) -> tuple[Path, int]:
        path = self._path(digest, executable)
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        with contextlib.suppress(FileNotFoundError):
            found = path.stat()
            if found.st_mtime_ns == _STAMP_NS and found.st_size == size:
                return path, 0
        self._partition.make_folder(path.parent, common=True)
        temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            if isinstance(content, bytes):
                temporary.write_bytes(content)
            else:
                shutil.copyfile(content, temporary)
                if _digest(temporary) != digest:
                    raise OSError(
                        errno.EAGAIN, "the file changed while it was copied", str(content)
                    )
            temporary.chmod(self._mode(executable))
            os.utime(temporary, ns=(_STAMP_NS, _STAMP_NS))
            temporary.replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
        return path, size

    def _link(self, stored: Path, target: Path) -> None:
        try:
            os.link(stored, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            shutil.copy2(stored, target)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
