"""Which kind a run becomes: the one that its spec names, else the best that the cluster offers."""

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
from hyperpod_jlab.engines.kubernetes.kinds.pytorch_job import PyTorchJob, version_of
from hyperpod_jlab.engines.kubernetes.kinds.train_job import Runtime, TrainJob

# --------------------------------------------------------------------------------------------------
# All kinds that a run can be, and which one an object is.

KINDS: tuple[Kind, ...] = (PyTorchJob(), TrainJob(), BatchJob(), HyperPodPyTorchJob())
"""In the order in which they are chosen for a run that names none; the last only by its name, for its images are special."""

BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}


def kind_of(document: Mapping[str, Any]) -> Kind | None:
    """The kind of an object by its ``kind`` and API group; None for one that no run of ours is."""
    found = BY_NAME.get(str(document.get("kind")))
    group = str(document.get("apiVersion", "")).partition("/")[0]
    return found if found is not None and found.group == group else None


_BY_NAME_ONLY = frozenset({"HyperPodPyTorchJob"})
"""Not chosen for a run that names no kind: the images must have the agent."""


@dataclass(frozen=True)
class Offers:
    """What a cluster has.

    Attributes:
        kinds: Names of the kinds that it knows; None when it could not be asked, and the usual one is taken.
        runtimes: Training runtimes, the namespace's own first; None when they could not be listed.
        denied: Names of those kinds that this user may not make.
        operator: The version of Kubeflow's training operator; None when it cannot be seen.
    """

    kinds: frozenset[str] | None = None
    runtimes: tuple[Runtime, ...] | None = None
    denied: frozenset[str] = frozenset()
    operator: str | None = None


@dataclass(frozen=True)
class KindChoice:
    """The kind for a run, and why."""

    kind: Kind
    why: str


def choose(spec: JobSpec, offers: Offers, runtime: str | None) -> KindChoice:
    """The kind for a spec.

    Args:
        spec: The spec.
        offers: What the cluster has.
        runtime: The training runtime that the configuration names, for a TrainJob.

    Raises:
        RefusedError: The cluster does not offer the kind that the spec names, or not the runtime.
    """
    if spec.array is not None:
        return KindChoice(BY_NAME["Job"], "the tasks of an array are the pods of a Job")
    named = spec.kubernetes.kind
    if offers.kinds is None:
        kind = BY_NAME[named or KINDS[0].name]
        return KindChoice(_with_runtime(kind, offers, runtime), "the cluster did not answer")
    if named is not None:
        if named not in offers.kinds:
            listed = ", ".join(kind.name for kind in KINDS if kind.name in offers.kinds)
            raise RefusedError(
                f"the cluster has no {named}",
                code="no_such_kind",
                hint=f"it has: {listed or 'no kind that a run can use'}; ask your cluster administrator to install its operator",
                detail={"field": "kubernetes.kind", "offered": sorted(offers.kinds)},
            )
        return KindChoice(_with_runtime(BY_NAME[named], offers, runtime), "the spec requires it")
    usable = [kind for kind in KINDS if _is_usable(kind, offers, runtime)]
    for kind in usable:
        if kind.name not in offers.denied:
            better = [one.name for one in usable[: usable.index(kind)]]
            why = (
                f"you do not have the permission to create a {better[0]}"
                if better
                else _WHY[kind.name]
            )
            return KindChoice(_with_runtime(kind, offers, runtime), why)
    if usable:  # the API server says which right is missing
        return KindChoice(_with_runtime(usable[0], offers, runtime), _WHY[usable[0].name])
    raise RefusedError(
        "the cluster has no kind of object that a run can use",
        code="no_such_kind",
        hint="ask your cluster administrator for the Kubeflow training operator",
        detail={"field": "kubernetes.kind"},
    )


_WHY = {
    "PyTorchJob": "the cluster has Kubeflow's training operator",
    "TrainJob": "the cluster has Kubeflow Trainer, but no PyTorchJob",
    "Job": "the cluster has no training operator",
}


def _is_usable(kind: Kind, offers: Offers, runtime: str | None) -> bool:
    """Whether a kind may be taken for a run that names none."""
    if kind.name not in (offers.kinds or ()) or kind.name in _BY_NAME_ONLY:
        return False
    return kind.name != "TrainJob" or not _no_runtime(offers, runtime)


