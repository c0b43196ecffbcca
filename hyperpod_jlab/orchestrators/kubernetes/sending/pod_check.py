"""The API server's verdict on a run's pod by itself: most kinds take any template, and what is wrong with it is only said when the operator makes the pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.model.errors import DeniedError, HyperpodError, UnreachableError
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.sending.patch import templates

_MISSING_RIGHT = "missing_right"
"""Code of the error for what this user may not do."""

_FOR_NOW = frozenset({"quota_exceeded"})
"""Codes of verdicts that may be another one when the pods are made."""


async def check_pod(
    client: KubeClient, document: Mapping[str, Any], namespace: str
) -> list[Finding]:
    """What is wrong with the pods of an object, by a dry run of one; those who may not make pods get no word."""
    template = next(templates(dict(document)), None)
    if template is None:
        return []
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": f"{document['metadata']['name']}-0"},
        "spec": {"restartPolicy": "Never", **template["spec"]},
    }
    path = f"/api/v1/namespaces/{namespace}/pods"
    try:
        await client.post(path, pod, dryRun="All", fieldValidation="Strict")
    except UnreachableError:
        return []  # a webhook for pods that does not answer now may do so later
    except HyperpodError as error:
        if isinstance(error, DeniedError) and error.code == _MISSING_RIGHT:
            return []
        return [
            Finding(
                level="warning" if error.code in _FOR_NOW else "error",
                code=error.code,
                message=f"its pods would be refused: {error.message}",
                hint=error.hint,
            )
        ]
    return []
