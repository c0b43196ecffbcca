"""The clusters in one line each: what is told of one that does not answer."""

from __future__ import annotations

import time

import pytest

from hyperpod_jlab.model.cluster import Cluster
from hyperpod_jlab.model.errors import UnreachableError
from hyperpod_jlab.orchestrators.local.engine import LocalOrchestrator


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
    place.hyperpod.engines._made["local"] = engine
    (never,) = await place.hyperpod.clusters()
    assert (never.state, never.nodes, never.as_of) == ("unreachable", None, None)
    engine.deaf = False
    (up,) = await place.hyperpod.clusters()
    assert (up.state, up.as_of) == ("up", None)
    engine.deaf = True
    (old,) = await place.hyperpod.clusters()
    assert (old.state, old.reason) == ("unreachable", "no route to host")
    assert (old.nodes, old.running) == (up.nodes, up.running)
    assert old.as_of == pytest.approx(time.time(), abs=5)
    told = old.to_dict()["as_of"]
    assert isinstance(told, str)
    assert told.endswith("Z")
