"""A stand-in for Lustre's program ``lfs``, for Lustre runs on no machine of the tests: it prints what lfs.c of Lustre 2.15 prints.

``recorded_lfs.py COMMAND FILE...``: the files' flags, archives and actions stand in the JSON that $LFS_STATES names, by path. As the real one it
ends at the first file that it has something against, and a request is for all of its files or for none. With $LFS_DENIES naming commands these are
not permitted; with $LFS_HANGS it never answers. Each call is added to the list ``calls``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

FLAGS = (
    *((0x4, "released"), (0x1, "exists"), (0x2, "dirty"), (0x8, "archived")),
    *((0x10, "never_release"), (0x20, "never_archive"), (0x40, "lost_from_hsm")),
)
REQUESTS = {"hsm_archive": "ARCHIVE", "hsm_restore": "RESTORE", "hsm_release": None}


def main(command: str, *paths: str) -> int:
    if "LFS_HANGS" in os.environ:
        time.sleep(60)
    table = Path(os.environ["LFS_STATES"])
    states = json.loads(table.read_text())
    states["calls"].append([command, *paths])
    table.write_text(json.dumps(states))
    if command in REQUESTS:
        return request(command, paths, states, table)
    for path in paths:
        told = states.get(path)
        if told is None:
            kind = command.replace("_", " ")
            print(f"can't get {kind} for {path}: No such file or directory", file=sys.stderr)
            return 2
        line = state(told) if command == "hsm_state" else told.get("action", "NOOP")
        os.write(1, os.fsencode(f"{path}: {line}\n"))
    return 0


def state(told: dict[str, int]) -> str:
    flags = told["flags"]
    words = "".join(f" {word}" for flag, word in FLAGS if flags & flag)
    archive = f", archive_id:{told['archive']}" if told.get("archive") else ""
    return f"(0x{flags:08x}){words}{archive}"


def request(command: str, paths: tuple[str, ...], states: dict[str, dict], table: Path) -> int:
    denied = os.environ.get("LFS_DENIES", "").split()
    problems = [states[path]["bad"] for path in paths if "bad" in states[path]]
    if command in denied or problems:
        words = "Operation not permitted" if command in denied else problems[0]
        print(f"Cannot send HSM request (use of {paths[0]}): {words}", file=sys.stderr)
        return 1
    for path in paths:
        action = REQUESTS[command]
        if action is None:
            states[path]["flags"] |= 0x4
        else:
            states[path]["action"] = f"{action} waiting (from 0 to EOF)"
    table.write_text(json.dumps(states))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
