"""Locate a run's bundle and its owner."""

from __future__ import annotations

import os
from pathlib import Path

from hyperpod_jlab.core.errors import DeniedError, StorageDeniedError
from hyperpod_jlab.core.run_id import split_run_id
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.acl import has_acl, own_uid
from hyperpod_jlab.storage.owners import user_name
from hyperpod_jlab.storage.partition import Partition

SUSPECT = "suspect.json"
"""Marks a bundle that was moved from a place where another user could have created it from its owner's other files."""


def is_replaceable_by_others(partition: Partition, bundle: Path) -> bool:
    """Whether another user owns a folder above a bundle on the partition, and so can replace it. May block."""
    trusted = {0, os.getuid()}
    for folder in bundle.relative_to(partition.root).parents[:-1]:
        try:
            if descent.state(partition.root / folder).st_uid not in trusted:
                return True
        except OSError:
            return True
    return False


class BundleLocation:
    """The bundle of one run (or of the array that a child belongs to).

    The kernel determines its owner: a bundle in a user's folder that does not belong to that user is damaged.

    Args:
        partition: The storage partition.
        run_id: The run, or an array's child.
        location: The bundle and its required owner, if known; else they are searched on first use.

    Raises:
        InvalidInputError: It is not a run id.
    """

    def __init__(self, partition: Partition, run_id: str, location: tuple[Path, int] | None = None) -> None:
        self.partition = partition
        self.run_id = run_id
        self.index = split_run_id(run_id)[1]
        self._location = location

    @property
    def folder(self) -> Path:
        """The bundle's folder. The first call searches for it and may block; a missing run has the path of a new run of this user."""
        return self._find()[0]

    @property
    def records(self) -> Path:
        """The folder with the run's records: the bundle, or the child's folder in the array's bundle."""
        return self.folder if self.index is None else self.folder / "tasks" / str(self.index)

    @property
    def owner(self) -> int:
        """The uid of the run's owner. May block."""
        return self._find()[1]

    @property
    def is_own(self) -> bool:
        """Whether it is this user's run: only then may it be executed, submitted, written or removed. May block."""
        return self.owner == own_uid()

    @property
    def is_suspect(self) -> bool:
        """Whether another user could have created this bundle: in the layout of an older version, or before it was moved from there. May block."""
        if self.folder.is_relative_to(self.partition.folder):
            return descent.is_file(self.folder / SUSPECT)
        return is_replaceable_by_others(self.partition, self.folder)

    def check_own(self, action: str) -> None:
        """Refuse another user's run.

        Args:
            action: The intended action, as a verb.

        Raises:
            DeniedError: It is another user's run.
        """
        if not self.is_own:
            name = user_name(self.owner)
            raise DeniedError(
                f"{self.run_id} belongs to {name}; only {name} may {action} it",
                code="foreign_run",
                detail={"run_id": self.run_id, "user": name, "uid": self.owner},
            )

    def _find(self) -> tuple[Path, int]:
        if self._location is None:
            location = self.partition.find(self.run_id)
            if location is None:  # it may appear later
                return self.partition.bundle(self.run_id), own_uid()
            self._location = location
        return self._location

    def check_writable(self, path: Path) -> None:
        """Refuse to write into another user's run, regardless of its folders' modes. May block.

        Args:
            path: The path to write.

        Raises:
            StorageDeniedError: It is another user's run.
        """
        if not self.is_own:
            raise StorageDeniedError(
                f"{self.run_id} cannot be changed: it belongs to {user_name(self.owner)}",
                code="foreign_run",
                detail={"path": str(path), "uid": self.owner},
            )

    @property
    def folder_mode(self) -> int:
        """Mode of a folder in the bundle. With an ACL for a job's user, the group bits are its mask. Blocking."""
        return self.partition.folder_mode | (0o070 if has_acl(self.folder) else 0)

    @property
    def file_mode(self) -> int:
        """Mode of a file in the bundle. Blocking."""
        return self.partition.file_mode | (0o060 if has_acl(self.folder) else 0)
