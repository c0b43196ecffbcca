"""Explains pod problems: reasons of containers, pods and events as messages, each with a remedy.

The texts are those of Kubernetes 1.34 with containerd, reproduced and recorded
(tests/kubernetes/recorded); other versions differ little. Unknown texts are shown unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import DeniedError, NotFoundError
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.tables.kueue import WorkloadRow
from hyperpod_jlab.engines.kubernetes.tables.pods import PodRow

# --------------------------------------------------------------------------------------------------
# Why no node accepts a pod: the scheduler's summary over all nodes, parsed and explained.

_HEAD = re.compile(r"^0/(?P<nodes>\d+) nodes are available: ?(?P<rest>.*)$", re.DOTALL)
_PREEMPTION_TAIL = re.compile(r"\.? (?:preemption: |no new claims to (?:de)?allocate|not found$).*$", re.DOTALL)
_PART = re.compile(r"(\d+) (.+?)(?=, \d+ |$)", re.DOTALL)
_TAINT = re.compile(r"untolerated taint(?:\(s\))? \{?([^:}]+)(?:: ?([^}]*))?\}?")

_RESOURCES = {
    "cpu": "CPUs",
    "memory": "memory",
    "ephemeral-storage": "disk space for containers",
    "pods": "pods",
    "nvidia.com/gpu": "GPUs",
    "vpc.amazonaws.com/efa": "EFA interfaces",
    "aws.amazon.com/neuron": "Neuron devices",
    "aws.amazon.com/neurondevice": "Neuron devices",
    "aws.amazon.com/neuroncore": "NeuronCores",
}

_UNCOUNTED = frozenset({"memory", "ephemeral-storage"})

_TAINTS = {
    "node.kubernetes.io/unreachable": "do not respond",
    "node.kubernetes.io/not-ready": "are not ready",
    "node.kubernetes.io/unschedulable": "are cordoned",
    "node.kubernetes.io/disk-pressure": "are low on disk space",
    "node.kubernetes.io/memory-pressure": "are low on memory",
    "node.kubernetes.io/pid-pressure": "are low on process ids",
    "node.cloudprovider.kubernetes.io/uninitialized": "are being set up",
    "sagemaker.amazonaws.com/node-health-status": "are being checked or repaired by HyperPod",
}

_PARTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"node\(s\) didn't match Pod's node affinity/selector"),
        "do not have the labels that it requests (instance type, instance group, other node labels)",
    ),
    (re.compile(r"node\(s\) were unschedulable"), "are cordoned"),
    (re.compile(r"node\(s\) didn't have free ports"), "have its port in use"),
    (re.compile(r"Too many pods"), "have reached their limit of pods"),
    (
        re.compile(r"node\(s\) had volume node affinity conflict|node\(s\) had no available volume"),
        "cannot reach its volume (it is bound to another zone or node)",
    ),
    (re.compile(r"node\(s\) exceed max volume count"), "have reached their limit of volumes"),
    (re.compile(r"node\(s\) didn't find available persistent volumes"), "have no volume that matches its claim"),
    (
        re.compile(r"node\(s\) didn't match pod topology spread constraints"),
        "would put too many of its pods into one topology domain",
    ),
    (re.compile(r"node\(s\) didn't (?:match|satisfy) .*anti-affinity"), "have pods that its anti-affinity excludes"),
    (re.compile(r"node\(s\) didn't match pod affinity"), "do not have the pods that its affinity requires"),
    (re.compile(r"Preemption is not helpful"), ""),
)

_WHOLE_MESSAGES: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r'persistentvolumeclaim "(?P<name>[^"]+)" not found'),
        "claim_not_found",
        (
            "the claim {name} does not exist in the namespace: use another storage claim in the configuration of the cluster, or ask your "
            "cluster administrator to create it"
        ),
    ),
    (
        re.compile(r'persistentvolumeclaim "(?P<name>[^"]+)" is being deleted'),
        "claim_not_found",
        "the claim {name} is being deleted",
    ),
    (
        re.compile(r'persistentvolumeclaim "(?P<name>[^"]+)" bound to non-existent'),
        "claim_not_bound",
        "the claim {name} belongs to a volume that no longer exists; ask your cluster administrator",
    ),
    (
        re.compile(r"pod has unbound immediate PersistentVolumeClaims"),
        "claim_not_bound",
        "one of its storage claims has no volume yet: see kubectl describe pvc, or ask your cluster administrator",
    ),
)


def explain_scheduling(message: str) -> tuple[str, str] | None:
    """A code and a sentence for the scheduler's message, or None for an unknown one."""
    for pattern, code, phrase in _WHOLE_MESSAGES:
        match = pattern.search(message)
        if match is not None:
            return code, phrase.format(**match.groupdict())
    head = _HEAD.match(message.strip())
    if head is None:
        return None
    if head["nodes"] == "0":
        return "no_nodes", "the cluster has no nodes now; ask your cluster administrator"
    parts_text = _PREEMPTION_TAIL.sub("", head["rest"]).rstrip(". ")
    parts = [(int(count), text) for count, text in _PART.findall(parts_text)]
    explained_parts = [f"{count} {_inflect(count, phrase)}" for count, text in parts if (phrase := _explain_part(text))]
    if not explained_parts:
        return None
    insufficient = [text for _, text in parts if text.startswith("Insufficient ")]
    advice = (
        "it starts when other jobs free enough resources, or earlier if it requests less"
        if insufficient
        else "list nodes with: hpj nodes"
    )
    nodes = head["nodes"]
    none = "the only node cannot run it now" if nodes == "1" else f"none of {nodes} nodes can run it now"
    return "unschedulable", f"{none}: {'; '.join(explained_parts)}; {advice}"


