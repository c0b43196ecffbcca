"""The clusters in one line each: what is told of one that does not answer."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from hyperpod_jlab.clusters import service as cluster_lines
from hyperpod_jlab.core.cluster import Cluster
from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.engines.local.engine import LocalOrchestrator
from hyperpod_jlab.run.services import Hyperpod


class Deaf(LocalOrchestrator):
    """A cluster that does not answer for a while."""

    deaf = True

    async def cluster(self) -> Cluster:
        """Say nothing when it is deaf."""
        if self.deaf:
            raise UnreachableError("no route to host")
        return await super().cluster()


async def test_its_last_numbers_stay_with_their_time(place):
    engine = Deaf("local", place.hyperpod.settings.clusters["local"], place.partition)
    place.hyperpod.engines._engines["local"] = engine
    (never,) = await place.hyperpod.clusters.configured()
    assert (never.state, never.nodes, never.as_of) == ("unreachable", None, None)
    engine.deaf = False
    (up,) = await place.hyperpod.clusters.configured()
    assert up.state == "up"
    assert up.as_of == pytest.approx(time.time(), abs=5)
    engine.deaf = True
    (old,) = await place.hyperpod.clusters.configured()
    assert (old.state, old.reason) == ("unreachable", "no route to host")
    assert (old.nodes, old.running) == (up.nodes, up.running)
    assert old.as_of == up.as_of
    told = to_plain(old)["as_of"]
    assert isinstance(told, str)
    assert told.endswith("Z")


class Hanging(LocalOrchestrator):
    """A cluster that takes a question and says nothing until it is let."""

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.asked = self.broken_off = 0
        self.let = asyncio.Event()

    async def cluster(self) -> Cluster:
        """Answer when it is let."""
        self.asked += 1
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.broken_off += 1
            raise
        return await super().cluster()


@pytest.fixture
async def beside(home, monkeypatch):
    """The services over the local cluster and one that hangs, and the latter."""
    config = home / "config.toml"
    config.write_text('[clusters.far]\norchestrator = "kubernetes"\n')
    monkeypatch.setenv("HYPERPOD_CONFIG", str(config))
    hyperpod = Hyperpod()
    far = Hanging("far", hyperpod.settings.clusters["local"], hyperpod.partition)
    hyperpod.engines._engines["far"] = far
    yield hyperpod, far
    await hyperpod.close()


def by_name(clusters):
    return {one.name: one for one in clusters}


async def test_one_that_hangs_keeps_nobody_from_the_others(beside):
    hyperpod, far = beside
    begin = time.monotonic()
    first, second = await asyncio.gather(hyperpod.clusters.configured(0.3), hyperpod.clusters.configured(0.3))
    assert time.monotonic() - begin > 0.25
    for found in (by_name(first), by_name(second)):
        assert found["local"].state == "up"
        line = found["far"]
        assert (line.state, line.nodes, line.as_of) == ("unreachable", None, None)
        assert line.reason == "it has not answered for 0 s"
    # Whoever asks later does not wait anew for the same question, nor put another one.
    begin = time.monotonic()
    for _ in range(10):
        await hyperpod.clusters.configured(0.3)
    assert time.monotonic() - begin < 10 * 0.3
    assert far.asked == 1


async def test_one_that_hangs_is_shown_alone_within_the_time(beside):
    hyperpod, far = beside
    line = await hyperpod.clusters.cluster("far", seconds=0.1)
    assert (line.name, line.state, line.configured) == ("far", "unreachable", True)
    far.let.set()
    line = await hyperpod.clusters.cluster("far")
    assert line.state == "up"


async def test_what_it_answers_at_last_is_told_to_who_asks_next(beside):
    hyperpod, far = beside
    await hyperpod.clusters.configured(0.1)
    far.let.set()
    await asyncio.sleep(0.1)
    late = by_name(await hyperpod.clusters.configured(0.1))["far"]
    assert (late.state, far.asked) == ("up", 1)
    # Its next silence shows those numbers.
    far.let.clear()
    old = by_name(await hyperpod.clusters.configured(0.1))["far"]
    assert (old.state, old.nodes, far.asked) == ("unreachable", late.nodes, 2)
    assert old.as_of == pytest.approx(time.time(), abs=5)


async def test_an_answer_that_nobody_wanted_for_long_is_not_told(beside, monkeypatch):
    hyperpod, far = beside
    await hyperpod.clusters.configured(0.1)
    far.let.set()
    await asyncio.sleep(0.1)
    monkeypatch.setattr(cluster_lines, "_TTL_S", 0.0)
    await hyperpod.clusters.configured(1)
    assert far.asked == 2


async def test_a_question_that_goes_on_ends_with_the_services(beside):
    hyperpod, far = beside
    await hyperpod.clusters.configured(0.1)
    await asyncio.wait_for(hyperpod.close(), 2)
    assert (far.asked, far.broken_off) == (1, 1)


@pytest.fixture
def silent(tmp_path):
    """A kubeconfig of a cluster that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        path = tmp_path / "kubeconfig"
        path.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n"
            "users: [{name: u, user: {token: t}}]\n"
            "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        )
        yield path


async def test_an_api_server_that_takes_connections_and_says_nothing(home, silent, monkeypatch):
    config = home / "config.toml"
    config.write_text('[clusters.far]\norchestrator = "kubernetes"\n')
    monkeypatch.setenv("HYPERPOD_CONFIG", str(config))
    monkeypatch.setenv("KUBECONFIG", str(silent))
    hyperpod = Hyperpod()
    try:
        begin = time.monotonic()
        found = by_name(await hyperpod.clusters.configured(1))
        assert time.monotonic() - begin < 4
        assert found["local"].state == "up"
        assert found["far"].state == "unreachable"
        assert "has not answered for" in found["far"].reason
    finally:
        begin = time.monotonic()
        await hyperpod.close()
    assert time.monotonic() - begin < 3
