"""``hpj doctor`` on a real Kubernetes: every step to its API server, what each fault becomes, and a real tiny job."""

from __future__ import annotations

import json
import socket
from typing import Any

import yaml

from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.session_fixtures import CLUSTER, KubernetesSession, Sessions

Checks = dict[str, dict[str, Any]]


async def examine(session: KubernetesSession, *words: str) -> tuple[int, Checks]:
    """Exit code, and the checks by their keys."""
    answer = await session.hpj("doctor", "--cluster", CLUSTER, "--json", *words)
    return answer.code, {check["key"]: check for check in json.loads(answer.out)["checks"]}


def change_kubeconfig(session: KubernetesSession, part: str, **values: Any) -> None:
    """Change the one cluster or user of a session's kubeconfig; None takes a value away."""
    data = yaml.safe_load(session.kubeconfig.read_text())
    (one,) = data[f"{part}s"]
    for name, value in values.items():
        one[part].pop(name.replace("_", "-"), None)
        if value is not None:
            one[part][name.replace("_", "-")] = value
    session.kubeconfig.write_text(yaml.safe_dump(data))


async def test_a_cluster_where_all_is_well(session: KubernetesSession) -> None:
    code, checks = await examine(session)
    assert code == 0
    assert "name, connection and TLS work" in checks["api-server"]["evidence"]
    assert "system:authenticated" in checks["identity"]["evidence"]
    assert session.namespace in checks["namespace"]["evidence"]
    assert "runs are created as PyTorchJob" in checks["rights-there"]["evidence"]
    assert "is bound" in checks["claim"]["evidence"]
    assert checks["queue"]["level"] == "ok"
    assert {check["level"] for key, check in checks.items() if check["about"] == CLUSTER} == {"ok"}
    assert session.cluster.get("pytorchjobs", namespace=session.namespace)["items"] == []


async def test_a_real_job_runs_and_nothing_of_it_stays(session: KubernetesSession) -> None:
    code, checks = await examine(session, "--job")
    assert (code, checks["job"]["level"]) == (0, "ok"), checks["job"]
    assert "its log arrived" in checks["job"]["evidence"]
    assert session.cluster.get("pytorchjobs", namespace=session.namespace)["items"] == []
    assert list(session.partition.glob(".hyperpod/runs/*/*")) == []


async def test_a_user_who_may_not_make_jobs(
    kubernetes_cluster: KubernetesTestbed, namespace: str, sessions: Sessions
) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]}]
    kubeconfig = kubernetes_cluster.user("looker", namespace, rules=rules)
    code, checks = await examine(sessions(kubeconfig=kubeconfig))
    assert (code, checks["rights-there"]["level"]) == (2, "fail")
    assert "create pytorchjobs" in checks["rights-there"]["evidence"]
    assert "role.yaml" in checks["rights-there"]["fix"]
    assert checks["rights-there"]["who"] == "admin"
    assert checks["claim"]["level"] == "unknown"
    assert "looker" in checks["identity"]["evidence"]
    assert checks["api-server"]["level"] == "ok"


async def test_a_namespace_that_is_not_there(sessions: Sessions) -> None:
    code, checks = await examine(sessions(namespace="nowhere", claim=False))
    assert (code, checks["namespace"]["level"]) == (2, "fail")
    assert "namespace nowhere not found" in checks["namespace"]["evidence"]
    for key in ("rights-there", "queue"):
        assert "not checked: namespace" in checks[key]["evidence"]


async def test_a_cluster_without_a_claim(sessions: Sessions) -> None:
    code, checks = await examine(sessions(claim=False))
    assert (code, checks["claim"]["level"], checks["claim"]["who"]) == (2, "fail", "you")
    assert "no storage claim" in checks["claim"]["evidence"]
    assert "storage = { claim =" in checks["claim"]["fix"]


async def test_a_claim_that_is_not_there(sessions: Sessions) -> None:
    storage = {"claim": "other", "mount": "/data"}
    code, checks = await examine(sessions(storage=storage))
    assert (code, checks["claim"]["level"], checks["claim"]["who"]) == (2, "fail", "admin")
    assert "claim other not found" in checks["claim"]["evidence"]


async def test_each_part_of_the_way_to_the_api_server_is_named(sessions: Sessions) -> None:
    session = sessions(claim=False)
    good = session.kubeconfig.read_text()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        for server, words in (
            ("https://api.nowhere.invalid:6443", "cannot be resolved"),
            (f"https://127.0.0.1:{port}", "cannot be reached"),
        ):
            change_kubeconfig(session, "cluster", server=server)
            code, checks = await examine(session)
            assert (code, checks["api-server"]["level"]) == (2, "fail")
            assert words in checks["api-server"]["evidence"]
            assert "not checked: API server" in checks["identity"]["evidence"]
            assert checks["identity"]["level"] == checks["queue"]["level"] == "unknown"
    session.kubeconfig.write_text(good)
    change_kubeconfig(session, "cluster", certificate_authority_data=None)
    _, checks = await examine(session)
    assert "certificate is not the expected one" in checks["api-server"]["evidence"]


async def test_credentials_that_the_api_server_does_not_know(sessions: Sessions) -> None:
    session = sessions(claim=False)
    data = yaml.safe_load(session.kubeconfig.read_text())
    data["users"][0]["user"] = {"token": "not-a-token-of-this-cluster"}
    session.kubeconfig.write_text(yaml.safe_dump(data))
    code, checks = await examine(session)
    assert (code, checks["api-server"]["level"], checks["identity"]["level"]) == (2, "ok", "fail")
    assert checks["namespace"]["level"] == "unknown"
    assert "not-a-token" not in json.dumps(checks)
