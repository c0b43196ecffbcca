"""Real file systems that are small, full or read-only: a tmpfs in a mount namespace of its own, with a child Python in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_MOUNT = 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"'


def on_small_disk(
    module: str, case: str, folder: Path, *, options: str = "size=2m,mode=755", timeout: float = 110
) -> Any:
    """Run ``python -m MODULE CASE FOLDER`` where FOLDER is a small file system; returns the JSON that it prints last."""
    folder.mkdir(exist_ok=True)
    apart = ["unshare", "--mount"]
    apart += [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    done = subprocess.run(
        [*apart, "sh", "-c", _MOUNT, "sh", options, folder, sys.executable, "-m", module, case, folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def fill(folder: Path) -> Path:
    """Write until nothing more fits; the file that takes the room."""
    filler = folder / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return filler


def remount(folder: Path, how: str) -> None:
    """Make the file system under a folder read-only (``ro``) or writable (``rw``)."""
    subprocess.run(["mount", "-o", f"remount,{how}", folder], check=True)


def tell(answer: Any) -> None:
    """What the child has to say to the test."""
    print(json.dumps(answer))
