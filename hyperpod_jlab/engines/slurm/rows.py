"""Rows of squeue and sinfo as text that nothing in a field can fake or break.

Field names and letters are stable over all versions, and text is many times cheaper than JSON (research: 0.2 s against 3.3 s at 10,000 jobs). A job's
name or a node's reason may hold anything, newlines and control characters too. So fields that hold free text come last; where there are several, each
of them, like the row, ends with a mark made for that one call, which nobody can know who wrote the text.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from hyperpod_jlab.core.cluster import Resource

FIELD = "\x1f"
"""Between fields that hold no free text: ASCII's unit separator."""


@dataclass(frozen=True)
class Fields:
    """What a command is asked for: names here and there (man squeue and sinfo, ``-O``), those that hold free text apart."""

    plain: tuple[tuple[str, str], ...]
    free: tuple[tuple[str, str], ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names here, in order."""
        return tuple(here for here, _ in (*self.plain, *self.free))


def new_mark() -> str:
    """A mark that no user of the cluster can know before the call."""
    return f"\x1e{secrets.token_hex(6)}"


def row_format(mark: str, letters: Sequence[str]) -> str:
    """The ``-o`` format for these fields, such as ``%A``, of which the last one alone may hold free text."""
    return FIELD.join([mark, *letters])


def parse_rows(text: str, mark: str, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """The rows of a command that was given `row_format`."""
    for row in text.split(mark)[1:]:
        values = row.removesuffix("\n").split(FIELD, len(names))
        if len(values) == len(names) + 1:
            yield dict(zip(names, values[1:], strict=True))


def long_format(mark: str, fields: Fields) -> str:
    """The ``-O`` format for these fields. A colon without a width stands for as much as there is.

    The first field is not looked at: before it stands what a login node may have said before the first row.
    """
    *plain, last = (there for _, there in fields.plain)
    marked = [f"{there}:{mark}" for there in (last, *(there for _, there in fields.free))]
    return ",".join([f"Cluster:{mark}", *(f"{there}:{FIELD}" for there in plain), *marked])


def split_long(text: str, mark: str, fields: Fields) -> Iterator[tuple[str, ...]]:
    """The rows of a command that was given `long_format`, cut at the marks only: the plain fields in one, then each free text."""
    parts = text.split(mark)
    step = 2 + len(fields.free)
    for begin in range(1, len(parts) - step + 1, step):
        yield tuple(parts[begin : begin + step - 1])


def row_values(row: tuple[str, ...], fields: Fields) -> dict[str, str] | None:
    """The values of a row of `split_long` by name; None when it is not whole."""
    values = row[0].split(FIELD)
    if len(values) != len(fields.plain):
        return None
    return dict(zip(fields.names, (*values, *row[1:]), strict=True))


def parse_long(text: str, mark: str, fields: Fields) -> Iterator[dict[str, str]]:
    """The rows of a command that was given `long_format`. One that is not whole is left out: the command was cut off in it."""
    for row in split_long(text, mark, fields):
        values = row_values(row, fields)
        if values is not None:
            yield values


# --------------------------------------------------------------------------------------------------
# Slurm's lists of hosts: ``node[1-3,5],x[01-10]-ib`` and the names it stands for.

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


# --------------------------------------------------------------------------------------------------
# Generic resources: GPUs and other devices as Slurm writes them, as data.
#
# There are three ways of writing (man slurm.conf, srun, sinfo; 22.05 and 24.11 were seen to use all of them):
#
# - what a node has: ``gpu:h100:8(S:0-1),gpu:1g.10gb:7,shard:16,fpga:2``;
# - what is in use there: ``gpu:h100:2(IDX:0-1),shard:h100:2(1/1,0/1)``, with the devices' numbers or, for shards, used/all of each GPU;
# - what a job has or wants: ``gres:gpu:h100:2`` (22.05), ``gres/gpu:h100:2`` (from 23.02), ``cpu=4,gres/gpu=2,gres/gpu:h100=2`` (TRES).

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
