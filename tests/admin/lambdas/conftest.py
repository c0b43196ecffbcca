"""The package, a domain that its functions wire, and a stack."""

from __future__ import annotations

import os

import pytest

from tests.admin.conftest import DOMAIN, FILE_SYSTEM, account, endpoint, no_aws
from tests.admin.lambdas.package import Lambda, unpacked
from tests.admin.lambdas.stack import Bucket, Stack

__all__ = ["account", "endpoint", "no_aws"]

AWS = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")


@pytest.fixture(scope="session")
def package():
    return unpacked()


@pytest.fixture
def function(package, account):
    """A function of the package, in the account's region, with its role's credentials."""
    return Lambda(package, {name: os.environ[name] for name in AWS})


@pytest.fixture
def bucket():
    with Bucket() as made:
        yield made
    assert made.wrong == []


@pytest.fixture
def stack(function, bucket):
    return Stack(function, bucket)


def properties(mode="shared", **more):
    """Properties of the resource."""
    return {"DomainId": DOMAIN, "FileSystemId": FILE_SYSTEM, "PartitionMode": mode, **more}
