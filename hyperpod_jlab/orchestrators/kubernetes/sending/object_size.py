"""How large an object may be. The dry run does not tell: only the store behind the API server counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hyperpod_jlab.model.finding import Finding

MOST_BYTES = 1_500_000
"""Bytes of an object as JSON. etcd takes requests of 1.5 MiB (its --max-request-bytes; seen on Kubernetes 1.34: 1,572,362 bytes went in, 1,573,400 did not), and the status that the job gets later has to find room in them."""


def object_bytes(document: Mapping[str, Any]) -> int:
    """Bytes of an object as it is stored."""
    return len(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())


def size_findings(document: Mapping[str, Any], field: str | None = None) -> Iterator[Finding]:
    """What there is to say of an object's size.

    Args:
        document: The object.
        field: The spec's field that it comes from, where it is one.
    """
    size = object_bytes(document)
    if size > MOST_BYTES:
        yield Finding(
            level="error",
            code="object_too_large",
            message=f"the {document['kind']} has {size:,} bytes, and the cluster takes objects of up to {MOST_BYTES:,}",
            hint="put large values into files or a ConfigMap of their own, and name those in it",
            field=field,
        )
