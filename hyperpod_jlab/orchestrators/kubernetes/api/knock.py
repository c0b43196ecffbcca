"""Whether an EKS cluster lets one in: its description, a token, and one question to its API server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import HyperpodError, UnreachableError
from hyperpod_jlab.orchestrators.kubernetes.api.access import Access
from hyperpod_jlab.orchestrators.kubernetes.api.complaints import refusal
from hyperpod_jlab.orchestrators.kubernetes.api.connections import answer_broken, not_sent, pool
from hyperpod_jlab.orchestrators.kubernetes.api.eks import access_of

_PATIENCE = httpx.Timeout(4.0, connect=2.5)

_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""Answered to all whom the cluster knows (Kubernetes' role ``system:basic-user``)."""

_QUESTION = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {
        "resourceAttributes": {"namespace": "default", "verb": "create", "resource": "pods"},
    },
}


@dataclass(frozen=True)
class Knock:
    """How an EKS cluster's API server answered.

    Attributes:
        private: Whether its address is one of its VPC only.
        allowed: Whether one may start pods in the namespace called default.
        problem: Why it gave no answer.
    """

    private: bool = False
    allowed: bool = False
    problem: HyperpodError | None = None


async def knock(aws: Aws, name: str) -> Knock:
    """Ask an EKS cluster's API server whether it lets one start pods. Takes some seconds at the most, besides AWS' own.

    Args:
        aws: AWS in the cluster's region.
        name: The EKS cluster's name.

    Raises:
        HyperpodError: AWS does not say where it is (see `aws.errors`), or a package is missing.
    """
    described: Mapping[str, Any] = (await aws.call("eks", "DescribeCluster", name=name))["cluster"]
    network = described.get("resourcesVpcConfig") or {}
    private = network.get("endpointPublicAccess") is False
    region = await aws.region()
    access = await asyncio.to_thread(access_of, name, described, region=region)
    try:
        return Knock(private, await _may_start_pods(access))
    except HyperpodError as error:
        return Knock(private, problem=error)


async def _may_start_pods(access: Access) -> bool:
    headers = await asyncio.to_thread(access.headers)
    async with pool(access) as client:
        try:
            answer = await client.post(_REVIEW, json=_QUESTION, headers=headers, timeout=_PATIENCE)
        except httpx.TransportError as error:
            raise not_sent(error, access) or answer_broken(error, "POST", access) from error
    if answer.status_code != httpx.codes.CREATED:
        raise refusal(answer.status_code, answer.text, verb="POST", path=_REVIEW)
    try:
        return bool(answer.json()["status"]["allowed"])
    except (ValueError, KeyError, TypeError) as error:
        raise UnreachableError("what answers is no API server of Kubernetes") from error
