"""An AWS account on loopback, credentials that are good for nothing else, and no other AWS configuration."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperpod_jlab.aws.session import forget_session
from testbed.aws.endpoint import Endpoint
from testbed.aws.server import AwsServer
from tests.cli.conftest import home, hpj

__all__ = ["home", "hpj"]

REGION = "us-west-2"
KEY = "AKIATESTBEDEXAMPLE01"


@pytest.fixture
def no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """Nothing of AWS is configured, no EC2 metadata are asked for, this is not Studio."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-aws-credentials"))
    monkeypatch.setenv("RESOURCE_METADATA_FILE", str(tmp_path / "no-metadata.json"))
    forget_session()
    yield monkeypatch
    forget_session()


@pytest.fixture
def endpoint(no_aws: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """An account without clusters, in which our key may do everything; no answer of it may leave botocore's model."""
    made = Endpoint()
    made.account.add_caller(KEY)
    no_aws.setenv("AWS_REGION", REGION)
    no_aws.setenv("AWS_ACCESS_KEY_ID", KEY)
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "of-the-testbed")
    with AwsServer(made) as server:
        no_aws.setenv("AWS_ENDPOINT_URL", server.url)
        yield made
    assert made.drift == []
