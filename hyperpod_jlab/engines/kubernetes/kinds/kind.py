"""What the kinds of objects that run a run have in common."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar

from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.core.spec import AlarmCode
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient

# --------------------------------------------------------------------------------------------------
# Failure messages from the operators' conditions. The texts are those of the training operator 1.8
# and 1.9, Kubernetes 1.34 and JobSet 0.8.

_MAX_TEXT = 400

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"because 1 (?P<role>\w+) replica\(s\) failed"), "a pod of its failed ({role})"),
    (re.compile(r"because (?P<count>\d+) (?P<role>\w+) replica\(s\) failed"), "{count} of its pods failed ({role})"),
    (re.compile(r"reached the specified backoff limit"), "its pods failed more often than backoffLimit allows"),
    (re.compile(r"was active longer than specified deadline"), "it reached its time limit"),
    (
        re.compile(r"for pod \S*?(?P<pod>[^\s/]+) failed with exit code (?P<code>\d+) matching FailJob rule"),
        "its pod {pod} ended with exit code {code}, which ends the job (podFailurePolicy)",
    ),
    (re.compile(r"jobset failed due to one or more job failures"), "one or more of its jobs failed"),
)


def failure_message(message: str) -> str | None:
    """An operator's message in our wording; an unknown one is returned unchanged, None without a message."""
    for pattern, message_text in _RULES:
        match = pattern.search(message)
        if match is not None:
            return message_text.format(**match.groupdict())
    return f"its operator reports: {message[:_MAX_TEXT]}" if message else None


# --------------------------------------------------------------------------------------------------
# Names, labels and annotations of our objects.

RUN_LABEL = "hyperpod-jlab/run-id"
USER_LABEL = "hyperpod-jlab/user"
NAME_ANNOTATION = "hyperpod-jlab/name"
USER_ANNOTATION = "hyperpod-jlab/user"
KEEP_ANNOTATION = "hyperpod-jlab/keep"
"""On a companion object that its user wants to keep after the run."""
HELD_ANNOTATION = "hyperpod-jlab/held"
"""On an object that a user holds through us."""
CORDON_ANNOTATION = "hyperpod-jlab/cordon-reason"
"""On a node that a user cordoned through us: the reason."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"

MIN_PARALLELISM_ANNOTATION = "kueue.x-k8s.io/job-min-parallelism"
"""On a Job: the number of pods with which Kueue may start it; Kueue then lowers the Job's own parallelism."""

_MAX_NAME = 63
"""Maximum length of a label value."""


def object_name(run_id: str) -> str:
    """The object's name; it starts with a letter, as service names must (research: the webhook rejects a digit).

    A run id has at most 40 characters, so that the names of its pods and services stay within 63.
    """
    return f"run-{run_id}"


def to_label_value(text: str) -> str:
    """Convert a text to a label value: letters and digits stay, other characters become dashes; may be empty."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:_MAX_NAME].strip("._-")


# --------------------------------------------------------------------------------------------------
# Helpers shared by the kinds' observations. Status objects are read tolerantly: unknown or
# malformed parts are ignored.

OBSERVER = "kubernetes"

_MAX_CONDITION = 600


def find_status(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of an object; empty before its operator has seen it."""
    content = job.get("status")
    return content if isinstance(content, Mapping) else {}


