"""A user's own manifest: submitted as written, with the run's id as a label, so that its objects and pods are found again.

Its comments stay in the user's file; references are expanded. The object keeps the user's name. The
label identifies the run's object: if another object has the name, nothing is submitted. A
``generateName``, or a missing name, becomes the run's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import JobSpec, Resources
from hyperpod_jlab.core.validation import NAME
from hyperpod_jlab.engines.kubernetes.kinds.choice import find_kind
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    NAME_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    RUN_LABEL,
    USER_ANNOTATION,
    Kind,
    object_name,
)
from hyperpod_jlab.engines.kubernetes.kinds.pytorch_job import ENABLED
from hyperpod_jlab.engines.kubernetes.submit.companions import add_labels, manifest_error, split, string_map
from hyperpod_jlab.engines.kubernetes.submit.patch import find_templates
from hyperpod_jlab.engines.kubernetes.submit.render import FILENAME, to_yaml
from hyperpod_jlab.engines.kubernetes.submit.user_yaml import documents
from hyperpod_jlab.engines.kubernetes.tables.devices import computes
from hyperpod_jlab.engines.protocol import NativeFacts, NativeFile, Rendered, RenderInput
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Unset variables of a template, such as ``replicas: $NUM_NODES``; Kubernetes would treat them as
# text. Pure.

_VARIABLE = re.compile(r"\$(?:\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)|\{\{.*\}\}")
_FREE = frozenset({"command", "args", "env", "annotations", "data", "stringData", "binaryData"})
"""Fields with free text of the user, in which a shell may expand variables."""
_MAX_SHOWN = 4


def check_filled(objects: Sequence[Mapping[str, Any]], file: str) -> None:
    """Check that a template has no unset variables where Kubernetes needs a value.

    Args:
        objects: The file's objects; only jobs and Kubernetes' own kinds are checked.
        file: The file's name, for the error.

    Raises:
        InvalidInputError: A variable is unset.
    """
    path_by_text: dict[str, str] = {}
    for document in filter(_is_known, objects):
        for path, text in _find_placeholders(document, ""):
            path_by_text.setdefault(text, path)
    if path_by_text:
        unresolved = [f"{path.removeprefix('.')}: {text}" for text, path in path_by_text.items()]
        more_text = f" and {len(unresolved) - _MAX_SHOWN} more" if len(unresolved) > _MAX_SHOWN else ""
        raise manifest_error(
            f"{file} has unresolved variables: {', '.join(unresolved[:_MAX_SHOWN])}{more_text}",
            f"resolve them first: envsubst < {file} > filled-in.yaml, and submit that file",
        )


def _is_known(document: Mapping[str, Any]) -> bool:
    group = str(document.get("apiVersion")).rpartition("/")[0]
    is_own_kind = "." not in group or group.endswith(".k8s.io")
    return is_own_kind or find_kind(document) is not None


def _find_placeholders(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if _VARIABLE.search(value):
            yield path, value[:60]
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in _FREE:
                yield from _find_placeholders(item, f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_placeholders(item, f"{path}[{index}]")


_SUFFIXES = frozenset({".yaml", ".yml"})
_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_MAX_NODES = 10_000
_ANNOTATION_HINT = f"leave it out; the annotation {ENABLED} of the manifest sets it"


def is_native(bundle: BundleReader) -> bool:
    """Whether a run has no launcher of ours in its pods: a user's own manifest. Blocking."""
    return bundle.spec().source.kind == "native"


def render_native(render_input: RenderInput, file: NativeFile, namespace: str) -> Rendered:
    """Render the manifest to submit.

    Args:
        render_input: The run.
        file: The user's file.
        namespace: The namespace for a file that names none.

    Raises:
        InvalidInputError: The manifest cannot be submitted, or conflicts with the spec.
    """
    name = PurePosixPath(file.path).name
    if PurePosixPath(file.path).suffix.lower() not in _SUFFIXES:
        raise manifest_error(f"{name} is not a manifest", "use a .yaml or .yml file with one job")
    document, companions = split(documents(file.data, name), name)
    kind = _kind(document, name)
    check_filled([*companions, document], name)
    _check_pods(document, kind, name)
    sent = {**document, "metadata": _metadata(render_input, document, namespace, name)}
    _label_pods(sent, kind, render_input.run_id)
    keep_companions = render_input.spec.kubernetes.keep_companions
    companion_texts = [
        to_yaml(companion) for companion in add_labels(companions, sent, name, keep_companions=keep_companions)
    ]
    text = "---\n".join([*companion_texts, to_yaml(sent)])
    return Rendered(FILENAME, text, "yaml", _facts(kind, sent), kind.name)


