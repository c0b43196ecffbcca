"""Rows of squeue and sinfo in a text format that no field value can forge or break.

Field names and letters are stable over all versions, and text is much cheaper than JSON (research:
0.2 s against 3.3 s at 10,000 jobs). A job's name or a node's reason may contain anything, including
newlines and control characters. So free text fields come last; if there are several, each of them
and the row end with a delimiter made for that one call, which the author of the text cannot know.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from hyperpod_jlab.core.cluster import Resource

FIELD = "\x1f"
"""Separates fields without free text: ASCII's unit separator."""


@dataclass(frozen=True)
class Fields:
    """The fields requested from a command: our names and Slurm's (man squeue and sinfo, ``-O``), free text fields apart."""

    fixed: tuple[tuple[str, str], ...]
    free: tuple[tuple[str, str], ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Our names, in order."""
        return tuple(name for name, _ in (*self.fixed, *self.free))


def new_delimiter() -> str:
    """A delimiter that no user of the cluster can know before the call."""
    return f"\x1e{secrets.token_hex(6)}"


def row_format(delimiter: str, letters: Sequence[str]) -> str:
    """The ``-o`` format for these fields, such as ``%A``; only the last one may contain free text."""
    return FIELD.join([delimiter, *letters])


def parse_rows(text: str, delimiter: str, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Parse the output of a command that ran with `row_format`."""
    for row in text.split(delimiter)[1:]:
        values = row.removesuffix("\n").split(FIELD, len(names))
        if len(values) == len(names) + 1:
            yield dict(zip(names, values[1:], strict=True))


def long_format(delimiter: str, fields: Fields) -> str:
    """The ``-O`` format for these fields. A colon without a width means unlimited width.

    The first field is ignored: it absorbs what a login node may print before the first row.
    """
    *fixed, last = (column for _, column in fields.fixed)
    delimited = [f"{column}:{delimiter}" for column in (last, *(column for _, column in fields.free))]
    return ",".join([f"Cluster:{delimiter}", *(f"{column}:{FIELD}" for column in fixed), *delimited])


def split_long(text: str, delimiter: str, fields: Fields) -> Iterator[tuple[str, ...]]:
    """Split the output of a command that ran with `long_format`, at the delimiters only: the plain fields as one item, then each free text."""
    parts = text.split(delimiter)
    step = 2 + len(fields.free)
    for start in range(1, len(parts) - step + 1, step):
        yield tuple(parts[start : start + step - 1])


def row_values(row: tuple[str, ...], fields: Fields) -> dict[str, str] | None:
    """The values of a row of `split_long` by name; None when the row is incomplete."""
    values = row[0].split(FIELD)
    if len(values) != len(fields.fixed):
        return None
    return dict(zip(fields.names, (*values, *row[1:]), strict=True))


def parse_long(text: str, delimiter: str, fields: Fields) -> Iterator[dict[str, str]]:
    """Parse the output of a command that ran with `long_format`. An incomplete row is dropped: the output was truncated there."""
    for row in split_long(text, delimiter, fields):
        values = row_values(row, fields)
        if values is not None:
            yield values


# --------------------------------------------------------------------------------------------------
# Slurm's host lists, such as ``node[1-3,5],x[01-10]-ib``, and their expansion.

_MAX_HOSTS = 100_000
"""Maximum number of names in one list: more than any cluster has, so that a broken list cannot fill the memory."""

_GROUP = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")


@lru_cache(maxsize=4096)
def expand(text: str) -> tuple[str, ...]:
    """Expand a host list, in order and without duplicates. Text that is not a list is returned as one name.

    A range keeps its leading zeros: ``x[08-10]`` is x08, x09, x10. Several brackets in a name
    multiply (man slurm.conf, NodeName).
    """
    names: dict[str, None] = {}
    for part in _parts(text):
        for name in _names(part):
            names[name] = None
    return tuple(names)


def _parts(text: str) -> list[str]:
    """Split the list at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        elif letter == "," and depth <= 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip() not in {"", "(null)", "None"}]


def _names(part: str) -> list[str]:
    match = _GROUP.search(part)
    if match is None:
        return [part]
    indices = _expand_range(match[1])
    if indices is None:
        return [part]
    head, tails = part[: match.start()], _names(part[match.end() :])
    if len(indices) * len(tails) > _MAX_HOSTS:
        return [part]
    return [f"{head}{number}{tail}" for number in indices for tail in tails]


def _expand_range(text: str) -> list[str] | None:
    """The numbers of ``1-3,5`` as names contain them, or None for another format."""
    indices: list[str] = []
    for range_text in text.split(","):
        match = _RANGE.fullmatch(range_text)
        if match is None:
            return None
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first) or int(last) - int(first) > _MAX_HOSTS - len(indices):
            return None
        indices += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return indices


# --------------------------------------------------------------------------------------------------
# Generic resources: parses GPUs and other devices from Slurm's formats.
#
# There are three formats (man slurm.conf, srun, sinfo; observed on 22.05 and 24.11):
#
# - what a node has: ``gpu:h100:8(S:0-1),gpu:1g.10gb:7,shard:16,fpga:2``;
# - what is in use there: ``gpu:h100:2(IDX:0-1),shard:h100:2(1/1,0/1)``, with the device indices or,
#   for shards, used/all of each GPU;
# - what a job has or requests: ``gres:gpu:h100:2`` (22.05), ``gres/gpu:h100:2`` (from 23.02),
#   ``cpu=4,gres/gpu=2,gres/gpu:h100=2`` (TRES).

ACCELERATORS = frozenset({"gpu", "neuron", "neuroncore", "neurondevice", "npu", "hpu", "tpu"})
"""Names of compute devices; others are licenses, bandwidth, disks and the like."""

SHARES = frozenset({"shard", "mps"})
"""Names of shares of GPUs."""

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
"""Multipliers of counts (man slurm.conf, Gres)."""

_COUNT = re.compile(r"(\d+)([kmgtp]?)", re.IGNORECASE)
_MAX_DEVICES = 100_000


@dataclass(frozen=True, slots=True)
class Gres:
    """Devices of one name and type.

    Attributes:
        name: Such as ``gpu``.
        type: Such as ``h100`` or ``1g.10gb``; None without one.
        count: How many.
        used_at: Device indices, if known.
        shares: Used and total shares of each GPU, if known.
    """

    name: str
    type: str | None
    count: int
    used_at: tuple[int, ...] = ()
    shares: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=4096)
def parse_gres(text: str) -> tuple[Gres, ...]:
    """Parse a node's devices, all or in use. Unreadable entries are skipped, because they must not hide the node."""
    parsed = [_parse_entry(entry) for entry in _entries(text)]
    return tuple(gres for gres in parsed if gres is not None)


@lru_cache(maxsize=4096)
def parse_tres(text: str) -> tuple[Gres, ...]:
    """The generic resources of a job; CPUs, memory and the like are skipped.

    A TRES list counts typed ones twice, as ``gres/gpu=2,gres/gpu:h100=2``; the typed counts are
    subtracted from the untyped total.
    """
    parsed = []
    for entry in _entries(text):
        if entry.startswith(("gres:", "gres/")):
            gres = _parse_entry(entry[5:].replace("=", ":"))
            if gres is not None:
                parsed.append(gres)
    return tuple(_without_totals(parsed))


def _without_totals(entries: Sequence[Gres]) -> list[Gres]:
    typed_counts: dict[str, int] = {}
    for gres in entries:
        if gres.type is not None:
            typed_counts[gres.name] = typed_counts.get(gres.name, 0) + gres.count
    remaining = [
        gres if gres.type is not None else replace(gres, count=gres.count - typed_counts.get(gres.name, 0))
        for gres in entries
    ]
    return [gres for gres in remaining if gres.type is not None or gres.count > 0 or gres.name not in typed_counts]


def times(entries: Iterable[Gres], factor: int) -> list[Gres]:
    """Multiply by a number of nodes or tasks."""
    return [replace(gres, count=gres.count * factor) for gres in entries]


def resources(available: Sequence[Gres], used: Sequence[Gres], *, is_usable: bool = True) -> list[Resource]:
    """A node's resources and how many are free, compute devices first.

    A GPU with a share in use is not free for a job that requests the whole GPU (man slurm.conf,
    gres/shard).

    Args:
        available: What the node has.
        used: The part in use.
        is_usable: Whether new jobs may start there.
    """
    used_by_key = {(gres.name, gres.type): gres for gres in used}
    shared = _shared_indices(available, used)
    resources_found = []
    for gres in available:
        used_gres = used_by_key.get((gres.name, gres.type)) or Gres(gres.name, gres.type, 0)
        shared_at = tuple(sorted(shared.get(gres.type, ()))) if gres.name == "gpu" else ()
        used_count = min(gres.count, used_gres.count + len(set(shared_at) - set(used_gres.used_at)))
        resources_found.append(
            Resource(
                name=gres.name,
                type=gres.type,
                total=gres.count,
                used=min(gres.count, _used_count(used_gres)),
                free=gres.count - used_count if is_usable else 0,
                used_at=used_gres.used_at if gres.name in ACCELERATORS else (),
                shared_at=tuple(number for number in shared_at if number not in used_gres.used_at),
                first=_first_index(available, gres) if gres.name in ACCELERATORS else None,
                accelerator=gres.name in ACCELERATORS,
            )
        )
    return sorted(resources_found, key=lambda gres: not gres.accelerator)


def _used_count(used_gres: Gres) -> int:
    return sum(share_counts[0] for share_counts in used_gres.shares) if used_gres.shares else used_gres.count


def _first_index(available: Sequence[Gres], target: Gres) -> int:
    """The index of a type's first device; devices of one name are numbered consecutively, in the order of gres.conf."""
    start = 0
    for gres in available:
        if gres is target:
            return start
        if gres.name == target.name:
            start += gres.count
    return start


def _shared_indices(available: Sequence[Gres], used: Sequence[Gres]) -> dict[str | None, set[int]]:
    """Indices of the GPUs with shares in use, by type."""
    first_indices = {gres.type: _first_index(available, gres) for gres in available if gres.name == "gpu"}
    shared_indices: dict[str | None, set[int]] = {}
    for used_gres in used:
        if used_gres.name not in SHARES:
            continue
        indices = {
            first_indices.get(used_gres.type, 0) + position
            for position, share_counts in enumerate(used_gres.shares)
            if share_counts[0] > 0
        }
        shared_indices.setdefault(used_gres.type, set()).update(indices, used_gres.used_at)
    return shared_indices


def _entries(text: str) -> list[str]:
    """Split the list at the commas outside of brackets."""
    entries, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth <= 0:
            entries.append(text[start:position])
            start = position + 1
    entries.append(text[start:])
    return [entry for entry in entries if entry not in {"", "N/A", "(null)"}]


def _parse_entry(entry: str) -> Gres | None:
    entry = entry.replace(":(null)", "")
    head, _, devices_text = entry.partition("(")
    name, *fields = head.split(":")
    count = 1
    if fields and (match := _COUNT.fullmatch(fields[-1])) is not None:
        count = int(match[1]) * _UNITS[match[2].lower()]
        fields.pop()
    fields = [field for field in fields if field != "no_consume"]
    if not name or len(fields) > 1:
        return None
    kind = fields[0] if fields else None
    used_at, shares = _devices(devices_text.rstrip(")"))
    return Gres(name, kind, count, used_at, shares)


def _devices(text: str) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Parse the brackets: ``IDX:0-2,5``, or ``1/1,0/2``. Sockets (``S:0-1``) are skipped."""
    if text.startswith("IDX:"):
        return _indices(text[4:]), ()
    shares = re.findall(r"(\d+)/(\d+)", text)
    return (), tuple((int(used), int(total)) for used, total in shares)


def _indices(text: str) -> tuple[int, ...]:
    indices: list[int] = []
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        end = int(last or first)
        if end - int(first) < _MAX_DEVICES:
            indices += range(int(first), end + 1)
    return tuple(indices)
