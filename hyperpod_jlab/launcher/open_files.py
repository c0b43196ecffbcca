"""Files that programs of this machine have open, from /proc."""

from __future__ import annotations

import contextlib
import os
from typing import Iterable, List, Set

MAX_LOG_FOLDERS = 8

_EVENTS = "events.out.tfevents"
"""In the name of each file that TensorBoard reads."""


def find_log_folders(pids: Iterable[int]) -> List[str]:
    """The folders of the TensorBoard event files that processes write; those that this user may not see, or that have ended, have none."""
    found: Set[str] = set()
    for pid in pids:
        folder = "/proc/%d/fd" % pid
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    target = os.readlink("%s/%s" % (folder, name))
                    if _EVENTS in target and os.path.basename(target).startswith(_EVENTS):
                        found.add(os.path.dirname(target))
    folders = [
        folder for folder in sorted(found) if len(folder) <= 1000 and "\ufffd" not in folder and folder.isprintable()
    ]
    return folders[:MAX_LOG_FOLDERS]
