"""Limits of accounts and QoS with their use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hyperpod_jlab.core.allowance import Allowance
from hyperpod_jlab.engines.slurm.allowances import parse_allowances
from hyperpod_jlab.engines.slurm.engine import SlurmOrchestrator
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import CLUSTER, make_hyperpod

ASSOCIATIONS = """\
ClusterName=testbed Account=root UserName= Partition= Priority=0 ID=1
    GrpTRES=cpu=N(1),gres/gpu=N(8)
    GrpTRESMins=cpu=N(0),mem=N(0),node=N(0),billing=N(0),fs/disk=N(0),gres/gpu=N(0)
ClusterName=testbed Account=research UserName= Partition= Priority=0 ID=3
    GrpTRES=cpu=4(1),gres/gpu=8(8)
    GrpTRESMins=cpu=N(0),mem=900(3),node=600(90),gres/gpu=12000(3000),gres/gpu:h100=60(30)
    GrpTRESRunMins=cpu=N(10),gres/gpu=80(80)
ClusterName=testbed Account=research UserName=alice(20001) Partition= Priority=0 ID=4
    GrpTRESMins=cpu=120(6),gres/gpu=N(3000)

QOS Records

QOS=gold(2)
    GrpTRESMins=billing=600(0),gres/gpu=0(0)
QOS=other(3)
    GrpTRESMins=gres/gpu=60(0)
"""
"""As 24.11 and 22.05 print it, shortened."""


def test_the_limits_that_are_set_in_hours() -> None:
    assert parse_allowances(ASSOCIATIONS, ["gold", "normal"]) == [
        Allowance("account", "research", "node", 10.0, 1.5),
        Allowance("account", "research", "gpu", 200.0, 50.0),
        Allowance("account", "research", "gpu:h100", 1.0, 0.5),
        Allowance("user", "research", "cpu", 2.0, 0.1),
        Allowance("qos", "gold", "billing", 10.0, 0.0),
        Allowance("qos", "gold", "gpu", 0.0, 0.0),
    ]
    assert parse_allowances("", ["gold"]) == []
    assert [one.name for one in parse_allowances(ASSOCIATIONS, ["gold"], {"research"})] == ["gold", "gold"]


async def test_a_limit_that_a_command_set_is_read_and_removed_again(
    slurm_start: Callable[..., SlurmTestbed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cluster = slurm_start("--dbd", "--accounts", "research:root", "--qos", "gold GrpTRESMins=gres/gpu=90", nodes=1)
    hyperpod = make_hyperpod(cluster)
    engine = hyperpod.engines.get(CLUSTER)
    assert isinstance(engine, SlurmOrchestrator)
    gold = Allowance("qos", "gold", "gpu", 1.5, 0.0)
    assert await engine.allowances(None, None) == [gold]
    for minutes, expected in ((12_000, [Allowance("account", "research", "gpu", 200.0, 0.0), gold]), (-1, [gold])):
        words = ("account", "name=research", "set", f"GrpTRESMins=gres/gpu={minutes}")
        cluster.exec("ctl", "sacctmgr", "--immediate", "modify", *words)
        assert await engine.allowances("research", "gold") == expected
    await hyperpod.close()
