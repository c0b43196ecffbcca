"""Streams: which logs a run has, and how their files are called."""

from __future__ import annotations

import re
from typing import NamedTuple

_FILE = re.compile(r"node-(0|[1-9]\d{0,5})(?:\.rank-(0|[1-9]\d{0,5}))?\.log")
LAUNCHER_LINE = b"##hyperpod "
"""How the launcher's machine-readable lines in a node's own log begin, which are not shown."""

_ATTEMPT = re.compile(r"attempt-([1-9]\d{0,5})")


class Stream(NamedTuple):
    """One log of a run: a rank's output, or (local rank None) what the launcher itself printed on a node."""

    attempt: int
    node_rank: int
    local_rank: int | None

    @property
    def order(self) -> tuple[int, int, int]:
        """Where the stream stands among others: by attempt, then node, the node's own log before its ranks'."""
        return (self.attempt, self.node_rank, -1 if self.local_rank is None else self.local_rank)

    @property
    def file_name(self) -> str:
        """The log's name in its attempt's folder."""
        rank = "" if self.local_rank is None else f".rank-{self.local_rank}"
        return f"node-{self.node_rank}{rank}.log"

    @property
    def index_name(self) -> str:
        """The name of the time index beside the log."""
        return self.file_name.removesuffix(".log") + ".idx"

    @property
    def activity_key(self) -> str:
        """The stream's name in its node's activity record."""
        return "node" if self.local_rank is None else str(self.local_rank)

    def rank(self, processes_per_node: int) -> int | None:
        """The global rank, or None for a node's own log."""
        if self.local_rank is None:
            return None
        return self.node_rank * processes_per_node + self.local_rank


def stream_of(attempt: int, file_name: str) -> Stream | None:
    """The stream behind a file's name in an attempt's folder, or None when the file is no log."""
    match = _FILE.fullmatch(file_name)
    if match is None:
        return None
    node, local = match.groups()
    return Stream(attempt, int(node), None if local is None else int(local))


def attempt_folder(attempt: int) -> str:
    """The name of an attempt's folder under ``logs/``."""
    return f"attempt-{attempt}"


def attempt_of(folder_name: str) -> int | None:
    """The attempt behind a folder's name, or None when it is no attempt's."""
    match = _ATTEMPT.fullmatch(folder_name)
    return None if match is None else int(match.group(1))


def activity_name(node_rank: int) -> str:
    """The name of a node's activity record in an attempt's folder."""
    return f"node-{node_rank}.activity.json"
