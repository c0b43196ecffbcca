"""``--json`` of ``hpj admin``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hyperpod_jlab.admin.cluster_config import clusters
from hyperpod_jlab.admin.fsx import apply as applying
from testbed.aws.endpoint import Endpoint
from testbed.aws.example import example_account
from testbed.aws.state import Account
from testbed.aws.timeline import Timeline
from tests.admin.cluster_files import EKS, MANAGED, SECOND, SLURM, document, spoiled
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, account, disk
from tests.aws.conftest import KEY, REGION, endpoint, home, hpj, no_aws
from tests.aws.feature_account import LIFECYCLE
from tests.golden.aws_golden import Frozen, frozen

__all__ = ["account", "disk", "endpoint", "frozen", "home", "hpj", "no_aws"]

WHERE = ("--domain", DOMAIN, "--file-system", FILE_SYSTEM)
SHARED = (*WHERE, "--partition-mode", "shared")
PER_USER = (*WHERE, "--partition-mode", "per-user")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS is quick here, so it is looked at often."""
    monkeypatch.setattr(applying, "POLL_S", 0.02)
    monkeypatch.setattr(clusters, "POLL_S", 0.02)


@pytest.fixture
def ground(endpoint: Endpoint) -> Account:
    """The example's account, in which clusters are made at once."""
    made = endpoint.account = example_account(REGION)
    made.timeline = Timeline(runs=True)
    made.ground.pace = 0
    made.add_caller(KEY)
    return made


def test_partition_modes(account: Account, endpoint: Endpoint, frozen: Frozen, disk: Path) -> None:
    frozen("admin-plan-shared", "admin", "plan", *SHARED)
    frozen("admin-plan-per-user", "admin", "plan", *PER_USER)
    frozen("admin-plan-mounted", "admin", "plan", *PER_USER, "--mounted-at", str(disk))
    frozen("admin-plan-one-profile", "admin", "plan", *PER_USER, "--profile", "bob")
    frozen("admin-status-before", "admin", "status", *SHARED)
    frozen("admin-apply-not-confirmed", "admin", "apply", *SHARED)
    frozen("admin-apply-waits", "admin", "apply", *PER_USER, "--yes")
    frozen("admin-apply-shared", "admin", "apply", *SHARED, "--yes")
    frozen("admin-status", "admin", "status", *SHARED)
    frozen("admin-status-other-mode", "admin", "status", *PER_USER)
    frozen("admin-destroy-not-confirmed", "admin", "destroy", *WHERE)
    endpoint.faults.deny("sagemaker:UpdateDomain")
    frozen("admin-destroy-denied", "admin", "destroy", *WHERE, "--yes")
    endpoint.faults.denied.clear()
    frozen("admin-destroy", "admin", "destroy", *WHERE, "--yes")


def test_errors_of_partition_modes(account: Account, endpoint: Endpoint, frozen: Frozen) -> None:
    plan = ("admin", "plan")
    frozen("admin-error-no-mode", *plan, *WHERE)
    frozen("admin-error-no-profile", *plan, *PER_USER, "--profile", "nobody")
    frozen("admin-error-no-domain", *plan, *SHARED, "--domain", "d-nope")
    frozen("admin-error-bad-domain", *plan, *SHARED, "--domain", "")
    frozen("admin-error-no-file-system", *plan, *SHARED, "--file-system", "fs-0aaaaaaaaaaaaaaaa")
    frozen("admin-error-shared-path", *plan, *SHARED, "--shared-path", "/..")
    frozen("admin-error-folders", *plan, *PER_USER, "--folders", "here")
    frozen("admin-error-no-cluster", *plan, *SHARED[:2], *SHARED[4:], "--cluster", "nope")
    endpoint.faults.deny("ec2:DescribeNetworkInterfaces")
    frozen("admin-error-denied", *plan, *SHARED)
    endpoint.faults.denied.clear()
    account.file_systems[REGION][0].vpc = "vpc-0fedcba9876543210"
    frozen("admin-error-other-vpc", *plan, *SHARED)


def test_lifecycle(account: Account, frozen: Frozen, tmp_path: Path) -> None:
    file = tmp_path / "lifecycle.toml"
    file.write_text(LIFECYCLE)
    words = (*SHARED, "--lifecycle-file", str(file))
    also = {"JupyterLab": "JupyterLab"}
    frozen("admin-lifecycle-plan", "admin", "plan", *words, also=also)
    frozen("admin-lifecycle-apply", "admin", "apply", *words, "--yes")
    frozen("admin-lifecycle-status", "admin", "status", *words)
    frozen("admin-lifecycle-destroy", "admin", "destroy", *WHERE, "--yes")
    file.write_text(f'{LIFECYCLE}region = "{REGION}"\nfile_system = "{FILE_SYSTEM}"\n')
    show = ("admin", "lifecycle", "show", "--app", "jupyterlab", "--lifecycle-file", str(file))
    frozen("admin-lifecycle-show", *show, varying=["script"])
    frozen("admin-lifecycle-example", "admin", "lifecycle", "example")
    file.write_text('packge = "x"')
    frozen("admin-error-lifecycle-file", *show)


def test_validate(ground: Account, endpoint: Endpoint, frozen: Frozen, tmp_path: Path) -> None:
    frozen("admin-validate-slurm", "admin", "validate", str(SLURM), str(SECOND))
    frozen("admin-validate-managed", "admin", "validate", str(MANAGED))
    frozen("admin-validate-eks", "admin", "validate", str(EKS))
    frozen("admin-validate-offline", "admin", "validate", str(EKS), "--offline")
    bad = tmp_path / "bad.json"
    found = spoiled(document(SLURM), "InstanceGroups.0.InstanceCount", 2)
    found = spoiled(found, "InstanceGroups.1.InstanceTyp", "ml.p5.48xlarge")
    bad.write_text(json.dumps(found))
    frozen("admin-validate-bad", "admin", "validate", str(bad), str(SECOND))
    bad.write_text("{")
    frozen("admin-validate-no-json", "admin", "validate", str(bad))
    endpoint.faults.deny("ec2:DescribeSubnets")
    frozen("admin-validate-denied", "admin", "validate", str(EKS), "--strict")


def test_create_cluster(ground: Account, frozen: Frozen) -> None:
    create = ("admin", "create-cluster", "--file", str(SLURM), "--provisioning", str(SECOND))
    frozen("admin-create-not-confirmed", *create)
    frozen("admin-create", *create, "--yes", "--wait")
    frozen("admin-create-again", *create, "--yes")


def test_policy(frozen: Frozen) -> None:
    frozen("admin-policy", "admin", "policy")
    frozen("admin-policy-actions", "admin", "policy", "--actions")
    narrow = ("--region", REGION, "--account", "111122223333", "--partition", "aws-us-gov")
    frozen("admin-policy-narrow", "admin", "policy", "nodes", "admin-apply", *narrow)
    frozen("admin-policy-unknown", "admin", "policy", "nods")
