"""What is wrong with pods, in words: reasons of containers, of pods and of events, each with what to do about it.

The texts are those of Kubernetes 1.34 with containerd, made to happen and recorded (tests/kubernetes/recorded); older and newer ones differ in little. What is
not known here is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hyperpod_jlab.orchestrators.kubernetes.tables.pods import PodRow
from hyperpod_jlab.orchestrators.kubernetes.waiting.scheduling import scheduling_words


@dataclass(frozen=True, slots=True)
class Told:
    """A reason: a word for programs, and a sentence."""

    code: str
    words: str


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a reason means.

    Attributes:
        reasons: Words of Kubernetes; empty: whichever.
        pattern: What the message must hold.
        code: Ours.
        words: Our sentence, with the pattern's groups.
    """

    reasons: frozenset[str]
    pattern: re.Pattern[str]
    code: str
    words: str


def _rule(reasons: str, pattern: str, code: str, words: str) -> _Rule:
    return _Rule(frozenset(reasons.split()), re.compile(pattern, re.DOTALL), code, words)


_PULL = "ErrImagePull ImagePullBackOff Failed BackOff"
_IMAGE = r'image "(?P<image>[^"]+)"'

_RULES: tuple[_Rule, ...] = (
    # Images.
    _rule(
        _PULL,
        _IMAGE
        + r".*(?:401 Unauthorized|403 Forbidden|authorization failed|no basic auth credentials|insufficient_scope|pull access denied|denied:|not authorized)",
        "image_denied",
        "the registry does not give the image {image} to this namespace: check its name, and have the admin give the nodes or the service account the right to pull it",
    ),
    _rule(
        _PULL,
        _IMAGE + r".*(?:: not found|manifest unknown|NotFound|name unknown|404 )",
        "image_not_found",
        "the image {image} does not exist: check name and tag",
    ),
    _rule(
        _PULL,
        _IMAGE + r".*429 Too Many Requests",
        "image_registry",
        "the registry of {image} gives no more for now (too many requests); it is tried again",
    ),
    _rule(
        _PULL,
        _IMAGE
        + r".*(?:connection refused|no such host|i/o timeout|deadline exceeded|no route to host|50\d )",
        "image_registry",
        "the nodes do not reach the registry of {image}, or it fails: check the image's name, and ask the admin whether nodes may reach it; it is tried again",
    ),
    _rule(
        _PULL,
        _IMAGE + r".*(?:x509|certificate)",
        "image_registry",
        "the nodes do not trust the registry of {image} (its certificate); ask the cluster's admin",
    ),
    _rule(
        _PULL,
        _IMAGE + r".*no space left on device",
        "node_disk_full",
        "the node has no room for the image {image}; ask the cluster's admin",
    ),
    _rule(
        _PULL,
        _IMAGE + r".*no match for platform",
        "image_platform",
        "the image {image} is not made for the nodes' processors: build it for theirs",
    ),
    _rule(
        "ErrImagePull ImagePullBackOff",
        r'(?:image "(?P<image>[^"]+)")?',
        "image_pull",
        "its image cannot be pulled: check its name and tag, and whether the nodes may pull it",
    ),
    _rule(
        "InvalidImageName InspectFailed",
        r'"(?P<image>[^"]+)"',
        "image_name",
        "{image} is no name of an image: it is written registry/name:tag, in small letters",
    ),
    _rule(
        "ErrImageNeverPull",
        r'image "(?P<image>[^"]+)"',
        "image_never_pulled",
        "the image {image} is not on the node, and the job says that it is never pulled (imagePullPolicy Never)",
    ),
    # What containers need.
    _rule(
        "CreateContainerConfigError Failed",
        r'(?P<kind>secret|configmap) "(?P<name>[^"]+)" not found',
        "config_not_found",
        "the {kind} {name} does not exist in the namespace: make it, or leave it out",
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
        "the image runs as root, and the namespace or the job forbids that: use an image with a user of its own, or set runAsUser by a patch",
    ),
    _rule(
        "CreateContainerConfigError",
        r"(?P<said>.*)",
        "container_config",
        "its container cannot be set up: {said}",
    ),
    _rule(
        "StartError ContainerCannotRun RunContainerError CreateContainerError Failed",
        r'exec: "(?P<program>[^"]+)": .*(?:no such file|not found)',
        "no_program",
        "the image has no {program}: name an interpreter that it has with --python, or another image",
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
        "its node has no driver {driver} for its volume; ask the cluster's admin to install it on these nodes",
    ),
    _rule(
        "FailedMount",
        r"hostPath type check failed: (?P<path>.+) is not",
        "no_host_path",
        "its node has no {path}, which it mounts from there",
    ),
    _rule(
        "FailedMount FailedAttachVolume",
        r"(?P<said>.*)",
        "mount_failed",
        "a volume of its cannot be mounted: {said}; it is tried again",
    ),
    # How containers and pods ended.
    _rule(
        "OOMKilled",
        "",
        "out_of_memory",
        "it used more memory than it may: ask for more with --memory, or use less (smaller batches, fewer workers of the data loader)",
    ),
    _rule(
        "Evicted",
        r"emptyDir volume \"(?P<volume>[^\"]+)\" exceeds|EmptyDir volume \"(?P<volume2>[^\"]+)\" exceeds",
        "evicted",
        "it was put off its node: it wrote more into a temporary volume than that may hold",
    ),
    _rule(
        "Evicted",
        r"low on resource: (?P<what>[\w-]+)",
        "evicted",
        "it was put off its node, which ran short of {what}: ask for as much as it needs (--memory), and write large files to the storage partition",
    ),
    _rule("Evicted", r"(?P<said>.*)", "evicted", "it was put off its node: {said}"),
    _rule(
        "Preempted PreemptionByScheduler",
        "",
        "preempted",
        "a pod with a higher priority took its place on the node",
    ),
    _rule(
        "TaintManagerEviction DeletionByTaintManager NodeLost NodeNotReady",
        "",
        "node_lost",
        "its node does not answer any more, or is being taken away",
    ),
    _rule("NodeShutdown Terminated TerminationByKubelet", "", "node_lost", "its node shuts down"),
    _rule("DeadlineExceeded", "", "time_limit", "it reached its time limit"),
    _rule(
        "CrashLoopBackOff BackOff",
        r"restarting failed container|^$",
        "crashes",
        "its container ends with an error again and again, and is started anew after a pause: see its log",
    ),
    # What the cluster does not allow.
    _rule(
        "",
        r"exceeded quota: (?P<quota>[^,]+), requested: (?P<wanted>.+?), used: (?P<used>.+?), limited: (?P<limit>.+)",
        "quota_exceeded",
        "the namespace's quota {quota} does not allow it: it asks for {wanted}, {used} is in use, {limit} is allowed; wait until others end, or ask for less",
    ),
    _rule(
        "",
        r"failed quota: (?P<quota>[^:]+): must specify (?P<what>.+)",
        "quota_needs_requests",
        "the namespace's quota {quota} wants every job to say what it needs ({what}): give --cpus and --memory",
    ),
    _rule(
        "",
        r"violates PodSecurity \"(?P<level>[^\"]+)\": (?P<said>.+)",
        "pod_security",
        "the namespace's security level ({level}) does not allow its pods: {said}",
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
        "a rule of the cluster ({hook}) denies its pods: {said}",
    ),
    _rule(
        "",
        r"(?:maximum|minimum) (?P<what>\S+) usage per (?:Container|Pod) is (?P<limit>[^,]+), but (?:limit|request) is (?P<wanted>[\w.]+)",
        "limit_range",
        "the namespace allows {limit} of {what} for a container or pod, and it asks for {wanted}",
    ),
    _rule(
        "FailedCreate FailedCreatePod FailedCreateService",
        r"(?:Error creating: )?(?P<said>.*)",
        "pods_not_made",
        "its pods cannot be made: {said}",
    ),
    _rule(
        "SchedulingGated",
        "",
        "gated",
        "it is held back until whoever put a gate on it (Kueue, for one) takes that away",
    ),
)

