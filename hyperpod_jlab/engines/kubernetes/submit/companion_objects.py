"""Companion objects in the cluster: created after their run's job, which owns them, so that Kubernetes deletes them with it.

The run's label and the user's name mark the run's own. An existing object is used unchanged if it
matches, and is never modified or deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, find_labels
from hyperpod_jlab.engines.kubernetes.submit.companions import is_kept, title
from hyperpod_jlab.engines.kubernetes.submit.create import build_owner_reference, find_difference, is_same_run
from hyperpod_jlab.engines.kubernetes.submit.sent import Sent

_DELETE_TIMEOUT_S = 20.0
"""Seconds to wait for an object of the same name that is being deleted."""
_PAUSE_S = 0.3


async def make(client: KubeClient, sent: Sent, job: Mapping[str, Any]) -> None:
    """Create a run's missing companions. The job owns them, except those that the user keeps.

    Raises:
        UnreachableError: The cluster does not answer; another submit of the run continues.
        HyperpodError: A companion cannot be created, or its name is taken; the job is then deleted.
    """
    owner = {"ownerReferences": [build_owner_reference(job)]}
    for document in sent.companions:
        metadata = {**document["metadata"], **({} if is_kept(document) else owner)}
        try:
            await _make(client, {**document, "metadata": metadata})
        except UnreachableError:
            raise
        except HyperpodError as error:
            with contextlib.suppress(HyperpodError):
                await client.delete(sent.object_path, propagationPolicy="Background")
            raise _describe_error(error, document) from error


async def are_made(client: KubeClient, sent: Sent) -> bool:
    """Whether all companions exist; those that this user may not read count as existing."""
    for document in sent.companions:
        with contextlib.suppress(DeniedError):
            if (await _find(client, document))[1] is None:
                return False
    return True


async def companion_findings(client: KubeClient, sent: Sent) -> AsyncIterator[Finding]:
    """The API server's verdict on companions, without creating anything.

    Raises:
        UnreachableError: The API server does not answer.
    """
    for document in sent.companions:
        try:
            _, existing = await _find(client, document)
            is_usable = existing is None or _is_usable(existing, document)
        except UnreachableError:
            raise
        except HyperpodError as error:
            described = _describe_error(error, document)
            yield Finding(
                level="error", code=described.code, message=described.message, hint=described.hint, field="source"
            )
            continue
        if existing is not None and is_usable and not is_same_run(existing, document):
            yield Finding(
                level="info",
                code="companion_exists",
                message=f"the {title(document)} already exists; it is used unchanged, and is kept when the run ends",
            )


async def collection(client: KubeClient, document: Mapping[str, Any]) -> str:
    """The API server's path for a companion's kind and namespace.

    Raises:
        RefusedError: The API server does not have the kind, or it is not namespaced.
    """
    version, kind = document["apiVersion"], document["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    try:
        resources = (await client.get(root)).get("resources") or []
    except NotFoundError:
        resources = []
    candidates = (
        resource for resource in resources if resource.get("kind") == kind and "/" not in str(resource.get("name"))
    )
    existing = next(candidates, None)
    if existing is None:
        raise RefusedError(
            f"the cluster has no {kind} in {version}",
            code="no_such_kind",
            hint="check its apiVersion and kind; see: kubectl api-resources",
        )
    if not existing.get("namespaced"):
        raise RefusedError(
            f"a {kind} is cluster-scoped and cannot be created with a run",
            code="cluster_scoped",
            hint="remove it from the file; create it first with kubectl apply, or ask your cluster administrator",
        )
    return f"{root}/namespaces/{document['metadata']['namespace']}/{existing['name']}"


async def _make(client: KubeClient, document: Mapping[str, Any]) -> None:
    path = await collection(client, document)
    end = time.monotonic() + _DELETE_TIMEOUT_S
    while not await _is_created(client, path, document):
        if time.monotonic() > end:
            raise RefusedError(
                "an object of this name is being deleted",
                code="name_taken",
                hint="submit the run again when it is deleted",
            )
        await asyncio.sleep(_PAUSE_S)


async def _is_created(client: KubeClient, path: str, document: Mapping[str, Any]) -> bool:
    """Try to create a companion; False while an object that is being deleted has its name."""
    try:
        await client.post(path, document, fieldValidation="Strict")
    except ConflictError:
        _, existing = await _find(client, document)
    except UnreachableError:  # the response may have been lost
        _, existing = await _find(client, document)
        if existing is None:
            raise
    else:
        return True
    return existing is not None and _is_usable(existing, document)


def _is_usable(existing: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether an existing object can serve as the companion; False for one that is being deleted, as an earlier job's of the run is.

    Raises:
        RefusedError: The object belongs to another run or user, or differs.
    """
    if "deletionTimestamp" in existing["metadata"]:
        return False
    if is_same_run(existing, document):
        return _owners(existing) == _owners(document)
    run = find_labels(existing).get(RUN_LABEL)
    if run is not None and not is_kept(existing):
        raise RefusedError(
            f"it belongs to the run {run} and is deleted with its job",
            code="name_taken",
            hint="delete that job with kubectl, use another name in the manifest, or submit that run with --keep-companions",
            detail={"run_id": run},
        )
    if (object_path := find_difference(document, existing)) is not None:
        raise RefusedError(
            f"it already exists with other content: {object_path} differs",
            code="name_taken",
            hint="use another name in the manifest, or delete the existing object",
        )
    return True


def _owners(document: Mapping[str, Any]) -> list[str]:
    return [owner["uid"] for owner in document["metadata"].get("ownerReferences") or ()]


async def _find(client: KubeClient, document: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """A companion's path and the existing object."""
    object_path = f"{await collection(client, document)}/{document['metadata']['name']}"
    try:
        return object_path, await client.get(object_path)
    except NotFoundError:
        return object_path, None


def _describe_error(error: HyperpodError, document: Mapping[str, Any]) -> HyperpodError:
    """An error that names the companion."""
    return type(error)(
        f"the companion {title(document)}: {error.message}",
        code=error.code,
        hint=error.hint,
        detail={**error.detail, "object": title(document)},
    )
