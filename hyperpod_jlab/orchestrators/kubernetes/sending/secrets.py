"""Secrets of the cluster as variables of a run's container."""

from __future__ import annotations

import re
from typing import Any

from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.spec import JobSpec

_REFERENCE = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)/([-._A-Za-z0-9]{1,253})")
"""The name of a Secret and a key of it (Kubernetes' own rules)."""


def secret_variables(spec: JobSpec) -> list[dict[str, Any]]:
    """Each secret with a reference; those without come as files with the bundle.

    Raises:
        InvalidInputError: A reference is no name of a Secret and a key.
    """
    return [
        {"name": name, "valueFrom": {"secretKeyRef": _key(name, reference)}}
        for name, reference in sorted(spec.environment.secrets.items())
        if reference
    ]


def _key(name: str, reference: str) -> dict[str, str]:
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise InvalidInputError(
            f"the secret {name} refers to '{reference[:80]}', which is no Secret and key of the cluster",
            code="invalid_secret",
            hint=f"write --secret {name}=SECRET/KEY",
            detail={"field": "environment.secrets"},
        )
    return {"name": found[1], "key": found[3]}
