"""Who users are: by the number that the kernel knows, with a name for people."""

from __future__ import annotations

import getpass
import os
import pwd

from hyperpod_jlab.model.run import Run
from hyperpod_jlab.storage.numbers import own_number


def current_user() -> str:
    """The user's name on this machine; in a shared space all people act as the space."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's uid without an entry
        return f"uid-{os.getuid()}"


def user_name(number: int) -> str:
    """The name of a user by number; this process's own user is called as everywhere."""
    if number == own_number():
        return current_user()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid-{number}"


def is_own(run: Run) -> bool:
    """Whether a run is this user's, by the owner of its folder."""
    return run.uid == own_number()
