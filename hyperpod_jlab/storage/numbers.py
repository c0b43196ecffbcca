"""User numbers as file servers and other machines know them, whatever user namespace this process is in (user_namespaces(7)).

In Studio the user 1000 of every space is 200001, or the user profile's own number, on file systems; and the kernel shows all users that are not in the namespace as one number.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

_MAP = Path("/proc/self/uid_map")
_EVERYBODY = ((0, 0, 4_294_967_295),)

UNSEEN = 65_534
"""What the kernel shows as owner when that is not in the namespace (``/proc/sys/kernel/overflowuid``)."""


def own_number() -> int:
    """This process's user."""
    return number_outside(os.getuid())


def number_outside(uid: int) -> int:
    """A user's number outside this process's user namespace; one that is not in it stays as it is."""
    for inside, outside, count in _mapping():
        if inside <= uid < inside + count:
            return outside + uid - inside
    return uid


def is_number(uid: int, number: int) -> bool:
    """Whether an owner that the kernel shows is the user with a number, or, in a user namespace that does not have that user, may be."""
    if number_outside(uid) == number:
        return uid != UNSEEN or not is_unseen(uid)
    return is_unseen(uid) and number != own_number()


def is_unseen(uid: int) -> bool:
    """Whether an owner that the kernel shows stands for any user outside of this process's user namespace."""
    return uid == UNSEEN and _mapping() != _EVERYBODY


@functools.lru_cache(maxsize=1)
def _mapping() -> tuple[tuple[int, int, int], ...]:
    try:
        lines = _MAP.read_text(encoding="ascii").splitlines()
        return tuple((int(a), int(b), int(c)) for a, b, c in map(str.split, lines))
    except (OSError, ValueError):
        return _EVERYBODY
