"""A spec as an object of some kind. Pure: the same input gives the same bytes.

One pod a node, our launcher in each. What a user wrote stands in the launcher's plan, not in the manifest; YAML is written by a library, so that text stays text.
"""

from __future__ import annotations

import copy
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.core.config import PodStorage
from hyperpod_jlab.core.errors import InvalidInputError, RefusedError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.instance_types import InstanceType
from hyperpod_jlab.core.quantities import format_ranges, parse_array
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.kinds import pytorch_job as auto_resume
from hyperpod_jlab.engines.kubernetes.kinds.hyperpod_job import HyperPodPyTorchJob
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    LEAST_PARALLEL_ANNOTATION,
    NAME_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    RUN_LABEL,
    USER_ANNOTATION,
    USER_LABEL,
    Kind,
    KindInput,
    PodSpec,
    Rendezvous,
    label_value,
    object_name,
)
from hyperpod_jlab.engines.kubernetes.kinds.pytorch_job import PyTorchJob
from hyperpod_jlab.engines.kubernetes.submit.code import (
    NOTE,
    UNPACK,
    BundleVolume,
    carried,
    claimed,
)
from hyperpod_jlab.engines.kubernetes.submit.patch import patched
from hyperpod_jlab.engines.kubernetes.submit.resources import resources, tolerations
from hyperpod_jlab.engines.launch import guarded
from hyperpod_jlab.engines.protocol import Rendered, RenderInput

# --------------------------------------------------------------------------------------------------
# The command of a run's pods: our launcher, one a pod.

RESUMED_TIMEOUT = 3600
"""Seconds for which the launchers of a run that HyperPod resumes wait for a node that was lost: another instance takes its place in 20 to 30 minutes, or longer."""


def pod_command(
    given: RenderInput,
    name: str,
    meeting: Rendezvous,
    *,
    unpack: bool = False,
    resumed: bool = False,
) -> list[str]:
    """The launcher with what the kind's environment says; ``$(NAME)`` is replaced by the kubelet.

    Args:
        given: The run.
        name: The object's name.
        meeting: What the launcher is told of its rank and its master.
        unpack: Whether the bundle has to be unpacked in the pod first.
        resumed: Whether HyperPod resumes the run.
    """
    bundle = given.paths.remote / given.bundle
    if unpack:  # what travels in the job's own object lies on no storage that others may write to
        before = ["-I", "-c", UNPACK, str(bundle), str(bundle / "launcher.py")]
    else:
        before = guarded(given.seal.words(given.paths.remote, given.bundle))
    return [
        literal(given.python or "python3"),
        *map(literal, before),
        "pod",
        *(_whereabouts(meeting) if given.spec.array is None else _task(given.spec.array)),
        f"--nodes={given.spec.resources.nodes}",
        f"--scheduler-id={name}",
        f"--max-restarts={given.spec.max_restarts}",
        "--node-name=$(HYPERPOD_NODE)",
        *_time_limit(given),
        *([f"--return-patience={RESUMED_TIMEOUT}"] if resumed else []),
        *(["--frames", "--unshared"] if unpack else ["--quiet"]),
    ]


def _whereabouts(meeting: Rendezvous) -> list[str]:
    """The pod's rank and its master, unless a shell adds them."""
    if meeting.late:
        return []
    return [f"--node-rank={meeting.node_rank}", f"--master-addr={meeting.master_addr}"]


def _task(array: str) -> list[str]:
    """The pod's task, by its index; each is a run of one node."""
    indices = parse_array(array).indices
    words = ["--node-rank=0", "--master-addr=127.0.0.1", "--task=$(JOB_COMPLETION_INDEX)"]
    return words if indices[-1] < len(indices) else [*words, f"--tasks={format_ranges(indices)}"]


def _time_limit(given: RenderInput) -> list[str]:
    """The launcher keeps to it, from the start of the first attempt: the training operator does not (research: activeDeadlineSeconds is not enforced)."""
    limit = given.spec.time_limit or given.time_limit
    return [f"--time-limit={limit}"] if limit is not None else []


