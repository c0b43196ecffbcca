"""What the API server says of a user's own manifest before it is sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.model.errors import DeniedError, HyperpodError, NotFoundError, UnreachableError
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.kinds import auto_resume
from hyperpod_jlab.orchestrators.kubernetes.kinds.discovery import operator_version
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import jobs_path
from hyperpod_jlab.orchestrators.kubernetes.kinds.pytorch_job import PyTorchJob
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import kind_of
from hyperpod_jlab.orchestrators.kubernetes.sending.creation import check_ours
from hyperpod_jlab.orchestrators.kubernetes.sending.image_name import image_findings
from hyperpod_jlab.orchestrators.kubernetes.sending.object_size import size_findings
from hyperpod_jlab.orchestrators.kubernetes.sending.preflight import (
    dry_run,
    namespace_named_in,
    said,
)


async def read(text: str) -> dict[str, Any]:
    """The object of a rendered manifest."""
    import yaml

    # It may be a megabyte.
    found: dict[str, Any] = await asyncio.to_thread(yaml.safe_load, text)
    return found


async def verdict(
    client: KubeClient, document: Mapping[str, Any], configured: str
) -> list[Finding]:
    """Its verdict on the manifest as it would be sent, and whether the name is free; nothing is made.

    Args:
        client: The cluster.
        document: The manifest.
        configured: The cluster's configured namespace.

    Raises:
        UnreachableError: It does not answer.
    """
    kind = kind_of(document)
    assert kind is not None  # it was rendered
    metadata = document["metadata"]
    if wrong := [*image_findings(document, None), *size_findings(document, "source")]:
        return wrong
    path = jobs_path(kind, metadata["namespace"])
    asked = auto_resume.is_asked_for(document) and kind.name == PyTorchJob.name
    resumed = auto_resume.of_manifest(document, await operator_version(client)) if asked else ()
    try:
        with contextlib.suppress(NotFoundError, DeniedError):
            check_ours(await client.get(f"{path}/{metadata['name']}"), document)
        found = [*resumed, *await dry_run(client, kind, [(path, document)])]
        if metadata["namespace"] == configured:
            return found
        return namespace_named_in(found, "metadata.namespace in the manifest", "source")
    except UnreachableError:
        raise
    except HyperpodError as error:
        return [said(error)]
