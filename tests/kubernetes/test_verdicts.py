"""What pods say of a run, and the records of those without our launcher; by pods as the API server gives them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.observe.native_recorder import ContainerStart, PodRecorder
from hyperpod_jlab.engines.kubernetes.observe.pods import KnownPod, RunPod, assign_ranks, parse_pod
from hyperpod_jlab.engines.kubernetes.observe.verdicts import between_attempts_observation, interrupted_end, refine
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader

NOW = 1_795_000_000.0
BEGAN, ENDED = "2026-11-18T00:00:00Z", "2026-11-18T00:10:00Z"


def pod(rank: int = 0, phase: str = "Failed", code: int | None = 1, **more: Any) -> RunPod:
    """A pod of a PyTorchJob; `end`: what its container's end says besides, `status` what its status does."""
    role = "master" if rank == 0 else "worker"
    end = {"exitCode": code, "startedAt": BEGAN, "finishedAt": ENDED, "containerID": "c://1"}
    state = {"terminated": {**end, **more.pop("end", {})}} if code is not None else {"running": {"startedAt": BEGAN}}
    container = {"name": "pytorch", "restartCount": more.pop("restart", 0), "containerID": "c://1", "state": state}
    return parse_pod(
        {
            "metadata": {
                "name": f"run-x-{role}-{max(0, rank - 1)}",
                "uid": more.pop("uid", f"uid-{rank}"),
                "labels": {
                    "hyperpod-jlab/run-id": "x",
                    "training.kubeflow.org/replica-type": role,
                    "training.kubeflow.org/replica-index": str(max(0, rank - 1)),
                },
            },
            "spec": {
                "nodeName": f"node{rank + 1}",
                "restartPolicy": "Never",
                "initContainers": [{"name": "init-pytorch"}] if role == "worker" else [],
                "containers": [{"name": "pytorch", "resources": more.pop("resources", {})}],
            },
            "status": {"phase": phase, "containerStatuses": [container], **more.pop("status", {})},
        }
    )


def word(state: str = "ended", verdict: str | None = "FAILED") -> Observation:
    return Observation.model_validate({"time": NOW, "observer": "kubernetes", "state": state, "verdict": verdict})


def test_memory_is_the_reason_whichever_pod_lacked_it() -> None:
    lacking = pod(1, code=137, end={"reason": "OOMKilled"}, resources={"limits": {"memory": "1Gi"}})
    found = refine(word(), [pod(0), lacking], 2)
    assert (found.verdict, found.reason_code) == ("OOM", "out_of_memory")
    assert (found.reason or "").startswith("node 1 (node2): ")
    assert (found.reason or "").endswith("(limit 1Gi)")


@pytest.mark.parametrize(
    ("status", "verdict", "code"),
    [
        ({"reason": "Evicted", "message": "The node was low on resource: memory."}, "NODE_FAIL", "evicted"),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
            "PREEMPTED",
            "preempted",
        ),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]},
            "NODE_FAIL",
            "node_fail",
        ),
        ({"reason": "DeadlineExceeded"}, "TIMEOUT", "timeout"),
    ],
)
def test_what_the_cluster_ended_is_said(status: dict[str, Any], verdict: str, code: str) -> None:
    found = refine(word(), [pod(0, code=137), pod(1, code=143, status=status)], 2)
    assert (found.verdict, found.reason_code) == (verdict, code)
    assert (found.reason or "").startswith("node 1 (node2): ")


def test_a_failure_of_its_own_has_its_exit_code_and_no_other_reason() -> None:
    found = refine(word(), [pod(0, code=None, phase="Running"), pod(1, code=7)], 2)
    assert (found.verdict, found.exit_code, found.reason) == ("FAILED", 7, None)


def test_a_program_that_is_missing_is_named() -> None:
    message = 'exec: "/no/python": stat /no/python: no such file or directory: unknown'
    missing = pod(0, code=128, end={"reason": "StartError", "message": message})
    assert refine(word(), [missing], 1).reason_code == "no_program"


