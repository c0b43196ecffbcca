"""Render a spec as an object of some kind. Pure: the same input gives the same bytes.

One pod per node, our launcher in each. User input is in the launcher's plan, not in the manifest; a
library writes the YAML, so that text stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.core.config import PodStorage
from hyperpod_jlab.core.errors import InvalidInputError, RefusedError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.instance_types import InstanceType
from hyperpod_jlab.core.quantities import format_ranges, parse_array
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    MIN_PARALLELISM_ANNOTATION,
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
    object_name,
    to_label_value,
)
from hyperpod_jlab.engines.kubernetes.submit.patch import patched
from hyperpod_jlab.engines.kubernetes.submit.resources import resources, tolerations
from hyperpod_jlab.engines.launch import guard_command
from hyperpod_jlab.engines.protocol import Rendered, RenderInput

# --------------------------------------------------------------------------------------------------
# The command of a run's pods: our launcher, one per pod.

RESUMED_TIMEOUT = 3600
"""Seconds for which the launchers of a resumable run wait for a lost node: a replacement instance takes 20 to 30 minutes, or longer."""


def pod_command(render_input: RenderInput, name: str, rendezvous: Rendezvous, *, resumed: bool = False) -> list[str]:
    """The launcher with arguments from the kind's environment; the kubelet replaces ``$(NAME)``.

    Args:
        render_input: The run.
        name: The object's name.
        rendezvous: The launcher's rank and master arguments.
        resumed: Whether HyperPod resumes the run.
    """
    python_args = guard_command(render_input.guard_policy.guard_args(render_input.paths.remote, render_input.bundle))
    return [
        literal(render_input.python or "python3"),
        *map(literal, python_args),
        "node",
        *(_rendezvous_args(rendezvous) if render_input.spec.array is None else _task(render_input.spec.array)),
        f"--nodes={render_input.spec.resources.nodes}",
        f"--scheduler-id={name}",
        f"--max-restarts={render_input.spec.max_restarts}",
        "--node-name=$(HYPERPOD_NODE)",
        *_time_limit(render_input),
        *([f"--return-patience={RESUMED_TIMEOUT}"] if resumed else []),
        "--quiet",
    ]


def _rendezvous_args(rendezvous: Rendezvous) -> list[str]:
    """The pod's rank and master, unless a shell adds them."""
    if rendezvous.starts_late:
        return []
    return [f"--node-rank={rendezvous.node_rank}", f"--master-addr={rendezvous.master_addr}"]


def _task(array: str) -> list[str]:
    """The pod's task, by its index; each is a run with one node."""
    indices = parse_array(array).indices
    args = ["--node-rank=0", "--master-addr=127.0.0.1", "--task=$(JOB_COMPLETION_INDEX)"]
    return args if indices[-1] < len(indices) else [*args, f"--tasks={format_ranges(indices)}"]


def _time_limit(render_input: RenderInput) -> list[str]:
    """The launcher enforces the limit, from the start of the first attempt.

    The training operator does not (research: activeDeadlineSeconds is not enforced).
    """
    limit = render_input.spec.time_limit or render_input.time_limit
    return [f"--time-limit={limit}"] if limit is not None else []


