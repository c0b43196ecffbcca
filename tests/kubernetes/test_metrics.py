"""What ranks print on a real Kubernetes."""

from __future__ import annotations

import asyncio

import pytest

from tests.kubernetes.session_fixtures import KubernetesSession

TRAIN = (
    "import os, time; r = int(os.environ['RANK']);"
    " [(print(f'step {s}/20 loss {2 / s + r:.3f}', flush=True), time.sleep(0.05)) for s in range(1, 21)]"
)


async def test_the_numbers_of_all_ranks_arrive(session: KubernetesSession) -> None:
    run_id = await session.submit(f'python3 -u -c "{TRAIN}"', resources={"nodes": 2}, launcher="python")
    run = await session.ended(run_id)
    assert run.state == "succeeded"
    metrics = await asyncio.to_thread(session.hyperpod.metrics.get, run_id)
    metrics.refresh()
    series = {one.rank: one.points for one in metrics.read(["loss"])[0]}
    assert sorted(series) == [0, 1]
    for rank, points in series.items():
        assert [step for step, _, _ in points] == list(range(1, 21))
        expected = [2 / step + rank for step in range(1, 21)]
        assert [value for _, _, value in points] == pytest.approx(expected, abs=0.001)
    progress = metrics.summary(ended=True).progress
    assert progress is not None
    assert (progress.step, progress.total) == (20, 20)
