"""Who sends runs from this machine, as their objects say it."""

from __future__ import annotations

import getpass
import os


def this_user() -> str:
    """This user's name, as `services.user` has it for what is sent."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's uid without an entry
        return f"uid-{os.getuid()}"
