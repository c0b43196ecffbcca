"""Gives the cluster a run's job, and the ConfigMaps that hold its code where that is too large for the job's own object.

The job comes first: its pods wait for the volume, and the ConfigMaps go with the job that owns them. So whatever is broken off, a second submit of the same run
finds the job by its name and makes what is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from hyperpod_jlab.model.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    NotFoundError,
    RefusedError,
)
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import RUN_LABEL
from hyperpod_jlab.orchestrators.kubernetes.sending.code import (
    DIGEST_ANNOTATION,
    PARTS_ANNOTATION,
    Archive,
    config_maps,
    filled,
    has_place,
    pack,
    part_name,
)
from hyperpod_jlab.orchestrators.kubernetes.sending.creation import (
    accompany,
    create,
    replace_other,
)
from hyperpod_jlab.orchestrators.kubernetes.sending.meeting_key import with_key
from hyperpod_jlab.storage.records import BundleReader


async def deliver(
    client: KubeClient,
    path: str,
    document: Mapping[str, Any],
    bundle: BundleReader,
    companions: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Make a run's job, unless an earlier submit made it, and see that all of its code is there.

    Args:
        client: The cluster.
        path: Where jobs of its kind and namespace are.
        document: The manifest.
        bundle: The run.
        companions: Further objects that its pods need, which it is to own.

    Returns:
        The job as the API server has it.

    Raises:
        RefusedError: The code is too large, or the API server refuses the job; nothing is left of it.
        DeniedError: The user may not make the job or its ConfigMaps; nothing is left of it.
    """
    archive = await asyncio.to_thread(pack, bundle.folder) if has_place(document) else None
    sent = with_key(document if archive is None else filled(document, archive))
    place = f"{path}/{document['metadata']['name']}"
    job, ours = await create(client, path, sent)
    try:
        await accompany(client, job, companions)
        if archive is not None:
            await _carry(client, job, archive)
    except (DeniedError, RefusedError):
        if ours:  # its pods would wait for ever
            with contextlib.suppress(HyperpodError):
                await client.delete(place, propagationPolicy="Background")
        raise
    return job


async def is_whole(client: KubeClient, job: Mapping[str, Any]) -> bool:
    """Whether all ConfigMaps that a job waits for are there; those that this user may not read count as there."""
    metadata = job["metadata"]
    parts = int((metadata.get("annotations") or {}).get(PARTS_ANNOTATION, "0"))
    for number in range(parts):
        name = part_name(metadata["name"], number)
        try:
            await client.get(f"{_maps(metadata['namespace'])}/{name}")
        except NotFoundError:
            return False
        except DeniedError:
            continue
    return True


async def _carry(client: KubeClient, job: Mapping[str, Any], archive: Archive) -> None:
    path = _maps(job["metadata"]["namespace"])
    if not archive.parts:
        return
    said = (job["metadata"].get("annotations") or {}).get(DIGEST_ANNOTATION)
    if said != archive.digest:
        raise RefusedError(
            "the run's code is not what its job was made for",
            code="code_changed",
            hint="submit it anew, with a run id of its own",
            detail={"job": job["metadata"]["name"]},
        )
    for made in await asyncio.to_thread(config_maps, archive, job, RUN_LABEL):
        try:
            await client.post(path, made)
        except ConflictError:
            await replace_other(client, path, made, job)


def _maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"
