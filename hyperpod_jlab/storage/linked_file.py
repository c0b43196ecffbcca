"""Logs of jobs that run without our launcher: in the bundle lies a link to the file that the scheduler writes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from hyperpod_jlab.storage import descent


def open_linked(path: Path) -> int:
    """Open a regular file for reading, or the one that a link in its place leads to: the log of a job without our launcher is such a link.

    A link counts only beside other things of its own owner. This user's is followed wherever it leads, another user's only to a file of that user on the same
    partition, with no further link on the way.
    """
    with descent.opened_folder(path.parent) as folder:
        try:
            return descent.open_in(folder, path.name)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        owner = os.fstat(folder).st_uid
        if os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_uid != owner:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        target = Path(os.path.normpath(path.parent / os.readlink(path.name, dir_fd=folder)))
    if owner == os.getuid():
        return descent.open_file(Path(os.path.realpath(target)))
    return _open_foreign(Path(descent.cut(path)[0]), target, owner)


def _open_foreign(root: Path, target: Path, owner: int) -> int:
    """Open a user's file on a partition, with no link on the way to it."""
    steps = target.relative_to(root).parts if target.is_relative_to(root) else ()
    if not steps:
        raise OSError(errno.EPERM, "a link leads out of the partition", str(target))
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in steps[:-1]:
            inner = os.open(name, descent.STEP, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        opened = descent.open_in(descriptor, steps[-1])
    finally:
        os.close(descriptor)
    if os.fstat(opened).st_uid != owner:
        os.close(opened)
        raise OSError(errno.EPERM, "a link leads to another user's file", str(target))
    return opened