def pod_environment() -> list[dict[str, Any]]:
    """The variables that the command needs besides those of the kind's operator."""
    return [{"name": "HYPERPOD_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]


def literal(text: str) -> str:
    """Escape text so that the kubelet replaces nothing in it."""
    return text.replace("$", "$$")


# --------------------------------------------------------------------------------------------------
# Where a run's pods may run, and their queue's scheduling annotations.

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
INSTANCE_GROUP = "sagemaker.amazonaws.com/instance-group-name"
HEALTH = "sagemaker.amazonaws.com/node-health-status"

LABEL_FIELDS = {INSTANCE_TYPE: "resources.instance_type", INSTANCE_GROUP: "resources.instance_group"}
"""The spec field for a label."""

_TOPOLOGY = {
    "preferred": "kueue.x-k8s.io/podset-preferred-topology",
    "required": "kueue.x-k8s.io/podset-required-topology",
}


def node_selector(spec: JobSpec, *, hyperpod: bool) -> dict[str, str]:
    """The required node labels; on HyperPod the node must be healthy."""
    chosen: dict[str, str] = {}
    if spec.resources.instance_type is not None:
        chosen[INSTANCE_TYPE] = spec.resources.instance_type
    if spec.resources.instance_group is not None:
        chosen[INSTANCE_GROUP] = spec.resources.instance_group
    if hyperpod:
        chosen[HEALTH] = "Schedulable"
    return chosen


def topology(spec: JobSpec) -> dict[str, str]:
    """Kueue's annotations for pods that should be close to each other."""
    topology = spec.kubernetes.topology
    return {} if topology is None else {_TOPOLOGY[topology.mode]: topology.level}


# --------------------------------------------------------------------------------------------------
# Kubernetes Secrets as variables of a run's container.

_REFERENCE = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)/([-._A-Za-z0-9]{1,253})")
"""The name of a Secret and one of its keys (Kubernetes' own rules)."""


def secret_variables(spec: JobSpec) -> list[dict[str, Any]]:
    """Each secret with a reference; those without one are files of the bundle.

    Raises:
        InvalidInputError: A reference is not a Secret name and a key.
    """
    return [
        {"name": name, "valueFrom": {"secretKeyRef": _key(name, reference)}}
        for name, reference in sorted(spec.environment.secrets.items())
        if reference
    ]


def _key(name: str, reference: str) -> dict[str, str]:
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise InvalidInputError(
            f"the secret {name} refers to '{reference[:80]}', which is not a Secret and key of the cluster",
            code="invalid_secret",
            hint=f"write --secret {name}=SECRET/KEY",
            detail={"field": "environment.secrets"},
        )
    return {"name": match[1], "key": match[3]}


FILENAME = "manifest.yaml"

_PARTITION = "partition"

RETRIES = 3
"""Default number of times that HyperPod may resume a run."""

_SHM = "/dev/shm"  # noqa: S108 - in the pod, its own; data loaders need more of it than the 64 MB that pods have


@dataclass(frozen=True)
class RenderContext:
    """The inputs of a manifest besides the run.

    Attributes:
        namespace: The object's namespace.
        kind: Its kind.
        storage: The partition as pods see it.
        image: The configured image, for a spec without one.
        hyperpod: Whether the nodes are HyperPod nodes.
        instance: Facts about the spec's instance type.
        patches: Patches of the manifest, in order.
        operator: The version of Kubeflow's training operator; None when unknown.
    """

    namespace: str
    kind: Kind
    storage: PodStorage
    image: str | None = None
    hyperpod: bool = False
    instance: InstanceType | None = None
    patches: tuple[Mapping[str, Any], ...] = field(default=())
    operator: str | None = None


def render(render_input: RenderInput, context: RenderContext) -> Rendered:
    """Render the manifest of a run.

    Raises:
        RefusedError: Neither the spec nor the configuration names an image, or a patch removes what
            the run needs.
        InvalidInputError: A secret's reference is invalid.
    """
    text = to_yaml(build_patched_manifest(render_input, context))
    return Rendered(FILENAME, text, "yaml", kind=context.kind.name)


def build_patched_manifest(render_input: RenderInput, context: RenderContext) -> dict[str, Any]:
    """The object as it is submitted.

    Raises:
        RefusedError: As `render`.
        InvalidInputError: As `render`.
    """
    document = manifest(render_input, context)
    for patch in context.patches:
        document = patched(document, patch, context.kind)
    return document


def to_yaml(document: Mapping[str, Any]) -> str:
    """A manifest's text; multi-line values stay multi-line."""
    import yaml

    def write(dumper: Any, text: str) -> Any:
        scalar_style = '"' if _BREAKS.intersection(text) else "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=scalar_style)

    dumper: Any = type("Dumper", (yaml.SafeDumper,), {"ignore_aliases": lambda *_: True})
    dumper.add_representer(str, write)
    options = {"sort_keys": False, "allow_unicode": True, "width": 120}
    return str(yaml.dump(dict(document), Dumper=dumper, **options))


_BREAKS = frozenset("\x85\u2028\u2029\ufeff")
"""Characters that YAML treats as line breaks or marks, and that PyYAML escapes only in double quotes."""


def manifest(render_input: RenderInput, context: RenderContext) -> dict[str, Any]:
    """The object itself, without patches."""
    spec = render_input.spec
    name = object_name(render_input.run_id)
    labels = _labels(render_input)
    return select_kind(spec, context).manifest(
        KindInput(
            name=name,
            namespace=context.namespace,
            nodes=spec.resources.nodes,
            pod=_pod(render_input, context, name, labels),
            labels={**labels, **_queue(render_input)},
            annotations=_annotations(render_input),
            time_limit=spec.time_limit or render_input.time_limit,
            retries=find_retries(spec, context),
            array=_array(spec),
            stop_on=spec.alarms.stop_on,
        )
    )


def _array(spec: JobSpec) -> tuple[int, int] | None:
    """The number of tasks, and how many run at once."""
    if spec.array is None:
        return None
    array = parse_array(spec.array)
    count = len(array.indices)
    return count, min(count, array.throttle or count)


def find_retries(spec: JobSpec, context: RenderContext) -> int | None:
    """How often HyperPod may resume a run; None for never."""
    if not spec.is_resumed(context.hyperpod or context.kind.is_hyperpods) or any(
        finding.level == "warning" for finding in auto_resume_findings(context)
    ):
        return None
    return spec.max_restarts or RETRIES


def select_kind(spec: JobSpec, context: RenderContext) -> Kind:
    """The chosen kind, in its resumable form if HyperPod resumes it."""
    is_resumed = find_retries(spec, context) is not None
    return context.kind.resumed_form() if is_resumed else context.kind


def auto_resume_findings(context: RenderContext) -> Iterator[Finding]:
    """What prevents HyperPod from resuming any run there."""
    return context.kind.resume_findings(context.namespace, context.operator)


def _labels(render_input: RenderInput) -> dict[str, str]:
    labels = {RUN_LABEL: render_input.run_id, "app.kubernetes.io/managed-by": "hyperpod-jlab"}
    user = to_label_value(render_input.user or "")
    if user:
        labels[USER_LABEL] = user
    return labels


def _annotations(render_input: RenderInput) -> dict[str, str]:
    annotations = {NAME_ANNOTATION: render_input.name}
    if render_input.user is not None:
        annotations[USER_ANNOTATION] = render_input.user
    array = _array(render_input.spec)
    if array is not None and array[1] > 1 and render_input.spec.queue is not None:
        annotations[MIN_PARALLELISM_ANNOTATION] = "1"
    return annotations


def _queue(render_input: RenderInput) -> dict[str, str]:
    """Kueue's labels."""
    queue, priority = render_input.spec.queue, render_input.spec.priority
    if queue is None:
        return {}
    return {QUEUE_LABEL: queue, **({PRIORITY_LABEL: priority} if priority is not None else {})}


def _pod(render_input: RenderInput, context: RenderContext, name: str, labels: Mapping[str, str]) -> PodSpec:
    spec, kind = render_input.spec, select_kind(render_input.spec, context)
    storage = context.storage
    rendezvous = kind.rendezvous(name, spec.resources.nodes)
    resumed = find_retries(spec, context) is not None
    command = pod_command(render_input, name, rendezvous, resumed=resumed)
    requested = resources(spec, context.instance)
    return PodSpec(
        image=_image(render_input, context),
        command=kind.wrap(command, spec.resources.nodes),
        env=(*pod_environment(), *secret_variables(spec)),
        mounts=(_mount(storage), {"name": "shm", "mountPath": _SHM}),
        volumes=(_volume(storage), {"name": "shm", "emptyDir": {"medium": "Memory"}}),
        resources=requested,
        node_selector=node_selector(spec, hyperpod=context.hyperpod),
        tolerations=tolerations(requested),
        labels=labels,
        annotations=topology(spec),
        priority_class=spec.priority if spec.queue is None else None,
        service_account=spec.kubernetes.service_account,
    )


def _mount(storage: PodStorage) -> dict[str, Any]:
    mount = {"name": _PARTITION, "mountPath": storage.mount}
    return {**mount, "subPath": storage.sub_path} if storage.sub_path else mount


def _volume(storage: PodStorage) -> dict[str, Any]:
    return {"name": _PARTITION, "persistentVolumeClaim": {"claimName": storage.claim}}


def _image(render_input: RenderInput, context: RenderContext) -> str:
    image = render_input.spec.environment.image or context.image
    if image is None:
        raise RefusedError(
            "a run on Kubernetes needs a container image",
            code="no_image",
            hint="set --image, or image in the configuration of the cluster",
            detail={"field": "environment.image"},
        )
    return image