_SINGULAR = {"have ": "has ", "are ": "is ", "do ": "does ", "keep ": "keeps ", "report: ": "reports: "}


def _inflect(count: int, phrase: str) -> str:
    """The message for this number of nodes."""
    if count == 1:
        for plural, singular in _SINGULAR.items():
            if phrase.startswith(plural):
                return singular + phrase.removeprefix(plural)
    return phrase


def _explain_part(text: str) -> str:
    if text.startswith("Insufficient "):
        name = text.removeprefix("Insufficient ").strip()
        resource_label = _RESOURCES.get(name)
        few = "little" if name in _UNCOUNTED or resource_label is None else "few"
        return f"have too {few} free {resource_label or name}"
    taint = _TAINT.search(text)
    if taint is not None:
        key = taint[1].strip()
        taint_text = f"{key}={taint[2]}" if taint[2] else key
        return _TAINTS.get(key, f"have the taint {taint_text}, which it does not tolerate")
    for pattern, phrase in _PARTS:
        if pattern.search(text):
            return phrase
    return f"report: {text}"


@dataclass(frozen=True, slots=True)
class PodReason:
    """A reason: a code and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class _Rule:
    """The meaning of a reason.

    Attributes:
        reasons: Kubernetes' reasons; empty for any.
        pattern: The pattern that the message must match.
        code: Our reason code.
        message: Our sentence, with the pattern's groups.
    """

    reasons: frozenset[str]
    pattern: re.Pattern[str]
    code: str
    message: str


def _rule(reasons: str, pattern: str, code: str, phrase: str) -> _Rule:
    return _Rule(frozenset(reasons.split()), re.compile(pattern, re.DOTALL), code, phrase)


_PULL = "ErrImagePull ImagePullBackOff Failed BackOff"
_IMAGE = r'image "(?P<image>[^"]+)"'

_RULES: tuple[_Rule, ...] = (
    # Images.
    _rule(
        _PULL,
        _IMAGE
        + r".*(?:401 Unauthorized|403 Forbidden|authorization failed|no basic auth credentials|insufficient_scope|pull access denied|denied:|not authorized)",
        "image_denied",
        "the registry denies access to the image {image}: check its name, or ask your cluster administrator for the permission to pull it",
    ),
    _rule(
        _PULL,
        _IMAGE + r".*(?:: not found|manifest unknown|NotFound|name unknown|404 )",
        "image_not_found",
        "the image {image} does not exist: check its name and tag",
    ),
    _rule(
        _PULL,
        _IMAGE + r".*429 Too Many Requests",
        "image_registry",
        "the registry of {image} throttles requests (too many requests); the pull is retried",
    ),
    _rule(
        _PULL,
        _IMAGE + r".*(?:connection refused|no such host|i/o timeout|deadline exceeded|no route to host|50\d )",
        "image_registry",
        "the nodes cannot reach the registry of {image}: check the name of the image, or ask your cluster administrator; the pull is "
        "retried",
    ),
    _rule(
        _PULL,
        _IMAGE + r".*(?:x509|certificate)",
        "image_registry",
        "the nodes do not trust the certificate of the registry of {image}; ask your cluster administrator",
    ),
    _rule(
        _PULL,
        _IMAGE + r".*no space left on device",
        "node_disk_full",
        "the node has too little disk space for the image {image}; ask your cluster administrator",
    ),
    _rule(
        _PULL,
        _IMAGE + r".*no match for platform",
        "image_platform",
        "the image {image} does not support the processors of the nodes: build it for their platform",
    ),
    _rule(
        "ErrImagePull ImagePullBackOff",
        r'(?:image "(?P<image>[^"]+)")?',
        "image_pull",
        "its image cannot be pulled: check its name and tag, and the permission to pull it",
    ),
    _rule(
        "InvalidImageName InspectFailed",
        r'"(?P<image>[^"]+)"',
        "image_name",
        "{image} is not a valid image name: use registry/name:tag in lower case",
    ),
    _rule(
        "ErrImageNeverPull",
        r'image "(?P<image>[^"]+)"',
        "image_never_pulled",
        "the image {image} is not on the node, and imagePullPolicy is Never",
    ),
    # Container requirements.
    _rule(
        "CreateContainerConfigError Failed",
        r'(?P<kind>secret|configmap) "(?P<name>[^"]+)" not found',
        "config_not_found",
        "the {kind} {name} does not exist in the namespace: create it, or leave it out",
    ),
    _rule(
        "CreateContainerConfigError Failed",
        r"couldn't find key (?P<key>\S+) in (?P<kind>Secret|ConfigMap) (?P<name>\S+)",
        "config_not_found",
        "the {kind} {name} has no key {key}",
    ),
    _rule(
        "CreateContainerConfigError Failed",
        r"runAsNonRoot and image will run as root",
        "runs_as_root",
        "the image runs as root, which the namespace or the job forbids: use an image with another user, or set runAsUser with a patch",
    ),
    _rule("CreateContainerConfigError", r"(?P<said>.*)", "container_config", "its container cannot be created: {said}"),
    _rule(
        "StartError ContainerCannotRun RunContainerError CreateContainerError Failed",
        r'exec: "(?P<program>[^"]+)": .*(?:no such file|not found)',
        "no_program",
        "the image has no {program}: set --python to an interpreter that it has, or use another image",
    ),
    _rule(
        "StartError ContainerCannotRun RunContainerError CreateContainerError",
        r"(?P<said>.*)",
        "container_start",
        "its container cannot be started: {said}",
    ),
    # Volumes.
    _rule(
        "FailedMount",
        r'volume "(?P<volume>[^"]+)" : (?P<kind>secret|configmap) "(?P<name>[^"]+)" not found',
        "config_not_found",
        "the {kind} {name}, which it mounts, does not exist in the namespace",
    ),
    _rule(
        "FailedMount",
        r"driver name (?P<driver>\S+) not found in the list of registered CSI drivers",
        "no_driver",
        "its node has no driver {driver} for its volume; ask your cluster administrator to install it",
    ),
    _rule(
        "FailedMount",
        r"hostPath type check failed: (?P<path>.+) is not",
        "no_host_path",
        "its node has no {path}, which it mounts",
    ),
    _rule(
        "FailedMount FailedAttachVolume",
        r"(?P<said>.*)",
        "mount_failed",
        "one of its volumes cannot be mounted: {said}; the mount is retried",
    ),
    # Ends of containers and pods.
    _rule(
        "OOMKilled",
        "",
        "out_of_memory",
        "it exceeded its memory limit: request more with --memory, or use less (smaller batches, fewer data loader workers)",
    ),
    _rule(
        "Evicted",
        r"emptyDir volume \"(?P<volume>[^\"]+)\" exceeds|EmptyDir volume \"(?P<volume2>[^\"]+)\" exceeds",
        "evicted",
        "it was evicted: it exceeded the size of a temporary volume",
    ),
    _rule(
        "Evicted",
        r"low on resource: (?P<what>[\w-]+)",
        "evicted",
        "it was evicted because its node was low on {what}: request as much as it needs (--memory), and write large files to the storage "
        "partition",
    ),
    _rule("Evicted", r"(?P<said>.*)", "evicted", "it was evicted: {said}"),
    _rule("Preempted PreemptionByScheduler", "", "preempted", "a pod with a higher priority preempted it"),
    _rule(
        "TaintManagerEviction DeletionByTaintManager NodeLost NodeNotReady",
        "",
        "node_lost",
        "its node does not respond, or is being removed",
    ),
    _rule("NodeShutdown Terminated TerminationByKubelet", "", "node_lost", "its node is shutting down"),
    _rule("DeadlineExceeded", "", "time_limit", "it reached its time limit"),
    _rule(
        "CrashLoopBackOff BackOff",
        r"restarting failed container|^$",
        "crashes",
        "its container fails repeatedly and is restarted after a back-off: see its log",
    ),
    # Policies of the cluster.
    _rule(
        "",
        r"exceeded quota: (?P<quota>[^,]+), requested: (?P<wanted>.+?), used: (?P<used>.+?), limited: (?P<limit>.+)",
        "quota_exceeded",
        "the quota {quota} of the namespace does not allow it: it requests {wanted}, {used} is in use, {limit} is allowed; wait until "
        "other jobs end, or request less",
    ),
    _rule(
        "",
        r"failed quota: (?P<quota>[^:]+): must specify (?P<what>.+)",
        "quota_needs_requests",
        "the quota {quota} of the namespace requires requests from every job ({what}): give --cpus and --memory",
    ),
    _rule(
        "",
        r"violates PodSecurity \"(?P<level>[^\"]+)\": (?P<said>.+)",
        "pod_security",
        "the Pod Security level ({level}) of the namespace does not allow its pods: {said}",
    ),
    _rule(
        "",
        r"serviceaccount \"(?P<name>[^\"]+)\" not found",
        "no_service_account",
        "the service account {name} does not exist in the namespace",
    ),
    _rule(
        "",
        r"admission webhook \"(?P<hook>[^\"]+)\" denied the request: (?P<said>.+)",
        "webhook_denied",
        "the admission webhook {hook} denies its pods: {said}",
    ),
    _rule(
        "",
        r"(?:maximum|minimum) (?P<what>\S+) usage per (?:Container|Pod) is (?P<limit>[^,]+), but (?:limit|request) is (?P<wanted>[\w.]+)",
        "limit_range",
        "the namespace allows {limit} of {what} for a container or pod, but it requests {wanted}",
    ),
    _rule(
        "FailedCreate FailedCreatePod FailedCreateService",
        r"(?:Error creating: )?(?P<said>.*)",
        "pods_not_made",
        "its pods cannot be created: {said}",
    ),
    _rule(
        "SchedulingGated",
        "",
        "gated",
        "it has a scheduling gate and waits until the controller that set it (such as Kueue) removes it",
    ),
)

_SCHEDULING = frozenset({"Unschedulable", "FailedScheduling", "SchedulerError"})

_MAX_MESSAGE = 400


def explain_reason(reason: str, message: str) -> PodReason:
    """Explain a Kubernetes reason and its message; an unknown one is shown unchanged."""
    if reason in _SCHEDULING:
        explained = explain_scheduling(message)
        if explained is not None:
            return PodReason(*explained)
    for rule in _RULES:
        if rule.reasons and reason not in rule.reasons:
            continue
        rule_match = rule.pattern.search(message)
        if rule_match is not None:
            groups = {name: (text or "").strip()[:_MAX_MESSAGE] for name, text in rule_match.groupdict().items()}
            return PodReason(rule.code, rule.message.format(**groups))
    message_text = f"{reason}: {message[:_MAX_MESSAGE]}" if message else reason
    return PodReason(reason, f"Kubernetes reports: {message_text}")


def find_problem(pods: Iterable[PodRow]) -> PodReason | None:
    """What keeps a job's pods from running, with their number if it is not all of several."""
    pod_list = list(pods)
    troubled = [pod for pod in pod_list if pod.problem is not None]
    if not troubled:
        return None
    counts: dict[PodReason, int] = {}
    for pod in troubled:
        pod_reason = explain_reason(*(pod.problem or ("", "")))
        counts[pod_reason] = counts.get(pod_reason, 0) + 1
    first = max(counts, key=lambda pod_reason: (counts[pod_reason], pod_reason.code != "unschedulable"))
    return PodReason(first.code, _count_message(first.message, counts[first], pod_list))


