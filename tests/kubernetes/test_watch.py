"""Watches: shared, silent when nobody looks, right after every fault, and gentle to a server in distress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import DeniedError, NotFoundError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api import watch as watch_module
from hyperpod_jlab.engines.kubernetes.api.access import load_access
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.watch import Informer, Informers, InformerStore
from tests.kubernetes.client_fixtures import client, proxy
from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.proxy import FaultyProxy, cut, drop, end, expire, page, refuse

__all__ = ["client", "proxy"]


def value(found: Mapping[str, Any]) -> str:
    return str((found.get("data") or {}).get("v", ""))


@pytest.fixture
async def watches(client: KubeClient) -> AsyncIterator[Informers]:
    made = Informers(client)
    yield made
    await made.close()


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


OURS = "test=ours"


async def write(client: KubeClient, maps: str, name: str, v: str) -> dict[str, Any]:
    body = {"metadata": {"name": name, "labels": {"test": "ours"}}, "data": {"v": v}}
    return await client.post(maps, body)


async def until(watch: Informer[Any], there: Callable[[Mapping[str, Any]], bool]) -> None:
    async with asyncio.timeout(30):
        while not there(await watch.rows()):
            await watch.changed(watch.version)


async def test_it_is_listed_once_and_then_new_at_once(
    client: KubeClient, watches: Informers, maps: str, proxy: FaultyProxy
) -> None:
    for number in range(5):
        await write(client, maps, f"m{number}", "0")
    watch = watches.get(maps, value, labels=OURS)
    assert watches.get(maps, value, labels=OURS) is watch
    before = len(proxy.requests)
    found = await asyncio.gather(*(watch.rows() for _ in range(20)))
    assert all(rows == {f"m{number}": "0" for number in range(5)} for rows in found)
    await client.patch(f"{maps}/m1", {"data": {"v": "1"}})
    await client.delete(f"{maps}/m2")
    await until(watch, lambda rows: rows.get("m1") == "1" and "m2" not in rows)
    verbs = [(seen.verb, seen.query.get("watch")) for seen in proxy.requests[before:]]
    assert verbs.count(("GET", None)) == verbs.count(("GET", "true")) == 1
    assert watch.age < 1
    # What is of no row is no change.
    version = watch.version
    await client.patch(f"{maps}/m1", {"data": {"other": "1"}})
    assert await watch.changed(version, timeout=0.5) == version


async def test_news_of_one_row_come_when_that_row_changes(client: KubeClient, watches: Informers, maps: str) -> None:
    watch = watches.get(maps, value, labels=OURS)
    assert await watch.rows() == {}
    news = watch.row_watch("new")
    version = news.version
    await write(client, maps, "other", "1")
    assert await news.changed(version, 1) == version
    await write(client, maps, "new", "1")
    assert (made := await news.changed(version, 5)) > version
    await client.patch(f"{maps}/new", {"data": {"v": "2"}})
    assert (changed := await news.changed(made, 5)) > made
    await client.delete(f"{maps}/new")
    assert await news.changed(changed, 5) > changed
    assert await watch.rows() == {"other": "1"}


def test_an_object_that_is_older_than_what_is_known_is_passed_over() -> None:
    """Later pages of a list may be newer than the first one's state, from which a watch tells all that happened since."""
    table: InformerStore[str] = InformerStore("/api/v1/namespaces/n/configmaps", {}, value)

    def at(version: int, v: str) -> dict[str, Any]:
        return {"metadata": {"name": "a", "resourceVersion": str(version)}, "data": {"v": v}}

    table.store(at(7, "new"))
    table.store(at(6, "old"))
    assert table.rows == {"a": "new"}
    table.drop("a")
    table.store(at(6, "made anew by a restored cluster"))
    assert table.rows == {"a": "made anew by a restored cluster"}


@pytest.mark.parametrize(
    "fault",
    [cut(0.3), end(0.3), expire(), refuse(410, reason="Expired"), page(500), drop()],
    ids=["cut", "end", "expired", "410", "500", "drop"],
)
async def test_it_is_right_after_faults(
    client: KubeClient, watches: Informers, maps: str, proxy: FaultyProxy, fault: Any
) -> None:
    watch = watches.get(maps, value, labels=OURS)
    await watch.rows()
    proxy.cut_all()
    met = proxy.add(fault, path="configmaps.*watch=true", times=1)
    await write(client, maps, "a", "1")
    await write(client, maps, "b", "1")
    await client.delete(f"{maps}/a")
    await until(watch, lambda rows: dict(rows) == {"b": "1"})
    async with asyncio.timeout(20):
        while met.hits < 1:
            await watch.changed(watch.version, 0.05)
    await write(client, maps, "c", "1")
    await until(watch, lambda rows: dict(rows) == {"b": "1", "c": "1"})


