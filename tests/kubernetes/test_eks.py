"""Clusters of EKS by their names: a token made here, and what AWS refuses."""

from __future__ import annotations

import base64
import sys
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.stub import Stubber

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, InvalidInputError, NotFoundError, UnsupportedError
from hyperpod_jlab.engines.kubernetes.api import eks
from hyperpod_jlab.engines.kubernetes.api.access import load_access
from hyperpod_jlab.engines.kubernetes.api.eks import eks_access
from tests.kubernetes.access_fixtures import AUTHORITY, clean, later, token_of

__all__ = ["clean"]


class Session(boto3.Session):
    """One whose EKS client answers as told; botocore checks that such an answer can be."""

    def __init__(self, **answer: Any) -> None:
        super().__init__("AKIDEXAMPLE", "key-of-mine", "session-token", region_name="eu-west-1")
        self._eks = super().client("eks")
        stub = Stubber(self._eks)
        if "code" in answer:
            stub.add_client_error("describe_cluster", answer["code"])
        else:
            stub.add_response("describe_cluster", {"cluster": answer}, {"name": "train"})
        stub.activate()

    def client(self, name: str, *args: Any, **more: Any) -> Any:
        return self._eks if name == "eks" else super().client(name, *args, **more)


def test_a_token_of_an_eks_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    data = base64.b64encode(AUTHORITY).decode()
    session = Session(
        name="train",
        status="ACTIVE",
        endpoint="https://A.gr7.eu-west-1.eks.amazonaws.com",
        certificateAuthority={"data": data},
    )
    found = eks_access("train", session)
    assert found.server == "https://A.gr7.eu-west-1.eks.amazonaws.com"
    token = token_of(found).removeprefix("Bearer ")
    assert token.startswith("k8s-aws-v1.")
    assert "=" not in token
    body = token.removeprefix("k8s-aws-v1.")
    url = urlsplit(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode())
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert url.hostname == "sts.eu-west-1.amazonaws.com"
    assert query["Action"] == "GetCallerIdentity"
    assert query["X-Amz-Expires"] == "60"
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert query["X-Amz-Security-Token"] == "session-token"
    assert query["X-Amz-Credential"].endswith("/eu-west-1/sts/aws4_request")
    assert "key-of-mine" not in url.query
    assert token_of(found) == f"Bearer {token}"
    later(monkeypatch, 710)
    assert token_of(found) == f"Bearer {token}"
    time.sleep(1.1)  # the signature is of the second
    later(monkeypatch, 20)  # 14 minutes less two
    assert token_of(found) != f"Bearer {token}"


@pytest.mark.parametrize(
    ("code", "kind", "word"),
    [
        ("ResourceNotFoundException", NotFoundError, "EKS cluster train not found"),
        ("AccessDeniedException", DeniedError, "eks:DescribeCluster"),
        ("ExpiredTokenException", DeniedError, "have expired"),
    ],
)
def test_what_aws_refuses(code: str, kind: type[HyperpodError], word: str) -> None:
    with pytest.raises(kind, match=word):
        eks_access("train", Session(code=code))


def test_a_refusal_of_eks_is_none_of_the_cluster() -> None:
    # Of a right in the cluster it is said what is hidden, and the rest goes on.
    with pytest.raises(DeniedError) as caught:
        eks_access("train", Session(code="AccessDeniedException"))
    assert caught.value.code == "no_eks_right"
    assert caught.value.detail["right"] == {"action": "eks:DescribeCluster"}


@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_the_region_of_eks_is_that_of_all_calls(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "eu-west-3")
    assert eks._session().region_name == "eu-west-3"


def test_an_eks_cluster_that_is_being_made() -> None:
    with pytest.raises(HyperpodError) as caught:
        eks_access("train", Session(name="train", status="CREATING"))
    assert caught.value.code == "eks_not_ready"


def test_eks_without_credentials_region_or_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    config = KubernetesCluster(orchestrator="kubernetes", eks="train")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(InvalidInputError, match="AWS_REGION"):
        load_access(config)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with pytest.raises(DeniedError) as caught:
        load_access(config)
    assert caught.value.code == "no_aws_credentials"
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(UnsupportedError, match=r"pip install .*kubeconfig"):
        load_access(config)