def _count_message(phrase: str, count: int, pods: Sequence[PodRow]) -> str:
    if len(pods) == 1 or count == len(pods):
        return phrase
    return f"{count} of its {len(pods)} pods: {phrase}"


# --------------------------------------------------------------------------------------------------
# Why a workload waits in Kueue, as messages (0.14's texts, as observed and from its sources).

_NEVER_ADMITTED = re.compile(
    r"insufficient quota for (?P<resource>\S+) in flavor (?P<flavor>\S+?), (?:previously considered podsets requests \S+ \+ current podset request|request) > maximum capacity \((?P<wanted>.+?) > (?P<most>\S+?)\)"
)
_UNUSED = re.compile(
    r"insufficient unused quota for (?P<resource>\S+) in flavor (?P<flavor>\S+?), (?P<more>\S+) more needed"
)

_KUEUE_RULES: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        _NEVER_ADMITTED,
        "never_fits",
        (
            "it requests more than its queue can provide: {wanted} {resource} of at most {most} (flavor {flavor}); it waits forever: request "
            "less, or use another queue"
        ),
    ),
    (_UNUSED, "quota", "the quota of its queue is in use: {more} more {resource} must become free (flavor {flavor})"),
    (
        re.compile(r"LocalQueue (?P<name>\S+) doesn't exist"),
        "unknown_queue",
        "the queue {name} does not exist in the namespace, so it waits forever: cancel it and use another queue; list queues with: hpj queues",
    ),
    (
        re.compile(r"ClusterQueue (?P<name>\S+) (?:is inactive|doesn't exist)"),
        "queue_stopped",
        "its queue starts no jobs now: the cluster queue {name} is stopped or incomplete; list queues with: hpj queues",
    ),
    (
        re.compile(r"LocalQueue (?P<name>\S+) is (?:inactive|stopped)"),
        "queue_stopped",
        "its queue {name} is stopped; list queues with: hpj queues",
    ),
    (
        re.compile(r"namespace doesn't match ClusterQueue selector"),
        "queue_not_allowed",
        "its namespace may not use the quota of this queue: use another queue, or ask your cluster administrator",
    ),
    (
        re.compile(r"resource (?P<resource>\S+) unavailable in ClusterQueue"),
        "never_fits",
        "its queue has no quota for {resource}, so it waits forever: use another queue, or request none",
    ),
    (
        re.compile(r"flavor (?P<flavor>\S+) doesn't match (?:with )?node affinity"),
        "flavor",
        "the nodes of its queue (flavor {flavor}) do not have the labels that it requests",
    ),
    (
        re.compile(r"untolerated taint (?P<taint>.+?) in flavor (?P<flavor>\S+)"),
        "flavor",
        "the nodes of its queue (flavor {flavor}) have the taint {taint}, which it does not tolerate",
    ),
    (
        re.compile(r"[Pp]ending the preemption of (?P<count>\d+) workload"),
        "preempting",
        "it starts as soon as {count} workloads with a lower priority are preempted",
    ),
    (
        re.compile(r"topology \"(?P<topology>[^\"]+)\" .*?fit.*?(?P<pods>\d+) (?:of|out of)? ?(?:the )?(?P<all>\d*)"),
        "topology",
        "its pods do not fit into the requested topology ({topology}); wait, or request the topology as a preference only",
    ),
    (
        re.compile(r"AdmissionGated|admission check", re.IGNORECASE),
        "admission_check",
        "it has its quota, and is waiting for an admission check",
    ),
)