def native_findings(spec: JobSpec) -> Iterator[Finding]:
    """The spec fields that a manifest submitted unchanged cannot support."""
    resources, environment = spec.resources, spec.environment
    unsupported = {
        "resources.nodes": resources.nodes if resources.nodes != Resources().nodes else None,
        "resources.processes_per_node": resources.processes_per_node,
        "resources.accelerators": resources.accelerator.count or None,
        "resources.cpus": resources.cpus,
        "resources.memory": resources.memory,
        "resources.instance_type": resources.instance_type,
        "resources.instance_group": resources.instance_group,
        "array": spec.array,
        "launcher": spec.launcher,
        "args": spec.args or None,
        "environment.python": environment.python,
        "environment.image": environment.image,
        "environment.capture": environment.capture,
        "environment.setup": environment.setup,
        "environment.variables": environment.variables or None,
        "environment.secrets": environment.secrets or None,
        "time_limit": spec.time_limit,
        "max_restarts": spec.max_restarts or None,
        "auto_resume": spec.auto_resume,
        "kubernetes.kind": spec.kubernetes.kind,
        "kubernetes.service_account": spec.kubernetes.service_account,
        "kubernetes.patch": spec.kubernetes.patch or None,
    }
    for field, value in unsupported.items():
        if value is not None:
            yield Finding(
                level="error",
                code="not_for_native",
                message=f"a manifest is submitted unchanged, so {field} cannot be used",
                hint=_ANNOTATION_HINT if field == "auto_resume" else "set it in the manifest, or leave it out",
                field=field,
            )


def _kind(document: Mapping[str, Any], name: str) -> Kind:
    kind = find_kind(document)
    assert kind is not None  # the manifest's kind was found before
    version = str(document["apiVersion"]).partition("/")[2]
    if version != kind.version:
        raise manifest_error(
            f"{name}: this version supports {kind.name} as {kind.group}/{kind.version}, not {version[:60]}",
            f"write apiVersion: {kind.group}/{kind.version}",
        )
    for replica_field in ("metadata", "spec"):
        if not isinstance(document.get(replica_field, {}), dict):
            raise manifest_error(f"{name}: {replica_field} must be a mapping", None)
    return kind


def _metadata(render_input: RenderInput, document: Mapping[str, Any], namespace: str, name: str) -> dict[str, Any]:
    spec = render_input.spec
    metadata = dict(document.get("metadata") or {})
    metadata.pop("generateName", None)
    metadata.setdefault("name", object_name(render_input.run_id))
    namespace_requested = spec.kubernetes.namespace
    metadata["namespace"] = metadata.get("namespace", namespace_requested or namespace)
    for field in ("name", "namespace"):
        if not isinstance(metadata[field], str) or not _DNS_NAME.fullmatch(metadata[field]):
            raise manifest_error(
                f"{name}: metadata.{field} is not a valid Kubernetes name",
                "use lower-case letters, digits, dashes and dots",
            )
    if namespace_requested is not None and metadata["namespace"] != namespace_requested:
        raise manifest_error(
            f"{name} is for the namespace {metadata['namespace']}, but the spec is for {namespace_requested}",
            "set only one of them",
        )
    requested_labels = {QUEUE_LABEL: spec.queue, PRIORITY_LABEL: spec.priority}
    labels = {
        **string_map(metadata, "labels", name),
        **{label: value for label, value in requested_labels.items() if value is not None},
        RUN_LABEL: render_input.run_id,
    }
    annotations = {**string_map(metadata, "annotations", name), NAME_ANNOTATION: render_input.name}
    if render_input.user is not None:
        annotations[USER_ANNOTATION] = render_input.user
    if spec.name is None and re.fullmatch(NAME, metadata["name"]):
        annotations[NAME_ANNOTATION] = metadata["name"]
    return {**metadata, "labels": labels, "annotations": annotations}


