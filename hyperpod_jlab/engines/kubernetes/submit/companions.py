"""Companions: the other objects in a user's manifest, such as a Service and a Deployment through which the job's pods find each other. Pure.

They are created before the job, have its run's label, and are deleted after the run's end unless
the user keeps them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS, find_kind
from hyperpod_jlab.engines.kubernetes.kinds.kind import KEEP_ANNOTATION, RUN_LABEL, USER_ANNOTATION, find_labels

MAX_COMPANIONS = 50
"""Maximum number of companions of a run: each is checked, created and deleted by its own request."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_VERSION = re.compile(r"(?:[a-z0-9][a-z0-9.-]{0,252}/)?[a-z0-9]{1,63}")


def split(documents: Sequence[Any], file: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Split a file into its one job and its companions, in the file's order.

    Args:
        documents: The file's documents.
        file: The file's name, for errors.

    Raises:
        InvalidInputError: The file does not contain exactly one job, or contains something that is
            not an object.
    """
    objects = [*_objects(documents, file)]
    if not objects:
        raise manifest_error(f"{file} is empty", "it must contain one job")
    jobs = [document for document in objects if find_kind(document) is not None]
    if not jobs:
        kinds_text = ", ".join(f"{kind.name} ({kind.group}/{kind.version})" for kind in KINDS)
        objects_text = ", ".join(f"{document.get('apiVersion')} {document['kind']}" for document in objects)[:200]
        problem = (
            f"a run cannot be created as {objects_text}"
            if len(objects) == 1
            else f"it contains no job ({objects_text})"
        )
        raise manifest_error(f"{file}: {problem}", f"a run can be created as: {kinds_text}")
    if len(jobs) > 1:
        raise manifest_error(
            f"{file} contains {len(jobs)} jobs ({', '.join(map(title, jobs))[:200]}), but a run is one job",
            "put each job into a separate file",
        )
    companions = [document for document in objects if document is not jobs[0]]
    if len(companions) > MAX_COMPANIONS:
        raise manifest_error(
            f"{file} contains {len(companions)} objects besides its job; the limit is {MAX_COMPANIONS}",
            "create the others first with kubectl apply",
        )
    return jobs[0], companions


def add_labels(
    companions: Sequence[dict[str, Any]], job: Mapping[str, Any], file: str, *, keep_companions: bool
) -> list[dict[str, Any]]:
    """The companions as they are submitted.

    Args:
        companions: The companions in the file.
        job: The job as it is submitted.
        file: The file's name, for errors.
        keep_companions: Whether they stay after the run's end.

    Raises:
        InvalidInputError: One of them is not allowed as a companion.
    """
    labelled_companions = [_labelled(companion, job, file, keep_companions=keep_companions) for companion in companions]
    count = Counter(_key(companion) for companion in (*labelled_companions, job))
    for companion in labelled_companions:
        if count[_key(companion)] > 1:
            raise manifest_error(f"{file} contains the {title(companion)} twice", "give each a unique name")
    return labelled_companions


def title(document: Mapping[str, Any]) -> str:
    """An object as text: its kind and name."""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document['kind']} {name}"[:120] if name is not None else str(document["kind"])[:60]


def is_kept(document: Mapping[str, Any]) -> bool:
    """Whether a companion stays after its run's end."""
    return (document["metadata"].get("annotations") or {}).get(KEEP_ANNOTATION) == "true"


def is_companion(document: Any, namespace: str) -> bool:
    """Whether a document of a bundle's manifest is a valid companion of a job in this namespace: its fields become part of a path."""
    metadata = document["metadata"]
    return (
        metadata["namespace"] == namespace
        and _NAME.fullmatch(metadata["name"]) is not None
        and _VERSION.fullmatch(document["apiVersion"]) is not None
        and isinstance(document["kind"], str)
    )


def _objects(documents: Sequence[Any], file: str) -> Iterator[dict[str, Any]]:
    """The objects, with Lists expanded to their items."""
    for number, document in enumerate(documents, start=1):
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            document_text = "" if len(documents) == 1 else f"document {number} "
            raise manifest_error(
                f"{file}: {document_text}contains no Kubernetes object",
                "it must have apiVersion, kind, metadata and spec",
            )
        items = document.get("items")
        if document["kind"] == "List" and isinstance(items, list):
            yield from _objects(items, file)
        else:
            yield document


def _labelled(document: dict[str, Any], job: Mapping[str, Any], file: str, *, keep_companions: bool) -> dict[str, Any]:
    subject = f"{file}: the {title(document)}"
    if not _VERSION.fullmatch(str(document.get("apiVersion"))):
        raise manifest_error(f"{subject} has no apiVersion", "use an apiVersion as listed by kubectl api-versions")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or "name" not in metadata:
        raise manifest_error(f"{subject} has no metadata.name", "give it a name, so that other objects can refer to it")
    if not isinstance(metadata["name"], str) or not _NAME.fullmatch(metadata["name"]):
        raise manifest_error(
            f"{subject}: metadata.name is not a valid name", "use lower-case letters, digits, dashes and dots"
        )
    namespace = job["metadata"]["namespace"]
    if metadata.get("namespace", namespace) != namespace:
        raise manifest_error(
            f"{subject} is for the namespace {str(metadata['namespace'])[:63]}, but its job is for {namespace}",
            "companion objects must be in the namespace of the job",
        )
    annotations = {}
    if (user := (job["metadata"]["annotations"]).get(USER_ANNOTATION)) is not None:
        annotations[USER_ANNOTATION] = user
    if keep_companions:
        annotations[KEEP_ANNOTATION] = "true"
    labels = {RUN_LABEL: find_labels(job)[RUN_LABEL]}
    added = {
        "labels": {**string_map(metadata, "labels", subject), **labels},
        "annotations": {**string_map(metadata, "annotations", subject), **annotations},
    }
    result = {**document, "metadata": {**metadata, "namespace": namespace, **added}}
    _check_kind(result, subject)
    return result


def _check_kind(document: Mapping[str, Any], subject: str) -> None:
    """Kinds that must not be deleted with the run, or stored in its bundle."""
    core = document["apiVersion"] == "v1"
    if core and document["kind"] == "Secret":
        raise manifest_error(
            f"{subject} cannot be submitted with a run: its values would be readable in the folder of the run",
            "create it first with kubectl apply; pods can refer to it",
        )
    if core and document["kind"] == "PersistentVolumeClaim" and not is_kept(document):
        raise manifest_error(
            f"{subject} would be deleted with its data when the run ends",
            "create it first with kubectl apply, or keep companion objects with --keep-companions",
        )


def _key(document: Mapping[str, Any]) -> tuple[str, str, str]:
    group = document["apiVersion"].rpartition("/")[0]
    return group, document["kind"], document["metadata"]["name"]


def string_map(metadata: Mapping[str, Any], field: str, subject: str) -> dict[str, Any]:
    """Labels or annotations.

    Raises:
        InvalidInputError: They are not a mapping.
    """
    content = metadata.get(field) or {}
    if not isinstance(content, dict):
        raise manifest_error(f"{subject}: metadata.{field} must be a mapping", "write it as lines of name: value")
    return content


def manifest_error(message: str, hint: str | None) -> InvalidInputError:
    """The error for a file that cannot be submitted."""
    return InvalidInputError(message, code="invalid_source", hint=hint, detail={"field": "source"})