def test_a_success_stays_one_whatever_pods_say() -> None:
    good = word(verdict="COMPLETED")
    assert refine(good, [pod(0, code=137, end={"reason": "OOMKilled"})], 1) == good


def test_pods_that_have_all_ended_count_though_the_operator_is_down() -> None:
    running = word("running", None)
    assert refine(running, [pod(0, code=0, phase="Succeeded")], 1).verdict == "COMPLETED"
    assert refine(running, [pod(0, code=3)], 1).exit_code == 3
    assert refine(running, [pod(0, code=3)], 2).state == "running", "a pod is still to come"
    early = running.model_copy(update={"time": pod().main.exit.ended_at + 1})  # type: ignore[operator]
    assert refine(early, [pod(0, code=3)], 1).state == "running"


def test_a_pod_without_a_node_says_why_it_waits() -> None:
    message = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: 0/2 ..."
    lacking = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    waits = parse_pod(
        {
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"containers": [{"name": "pytorch"}]},
            "status": {"phase": "Pending", "conditions": [lacking]},
        }
    )
    found = refine(word("waiting", None), [waits], 1)
    assert (found.state, found.reason_code) == ("waiting", "unschedulable")
    assert "GPUs" in (found.reason or "")
    begun = refine(word("running", None), [pod(0, code=None, phase="Running"), waits], 2)
    assert begun.state == "running"


def test_why_an_attempt_was_cut_short() -> None:
    preempted = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}
    assert interrupted_end([pod(0), pod(1, status=preempted)])[0] == "PREEMPTED"
    assert interrupted_end([]) == ("REQUEUED", None)


# ------------------------------------------------------------------------------ without our launcher


@pytest.fixture
def bundle(tmp_path: Path) -> BundleReader:
    found = BundleReader(Partition(tmp_path), "x")
    found.folder.mkdir(parents=True)
    return found


@pytest.fixture
def stand_in(bundle: BundleReader) -> PodRecorder:
    return PodRecorder(bundle, "mine")


def record(bundle: BundleReader, attempt: int, rank: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((bundle.records / f"status/attempt-{attempt}/node-{rank}.json").read_text())
    return found


def test_restarts_and_new_pods_are_attempts_in_their_order(bundle: BundleReader, stand_in: PodRecorder) -> None:
    first = pod(0, code=None, phase="Running")
    stand_in.record([first])
    assert record(bundle, 1)["ended_at"] is None
    stand_in.record([pod(0, code=None, phase="Running", restart=2)])
    assert record(bundle, 3)["restart"] == 2
    assert stand_in.find_number(ContainerStart.from_pod(first, 0, 1)) == 2, "the one in between, seen later"
    stand_in.record([pod(0, code=0, phase="Succeeded", uid="new")])
    assert (record(bundle, 4)["exit_code"], record(bundle, 4)["pod_uid"]) == (0, "new")
    # Whoever comes later finds the same.
    again = PodRecorder(bundle, "mine")
    again.record([pod(0, code=0, phase="Succeeded", uid="new")])
    assert sorted(path.name for path in (bundle.records / "status").iterdir()) == [
        "attempt-1",
        "attempt-2",
        "attempt-3",
        "attempt-4",
        "claim.json",
    ]


def test_an_end_that_came_from_outside_is_not_the_containers_own(bundle: BundleReader, stand_in: PodRecorder) -> None:
    stand_in.record([pod(0, code=137, status={"reason": "Evicted"}), pod(1, code=5)])
    assert (record(bundle, 1)["ended_at"], record(bundle, 1)["exit_code"]) == (None, None)
    assert record(bundle, 1, rank=1)["exit_code"] == 5
    assert record(bundle, 1, rank=1)["node"] == "node2"


WAITS = Observation.model_validate(
    {
        "time": NOW,
        "observer": "launcher",
        "scheduler_id": "run-x",
        "state": "waiting",
        "attempt": 1,
        "reason": "node 1 (node2) was lost; the next attempt waits",
        "reason_code": "recovering",
    }
)


def test_between_attempts_a_pod_on_a_lost_node_is_what_the_run_waits_for() -> None:
    taken = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": ""}
    raw = pod(1, "Running", None, status={"conditions": [taken]})
    lost = replace(raw, state=replace(raw.state, deleting=True))
    found = between_attempts_observation(word("running", None), [pod(0, "Running", None), lost], WAITS)
    assert (found.state, found.attempt, found.reason_code) == ("waiting", 1, "recovering")
    assert "node 1 (node2)" in str(found.reason)
    assert "administrator" in str(found.reason)


def test_between_attempts_the_launchers_say_what_the_pods_do_not() -> None:
    found = between_attempts_observation(word("running", None), [pod(0, "Running", None)], WAITS)
    assert (found.state, found.reason) == ("waiting", WAITS.reason)
    known = word("running", None).model_copy(update={"reason": "node 1: no room", "reason_code": "unschedulable"})
    found = between_attempts_observation(known, [pod(0, "Running", None)], WAITS)
    assert (found.state, found.reason, found.reason_code) == ("waiting", "node 1: no room", "unschedulable")


def plain(name: str, made: int, phase: str = "Running", code: int | None = None) -> RunPod:
    """A pod of a Job without indexes, made and ended in that minute of an hour."""
    end = {"exitCode": code, "finishedAt": f"2026-11-18T00:{made:02}:30Z", "containerID": "c://1"}
    return parse_pod(
        {
            "metadata": {"name": f"mine-{name}", "uid": name, "creationTimestamp": f"2026-11-18T00:{made:02}:00Z"},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]},
            "status": {
                "phase": phase,
                "containerStatuses": [
                    {
                        "name": "c",
                        "restartCount": 0,
                        "containerID": "c://1",
                        "state": {"terminated": end} if code is not None else {"running": {}},
                    }
                ],
            },
        }
    )