_EVICTED = {
    "Preempted": "a workload with a higher priority or an older claim on the quota preempted it",
    "PodsReadyTimeout": "its pods did not all start in time",
    "ClusterQueueStopped": "its cluster queue was stopped",
    "LocalQueueStopped": "its queue was stopped",
    "NodeFailures": "a node failed",
    "AdmissionCheck": "an admission check revoked its admission",
}


def explain_workload(workload: WorkloadRow) -> PodReason:
    """Why a workload waits."""
    if workload.state == "off":
        return PodReason("held", "it is held in Kueue (its workload is not active); release it to let it start")
    message = workload.message or ""
    eviction_code = _EVICTED.get(workload.evicted[0]) if workload.evicted else None
    for pattern, code, phrase in _KUEUE_RULES:
        match = pattern.search(message)
        if match is not None:
            message_text = phrase.format(**{name: text or "" for name, text in match.groupdict().items()})
            return PodReason(code, f"{message_text} (before, {eviction_code})" if eviction_code else message_text)
    if eviction_code is not None:
        return PodReason("preempted", f"it is waiting to restart: {eviction_code}")
    if not message:
        return PodReason("queued", "it is waiting for its turn in its queue")
    return PodReason(workload.reason or "queued", f"Kueue reports: {message[:400]}")


