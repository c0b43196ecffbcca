"""The packages that came with the run, unpacked once for the ranks of this user on a node."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import zipfile


def unpacked(archive: str) -> str:
    """The folder with the archive's packages, in the node's own temporary folder."""
    with open(archive, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:16]
    folder = os.path.join(tempfile.gettempdir(), f"hyperpod-ipython-{os.getuid()}-{digest}")
    with zipfile.ZipFile(archive) as packages:
        if _is_own(folder):
            # Nodes remove old temporary files.
            names = packages.namelist()
            packages.extractall(folder, [name for name in names if not os.path.exists(os.path.join(folder, name))])
            return folder
        temporary = tempfile.mkdtemp(prefix="hyperpod-ipython-")
        packages.extractall(temporary)
    try:
        os.rename(temporary, folder)
    except OSError:
        if not _is_own(folder):  # it belongs to another user
            return temporary
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _is_own(folder: str) -> bool:
    """Whether only this user can have written it."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    is_private = not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and is_private
