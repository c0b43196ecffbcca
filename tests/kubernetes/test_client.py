"""Requests to the API server: what it refuses, what goes wrong on the way, what it serves, what one may do."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack
from typing import Any

import pytest

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.engines.kubernetes.api.access import ApiAccess, load_access
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.errors import ANSWER_LOST, parse_error
from hyperpod_jlab.engines.kubernetes.api.rights import PermissionChecker, ResourcePermission
from tests.kubernetes.client_fixtures import client, proxy
from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.proxy import FaultyProxy, Pipe, cut_bytes, delay, drop, lose_answer, page, refuse, replace

__all__ = ["client", "proxy"]

CONFIG = KubernetesCluster(orchestrator="kubernetes")


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


# ---------------------------------------------------------------------------------------------- words


def status(code: int, message: str, reason: str = "", **details: Any) -> str:
    return json.dumps({"kind": "Status", "code": code, "message": message, "reason": reason, "details": details})


HOOK = 'admission webhook "validator.pytorchjob.training-operator.kubeflow.org" denied the request: no container named pytorch'
DOWN = 'Internal error occurred: failed calling webhook "mpytorchjob.kb.io": failed to call webhook: context deadline exceeded'
TOO_LONG = "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2800601 vs. 2097152)"
QUOTA = 'pods "x" is forbidden: exceeded quota: q, requested: cpu=5, used: cpu=1, limited: cpu=2'


@pytest.mark.parametrize(
    ("code", "text", "kind", "word", "said"),
    [
        (401, status(401, "Unauthorized", "Unauthorized"), DeniedError, "unauthorized", "does not accept your credentials"),
        (403, status(403, HOOK, "Forbidden"), RefusedError, "webhook_denied", "no container named"),
        (403, status(403, QUOTA, "Forbidden"), RefusedError, "quota_exceeded", "used: cpu=1"),
        (403, "<html>top-secret</html>", DeniedError, "denied", "no reason"),
        (404, "404 page not found", NotFoundError, "no_such_kind", "no pytorchjobs of kubeflow.org/v1"),
        (409, status(409, 'x "a" already exists', "AlreadyExists"), ConflictError, "already_exists", "a"),
        (409, status(409, "modified", "Conflict"), ConflictError, "changed_meanwhile", "modified"),
        (410, status(410, "too old", "Expired"), ConflictError, "expired", "resource version is too old"),
        (500, status(500, DOWN, "InternalError"), UnreachableError, "webhook_down", "mpytorchjob"),
        (500, status(500, "etcdserver: request is too large"), RefusedError, "object_too_large", "1.5 MiB"),
        (500, status(500, TOO_LONG), RefusedError, "object_too_large", "1.5 MiB"),
        (413, status(413, "Request entity too large: limit is 3145728"), RefusedError, "object_too_large", "1.5 MiB"),
        (500, "<html>top-secret</html>", UnreachableError, ANSWER_LOST, "500"),
        (502, "<html>top-secret</html>", UnreachableError, ANSWER_LOST, "502"),
        (504, status(504, "timed out", "Timeout"), UnreachableError, ANSWER_LOST, "timed out"),
        (503, status(503, "starting"), UnreachableError, "unreachable", "starting"),
        (302, "<html>top-secret</html>", RefusedError, "refused", "no reason"),
    ],
)  # fmt: skip
def test_refusals_in_words(code: int, text: str, kind: type[HyperpodError], word: str, said: str) -> None:
    error = parse_error(code, text, verb="POST", path="/apis/kubeflow.org/v1/namespaces/n/pytorchjobs")
    assert type(error) is kind
    assert error.code == word
    assert said in error.message
    assert "top-secret" not in json.dumps(error.to_dict())
    assert len(error.message) < 800


# ---------------------------------------------------------------------------------------------- a real API server


async def test_what_the_cluster_refuses(
    client: KubeClient, maps: str, namespace: str, kubernetes_cluster: KubernetesTestbed
) -> None:
    async def fails(work: Any) -> HyperpodError:
        with pytest.raises(HyperpodError) as caught:
            await work
        return caught.value

    await client.post(maps, config_map("a"), dryRun="All")
    await client.post(maps, config_map("a"))
    assert (await fails(client.post(maps, config_map("a")))).code == "already_exists"
    wrong = await fails(client.post(maps, config_map("A_")))
    assert (wrong.code, wrong.detail["fields"]) == ("invalid_object", ["metadata.name"])
    odd = {**config_map("b"), "colour": "red"}
    strict = await fails(client.post(maps, odd, fieldValidation="Strict"))
    assert "colour" in strict.message
    elsewhere = await fails(client.post("/api/v1/namespaces/nope-x/configmaps", config_map("a")))
    assert elsewhere.code == "no_namespace"
    assert (await fails(client.get(f"{maps}/zz"))).code == "not_found"
    assert (await fails(client.get("/apis/nope.example/v1/things"))).code == "no_such_kind"
    stale = {"metadata": {"name": "a", "resourceVersion": "1"}}
    assert (await fails(client.put(f"{maps}/a", stale))).code == "changed_meanwhile"
    await client.patch(f"{maps}/a", {"data": {"x": "1"}})
    await client.patch(f"{maps}/a", [{"op": "add", "path": "/data/y", "value": "2"}], kind="json")
    assert (await client.get(f"{maps}/a"))["data"] == {"x": "1", "y": "2"}
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1"}}}
    await client.post(f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
    async with asyncio.timeout(20):
        while True:  # the quota counts what is there first
            try:
                await client.post(maps, {"metadata": {"generateName": "more-"}})
            except RefusedError as error:
                assert error.code == "quota_exceeded"  # noqa: PT017
                break
    await client.delete(f"{maps}/a", {"preconditions": {}})
    assert (await fails(client.get(f"{maps}/a"))).code == "not_found"


@pytest.mark.parametrize(
    ("fault", "times"),
    [
        (refuse(429, retry_after=0.3), 2),
        (refuse(503, retry_after=0.3), 2),
        (refuse(401), 1),
        (drop(), 1),
        (cut_bytes(100), 1),
        (lose_answer(), 1),
        (delay(0.5), 1),
    ],
    ids=["429", "503", "401", "dropped", "cut", "lost", "late"],
)
async def test_reading_bears_a_fault(
    client: KubeClient, maps: str, proxy: FaultyProxy, fault: Pipe, times: int
) -> None:
    met = proxy.add(fault, verb="GET", path="configmaps", times=times)
    assert (await client.list(maps)).items
    assert met.hits == times


@pytest.mark.parametrize(
    ("fault", "code", "done"),
    [
        (lose_answer(), ANSWER_LOST, True),
        (drop(), ANSWER_LOST, False),
        (page(502), ANSWER_LOST, False),
        (refuse(504, "Timeout: request did not complete", "Timeout"), ANSWER_LOST, False),
        (refuse(403, 'x cannot create resource "configmaps" in API group "" in the namespace "n"'),
         "missing_right", False),
        (replace(b"<html>log in</html>", kind="text/html"), "no_api_server", False),
    ],
    ids=["lost", "dropped", "502", "504", "403", "login page"],
)  # fmt: skip
async def test_writing_says_whether_it_may_have_been_done(
    client: KubeClient, maps: str, proxy: FaultyProxy, fault: Pipe, code: str, done: bool
) -> None:
    met = proxy.add(fault, verb="POST")
    with pytest.raises(HyperpodError) as caught:
        await client.post(maps, config_map("once"))
    assert caught.value.code == code
    assert met.hits == 1  # never sent twice
    proxy.clear()
    names = [one["metadata"]["name"] for one in (await client.list(maps)).items]
    assert ("once" in names) == done


async def test_what_was_put_off_is_sent_again(client: KubeClient, maps: str, proxy: FaultyProxy) -> None:
    met = proxy.add(refuse(429, retry_after=0.2), verb="POST", times=2)
    await client.post(maps, config_map("later"))
    assert met.hits == 2
    proxy.add(refuse(429, retry_after=3600), verb="POST")
    begin = time.monotonic()
    with pytest.raises(UnreachableError) as caught:
        await client.post(maps, config_map("never"))
    assert caught.value.code == "too_many_requests"
    assert time.monotonic() - begin < 2


async def test_a_login_page_and_a_server_that_is_away(client: KubeClient, maps: str, proxy: FaultyProxy) -> None:
    proxy.add(replace(b"<html>log in</html>", kind="text/html"))
    with pytest.raises(UnreachableError) as caught:
        await client.get(maps)
    assert caught.value.code == "no_api_server"
    proxy.down()
    with pytest.raises(UnreachableError) as away:
        await client.post(maps, config_map("a"))
    assert away.value.code == "unreachable"  # surely not done


async def test_a_list_that_became_too_old_goes_on(client: KubeClient, maps: str, proxy: FaultyProxy) -> None:
    for number in range(6):
        await client.post(maps, config_map(f"m{number}"))
    listed = client.pages(maps, limit=2)
    first = await anext(listed)
    gone = {"kind": "Status", "code": 410, "message": "too old", "reason": "Expired"}
    await client.post(maps, config_map("m6"))  # or else the place to go on at were the same
    second = await client.get(maps, limit="2")
    onward = {"metadata": {"continue": second["metadata"]["continue"]}}
    proxy.add(replace(gone | onward, status=410), path="continue=", times=1)
    names = [one["metadata"]["name"] for one in first.items]
    try:
        async for more in listed:
            names += [one["metadata"]["name"] for one in more.items]
    except ConflictError:
        pytest.fail("it gave up")
    assert len(names) == len(set(names)) == 8


async def test_credentials_are_fetched_anew_once_for_all(proxy: FaultyProxy) -> None:
    fetched = [0, 0]

    def headers() -> dict[str, str]:
        fetched[0] += 1
        return {"Authorization": f"Bearer {fetched[1]}"}

    def renew() -> None:
        time.sleep(0.1)
        fetched[1] += 1

    client = KubeClient(ApiAccess(proxy.address, False, headers, renew=renew))
    proxy.add(refuse(401))
    found = await asyncio.gather(*(client.get("/api/v1/nodes") for _ in range(5)), return_exceptions=True)
    assert all(isinstance(one, DeniedError) for one in found)
    assert fetched[1] <= 2
    assert len(proxy.requests) == 10
    await client.close()


async def test_many_who_ask_at_once_fetch_the_credentials_once() -> None:
    fetched = []

    def headers() -> dict[str, str]:
        fetched.append(1)
        return {}

    client = KubeClient(ApiAccess("http://127.0.0.1:9", False, headers))
    await asyncio.gather(*(client.headers() for _ in range(20)))
    await client.close()
    assert len(fetched) == 1


async def test_nothing_is_asked_any_more_once_all_is_closed() -> None:
    client = KubeClient(ApiAccess("http://127.0.0.1:9", False, dict))
    with pytest.raises(UnreachableError):
        await asyncio.gather(*(client.get("/version") for _ in range(30)))
    await client.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_many_streams_wait_for_nobody(client: KubeClient, namespace: str, maps: str) -> None:
    query = {"watch": "true", "resourceVersion": (await client.list(maps)).version}
    query["timeoutSeconds"] = "60"
    async with AsyncExitStack() as stack, asyncio.timeout(60):
        opened = await asyncio.gather(*(stack.enter_async_context(client.stream(maps, **query)) for _ in range(120)))
        assert len(opened) == 120
        assert (await client.get("/api/v1/namespaces/default"))["metadata"]["name"] == "default"
        await client.post(maps, config_map("news"))
        first = await asyncio.gather(*(anext(one.chunks()) for one in opened))
        assert all(b"news" in chunk for chunk in first)


# ---------------------------------------------------------------------------------------------- rights


async def test_what_one_may_do(
    client: KubeClient,
    namespace: str,
    proxy: FaultyProxy,
    kubernetes_cluster: KubernetesTestbed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = [
        {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
        {"apiGroups": ["kubeflow.org"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["x"]},
    ]
    user = kubernetes_cluster.user("judged", namespace, rules=rules)
    with FaultyProxy(user) as theirs:
        monkeypatch.setenv("KUBECONFIG", str(theirs.kubeconfig))
        narrow = KubeClient(load_access(CONFIG))
        rights = PermissionChecker(narrow)
        assert await rights.is_allowed("get", "", "pods/log", namespace)
        assert await rights.is_allowed("create", "kubeflow.org", "pytorchjobs", namespace)
        wanted = [
            ResourcePermission("list", "", "pods", namespace),
            ResourcePermission("delete", "", "pods", namespace),
            ResourcePermission("get", "", "secrets", namespace),
            ResourcePermission("list", "", "nodes"),
            ResourcePermission("list", "", "pods", "default"),
        ]
        missing = await rights.list_missing(wanted)
        assert missing == wanted[1:]
        assert "you do not have the permission to delete pods in the namespace" in missing[0].denied().message
        asked = len(theirs.requests)
        await rights.list_missing(wanted)
        assert len(theirs.requests) == asked == 3
        # Judges that cannot say it beforehand: each right is asked for, and what nobody can say is tried.
        rights.forget()
        theirs.add(replace({"status": {"resourceRules": [], "incomplete": True}}), path="rulesrev")
        assert await rights.is_allowed("get", "", "pods", namespace)
        assert not await rights.is_allowed("delete", "", "pods", namespace)
        rights.forget()
        theirs.add(refuse(403, "no", "Forbidden"), path="accessrev")
        assert await rights.is_allowed("delete", "", "pods", namespace)
        await narrow.close()
