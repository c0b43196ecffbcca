"""Companion objects in the cluster: created before their run's job, rolled back if the job is rejected, deleted after the run's end.

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
from hyperpod_jlab.engines.kubernetes.kinds.choice import find_kind
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, find_labels, jobs_path
from hyperpod_jlab.engines.kubernetes.submit.companions import is_kept, title
from hyperpod_jlab.engines.kubernetes.submit.create import (
    build_owner_reference,
    find_difference,
    is_same_run,
    is_same_user,
)
from hyperpod_jlab.engines.kubernetes.submit.sent import Sent

_DELETE_TIMEOUT_S = 20.0
"""Seconds to wait for an object of the same name that is being deleted."""
_PAUSE_S = 0.3


async def make(client: KubeClient, sent: Sent) -> None:
    """Create a run's missing companions.

    Raises:
        HyperpodError: A companion cannot be created, or its name is taken; the run's other
            companions are then deleted.
    """
    for document in sent.companions:
        try:
            await _make(client, document)
        except HyperpodError as error:
            await delete_companions(client, sent)
            raise _describe_error(error, document) from error
        except asyncio.CancelledError:
            await delete_companions(client, sent)
            raise


async def adopt(client: KubeClient, sent: Sent, job: Mapping[str, Any]) -> None:
    """Make a job own its companions, so that Kubernetes deletes them with the job. We delete them without that too, so a missing permission is ignored."""
    patch = {"metadata": {"ownerReferences": [build_owner_reference(job)]}}
    for document in sent.companions:
        with contextlib.suppress(HyperpodError):
            object_path, existing = await _find(client, document)
            if existing is not None and is_same_run(existing, document) and not is_kept(document):
                await client.patch(object_path, patch)


async def delete_companions(client: KubeClient, sent: Sent) -> None:
    """Delete the companions of a run whose job was never created; while the job exists, they stay."""
    with contextlib.suppress(HyperpodError):
        try:
            if is_same_run(await client.get(sent.object_path), sent.document):
                return
        except (NotFoundError, DeniedError):
            pass
    for document in sent.companions:
        with contextlib.suppress(HyperpodError):
            await _remove(client, document)


async def remove(client: KubeClient, sent: Sent) -> None:
    """Delete the companions of an ended run, except those that the user keeps.

    Raises:
        UnreachableError: The cluster does not answer.
        DeniedError: This user lacks the permission.
    """
    problem: HyperpodError | None = None
    for document in sent.companions:
        if not is_kept(document):
            try:
                await _remove(client, document)
            except HyperpodError as error:
                problem = error
    if problem is not None:
        raise problem


async def companion_findings(client: KubeClient, sent: Sent) -> AsyncIterator[Finding]:
    """The API server's verdict on companions, without creating anything.

    Raises:
        UnreachableError: The API server does not answer.
    """
    for document in sent.companions:
        try:
            _, existing = await _find(client, document)
            is_usable = existing is None or await _is_usable(client, existing, document)
        except UnreachableError:
            raise
        except HyperpodError as error:
            described = _describe_error(error, document)
            yield Finding(
                level="error",
                code=described.code,
                message=described.message,
                hint=described.hint,
                field="source",
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
        resource
        for resource in resources
        if resource.get("kind") == kind and "/" not in str(resource.get("name"))
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
        object_path, existing = await _find(client, document)
    except UnreachableError:  # the response may have been lost
        object_path, existing = await _find(client, document)
        if existing is None:
            raise
    else:
        return True
    if existing is None:
        return False
    if await _is_usable(client, existing, document):
        return True
    if "deletionTimestamp" not in existing["metadata"]:
        await _delete(client, object_path, existing)
    return False


async def _is_usable(
    client: KubeClient, existing: Mapping[str, Any], document: Mapping[str, Any]
) -> bool:
    """Whether an existing object can serve as the companion; False for one that is being deleted.

    Raises:
        RefusedError: The object belongs to another run or user, or differs.
    """
    if "deletionTimestamp" in existing["metadata"]:
        return False
    if is_same_run(existing, document):
        return True
    run = find_labels(existing).get(RUN_LABEL)
    if run is not None and not is_kept(existing):
        if is_same_user(existing, document) and await _should_have_been_deleted(client, existing):
            return False
        raise RefusedError(
            f"it belongs to the run {run} and is deleted with it",
            code="name_taken",
            hint="wait until that run ends, use another name in the manifest, or submit that run with --keep-companions",
            detail={"run_id": run},
        )
    if (object_path := find_difference(document, existing)) is not None:
        raise RefusedError(
            f"it already exists with other content: {object_path} differs",
            code="name_taken",
            hint="use another name in the manifest, or delete the existing object",
        )
    return True


async def _should_have_been_deleted(client: KubeClient, existing: Mapping[str, Any]) -> bool:
    """Whether the job that owns a companion has ended or is gone, without a poll since."""
    owners = existing["metadata"].get("ownerReferences") or []
    kind = find_kind(owners[0]) if len(owners) == 1 else None
    if kind is None:
        return False
    object_path = f"{jobs_path(kind, existing['metadata']['namespace'])}/{owners[0]['name']}"
    try:
        job = await client.get(object_path)
    except NotFoundError:
        return True
    except DeniedError:
        return False
    is_other_job = job["metadata"].get("uid") != owners[0].get("uid")
    return is_other_job or kind.observe(job, time.time()).state == "ended"


async def _find(
    client: KubeClient, document: Mapping[str, Any]
) -> tuple[str, dict[str, Any] | None]:
    """A companion's path and the existing object."""
    object_path = f"{await collection(client, document)}/{document['metadata']['name']}"
    try:
        return object_path, await client.get(object_path)
    except NotFoundError:
        return object_path, None


async def _remove(client: KubeClient, document: Mapping[str, Any]) -> None:
    object_path, existing = await _find(client, document)
    if existing is not None and is_same_run(existing, document):
        await _delete(client, object_path, existing)


async def _delete(client: KubeClient, object_path: str, existing: Mapping[str, Any]) -> None:
    uid = existing["metadata"]["uid"]
    options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
    with contextlib.suppress(NotFoundError, ConflictError):  # it is gone, or was replaced meanwhile
        await client.delete(object_path, options)


def _describe_error(error: HyperpodError, document: Mapping[str, Any]) -> HyperpodError:
    """An error that names the companion."""
    return type(error)(
        f"the companion {title(document)}: {error.message}",
        code=error.code,
        hint=error.hint,
        detail={**error.detail, "object": title(document)},
    )
