"""What the docs say that an admin has to grant is enough, and what more buys: `examples/kubernetes/` on a real cluster, as users with just those rights."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from hyperpod_jlab.core.cluster import notes_of
from hyperpod_jlab.core.errors import DeniedError, RefusedError
from hyperpod_jlab.engines.forwarding import LocalEnd
from hyperpod_jlab.run.access import read_access
from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.session_fixtures import CLUSTER, KubernetesSession, Sessions

EXAMPLES = Path(__file__).parents[2] / "examples" / "kubernetes"
SMALLEST = "hyperpod-jlab-user"

#: A user of a namespace, who has the smallest role, these roles beside it, and a claim or none.
MakeUser = Callable[..., KubernetesSession]


def rules_of(name: str) -> list[dict[str, Any]]:
    """The rules of a role of the examples."""
    for file in ("role.yaml", "role-options.yaml"):
        for one in yaml.safe_load_all((EXAMPLES / file).read_text()):
            if one["metadata"]["name"] == name and "rules" in one:
                rules: list[dict[str, Any]] = one["rules"]
                return rules
    raise LookupError(name)


@pytest.fixture
def user(kubernetes_cluster: KubernetesTestbed, namespace: str, sessions: Sessions) -> Iterator[MakeUser]:
    """Makes users."""
    bound: list[str] = []

    def make(*roles: str, everywhere: str = "") -> KubernetesSession:
        name = f"user-{uuid4().hex[:6]}"
        rules = [rule for role in (SMALLEST, *roles) for rule in rules_of(role)]
        kubeconfig = kubernetes_cluster.user(name, namespace, rules=rules)
        if everywhere:
            full = f"{namespace}-{name}"
            meta = {"metadata": {"name": full}}
            group = "rbac.authorization.k8s.io"
            kubernetes_cluster.create(
                {"apiVersion": f"{group}/v1", "kind": "ClusterRole", **meta, "rules": rules_of(everywhere)},
                {
                    "apiVersion": f"{group}/v1",
                    "kind": "ClusterRoleBinding",
                    **meta,
                    "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": full},
                    "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
                },
            )
            bound.append(full)
        return sessions(kubeconfig=kubeconfig)

    yield make
    for name in bound:
        kubernetes_cluster.kubectl("delete", "clusterrolebinding,clusterrole", name)


async def test_the_smallest_role_sends_follows_and_cancels(user: MakeUser) -> None:
    session = user()
    run_id = await session.submit("echo begun; sleep 600", resources={"nodes": 2})
    await session.until(run_id, lambda _: all(session.log(run_id, node) == "begun\n" for node in (0, 1)))
    assert (await session.running(run_id)).state == "running"
    await session.hyperpod.runs.act(run_id, "cancel")
    assert (await session.ended(run_id)).state == "cancelled"


@pytest.mark.full
async def test_what_is_hidden_is_said_with_the_missing_right(user: MakeUser) -> None:
    hyperpod = user().hyperpod
    nodes = await hyperpod.nodes(CLUSTER)
    assert list(nodes) == []
    assert "you do not have the permission to list nodes" in " ".join(notes_of(nodes))
    jobs = await hyperpod.jobs(CLUSTER)
    assert "pytorchjobs.kubeflow.org in all namespaces" in " ".join(notes_of(jobs))
    assert (await hyperpod.clusters.configured())[0].state == "up"


@pytest.mark.full
async def test_the_cluster_role_buys_nodes_and_all_jobs(user: MakeUser) -> None:
    hyperpod = user(everywhere="hyperpod-jlab-cluster").hyperpod
    nodes = await hyperpod.nodes(CLUSTER)
    assert {"node1", "node2"} <= {node.name for node in nodes}
    assert notes_of(nodes) == ()
    assert notes_of(await hyperpod.jobs(CLUSTER)) == ()


@pytest.mark.full
@pytest.mark.parametrize("granted", [True, False])
async def test_ports_and_shells(user: MakeUser, granted: bool) -> None:
    session = user(*(["hyperpod-jlab-ports"] if granted else []))
    run_id = await session.submit("exec python3 -m http.server 8000")
    await session.until(run_id, lambda run: run.state == "running" and "Serving" in session.log(run_id))
    opened: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    end = LocalEnd(0, opened.set_result, print)
    forwarding = session.hyperpod.engines.get(CLUSTER).forwarding
    assert forwarding is not None
    forwarded = asyncio.ensure_future(forwarding.forward(session.hyperpod.runs.bundle(run_id), 0, 8000, end))
    if not granted:
        with pytest.raises(DeniedError, match="portforward"):
            await forwarded
        return
    reader, writer = await asyncio.open_connection("127.0.0.1", await opened)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    assert (await reader.readexactly(12)) == b"HTTP/1.0 200"
    writer.close()
    forwarded.cancel()
    access = await read_access(session.hyperpod.engines, session.hyperpod.runs, run_id)
    command = access.shells[0].command.split(" -- ")[0].split()[1:]
    done = session.cluster.run(
        *[word for word in command if word != "-it" and not word.startswith("--context")],
        "--",
        "echo",
        "hello",
        kubeconfig=session.kubeconfig,
    )
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


@pytest.mark.full
async def test_a_pod_security_profile_needs_a_patch(
    kubernetes_cluster: KubernetesTestbed, namespace: str, sessions: Sessions
) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    kubernetes_cluster.kubectl("label", "namespace", namespace, label)
    plain = sessions()
    with pytest.raises(RefusedError, match=r'pods would be rejected.*container "pytorch" must set'):
        await plain.submit("id -u")
    secured = sessions(patch=restricted_patch())
    as_job: dict[str, Any] = {"resources": {"nodes": 2}, "kubernetes": {"kind": "Job"}}
    for spec in ({}, as_job):
        preview = await secured.hyperpod.submitter.preview(secured.request("id -u", **spec))
        assert not [found for found in preview.findings if found.level == "error"]


def restricted_patch() -> dict[str, Any]:
    """The patch of the docs, as data."""
    text = (EXAMPLES.parents[1] / "docs" / "kubernetes-admin.md").read_text()
    block = text.split("[clusters.ml-eks.patch.template.spec]")[1].split("```")[0]
    return {"template": {"spec": tomllib.loads(block)}}


@pytest.mark.full
async def test_one_task_of_an_array_is_cancelled_by_those_who_may_remove_pods(user: MakeUser) -> None:
    smallest = user()
    run_id = await smallest.submit("sleep 600", array="0-1")
    await smallest.running(f"{run_id}.1")
    with pytest.raises(DeniedError, match="delete") as caught:
        await smallest.hyperpod.runs.act(f"{run_id}.1", "cancel")
    assert f"hpj cancel {run_id}" in (caught.value.hint or "")
    assert (await smallest.hyperpod.runs.get(f"{run_id}.1")).state == "running"
    more = user("hyperpod-jlab-tasks")
    await more.hyperpod.runs.act(f"{run_id}.1", "cancel")
    assert (await more.ended(f"{run_id}.1")).state == "cancelled"
    await smallest.hyperpod.runs.act(run_id, "cancel")
    assert (await smallest.ended(run_id)).children == {"cancelled": 2}


@pytest.mark.parametrize("file", ["fsx-claim.yaml", "role.yaml", "role-options.yaml"])
def test_the_files_are_taken(kubernetes_cluster: KubernetesTestbed, namespace: str, file: str) -> None:
    text = (EXAMPLES / file).read_text().replace("hyperpod-ns-team-a", namespace)
    words = ("apply", "--server-side", "--dry-run=server", "-f", "-")
    kubernetes_cluster.kubectl(*words, namespace=namespace, input=text)
