"""Stacks with parameters as admins give them."""

from __future__ import annotations

from typing import Any

from tests.admin.conftest import DOMAIN, FILE_SYSTEM, account, disk
from tests.aws.conftest import endpoint, home, hpj, no_aws
from tests.cloudformation.resolving import Place, Stack, resolve

__all__ = ["account", "disk", "endpoint", "home", "hpj", "no_aws"]

WIRE: dict[str, Any] = {
    "DomainId": DOMAIN,
    "FileSystemId": FILE_SYSTEM,
    "ClusterName": "ml-cluster",
    "PackageBucket": "packages-of-mine",
}
"""What the template for an existing domain asks for."""

IMAGE = f"{'1' * 12}.dkr.ecr.us-west-2.amazonaws.com/python@sha256:{'0' * 64}"

BY_JOBS: dict[str, Any] = {"Folders": "kubernetes", "EksClusterName": "research", "Image": IMAGE}
"""What it asks for besides where folders are made on EKS."""


def wired(place: Place | None = None, **more: Any) -> Stack:
    """A stack that wires an existing domain."""
    return resolve("wire-domain.yaml", place, **{**WIRE, **more})


def statements_of(stack: Stack, role: str, *names: str) -> list[dict[str, Any]]:
    """The statements of a role's own policies; of those of these names only, if any."""
    return [
        statement
        for policy in stack.properties(role)["Policies"]
        if not names or policy["PolicyName"] in names
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def document(statements: list[dict[str, Any]]) -> dict[str, Any]:
    """A policy."""
    return {"Version": "2012-10-17", "Statement": statements}
