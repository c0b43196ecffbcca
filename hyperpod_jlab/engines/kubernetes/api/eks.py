"""Access to an EKS cluster by name: address and certificate authority from EKS, tokens signed in this process (runs no AWS command).

A token is a presigned GetCallerIdentity request to STS with the cluster's name in a header; the
cluster sends it to STS. It is valid for 15 minutes (research/aws.md 2.6).
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.aws.errors import AwsCall, boto3_missing, no_credentials, translate
from hyperpod_jlab.aws.session import Aws, find_region
from hyperpod_jlab.aws.signed import METER
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, NotFoundError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api.access import ApiAccess, tls_context
from hyperpod_jlab.engines.kubernetes.api.client import connect_error, pool, response_error
from hyperpod_jlab.engines.kubernetes.api.credentials import Credentials, Token
from hyperpod_jlab.engines.kubernetes.api.errors import parse_error
from hyperpod_jlab.engines.kubernetes.api.kubeconfig import find_proxy
from hyperpod_jlab.engines.kubernetes.api.light_httpx import httpx

_TOKEN_TTL_S = 840.0
"""Seconds; one minute less than the cluster accepts it."""
_URL_TTL_S = 60
_PREFIX = "k8s-aws-v1."


def eks_access(name: str, session: Any = None) -> ApiAccess:
    """Access to an EKS cluster. Blocking.

    Args:
        name: The cluster's name.
        session: A boto3 session; by default one with the environment's credentials, in the region
            used for all AWS requests.

    Raises:
        UnsupportedError: boto3 is not installed.
        NotFoundError: The cluster does not exist in this account and region.
        DeniedError: AWS credentials are missing, or lack the permission to read the cluster.
        InvalidInputError: No region is configured.
        UnreachableError: AWS does not answer, or the cluster is still being created.
    """
    session = session or _session()
    return build_access(name, _described(session, name), session)


def build_access(name: str, cluster: Mapping[str, Any], session: Any = None, region: str | None = None) -> ApiAccess:
    """Access to an EKS cluster from its description. Blocking.

    Args:
        name: The cluster's name.
        cluster: The ``cluster`` in the response of ``DescribeCluster``.
        session: As with `eks_access`.
        region: The session's region.

    Raises:
        UnsupportedError: boto3 is not installed.
        InvalidInputError: No region is configured.
        UnreachableError: The cluster is still being created.
    """
    session = session or _session(region)
    server = str(cluster.get("endpoint") or "")
    if not server:
        raise UnreachableError(
            f"the EKS cluster {name} has no address yet: it is {str(cluster.get('status')).lower()}",
            code="eks_not_ready",
            hint="try again when it is active; see: aws eks describe-cluster",
        )
    credentials = Credentials(EksTokens(session, name))
    return ApiAccess(
        server=server,
        verify=tls_context(ca_data=str((cluster.get("certificateAuthority") or {}).get("data") or "")),
        headers=credentials.headers,
        proxy=find_proxy(server),
        renew=credentials.renew,
    )


class EksTokens:
    """A cluster's tokens."""

    def __init__(self, session: Any, name: str) -> None:
        self._session, self._name = session, name

    def fetch(self) -> Token:
        """A new token, signed locally; only the source of the AWS credentials may need a request."""
        url = _translate_errors(self._session, self._presigned, self._name)
        text = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
        return Token(_PREFIX + text, time.time() + _TOKEN_TTL_S)

    def _presigned(self) -> str:
        from botocore.signers import RequestSigner

        sts = self._session.client("sts", region_name=self._session.region_name)
        region = sts.meta.region_name
        signer = RequestSigner(
            sts.meta.service_model.service_id,
            region,
            "sts",
            "v4",
            self._session.get_credentials(),
            self._session.events,
        )
        request = {
            "method": "GET",
            "url": f"{_regional(sts.meta.endpoint_url, region)}/?Action=GetCallerIdentity&Version=2011-06-15",
            "body": {},
            "headers": {"x-k8s-aws-id": self._name},
            "context": {},
        }
        return str(signer.generate_presigned_url(request, region_name=region, expires_in=_URL_TTL_S, operation_name=""))


