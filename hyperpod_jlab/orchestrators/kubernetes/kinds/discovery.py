"""Which kinds a cluster has."""

from __future__ import annotations

import asyncio
from typing import Any

from hyperpod_jlab.model.errors import DeniedError, NotFoundError, UnreachableError
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.kinds.auto_resume import version_of
from hyperpod_jlab.orchestrators.kubernetes.kinds.choice import Offers
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Kind
from hyperpod_jlab.orchestrators.kubernetes.kinds.pytorch_job import PyTorchJob
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import KINDS
from hyperpod_jlab.orchestrators.kubernetes.kinds.train_job import Runtime, TrainJob

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
            "what answers is no Kubernetes API server",
            code="no_api_server",
            hint="look at the server's address and the proxy in the kubeconfig",
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
