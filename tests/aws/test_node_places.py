"""Who has taken whose place: by the lists of instances alone, and over REST."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hyperpod_jlab.clusters import aws as hyperpod_watch
from hyperpod_jlab.core import cache as looks
from hyperpod_jlab.core.nodes import RECENT_S, ReplacementTracker
from testbed.aws.example import example_account
from tests.aws.conftest import REGION
from tests.aws.test_node_join import instance
from tests.aws.test_rest import until_loaded
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.conftest import *  # noqa: F403


def replaced(*lists, now=0.0):
    """Who has replaced whom, told of the last of some lists."""
    places = ReplacementTracker()
    for one in lists:
        places.update(one)
    return {one.name: one.replaces for one in places.with_replacements(lists[-1], now) if one.replaces}


OLD, NEW = instance("i-old", 1, "ShuttingDown", at=1), instance("i-new", 1, "Pending", at=2)


@pytest.mark.parametrize(
    ("lists", "wanted"),
    [
        ([[instance("i-1", 1), instance("i-2", 2)]] * 2, {}),
        ([[NEW, OLD]], {"i-new": "i-old"}),
        ([[OLD, NEW], [NEW]], {"i-new": "i-old"}),
        ([[OLD], [], [NEW], [NEW]], {"i-new": "i-old"}),
        ([[OLD], [NEW, OLD], [instance("i-3", 1, at=3)]], {"i-3": "i-new"}),
        ([[OLD], [instance("i-new", 2, at=2)]], {}),
        ([[instance("i-1")], [instance("i-2")]], {}),
        (
            [[replace(instance("i-1", 1), logical_id="n-1")], [replace(instance("i-2", 2), logical_id="n-1")]],
            {"i-2": "i-1"},
        ),
    ],
    ids=["none", "both", "one after", "gap", "twice", "another place", "no name", "logical id"],
)
def test_who_has_taken_whose_place(lists, wanted):
    assert replaced(*lists) == wanted


def test_a_replacement_is_no_news_for_ever():
    assert replaced([OLD], [NEW], now=2 + RECENT_S - 1) == {"i-new": "i-old"}
    assert replaced([OLD], [NEW], now=2 + RECENT_S) == {}


async def test_a_replacement_is_seen_soon_and_the_new_node_says_whose_place_it_has(endpoint, api, monkeypatch):
    monkeypatch.setattr(hyperpod_watch, "CHANGING_TTL_S", 0.0)
    monkeypatch.setattr(looks, "_CALLS_PER_PERIOD", float("inf"))
    endpoint.account = example_account(REGION)
    path = "clusters/ml-cluster/nodes"
    before = await until_loaded(api, path)
    assert not before["changing"]
    cluster = endpoint.account.clusters[REGION][0]
    old = cluster.nodes[1]
    with endpoint.changing():
        new = cluster.add_node(cluster.group_of(old), address=old.address, launched=datetime.now(UTC))
        old.status, new.status = "ShuttingDown", "Pending"
    assert (await until_loaded(api, path))["nodes"] == before["nodes"]  # it is kept for a minute
    assert (await until_loaded(api, path, refresh="true"))["changing"]
    with endpoint.changing():
        cluster.nodes.remove(old)
        new.status = "Running"
    after = await until_loaded(api, path)
    assert not after["changing"]
    rows = {row["name"]: row["reason"] for row in after["nodes"]}
    assert rows[new.instance_id] == f"it replaces {old.instance_id}"
    assert old.instance_id not in rows
