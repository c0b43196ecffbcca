"""A spec as an object of some kind. Pure: the same input gives the same bytes.

One pod a node, our launcher in each. What a user wrote stands in the launcher's plan, not in the manifest; YAML is written by a library, so that text stays text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.model.config import PodStorage
from hyperpod_jlab.model.errors import RefusedError
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.model.instance_types import InstanceType
from hyperpod_jlab.model.ranges import parse_array
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.orchestrators.kubernetes.kinds import auto_resume
from hyperpod_jlab.orchestrators.kubernetes.kinds.hyperpod_job import HyperPodPyTorchJob
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Kind, Pod, Wanted
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import (
    LEAST_PARALLEL_ANNOTATION,
    NAME_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    RUN_LABEL,
    USER_ANNOTATION,
    USER_LABEL,
    label_value,
    object_name,
)
from hyperpod_jlab.orchestrators.kubernetes.kinds.pytorch_job import PyTorchJob
from hyperpod_jlab.orchestrators.kubernetes.sending.bundle_volume import BundleVolume, claimed
from hyperpod_jlab.orchestrators.kubernetes.sending.code import NOTE, carried
from hyperpod_jlab.orchestrators.kubernetes.sending.command import pod_command, pod_environment
from hyperpod_jlab.orchestrators.kubernetes.sending.meeting_key import key_environment
from hyperpod_jlab.orchestrators.kubernetes.sending.patch import patched
from hyperpod_jlab.orchestrators.kubernetes.sending.placement import node_selector, topology
from hyperpod_jlab.orchestrators.kubernetes.sending.resources import resources, tolerations
from hyperpod_jlab.orchestrators.kubernetes.sending.secrets import secret_variables
from hyperpod_jlab.orchestrators.protocol import Rendered, RenderInput

FILENAME = "manifest.yaml"

RETRIES = 3
"""How often HyperPod may resume a run that does not say how often."""

_SHM = "/dev/shm"  # noqa: S108 - in the pod, its own; data loaders need more of it than the 64 MB that pods have


@dataclass(frozen=True)
class Place:
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


def render(given: RenderInput, place: Place) -> Rendered:
    """The manifest of a run.

    Raises:
        RefusedError: Neither the spec nor the configuration names an image, or a patch takes away what the run needs.
        InvalidInputError: A secret's reference is none.
    """
    text = to_yaml(patched_manifest(given, place))
    noted = text if place.storage is not None else NOTE + text
    return Rendered(FILENAME, noted, "yaml", kind=place.kind.name)


def patched_manifest(given: RenderInput, place: Place) -> dict[str, Any]:
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


def manifest(given: RenderInput, place: Place) -> dict[str, Any]:
    """The object itself, without patches."""
    spec = given.spec
    name = object_name(given.run_id)
    labels = _labels(given)
    return kind_of_run(spec, place).manifest(
        Wanted(
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


def retries(spec: JobSpec, place: Place) -> int | None:
    """How often HyperPod may resume a run; None for not at all."""
    count = spec.max_restarts or RETRIES
    if isinstance(place.kind, HyperPodPyTorchJob):  # there are none but on HyperPod
        return count if spec.is_resumed(on_hyperpod=True) else None
    return count if spec.is_resumed(place.hyperpod) and not any(obstacles(place)) else None


def kind_of_run(spec: JobSpec, place: Place) -> Kind:
    """The kind that was chosen, in the form that HyperPod resumes where it does."""
    resumed = isinstance(place.kind, PyTorchJob) and retries(spec, place) is not None
    return PyTorchJob(resumed=True) if resumed else place.kind


def obstacles(place: Place) -> Iterator[Finding]:
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


def _pod(given: RenderInput, place: Place, name: str, labels: Mapping[str, str]) -> Pod:
    spec, kind = given.spec, kind_of_run(given.spec, place)
    volume: BundleVolume = claimed(place.storage) if place.storage is not None else carried()
    meeting = kind.meeting(name, spec.resources.nodes)
    resumed = retries(spec, place) is not None
    command = pod_command(given, name, meeting, unpack=not volume.shared, resumed=resumed)
    wanted = resources(spec, place.instance)
    return Pod(
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


def _anew(given: RenderInput, place: Place) -> bool:
    """Whether lost pods are to be replaced: a single pod without shared storage has nobody who would remember how often that happened."""
    return place.storage is not None or given.spec.resources.nodes > 1


def _image(given: RenderInput, place: Place) -> str:
    image = given.spec.environment.image or place.image
    if image is None:
        raise RefusedError(
            "a run on Kubernetes needs a container image",
            code="no_image",
            hint="name one with --image, or as image in the cluster's configuration",
            detail={"field": "environment.image"},
        )
    return image
