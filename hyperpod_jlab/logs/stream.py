"""Streams: the logs of a run, and the names of their files."""

from __future__ import annotations

import re
from binascii import crc32
from functools import lru_cache
from typing import NamedTuple

_CHILD_FACTOR = 1 << 40
_ATTEMPT_FACTOR = 1 << 20

_FILE = re.compile(r"node-(0|[1-9]\d{0,5})(?:\.rank-(0|[1-9]\d{0,5}))?\.log")
LAUNCHER_LINE = b"##hyperpod "
"""Prefix of the launcher's machine-readable lines in a node's own log, which are hidden."""

_ATTEMPT = re.compile(r"attempt-([1-9]\d{0,5})")


class Stream(NamedTuple):
    """One log of a run: a rank's output, or (local rank None) the launcher's own output on a node.

    In an array, the node rank of a child's stream also encodes the child and its attempt
    (`in_array`): the children's attempts are independent, so their lines are merged as one
    attempt's.
    """

    attempt: int
    node_rank: int
    local_rank: int | None

    @property
    def child(self) -> int | None:
        """The array's child that the stream belongs to; None for a stream of the run itself."""
        return None if self.node_rank < _CHILD_FACTOR else self.node_rank // _CHILD_FACTOR - 1

    @property
    def without_child(self) -> Stream:
        """The stream as its own run sees it."""
        if self.node_rank < _CHILD_FACTOR:
            return self
        attempt, node_rank = divmod(self.node_rank % _CHILD_FACTOR, _ATTEMPT_FACTOR)
        return Stream(attempt, node_rank, self.local_rank)

    def in_array(self, index: int) -> Stream:
        """The stream of an array's child as the array sees it; `without_child` reverts it."""
        packed = (index + 1) * _CHILD_FACTOR + self.attempt * _ATTEMPT_FACTOR + self.node_rank
        return Stream(1, packed, self.local_rank)

    @property
    def sort_key(self) -> tuple[int, int, int]:
        """The stream's order: by attempt, then node, the node's own log before its ranks'."""
        return (self.attempt, self.node_rank, -1 if self.local_rank is None else self.local_rank)

    @property
    def file_name(self) -> str:
        """The log's file name in its attempt's folder."""
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
        return self.without_child.node_rank * processes_per_node + self.local_rank

    def prefix(self, rank: int | None) -> str:
        """The prefix of its lines: ``3|``, or ``node0|`` for a node's own log; ``2.3|`` for an array's child."""
        name = f"node{self.without_child.node_rank}" if rank is None else str(rank)
        return f"{name}|" if self.child is None else f"{self.child}.{name}|"


def parse_stream(attempt: int, file_name: str) -> Stream | None:
    """Parse a file name in an attempt's folder; None when the file is not a log."""
    match = _FILE.fullmatch(file_name)
    if match is None:
        return None
    node, local = match.groups()
    return Stream(attempt, int(node), None if local is None else int(local))


def attempt_folder(attempt: int) -> str:
    """The name of an attempt's folder under ``logs/``."""
    return f"attempt-{attempt}"


def parse_attempt(folder_name: str) -> int | None:
    """Parse the name of an attempt's folder; None for another folder."""
    match = _ATTEMPT.fullmatch(folder_name)
    return None if match is None else int(match.group(1))


def activity_name(node_rank: int) -> str:
    """The name of a node's activity record in an attempt's folder."""
    return f"node-{node_rank}.activity.json"


# --------------------------------------------------------------------------------------------------
# Positions in a source, which can be recognised later and elsewhere.

CHECK_BYTES = 64
"""Number of bytes before a position that identify it."""


class Position(NamedTuple):
    """A position in a source: `offset` bytes were read, and `check` tells whether they are unchanged.

    The source defines the check; an empty one is not checked. For a file it is made of the file's
    identity and the last bytes before the position, so that a replaced or rewritten file is
    detected.
    """

    offset: int = 0
    check: str = ""


START_POSITION = Position()
"""The start of every source."""


def build_check(identity: int, preceding: bytes) -> str:
    """The check of a position.

    Args:
        identity: Identifies one file (or container) among others of the same name.
        preceding: The last `CHECK_BYTES` bytes before the position, or all when there are fewer.
    """
    return f"{format_identity(identity)}{crc32(preceding) & 0xFFFF:04x}"


@lru_cache(maxsize=1024)
def format_identity(identity: int) -> str:
    """The part of a check that identifies the file."""
    return f"{crc32(identity.to_bytes(8, 'little')) & 0xFF:02x}"


def same_source(check: str, identity: int) -> bool:
    """Whether a position with this check may be in this very file, even if its bytes have changed."""
    return not check or check.startswith(format_identity(identity))
