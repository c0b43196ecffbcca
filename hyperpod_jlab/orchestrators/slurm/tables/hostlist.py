"""Slurm's lists of hosts: ``node[1-3,5],x[01-10]-ib`` and the names it stands for."""

from __future__ import annotations

import re
from functools import lru_cache

_MOST = 100_000
"""Names that one list may stand for: more than any cluster has, so that a broken list cannot fill the memory."""

_GROUP = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")


@lru_cache(maxsize=4096)
def expand(text: str) -> tuple[str, ...]:
    """The names of a list of hosts, in its order and each once. What is no list is one name as it stands.

    A range keeps its zeros in front: ``x[08-10]`` is x08, x09, x10. Several brackets in a name multiply (man slurm.conf, NodeName).
    """
    names: dict[str, None] = {}
    for part in _parts(text):
        for name in _names(part):
            names[name] = None
    return tuple(names)


def _parts(text: str) -> list[str]:
    """The list cut at the commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        elif letter == "," and depth <= 0:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return [part.strip() for part in parts if part.strip() not in {"", "(null)", "None"}]


def _names(part: str) -> list[str]:
    found = _GROUP.search(part)
    if found is None:
        return [part]
    numbers = _numbers(found[1])
    if numbers is None:
        return [part]
    head, tails = part[: found.start()], _names(part[found.end() :])
    if len(numbers) * len(tails) > _MOST:
        return [part]
    return [f"{head}{number}{tail}" for number in numbers for tail in tails]


def _numbers(text: str) -> list[str] | None:
    """The numbers of ``1-3,5`` as they are written in names, or None when that is not what it is."""
    numbers: list[str] = []
    for piece in text.split(","):
        found = _RANGE.fullmatch(piece)
        if found is None:
            return None
        first, last = found[1], found[2] or found[1]
        if int(last) < int(first) or int(last) - int(first) > _MOST - len(numbers):
            return None
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return numbers