_SCHEDULING = frozenset({"Unschedulable", "FailedScheduling", "SchedulerError"})

_LONGEST = 400


def told(reason: str, message: str) -> Told:
    """A reason of Kubernetes with its message in words; one that is not known here as it is."""
    if reason in _SCHEDULING:
        found = scheduling_words(message)
        if found is not None:
            return Told(*found)
    for rule in _RULES:
        if rule.reasons and reason not in rule.reasons:
            continue
        match = rule.pattern.search(message)
        if match is not None:
            groups = {
                name: (text or "").strip()[:_LONGEST] for name, text in match.groupdict().items()
            }
            return Told(rule.code, rule.words.format(**groups))
    said = f"{reason}: {message[:_LONGEST]}" if message else reason
    return Told(reason, f"Kubernetes says: {said}")


def problem_of(pods: Iterable[PodRow]) -> Told | None:
    """What keeps pods of a job from running; with how many of them it keeps, where it is not all of several."""
    listed = list(pods)
    troubled = [pod for pod in listed if pod.trouble is not None]
    if not troubled:
        return None
    found: dict[Told, int] = {}
    for pod in troubled:
        one = told(*(pod.trouble or ("", "")))
        found[one] = found.get(one, 0) + 1
    first = max(found, key=lambda one: (found[one], one.code != "unschedulable"))
    return Told(first.code, _counted(first.words, found[first], listed))


def _counted(words: str, count: int, pods: Sequence[PodRow]) -> str:
    if len(pods) == 1 or count == len(pods):
        return words
    return f"{count} of its {len(pods)} pods: {words}"
