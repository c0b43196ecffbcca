"""Reasons of Kubernetes and Kueue in words: from recorded texts of a real cluster, each with what to do about it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hyperpod_jlab.engines.kubernetes.tables.kueue import WorkloadRow
from hyperpod_jlab.engines.kubernetes.tables.pods import PodRow, pod_row
from hyperpod_jlab.engines.kubernetes.waiting.messages import (
    explain_reason,
    explain_scheduling,
    explain_workload,
    find_problem,
)

RECORDED = json.loads((Path(__file__).parent / "recorded" / "events-1.34.json").read_text())

CODES = {
    "Job insecure": "pod_security",
    "Job no-account": "no_service_account",
    "Job over-gpu": "quota_exceeded",
    "Job says-nothing": "quota_needs_requests",
    "Pod affinity": "unschedulable",
    "Pod bad-image-name": "image_name",
    "Pod claim": "claim_not_found",
    "Pod configmap-env": "config_not_found",
    "Pod configmap-volume": "config_not_found",
    "Pod cpu": "unschedulable",
    "Pod crash": "crashes",
    "Pod csi": "no_driver",
    "Pod deadline": "time_limit",
    "Pod evicted": "evicted",
    "Pod gate": "gated",
    "Pod gpu": "unschedulable",
    "Pod hostpath": "no_host_path",
    "Pod img-broken": "image_registry",
    "Pod img-busy": "image_registry",
    "Pod img-forbidden": "image_denied",
    "Pod img-missing": "image_not_found",
    "Pod img-private": "image_denied",
    "Pod never-pull": "image_never_pulled",
    "Pod no-command": "no_program",
    "Pod no-image": "image_registry",
    "Pod nonroot": "runs_as_root",
    "Pod oom": "out_of_memory",
    "Pod oom-again": "crashes",
    "Pod port2": "unschedulable",
    "Pod private-image": "image_registry",
    "Pod secret-env": "config_not_found",
    "Pod secret-volume": "config_not_found",
    "Pod selector": "unschedulable",
    "Pod unbound": "claim_not_bound",
}

OPERATOR = {"quota": "quota_exceeded", "PodSecurity": "pod_security"}
"""What the training operator says, which writes the job controller's words into an event of its own."""


@pytest.mark.parametrize("one", RECORDED, ids=lambda one: f"{one['of']}-{one['reason']}")
def test_a_recorded_reason_has_words(one: dict[str, str]) -> None:
    found = explain_reason(one["reason"], one["message"])
    if one["of"] == "PyTorchJob ptj-over":
        words = [code for word, code in OPERATOR.items() if word in one["message"]]
        assert found.code in (words or ["SetPodTemplateRestartPolicy"])
        return
    assert found.code == CODES[one["of"]]
    assert "Kubernetes reports" not in found.message
    assert "{" not in found.message


def test_what_is_missing_is_named() -> None:
    named = {
        "Pod claim": "claim nope does not exist",
        "Pod secret-env": "secret nope does not exist",
        "Pod img-missing": "image localhost/missing/thing:1 does not exist",
        "Pod img-private": "denies access to the image localhost/private/thing:1",
        "Pod csi": "driver fsx.csi.aws.com",
        "Pod no-command": "no /no/such/program",
        "Job over-gpu": "requests.nvidia.com/gpu=1 is allowed",
    }
    assert named.keys() <= {one["of"] for one in RECORDED}
    for one in RECORDED:
        if one["of"] in named:
            assert named[one["of"]] in explain_reason(one["reason"], one["message"]).message


def test_what_is_not_known_is_shown_as_it_is() -> None:
    assert explain_reason("Strange", "the moon is full").message == ("Kubernetes reports: Strange: the moon is full")
    assert explain_reason("Strange", "").message == "Kubernetes reports: Strange"


