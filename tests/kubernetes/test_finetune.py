"""The fine-tuning of examples/finetune on two pods under the real operator, with a pod that is deleted."""

from __future__ import annotations

import pytest

from tests.examples.finetune_toy import EXAMPLE, FIRST_CHECKPOINT, TRAINING, check_continued, prepare
from tests.kubernetes.cluster import torch_environment
from tests.kubernetes.session_fixtures import Sessions
from tests.kubernetes.test_first_journey import with_torch

#: Seconds in which an environment with PyTorch may have to be made first.
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


async def test_a_training_continues_after_a_deleted_pod(sessions: Sessions) -> None:
    environment = torch_environment()
    session = sessions(**with_torch(environment))
    folder = session.partition / "finetune"
    prepare(folder, f"{environment}/bin/python")
    run_id = await session.submit(
        source={"kind": "script", "path": str(EXAMPLE / "train.py")},
        args=TRAINING,
        files={"project": True, "root": str(EXAMPLE)},
        resources={"nodes": 2},
        environment={"variables": {"OMP_NUM_THREADS": "1"}},
        max_restarts=1,
    )
    await session.until(run_id, lambda _: FIRST_CHECKPOINT in session.log(run_id), 300)
    pod = f"run-{run_id}-worker-0"
    session.cluster.kubectl("delete", "pod", pod, "--wait=false", namespace=session.namespace)
    run = await session.ended(run_id, 300)
    assert run.state == "succeeded", run.status
    assert [one.state for one in run.status.attempts] == ["failed", "succeeded"]
    check_continued(session.log(run_id), session.log(run_id, attempt=2))
    assert (folder / "adapter" / "adapter_model.safetensors").exists()
