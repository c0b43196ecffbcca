"""Generic resources: GPUs and other devices as Slurm writes them, as data.

There are three ways of writing (man slurm.conf, srun, sinfo; 22.05 and 24.11 were seen to use all of them):

- what a node has: ``gpu:h100:8(S:0-1),gpu:1g.10gb:7,shard:16,fpga:2``;
- what is in use there: ``gpu:h100:2(IDX:0-1),shard:h100:2(1/1,0/1)``, with the devices' numbers or, for shards, used/all of each GPU;
- what a job has or wants: ``gres:gpu:h100:2`` (22.05), ``gres/gpu:h100:2`` (from 23.02), ``cpu=4,gres/gpu=2,gres/gpu:h100=2`` (TRES).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from hyperpod_jlab.model.cluster import Resource

ACCELERATORS = frozenset({"gpu", "neuron", "neuroncore", "neurondevice", "npu", "hpu", "tpu"})
"""Names of those that compute; others are licenses, bandwidth, disks and the like."""

SHARES = frozenset({"shard", "mps"})
"""Names of those that are parts of GPUs."""

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
"""Factors of counts (man slurm.conf, Gres)."""

_COUNT = re.compile(r"(\d+)([kmgtp]?)", re.IGNORECASE)
_MOST_DEVICES = 100_000


@dataclass(frozen=True, slots=True)
class Gres:
    """Some devices of one name and type.

    Attributes:
        name: Such as ``gpu``.
        type: Such as ``h100`` or ``1g.10gb``; None without one.
        count: How many.
        used_at: Numbers of the devices, where they are said.
        shares: Used and all shares of each GPU, where they are said.
    """

    name: str
    type: str | None
    count: int
    used_at: tuple[int, ...] = ()
    shares: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=4096)
def parse_gres(text: str) -> tuple[Gres, ...]:
    """What a node has, or what of it is in use. What cannot be read is left out: it must not hide the node."""
    found = [_one(entry) for entry in _entries(text)]
    return tuple(one for one in found if one is not None)


@lru_cache(maxsize=4096)
def parse_tres(text: str) -> tuple[Gres, ...]:
    """The generic resources of a job; its CPUs, memory and the like are passed over.

    A TRES list names typed ones twice, as ``gres/gpu=2,gres/gpu:h100=2``: the untyped sum is left out as far as the types explain it.
    """
    found = []
    for entry in _entries(text):
        if entry.startswith(("gres:", "gres/")):
            one = _one(entry[5:].replace("=", ":"))
            if one is not None:
                found.append(one)
    return tuple(_once(found))


def _once(found: Sequence[Gres]) -> list[Gres]:
    typed: dict[str, int] = {}
    for one in found:
        if one.type is not None:
            typed[one.name] = typed.get(one.name, 0) + one.count
    left = [
        one if one.type is not None else replace(one, count=one.count - typed.get(one.name, 0))
        for one in found
    ]
    return [one for one in left if one.type is not None or one.count > 0 or one.name not in typed]


def times(found: Iterable[Gres], factor: int) -> list[Gres]:
    """As many on each of so many nodes or tasks."""
    return [replace(one, count=one.count * factor) for one in found]


def resources(has: Sequence[Gres], used: Sequence[Gres], *, usable: bool = True) -> list[Resource]:
    """What a node has and what of it is free, those that compute first.

    A GPU of which only a share is in use is not free for a job that wants the whole of it (man slurm.conf, gres/shard).

    Args:
        has: What the node has.
        used: What of it is in use.
        usable: Whether new jobs may start there.
    """
    by_key = {(one.name, one.type): one for one in used}
    shared = _shared(has, used)
    listed = []
    for one in has:
        use = by_key.get((one.name, one.type)) or Gres(one.name, one.type, 0)
        at = tuple(sorted(shared.get(one.type, ()))) if one.name == "gpu" else ()
        taken = min(one.count, use.count + len(set(at) - set(use.used_at)))
        listed.append(
            Resource(
                name=one.name,
                type=one.type,
                total=one.count,
                used=min(one.count, _share_count(use)),
                free=one.count - taken if usable else 0,
                used_at=use.used_at if one.name in ACCELERATORS else (),
                shared_at=tuple(number for number in at if number not in use.used_at),
                first=_first(has, one) if one.name in ACCELERATORS else None,
                accelerator=one.name in ACCELERATORS,
            )
        )
    return sorted(listed, key=lambda one: not one.accelerator)


def _share_count(use: Gres) -> int:
    return sum(share[0] for share in use.shares) if use.shares else use.count


def _first(has: Sequence[Gres], wanted: Gres) -> int:
    """The number of the first device of a type: those of one name are numbered through, in the order of gres.conf."""
    begin = 0
    for one in has:
        if one is wanted:
            return begin
        if one.name == wanted.name:
            begin += one.count
    return begin


def _shared(has: Sequence[Gres], used: Sequence[Gres]) -> dict[str | None, set[int]]:
    """Numbers of the GPUs that jobs have shares of, by type."""
    begins = {one.type: _first(has, one) for one in has if one.name == "gpu"}
    found: dict[str | None, set[int]] = {}
    for use in used:
        if use.name not in SHARES:
            continue
        numbers = {
            begins.get(use.type, 0) + at for at, share in enumerate(use.shares) if share[0] > 0
        }
        found.setdefault(use.type, set()).update(numbers, use.used_at)
    return found


def _entries(text: str) -> list[str]:
    """The list cut at the commas outside of brackets."""
    entries, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth <= 0:
            entries.append(text[begin:at])
            begin = at + 1
    entries.append(text[begin:])
    return [entry for entry in entries if entry not in {"", "N/A", "(null)"}]


def _one(entry: str) -> Gres | None:
    entry = entry.replace(":(null)", "")
    plain, _, rest = entry.partition("(")
    name, *words = plain.split(":")
    count = 1
    if words and (found := _COUNT.fullmatch(words[-1])) is not None:
        count = int(found[1]) * _UNITS[found[2].lower()]
        words.pop()
    words = [word for word in words if word != "no_consume"]
    if not name or len(words) > 1:
        return None
    kind = words[0] if words else None
    used_at, shares = _devices(rest.rstrip(")"))
    return Gres(name, kind, count, used_at, shares)


def _devices(text: str) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """What is in the brackets: ``IDX:0-2,5``, or ``1/1,0/2``. Sockets (``S:0-1``) are passed over."""
    if text.startswith("IDX:"):
        return _indices(text[4:]), ()
    shares = re.findall(r"(\d+)/(\d+)", text)
    return (), tuple((int(used), int(total)) for used, total in shares)


def _indices(text: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        end = int(last or first)
        if end - int(first) < _MOST_DEVICES:
            numbers += range(int(first), end + 1)
    return tuple(numbers)
