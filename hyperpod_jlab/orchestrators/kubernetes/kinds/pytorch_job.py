"""The training operator's PyTorchJob (kubeflow.org/v1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.orchestrators.kubernetes.kinds import auto_resume, conditions
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import (
    Wanted,
    head_of,
    labels_of,
    number_label,
)
from hyperpod_jlab.orchestrators.kubernetes.kinds.meeting import Meeting
from hyperpod_jlab.orchestrators.kubernetes.kinds.pod_template import pod_template

_INDEX = {
    "name": "HYPERPOD_INDEX",
    "valueFrom": {
        "fieldRef": {"fieldPath": "metadata.labels['training.kubeflow.org/replica-index']"}
    },
}

_RESTARTS = 3
"""Restarts of containers for each pod, in all pods that run together, by which a job with OnFailure has failed.

Launchers only end when the run is over, or they were killed. Those of a run that has failed end again at once when the kubelet starts them, which it does after 0, 10
and 20 seconds: then the job has failed too. So many also may be killed, or lose power, in pods that live on.
"""


class PyTorchJob:
    """One Master and the other nodes as Workers; only Workers in one that HyperPod resumes.

    The container that the operator puts before each worker of a Master ends with an error again and again while the master waits for a node, and with OnFailure
    each of these counts against the backoffLimit.

    Its conditions keep history: Running turns false when the job ends, Restarting takes Running's place, and Succeeded means the master alone (research).

    Args:
        resumed: Whether HyperPod resumes it.
    """

    name = "PyTorchJob"
    group = "kubeflow.org"
    version = "v1"
    plural = "pytorchjobs"
    container = "pytorch"  # its webhook wants this very name
    labels_pods = True
    suspend_in: tuple[str, ...] = ("spec", "runPolicy")

    def __init__(self, *, resumed: bool = False) -> None:
        self.resumed = resumed

    def meeting(self, name: str, nodes: int) -> Meeting:
        """With one process a pod for the operator, RANK is the pod's; workers alone get neither that nor an address."""
        del nodes
        if self.resumed:
            return Meeting(f"$({_INDEX['name']})", f"{name}-worker-0")
        return Meeting("$(RANK)", "$(MASTER_ADDR)")

    def wrap(self, command: Sequence[str], nodes: int, *, anew: bool) -> list[str]:
        """The launcher; where pods are replaced, so that no code from 128 on comes of what a new pod would not mend: a rank's signal, a missing python."""
        del nodes
        if self.resumed or not anew:
            return list(command)
        return ["/bin/sh", "-c", 'exec "$0" "$@"', *command, "--no-signal-codes"]

    def manifest(self, wanted: Wanted) -> dict[str, Any]:
        """The object; its pods stay when it ends, and with them their logs."""
        template = pod_template(wanted.pod, self.container)
        # At a backoffLimit the operator removes all pods, whatever the policy, and their logs with them (seen on 1.8.1).
        policy: dict[str, Any] = {"cleanPodPolicy": "None"}
        if wanted.time_limit is not None:
            policy["activeDeadlineSeconds"] = wanted.time_limit
        if self.resumed:
            # The operator may make pods anew while it notes that the job has failed (seen on 1.8.1); by None they would start again for ever.
            policy["cleanPodPolicy"] = "Running"
            policy["backoffLimit"] = _RESTARTS * wanted.nodes
            template["spec"]["containers"][0]["env"].append(_INDEX)
            replicas = {"Worker": _replica(wanted.nodes, auto_resume.RESTART_POLICY, template)}
        else:
            restart = _restart(wanted)
            replicas = {"Master": _replica(1, restart, template)}
            if wanted.nodes > 1:
                replicas["Worker"] = _replica(wanted.nodes - 1, restart, template)
        return {
            **head_of(
                self, wanted, auto_resume.notes_for(wanted.retries if self.resumed else None)
            ),
            "spec": {
                # One launcher a pod starts all of its ranks, so for the operator each pod is one process.
                "nprocPerNode": "1",
                "runPolicy": policy,
                "pytorchReplicaSpecs": replicas,
            },
        }

    def companions(self, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
        """None: the operator makes a service for each pod."""
        del wanted
        return []

    def observe(self, job: Mapping[str, Any], now: float) -> Observation:
        """By its conditions; an end in success only when all replicas are done."""
        true = conditions.true_conditions(job)
        if "Failed" in true:
            return conditions.failed(job, true["Failed"], now)
        if "Succeeded" in true and _all_done(job):
            return conditions.succeeded(job, true["Succeeded"], now)
        if true.keys() & {"Succeeded", "Running", "Restarting"}:
            return conditions.running(job, now)
        if "Suspended" in true:
            return conditions.suspended(job, now)
        return conditions.waiting(job, now)

    def pods_selector(self, name: str) -> str:
        """By the operator's label."""
        return f"training.kubeflow.org/job-name={name}"

    def node_rank(self, pod: Mapping[str, Any]) -> int | None:
        """The master is 0, worker i is i + 1, or i in a job that has only workers."""
        index = number_label(pod, "training.kubeflow.org/replica-index")
        role = labels_of(pod).get("training.kubeflow.org/replica-type", "").lower()
        if index is None or role not in {"master", "worker"}:
            return None
        return index + 1 if role == "worker" and _waits_for_master(pod) else index


def _waits_for_master(pod: Mapping[str, Any]) -> bool:
    """Whether a worker's job has a master: only then the operator gives it the container that waits for that (setInitContainer, 1.7 to 1.9)."""
    prepared = (pod.get("spec") or {}).get("initContainers") or []
    return any(one.get("name") == "init-pytorch" for one in prepared)


def _restart(wanted: Wanted) -> str:
    """By ExitCode the operator makes pods anew that were deleted, evicted or lost with their node; by Never the job has failed with them (seen on 1.8.1)."""
    return "ExitCode" if wanted.anew else "Never"


def _replica(count: int, restart: str, template: dict[str, Any]) -> dict[str, Any]:
    return {"replicas": count, "restartPolicy": restart, "template": template}


def _all_done(job: Mapping[str, Any]) -> bool:
    """Whether the pods of all replicas have succeeded."""
    wanted = (job.get("spec") or {}).get("pytorchReplicaSpecs") or {}
    found = conditions.status_of(job).get("replicaStatuses") or {}
    return all(
        conditions.whole((found.get(kind) or {}).get("succeeded")) >= replica.get("replicas", 1)
        for kind, replica in wanted.items()
    )
