"""Who users are: by the number that the kernel knows, with a name for people."""

from __future__ import annotations

import getpass
import os
import pwd

from hyperpod_jlab.model.run import Run


def current_user() -> str:
    """The user's name on this machine; in a shared space all people act as the space."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's uid without an entry
        return f"uid-{os.getuid()}"


def user_name(uid: int) -> str:
    """The name of a user by number; this process's own user is called as everywhere."""
    if uid == os.getuid():
        return current_user()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"


def is_own(run: Run) -> bool:
    """Whether a run is this user's, by the owner of its folder."""
    return run.uid == os.getuid()
