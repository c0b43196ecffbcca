"""The training operator's PyTorchJob (kubeflow.org/v1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hyperpod_jlab.core.errors import DeniedError, NotFoundError
from hyperpod_jlab.core.finding import Finding, Level
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds import kind as conditions
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    Kind,
    KindInput,
    Rendezvous,
    build_head,
    find_labels,
    int_label,
    mapping_at,
    pod_template,
)

# --------------------------------------------------------------------------------------------------
# HyperPod's auto-resume of PyTorchJobs: AWS's documented conditions, and what prevents it. Pure:
# the cluster's state is an input.

ENABLED = "sagemaker.amazonaws.com/enable-job-auto-resume"
RETRIES = "sagemaker.amazonaws.com/job-max-retry-count"

RESTART_POLICY = "OnFailure"
"""The only restart policy of pods with which HyperPod resumes a job."""

VERSIONS = ("1.7.0", "1.8.0", "1.8.1")
"""The releases of Kubeflow's training operator that AWS documents."""
_VERSIONS = f"{', '.join(VERSIONS[:-1])} or {VERSIONS[-1]}"
_TAGS = {"v1-855e096": "1.7.0", "v1-9e52eb7": "1.8.0", "v1-04f9f13": "1.8.1"}
"""Image tags of the releases; AWS's chart uses the first of these."""

_NAMESPACE = re.compile(r"kubeflow|(aws-)?hyperpod.*")
_FIELD = "auto_resume"


def resume_annotations(retries: int | None) -> dict[str, str]:
    """The annotations that request auto-resume; none without retries."""
    return {} if retries is None else {ENABLED: "true", RETRIES: str(retries)}


def is_requested(document: Mapping[str, Any]) -> bool:
    """Whether a manifest has the annotation."""
    annotations = mapping_at(document, "metadata", "annotations")
    return str(annotations.get(ENABLED)).lower() == "true"


def parse_image_version(image: str) -> str | None:
    """The training operator's version from its image; None when the image does not tell."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    match = re.fullmatch(r"v?(\d+\.\d+\.\d+)", tag)
    return match[1] if match else _TAGS.get(tag)


_OPERATOR = "/apis/apps/v1/namespaces/kubeflow/deployments"
_OPERATOR_LABEL = "control-plane=kubeflow-training-operator"


async def operator_version(client: KubeClient) -> str | None:
    """The version of Kubeflow's training operator; None when unknown: few users may read its namespace."""
    try:
        response: dict[str, Any] = await client.get(_OPERATOR, labelSelector=_OPERATOR_LABEL)
    except (NotFoundError, DeniedError):
        return None
    for item in response.get("items") or []:
        for container in item["spec"]["template"]["spec"]["containers"]:
            version = parse_image_version(str(container.get("image")))
            if version is not None:
                return version
    return None


def find_obstacles(namespace: str, operator: str | None, field: str = _FIELD) -> Iterator[Finding]:
    """What prevents HyperPod from resuming a run.

    Args:
        namespace: The job's namespace.
        operator: The training operator's version; None when unknown.
        field: The spec field of the findings.
    """
    if not _NAMESPACE.fullmatch(namespace):
        yield _finding(
            "namespace",
            f"HyperPod does not resume jobs in the namespace {namespace}",
            "use the namespace kubeflow, or one that starts with hyperpod or aws-hyperpod",
            field,
        )
    if operator is not None and operator not in VERSIONS:
        yield _finding(
            "operator",
            f"HyperPod does not resume jobs with the training operator {operator}",
            f"ask your cluster administrator for {_VERSIONS}",
            field,
        )


def unknown_operator_finding(field: str = _FIELD) -> Finding:
    """The finding when the version is unknown."""
    return _finding(
        "operator",
        "the version of the training operator cannot be detected",
        f"HyperPod resumes jobs only with {_VERSIONS}; if in doubt, ask your cluster administrator",
        field,
        "info",
    )


