"""Who the user is."""

from __future__ import annotations

import getpass
import os


def current_user() -> str:
    """The user's name on this machine; in a shared space all people act as the space."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's uid without an entry
        return f"uid-{os.getuid()}"
