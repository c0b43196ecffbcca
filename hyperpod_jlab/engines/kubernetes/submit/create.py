"""Makes a run's objects, each of them once: their names are made from the run's id, so one that is there already is the run's own, made by an earlier submit."""

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


async def create(
    client: KubeClient, path: str, document: Mapping[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Make a run's job.

    Returns:
        The job as the API server has it, and whether this call made it.

    Raises:
        RefusedError: The API server refuses it, or another object has its name.
        UnreachableError: No answer came, and the job could not be found afterwards: it may be there.
    """
    place = f"{path}/{document['metadata']['name']}"
    try:
        return await client.post(path, document, fieldValidation="Strict"), True
    except ConflictError:  # it is there: an earlier submit made it
        return check_ours(await client.get(place), document), False
    except UnreachableError:  # the answer may only have been lost
        try:
            found = await client.get(place)
        except HyperpodError:
            found = None
        if found is None:
            raise
        return check_ours(found, document), True


def check_ours(found: dict[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """An object that was found under the run's name.

    Raises:
        RefusedError: It is another's.
    """
    if is_same_run(found, document):
        return found
    metadata = document["metadata"]
    raise RefusedError(
        f"the namespace {metadata['namespace']} already has a {document['kind']} called {metadata['name']} that does not belong to this "
        "run",
        code="name_taken",
        hint=_NEW_ID if metadata["name"].startswith("run-") else _NEW_NAME,
        detail={"name": metadata["name"], "namespace": metadata["namespace"]},
    )


def is_same_run(found: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether an object is of the run, and of the user, that a manifest was made for. In a namespace that users share each may give objects any name."""
    same = find_labels(found).get(RUN_LABEL) == find_labels(document).get(RUN_LABEL)
    return same and is_same_user(found, document)


def is_same_user(found: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether an object says to be of the user that a manifest was made for; one that names no user is anybody's."""
    user = _notes_of(document).get(USER_ANNOTATION)
    return user is None or _notes_of(found).get(USER_ANNOTATION) == user


def _notes_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return (document.get("metadata") or {}).get("annotations") or {}


async def accompany(
    client: KubeClient, job: Mapping[str, Any], companions: Sequence[Mapping[str, Any]]
) -> None:
    """Make the further objects of a job, which owns them; those that are there stay.

    Raises:
        DeniedError: The user may not make them.
        RefusedError: The API server refuses them.
    """
    metadata = job["metadata"]
    owners = [owner_of(job)]
    for companion in companions:
        made = {**companion, "metadata": {**companion["metadata"], "ownerReferences": owners}}
        path = f"/api/v1/namespaces/{metadata['namespace']}/{_PLURALS[companion['kind']]}"
        try:
            await client.post(path, made, fieldValidation="Strict")
        except ConflictError:
            await replace_other(client, path, made, job)


def owner_of(job: Mapping[str, Any]) -> dict[str, str]:
    """What an object that a job owns says of it."""
    metadata = job["metadata"]
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


async def replace_other(
    client: KubeClient, path: str, made: Mapping[str, Any], job: Mapping[str, Any]
) -> None:
    """Put an object of a job's in the place of one that an earlier job of this name left; the job's own stays as it is.

    Raises:
        RefusedError: What is there is another's.
    """
    place = f"{path}/{made['metadata']['name']}"
    try:
        found = await client.get(place)
    except DeniedError:  # it can only be taken to be ours
        return
    except NotFoundError:
        found = {}
    owners = (found.get("metadata") or {}).get("ownerReferences") or []
    if str(job["metadata"]["uid"]) in {owner.get("uid") for owner in owners}:
        return
    if found:
        namespace = job["metadata"]["namespace"]
        check_ours(found, {**made, "metadata": {**made["metadata"], "namespace": namespace}})
    with contextlib.suppress(NotFoundError):
        await client.delete(place)
    await client.post(path, made)


# --------------------------------------------------------------------------------------------------
# Whether an object on the cluster says what a manifest says. The API server adds defaults, and writes quantities in its own way. Pure.

_PASSED_OVER = frozenset({"metadata", "status"})


def difference(document: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """The first place where an object differs from a manifest, such as ``spec.ports[0].port``; None where it says the same.

    Args:
        document: The manifest.
        found: The object, as the API server has it.
    """
    for name, value in document.items():
        if name not in _PASSED_OVER and (place := _differs(value, found.get(name), name)):
            return place
    return None


def _differs(wanted: Any, found: Any, place: str) -> str | None:
    if wanted is None or (wanted in ({}, [], "") and found is None):
        return None
    if isinstance(wanted, dict) and isinstance(found, dict):
        inner = (_differs(one, found.get(name), f"{place}.{name}") for name, one in wanted.items())
        return next((one for one in inner if one), None)
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        inner = (_differs(one, there, f"{place}[{at}]") for at, (one, there) in pairs)
        return next((one for one in inner if one), None)
    return None if _is_same(wanted, found) else place


def _is_same(wanted: Any, found: Any) -> bool:
    if wanted == found or str(wanted) == str(found):
        return True
    plain = not isinstance(wanted, dict | list | bool) and found is not None
    return plain and milli(wanted) != 0 and milli(wanted) == milli(found)
