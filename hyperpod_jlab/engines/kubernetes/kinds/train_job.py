"""Kubeflow Trainer's TrainJob (trainer.kubeflow.org/v1alpha1): an object that refers to a runtime of the cluster, which defines the pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.kinds import kind as conditions
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    KindInput,
    Rendezvous,
    build_head,
    int_label,
    requests,
)


@dataclass(frozen=True)
class Runtime:
    """A training runtime: a namespace's ``TrainingRuntime``, or a ``ClusterTrainingRuntime``."""

    name: str = "torch-distributed"
    kind: str = "ClusterTrainingRuntime"


class TrainJob:
    """The job ``node`` of a runtime, with our image and command.

    A running TrainJob has no condition (research); only the run's own records show that it runs.
    """

    name = "TrainJob"
    group = "trainer.kubeflow.org"
    version = "v1alpha1"
    plural = "trainjobs"
    container = "node"
    labels_pods = False
    suspend_path: tuple[str, ...] = ("spec",)

    def __init__(self, runtime: Runtime | None = None) -> None:
        self.runtime = runtime or Runtime()

    def rendezvous(self, name: str, nodes: int) -> Rendezvous:
        """From the torch runtime's variables; the master's name is that of the pod's service."""
        del name, nodes
        return Rendezvous("$(PET_NODE_RANK)", "$(PET_MASTER_ADDR)")

    def wrap(self, command: Sequence[str], nodes: int) -> list[str]:
        """The launcher itself."""
        del nodes
        return list(command)

    def manifest(self, kind_input: KindInput) -> dict[str, Any]:
        """The object. It cannot set pod labels or a restart policy: both are the runtime's."""
        pod = kind_input.pod
        trainer: dict[str, Any] = {
            "image": pod.image,
            "command": list(pod.command),
            "env": [dict(variable) for variable in pod.env],
            "numNodes": kind_input.nodes,
            "numProcPerNode": 1,  # one launcher per pod
        }
        if pod.resources:
            trainer["resourcesPerNode"] = requests(pod.resources)
        override: dict[str, Any] = {"targetJobs": [{"name": "node"}]}
        if pod.node_selector:
            override["nodeSelector"] = dict(pod.node_selector)
        if pod.tolerations:
            override["tolerations"] = [dict(toleration) for toleration in pod.tolerations]
        if pod.service_account is not None:
            override["serviceAccountName"] = pod.service_account
        override["volumes"] = [dict(volume) for volume in pod.volumes]
        override["containers"] = [
            {"name": self.container, "volumeMounts": [dict(mount) for mount in pod.mounts]}
        ]
        return {
            **build_head(self, kind_input),
            "spec": {
                "runtimeRef": {
                    "apiGroup": self.group,
                    "kind": self.runtime.kind,
                    "name": self.runtime.name,
                },
                "labels": dict(pod.labels),
                "trainer": trainer,
                "podSpecOverrides": [override],
            },
        }

    def companions(self, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
        """None: JobSet creates a service."""
        del manifest
        return []

    def observe(self, job: Mapping[str, Any], now: float) -> Observation:
        """From its conditions, and from its jobs' counts if the version has them."""
        active = conditions.active_conditions(job)
        if "Failed" in active:
            return conditions.observe_failed(job, active["Failed"], now)
        if "Complete" in active:
            return conditions.observe_succeeded(job, active["Complete"], now)
        if "Suspended" in active:
            return conditions.observe_suspended(job, now)
        counts = conditions.find_status(job).get("jobsStatus")
        is_ready = isinstance(counts, list) and any(
            isinstance(job_status, Mapping) and conditions.as_int(job_status.get("ready"))
            for job_status in counts
        )
        return conditions.observe_running(job, now) if is_ready else conditions.waiting(job, now)

    def pods_selector(self, name: str) -> str:
        """By JobSet's label; the set has the object's name."""
        return f"jobset.sigs.k8s.io/jobset-name={name}"

    def node_rank(self, pod: Mapping[str, Any]) -> int | None:
        """The index in the underlying Job."""
        return int_label(pod, "batch.kubernetes.io/job-completion-index")
