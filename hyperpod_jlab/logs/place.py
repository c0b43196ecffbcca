"""Places: where one stands in one source, recognisable again later and elsewhere."""

from __future__ import annotations

from binascii import crc32
from functools import lru_cache
from typing import NamedTuple

TAIL = 64
"""How many bytes before a place are used to recognise it."""


class Place(NamedTuple):
    """A place in a source: `offset` bytes were read, and `check` tells whether they are still there.

    The check is the source's own affair; an empty one is not checked. For a file it stands for the file's identity and the
    last bytes before the place, so that a file which was replaced, or cut and written anew, is noticed whenever one comes back.
    """

    offset: int = 0
    check: str = ""


START = Place()
"""Where every source begins."""


def check_of(identity: int, before: bytes) -> str:
    """The check of a place.

    Args:
        identity: Number that tells one file (or container) from the next under the same name.
        before: The last `TAIL` bytes before the place, or all when there are fewer.
    """
    return f"{identity_of(identity)}{crc32(before) & 0xFFFF:04x}"


@lru_cache(maxsize=1024)
def identity_of(identity: int) -> str:
    """The part of a check that tells one file from the next."""
    return f"{crc32(identity.to_bytes(8, 'little')) & 0xFF:02x}"


def same_source(check: str, identity: int) -> bool:
    """Whether a place with this check may lie in that very file, whatever became of its bytes."""
    return not check or check.startswith(identity_of(identity))