# --------------------------------------------------------------------------------------------------
# The latest events of objects, from the cluster's controllers.

_IGNORED_REASONS = frozenset(
    {"SetPodTemplateRestartPolicy", "FailedToUpdateEndpoint", "FailedToUpdateEndpointSlices", "Unhealthy", "CgroupV1"}
)
"""Warnings that do not keep anything from running."""

_LOW_PRIORITY_REASONS = frozenset({"Failed", "BackOff"})
"""Reasons that report a failure, after the event with its cause."""


@dataclass(frozen=True, slots=True)
class Event:
    """A warning: its reason, message, and last time (Kubernetes' format)."""

    reason: str
    message: str
    time: str


async def list_warnings(client: KubeClient, namespace: str, uids: Sequence[str]) -> list[Event]:
    """The warnings about objects of a namespace, newest first; empty if the user may not read events.

    Args:
        client: The cluster.
        namespace: Their namespace.
        uids: Their uids; one request each, so pass only a few.

    Raises:
        UnreachableError: The API server does not answer.
    """
    events = []
    for uid in uids:
        selector = f"involvedObject.uid={uid},type=Warning"
        try:
            response = await client.get(f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector, limit="50")
        except (DeniedError, NotFoundError):
            return []
        events += [_event(item) for item in response.get("items") or []]
    warnings = [event for event in events if event.reason not in _IGNORED_REASONS]
    return sorted(warnings, key=lambda event: (event.time, event.reason not in _LOW_PRIORITY_REASONS), reverse=True)


def _event(item: Mapping[str, Any]) -> Event:
    series = item.get("series") or {}
    timestamp = (
        series.get("lastObservedTime")
        or item.get("lastTimestamp")
        or item.get("eventTime")
        or (item.get("metadata") or {}).get("creationTimestamp")
    )
    return Event(str(item.get("reason") or ""), str(item.get("message") or ""), str(timestamp or ""))
