"""One service out of reach, as in a VPC that lacks its endpoint: it is named, and the rest of what was asked for is there."""

from __future__ import annotations

import socket

import botocore.session
import pytest

from hyperpod_jlab.aws.permissions import FEATURES
from hyperpod_jlab.aws.session import forget_session
from tests.aws.conftest import REGION
from tests.aws.feature_account import space_of
from tests.aws.feature_runs import ON_A_TERMINAL, RUNS, SUBMIT

ENDPOINTS = {"sagemaker": "sagemaker.api", "cloudwatch": "monitoring", "pricing": "pricing.api"}
"""Names of VPC endpoints that are not the service's (AWS PrivateLink's list of services)."""

IN_REGION = {"pricing": "us-east-1"}
"""Services that are asked in a region of their own."""

BESIDES = frozenset({"iam:PassRole"})
"""Actions that are no calls: other services ask whether they are allowed."""

LINES = [
    pytest.param(words, id="-".join(words))
    for words in dict.fromkeys(
        words
        for feature in FEATURES
        if feature.name in RUNS and feature.name not in ON_A_TERMINAL
        for words in RUNS[feature.name]
        # MLflow is asked by requests that are signed here, without a client of boto3.
        if "--mlflow" not in words and words[:2] != ("mlflow", "link")
    )
]

OUTSIDE = frozenset({"aps"})
"""What is not asked through a client of boto3, and so has no such variable; tests/aws/test_prometheus.py cuts it off."""

UNSEEN = {
    (("clusters",), "eks"),  # "not-known" in a column; all about one cluster says why
    (SUBMIT, "ec2"),  # a table knows it, too
}
"""Where there is no room to say it."""

FOLLOWS = {
    "ec2": {"fsx", "sagemaker"},  # what to look for there, these say
    "logs": {"sagemaker"},
    "aps": {"eks", "sagemaker"},  # where it is, the add-on of a cluster says
    "ssm": {"sagemaker", "sts"},  # whether there are clusters, and whose role it is
    "iam": {"sagemaker", "sts", "ssm"},
}
"""Services that are asked for what others have told."""

INSTEAD = {"cloudwatch": {"eks", "aps"}}
"""Services that are asked where others do not answer."""


@pytest.fixture
def ask(endpoint, no_aws, home, hpj, tmp_path, prometheus):
    """Asks a new account from a space of Studio; gives the answer and the services that were asked."""
    features = space_of(endpoint, no_aws, tmp_path, home, prometheus.url)

    def asked(words):
        features.begin()
        forget_session()
        found = hpj(*(word.format(**features.names) for word in words))
        return found, {call.action.partition(":")[0] for call in endpoint.calls if call.action not in BESIDES}

    return asked


def cut_off(monkeypatch, service):
    """Lead one service to a port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    model = botocore.session.Session().get_service_model(service)
    variable = model.service_id.hyphenize().replace("-", "_").upper()
    monkeypatch.setenv(f"AWS_ENDPOINT_URL_{variable}", f"http://127.0.0.1:{port}")


@pytest.mark.parametrize("words", LINES)
def test_a_service_out_of_reach_is_named_and_the_rest_goes_on(ask, no_aws, words):
    before, usual = ask(words)
    assert usual
    for service in sorted(usual - OUTSIDE):
        with no_aws.context() as patch:
            cut_off(patch, service)
            found, asked = ask(words)
        said = found.out + found.err
        assert service not in asked
        assert "Traceback" not in said
        if (words, service) not in UNSEEN:
            assert f"{service} did not answer in {IN_REGION.get(service, REGION)}" in said
        if found.code == 5:  # what was asked for is that service's to tell
            assert f"interface endpoint for {ENDPOINTS.get(service, service)}" in said
            continue
        assert found.code in {0, before.code}  # what is not known has not failed
        lost = {one for one, on in FOLLOWS.items() if service in on}
        more = {one for one, of in INSTEAD.items() if service in of}
        assert usual - {service} - lost <= asked <= (usual | more) - {service}