def _label_pods(document: dict[str, Any], kind: Kind, run_id: str) -> None:
    """Add the run's label to all of its pods."""
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return
    if not kind.labels_pods:  # its runtime does
        _label(spec, run_id)
        return
    for owner in (spec, *kind.replicas(spec)):
        template = owner.get("template")
        if isinstance(template, dict) and isinstance(template.get("metadata") or {}, dict):
            template["metadata"] = dict(template.get("metadata") or {})
            _label(template["metadata"], run_id)


def _label(owner: dict[str, Any], run_id: str) -> None:
    """Anything but a mapping is left to the API server's verdict."""
    labels = owner.get("labels") or {}
    if isinstance(labels, dict):
        owner["labels"] = {**labels, RUN_LABEL: run_id}


def _check_pods(document: Mapping[str, Any], kind: Kind, name: str) -> None:
    """Check that a job has pods: without any it would never end.

    Raises:
        InvalidInputError: The job has no pods.
    """
    counts = [replica.get("replicas") for replica in kind.replicas(document.get("spec") or {})]
    if counts and all(count == 0 and count is not False for count in counts):
        field = f"spec.{kind.replicas_field}"
        raise InvalidInputError(
            f"{name}: every replica type in {field} has replicas: 0, so the job has no pods and never ends",
            code="no_pods",
            hint="set replicas to 1 or more for one of them",
            detail={"field": field},
        )


def _facts(kind: Kind, document: Mapping[str, Any]) -> NativeFacts:
    metadata = document["metadata"]
    name, spec = metadata["annotations"][NAME_ANNOTATION], document.get("spec") or {}
    return NativeFacts(
        name=name if isinstance(name, str) and re.fullmatch(NAME, name) else None,
        queue=metadata["labels"].get(QUEUE_LABEL),
        nodes=min(max(1, sum(count for count, _ in kind.pods(spec))), _MAX_NODES),
        gpus_per_node=gpus_per_pod(document),
    )


def gpus_per_pod(document: Mapping[str, Any]) -> int | None:
    """The most GPUs, or other accelerators, that one pod requests; None if the manifest has no pod template, or a value is invalid."""
    try:
        return max(
            (
                sum(_gpus(container) for container in template["spec"]["containers"])
                for template in find_templates(document.get("spec"))
            ),
            default=None,
        )
    except (AttributeError, KeyError, TypeError, ValueError):  # the API server refuses it
        return None


def _gpus(container: Mapping[str, Any]) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    return sum(int(value) for name, value in limits.items() if computes(name))


# --------------------------------------------------------------------------------------------------
# Whether a manifest's images are valid image names, which the API server does not check.
#
# The grammar is that of distribution/reference, which the nodes' kubelets use.

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_ALGORITHM = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}/)?{_PART}(?:/{_PART})*)(?::{_TAG})?(?:@{_ALGORITHM}:[0-9a-fA-F]{{32,}})?"
)
_MAX_NAME = 255
_MAX_TEXT = 2000
"""Maximum length of a checked text: nothing longer can be a name with its tag and digest."""


def is_image_name(text: str) -> bool:
    """Whether the text is a valid image name: ``registry:port/name/name:tag@digest``, most of it optional."""
    match = _REFERENCE.fullmatch(text) if len(text) <= _MAX_TEXT else None
    return match is not None and len(match["name"]) <= _MAX_NAME


def image_findings(document: Mapping[str, Any], field: str | None) -> Iterator[Finding]:
    """An error for each invalid image name of an object.

    Args:
        document: The object.
        field: The spec field of the images.
    """
    for image in dict.fromkeys(_images(document)):
        if not is_image_name(image):
            yield Finding(
                level="error",
                code="image_name",
                message=f"'{image[:100]}' is not a valid image name; use registry/name:tag with a lower-case name",
                hint="check its name in your registry or with docker images",
                field=field,
            )


def _images(document: Mapping[str, Any]) -> Iterator[str]:
    for template in find_templates(dict(document)):
        spec = template.get("spec")
        for kind in ("containers", "initContainers"):
            containers = spec.get(kind) if isinstance(spec, dict) else None
            yield from _container_images(containers if isinstance(containers, list) else [])
    spec = document.get("spec")
    yield from _container_images([spec.get("trainer")] if isinstance(spec, dict) else [])


def _container_images(containers: list[Any]) -> Iterator[str]:
    for container in containers:
        image = container.get("image") if isinstance(container, dict) else None
        if isinstance(image, str) and image:  # the API server reports a missing one
            yield image
