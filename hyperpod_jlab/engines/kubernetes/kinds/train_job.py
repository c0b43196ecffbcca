"""Kubeflow Trainer's TrainJob (trainer.kubeflow.org/v1alpha1): an object that refers to a runtime of the cluster's, from which the pods come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.kinds import kind as conditions
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    KindInput,
    Rendezvous,
    head_of,
    number_label,
    requests,
)


@dataclass(frozen=True)
class Runtime:
    """A training runtime: ``TrainingRuntime`` of the namespace, or ``ClusterTrainingRuntime``."""

    name: str = "torch-distributed"
    kind: str = "ClusterTrainingRuntime"


class TrainJob:
    """The job ``node`` of a runtime, with our image and command.

    While it runs it has no condition at all (research), so that the run's own records say that it does.
    """

    name = "TrainJob"
    group = "trainer.kubeflow.org"
    version = "v1alpha1"
    plural = "trainjobs"
    container = "node"
    labels_pods = False
    suspend_in: tuple[str, ...] = ("spec",)

    def __init__(self, runtime: Runtime | None = None) -> None:
        self.runtime = runtime or Runtime()

    def meeting(self, name: str, nodes: int) -> Rendezvous:
        """As the torch runtime's variables say; the master's name is that of the pod's service."""
        del name, nodes
        return Rendezvous("$(PET_NODE_RANK)", "$(PET_MASTER_ADDR)")

    def wrap(self, command: Sequence[str], nodes: int, *, anew: bool) -> list[str]:
        """The launcher itself."""
        del nodes, anew
        return list(command)

    def manifest(self, wanted: KindInput) -> dict[str, Any]:
        """The object. Labels of its own on pods it cannot ask for, nor a restart policy: both are the runtime's."""
        pod = wanted.pod
        trainer: dict[str, Any] = {
            "image": pod.image,
            "command": list(pod.command),
            "env": [dict(one) for one in pod.env],
            "numNodes": wanted.nodes,
            "numProcPerNode": 1,  # one launcher a pod
        }
        if pod.resources:
            trainer["resourcesPerNode"] = requests(pod.resources)
        override: dict[str, Any] = {"targetJobs": [{"name": "node"}]}
        if pod.node_selector:
            override["nodeSelector"] = dict(pod.node_selector)
        if pod.tolerations:
            override["tolerations"] = [dict(one) for one in pod.tolerations]
        if pod.service_account is not None:
            override["serviceAccountName"] = pod.service_account
        override["volumes"] = [dict(one) for one in pod.volumes]
        override["containers"] = [
            {"name": self.container, "volumeMounts": [dict(one) for one in pod.mounts]}
        ]
        return {
            **head_of(self, wanted),
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

    def companions(self, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
        """None: JobSet makes a service."""
        del wanted
        return []

    def observe(self, job: Mapping[str, Any], now: float) -> Observation:
        """By its conditions, and by its jobs' counts where the version has them."""
        true = conditions.true_conditions(job)
        if "Failed" in true:
            return conditions.failed(job, true["Failed"], now)
        if "Complete" in true:
            return conditions.succeeded(job, true["Complete"], now)
        if "Suspended" in true:
            return conditions.suspended(job, now)
        counts = conditions.status_of(job).get("jobsStatus")
        ready = isinstance(counts, list) and any(
            isinstance(one, Mapping) and conditions.whole(one.get("ready")) for one in counts
        )
        return conditions.running(job, now) if ready else conditions.waiting(job, now)

    def pods_selector(self, name: str) -> str:
        """By JobSet's label; the set has the object's name."""
        return f"jobset.sigs.k8s.io/jobset-name={name}"

    def node_rank(self, pod: Mapping[str, Any]) -> int | None:
        """The index in the Job below."""
        return number_label(pod, "batch.kubernetes.io/job-completion-index")
