"""Which kind a run becomes: the one that its spec names, else the best one that the cluster offers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import DeniedError, NotFoundError, RefusedError, UnreachableError
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds.batch_job import BatchJob
from hyperpod_jlab.engines.kubernetes.kinds.hyperpod_job import HyperPodPyTorchJob
from hyperpod_jlab.engines.kubernetes.kinds.kind import Kind
from hyperpod_jlab.engines.kubernetes.kinds.pytorch_job import PyTorchJob, operator_version
from hyperpod_jlab.engines.kubernetes.kinds.train_job import Runtime, TrainJob

# --------------------------------------------------------------------------------------------------
# All kinds that a run can be, and the kind of an object.

KINDS: tuple[Kind, ...] = (PyTorchJob(), TrainJob(), BatchJob(), HyperPodPyTorchJob())
"""In order of preference for a run that names none; the last one only by name, because it needs special images."""

KIND_BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}


def find_kind(document: Mapping[str, Any]) -> Kind | None:
    """The kind of an object by its ``kind`` and API group; None for a kind that our runs do not use."""
    kind = KIND_BY_NAME.get(str(document.get("kind")))
    group = str(document.get("apiVersion", "")).partition("/")[0]
    return kind if kind is not None and kind.group == group else None


@dataclass(frozen=True)
class InstalledKinds:
    """The kinds that a cluster has.

    Attributes:
        kinds: Names of the kinds that it serves; None when unknown, so that the default kind is
            used.
        runtimes: Training runtimes, the namespace's own first; None when they could not be listed.
        denied: Names of the kinds that this user may not create.
        operator: The version of Kubeflow's training operator; None when unknown.
    """

    kinds: frozenset[str] | None = None
    runtimes: tuple[Runtime, ...] | None = None
    denied: frozenset[str] = frozenset()
    operator: str | None = None


@dataclass(frozen=True)
class KindChoice:
    """The kind for a run, and the reason."""

    kind: Kind
    reason: str


def choose(spec: JobSpec, installed: InstalledKinds, runtime: str | None) -> KindChoice:
    """Choose the kind for a spec.

    Args:
        spec: The spec.
        installed: What the cluster has.
        runtime: The configured training runtime for a TrainJob.

    Raises:
        RefusedError: The cluster does not offer the spec's kind or runtime.
    """
    if spec.array is not None:
        return KindChoice(BatchJob(), "the tasks of an array are the pods of a Job")
    requested = spec.kubernetes.kind
    if installed.kinds is None:
        kind = KIND_BY_NAME[requested or KINDS[0].name]
        return KindChoice(_with_runtime(kind, installed, runtime), "the cluster did not answer")
    if requested is not None:
        if requested not in installed.kinds:
            available_text = ", ".join(kind.name for kind in KINDS if kind.name in installed.kinds)
            raise RefusedError(
                f"the cluster has no {requested}",
                code="no_such_kind",
                hint=f"it has: {available_text or 'no kind that a run can use'}; ask your cluster administrator to install its operator",
                detail={"field": "kubernetes.kind", "offered": sorted(installed.kinds)},
            )
        return KindChoice(_with_runtime(KIND_BY_NAME[requested], installed, runtime), "the spec requires it")
    usable_kinds = [kind for kind in KINDS if _is_usable(kind, installed, runtime)]
    permitted = [kind for kind in usable_kinds if kind.name not in installed.denied]
    for kind in permitted or usable_kinds:  # the API server reports a missing permission
        reason = kind.reason or ""
        if kind is not usable_kinds[0]:
            reason = f"you do not have the permission to create a {usable_kinds[0].name}"
        return KindChoice(_with_runtime(kind, installed, runtime), reason)
    raise RefusedError(
        "the cluster has no kind of object that a run can use",
        code="no_such_kind",
        hint="ask your cluster administrator for the Kubeflow training operator",
        detail={"field": "kubernetes.kind"},
    )


def _is_usable(kind: Kind, installed: InstalledKinds, runtime: str | None) -> bool:
    """Whether a run that names no kind may use this one."""
    if kind.name not in (installed.kinds or ()) or kind.reason is None:
        return False
    return not isinstance(kind, TrainJob) or runtime is not None or installed.runtimes != ()


def _with_runtime(kind: Kind, installed: InstalledKinds, runtime: str | None) -> Kind:
    """A TrainJob with the requested runtime, or the default one.

    Raises:
        RefusedError: The cluster does not have it.
    """
    if not isinstance(kind, TrainJob):
        return kind
    runtimes = installed.runtimes
    runtime_name = runtime or Runtime().name
    runtime_found = next((runtime_item for runtime_item in runtimes or () if runtime_item.name == runtime_name), None)
    if runtime_found is None and runtime is None and runtimes is not None and len(runtimes) == 1:
        runtime_found = runtimes[0]
    if runtime_found is None and runtimes is not None:
        available_text = ", ".join(runtime_item.name for runtime_item in runtimes) or "none"
        raise RefusedError(
            f"training runtime {runtime_name} not found",
            code="no_such_runtime",
            hint=f"it has: {available_text}; set runtime in the configuration of the cluster",
            detail={"field": "kubernetes.kind"},
        )
    return TrainJob(runtime_found or Runtime(runtime_name))


# --------------------------------------------------------------------------------------------------
# Discovery of the kinds that a cluster has.

_TRAINER = f"/apis/{TrainJob.group}/{TrainJob.version}"


async def discover(client: KubeClient, namespace: str) -> InstalledKinds:
    """Query a cluster. All users may list its kinds; runtimes may be hidden from some.

    Raises:
        UnreachableError: The cluster does not answer, or the responder is not an API server.
        DeniedError: The cluster rejected the credentials.
    """
    served = await asyncio.gather(*(_is_served(client, kind) for kind in KINDS))
    kinds = frozenset(kind.name for kind, is_served in zip(KINDS, served, strict=True) if is_served)
    if not kinds and None in served:
        return InstalledKinds()
    if not kinds:  # every cluster has the kind Job
        raise UnreachableError(
            "the server that answered is not a Kubernetes API server",
            code="no_api_server",
            hint="check the server and the proxy in the kubeconfig",
        )
    runtimes = await _runtimes(client, namespace) if TrainJob.name in kinds else ()
    operator = await operator_version(client) if PyTorchJob.name in kinds else None
    return InstalledKinds(kinds, runtimes, operator=operator)


async def _is_served(client: KubeClient, kind: Kind) -> bool | None:
    """Whether the cluster serves a kind; None when this user lacks the permission to ask."""
    try:
        response = await client.get(f"/apis/{kind.group}/{kind.version}")
    except NotFoundError:
        return False
    except DeniedError as error:
        if error.code == "unauthorized":
            raise
        return None
    return any(resource.get("name") == kind.plural for resource in response.get("resources") or [])


async def _runtimes(client: KubeClient, namespace: str) -> tuple[Runtime, ...] | None:
    """The namespace's own first; None when neither may be listed."""
    namespaced, cluster_wide = await asyncio.gather(
        _names(client, f"{_TRAINER}/namespaces/{namespace}/trainingruntimes"),
        _names(client, f"{_TRAINER}/clustertrainingruntimes"),
    )
    if namespaced is None and cluster_wide is None:
        return None
    return (
        *(Runtime(name, "TrainingRuntime") for name in namespaced or ()),
        *(Runtime(name) for name in cluster_wide or ()),
    )


async def _names(client: KubeClient, path: str) -> list[str] | None:
    try:
        response: dict[str, Any] = await client.get(path)
    except (NotFoundError, DeniedError):
        return None
    return [str(item["metadata"]["name"]) for item in response.get("items") or []]
