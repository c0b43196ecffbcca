"""External jobs, submitted for example with kubectl: find them for adoption, and mark them as ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.core.errors import DeniedError
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    QUEUE_LABEL,
    RUN_LABEL,
    USER_ANNOTATION,
    find_labels,
    parse_time,
)
from hyperpod_jlab.engines.kubernetes.submit.native import node_count
from hyperpod_jlab.engines.kubernetes.submit.render import FILENAME, to_yaml
from hyperpod_jlab.engines.kubernetes.submit.sent import ADOPTED_FILENAME as ADOPTED
from hyperpod_jlab.engines.kubernetes.submit.sent import render_adopted
from hyperpod_jlab.engines.kubernetes.targets import Target, find_target, this_user
from hyperpod_jlab.engines.protocol import ExternalJob, NativeFacts

_SCRIPT = "code/job.yaml"
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KEPT_METADATA = ("name", "namespace", "labels", "annotations")


async def find_job(client: KubeClient, job: str, namespace: str) -> ExternalJob:
    """Find a job for adoption.

    Args:
        client: The cluster.
        job: The name that the user gave: ``name``, ``kind/name``, ``namespace/kind/name``.
        namespace: The namespace of a job that names none.

    Raises:
        InvalidInputError: Not a job name.
        UnsupportedError: Jobs of its kind cannot be adopted.
        NotFoundError: The job does not exist.
        DeniedError: The job is another user's run, or this user may not read it.
    """
    target = await find_target(client, job, namespace)
    metadata = target.job["metadata"]
    owner = (metadata.get("annotations") or {}).get(USER_ANNOTATION)
    if owner is not None and owner != this_user():
        raise DeniedError(
            f"the job {target} is a run of {owner}; only your own jobs can be adopted",
            code="not_yours",
            hint="list jobs with: hpj jobs",
            detail={"job": str(target), "user": str(owner)},
        )
    labels = find_labels(target.job)
    manifest = to_yaml(_submitted_document(target))
    submitted = parse_time(metadata.get("creationTimestamp"), 0.0)
    return ExternalJob(
        scheduler_id=target.name,
        facts=NativeFacts(
            target.name[:63], labels.get(QUEUE_LABEL), node_count(target.kind, target.job)
        ),
        submitted_at=submitted or None,
        run_id=labels.get(RUN_LABEL),
        path=f"{target}.yaml",
        script=(_SCRIPT, _applied_text(metadata, manifest).encode()),
        files={FILENAME: manifest.encode(), ADOPTED: render_adopted(target.uid)},
        kind=target.kind.name,
    )


async def mark_job(client: KubeClient, target: Target, run_id: str) -> None:
    """Label an adopted job as this user's run. A run of another storage partition keeps its label.

    Raises:
        DeniedError: This user has read permission only.
    """
    if RUN_LABEL not in find_labels(target.job):
        labels = {RUN_LABEL: run_id}
        annotations = {USER_ANNOTATION: this_user()}
        await client.patch(
            target.object_text, {"metadata": {"labels": labels, "annotations": annotations}}
        )


def _submitted_document(target: Target) -> dict[str, Any]:
    """The object without the fields that the cluster added."""
    metadata = target.job["metadata"]
    metadata_kept = {name: metadata[name] for name in _KEPT_METADATA if name in metadata}
    annotations = {
        key: text
        for key, text in (metadata_kept.get("annotations") or {}).items()
        if key != _APPLIED
    }
    if "annotations" in metadata_kept:
        metadata_kept["annotations"] = annotations
    return {
        "apiVersion": f"{target.kind.group}/{target.kind.version}",
        "kind": target.kind.name,
        "metadata": metadata_kept,
        "spec": target.job.get("spec") or {},
    }


def _applied_text(metadata: Mapping[str, Any], default: str) -> str:
    """The user's manifest, if kubectl has recorded it."""
    try:
        document = json.loads((metadata.get("annotations") or {})[_APPLIED])
        return to_yaml(document) if isinstance(document, dict) else default
    except (KeyError, ValueError, TypeError):
        return default
