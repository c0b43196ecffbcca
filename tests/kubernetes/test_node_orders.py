"""Nodes of a real cluster are cordoned and uncordoned, and by those only who may."""

from __future__ import annotations

from uuid import uuid4

from hyperpod_jlab.core.errors import DeniedError
from hyperpod_jlab.core.node_actions import NodeResult
from hyperpod_jlab.features.node_actions.service import NodeActions, NodeRequest
from hyperpod_jlab.run.services import Hyperpod
from tests.kubernetes.session_fixtures import KubernetesSession, Sessions
from tests.kubernetes.table_fixtures import create, kubectl, until
from tests.kubernetes.test_nodes import named


async def _done(services: Hyperpod, request: NodeRequest) -> list[NodeResult]:
    actions = NodeActions(services)
    return await actions.carry_out(await actions.plan(request))


async def test_a_drained_node_takes_no_pods_and_says_why_until_it_is_resumed(session: KubernetesSession) -> None:
    name = session.cluster.nodes[0]
    services = session.hyperpod
    reason = "GPU 3 falls\noff the bus"
    try:
        results = await _done(services, NodeRequest("drain", [name, "nowhere"], reason=reason))
        assert [one.error and one.error.code for one in results] == [None, "no_such_node"]
        rows = await until(services.nodes, lambda rows: named(rows, name).state != "up")
        row = named(rows, name)
        assert row.state in {"draining", "drained"}
        assert row.reason == "it is cordoned and accepts no new pods (GPU 3 falls off the bus)"
        assert "SchedulingDisabled" in await kubectl(session, "get", "node", name)
    finally:
        results = await _done(services, NodeRequest("resume", [name]))
    assert [one.error for one in results] == [None]
    rows = await until(services.nodes, lambda rows: named(rows, name).state == "up")
    assert named(rows, name).reason is None
    assert "hyperpod-jlab" not in await kubectl(session, "get", "node", name, "-o", "yaml")
    (again,) = await _done(services, NodeRequest("resume", [name]))
    assert again.error is not None
    assert again.error.code == "wrong_state"


async def test_who_may_only_look_at_nodes_is_told_which_right_is_missing(
    session: KubernetesSession, sessions: Sessions
) -> None:
    kubeconfig = session.cluster.user("cordons", session.namespace)
    name = f"cordons-{uuid4().hex[:8]}"
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    subject = {"kind": "ServiceAccount", "name": "cordons", "namespace": session.namespace}
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    binding = {**role, "kind": "ClusterRoleBinding", "subjects": [subject]}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    await create(session, {**role, "rules": rules}, {**binding, "roleRef": reference})
    node = session.cluster.nodes[0]
    try:
        narrow = sessions(kubeconfig=kubeconfig)
        (result,) = await _done(narrow.hyperpod, NodeRequest("drain", [node], reason="x"))
    finally:
        await kubectl(session, "delete", "clusterrole,clusterrolebinding", name)
    assert isinstance(result.error, DeniedError)
    assert result.error.code == "missing_right"
    right = result.error.detail["right"]
    assert (right["verb"], right["resource"]) == ("patch", "nodes")
    assert named(await session.hyperpod.nodes(), node).state == "up"