def ranks(pods: list[RunPod], known: dict[str, KnownPod] | None = None) -> dict[str, int]:
    return {pod.uid: rank for rank, pod in assign_ranks(pods, known)}


def test_a_retry_is_the_node_that_it_replaces() -> None:
    pods = [plain("z", 1, "Failed", 7), plain("y", 2, "Failed", 7), plain("x", 3)]
    assert ranks(pods) == {"z": 0, "y": 0, "x": 0}


def test_pods_that_run_beside_each_other_are_nodes() -> None:
    beside = [plain("a", 1), plain("b", 1), plain("c", 1, "Failed", 1), plain("d", 2)]
    assert ranks(beside) == {"a": 0, "b": 1, "c": 2, "d": 2}
    done = [plain("a", 1, "Succeeded", 0), plain("b", 2)]
    assert ranks(done) == {"a": 0, "b": 1}


def test_a_node_keeps_its_rank_when_others_are_gone() -> None:
    known = {"a": KnownPod(0, has_succeeded=False), "b": KnownPod(1, has_succeeded=False)}
    assert ranks([plain("b", 1), plain("c", 2)], known) == {"b": 1, "c": 0}
    known = {"a": KnownPod(0, has_succeeded=True), "b": KnownPod(1, has_succeeded=False)}
    assert ranks([plain("b", 1), plain("c", 2)], known) == {"b": 1, "c": 2}


def test_the_records_of_a_retry_are_the_next_attempts(bundle: BundleReader, stand_in: PodRecorder) -> None:
    first, second = plain("z", 1, "Failed", 7), plain("a", 2, "Failed", 8)
    stand_in.record([first])
    stand_in.record([second])  # the first was removed
    found = sorted((bundle.records / "status").glob("attempt-*/node-*.json"))
    told = [(path.parent.name, path.name, json.loads(path.read_text())["exit_code"]) for path in found]
    assert told == [("attempt-1", "node-0.json", 7), ("attempt-2", "node-0.json", 8)]


def test_a_job_whose_pod_failed_may_start_another() -> None:
    pods = [plain("a", 1, "Failed", 7)]
    waits = word("waiting", None)
    assert refine(waits, pods, 1).verdict == "FAILED"
    assert refine(waits, pods, 1, retried=True) == waits
