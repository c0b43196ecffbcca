"""An admin at a terminal: a domain of Studio, a file system, and a Kubernetes cluster whose Job makes the folders."""

from __future__ import annotations

import pytest

from hyperpod_jlab.admin.fsx import apply as applying
from testbed.aws.state import lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, account, endpoint, home, hpj, no_aws
from tests.kubernetes.session_fixtures import CLAIM, settings_for
from tests.kubernetes.test_folders import RIGHTS, pinned
from tests.session import write_config

__all__ = ["account", "endpoint", "home", "hpj", "no_aws", "pinned"]


@pytest.fixture
def words(kubernetes_cluster, namespace, pinned, tmp_path, monkeypatch, home):
    """What is the same in all commands; the claim and its namespace are the configuration's."""
    monkeypatch.setattr(applying, "POLL_S", 0.02)
    kubernetes_cluster.claim(namespace, CLAIM)
    user = kubernetes_cluster.user("admin", namespace, rules=RIGHTS)
    monkeypatch.setenv("KUBECONFIG", str(user))
    root = kubernetes_cluster.partition
    settings = settings_for(kubernetes_cluster, namespace, root, sub_path="team", hyperpod="ml-cluster")
    write_config(settings, tmp_path / "config.toml")
    monkeypatch.setenv("HYPERPOD_CONFIG", str(tmp_path / "config.toml"))
    where = ("--domain", DOMAIN, "--file-system", FILE_SYSTEM, "--cluster", "ml-cluster")
    return (*where, "--partition-mode", "per-user", "--folders", "kubernetes")


def test_a_domain_is_wired_with_folders_by_a_job(account, hpj, kubernetes_cluster, words, pinned, namespace):
    done = hpj("admin", "plan", *words, "--json")  # the configuration's image has a tag only
    assert (done.code, done.error["code"]) == (2, "image_without_digest")
    words = (*words, "--image", pinned)
    assert "+ folder /alice: missing" in hpj("admin", "plan", *words).ok().out
    hpj("admin", "apply", *words, "--yes").ok()
    hpj("admin", "status", *words).ok()
    assert account.profiles[DOMAIN, "alice"].file_systems == [lustre_at(FILE_SYSTEM, "/alice")]
    for name in ("alice", "bob", "carol"):
        path = kubernetes_cluster.partition / name
        assert path.stat().st_uid == 200001
        path.rmdir()
    assert kubernetes_cluster.get("jobs", namespace=namespace)["items"] == []
    done = hpj("admin", "plan", *words, "--claim", "nope", "--json")
    assert (done.code, done.error["code"]) == (3, "no_claim")
