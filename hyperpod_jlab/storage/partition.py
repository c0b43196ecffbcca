"""The storage partition as this machine sees it, and where everything of ours lies on it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.model.errors import StorageDeniedError, StorageError
from hyperpod_jlab.model.run_id import shard_of, split_run_id
from hyperpod_jlab.storage.atomic import storage_errors
from hyperpod_jlab.storage.presence import check_present, note_present

FOLDER = ".hyperpod"
"""Our folder on the partition."""


@dataclass(frozen=True)
class Partition:
    """A storage partition.

    Attributes:
        root: The partition's root on this machine.
        shared: Whether other users of the partition may read bundles and add their own.
    """

    root: Path
    shared: bool = False

    @property
    def folder(self) -> Path:
        """Our folder on the partition."""
        return self.root / FOLDER

    @property
    def runs(self) -> Path:
        """The folder of all shards."""
        return self.folder / "runs"

    @property
    def content(self) -> Path:
        """The content store."""
        return self.folder / "code"

    @property
    def folder_mode(self) -> int:
        """Mode of a folder that belongs to one user."""
        return 0o755 if self.shared else 0o700

    @property
    def file_mode(self) -> int:
        """Mode of a file that belongs to one user."""
        return 0o644 if self.shared else 0o600

    def bundle(self, run_id: str) -> Path:
        """The bundle of a run, or of the array that a child belongs to.

        Raises:
            InvalidInputError: It is no run id.
        """
        parent, _ = split_run_id(run_id)
        return self.runs / shard_of(parent) / parent

    def records(self, run_id: str) -> Path:
        """The folder with a run's records: its bundle, or the child's folder in the array's bundle."""
        _, index = split_run_id(run_id)
        bundle = self.bundle(run_id)
        return bundle if index is None else bundle / "tasks" / str(index)

    def holds(self, run_id: str) -> bool:
        """Whether there is a bundle of the run, or of the array that a child belongs to.

        Raises:
            InvalidInputError: It is no run id.
            StorageError: The partition does not let this user look, or fails.
        """
        bundle = self.bundle(run_id)
        with storage_errors(bundle):
            return bundle.is_dir()

    def prepare(self) -> None:
        """Make our folders, and refuse ones that somebody else could have laid.

        Raises:
            StorageError: The partition is missing, not mounted or not writable, or ``.hyperpod`` is a symlink or has another owner.
        """
        check_present(self.root)
        with storage_errors(self.root):
            if not self.root.is_dir():
                self._make_root()
        for folder in (self.folder, self.runs, self.content):
            self.make_folder(folder, common=True)
        note_present(self.root)

    def _make_root(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except (PermissionError, FileNotFoundError, NotADirectoryError) as error:
            kind = StorageDeniedError if isinstance(error, PermissionError) else StorageError
            raise kind(
                f"the storage partition {self.root} cannot be made: {error.strerror}",
                hint="name a folder of your own as path under [storage] in the configuration; without it the home folder is used",
                detail={"path": str(self.root), "os_error": error.strerror},
            ) from error

    def make_folder(self, folder: Path, *, common: bool = False) -> None:
        """Make a folder of ours if it is not there; `common` ones are open to all users of a shared partition."""
        mode = 0o1777 if self.shared and common else self.folder_mode
        with storage_errors(folder):
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:
                self.check_owner(folder)
                found = folder.stat()
                narrow = found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) != mode
                if not (self.shared and common and narrow):
                    return
            folder.chmod(mode)

    def check_owner(self, folder: Path) -> None:
        """Refuse a folder that is a symlink, no folder, or somebody else's on a private partition.

        Raises:
            StorageError: With code ``untrusted_folder``; a `StorageDeniedError` when it is somebody else's.
        """
        with storage_errors(folder):
            found = folder.lstat()
        if stat.S_ISLNK(found.st_mode) or not stat.S_ISDIR(found.st_mode):
            problem = "is a symbolic link" if stat.S_ISLNK(found.st_mode) else "is no folder"
        elif not self.shared and found.st_uid != os.getuid():
            raise StorageDeniedError(
                f"{folder} belongs to another user (uid {found.st_uid})",
                code="untrusted_folder",
                hint="name a folder of your own as path under [storage] in the configuration, or set shared = true there when the partition is shared on purpose",
                detail={"path": str(folder)},
            )
        else:
            return
        raise StorageError(
            f"{folder} {problem}",
            code="untrusted_folder",
            hint="remove it, or name another folder as path under [storage] in the configuration",
            detail={"path": str(folder)},
        )
