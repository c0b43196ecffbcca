"""What a run's ranks and nodes use: the launcher's samples (docs/bundle-format.md) as series on one time axis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field

from hyperpod_jlab.core.records import UnixTime
from hyperpod_jlab.core.wire import Time
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.big_records import Deadline, TooSlowError
from hyperpod_jlab.storage.bundle import visible_names
from hyperpod_jlab.storage.records import BundleReader

MAX_POINTS = 160
"""Points of a series. The launcher's longest interval is a 200th of the time that it has run, so each point has a sample."""

MAX_NODES = 8
"""Nodes in one answer."""

_MAX_BYTES = 4 << 20
_MAX_NAMES = 10_000
_MAX_ATTEMPTS = 20
"""Attempts without samples after which no older one is looked at."""
_MAX_SERIES = 2600
"""Series of a node: 1024 ranks and 128 GPUs."""
_ATTEMPT = re.compile(r"attempt-([1-9][0-9]{0,8})")
_FILE = re.compile(r"node-(0|[1-9][0-9]{0,5})\.resources\.jsonl")

Number = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
Index = Annotated[int, Field(ge=0, le=10_000_000)]


class _Gpu(BaseModel):
    index: Index
    name: Annotated[str, Field(max_length=200)] = ""
    memory: Number | None = None


class _Head(BaseModel):
    format: int
    cpus: Number | None = None
    memory: Number | None = None
    gpus: Annotated[list[_Gpu], Field(max_length=128)] = []


class _Sample(BaseModel):
    time: UnixTime
    cpu: Number | None = None
    memory: Number | None = None
    ranks: Annotated[list[tuple[Index, Number | None, Number | None]], Field(max_length=1024)] = []
    gpus: Annotated[list[tuple[Index, Number | None, Number | None]], Field(max_length=128)] = []


class _LogFolders(BaseModel):
    log_folders: Annotated[
        list[Annotated[str, Field(max_length=1000, pattern=r"^/[^\x00-\x1f\x7f]*$")]], Field(max_length=64)
    ]


@dataclass(frozen=True)
class ResourceSeries:
    """The course of one measure.

    Attributes:
        kind: CPUs that were busy, bytes of memory in use, percent of the time in which a GPU was busy, bytes of a GPU's memory in use.
        node_rank: The node.
        rank: The rank, whose child processes count too; null for a whole node or a GPU.
        gpu: The GPU's index on the node; null otherwise.
        name: The GPU's model; empty otherwise.
        values: A value for each point of the time axis; null if unknown. CPU and GPU: the mean of the samples, memory: their maximum.
        last: The newest sample.
        peak: The largest sample.
        limit: The largest possible value, if known.
    """

    kind: Literal["cpu", "memory", "gpu", "gpu_memory"]
    node_rank: int
    rank: int | None
    gpu: int | None
    name: str
    values: list[float | None]
    last: float | None
    peak: float | None
    limit: float | None


@dataclass(frozen=True)
class RunResources:
    """What one attempt of a run used over time.

    Attributes:
        attempt: The attempt; null if there are no samples.
        begin: The first point of the time axis.
        step_s: Seconds between two points.
        nodes: The nodes that have samples, by rank.
        series: The series of one node, or of the first 8.
    """

    attempt: int | None
    begin: Time | None
    step_s: float
    nodes: list[int]
    series: list[ResourceSeries]


def read_resources(
    bundle: BundleReader, attempt: int | None = None, node: int | None = None, deadline: Deadline | None = None
) -> RunResources:
    """The samples of one attempt, by default the newest that has some. May block.

    Args:
        bundle: The bundle of the run, or of an array's child.
        attempt: The attempt's number.
        node: Only the node of this rank.
        deadline: When to stop reading; default: in 10 s.

    Raises:
        NotFoundError: The run does not exist.
        DamagedBundleError: Its head cannot be read.
        TooSlowError: The samples cannot be read in time.
    """
    bundle.head()
    deadline = deadline or Deadline()
    for number in _attempts(bundle) if attempt is None else [attempt]:
        files = _files(bundle, number)
        chosen = [rank for rank in sorted(files) if node is None or rank == node][:MAX_NODES]
        samples = {rank: _read(bundle, number, files[rank], deadline) for rank in chosen}
        if deadline.is_over():
            raise TooSlowError(bundle.run_id)
        times = [[sample.time for sample in rows] for _, rows in samples.values()]
        if any(times):
            axis = _Axis.over([each for each in times if each])
            series = [one for rank, (head, rows) in samples.items() for one in _node_series(rank, head, rows, axis)]
            return RunResources(number, axis.begin, axis.step_s, sorted(files), series)
    return RunResources(None, None, 1.0, [], [])