def pod_environment() -> list[dict[str, Any]]:
    """What the command needs beyond what the kind's operator sets."""
    return [{"name": "HYPERPOD_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]


def literal(text: str) -> str:
    """Text in which the kubelet replaces nothing."""
    return text.replace("$", "$$")


# --------------------------------------------------------------------------------------------------
# Where a run's pods may run, and what their queue is told of it.

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
INSTANCE_GROUP = "sagemaker.amazonaws.com/instance-group-name"
HEALTH = "sagemaker.amazonaws.com/node-health-status"

LABEL_FIELDS = {
    INSTANCE_TYPE: "resources.instance_type",
    INSTANCE_GROUP: "resources.instance_group",
}
"""The spec's field for a label."""

_TOPOLOGY = {
    "preferred": "kueue.x-k8s.io/podset-preferred-topology",
    "required": "kueue.x-k8s.io/podset-required-topology",
}


def node_selector(spec: JobSpec, *, hyperpod: bool) -> dict[str, str]:
    """The labels that a node must have; on HyperPod it must be a healthy one."""
    chosen: dict[str, str] = {}
    if spec.resources.instance_type is not None:
        chosen[INSTANCE_TYPE] = spec.resources.instance_type
    if spec.resources.instance_group is not None:
        chosen[INSTANCE_GROUP] = spec.resources.instance_group
    if hyperpod:
        chosen[HEALTH] = "Schedulable"
    return chosen


def topology(spec: JobSpec) -> dict[str, str]:
    """Kueue's annotations for pods that are to be near each other."""
    asked = spec.kubernetes.topology
    return {} if asked is None else {_TOPOLOGY[asked.mode]: asked.level}


# --------------------------------------------------------------------------------------------------
# Secrets of the cluster as variables of a run's container.

_REFERENCE = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)/([-._A-Za-z0-9]{1,253})")
"""The name of a Secret and a key of it (Kubernetes' own rules)."""


def secret_variables(spec: JobSpec) -> list[dict[str, Any]]:
    """Each secret with a reference; those without come as files with the bundle.

    Raises:
        InvalidInputError: A reference is no name of a Secret and a key.
    """
    return [
        {"name": name, "valueFrom": {"secretKeyRef": _key(name, reference)}}
        for name, reference in sorted(spec.environment.secrets.items())
        if reference
    ]


def _key(name: str, reference: str) -> dict[str, str]:
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise InvalidInputError(
            f"the secret {name} refers to '{reference[:80]}', which is not a Secret and key of the cluster",
            code="invalid_secret",
            hint=f"write --secret {name}=SECRET/KEY",
            detail={"field": "environment.secrets"},
        )
    return {"name": found[1], "key": found[3]}


# --------------------------------------------------------------------------------------------------
# The key by which the pods of a run know each other: made when the job is, and kept in the job's object alone.
#
# Files of the run may be read by all users of a shared partition, and pods may run as another user than the one who submits. So the key travels as a variable of
# the pods: the API server shows it to those who may read pods of the namespace, and to nobody on the file system.

_VARIABLE = "HYPERPOD_MEETING_KEY"
_PLACEHOLDER = "(created at submit)"


def key_environment(nodes: int) -> list[dict[str, Any]]:
    """The key's place in a manifest; a single pod meets nobody."""
    return [{"name": _VARIABLE, "value": _PLACEHOLDER}] if nodes > 1 else []


def with_key(document: Mapping[str, Any]) -> dict[str, Any]:
    """The object to send: the manifest with a new key, the same one in all pods' templates."""
    made = copy.deepcopy(dict(document))
    _put_in(made, secrets.token_hex(16))
    return made


def _put_in(found: Any, key: str) -> None:
    if isinstance(found, dict):
        if found.get("name") == _VARIABLE and found.get("value") == _PLACEHOLDER:
            found["value"] = key
        for value in found.values():
            _put_in(value, key)
    elif isinstance(found, list):
        for value in found:
            _put_in(value, key)


FILENAME = "manifest.yaml"

RETRIES = 3
"""How often HyperPod may resume a run that does not say how often."""

_SHM = "/dev/shm"  # noqa: S108 - in the pod, its own; data loaders need more of it than the 64 MB that pods have


@dataclass(frozen=True)
class RenderContext:
    """What a manifest depends on besides the run.

    Attributes:
        namespace: Where the object is made.
        kind: Its kind.
        image: The configuration's, for a spec without one.
        storage: The partition as pods see it; None: they do not.
        hyperpod: Whether the nodes are HyperPod's.
        instance: What is known of the spec's instance type.
        patches: Patches on the manifest, in their order.
        operator: The version of Kubeflow's training operator; None when it cannot be seen.
    """

    namespace: str
    kind: Kind
    image: str | None = None
    storage: PodStorage | None = None
    hyperpod: bool = False
    instance: InstanceType | None = None
    patches: tuple[Mapping[str, Any], ...] = field(default=())
    operator: str | None = None


def render(given: RenderInput, place: RenderContext) -> Rendered:
    """The manifest of a run.

    Raises:
        RefusedError: Neither the spec nor the configuration names an image, or a patch takes away what the run needs.
        InvalidInputError: A secret's reference is none.
    """
    text = to_yaml(patched_manifest(given, place))
    noted = text if place.storage is not None else NOTE + text
    return Rendered(FILENAME, noted, "yaml", kind=place.kind.name)


def patched_manifest(given: RenderInput, place: RenderContext) -> dict[str, Any]:
    """The object as it is sent.

    Raises:
        RefusedError: As `render`.
        InvalidInputError: As `render`.
    """
    document = manifest(given, place)
    for patch in place.patches:
        document = patched(document, patch, place.kind)
    return document


def to_yaml(document: Mapping[str, Any]) -> str:
    """A manifest's text; a value of several lines stands in several lines."""
    import yaml

    def write(dumper: Any, text: str) -> Any:
        style = '"' if _BREAKS.intersection(text) else "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    dumper: Any = type("Dumper", (yaml.SafeDumper,), {"ignore_aliases": lambda *_: True})
    dumper.add_representer(str, write)
    options = {"sort_keys": False, "allow_unicode": True, "width": 120}
    return str(yaml.dump(dict(document), Dumper=dumper, **options))


_BREAKS = frozenset("\x85\u2028\u2029\ufeff")
"""What YAML takes for line breaks or marks, and PyYAML writes as it is but for texts in double quotes."""


def manifest(given: RenderInput, place: RenderContext) -> dict[str, Any]:
    """The object itself, without patches."""
    spec = given.spec
    name = object_name(given.run_id)
    labels = _labels(given)
    return kind_of_run(spec, place).manifest(
        KindInput(
            name=name,
            namespace=place.namespace,
            nodes=spec.resources.nodes,
            pod=_pod(given, place, name, labels),
            labels={**labels, **_queue(given)},
            annotations=_annotations(given),
            time_limit=spec.time_limit or given.time_limit,
            anew=_anew(given, place),
            retries=retries(spec, place),
            array=_array(spec),
        )
    )


def _array(spec: JobSpec) -> tuple[int, int] | None:
    """How many tasks, and how many at once."""
    if spec.array is None:
        return None
    array = parse_array(spec.array)
    count = len(array.indices)
    return count, min(count, array.throttle or count)


def retries(spec: JobSpec, place: RenderContext) -> int | None:
    """How often HyperPod may resume a run; None for not at all."""
    count = spec.max_restarts or RETRIES
    if isinstance(place.kind, HyperPodPyTorchJob):  # there are none but on HyperPod
        return count if spec.is_resumed(on_hyperpod=True) else None
    return count if spec.is_resumed(place.hyperpod) and not any(obstacles(place)) else None


def kind_of_run(spec: JobSpec, place: RenderContext) -> Kind:
    """The kind that was chosen, in the form that HyperPod resumes where it does."""
    resumed = isinstance(place.kind, PyTorchJob) and retries(spec, place) is not None
    return PyTorchJob(resumed=True) if resumed else place.kind


def obstacles(place: RenderContext) -> Iterator[Finding]:
    """What keeps HyperPod from resuming any run there."""
    if isinstance(place.kind, PyTorchJob):
        shared = place.storage is not None
        yield from auto_resume.obstacles(place.namespace, place.operator, shared=shared)
        yield from auto_resume.patched_master(place.patches)
    elif not isinstance(place.kind, HyperPodPyTorchJob):
        yield auto_resume.wrong_kind(place.kind.name)


def _labels(given: RenderInput) -> dict[str, str]:
    labels = {RUN_LABEL: given.run_id, "app.kubernetes.io/managed-by": "hyperpod-jlab"}
    user = label_value(given.user or "")
    if user:
        labels[USER_LABEL] = user
    return labels


def _annotations(given: RenderInput) -> dict[str, str]:
    notes = {NAME_ANNOTATION: given.name}
    if given.user is not None:
        notes[USER_ANNOTATION] = given.user
    array = _array(given.spec)
    if array is not None and array[1] > 1 and given.spec.queue is not None:
        notes[LEAST_PARALLEL_ANNOTATION] = "1"
    return notes


def _queue(given: RenderInput) -> dict[str, str]:
    """Kueue's labels."""
    queue, priority = given.spec.queue, given.spec.priority
    if queue is None:
        return {}
    return {QUEUE_LABEL: queue, **({PRIORITY_LABEL: priority} if priority is not None else {})}


def _pod(given: RenderInput, place: RenderContext, name: str, labels: Mapping[str, str]) -> PodSpec:
    spec, kind = given.spec, kind_of_run(given.spec, place)
    volume: BundleVolume = claimed(place.storage) if place.storage is not None else carried()
    meeting = kind.meeting(name, spec.resources.nodes)
    resumed = retries(spec, place) is not None
    command = pod_command(given, name, meeting, unpack=not volume.shared, resumed=resumed)
    wanted = resources(spec, place.instance)
    return PodSpec(
        image=_image(given, place),
        command=kind.wrap(command, spec.resources.nodes, anew=_anew(given, place)),
        env=(
            *pod_environment(),
            *key_environment(spec.resources.nodes),
            *volume.env,
            *secret_variables(spec),
        ),
        mounts=(*volume.mounts, {"name": "shm", "mountPath": _SHM}),
        volumes=(*volume.volumes, {"name": "shm", "emptyDir": {"medium": "Memory"}}),
        resources=wanted,
        node_selector=node_selector(spec, hyperpod=place.hyperpod),
        tolerations=tolerations(wanted),
        labels=labels,
        annotations=topology(spec),
        priority_class=spec.priority if spec.queue is None else None,
        service_account=spec.kubernetes.service_account,
    )


def _anew(given: RenderInput, place: RenderContext) -> bool:
    """Whether lost pods are to be replaced: a single pod without shared storage has nobody who would remember how often that happened."""
    return place.storage is not None or given.spec.resources.nodes > 1


def _image(given: RenderInput, place: RenderContext) -> str:
    image = given.spec.environment.image or place.image
    if image is None:
        raise RefusedError(
            "a run on Kubernetes needs a container image",
            code="no_image",
            hint="set --image, or image in the configuration of the cluster",
            detail={"field": "environment.image"},
        )
    return image
