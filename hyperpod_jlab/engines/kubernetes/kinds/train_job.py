"""Kubeflow Trainer's TrainJob (trainer.kubeflow.org/v1alpha1): an object that refers to a runtime of the cluster, which defines the pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import DeniedError, NotFoundError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds import kind as conditions
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    Kind,
    KindInput,
    Rendezvous,
    build_head,
    count_or_one,
    mapping_at,
    requests,
)


@dataclass(frozen=True)
class Runtime:
    """A training runtime: a namespace's ``TrainingRuntime``, or a ``ClusterTrainingRuntime``."""

    name: str = "torch-distributed"
    kind: str = "ClusterTrainingRuntime"


class TrainJob(Kind):
    """The job ``node`` of a runtime, with our image and command.

    A running TrainJob has no condition (research); only the run's own records show that it runs.
    """

    name = "TrainJob"
    group = "trainer.kubeflow.org"
    version = "v1alpha1"
    plural = "trainjobs"
    container = "node"
    labels_pods = False
    reason = "the cluster has Kubeflow Trainer, but no PyTorchJob"
    restarts_forever = True  # what its runtime says counts

    def __init__(self, runtime: Runtime | None = None) -> None:
        self.runtime = runtime or Runtime()

    def rendezvous(self, name: str, nodes: int) -> Rendezvous:
        """From the torch runtime's variables; the master's name is that of the pod's service."""
        del name, nodes
        return Rendezvous("$(PET_NODE_RANK)", "$(PET_MASTER_ADDR)")

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
        override["containers"] = [{"name": self.container, "volumeMounts": [dict(mount) for mount in pod.mounts]}]
        return {
            **build_head(self, kind_input),
            "spec": {
                "runtimeRef": {"apiGroup": self.group, "kind": self.runtime.kind, "name": self.runtime.name},
                "labels": dict(pod.labels),
                "trainer": trainer,
                "podSpecOverrides": [override],
            },
        }

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
            isinstance(job_status, Mapping) and conditions.as_int(job_status.get("ready")) for job_status in counts
        )
        return conditions.observe_running(job, now) if is_ready else conditions.waiting(job, now)

    def pods_selector(self, name: str) -> str:
        """By JobSet's label; the set has the object's name."""
        return f"jobset.sigs.k8s.io/jobset-name={name}"

    def pods(self, spec: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
        """The trainer's nodes, as far as the object tells; the rest is in the runtime."""
        trainer, overrides = mapping_at(spec, "trainer"), spec.get("podSpecOverrides")
        selectors = [
            mapping_at(override, "nodeSelector") for override in (overrides if isinstance(overrides, list) else ())
        ]
        container = {"resources": mapping_at(trainer, "resourcesPerNode")}
        pod = {"nodeSelector": next(filter(None, selectors), {}), "containers": [container]}
        return [(count_or_one(trainer.get("numNodes")), pod)]

    async def check_runtime(self, client: KubeClient, namespace: str) -> list[Finding]:
        """Errors in the runtime; no findings if the user may not read it."""
        runtime = self.runtime
        api = f"/apis/{self.group}/{self.version}"
        runtimes_path = f"{api}/clustertrainingruntimes"
        if runtime.kind == "TrainingRuntime":
            runtimes_path = f"{api}/namespaces/{namespace}/trainingruntimes"
        try:
            response = await client.get(f"{runtimes_path}/{runtime.name}")
        except (DeniedError, NotFoundError):  # the webhook reports a missing one
            return []
        return runtime_findings(response, runtime)


def runtime_findings(response: Mapping[str, Any], runtime: Runtime) -> list[Finding]:
    """What a runtime's object lacks for a run with our launcher: a TrainJob cannot change that."""
    jobs = mapping_at(response, "spec", "template", "spec").get("replicatedJobs") or []
    node = next((job for job in jobs if mapping_at(job).get("name") == TrainJob.container), None)
    pod = mapping_at(node, "template", "spec", "template", "spec")
    names = [mapping_at(container).get("name") for container in pod.get("containers") or []]
    if TrainJob.container not in names:
        message = f"the training runtime {runtime.name} has no job called node with a container called node, which a run needs"
        hint = "set runtime in the configuration of the cluster to another one"
        return [Finding(level="error", code="runtime_without_node", message=message, hint=hint)]
    if pod.get("restartPolicy") == "Never":
        return []
    message = f"the training runtime {runtime.name} restarts failed pods itself, regardless of max_restarts, and deletes them with their last log lines"
    hint = "ask your cluster administrator for a runtime whose pods have the restart policy Never, so that max_restarts is respected"
    return [Finding(level="warning", code="runtime_restarts", message=message, hint=hint)]
