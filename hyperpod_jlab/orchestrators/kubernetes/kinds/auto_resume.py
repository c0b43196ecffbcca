"""HyperPod's auto-resume of PyTorchJobs: when it works, as AWS documents it, and what stands in the way. Pure: what the cluster has is an input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hyperpod_jlab.model.finding import Finding, Level

ENABLED = "sagemaker.amazonaws.com/enable-job-auto-resume"
RETRIES = "sagemaker.amazonaws.com/job-max-retry-count"

RESTART_POLICY = "OnFailure"
"""The only restart policy of pods with which HyperPod resumes their job."""

VERSIONS = ("1.7.0", "1.8.0", "1.8.1")
"""The releases of Kubeflow's training operator that AWS names."""
_VERSIONS = f"{', '.join(VERSIONS[:-1])} or {VERSIONS[-1]}"
_TAGS = {"v1-855e096": "1.7.0", "v1-9e52eb7": "1.8.0", "v1-04f9f13": "1.8.1"}
"""What the releases call their images; the chart of AWS has the first of these."""

_NAMESPACE = re.compile(r"kubeflow|(aws-)?hyperpod.*")
_FIELD = "auto_resume"


def notes_for(retries: int | None) -> dict[str, str]:
    """Those that ask for it; none without a number of retries."""
    return {} if retries is None else {ENABLED: "true", RETRIES: str(retries)}


def is_asked_for(document: Mapping[str, Any]) -> bool:
    """Whether a manifest has the annotation."""
    notes = _mapping(_mapping(document.get("metadata")).get("annotations"))
    return str(notes.get(ENABLED)).lower() == "true"


def version_of(image: str) -> str | None:
    """The training operator's version by its image; None when that does not say it."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    found = re.fullmatch(r"v?(\d+\.\d+\.\d+)", tag)
    return found[1] if found else _TAGS.get(tag)


def obstacles(
    namespace: str, operator: str | None, *, shared: bool, field: str = _FIELD
) -> Iterator[Finding]:
    """What keeps HyperPod from resuming a run.

    Args:
        namespace: Where its job is.
        operator: The training operator's version; None when it cannot be seen.
        shared: Whether its pods mount the partition.
        field: The spec's field that the findings are on.
    """
    if not _NAMESPACE.fullmatch(namespace):
        yield _finding(
            "namespace",
            f"HyperPod does not resume jobs in the namespace {namespace}",
            "use the namespace kubeflow, or one that begins with hyperpod or aws-hyperpod",
            field,
        )
    if operator is not None and operator not in VERSIONS:
        yield _finding(
            "operator",
            f"HyperPod does not resume jobs with the training operator {operator}",
            f"ask the cluster's admin for {_VERSIONS}",
            field,
        )
    if not shared:
        yield _finding(
            "restart_policy",
            f"HyperPod resumes only jobs with restartPolicy: {RESTART_POLICY}. With that policy the logs of a failed run are deleted with its pods, and this cluster has no shared storage to keep them",
            "name a storage claim in the cluster's configuration",
            field,
        )


def patched_master(patches: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """What to say of patches that are on a job's master: a job that is resumed has none."""
    for patch in patches:
        if "Master" in _replicas(patch):
            yield _finding(
                "patch",
                "a run that HyperPod resumes has only workers, and a patch names its Master",
                "write the patch for template, which is all pods",
                "kubernetes.patch",
            )


def wrong_kind(name: str) -> Finding:
    """What to say of a kind that HyperPod resumes never."""
    return _finding(
        "kind",
        f"HyperPod does not resume a {name}",
        "its kinds are PyTorchJob and HyperPodPyTorchJob; or give --no-auto-resume",
        _FIELD,
    )


def unknown_operator(field: str = _FIELD) -> Finding:
    """What to say where the version cannot be seen."""
    return _finding(
        "operator",
        "which training operator the cluster has cannot be seen from here",
        f"HyperPod resumes jobs with {_VERSIONS} only; ask the cluster's admin if in doubt",
        field,
        "info",
    )


def restart_policies(document: Mapping[str, Any], field: str = _FIELD) -> Iterator[Finding]:
    """What keeps HyperPod from resuming a manifest's job that has the annotation: pods of another restart policy."""
    policies = {
        name: str(_mapping(one).get("restartPolicy") or "none")
        for name, one in _replicas(document).items()
    }
    wrong = [f"{name} {policy}" for name, policy in policies.items() if policy != RESTART_POLICY]
    if wrong:
        yield _finding(
            "restart_policy",
            f"HyperPod resumes jobs with restartPolicy: {RESTART_POLICY} only, and here it is: {', '.join(wrong)}",
            f"write restartPolicy: {RESTART_POLICY} for each of pytorchReplicaSpecs",
            field,
        )


def of_manifest(document: Mapping[str, Any], operator: str | None) -> Iterator[Finding]:
    """The same of a user's own manifest, which is sent as it is."""
    if not is_asked_for(document):
        return
    namespace = str(_mapping(document.get("metadata")).get("namespace"))
    yield from obstacles(namespace, operator, shared=True, field="source")
    yield from restart_policies(document, "source")
    if operator is None:
        yield unknown_operator("source")


def _finding(what: str, message: str, hint: str, field: str, level: Level = "warning") -> Finding:
    return Finding(level=level, code=f"auto_resume_{what}", message=message, hint=hint, field=field)


def _replicas(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(_mapping(document.get("spec")).get("pytorchReplicaSpecs"))


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}