def _regional(endpoint: str, region: str) -> str:
    """STS' regional address: some clusters do not accept the global one's signature."""
    return endpoint.replace("https://sts.amazonaws.com", f"https://sts.{region}.amazonaws.com")


def _session(region: str | None = None) -> Any:
    try:
        import boto3
    except ImportError:
        raise boto3_missing("or give a context of your kubeconfig instead (aws eks update-kubeconfig)") from None
    region = region or find_region(lambda: boto3.Session().region_name)
    return boto3.Session(region_name=region)


def _described(session: Any, name: str) -> dict[str, Any]:
    def describe() -> dict[str, Any]:
        client = session.client("eks")
        METER.count(client)
        cluster = client.describe_cluster(name=name)["cluster"]
        return cluster if isinstance(cluster, dict) else {}

    described: dict[str, Any] = _translate_errors(session, describe, name)
    return described


def _translate_errors(session: Any, call: Callable[[], Any], cluster_name: str) -> Any:
    """AWS errors as our errors."""
    try:
        return call()
    except HyperpodError:
        raise
    except AttributeError as error:  # a signer without credentials
        raise no_credentials() from error
    except Exception as error:
        translated = translate(error, AwsCall("eks", "DescribeCluster", str(session.region_name)))
        if isinstance(translated, NotFoundError):
            translated = NotFoundError(
                f"EKS cluster {cluster_name} not found in this account and region",
                code="no_eks_cluster",
                hint="see: aws eks list-clusters",
                detail={**translated.detail, "field": "eks"},
            )
        if translated.code == "missing_right":
            # This is not a cluster that denies one kind of object: without credentials, nothing on
            # the cluster is accessible.
            translated = DeniedError(
                translated.message, code="no_eks_right", hint=translated.hint, detail=translated.detail
            )
        raise translated from error


# --------------------------------------------------------------------------------------------------
# Check EKS access: the cluster's description, a token, and one request to its API server.

_TIMEOUT = httpx.Timeout(4.0, connect=2.5)

_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""Every authenticated user may call it (Kubernetes' role ``system:basic-user``)."""

_REVIEW_BODY = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {"resourceAttributes": {"namespace": "default", "verb": "create", "resource": "pods"}},
}


@dataclass(frozen=True)
class AccessCheck:
    """The result of an EKS access check.

    Attributes:
        private: Whether its address is reachable only inside its VPC.
        allowed: Whether the user may create pods in the namespace ``default``.
        problem: Why the API server did not answer.
    """

    private: bool = False
    allowed: bool = False
    problem: HyperpodError | None = None


async def check_access(aws: Aws, name: str) -> AccessCheck:
    """Ask an EKS cluster's API server whether the user may create pods. Takes a few seconds at most, besides the AWS requests.

    Args:
        aws: AWS clients for the cluster's region.
        name: The EKS cluster's name.

    Raises:
        HyperpodError: AWS did not return its address (see `aws.errors`), or a package is missing.
    """
    described: Mapping[str, Any] = (await aws.call("eks", "DescribeCluster", name=name))["cluster"]
    network = described.get("resourcesVpcConfig") or {}
    private = network.get("endpointPublicAccess") is False
    region = await aws.region()
    access = await asyncio.to_thread(build_access, name, described, region=region)
    try:
        return AccessCheck(private, await _can_create_pods(access))
    except HyperpodError as error:
        return AccessCheck(private, problem=error)


async def _can_create_pods(access: ApiAccess) -> bool:
    headers = await asyncio.to_thread(access.headers)
    async with pool(access) as client:
        try:
            response = await client.post(_REVIEW, json=_REVIEW_BODY, headers=headers, timeout=_TIMEOUT)
        except httpx.TransportError as error:
            raise connect_error(error, access) or response_error(error, "POST", access) from error
    if response.status_code != httpx.codes.CREATED:
        raise parse_error(response.status_code, response.text, verb="POST", path=_REVIEW)
    try:
        return bool(response.json()["status"]["allowed"])
    except (ValueError, KeyError, TypeError) as error:
        raise UnreachableError("the server that answered is not a Kubernetes API server") from error
