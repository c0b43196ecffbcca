"""What the API server says of a user's own manifest before it is sent."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.model.errors import DeniedError, HyperpodError, NotFoundError, UnreachableError
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.kinds import auto_resume
from hyperpod_jlab.orchestrators.kubernetes.kinds.discovery import operator_version
from hyperpod_jlab.orchestrators.kubernetes.kinds.pytorch_job import PyTorchJob
from hyperpod_jlab.orchestrators.kubernetes.sending.companion_objects import collection, findings
from hyperpod_jlab.orchestrators.kubernetes.sending.creation import check_ours
from hyperpod_jlab.orchestrators.kubernetes.sending.image_name import image_findings
from hyperpod_jlab.orchestrators.kubernetes.sending.object_size import size_findings
from hyperpod_jlab.orchestrators.kubernetes.sending.preflight import (
    dry_run,
    namespace_named_in,
    said,
)
from hyperpod_jlab.orchestrators.kubernetes.sending.sent import Sent


async def verdict(client: KubeClient, sent: Sent, configured: str) -> list[Finding]:
    """Its verdict on the manifest as it would be sent, and whether the names are free; nothing is made.

    Args:
        client: The cluster.
        sent: The manifest.
        configured: The cluster's configured namespace.

    Raises:
        UnreachableError: It does not answer.
    """
    objects = (*sent.companions, sent.document)
    if wrong := [found for one in objects for found in _by_itself(one)]:
        return wrong
    beside = [finding async for finding in findings(client, sent)]
    if any(finding.level == "error" for finding in beside):
        return beside
    document = sent.document
    asked = auto_resume.is_asked_for(document) and sent.kind.name == PyTorchJob.name
    resumed = auto_resume.of_manifest(document, await operator_version(client)) if asked else ()
    try:
        with contextlib.suppress(NotFoundError, DeniedError):
            check_ours(await client.get(sent.place), document)
        paths = [await collection(client, one) for one in sent.companions]
        pairs = [*zip(paths, sent.companions, strict=True), (sent.path, document)]
        found = [*beside, *resumed, *await dry_run(client, sent.kind, pairs)]
        if sent.namespace == configured:
            return found
        return namespace_named_in(found, "metadata.namespace in the manifest", "source")
    except UnreachableError:
        raise
    except HyperpodError as error:
        return [said(error)]


def _by_itself(document: Mapping[str, Any]) -> list[Finding]:
    return [*image_findings(document, None), *size_findings(document, "source")]
