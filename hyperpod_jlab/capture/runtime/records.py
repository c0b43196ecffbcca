"""This rank's place in the job, and how it writes records: to a temporary name, then renamed, so that no reader sees half of one."""

from __future__ import annotations

import json
import os
import uuid
from typing import Any

PACKAGE = os.path.dirname(os.path.abspath(__file__))
CODE = os.path.dirname(PACKAGE)
BUNDLE = os.path.dirname(CODE)


def number(name: str, default: int = 0) -> int:
    """A number from the rank's environment."""
    try:
        return int(os.environ.get(name, ""))
    except ValueError:
        return default


def rank() -> int:
    """The rank of this process among all of the job."""
    return number("RANK")


def records() -> str | None:
    """The folder of the run's records; None when this is no job, but somebody who tries the code by hand."""
    return os.environ.get("HYPERPOD_RECORDS") or None


def attempt_folder() -> str | None:
    """The folder of this attempt's records, or None."""
    root = records()
    if root is None:
        return None
    return os.path.join(root, "status", "attempt-{}".format(number("HYPERPOD_ATTEMPT", 1)))


def partition() -> str:
    """The root of the storage partition: what lies below it is the same on all nodes."""
    bundle = os.environ.get("HYPERPOD_BUNDLE") or BUNDLE
    # <partition>/.hyperpod/runs/<shard>/<run_id>
    folder = os.path.realpath(bundle)
    for _ in range(4):
        folder = os.path.dirname(folder)
    return folder


def is_shared(path: str) -> bool:
    """Whether a path lies on the storage partition."""
    root = partition()
    return root != os.sep and os.path.realpath(path).startswith(root + os.sep)


def write_bytes(path: str, data: bytes) -> None:
    """Write a file whole, over whatever is there."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{uuid.uuid4().hex[:12]}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def write_json(path: str, document: Any) -> None:
    """Write a JSON document whole."""
    write_bytes(path, json.dumps(document).encode("utf-8"))
