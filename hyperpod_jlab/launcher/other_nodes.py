"""The newest steps of the other nodes' ranks, from the ends of their nodes' files of numbers."""

from __future__ import annotations

import json
import os
import stat
from typing import Dict

from .bundle_files import AttemptPaths

MAX_COMPARED_NODES = 4096
END_BYTES, END_BYTES_OF_RANK = 4096, 512
"""Bytes that are read at the end of a file: at least, and for each of its ranks."""
STEP_LIMIT = 1 << 53


def newest_steps(attempt_paths: AttemptPaths, nodes: int, processes: int) -> Dict[int, int]:
    """The newest step of each rank that reported one, on all nodes other than this one."""
    found: Dict[int, int] = {}
    length = max(END_BYTES, END_BYTES_OF_RANK * processes)
    for node in range(min(nodes, MAX_COMPARED_NODES)):
        if node != attempt_paths.node_rank:
            data = _read_end(attempt_paths.metrics_path(node), length)
            found.update(_steps_of_node(data, range(node * processes, (node + 1) * processes)))
    return found


def _read_end(path: str, length: int) -> bytes:
    """The last whole lines of a file; nothing of what is no file."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags)
        try:
            status = os.fstat(descriptor)
            start = max(0, status.st_size - length)
            data = os.pread(descriptor, length, start) if stat.S_ISREG(status.st_mode) else b""
        finally:
            os.close(descriptor)
    except OSError:
        return b""
    return data.partition(b"\n")[2] if start else data


def _steps_of_node(data: bytes, ranks: range) -> Dict[int, int]:
    """Whatever the file says, it is about the ranks of its own node."""
    found: Dict[int, int] = {}
    for line in data.split(b"\n")[:-1]:
        try:
            document = json.loads(line)
            rank, step = document["rank"], document["step"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if type(rank) is int and rank in ranks and type(step) is int and 0 <= step < STEP_LIMIT:
            found[rank] = step
    return found
