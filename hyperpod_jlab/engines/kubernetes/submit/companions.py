"""The objects that stand beside the job in a user's manifest, its companions, such as a Service and a Deployment by which its pods find each other. Pure.

They are made before the job, have its run's label, and are removed when the run has ended, unless the user keeps them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS, kind_of
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    KEEP_ANNOTATION,
    RUN_LABEL,
    USER_ANNOTATION,
    labels_of,
)

MOST = 50
"""Companions of a run: each is asked about, made and removed on its own."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_VERSION = re.compile(r"(?:[a-z0-9][a-z0-9.-]{0,252}/)?[a-z0-9]{1,63}")


def split(found: Sequence[Any], file: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The one job of a file, and what stands beside it, in the file's order.

    Args:
        found: The file's documents.
        file: Its name, for errors.

    Raises:
        InvalidInputError: It does not hold exactly one job, or something that is no object.
    """
    objects = [*_objects(found, file)]
    if not objects:
        raise wrong(f"{file} is empty", "it must contain one job")
    jobs = [one for one in objects if kind_of(one) is not None]
    if not jobs:
        listed = ", ".join(f"{kind.name} ({kind.group}/{kind.version})" for kind in KINDS)
        words = ", ".join(f"{one.get('apiVersion')} {one['kind']}" for one in objects)[:200]
        problem = (
            f"a run cannot be created as {words}"
            if len(objects) == 1
            else f"it contains no job ({words})"
        )
        raise wrong(f"{file}: {problem}", f"a run can be created as: {listed}")
    if len(jobs) > 1:
        raise wrong(
            f"{file} contains {len(jobs)} jobs ({', '.join(map(title, jobs))[:200]}), but a run is one job",
            "put each job into a separate file",
        )
    companions = [one for one in objects if one is not jobs[0]]
    if len(companions) > MOST:
        raise wrong(
            f"{file} contains {len(companions)} objects besides its job; the limit is {MOST}",
            "create the others first with kubectl apply",
        )
    return jobs[0], companions


def labelled(
    companions: Sequence[dict[str, Any]], job: Mapping[str, Any], file: str, *, keep: bool
) -> list[dict[str, Any]]:
    """The companions as they are sent.

    Args:
        companions: As they stand in the file.
        job: The job as it is sent.
        file: The file's name, for errors.
        keep: Whether they stay when the run has ended.

    Raises:
        InvalidInputError: One of them cannot be a companion.
    """
    made = [_labelled(one, job, file, keep=keep) for one in companions]
    count = Counter(_key(one) for one in (*made, job))
    for one in made:
        if count[_key(one)] > 1:
            raise wrong(f"{file} contains the {title(one)} twice", "give each a unique name")
    return made


def title(document: Mapping[str, Any]) -> str:
    """An object for people: its kind and name."""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document['kind']} {name}"[:120] if name is not None else str(document["kind"])[:60]


def is_kept(document: Mapping[str, Any]) -> bool:
    """Whether a companion stays when its run has ended."""
    return (document["metadata"].get("annotations") or {}).get(KEEP_ANNOTATION) == "true"


def is_companion(document: Any, namespace: str) -> bool:
    """Whether a document of a bundle's manifest can be a companion of a job in this namespace: its parts become a path."""
    metadata = document["metadata"]
    return (
        metadata["namespace"] == namespace
        and _NAME.fullmatch(metadata["name"]) is not None
        and _VERSION.fullmatch(document["apiVersion"]) is not None
        and isinstance(document["kind"], str)
    )


def _objects(found: Sequence[Any], file: str) -> Iterator[dict[str, Any]]:
    """The objects; a List's are its items."""
    for at, one in enumerate(found, start=1):
        if not isinstance(one, dict) or not isinstance(one.get("kind"), str):
            which = "" if len(found) == 1 else f"document {at} "
            raise wrong(
                f"{file}: {which}contains no Kubernetes object",
                "it must have apiVersion, kind, metadata and spec",
            )
        items = one.get("items")
        if one["kind"] == "List" and isinstance(items, list):
            yield from _objects(items, file)
        else:
            yield one


def _labelled(
    document: dict[str, Any], job: Mapping[str, Any], file: str, *, keep: bool
) -> dict[str, Any]:
    what = f"{file}: the {title(document)}"
    if not _VERSION.fullmatch(str(document.get("apiVersion"))):
        raise wrong(
            f"{what} has no apiVersion", "use an apiVersion as listed by kubectl api-versions"
        )
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or "name" not in metadata:
        raise wrong(
            f"{what} has no metadata.name", "give it a name, so that other objects can refer to it"
        )
    if not isinstance(metadata["name"], str) or not _NAME.fullmatch(metadata["name"]):
        raise wrong(
            f"{what}: metadata.name is not a valid name",
            "use lower-case letters, digits, dashes and dots",
        )
    namespace = job["metadata"]["namespace"]
    if metadata.get("namespace", namespace) != namespace:
        raise wrong(
            f"{what} is for the namespace {str(metadata['namespace'])[:63]}, but its job is for {namespace}",
            "companion objects must be in the namespace of the job",
        )
    notes = {}
    if (user := (job["metadata"]["annotations"]).get(USER_ANNOTATION)) is not None:
        notes[USER_ANNOTATION] = user
    if keep:
        notes[KEEP_ANNOTATION] = "true"
    labels = {RUN_LABEL: labels_of(job)[RUN_LABEL]}
    added = {
        "labels": {**texts(metadata, "labels", what), **labels},
        "annotations": {**texts(metadata, "annotations", what), **notes},
    }
    made = {**document, "metadata": {**metadata, "namespace": namespace, **added}}
    _check_kind(made, what)
    return made


def _check_kind(document: Mapping[str, Any], what: str) -> None:
    """What would do harm if it went with the run, or lay in its bundle."""
    core = document["apiVersion"] == "v1"
    if core and document["kind"] == "Secret":
        raise wrong(
            f"{what} cannot be submitted with a run: its values would be readable in the folder of the run",
            "create it first with kubectl apply; pods can refer to it",
        )
    if core and document["kind"] == "PersistentVolumeClaim" and not is_kept(document):
        raise wrong(
            f"{what} would be deleted with its data when the run ends",
            "create it first with kubectl apply, or keep companion objects with --keep-companions",
        )


def _key(document: Mapping[str, Any]) -> tuple[str, str, str]:
    group = document["apiVersion"].rpartition("/")[0]
    return group, document["kind"], document["metadata"]["name"]


def texts(metadata: Mapping[str, Any], field: str, what: str) -> dict[str, Any]:
    """Labels or annotations.

    Raises:
        InvalidInputError: They are no mapping.
    """
    found = metadata.get(field) or {}
    if not isinstance(found, dict):
        raise wrong(
            f"{what}: metadata.{field} must be a mapping", "write it as lines of name: value"
        )
    return found


def wrong(message: str, hint: str | None) -> InvalidInputError:
    """The error for a file that cannot be sent."""
    return InvalidInputError(message, code="invalid_source", hint=hint, detail={"field": "source"})
