"""What ranks print on a real Slurm, over two attempts: an alarm ends the first, as the spec asks; the webhook tells it, and the end of the run."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from testbed.loopback import Handler, Loopback
from tests.slurm.hyperpod_fixtures import SlurmSession

TRAIN = """
import os, time
rank, attempt = int(os.environ["RANK"]), int(os.environ["HYPERPOD_ATTEMPT"])
for step in range(1, 21):
    loss = "nan" if (attempt, rank, step) == (1, 1, 10) else 2 / step + rank
    print(f"step {step}/20 loss {loss}", flush=True)
    time.sleep(0.05)
time.sleep(600 if attempt == 1 else 0)
"""


async def test_a_nan_ends_the_attempt_and_the_next_one_goes_on(session: SlurmSession) -> None:
    (session.folder / "train.py").write_text(TRAIN)
    posted, told = [], threading.Event()

    class Hook(Handler):
        def take(self) -> None:
            document = json.loads(self.body())
            posted.append((document["run_id"], document["code"], document["rank"]))
            self.answer(204)
            if document["code"] == "succeeded":
                told.set()

    with Loopback(Hook) as server:
        run_id = await session.submit(
            source={"kind": "script", "path": "train.py"},
            resources={"nodes": 2},
            launcher="python",
            max_restarts=1,
            alarms={"stop_on": ["nan"], "webhook": server.url},
        )
        run = await session.ended(run_id)
        assert await asyncio.to_thread(told.wait, 30)  # the launcher posts the end after its last record
    assert posted == [(run_id, "nan", 1), (run_id, "succeeded", None)]
    assert (run.state, len(run.status.attempts)) == ("succeeded", 2)
    metrics = await asyncio.to_thread(session.hyperpod.metrics.get, run_id)
    metrics.refresh()
    series, _ = metrics.read(["loss"])
    points = {(one.attempt, one.rank): one.points for one in series}
    assert sorted(points) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert points[1, 1][9][::2] == (10, None)
    for rank in (0, 1):
        assert [step for step, _, _ in points[2, rank]] == list(range(1, 21))
        expected = [2 / step + rank for step in range(1, 21)]
        assert [value for _, _, value in points[2, rank]] == pytest.approx(expected)
    summary = metrics.summary(ended=True)
    assert summary.progress is not None
    assert (summary.progress.step, summary.progress.total) == (20, 20)
    assert summary.alarms == []
    node_log = session.records(run_id) / "logs" / "attempt-1" / "node-1.log"
    assert "alarm nan: rank 1: loss is nan at step 10" in node_log.read_text()
