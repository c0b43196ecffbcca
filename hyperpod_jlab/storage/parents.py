"""Who can exchange the folders in which runs lie: the owners and modes of a folder's parents. A job's guard (launcher/guard.py) asks the same on its node."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hyperpod_jlab.storage.numbers import is_unseen

Problem = Literal["foreign", "open", "group"]
"""Its owner is another user; all users may rename what lies in it; a group may."""


@dataclass(frozen=True)
class Parent:
    """A folder above our own.

    Attributes:
        path: Its path, with no link in it.
        uid: Its owner.
        mode: Its permission bits.
        problem: Why what lies in it can be exchanged by another user than root and this one; None when it cannot.
    """

    path: Path
    uid: int
    mode: int
    problem: Problem | None = None

    @property
    def reason(self) -> str:
        """The problem in words, for a sentence that begins with the path."""
        if self.problem == "foreign":
            return f"belongs to another user (uid {self.uid})"
        who = "all users" if self.problem == "open" else "its group"
        return f"can be changed by {who} and is not sticky (mode {self.mode:04o})"

    @property
    def fix(self) -> str:
        """What its owner or an administrator can do about it."""
        if self.problem == "foreign":
            return f"ask an administrator: chown root {self.path}; or name a folder of your own as path under [storage]"
        return f"ask its owner or an administrator: chmod +t {self.path}"


def parents(root: Path, uid: int | None = None) -> list[Parent]:
    """The partition's root and the folders above it, from ``/`` on.

    Args:
        root: The partition's root; links to it are followed.
        uid: The user to judge for; this process's.

    Raises:
        OSError: One of them cannot be looked at.
    """
    me = os.getuid() if uid is None else uid
    here = Path(os.path.realpath(root))
    found = [_parent(here, me)]
    while here != here.parent:
        here = here.parent
        found.append(_parent(here, me))
    return found[::-1]


def unsafe_parent(root: Path, *, group: bool) -> Parent | None:
    """The first parent in which another user can exchange what is this user's.

    Args:
        root: The partition's root.
        group: Whether a group that may write counts as other users. On a private partition the group is trusted.

    Raises:
        OSError: One of them cannot be looked at.
    """
    bad = (parent for parent in parents(root) if parent.problem is not None)
    return next((parent for parent in bad if group or parent.problem != "group"), None)


def _parent(path: Path, me: int) -> Parent:
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    return Parent(path, found.st_uid, mode, _problem(found.st_uid, mode, me))


def _problem(uid: int, mode: int, me: int) -> Problem | None:
    if uid not in {0, me} and not is_unseen(uid):  # which is root's, or the nodes' guard refuses it
        return "foreign"
    if mode & stat.S_ISVTX:  # only the owner of an entry, and of the folder, may rename it
        return None
    if mode & stat.S_IWOTH:
        return "open"
    return "group" if mode & stat.S_IWGRP else None
