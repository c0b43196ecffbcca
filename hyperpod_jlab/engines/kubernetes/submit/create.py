"""Creates a run's objects, each once: their names derive from the run's id, so an existing one is the run's own, from an earlier submit."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, USER_ANNOTATION, find_labels
from hyperpod_jlab.engines.kubernetes.submit.resources import milli

_NEW_ID = "submit the run again to get another id"
_NEW_NAME = "change metadata.name in the manifest, or use generateName instead"
_PLURALS = {"Service": "services"}


async def create(client: KubeClient, path: str, document: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Create a run's job.

    Returns:
        The job from the API server, and whether this call created it.

    Raises:
        RefusedError: The API server rejected it, or another object has its name.
        UnreachableError: The response was lost, and the job was not found afterwards: it may exist.
    """
    object_path = f"{path}/{document['metadata']['name']}"
    try:
        return await client.post(path, document, fieldValidation="Strict"), True
    except ConflictError:  # it exists: an earlier submit created it
        return check_own_object(await client.get(object_path), document), False
    except UnreachableError:  # the response may have been lost
        try:
            existing = await client.get(object_path)
        except HyperpodError:
            existing = None
        if existing is None:
            raise
        return check_own_object(existing, document), True


def check_own_object(existing: dict[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Check an object that was found under the run's name.

    Raises:
        RefusedError: The object belongs to another run or user.
    """
    if is_same_run(existing, document):
        return existing
    metadata = document["metadata"]
    raise RefusedError(
        f"the namespace {metadata['namespace']} already has a {document['kind']} called {metadata['name']} that does not belong to this "
        "run",
        code="name_taken",
        hint=_NEW_ID if metadata["name"].startswith("run-") else _NEW_NAME,
        detail={"name": metadata["name"], "namespace": metadata["namespace"]},
    )


def is_same_run(existing: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether an object belongs to the manifest's run and user. In a shared namespace any user can create objects of any name."""
    is_same = find_labels(existing).get(RUN_LABEL) == find_labels(document).get(RUN_LABEL)
    return is_same and is_same_user(existing, document)


def is_same_user(existing: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether an object names the manifest's user; one that names no user matches everyone."""
    user = _find_annotations(document).get(USER_ANNOTATION)
    return user is None or _find_annotations(existing).get(USER_ANNOTATION) == user


def _find_annotations(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return (document.get("metadata") or {}).get("annotations") or {}


async def accompany(client: KubeClient, job: Mapping[str, Any], companions: Sequence[Mapping[str, Any]]) -> None:
    """Create a job's further objects, which the job owns; existing ones stay.

    Raises:
        DeniedError: The user may not create them.
        RefusedError: The API server rejected them.
    """
    metadata = job["metadata"]
    owners = [build_owner_reference(job)]
    for companion in companions:
        companion_created = {**companion, "metadata": {**companion["metadata"], "ownerReferences": owners}}
        path = f"/api/v1/namespaces/{metadata['namespace']}/{_PLURALS[companion['kind']]}"
        try:
            await client.post(path, companion_created, fieldValidation="Strict")
        except ConflictError:
            await replace_foreign(client, path, companion_created, job)


def build_owner_reference(job: Mapping[str, Any]) -> dict[str, str]:
    """The owner reference to a job."""
    metadata = job["metadata"]
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": metadata["name"], "uid": metadata["uid"]}


async def replace_foreign(client: KubeClient, path: str, document: Mapping[str, Any], job: Mapping[str, Any]) -> None:
    """Replace an object left by an earlier job of this name; the job's own stays.

    Raises:
        RefusedError: The existing object belongs to another run or user.
    """
    object_path = f"{path}/{document['metadata']['name']}"
    try:
        existing = await client.get(object_path)
    except DeniedError:  # without the permission to check, assume that it is ours
        return
    except NotFoundError:
        existing = {}
    owners = (existing.get("metadata") or {}).get("ownerReferences") or []
    if str(job["metadata"]["uid"]) in {owner.get("uid") for owner in owners}:
        return
    if existing:
        namespace = job["metadata"]["namespace"]
        check_own_object(existing, {**document, "metadata": {**document["metadata"], "namespace": namespace}})
    with contextlib.suppress(NotFoundError):
        await client.delete(object_path)
    await client.post(path, document)


# --------------------------------------------------------------------------------------------------
# Compares an object in the cluster with a manifest. The API server adds defaults and normalizes
# quantities. Pure.

_IGNORED_FIELDS = frozenset({"metadata", "status"})


def find_difference(document: Mapping[str, Any], existing: Mapping[str, Any]) -> str | None:
    """The path of the first difference between an object and a manifest, such as ``spec.ports[0].port``; None if they match.

    Args:
        document: The manifest.
        existing: The object from the API server.
    """
    for name, value in document.items():
        if name not in _IGNORED_FIELDS and (object_path := _find_difference(value, existing.get(name), name)):
            return object_path
    return None


def _find_difference(expected: Any, existing: Any, object_path: str) -> str | None:
    if expected is None or (expected in ({}, [], "") and existing is None):
        return None
    if isinstance(expected, dict) and isinstance(existing, dict):
        differences = (
            _find_difference(value, existing.get(name), f"{object_path}.{name}") for name, value in expected.items()
        )
        return next((difference for difference in differences if difference), None)
    if isinstance(expected, list) and isinstance(existing, list) and len(expected) == len(existing):
        pairs = enumerate(zip(expected, existing, strict=True))
        differences = (
            _find_difference(value, other_value, f"{object_path}[{index}]") for index, (value, other_value) in pairs
        )
        return next((difference for difference in differences if difference), None)
    return None if _is_same(expected, existing) else object_path


def _is_same(expected: Any, existing: Any) -> bool:
    if expected == existing or str(expected) == str(existing):
        return True
    is_scalar = not isinstance(expected, dict | list | bool) and existing is not None
    return is_scalar and milli(expected) != 0 and milli(expected) == milli(existing)
