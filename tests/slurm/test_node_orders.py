"""Nodes of a real cluster are drained and resumed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from hyperpod_jlab.core.cluster import Node
from hyperpod_jlab.core.errors import DeniedError
from hyperpod_jlab.core.node_actions import NodeActionPlan, NodeResult
from hyperpod_jlab.features.node_actions.service import NodeActions, NodeRequest
from hyperpod_jlab.run.services import Hyperpod
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import make_hyperpod
from tests.slurm.jobs_fixtures import sbatch

pytest_plugins = ["tests.slurm.services_fixtures"]


async def _done(services: Hyperpod, request: NodeRequest) -> tuple[NodeActionPlan, list[NodeResult]]:
    actions = NodeActions(services)
    plan = await actions.plan(request)
    return plan, await actions.carry_out(plan)


async def _until_up(services: Hyperpod) -> None:
    """Slurm asks a node that is resumed whether it is there before it gives it jobs."""
    deadline = time.monotonic() + 60
    while {(await _states(services))[name] for name in ("node1", "node2", "node3")} != {("up", None)}:
        assert time.monotonic() < deadline
        await asyncio.sleep(1)


async def _states(services: Hyperpod) -> dict[str, tuple[str, str | None]]:
    return {node.name: (node.state, node.reason) for node in await services.nodes()}


async def test_drained_nodes_keep_their_jobs_and_the_reason_in_one_line(
    slurm: SlurmTestbed, services: Hyperpod
) -> None:
    job = sbatch(slurm, "--nodelist=node1", wait="RUNNING")
    reason = 'GPU 3\nfalls off\x1b[31m the bus; x="1" $(id) state=resume'
    plan, results = await _done(services, NodeRequest("drain", ["node1", "NODE2"], reason=reason))
    assert [one.error for one in results] == [None, None]
    assert [one.scheduler_id for one in plan.nodes[0].jobs or ()] == [job]
    assert "continues" in plan.nodes[0].effects[0]
    assert plan.nodes[1].effects == ("no job runs on it",)
    states = await _states(services)
    kept = 'GPU 3 falls off [31m the bus; x="1" $(id) state=resume'
    assert states["node1"] == ("draining", kept)
    assert states["node2"] == ("drained", kept)
    assert states["node3"][0] == "up"
    assert slurm.exec("ctl", "squeue", "-h", "-j", job, "-o", "%T").strip() == "RUNNING"
    drained = [call.args for call in slurm.calls() if call.name == "scontrol"]
    assert drained == [("update", "nodename=node1,node2", "state=drain", f"reason={kept}")]

    _, results = await _done(services, NodeRequest("resume", ["node1", "node2"]))
    assert [one.error for one in results] == [None, None]
    await _until_up(services)


async def test_of_several_each_says_why_it_was_not_done(slurm: SlurmTestbed, services: Hyperpod) -> None:
    names = ["node1", "node2", "nowhere"]
    _, results = await _done(services, NodeRequest("drain", names, reason="a check"))
    assert [one.error and one.error.code for one in results] == [None, None, "no_such_node"]
    names = ["node1", "node3", "node2"]
    plan, results = await _done(services, NodeRequest("resume", names))
    assert [one.error and one.error.code for one in results] == [None, "wrong_state", None]
    assert [one.name for one in plan.possible] == ["node1", "node2"]
    await _until_up(services)


async def test_one_that_was_resumed_meanwhile_is_told_from_those_that_were_not(
    slurm: SlurmTestbed, services: Hyperpod
) -> None:
    await _done(services, NodeRequest("drain", ["node1", "node2", "node3"], reason="a check"))
    actions = NodeActions(services)
    plan = await actions.plan(NodeRequest("resume", ["node1", "node2", "node3"]))
    slurm.exec("ctl", "scontrol", "update", "nodename=node2", "state=resume")
    slurm.forget_calls()
    results = await actions.carry_out(plan)
    assert [one.error for one in results] == [None, None, None]  # they are all as they are to be
    await _until_up(services)
    # One whose node Slurm does not have any more is refused, the others are done.
    lost = replace(plan.nodes[0], node=Node("nowhere", "up"))
    drain = replace(plan, action="drain", reason="again", nodes=(lost, *plan.nodes[1:]))
    results = await actions.carry_out(drain)
    assert [one.error and one.error.code for one in results] == ["unknown_node", None, None]


async def test_a_user_without_the_right_is_told_who_has_it(slurm: SlurmTestbed) -> None:
    folder = slurm.folder / "node-orders"
    folder.mkdir(exist_ok=True)
    hyperpod = make_hyperpod(slurm, "ssh", login_nodes=["alice@login1"])
    try:
        _, results = await _done(hyperpod, NodeRequest("drain", ["node1", "node2"], reason="because"))
    finally:
        await hyperpod.close()
    for one in results:
        assert isinstance(one.error, DeniedError)
        assert one.error.code == "missing_right"
        assert "only Slurm administrators may" in one.error.message
        assert "scontrol update nodename=node1,node2 state=drain" in (one.error.hint or "")
    assert slurm.exec("ctl", "sinfo", "-h", "-n", "node1", "-o", "%T").startswith("idle")


@pytest.mark.parametrize("name", ["node1,node2", "node1 state=down", "ALL", "node[1-4]", "-h"])
async def test_only_a_name_that_slurm_listed_gets_into_a_command(
    slurm: SlurmTestbed, services: Hyperpod, name: str
) -> None:
    _, (result,) = await _done(services, NodeRequest("drain", [name], reason="x"))
    assert result.error is not None
    assert result.error.code == "no_such_node"
    assert [call for call in slurm.calls() if call.name == "scontrol"] == []
