"""The fine-tuning of examples/finetune on two nodes of a real Slurm, with a rank that is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys

import pytest

from tests.examples.finetune_toy import EXAMPLE, FIRST_CHECKPOINT, TRAINING, check_continued, prepare
from tests.slurm.hyperpod_fixtures import SlurmSession

pytestmark = [
    pytest.mark.torch,
    pytest.mark.timeout(600),
    pytest.mark.parametrize("transport", ["here"], indirect=True),
]


async def test_a_training_continues_after_a_killed_rank(session: SlurmSession) -> None:
    if session.cluster.python_on_nodes != sys.executable:
        pytest.skip("the nodes' Python is another one than that with torch")
    folder = session.cluster.partition / "finetune"
    prepare(folder)
    run_id = await session.submit(
        source={"kind": "script", "path": str(EXAMPLE / "train.py")},
        args=TRAINING,
        files={"project": True, "root": str(EXAMPLE)},
        resources={"nodes": 2},
        environment={"python": sys.executable, "variables": {"OMP_NUM_THREADS": "1"}},
        max_restarts=1,
        time_limit=600,
    )
    await session.until(run_id, lambda _: FIRST_CHECKPOINT in session.log(run_id), 300)
    node = json.loads((session.records(run_id) / "status/attempt-1/node-1.json").read_text())
    os.kill(node["ranks"][0]["pid"], signal.SIGKILL)
    run = await session.ended(run_id, 300)
    assert run.state == "succeeded", run.status
    assert [one.state for one in run.status.attempts] == ["failed", "succeeded"]
    check_continued(session.log(run_id), session.log(run_id, attempt=2))
    assert (folder / "adapter" / "adapter_model.safetensors").exists()
    shutil.rmtree(folder)
