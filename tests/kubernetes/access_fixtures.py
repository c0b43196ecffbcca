"""What the tests of ways to be let in have in common: an authority's certificate, and an environment that names no cluster."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.engines.kubernetes.api.access import ApiAccess

_OPENSSL = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=x -keyout /dev/null"
AUTHORITY = subprocess.run(_OPENSSL.split(), capture_output=True, timeout=60, check=True).stdout
CONFIG = KubernetesCluster(orchestrator="kubernetes")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*os.environ,):
        if name.lower().endswith("_proxy") or name.startswith(("AWS_", "KUBERNETES_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def token_of(found: ApiAccess) -> str:
    return found.headers().get("Authorization", "")


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """It is later, for all who ask for the time."""
    now = time.time() + seconds
    monkeypatch.setattr("time.time", lambda: now)
