"""Whether what an administrator chose, a private or a shared partition, really keeps this user's runs from other users here."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hyperpod_jlab.model.isolation import Identity
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.migration import runs_in_old_layout
from hyperpod_jlab.storage.parents import Parent, parents
from hyperpod_jlab.storage.partition import Partition

ONE_UID = (
    "everybody here has the same user number, so only the path that each profile mounts keeps users "
    "apart: give each user profile a uid of its own (CustomPosixUserConfig) when it is created"
)
"""What is to be known where all users have one number."""


@dataclass(frozen=True)
class Separation:
    """Whether other users can exchange or write what is this user's.

    Attributes:
        parents: The partition's root and the folders above it, from ``/`` on.
        holds: Whether nobody but root and this user can exchange or write our folder.
        reason: Why it does not hold; None when it does.
        fix: What to do about it.
        old_runs: Number of this user's runs in the old layout, of which `holds` says nothing.
    """

    parents: tuple[Parent, ...]
    holds: bool
    reason: str | None = None
    fix: str | None = None
    old_runs: int = 0

    @property
    def sentences(self) -> list[str]:
        """What is to be known of it; nothing where all is well."""
        told = []
        if not self.holds:
            told.append(f"other users are not kept from your runs: {self.reason}. {self.fix}")
        if self.old_runs:
            told.append(
                f"{self.old_runs} of your runs lie in the old layout, where other users may exchange them: run hpj storage migrate"
            )
        return told

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        rows = [
            {**asdict(parent), "path": str(parent.path), "mode": f"{parent.mode:04o}"}
            for parent in self.parents
        ]
        return {
            "parents": rows,
            "holds": self.holds,
            "reason": self.reason,
            "fix": self.fix,
            "old_runs": self.old_runs,
        }


def separation_of(partition: Partition, identity: Identity) -> Separation:
    """Judge a partition for this user. May block.

    Args:
        partition: The partition.
        identity: Whether this user has a number of its own there.

    Raises:
        OSError: The partition's root cannot be looked at.
    """
    above = tuple(parents(partition.root))
    old = sum(1 for _ in runs_in_old_layout(partition))
    trusted = {"foreign", "open", "group"} if partition.shared else {"foreign", "open"}
    bad = next((parent for parent in above if parent.problem in trusted), None)
    if bad is not None:
        return Separation(above, False, f"{bad.path} {bad.reason}", bad.fix, old)
    problem = _own_folder_problem(partition.folder)
    if problem is not None:
        fix = "name another folder as path under [storage], or ask an administrator to remove it"
        return Separation(above, False, problem, fix, old)
    if not identity.own:
        return Separation(above, False, identity.evidence, ONE_UID, old)
    return Separation(above, True, old_runs=old)


def _own_folder_problem(folder: Path) -> str | None:
    try:
        owner = descent.state(folder).st_uid
    except OSError:  # there is none yet
        return None
    if owner != os.getuid():
        return f"{folder} belongs to another user (uid {owner})"
    return None if descent.is_folder(folder) else f"{folder} is not a folder"
