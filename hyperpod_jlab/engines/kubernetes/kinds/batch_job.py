"""Kubernetes' own Job (batch/v1), for clusters without a training operator: indexed pods that find node 0 through a headless service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.kinds import kind as conditions
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    Kind,
    KindInput,
    Rendezvous,
    build_head,
    count_or_one,
    mapping_at,
    pod_template,
)


class BatchJob(Kind):
    """An indexed Job: the pod with index 0 is the master.

    A pod that was evicted or lost with its node is replaced. Any other failed pod ends the job or,
    in an array, only its own task.
    """

    name = "Job"
    group = "batch"
    version = "v1"
    plural = "jobs"
    container = "run"
    reason = "the cluster has no training operator"
    runs_arrays = True
    replaces_failed_pods = True

    def rendezvous(self, name: str, nodes: int) -> Rendezvous:
        """An indexed pod's host name is the job's name with its index; the service has the job's name."""
        master = f"{name}-0.{name}" if nodes > 1 else "127.0.0.1"
        return Rendezvous("$(JOB_COMPLETION_INDEX)", master)

    def manifest(self, kind_input: KindInput) -> dict[str, Any]:
        """The object; its pods stay when it ends."""
        template = pod_template(kind_input.pod, self.container, restart="Never")
        if kind_input.nodes > 1:
            template["spec"] = {"subdomain": kind_input.name, **template["spec"]}
        count, parallelism = kind_input.array or (kind_input.nodes, kind_input.nodes)
        spec: dict[str, Any] = {
            "completions": count,
            "parallelism": parallelism,
            "completionMode": "Indexed",
            ("backoffLimit" if kind_input.array is None else _RETRIES_PER_INDEX): 0,
            "podFailurePolicy": {"rules": [_IGNORE_DISRUPTION]},
        }
        # A time limit applies to each task, so only the tasks' launchers can enforce it.
        if kind_input.time_limit is not None and kind_input.array is None:
            spec["activeDeadlineSeconds"] = kind_input.time_limit
        return {**build_head(self, kind_input), "spec": {**spec, "template": template}}

    def companions(self, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The headless service through which pods find node 0 before it is ready."""
        metadata, spec = manifest["metadata"], manifest["spec"]
        if spec.get("completions", 1) <= 1 or _RETRIES_PER_INDEX in spec:
            return []
        return [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": metadata["name"], "labels": dict(metadata["labels"])},
                "spec": {
                    "clusterIP": "None",
                    "publishNotReadyAddresses": True,
                    "selector": {"batch.kubernetes.io/job-name": metadata["name"]},
                },
            }
        ]

    def observe(self, job: Mapping[str, Any], now: float) -> Observation:
        """From its conditions, then from its pod counts.

        The Job's end is decided some time before it has ended; meanwhile its pods are terminated
        and not replaced.
        """
        true_by_type = conditions.active_conditions(job)
        if "Failed" in true_by_type:
            return conditions.observe_failed(job, true_by_type["Failed"], now)
        if "Complete" in true_by_type:
            return conditions.observe_succeeded(job, true_by_type["Complete"], now)
        if true_by_type.keys() & _DECIDED:
            return conditions.observe_running(job, now, "its last pods are terminating")
        if "Suspended" in true_by_type:
            return conditions.observe_suspended(job, now)
        status = conditions.find_status(job)
        if conditions.as_int(status.get("ready")) or conditions.as_int(status.get("succeeded")):
            return conditions.observe_running(job, now)
        return conditions.waiting(job, now)

    def pods_selector(self, name: str) -> str:
        """By the job controller's label."""
        return f"batch.kubernetes.io/job-name={name}"

    def pods(self, spec: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
        """Those that run at once."""
        parallel, completions = count_or_one(spec.get("parallelism")), spec.get("completions")
        count = min(parallel, count_or_one(completions)) if completions is not None else parallel
        return [(count, mapping_at(spec, "template", "spec"))]


_RETRIES_PER_INDEX = "backoffLimitPerIndex"
"""With this field a Job executes all of its indexes, whichever fail (Kubernetes 1.29 or newer)."""

_DECIDED = frozenset({"FailureTarget", "SuccessCriteriaMet"})
"""Conditions of a Job whose end is decided (k8s.io/api/batch/v1, JobConditionType)."""

_IGNORE_DISRUPTION = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
"""A pod that was evicted, preempted or lost with its node does not count as failed."""
