"""Differences between runs: settings, files of the code, last and best numbers."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.run.files import SentCode
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage.big_records import Deadline, TooSlowError
from hyperpod_jlab.storage.records import BundleReader

MAX_RUNS = 20
_OURS = frozenset({"launcher.py"})
"""Files that every run gets, whatever its code."""
_MAX_FILES = 200
_MAX_DIFF_LINES = 400
_MAX_LINES = 5000
"""Lines of a file that is compared: the time grows with their square."""


@dataclass(frozen=True)
class SettingDifference:
    """A setting that is not the same in all runs: its place in the spec, and its value in each run, as JSON."""

    path: str
    values: list[Any]


@dataclass(frozen=True)
class FileDifference:
    """A file of the code that is not the same in all runs.

    Attributes:
        path: Its path in the bundle.
        digests: The start of its SHA-256 in each run; null where the run has no such file.
        diff: The lines that differ between the first and the last run, as a unified diff; empty if the file is not text or has over 5,000 lines.
    """

    path: str
    digests: list[str | None]
    diff: list[str]


@dataclass(frozen=True)
class MetricDifference:
    """The numbers of one name in each run; null where it has none, or none that is finite.

    Attributes:
        found: Whether the run has the number.
        last: The newest values; null, too, where it is not finite.
        lowest: The lowest values.
        highest: The highest values.
        steps: The steps of the newest values.
    """

    found: list[bool]
    last: list[float | None]
    lowest: list[float | None]
    highest: list[float | None]
    steps: list[int | None]


@dataclass(frozen=True)
class Comparison:
    """What differs between runs. All lists are in the order of `runs`."""

    runs: list[str]
    names: list[str]
    spec: list[SettingDifference]
    code: list[FileDifference]
    metrics: dict[str, MetricDifference]


async def compare_runs(hyperpod: Hyperpod, run_ids: Sequence[str]) -> Comparison:
    """Compare runs.

    Raises:
        InvalidInputError: Fewer than two runs, or more than 20.
        NotFoundError: A run does not exist.
        TooSlowError: The numbers of a run cannot be read in time.
    """
    unique = list(dict.fromkeys(run_ids))
    if not 2 <= len(unique) <= MAX_RUNS:
        raise InvalidInputError(
            f"give 2 to {MAX_RUNS} different runs to compare", code="usage", detail={"field": "run"}
        )
    runs = [await hyperpod.runs.get(run_id) for run_id in unique]
    bundles = [await asyncio.to_thread(hyperpod.runs.bundle, run_id) for run_id in unique]
    specs = [await asyncio.to_thread(bundle.spec) for bundle in bundles]
    documents = [spec.model_dump(mode="json") for spec in specs]
    return Comparison(
        unique,
        [run.name for run in runs],
        list(_settings(documents)),
        await hyperpod.big_reads.run(lambda deadline: _files(bundles, deadline)),
        await hyperpod.big_reads.run(lambda deadline: _metrics(hyperpod, unique, deadline)),
    )


def _settings(documents: Sequence[Mapping[str, Any]]) -> Iterator[SettingDifference]:
    flat = [dict(_flatten(document, "")) for document in documents]
    paths = dict.fromkeys(path for one in flat for path in one)
    for path in paths:
        is_empty = all(one.get(path) in (None, {}) for one in flat)
        if is_empty and any(other.startswith(f"{path}.") for other in paths):
            continue  # its items are shown
        values = [one.get(path) for one in flat]
        if any(value != values[0] for value in values):
            yield SettingDifference(path, values)


def _flatten(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _flatten(item, f"{path}.{name}" if path else name)
    else:
        yield path, value


def _files(bundles: Sequence[BundleReader], deadline: Deadline) -> list[FileDifference]:
    digests: list[dict[str, str]] = []
    for bundle in bundles:
        try:
            entries = bundle.files()
        except HyperpodError:  # a run without code of its own
            entries = []
        digests.append({str(entry["path"]): str(entry["digest"]) for entry in entries if entry["path"] not in _OURS})
    found: list[FileDifference] = []
    first, last = _code(bundles[0]), _code(bundles[-1])
    for path in sorted({path for one in digests for path in one}):
        of_runs = [one.get(path) for one in digests]
        if any(digest != of_runs[0] for digest in of_runs):
            has_time = len(found) < _MAX_FILES and not deadline.is_over()
            diff = _diff(_lines(first, path), _lines(last, path)) if has_time else []
            found.append(FileDifference(path, [one and one[:12] for one in of_runs], diff))
    return found


def _diff(before: list[str], after: list[str]) -> list[str]:
    if max(len(before), len(after)) > _MAX_LINES:
        return []
    return list(difflib.unified_diff(before, after, lineterm="", n=1))[2 : _MAX_DIFF_LINES + 2]


def _code(bundle: BundleReader) -> SentCode | None:
    try:
        return SentCode(bundle)
    except HyperpodError:  # a run without code of its own
        return None


def _lines(code: SentCode | None, path: str) -> list[str]:
    """The lines of a file; empty if the run has no such file or it is not text."""
    try:
        return code.text(path).splitlines() if code is not None else []
    except HyperpodError:
        return []


_Numbers = tuple[bool, float | None, float | None, float | None, int | None]
"""Whether a run has the number, its newest, lowest and highest value, and the step of the newest one."""


def _metrics(hyperpod: Hyperpod, run_ids: Sequence[str], deadline: Deadline) -> dict[str, MetricDifference]:
    columns: list[dict[str, _Numbers]] = []
    for run_id in run_ids:
        metrics = hyperpod.metrics.get(run_id)
        metrics.refresh(deadline)
        if metrics.is_behind:
            raise TooSlowError(run_id)
        newest = metrics.summary(ended=True).metrics
        ranges = metrics.ranges()
        columns.append(
            {name: (True, one.value, *ranges.get(name, (None, None)), one.step) for name, one in newest.items()}
        )
    none: _Numbers = (False, None, None, None, None)
    return {
        name: MetricDifference(*map(list, zip(*(one.get(name, none) for one in columns), strict=True)))
        for name in sorted({name for one in columns for name in one})
    }
