"""What lies in a folder, down to the last byte, so that two looks can be compared."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

Inventory = dict[str, tuple[int, int, int, int, str]]
"""By path: mode, owner, group, time of change (of content, ns; 0 of folders), and digest or target."""


def inventory(top: Path, leave_out: tuple[Path, ...] = ()) -> Inventory:
    """All that is in a folder, and the folder itself."""
    found: Inventory = {}
    for folder, names, files in os.walk(top):
        names[:] = [name for name in names if Path(folder, name) not in leave_out]
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            found[str(path)] = _entry(path)
        for name in names:
            if Path(folder, name).is_symlink():
                found[str(Path(folder, name))] = _entry(Path(folder, name))
    return found


def _entry(path: Path) -> tuple[int, int, int, int, str]:
    seen = path.lstat()
    content, changed = "", 0
    if stat.S_ISLNK(seen.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(seen.st_mode):
        content, changed = hashlib.sha256(path.read_bytes()).hexdigest(), seen.st_mtime_ns
    return seen.st_mode, seen.st_uid, seen.st_gid, changed, content
