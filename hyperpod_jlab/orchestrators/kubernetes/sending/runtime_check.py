"""What a training runtime must have, so that a TrainJob with our launcher can be made of it: a TrainJob cannot change that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.model.errors import DeniedError, NotFoundError
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Kind
from hyperpod_jlab.orchestrators.kubernetes.kinds.train_job import Runtime, TrainJob


async def check_runtime(client: KubeClient, kind: Kind, namespace: str) -> list[Finding]:
    """What is wrong with a TrainJob's runtime; those who may not read it get no word.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    if not isinstance(kind, TrainJob):
        return []
    runtime = kind.runtime
    api = f"/apis/{kind.group}/{kind.version}"
    where = f"{api}/clustertrainingruntimes"
    if runtime.kind == "TrainingRuntime":
        where = f"{api}/namespaces/{namespace}/trainingruntimes"
    try:
        found = await client.get(f"{where}/{runtime.name}")
    except (DeniedError, NotFoundError):  # the webhook says that there is none
        return []
    return runtime_findings(found, runtime)


def runtime_findings(found: Mapping[str, Any], runtime: Runtime) -> list[Finding]:
    """The same of a runtime's object."""
    jobs = _at(found, "spec", "template", "spec", "replicatedJobs")
    node = next(
        (job for job in jobs or [] if _at(job, "name") == TrainJob.container),
        None,
    )
    pod = _at(node, "template", "spec", "template", "spec")
    names = [_at(one, "name") for one in _at(pod, "containers") or []]
    if TrainJob.container not in names:
        message = f"the training runtime {runtime.name} has no job called node with a container called node, in which a run could run"
        hint = "name another one as runtime in the cluster's configuration"
        return [Finding(level="error", code="runtime_without_node", message=message, hint=hint)]
    if _at(pod, "restartPolicy") == "Never":
        return []
    message = f"the training runtime {runtime.name} starts pods that failed again by itself, whatever max_restarts says, and removes them with what they said in the end"
    hint = "a run's code is not executed more often than max_restarts allows where a pod that is started again can see that the run is over; ask the cluster's admin for one whose pods have the restart policy Never"
    return [Finding(level="warning", code="runtime_restarts", message=message, hint=hint)]


def _at(found: Any, *path: str) -> Any:
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
