"""Which pod of a run a port or a shell is of."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from hyperpod_jlab.core.errors import ConflictError, NotFoundError
from hyperpod_jlab.engines.kubernetes.kinds.choice import KIND_BY_NAME
from hyperpod_jlab.engines.kubernetes.run_pods import find_pod, list_by_rank, shell_command


def _pod(name: str, rank: int, created: str, *, running: bool = True, **more: Any) -> dict[str, Any]:
    labels = {
        "training.kubeflow.org/replica-type": "master" if rank == 0 else "worker",
        "training.kubeflow.org/replica-index": str(max(0, rank - 1)),
    }
    metadata = {"name": name, "namespace": "team", "labels": labels, "creationTimestamp": created}
    state: dict[str, Any] = {"running": {}} if running else {"terminated": {"exitCode": 1}}
    return {
        "metadata": {**metadata, **more},
        "spec": {
            "nodeName": "n1",
            "initContainers": [{"name": "init-pytorch"}] if rank else [],
            "containers": [{"name": "sidecar"}, {"name": "pytorch"}],
        },
        "status": {
            "phase": "Running" if running else "Failed",
            "containerStatuses": [{"name": "pytorch", "state": state}],
        },
    }


def test_of_several_pods_of_a_rank_the_one_that_runs_counts() -> None:
    kind = KIND_BY_NAME["PyTorchJob"]
    pods = list_by_rank(
        [
            _pod("w-new", 1, "2026-01-02T00:00:00Z", running=False),
            _pod("w-old", 1, "2026-01-01T00:00:00Z"),
            _pod("m-old", 0, "2026-01-01T00:00:00Z", running=False),
            _pod("m-new", 0, "2026-01-02T00:00:00Z", running=False),
        ],
        kind,
    )
    assert [(pod.node_rank, pod.name, pod.running) for pod in pods] == [(0, "m-new", False), (1, "w-old", True)]
    assert find_pod(pods, 1).container == "pytorch"
    with pytest.raises(ConflictError, match="m-new is not running; it is failed"):
        find_pod(pods, 0)
    with pytest.raises(NotFoundError, match="no pod for node 2"):
        find_pod(pods, 2)


def test_pods_that_are_ending_do_not_run_and_those_without_a_rank_are_counted() -> None:
    ending = _pod("a", 0, "2026-01-01T00:00:00Z", deletionTimestamp="2026-01-01T00:01:00Z")
    assert not list_by_rank([ending], KIND_BY_NAME["PyTorchJob"])[0].running
    plain = [_pod(name, 0, f"2026-01-0{day}T00:00:00Z") for day, name in enumerate("ba", 1)]
    assert [pod.name for pod in list_by_rank(plain, KIND_BY_NAME["Job"])] == ["b", "a"]


def test_a_shells_command_is_quoted() -> None:
    pod = list_by_rank([_pod("m", 0, "2026-01-01T00:00:00Z")], KIND_BY_NAME["PyTorchJob"])[0]
    words = shlex.split(shell_command(pod, "it's; $(mine)"))
    assert words[:5] == ["kubectl", "--context=it's; $(mine)", "--namespace=team", "exec", "-it"]
    assert words[5:9] == ["m", "--container=pytorch", "--", "sh"]
