"""Thousands of runs: the newest are there at once. The benchmark bench_runs_listing.py measures it properly."""

from __future__ import annotations

import asyncio
import statistics
import time

import pytest

from hyperpod_jlab.run.listing import RunFilter
from hyperpod_jlab.run.services import Hyperpod
from tests.storage.bundles import make_bundle


@pytest.mark.parametrize("number", [1000, pytest.param(10_000, marks=pytest.mark.full)])
@pytest.mark.timeout(300)
async def test_the_newest_of_many_runs(place, number):
    for count in range(number):
        make_bundle(place.partition, f"run-{count:05}", created=1e9 + count)
    begin = time.perf_counter()
    first = await place.hyperpod.runs.list(RunFilter(limit=50))
    cold = time.perf_counter() - begin
    assert [run.run_id for run in first.runs] == [f"run-{number - 1 - n:05}" for n in range(50)]
    await asyncio.sleep(3.1)  # folders that have just changed are read again each time
    hyperpod, warm = Hyperpod(), []
    for _ in range(10):
        begin = time.perf_counter()
        again = await hyperpod.runs.list(RunFilter(limit=50))
        warm.append(time.perf_counter() - begin)
        assert again == first
    print(f"{number} runs: cold {cold:.2f} s, warm {statistics.median(warm) * 1000:.1f} ms")
    assert statistics.median(warm) < cold
    page, seen = first, len(first.runs)
    while page.next:
        page = await hyperpod.runs.list(RunFilter(limit=500, cursor=page.next))
        seen += len(page.runs)
    assert seen == number