def active_conditions(job: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The true conditions by type, in the object's order."""
    content = find_status(job).get("conditions")
    return {
        str(condition.get("type")): condition
        for condition in (content if isinstance(content, list) else [])
        if isinstance(condition, Mapping) and condition.get("status") == "True"
    }


def observe_running(job: Mapping[str, Any], now: float, reason: str | None = None) -> Observation:
    """A running run."""
    return Observation(time=now, observer=OBSERVER, scheduler_id=_name(job), state="running", reason=reason)


def waiting(job: Mapping[str, Any], now: float, reason: str | None = None, code: str | None = None) -> Observation:
    """A waiting run."""
    return Observation(
        time=now, observer=OBSERVER, scheduler_id=_name(job), state="waiting", reason=reason, reason_code=code
    )


def observe_suspended(job: Mapping[str, Any], now: float) -> Observation:
    """Suspended, by a user or by its queue. The object does not say which (research: only Kueue's Workload does), except when it was held through us."""
    if HELD_ANNOTATION in ((job.get("metadata") or {}).get("annotations") or {}):
        return waiting(job, now, "it is held", "held")
    return waiting(job, now, "it is suspended or waiting in its queue", "suspended")


def observe_succeeded(job: Mapping[str, Any], condition: Mapping[str, Any], now: float) -> Observation:
    """A run that succeeded."""
    return _observe_end(job, condition, now, "COMPLETED", None)


def observe_failed(job: Mapping[str, Any], condition: Mapping[str, Any], now: float) -> Observation:
    """Failed, with the reason and the operator's message."""
    deadline = condition.get("reason") == "DeadlineExceeded"
    message = " ".join(str(condition.get("message") or "").split())[:_MAX_CONDITION]
    message_text = "it reached its time limit" if deadline else failure_message(message)
    observation = _observe_end(job, condition, now, "TIMEOUT" if deadline else "FAILED", message_text)
    return observation.model_copy(update={"detail": message or None})


def _observe_end(
    job: Mapping[str, Any], condition: Mapping[str, Any], now: float, verdict: str, reason: str | None
) -> Observation:
    text = find_status(job).get("completionTime") or condition.get("lastTransitionTime")
    return Observation(
        time=min(now, parse_time(text, now)),
        observer=OBSERVER,
        scheduler_id=_name(job),
        state="ended",
        verdict=verdict,
        exit_code=0 if verdict == "COMPLETED" else None,
        reason=reason,
    )


def parse_time(text: object, default: float) -> float:
    """Parse a Kubernetes time (RFC 3339) to Unix seconds."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError, OSError):
        return default


def as_int(value: object) -> int:
    """A number in a status; 0 when it is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _name(job: Mapping[str, Any]) -> str:
    return str(job["metadata"]["name"])


# --------------------------------------------------------------------------------------------------
# How a pod's launcher finds the other nodes of its run.


@dataclass(frozen=True)
class Rendezvous:
    """Arguments of the launcher's command; the kubelet replaces each ``$(NAME)`` with that variable of the container.

    Attributes:
        node_rank: The pod's rank among the run's nodes.
        master_addr: Name or address of node 0's pod.
        starts_late: Whether a shell replaces them instead, after a wrapper program has set the
            variables.
    """

    node_rank: str
    master_addr: str
    starts_late: bool = False


@dataclass(frozen=True)
class PodSpec:
    """One of the run's pods; all are identical.

    Attributes:
        image: The container's image.
        command: The container's command.
        env: The container's environment.
        mounts: The container's volume mounts.
        volumes: The pod's volumes.
        resources: Requests and limits of the container by resource.
        node_selector: Labels that its node must have.
        tolerations: Taints that it tolerates.
        labels: The pod's labels.
        annotations: The pod's annotations.
        priority_class: The cluster's priority class, or None.
        service_account: Its service account, or None for the namespace's default.
    """

    image: str
    command: Sequence[str]
    env: Sequence[Mapping[str, Any]] = ()
    mounts: Sequence[Mapping[str, Any]] = ()
    volumes: Sequence[Mapping[str, Any]] = ()
    resources: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    priority_class: str | None = None
    service_account: str | None = None


@dataclass(frozen=True)
class KindInput:
    """A run as input for any kind.

    Attributes:
        name: The object's name.
        namespace: Its namespace.
        nodes: The number of pods.
        pod: The pod, the same for each.
        labels: The object's labels.
        annotations: The object's annotations.
        time_limit: The time limit in seconds, or None.
        retries: How often HyperPod may resume it on other nodes, or None for never.
        array: For an array: the number of tasks, one pod each, and how many run at once.
        stop_on: The alarms that end an attempt.
    """

    name: str
    namespace: str
    nodes: int
    pod: PodSpec
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    time_limit: int | None = None
    retries: int | None = None
    array: tuple[int, int] | None = None
    stop_on: Sequence[AlarmCode] = ()


class Kind(ABC):
    """A kind of object that runs a run: what differs from the others."""

    name: ClassVar[str]
    """The object's ``kind``."""
    group: ClassVar[str]
    """Its API group, such as ``kubeflow.org``."""
    version: ClassVar[str]
    plural: ClassVar[str]
    """Its name in paths."""
    container: ClassVar[str]
    """The container of its pods in which the launcher runs."""
    suspend_path: ClassVar[tuple[str, ...]] = ("spec",)
    """The path to the part with ``suspend``."""
    replicas_field: ClassVar[str | None] = None
    """The field of its spec that lists its replica types, each with a pod template."""
    reason: ClassVar[str | None] = None
    """Why a run that names no kind becomes this one; None if it never does."""
    labels_pods: ClassVar[bool] = True
    """Whether its pods can have our labels, such as the run's."""
    is_hyperpods: ClassVar[bool] = False
    """Whether it exists on HyperPod only."""
    is_resumable: ClassVar[bool] = False
    """Whether HyperPod's auto-resume is on by default."""
    runs_arrays: ClassVar[bool] = False
    replaces_failed_pods: ClassVar[bool] = False
    """Whether an own manifest's pods are replaced when they fail."""
    restarts_forever: ClassVar[bool] = False
    """Whether it restarts pods without a limit."""

    @abstractmethod
    def rendezvous(self, name: str, nodes: int) -> Rendezvous:
        """How the launchers of an object with this name and this many pods find each other."""

    def wrap(self, command: Sequence[str], nodes: int) -> list[str]:
        """The container's command for a launcher's command: the same, or wrapped in the kind's program."""
        del nodes
        return list(command)

    @abstractmethod
    def manifest(self, kind_input: KindInput) -> dict[str, Any]:
        """The object."""

    def companions(self, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Further objects that its pods need and that it owns; the owner reference is added once the object exists."""
        del manifest
        return []

    @abstractmethod
    def observe(self, job: Mapping[str, Any], now: float) -> Observation:
        """The object's observation of its run; unknown fields are ignored.

        Args:
            job: The object from the API server.
            now: When it was read (Unix seconds).
        """

    @abstractmethod
    def pods_selector(self, name: str) -> str:
        """The label selector of the pods of an object with this name."""

    def node_rank(self, pod: Mapping[str, Any]) -> int | None:
        """A pod's rank among the run's nodes, from its labels; None when they do not contain it."""
        return int_label(pod, "batch.kubernetes.io/job-completion-index")

    def replicas(self, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The replica types of an own manifest's spec, as far as they have the right shape."""
        replicas = spec.get(self.replicas_field or "")
        listed = list(replicas.values()) if isinstance(replicas, dict) else replicas
        return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []

    def pods(self, spec: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
        """The groups of identical pods that an object's spec requests: how many, and the pod's spec."""
        return [
            (count_or_one(replica.get("replicas")), mapping_at(replica, "template", "spec"))
            for replica in self.replicas(spec)
        ]

    def resumed_form(self) -> Kind:
        """The form that HyperPod resumes."""
        return self

    def resume_findings(self, namespace: str, operator: str | None) -> Iterator[Finding]:
        """What prevents HyperPod from resuming a run; it does only what has no warning.

        Args:
            namespace: The job's namespace.
            operator: The training operator's version; None when unknown.
        """
        del namespace, operator
        yield Finding(
            level="warning",
            code="auto_resume_kind",
            message=f"HyperPod does not resume a {self.name}",
            hint="use PyTorchJob or HyperPodPyTorchJob, or give --no-auto-resume",
            field="auto_resume",
        )

    def image_findings(self) -> Iterator[Finding]:
        """What the image must have."""
        yield from ()

    async def check_runtime(self, client: KubeClient, namespace: str) -> list[Finding]:
        """Errors in what the cluster defines for this kind.

        Raises:
            UnreachableError: The cluster does not answer.
        """
        del client, namespace
        return []

    async def check_manifest(self, client: KubeClient, document: Mapping[str, Any]) -> list[Finding]:
        """Findings about a user's own manifest, which is submitted unchanged."""
        del client, document
        return []


def count_or_one(value: object) -> int:
    """A count in a user's manifest; 1 when it is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 1


def mapping_at(content: Any, *path: str) -> Mapping[str, Any]:
    """A part of an object; empty when it is not there."""
    for name in path:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content if isinstance(content, Mapping) else {}


def jobs_path(kind: Kind, namespace: str | None) -> str:
    """The path of a kind's objects in a namespace, or in all namespaces with None."""
    namespace_path = f"/namespaces/{namespace}" if namespace is not None else ""
    return f"/apis/{kind.group}/{kind.version}{namespace_path}/{kind.plural}"


def build_head(
    kind: Kind, kind_input: KindInput, annotations: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """The part of an object before its spec, with further annotations."""
    return {
        "apiVersion": f"{kind.group}/{kind.version}",
        "kind": kind.name,
        "metadata": {
            "name": kind_input.name,
            "namespace": kind_input.namespace,
            "labels": dict(kind_input.labels),
            "annotations": {**kind_input.annotations, **annotations},
        },
    }


def suspend_patch(kind: Kind, suspend: bool) -> dict[str, Any]:
    """The merge patch that suspends or resumes an object of this kind."""
    patch: dict[str, Any] = {"suspend": suspend}
    for name in reversed(kind.suspend_path):
        patch = {name: patch}
    return patch


def is_suspended(kind: Kind, job: Mapping[str, Any]) -> bool:
    """Whether an object's spec suspends it."""
    part: Mapping[str, Any] = job
    for name in kind.suspend_path:
        part = part.get(name) or {}
    return bool(part.get("suspend"))


def find_labels(document: Mapping[str, Any]) -> Mapping[str, str]:
    """The labels of an object."""
    return (document.get("metadata") or {}).get("labels") or {}


def int_label(document: Mapping[str, Any], name: str) -> int | None:
    """A label as a number."""
    text = str(find_labels(document).get(name, ""))
    return int(text) if text.isdecimal() and len(text) < 9 else None


# --------------------------------------------------------------------------------------------------
# The pod template that most kinds use.


def pod_template(pod: PodSpec, container: str, *, restart: str | None = None) -> dict[str, Any]:
    """Build the template.

    Args:
        pod: The pod.
        container: The container name that the kind requires.
        restart: The restart policy, if the template has it.
    """
    metadata: dict[str, Any] = {"labels": dict(pod.labels)}
    if pod.annotations:
        metadata["annotations"] = dict(pod.annotations)
    spec: dict[str, Any] = {}
    if restart is not None:
        spec["restartPolicy"] = restart
    if pod.node_selector:
        spec["nodeSelector"] = dict(pod.node_selector)
    if pod.tolerations:
        spec["tolerations"] = [dict(toleration) for toleration in pod.tolerations]
    if pod.priority_class is not None:
        spec["priorityClassName"] = pod.priority_class
    if pod.service_account is not None:
        spec["serviceAccountName"] = pod.service_account
    spec["containers"] = [_container(pod, container)]
    spec["volumes"] = [dict(volume) for volume in pod.volumes]
    return {"metadata": metadata, "spec": spec}


def _container(pod: PodSpec, name: str) -> dict[str, Any]:
    template: dict[str, Any] = {
        "name": name,
        "image": pod.image,
        "command": list(pod.command),
        "env": [dict(variable) for variable in pod.env],
        "volumeMounts": [dict(mount) for mount in pod.mounts],
    }
    if pod.resources:
        template["resources"] = requests(pod.resources)
    return template


def requests(resources: Mapping[str, str]) -> dict[str, Any]:
    """A container's resources, with requests equal to limits."""
    return {"limits": dict(resources), "requests": dict(resources)}
