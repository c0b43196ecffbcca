"""Streams: which logs a run has, and how their files are called."""

from __future__ import annotations

import re
from binascii import crc32
from functools import lru_cache
from typing import NamedTuple

_CHILD_FACTOR = 1 << 40
_ATTEMPT_FACTOR = 1 << 20

_FILE = re.compile(r"node-(0|[1-9]\d{0,5})(?:\.rank-(0|[1-9]\d{0,5}))?\.log")
LAUNCHER_LINE = b"##hyperpod "
"""How the launcher's machine-readable lines in a node's own log begin, which are not shown."""

_ATTEMPT = re.compile(r"attempt-([1-9]\d{0,5})")


class Stream(NamedTuple):
    """One log of a run: a rank's output, or (local rank None) what the launcher itself printed on a node.

    Seen from an array, a child's stream has its child and attempt in its node rank (`in_array`): children's attempts
    have nothing to do with each other, so their lines are merged as if they were one attempt's.
    """

    attempt: int
    node_rank: int
    local_rank: int | None

    @property
    def child(self) -> int | None:
        """The array's child that the stream belongs to; None for a stream that its own run looks at."""
        return None if self.node_rank < _CHILD_FACTOR else self.node_rank // _CHILD_FACTOR - 1

    @property
    def without_child(self) -> Stream:
        """The stream as its own run sees it."""
        if self.node_rank < _CHILD_FACTOR:
            return self
        attempt, node_rank = divmod(self.node_rank % _CHILD_FACTOR, _ATTEMPT_FACTOR)
        return Stream(attempt, node_rank, self.local_rank)

    def in_array(self, index: int) -> Stream:
        """The stream of an array's child as the array sees it; `own` leads back."""
        packed = (index + 1) * _CHILD_FACTOR + self.attempt * _ATTEMPT_FACTOR + self.node_rank
        return Stream(1, packed, self.local_rank)

    @property
    def sort_key(self) -> tuple[int, int, int]:
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
        return self.without_child.node_rank * processes_per_node + self.local_rank

    def prefix(self, rank: int | None) -> str:
        """What its lines stand behind: ``3|``, or ``node0|`` for a node's own log; of an array's child ``2.3|``."""
        name = f"node{self.without_child.node_rank}" if rank is None else str(rank)
        return f"{name}|" if self.child is None else f"{self.child}.{name}|"


def parse_stream(attempt: int, file_name: str) -> Stream | None:
    """The stream behind a file's name in an attempt's folder, or None when the file is no log."""
    match = _FILE.fullmatch(file_name)
    if match is None:
        return None
    node, local = match.groups()
    return Stream(attempt, int(node), None if local is None else int(local))


def attempt_folder(attempt: int) -> str:
    """The name of an attempt's folder under ``logs/``."""
    return f"attempt-{attempt}"


def parse_attempt(folder_name: str) -> int | None:
    """The attempt behind a folder's name, or None when it is no attempt's."""
    match = _ATTEMPT.fullmatch(folder_name)
    return None if match is None else int(match.group(1))


def activity_name(node_rank: int) -> str:
    """The name of a node's activity record in an attempt's folder."""
    return f"node-{node_rank}.activity.json"


# --------------------------------------------------------------------------------------------------
# Places: where one stands in one source, recognisable again later and elsewhere.

CHECK_BYTES = 64
"""How many bytes before a place are used to recognise it."""


class Position(NamedTuple):
    """A place in a source: `offset` bytes were read, and `check` tells whether they are still there.

    The check is the source's own affair; an empty one is not checked. For a file it stands for the file's identity and the
    last bytes before the place, so that a file which was replaced, or cut and written anew, is noticed whenever one comes back.
    """

    offset: int = 0
    check: str = ""


START_POSITION = Position()
"""Where every source begins."""


def build_check(identity: int, preceding: bytes) -> str:
    """The check of a place.

    Args:
        identity: Number that tells one file (or container) from the next under the same name.
        preceding: The last `TAIL` bytes before the place, or all when there are fewer.
    """
    return f"{format_identity(identity)}{crc32(preceding) & 0xFFFF:04x}"


@lru_cache(maxsize=1024)
def format_identity(identity: int) -> str:
    """The part of a check that tells one file from the next."""
    return f"{crc32(identity.to_bytes(8, 'little')) & 0xFF:02x}"


def same_source(check: str, identity: int) -> bool:
    """Whether a place with this check may lie in that very file, whatever became of its bytes."""
    return not check or check.startswith(format_identity(identity))