@pytest.mark.parametrize("fault", [end(0.1), expire(), page(502)], ids=["ends", "410", "502"])
@pytest.mark.full
async def test_in_a_storm_it_asks_less_and_is_right_at_the_end(
    client: KubeClient, watches: Informers, maps: str, proxy: FaultyProxy, fault: Any
) -> None:
    watch = watches.get(maps, value, labels=OURS)
    await watch.rows()
    storm = proxy.add(fault, path="configmaps.*watch=true")
    proxy.cut_all()
    await asyncio.sleep(10)
    begin, before = time.monotonic(), len(proxy.requests)
    await write(client, maps, "during", "1")
    while time.monotonic() - begin < 20:
        await watch.rows()
        await watch.changed(watch.version, 0.2)
    asked = len(proxy.requests) - before - 1
    assert 1 <= asked <= 20
    if fault.__qualname__.startswith(("end", "replace")):
        assert dict(await watch.rows()) == {"during": "1"}
    proxy.remove(storm)
    await write(client, maps, "after", "1")
    await until(watch, lambda rows: dict(rows) == {"during": "1", "after": "1"})


@pytest.mark.full
async def test_a_server_that_is_away_and_back(
    client: KubeClient, watches: Informers, maps: str, proxy: FaultyProxy
) -> None:
    watch = watches.get(maps, value, labels=OURS)
    await watch.rows()
    proxy.down()
    with pytest.raises(UnreachableError):
        await watch.rows(max_age=0)
    assert await watch.rows() == {}
    assert watch.last_error is not None
    assert watch.age > 0
    other = watches.get(maps, value)
    with pytest.raises(UnreachableError):
        await other.rows()
    proxy.up()
    await write(client, maps, "a", "1")
    assert dict(await watch.rows(max_age=0)) == {"a": "1"}
    assert watch.last_error is None


async def test_what_may_not_be_or_is_not_there_is_an_error_and_is_not_asked_for_each_time(
    kubernetes_cluster: KubernetesTestbed,
    namespace: str,
    proxy: FaultyProxy,
    watches: Informers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = watches.get("/apis/nobody.example/v1/things", value)
    for _ in range(20):
        with pytest.raises(NotFoundError, match="its operator is not installed"):
            await kinds.rows()
    assert sum("nobody.example" in seen.path for seen in proxy.requests) == 1
    user = kubernetes_cluster.user("narrow", namespace)
    monkeypatch.setenv("KUBECONFIG", str(user))
    narrow = KubeClient(load_access(KubernetesCluster(orchestrator="kubernetes")))
    theirs = Informers(narrow)
    with pytest.raises(DeniedError) as denied:
        await theirs.get("/api/v1/nodes", value).rows()
    assert denied.value.detail["right"] == {"verb": "list", "group": "", "resource": "nodes", "namespace": None}
    await theirs.close()
    await narrow.close()


async def test_it_is_silent_when_nobody_looks(
    client: KubeClient, watches: Informers, maps: str, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "IDLE", 0.6)
    watch = watches.get(maps, value, labels=OURS)
    await watch.rows()
    waiting = asyncio.create_task(watch.changed(watch.version, 2.0))  # who waits, looks
    await asyncio.sleep(1.5)
    assert watch.age == 0
    await waiting
    await asyncio.sleep(1.5)
    assert watch.age > 0
    await write(client, maps, "unseen", "1")
    before = len(proxy.requests)
    await asyncio.sleep(1)
    assert len(proxy.requests) == before
    assert dict(await watch.rows()) == {"unseen": "1"}


async def test_long_lists_come_in_pages(client: KubeClient, watches: Informers, maps: str, proxy: FaultyProxy) -> None:
    data = {"v": "1", "filler": "x" * 100_000}
    for number in range(12):
        body = {"metadata": {"name": f"m{number}", "labels": {"test": "ours"}}, "data": data}
        await client.post(maps, body)
    found = [page_ async for page_ in client.pages(maps, labelSelector=OURS, limit=2)]
    assert [len(one.items) for one in found][:2] == [2, 10]
    assert {one.version for one in found} == {found[0].version}
    names = [one["metadata"]["name"] for one in (await client.list(maps, limit=5)).items]
    assert len(names) == len(set(names)) == 13  # with the cluster's own
