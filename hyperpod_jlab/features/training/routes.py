"""Requests about what runs print: curves that are followed, the newest numbers of many runs, comparison."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.metric_names import main_name
from hyperpod_jlab.features.training.service import Comparison, compare_runs
from hyperpod_jlab.run.metrics import MetricSeries, MetricSummary, RunMetrics
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import CommaSeparated, RequestModel
from hyperpod_jlab.storage.big_records import Deadline

_LOOK_EVERY_S = 0.1
_SPARK_POINTS = 40


class SeriesQuery(RequestModel):
    """Which series, how many points, and how long to wait for new ones."""

    name: Annotated[list[str], CommaSeparated] = Field(default_factory=list)
    """Only series with these names; repeat the parameter or separate values with commas."""
    rank: Annotated[list[int], CommaSeparated] = Field(default_factory=list)
    """Only series of these ranks."""
    most: Annotated[int, Field(ge=4, le=10_000)] = 1000
    """Points of each series. Of more, the lowest and the highest of equal parts are chosen."""
    begin: Annotated[float | None, Field(ge=0)] = None
    """Only points from this Unix time on."""
    end: Annotated[float | None, Field(ge=0)] = None
    """Only points until this Unix time."""
    cursor: Annotated[str | None, Field(max_length=64)] = None
    """Only points after an earlier answer: its `cursor`."""
    wait: Annotated[float, Field(ge=0, le=20)] = 0
    """With `cursor`: seconds to wait for new points."""


@dataclass(frozen=True)
class RunSeries:
    """What the ranks of a run print.

    Attributes:
        cursor: Continue after this answer with it.
        is_whole: Whether these are all points and not only new ones: the request had no cursor, or an unknown one.
    """

    run_id: str
    cursor: str
    is_whole: bool
    summary: MetricSummary
    series: list[MetricSeries]


async def show_series(call: Call, run_id: str, query: SeriesQuery) -> RunSeries:
    """Get the numbers that a run's ranks print, as series. With `cursor` and `wait`, the answer comes as soon as there are new ones.

    Of very long records, an answer has what was read in 10 s; those that follow, with its `cursor`, have the rest.
    """
    hyperpod = await call.hyperpod()
    metrics = await asyncio.to_thread(hyperpod.metrics.get, run_id)
    await hyperpod.big_reads.run(metrics.refresh)
    known = metrics.known(query.cursor)
    if known and query.cursor == metrics.cursor:
        await _wait(hyperpod, metrics, query.wait)
    series, cursor = await asyncio.to_thread(
        metrics.read,
        query.name,
        query.rank,
        most=query.most,
        begin=query.begin,
        end=query.end,
        cursor=query.cursor if known else None,
    )
    summary = await asyncio.to_thread(metrics.summary, ended=False)
    return RunSeries(run_id, cursor, not known, summary, series)


async def _wait(hyperpod: Hyperpod, metrics: RunMetrics, seconds: float) -> None:
    """Wait for new records; the more nodes, the less often the files are looked at."""
    end, cursor = time.monotonic() + seconds, metrics.cursor
    while time.monotonic() < end:
        await asyncio.sleep(_LOOK_EVERY_S * (1 + metrics.nodes / 8))
        await hyperpod.big_reads.run(metrics.refresh)
        if metrics.cursor != cursor:  # another request may have read the new records
            return


class SummariesQuery(RequestModel):
    """Which runs."""

    run: Annotated[list[str], CommaSeparated, Field(min_length=1, max_length=100)]
    """The runs; repeat the parameter or separate values with commas."""


@dataclass(frozen=True)
class RunNumbers:
    """The newest numbers of a run, and the course of the most important one.

    Attributes:
        course_name: The name of the course: loss, or what comes nearest; null without any.
        course: Its values at equal distances, the newest last; null where it was not finite.
    """

    run_id: str
    summary: MetricSummary
    course_name: str | None = None
    course: list[float | None] = field(default_factory=list)


@dataclass(frozen=True)
class Summaries:
    """The newest numbers of runs; those that have none, or cannot be read, are missing."""

    runs: list[RunNumbers]


async def list_summaries(call: Call, query: SummariesQuery) -> Summaries:
    """Get the newest numbers of several runs."""
    hyperpod = await call.hyperpod()
    found = await hyperpod.big_reads.run(
        lambda deadline: [_numbers(hyperpod, run_id, deadline) for run_id in query.run]
    )
    return Summaries([one for one in found if one is not None])


def _numbers(hyperpod: Hyperpod, run_id: str, deadline: Deadline) -> RunNumbers | None:
    try:
        metrics = hyperpod.metrics.get(run_id)
        metrics.refresh(deadline)
    except HyperpodError:
        return None
    summary = metrics.summary(ended=False)
    if not summary.metrics and not summary.alarms:
        return None
    name = main_name(summary.metrics)
    if name is None:
        return RunNumbers(run_id, summary)
    return RunNumbers(run_id, summary, name, metrics.course(name, _SPARK_POINTS))


class CompareQuery(RequestModel):
    """Which runs."""

    run: Annotated[list[str], CommaSeparated, Field(min_length=2, max_length=20)]
    """The runs; repeat the parameter or separate values with commas."""


async def compare(call: Call, query: CompareQuery) -> Comparison:
    """Compare runs: settings and files of the code that differ, and their numbers."""
    return await compare_runs(await call.hyperpod(), query.run)