def read_log_folders(bundle: BundleReader, attempt: int) -> dict[int, list[str]]:
    """The folders in which an attempt's programs write TensorBoard events, as the nodes name them, by node rank. May block.

    They come from the newest samples that have them, of the first 8 nodes that have samples.
    """
    files = _files(bundle, attempt)
    found = {}
    for rank in sorted(files)[:MAX_NODES]:
        path = bundle.records / "logs" / f"attempt-{attempt}" / files[rank]
        try:
            lines = descent.read(path, _MAX_BYTES).split(b"\n")
        except OSError:
            continue
        told = (line for line in reversed(lines) if b'"log_folders"' in line)
        sample = next(_valid(_LogFolders, told, Deadline(1.0)), None)
        if sample is not None:
            found[rank] = sample.log_folders
    return found


def _attempts(bundle: BundleReader) -> list[int]:
    """The attempts with logs, the newest first."""
    names = visible_names(bundle.records / "logs", _MAX_NAMES)
    return sorted((int(found[1]) for found in map(_ATTEMPT.fullmatch, names) if found), reverse=True)[:_MAX_ATTEMPTS]


def _files(bundle: BundleReader, attempt: int) -> dict[int, str]:
    names = visible_names(bundle.records / "logs" / f"attempt-{attempt}", _MAX_NAMES)
    return {int(found[1]): found[0] for found in map(_FILE.fullmatch, names) if found}


def _read(bundle: BundleReader, attempt: int, name: str, deadline: Deadline) -> tuple[_Head, list[_Sample]]:
    """A node's head and samples; lines that are not valid are left out, as is a file that cannot be read."""
    path = bundle.records / "logs" / f"attempt-{attempt}" / name
    try:
        lines = descent.read(path, _MAX_BYTES).split(b"\n")
    except OSError:
        return _Head(format=1), []
    heads = list(_valid(_Head, lines[:1], deadline))
    samples = sorted(_valid(_Sample, lines[1:], deadline), key=lambda sample: sample.time)
    return (heads[0] if heads else _Head(format=1)), samples


Row = TypeVar("Row", bound=BaseModel)


def _valid(kind: type[Row], lines: Iterable[bytes], deadline: Deadline) -> Iterator[Row]:
    for line in filter(None, lines):
        if deadline.is_over():
            return
        try:
            yield kind.model_validate_json(line)
        except ValueError:
            continue


@dataclass(frozen=True)
class _Axis:
    """Points at equal distances (Unix seconds)."""

    begin: float
    step_s: float
    count: int

    @classmethod
    def over(cls, times: Sequence[Sequence[float]]) -> _Axis:
        """The axis of the samples of each node: where nodes are sampled alike, each has a sample at most points."""
        begin, end = min(map(min, times)), max(map(max, times))
        count = max(2, min(MAX_POINTS, max(map(len, times))))
        return cls(begin, max((end - begin) / (count - 1), 0.001), count)

    def spread(self, points: Sequence[tuple[float, float]], *, largest: bool) -> list[float | None]:
        """Samples (time, value) on the axis: the largest at each point, or the mean."""
        values: list[list[float]] = [[] for _ in range(self.count)]
        for time, value in points:
            values[min(self.count - 1, round((time - self.begin) / self.step_s))].append(value)
        return [None if not each else max(each) if largest else round(sum(each) / len(each), 3) for each in values]


def _node_series(node_rank: int, head: _Head, samples: Sequence[_Sample], axis: _Axis) -> Iterator[ResourceSeries]:
    """A node's series: its own, then those of its ranks, then those of its GPUs."""
    points: dict[tuple[Any, ...], list[tuple[float, float]]] = {}

    def add(key: tuple[Any, ...], time: float, value: float | None) -> None:
        if value is not None and (key in points or len(points) < _MAX_SERIES):
            points.setdefault(key, []).append((time, value))

    for sample in samples:
        add(("cpu", -1, -1), sample.time, sample.cpu)
        add(("memory", -1, -1), sample.time, sample.memory)
        for rank, cpu, memory in sample.ranks:
            add(("cpu", rank, -1), sample.time, cpu)
            add(("memory", rank, -1), sample.time, memory)
        for index, utilization, memory in sample.gpus:
            add(("gpu", -1, index), sample.time, utilization)
            add(("gpu_memory", -1, index), sample.time, memory)
    gpus = {gpu.index: gpu for gpu in head.gpus}
    for (kind, rank, index), series in sorted(points.items(), key=lambda item: item[0][1:]):
        gpu = gpus.get(index)
        limits = {"cpu": head.cpus, "memory": head.memory, "gpu": 100.0, "gpu_memory": gpu.memory if gpu else None}
        yield ResourceSeries(
            kind=kind,
            node_rank=node_rank,
            rank=None if rank < 0 else rank,
            gpu=None if index < 0 else index,
            name=gpu.name if gpu else "",
            values=axis.spread(series, largest=kind in {"memory", "gpu_memory"}),
            last=series[-1][1],
            peak=max(value for _, value in series),
            limit=None if rank >= 0 else limits[kind],
        )
