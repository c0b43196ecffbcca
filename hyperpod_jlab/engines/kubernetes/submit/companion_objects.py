"""Companions on the cluster: made before their run's job, taken back when that is refused, removed when the run has ended.

The run's label and the user's name tell which are the run's. What was there before is used as it is when it says the same, and is never changed or removed.
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
    difference,
    is_same_run,
    is_same_user,
    owner_of,
)
from hyperpod_jlab.engines.kubernetes.submit.sent import Sent

_GOING = 20.0
"""Seconds for which an object of this name that is being removed is waited for."""
_PAUSE = 0.3


async def make(client: KubeClient, sent: Sent) -> None:
    """Make a run's companions, those that are not there.

    Raises:
        HyperpodError: One of them cannot be made, or its name is another's; none of the run's is left then.
    """
    for document in sent.companions:
        try:
            await _make(client, document)
        except HyperpodError as error:
            await take_back(client, sent)
            raise _told(error, document) from error
        except asyncio.CancelledError:
            await take_back(client, sent)
            raise


async def adopt(client: KubeClient, sent: Sent, job: Mapping[str, Any]) -> None:
    """Let a job own its companions: should somebody remove the job, Kubernetes removes them. They are removed without that, so that a user who may not write it may go on."""
    patch = {"metadata": {"ownerReferences": [owner_of(job)]}}
    for document in sent.companions:
        with contextlib.suppress(HyperpodError):
            place, found = await _find(client, document)
            if found is not None and is_same_run(found, document) and not is_kept(document):
                await client.patch(place, patch)


async def take_back(client: KubeClient, sent: Sent) -> None:
    """Remove the companions of a run whose job was never made; while it is there, they stay."""
    with contextlib.suppress(HyperpodError):
        try:
            if is_same_run(await client.get(sent.place), sent.document):
                return
        except (NotFoundError, DeniedError):
            pass
    for document in sent.companions:
        with contextlib.suppress(HyperpodError):
            await _remove(client, document)


async def remove(client: KubeClient, sent: Sent) -> None:
    """Remove the companions of a run that has ended, but for those that are kept.

    Raises:
        UnreachableError: The cluster does not answer.
        DeniedError: This user may not.
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
    """What the API server says of companions, without making anything.

    Raises:
        UnreachableError: It does not answer.
    """
    for document in sent.companions:
        try:
            _, found = await _find(client, document)
            usable = found is None or await _is_usable(client, found, document)
        except UnreachableError:
            raise
        except HyperpodError as error:
            told = _told(error, document)
            yield Finding(
                level="error", code=told.code, message=told.message, hint=told.hint, field="source"
            )
            continue
        if found is not None and usable and not is_same_run(found, document):
            yield Finding(
                level="info",
                code="companion_exists",
                message=f"the {title(document)} already exists; it is used unchanged, and is kept when the run ends",
            )


async def collection(client: KubeClient, document: Mapping[str, Any]) -> str:
    """Where objects of a companion's kind and namespace are, as the API server lists it.

    Raises:
        RefusedError: It has no such kind, or not in namespaces.
    """
    version, kind = document["apiVersion"], document["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    try:
        listed = (await client.get(root)).get("resources") or []
    except NotFoundError:
        listed = []
    known = (one for one in listed if one.get("kind") == kind and "/" not in str(one.get("name")))
    found = next(known, None)
    if found is None:
        raise RefusedError(
            f"the cluster has no {kind} in {version}",
            code="no_such_kind",
            hint="check its apiVersion and kind; see: kubectl api-resources",
        )
    if not found.get("namespaced"):
        raise RefusedError(
            f"a {kind} is cluster-scoped and cannot be created with a run",
            code="cluster_scoped",
            hint="remove it from the file; create it first with kubectl apply, or ask your cluster administrator",
        )
    return f"{root}/namespaces/{document['metadata']['namespace']}/{found['name']}"


async def _make(client: KubeClient, document: Mapping[str, Any]) -> None:
    path = await collection(client, document)
    end = time.monotonic() + _GOING
    while not await _is_made(client, path, document):
        if time.monotonic() > end:
            raise RefusedError(
                "an object of this name is being deleted",
                code="name_taken",
                hint="submit the run again when it is deleted",
            )
        await asyncio.sleep(_PAUSE)


async def _is_made(client: KubeClient, path: str, document: Mapping[str, Any]) -> bool:
    """Try to make a companion; False while one that is about to go is in its place."""
    try:
        await client.post(path, document, fieldValidation="Strict")
    except ConflictError:
        place, found = await _find(client, document)
    except UnreachableError:  # the answer may only have been lost
        place, found = await _find(client, document)
        if found is None:
            raise
    else:
        return True
    if found is None:
        return False
    if await _is_usable(client, found, document):
        return True
    if "deletionTimestamp" not in found["metadata"]:
        await _delete(client, place, found)
    return False


async def _is_usable(
    client: KubeClient, found: Mapping[str, Any], document: Mapping[str, Any]
) -> bool:
    """Whether an object that is there serves in a companion's place; False for one that is about to go.

    Raises:
        RefusedError: It is another's, or another one.
    """
    if "deletionTimestamp" in found["metadata"]:
        return False
    if is_same_run(found, document):
        return True
    run = find_labels(found).get(RUN_LABEL)
    if run is not None and not is_kept(found):
        if is_same_user(found, document) and await _is_overdue(client, found):
            return False
        raise RefusedError(
            f"it belongs to the run {run} and is deleted with it",
            code="name_taken",
            hint="wait until that run ends, use another name in the manifest, or submit that run with --keep-companions",
            detail={"run_id": run},
        )
    if (place := difference(document, found)) is not None:
        raise RefusedError(
            f"it already exists with other content: {place} differs",
            code="name_taken",
            hint="use another name in the manifest, or delete the existing object",
        )
    return True


async def _is_overdue(client: KubeClient, found: Mapping[str, Any]) -> bool:
    """Whether the job that owns a companion has ended or is gone: nobody has looked since."""
    owners = found["metadata"].get("ownerReferences") or []
    kind = find_kind(owners[0]) if len(owners) == 1 else None
    if kind is None:
        return False
    place = f"{jobs_path(kind, found['metadata']['namespace'])}/{owners[0]['name']}"
    try:
        job = await client.get(place)
    except NotFoundError:
        return True
    except DeniedError:
        return False
    another = job["metadata"].get("uid") != owners[0].get("uid")
    return another or kind.observe(job, time.time()).state == "ended"


async def _find(
    client: KubeClient, document: Mapping[str, Any]
) -> tuple[str, dict[str, Any] | None]:
    """A companion's place, and what is there."""
    place = f"{await collection(client, document)}/{document['metadata']['name']}"
    try:
        return place, await client.get(place)
    except NotFoundError:
        return place, None


async def _remove(client: KubeClient, document: Mapping[str, Any]) -> None:
    place, found = await _find(client, document)
    if found is not None and is_same_run(found, document):
        await _delete(client, place, found)


async def _delete(client: KubeClient, place: str, found: Mapping[str, Any]) -> None:
    uid = found["metadata"]["uid"]
    options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
    with contextlib.suppress(NotFoundError, ConflictError):  # gone, or another one meanwhile
        await client.delete(place, options)


def _told(error: HyperpodError, document: Mapping[str, Any]) -> HyperpodError:
    """An error that names the companion."""
    return type(error)(
        f"the companion {title(document)}: {error.message}",
        code=error.code,
        hint=error.hint,
        detail={**error.detail, "object": title(document)},
    )
