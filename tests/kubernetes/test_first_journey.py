"""The first journey: the example notebook trains on two pods under the real operator, with real PyTorch, from the command line."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import torch_environment
from tests.kubernetes.session_fixtures import KubernetesSession, Sessions

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

#: Seconds in which an environment with PyTorch may have to be made first.
pytestmark = pytest.mark.timeout(900)


def with_torch(environment: Path) -> dict[str, Any]:
    """A cluster's configuration whose pods have an environment of this machine: a patch that adds a volume to each."""
    path = str(environment)
    volume = {"name": "torch", "hostPath": {"path": path}}
    mount = {"name": "torch", "mountPath": path, "readOnly": True}
    pod = {"volumes": [volume], "containers": [{"volumeMounts": [mount]}]}
    return {"python": f"{path}/bin/python", "patch": {"template": {"spec": pod}}}


@pytest.fixture
def session(sessions: Sessions) -> KubernetesSession:
    """A session whose pods have PyTorch."""
    made = sessions(**with_torch(torch_environment()))
    shutil.copytree(EXAMPLES, made.folder, dirs_exist_ok=True)
    return made


async def test_the_notebook_trains_on_two_pods(session: KubernetesSession):
    words = ["--nodes", "2", "--processes-per-node", "2", "--env", "OMP_NUM_THREADS=1", "--follow"]
    told = await session.hpj("submit", "train_ddp.ipynb", "--cluster", "k8s", *words)
    assert told.code == 0, told.err
    for rank in range(4):
        assert f"rank {rank} of 4: torch " in told.out
        assert f"rank {rank} epoch 10/10 loss" in told.out
    accuracy = re.search(r"accuracy ([0-9.]+)% on 359 held-out images", told.out)
    assert accuracy is not None
    assert float(accuracy[1]) > 90
    (run,) = (await session.hyperpod.runs.list()).runs
    assert run.state == "succeeded"
    assert len(session.pods_of(run.run_id)) == 2
    assert {pod["spec"]["nodeName"] for pod in session.pods_of(run.run_id)}
