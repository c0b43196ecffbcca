"""Work that several ranks ask for and one of them does: the others wait until it is done."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from typing import Callable

from . import records

POLL = 0.1
MAX_POLL_S = 2.0
REMIND = 60.0


def once(key: str, target: str, action: Callable[[], int]) -> int:
    """Do `action` in the first rank that comes, and give its exit code to all that come with the same key.

    Args:
        key: What is done, such as the place in the notebook; the same in every rank.
        target: A path that the work changes. Ranks that share it, by the partition or by the machine, share the work.
        action: Does it; returns an exit code.
    """
    root = records.records()
    if root is None:
        return action()
    scope = "partition" if records.is_shared(target) else platform.node()
    digest = hashlib.sha256(f"{key}\0{scope}\0{target}".encode()).hexdigest()[:16]
    attempt = "attempt-{}".format(records.number("HYPERPOD_ATTEMPT", 1))
    folder = os.path.join(root, "once", attempt)
    os.makedirs(folder, exist_ok=True)
    done_path = os.path.join(folder, digest + ".done.json")
    try:
        os.close(os.open(os.path.join(folder, digest + ".claim"), os.O_CREAT | os.O_EXCL, 0o644))
    except FileExistsError:
        return _wait(done_path, key)
    status = 1
    try:
        status = action()
    finally:
        records.write_json(done_path, {"key": key, "exit_code": status})
    return status


def _wait(done_path: str, key: str) -> int:
    started_at = reminded_at = time.monotonic()
    poll_s = POLL
    while True:
        # Opened anew each time: on NFS only that asks the server whether the file is there by now.
        try:
            with open(done_path, encoding="utf-8") as file:
                return int(json.load(file)["exit_code"])
        except FileNotFoundError:
            pass
        now = time.monotonic()
        if now - reminded_at > REMIND:
            reminded_at = now
            waited = int(now - started_at)
            print(f"hyperpod: waiting for another rank, {waited} s: {key}", file=sys.stderr)
        time.sleep(poll_s)
        # A thousand ranks that look all the time would be a load on the file system.
        poll_s = min(poll_s * 1.3, MAX_POLL_S)