def _no_runtime(offers: Offers, runtime: str | None) -> bool:
    return runtime is None and offers.runtimes == ()


def _with_runtime(kind: Kind, offers: Offers, runtime: str | None) -> Kind:
    """A TrainJob of the runtime that is wanted, or of the usual one.

    Raises:
        RefusedError: The cluster does not have it.
    """
    if not isinstance(kind, TrainJob):
        return kind
    found = offers.runtimes
    wanted = runtime or Runtime().name
    match = next((one for one in found or () if one.name == wanted), None)
    if match is None and runtime is None and found is not None and len(found) == 1:
        match = found[0]
    if match is None and found is not None:
        listed = ", ".join(one.name for one in found) or "none"
        raise RefusedError(
            f"training runtime {wanted} not found",
            code="no_such_runtime",
            hint=f"it has: {listed}; set runtime in the configuration of the cluster",
            detail={"field": "kubernetes.kind"},
        )
    return TrainJob(match or Runtime(wanted))


# --------------------------------------------------------------------------------------------------
# Which kinds a cluster has.

_TRAINER = f"/apis/{TrainJob.group}/{TrainJob.version}"
_OPERATOR = "/apis/apps/v1/namespaces/kubeflow/deployments"
_OPERATOR_LABEL = "control-plane=kubeflow-training-operator"


async def discover(client: KubeClient, namespace: str) -> Offers:
    """Ask a cluster. All users may ask for its kinds; runtimes may be hidden from some.

    Raises:
        UnreachableError: It does not answer, or what answers is no API server.
        DeniedError: It does not know who asks.
    """
    found = await asyncio.gather(*(_has(client, kind) for kind in KINDS))
    kinds = frozenset(kind.name for kind, there in zip(KINDS, found, strict=True) if there)
    if not kinds and None in found:
        return Offers()
    if not kinds:  # every cluster has the kind Job
        raise UnreachableError(
            "the server that answered is not a Kubernetes API server",
            code="no_api_server",
            hint="check the server and the proxy in the kubeconfig",
        )
    runtimes = await _runtimes(client, namespace) if TrainJob.name in kinds else ()
    operator = await operator_version(client) if PyTorchJob.name in kinds else None
    return Offers(kinds, runtimes, operator=operator)


async def operator_version(client: KubeClient) -> str | None:
    """The version of Kubeflow's training operator; None when it cannot be seen: few may look into its namespace."""
    try:
        found: dict[str, Any] = await client.get(_OPERATOR, labelSelector=_OPERATOR_LABEL)
    except (NotFoundError, DeniedError):
        return None
    for one in found.get("items") or []:
        for container in one["spec"]["template"]["spec"]["containers"]:
            version = version_of(str(container.get("image")))
            if version is not None:
                return version
    return None


async def _has(client: KubeClient, kind: Kind) -> bool | None:
    """Whether the cluster has a kind; None when this user may not even ask."""
    try:
        listed = await client.get(f"/apis/{kind.group}/{kind.version}")
    except NotFoundError:
        return False
    except DeniedError as error:
        if error.code == "unauthorized":
            raise
        return None
    return any(one.get("name") == kind.plural for one in listed.get("resources") or [])


async def _runtimes(client: KubeClient, namespace: str) -> tuple[Runtime, ...] | None:
    """The namespace's own first; None when neither may be listed."""
    own, shared = await asyncio.gather(
        _names(client, f"{_TRAINER}/namespaces/{namespace}/trainingruntimes"),
        _names(client, f"{_TRAINER}/clustertrainingruntimes"),
    )
    if own is None and shared is None:
        return None
    return (
        *(Runtime(name, "TrainingRuntime") for name in own or ()),
        *(Runtime(name) for name in shared or ()),
    )


async def _names(client: KubeClient, path: str) -> list[str] | None:
    try:
        listed: dict[str, Any] = await client.get(path)
    except (NotFoundError, DeniedError):
        return None
    return [str(one["metadata"]["name"]) for one in listed.get("items") or []]
