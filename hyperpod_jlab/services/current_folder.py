"""The folder that paths are relative to where the user names no other."""

from __future__ import annotations

from pathlib import Path

from hyperpod_jlab.model.errors import InvalidInputError


def current_folder() -> Path:
    """This process's current folder.

    Raises:
        InvalidInputError: It is gone.
    """
    try:
        return Path.cwd()
    except OSError as error:
        raise InvalidInputError(
            f"the current folder cannot be used: {error.strerror}",
            code="no_current_folder",
            hint="it was removed; change to one that is there, as with: cd ~",
        ) from error
