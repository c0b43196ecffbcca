"""What the API server says of a user's own manifest before it is sent."""

from __future__ import annotations

import asyncio
import contextlib

from hyperpod_jlab.model.errors import DeniedError, HyperpodError, NotFoundError, UnreachableError
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import jobs_path
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import kind_of
from hyperpod_jlab.orchestrators.kubernetes.sending.creation import check_ours
from hyperpod_jlab.orchestrators.kubernetes.sending.image_name import image_findings
from hyperpod_jlab.orchestrators.kubernetes.sending.preflight import dry_run, said


async def verdict(client: KubeClient, text: str) -> list[Finding]:
    """Its verdict on the manifest as it would be sent, and whether the name is free; nothing is made.

    Raises:
        UnreachableError: It does not answer.
    """
    import yaml

    document = await asyncio.to_thread(yaml.safe_load, text)  # it may be a megabyte
    kind = kind_of(document)
    assert kind is not None  # it was rendered
    metadata = document["metadata"]
    if wrong := [*image_findings(document, None)]:
        return wrong
    path = jobs_path(kind, metadata["namespace"])
    try:
        with contextlib.suppress(NotFoundError, DeniedError):
            check_ours(await client.get(f"{path}/{metadata['name']}"), document)
        return await dry_run(client, kind, [(path, document)])
    except UnreachableError:
        raise
    except HyperpodError as error:
        return [said(error)]