@pytest.mark.parametrize(
    ("reason", "message", "code"),
    [
        ("Preempted", "Preempted by pod 0c0c7fe8-6372-40b4-b5da-346f1493a137 on node node1", "preempted"),
        ("TaintManagerEviction", "Marking for deletion Pod a/b", "node_lost"),
        ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", "node_lost"),
        ("Evicted", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 60Mi.", "evicted"),
        (
            "FailedCreatePod",
            'Error creating: admission webhook "x.y" denied the request: no team label',
            "webhook_denied",
        ),
        (
            "FailedCreate",
            'Error creating: pods "a" is forbidden: maximum cpu usage per Container is 1, but limit is 4',
            "limit_range",
        ),
        (
            "ErrImagePull",
            'failed to pull and unpack image "1.dkr.ecr.us-west-2.amazonaws.com/a:1": failed to resolve reference "1.dkr.ecr.us-west-2.amazonaws.com/a:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed',
            "image_denied",
        ),
    ],
)
def test_reasons_that_were_not_made_to_happen(reason: str, message: str, code: str) -> None:
    assert explain_reason(reason, message).code == code


# ---------------------------------------------------------------------------------- the scheduler


def test_the_scheduler_is_taken_apart() -> None:
    message = (
        "0/5 nodes are available: 1 node(s) had untolerated taint {nvidia.com/gpu: present}, "
        "1 node(s) were unschedulable, 3 Insufficient nvidia.com/gpu, 1 Insufficient memory. "
        "preemption: 0/5 nodes are available: 2 No preemption victims found for incoming pod, "
        "3 Preemption is not helpful for scheduling."
    )
    found = explain_scheduling(message)
    assert found is not None
    code, words = found
    assert code == "unschedulable"
    assert words.startswith(
        "none of 5 nodes can run it now: "
        "1 has the taint nvidia.com/gpu=present, which it does not tolerate; "
        "1 is cordoned; 3 have too few free GPUs; 1 has too little free memory; "
    )


def test_a_taint_of_kubernetes_is_told_by_what_it_means() -> None:
    found = explain_scheduling(
        "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }."
    )
    assert found is not None
    assert "1 does not respond" in found[1]


def test_what_the_scheduler_says_in_another_way_is_left_as_it_is() -> None:
    assert explain_scheduling("something else") is None
    assert explain_reason("FailedScheduling", "something else").message == (
        "Kubernetes reports: FailedScheduling: something else"
    )


# ---------------------------------------------------------------------------------- pods of a job


def waiting(name: str, reason: str, message: str, last: str | None = None) -> PodRow:
    state = {"lastState": {"terminated": {"reason": last}}} if last else {}
    row = pod_row(
        {
            "metadata": {"name": name, "namespace": "a"},
            "status": {
                "phase": "Pending",
                "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}, **state}],
            },
        }
    )
    assert row is not None
    return row


def test_a_container_that_starts_is_no_problem() -> None:
    assert find_problem([waiting("a", "ContainerCreating", "")]) is None
    assert find_problem([]) is None


def test_a_problem_of_some_pods_is_counted() -> None:
    pods = [
        waiting("a", "ContainerCreating", ""),
        waiting("b", "CreateContainerConfigError", 'secret "nope" not found'),
    ]
    found = find_problem(pods)
    assert found is not None
    assert found.code == "config_not_found"
    assert found.message.startswith("1 of its 2 pods: the secret nope does not exist")


def test_a_container_that_ran_out_of_memory_again_and_again_says_that() -> None:
    found = find_problem([waiting("a", "CrashLoopBackOff", "back-off", last="OOMKilled")])
    assert found is not None
    assert found.code == "out_of_memory"


# ---------------------------------------------------------------------------------- Kueue

WORKLOAD = WorkloadRow(
    namespace="a",
    name="pytorchjob-x",
    owner=("PyTorchJob", "x"),
    job_uid="1",
    queue="team",
    priority=0,
    priority_class=None,
    state="waiting",
    reason="Pending",
    message=None,
    evicted=None,
    requests=(),
    pods=2,
    created=None,
)


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (
            "couldn't assign flavors to pod set master: insufficient quota for nvidia.com/gpu in flavor h100, request > maximum capacity (8 > 6)",
            "never_fits",
            "8 nvidia.com/gpu of at most 6",
        ),
        (
            "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu in flavor h100, 2 more needed",
            "quota",
            "2 more nvidia.com/gpu must become free",
        ),
        ("LocalQueue nope doesn't exist", "unknown_queue", "the queue nope does not exist"),
        ("ClusterQueue q is inactive", "queue_stopped", "the cluster queue q is stopped"),
        (
            "Workload namespace doesn't match ClusterQueue selector",
            "queue_not_allowed",
            "may not use the quota of this queue",
        ),
        ("something new", "Pending", "Kueue reports: something new"),
        (None, "queued", "is waiting for its turn"),
    ],
)
def test_why_a_workload_waits(message: str | None, code: str, words: str) -> None:
    found = explain_workload(replace(WORKLOAD, message=message))
    assert found.code == code
    assert words in found.message


def test_a_workload_that_was_preempted_says_so() -> None:
    row = replace(
        WORKLOAD,
        message="couldn't assign flavors to pod set worker: insufficient unused quota for cpu in flavor f, 1 more needed",
        evicted=("Preempted", "Preempted to accommodate a workload"),
    )
    assert "higher priority" in explain_workload(row).message


def test_a_workload_that_was_switched_off_is_held() -> None:
    assert explain_workload(replace(WORKLOAD, state="off")).code == "held"