def manifest_findings(document: Mapping[str, Any], operator: str | None) -> Iterator[Finding]:
    """The same for a user's own manifest, which is submitted unchanged."""
    if not is_requested(document):
        return
    namespace = str(mapping_at(document, "metadata").get("namespace"))
    yield from find_obstacles(namespace, operator, "source")
    replicas = mapping_at(document, "spec", "pytorchReplicaSpecs")
    policies = {name: str(mapping_at(replica).get("restartPolicy") or "none") for name, replica in replicas.items()}
    wrong_policies = [f"{name} {policy}" for name, policy in policies.items() if policy != RESTART_POLICY]
    if wrong_policies:
        yield _finding(
            "restart_policy",
            f"HyperPod resumes jobs only with restartPolicy: {RESTART_POLICY}, but this job has: {', '.join(wrong_policies)}",
            f"write restartPolicy: {RESTART_POLICY} for each of pytorchReplicaSpecs",
            "source",
        )
    if operator is None:
        yield unknown_operator_finding("source")


def _finding(code: str, message: str, hint: str, field: str, level: Level = "warning") -> Finding:
    return Finding(level=level, code=f"auto_resume_{code}", message=message, hint=hint, field=field)


_INDEX = {
    "name": "HYPERPOD_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['training.kubeflow.org/replica-index']"}},
}

_RESTARTS = 3
"""Container restarts, counted over all pods that run together, after which a job with OnFailure fails, per pod.

Launchers end only when the run is over or they were killed. When a run has failed, restarted
launchers end again at once; the kubelet restarts them after 0, 10 and 20 seconds, and then the job
fails too. The same number may be killed, or lose power, in pods that survive.
"""


