"""Where two users meet: a mount and a process namespace of a test's own, in which both may reach this Python.

Python and the checkout may lie behind a folder that only root may enter (``/root``); in here such a folder is an empty one that shows
nothing but them. The users have names in here (``/etc/passwd``). Whatever they leave running ends with the stage.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]

_HOLD = """
set -eu
folder=$1 closed=$2
shift 2
for path; do
  mkdir -p "$folder/kept$path"
  mount --bind "$path" "$folder/kept$path"
done
while read -r above; do
  [[ -z $above ]] || mount -t tmpfs -o mode=755,size=1m none "$above"
done <<<"$closed"
for path; do
  mkdir -p "$path"
  mount --move "$folder/kept$path" "$path"
done
mount --bind "$folder/passwd" /etc/passwd
echo ready
# The first process of the namespace takes in whatever lost its parent.
while :; do sleep 1000 & wait; done
"""


class Stage:
    """An open stage.

    Attributes:
        folder: Root's folder for it, which both users may enter.
    """

    def __init__(self, folder: Path, holder: int) -> None:
        self.folder = folder
        self._spaces = [os.open(f"/proc/{holder}/ns/{kind}", os.O_RDONLY) for kind in ("mnt", "pid")]
        self._libc = ctypes.CDLL(None, use_errno=True)

    def enter(self) -> None:
        """Bring this process's file systems, and its children to come, onto the stage. Only in a process of one thread."""
        for space in self._spaces:
            if self._libc.setns(space, 0) != 0:
                raise OSError(ctypes.get_errno(), "setns")

    def close(self) -> None:
        """Give the namespaces back."""
        for space in self._spaces:
            os.close(space)


@contextmanager
def open_stage(folder: Path, users: dict[str, int]) -> Iterator[Stage]:
    """Open a stage in an empty folder of root's; `users` are its people's names and uids."""
    lines = [f"{name}:x:{uid}:{uid}::{folder}/{name}:/bin/bash" for name, uid in users.items()]
    (folder / "passwd").write_text(Path("/etc/passwd").read_text() + "\n".join(lines) + "\n")
    needed = {Path(path).resolve() for path in (sys.base_prefix, sys.prefix, CHECKOUT)}
    closed = {path: above for path in needed if (above := _closed_above(path)) is not None}
    hold: list[str | Path] = ["bash", "-c", _HOLD, "hold", folder, "\n".join(sorted({str(a) for a in closed.values()}))]
    # Whatever becomes of this process, nothing of the stage outlives it.
    spaces = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--fork",
        "--mount-proc",
    ]
    process = subprocess.Popen(
        [*spaces, "--kill-child", *hold, *sorted(closed)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _until_ready(process)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        stage = Stage(folder, int(children[0]))
        yield stage
        stage.close()
    finally:
        process.kill()  # and with it, all on the stage
        process.communicate()


def _closed_above(path: Path) -> Path | None:
    """The topmost folder above a path that not everybody may enter."""
    for above in reversed(path.parents):
        if not above.stat().st_mode & 0o001:
            return above
    return None


def _until_ready(process: subprocess.Popen[str]) -> None:
    with selectors.DefaultSelector() as selector:
        assert process.stdout is not None
        selector.register(process.stdout, selectors.EVENT_READ)
        told = process.stdout.readline() if selector.select(30) else ""
    if told != "ready\n":
        process.kill()
        raise AssertionError(f"no stage: {process.communicate()[1]}")
