"""The size limit of objects. The dry run does not check it: only the store behind the API server does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hyperpod_jlab.core.finding import Finding

MAX_MANIFEST_BYTES = 1_500_000
"""Maximum size of an object as JSON, in bytes. etcd accepts requests of 1.5 MiB (its
--max-request-bytes; observed on Kubernetes 1.34: 1,572,362 bytes succeeded, 1,573,400 failed), and
the job's later status must fit too.
"""


def object_bytes(document: Mapping[str, Any]) -> int:
    """The stored size of an object in bytes."""
    return len(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())


def size_findings(document: Mapping[str, Any], field: str | None = None) -> Iterator[Finding]:
    """Findings about an object's size.

    Args:
        document: The object.
        field: The spec field that it comes from, if any.
    """
    size = object_bytes(document)
    if size > MAX_MANIFEST_BYTES:
        yield Finding(
            level="error",
            code="object_too_large",
            message=f"the {document['kind']} has {size:,} bytes, but the limit of the cluster is {MAX_MANIFEST_BYTES:,}",
            hint="put large values into files or a separate ConfigMap, and refer to them",
            field=field,
        )