class PyTorchJob(Kind):
    """One Master and the other nodes as Workers; only Workers in one that HyperPod resumes.

    With a Master, the operator adds an init container to each worker. It fails repeatedly while the
    master waits for a node, and with OnFailure each failure counts against the backoffLimit.

    The conditions keep history: Running turns false when the job ends, Restarting replaces Running,
    and Succeeded means the master alone (research).

    Args:
        resumed: Whether HyperPod resumes it.
    """

    name = "PyTorchJob"
    group = "kubeflow.org"
    version = "v1"
    plural = "pytorchjobs"
    container = "pytorch"  # its webhook requires this name
    suspend_path = ("spec", "runPolicy")
    replicas_field = "pytorchReplicaSpecs"
    reason = "the cluster has Kubeflow's training operator"
    is_resumable = True

    def __init__(self, *, resumed: bool = False) -> None:
        self.resumed = resumed

    def rendezvous(self, name: str, nodes: int) -> Rendezvous:
        """The operator sees one process per pod, so RANK is the pod's; a job of workers only gets neither RANK nor an address."""
        del nodes
        if self.resumed:
            return Rendezvous(f"$({_INDEX['name']})", f"{name}-worker-0")
        return Rendezvous("$(RANK)", "$(MASTER_ADDR)")

    def wrap(self, command: Sequence[str], nodes: int) -> list[str]:
        """The launcher.

        Because lost pods are replaced, it never exits with 128 or more for a failure that a new pod would not
        fix, such as a rank's signal or a missing python.
        """
        del nodes
        if self.resumed:
            return list(command)
        return ["/bin/sh", "-c", 'exec "$0" "$@"', *command, "--no-signal-codes"]

    def manifest(self, kind_input: KindInput) -> dict[str, Any]:
        """The object; its pods stay when it ends, and with them their logs."""
        template = pod_template(kind_input.pod, self.container)
        # At the backoffLimit the operator deletes all pods, whatever the policy, and their logs
        # with them (observed on 1.8.1).
        policy: dict[str, Any] = {"cleanPodPolicy": "None"}
        if kind_input.time_limit is not None:
            policy["activeDeadlineSeconds"] = kind_input.time_limit
        if self.resumed:
            # The operator may recreate pods while it records that the job has failed (observed on
            # 1.8.1); with None they would restart forever.
            policy["cleanPodPolicy"] = "Running"
            policy["backoffLimit"] = _RESTARTS * kind_input.nodes
            template["spec"]["containers"][0]["env"].append(_INDEX)
            replicas = {"Worker": _replica(kind_input.nodes, RESTART_POLICY, template)}
        else:
            # The operator recreates pods that were deleted, evicted or lost with their node (observed
            # on 1.8.1).
            replicas = {"Master": _replica(1, "ExitCode", template)}
            if kind_input.nodes > 1:
                replicas["Worker"] = _replica(kind_input.nodes - 1, "ExitCode", template)
        return {
            **build_head(self, kind_input, resume_annotations(kind_input.retries if self.resumed else None)),
            "spec": {
                # One launcher per pod starts all of its ranks, so for the operator each pod is one
                # process.
                "nprocPerNode": "1",
                "runPolicy": policy,
                "pytorchReplicaSpecs": replicas,
            },
        }

    def resumed_form(self) -> PyTorchJob:
        """With workers only."""
        return PyTorchJob(resumed=True)

    def resume_findings(self, namespace: str, operator: str | None) -> Iterator[Finding]:
        """AWS's conditions; an unknown operator is only information."""
        obstacles = [*find_obstacles(namespace, operator)]
        yield from obstacles
        if not obstacles and operator is None:
            yield unknown_operator_finding()

    async def check_manifest(self, client: KubeClient, document: Mapping[str, Any]) -> list[Finding]:
        """Whether HyperPod can resume it, if it has the annotation."""
        if not is_requested(document):
            return []
        return [*manifest_findings(document, await operator_version(client))]

    def observe(self, job: Mapping[str, Any], now: float) -> Observation:
        """From its conditions; succeeded only when all replicas are done."""
        true_by_type = conditions.active_conditions(job)
        if "Failed" in true_by_type:
            return conditions.observe_failed(job, true_by_type["Failed"], now)
        if "Succeeded" in true_by_type and _all_succeeded(job):
            return conditions.observe_succeeded(job, true_by_type["Succeeded"], now)
        if true_by_type.keys() & {"Succeeded", "Running", "Restarting"}:
            return conditions.observe_running(job, now)
        if "Suspended" in true_by_type:
            return conditions.observe_suspended(job, now)
        return conditions.waiting(job, now)

    def pods_selector(self, name: str) -> str:
        """By the operator's label."""
        return f"training.kubeflow.org/job-name={name}"

    def node_rank(self, pod: Mapping[str, Any]) -> int | None:
        """The master is 0; worker i is i + 1, or i in a job with workers only."""
        index = int_label(pod, "training.kubeflow.org/replica-index")
        role = find_labels(pod).get("training.kubeflow.org/replica-type", "").lower()
        if index is None or role not in {"master", "worker"}:
            return None
        return index + 1 if role == "worker" and _is_waiting_for_master(pod) else index


def _is_waiting_for_master(pod: Mapping[str, Any]) -> bool:
    """Whether a worker's job has a master: only then does the operator add the init container that waits for it (setInitContainer, 1.7 to 1.9)."""
    prepared = (pod.get("spec") or {}).get("initContainers") or []
    return any(container.get("name") == "init-pytorch" for container in prepared)


def _replica(count: int, restart: str, template: dict[str, Any]) -> dict[str, Any]:
    return {"replicas": count, "restartPolicy": restart, "template": template}


def _all_succeeded(job: Mapping[str, Any]) -> bool:
    """Whether the pods of all replicas have succeeded."""
    replica_specs = (job.get("spec") or {}).get("pytorchReplicaSpecs") or {}
    replica_statuses = conditions.find_status(job).get("replicaStatuses") or {}
    return all(
        conditions.as_int((replica_statuses.get(kind) or {}).get("succeeded")) >= replica.get("replicas", 1)
        for kind, replica in replica_specs.items()
    )
