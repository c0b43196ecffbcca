"""Nodes as the cluster says them: from recorded answers of two versions, and from a real cluster."""

import asyncio

import pytest

from hyperpod_jlab.core.cluster import NODE_STATES, UNUSABLE, Node
from hyperpod_jlab.engines.slurm.client import parse_queue
from hyperpod_jlab.engines.slurm.tables import find_state, node_rows, parse_nodes
from hyperpod_jlab.run.services import Hyperpod
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.jobs_fixtures import sbatch
from tests.slurm.recorded import MARK, VERSIONS, recorded

pytest_plugins = ["tests.slurm.services_fixtures"]

STATES = {
    "idle": "up",
    "mixed": "up",
    "allocated": "up",
    "idle+planned": "up",
    "idle+dynamic_norm": "up",
    "mixed+completing": "up",
    "idle+reserved": "reserved",
    "mixed+maintenance+reserved": "maintenance",
    "idle+drain": "drained",
    "mixed+drain": "draining",
    "allocated+drain": "draining",
    "idle+completing+drain": "draining",
    "idle+fail": "failed",
    "mixed+fail": "failing",
    "down": "down",
    "down+not_responding": "down",
    "down+drain": "down",
    "error": "down",
    "idle+not_responding": "not-answering",
    "mixed+not_responding": "not-answering",
    "down+drain+reboot_issued": "rebooting",
    "idle+drain+reboot_requested": "rebooting",
    "mixed+reboot_requested": "up",
    "idle+cloud+powered_down": "powered-off",
    "idle+cloud+not_responding+powered_down": "powered-off",
    "idle+cloud+powering_up": "starting",
    "idle+cloud+not_responding+powering_up": "starting",
    "idle+cloud+powering_down": "powering-off",
    "idle+drain+invalid_reg": "misconfigured",
    "inval": "misconfigured",
    "unknown": "unknown",
    "future": "unknown",
}

ODD = 'bad = "x" \x1f \x1e\nNodeName=node4 State=DOWN \U0001f642 |;$(x)'


@pytest.mark.parametrize("text", STATES)
def test_states_in_words(text: str) -> None:
    base, *flags = text.split("+")
    assert find_state(base, frozenset(flags)) == STATES[text]


def test_every_word_is_one_of_those_that_are_promised() -> None:
    assert set(STATES.values()) == set(NODE_STATES)
    assert set(NODE_STATES) > UNUSABLE


@pytest.fixture(params=VERSIONS)
def rows(request: pytest.FixtureRequest) -> dict[str, Node]:
    """The nodes that a version answered."""
    jobs = parse_queue(recorded(request.param, "jobs"), MARK)
    nodes = parse_nodes(recorded(request.param, "nodes"), MARK)
    return {node.name: node for node in node_rows(nodes.values(), jobs)}


def test_a_reason_that_looks_like_rows_is_one_nodes_reason(rows: dict[str, Node]) -> None:
    assert rows["node3"].reason == 'bad = "x" \x1f \x1e\nNodeName=node4 State=DOWN'
    assert rows["node3"].comment == 'c=1\nq"'
    assert rows["node3"].state == "drained"
    assert rows["node4"].state == "failed"
    assert rows["node4"].reason == "Action:Replace"


def test_who_drained_it_and_when(rows: dict[str, Node]) -> None:
    assert rows["node3"].reason_by == "root"
    assert rows["node3"].reason_since is not None
    assert rows["node3"].reason_since > 1_790_000_000


def test_gpus_by_number_and_type(rows: dict[str, Node]) -> None:
    whole, small = rows["node1"].resources[:2]
    assert (whole.type, whole.used_at, whole.shared_at, whole.free) == ("h100", (1, 2, 3), (0,), 4)
    assert (small.type, small.used_at, small.first, small.free) == ("1g.10gb", (8, 9), 8, 5)
    assert rows["node1"].accelerators == 15
    assert rows["node1"].accelerators_free == 9
    assert rows["node1"].accelerator_type == "1g.10gb, h100"


def test_nothing_is_free_on_a_node_that_drains_and_its_jobs_are_seen(rows: dict[str, Node]) -> None:
    assert rows["node2"].state == "draining"
    assert rows["node2"].accelerators_free == 0
    assert rows["node2"].cpus_free == 0
    assert rows["node2"].jobs == ("16", "17_1", "17_2")


def test_a_node_is_one_row_with_all_its_queues(rows: dict[str, Node]) -> None:
    assert rows["node1"].queues == ("closed", "dev")
    assert rows["cloud3"].queues == ("cloud",)
    assert rows["cloud3"].state == "powered-off"


def test_a_reason_that_is_over_is_not_shown(rows: dict[str, Node]) -> None:
    assert rows["node1"].reason is None
    assert rows["cloud3"].reason is None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("length", range(0, 3000, 171))
def test_an_answer_that_was_cut_off_shows_whole_nodes_only(version: str, length: int) -> None:
    text = recorded(version, "nodes")
    whole = parse_nodes(text, MARK)
    for name, node in parse_nodes(text[:length], MARK).items():
        assert node.gres == whole[name].gres
        assert node.reason == whole[name].reason


def test_what_a_login_node_says_first_breaks_no_row() -> None:
    text = recorded("24.11", "nodes")
    said = parse_nodes("Welcome to ml-cluster!\n*** maintenance on Monday ***\n" + text, MARK)
    assert said == parse_nodes(text, MARK)


# ---------------------------------------------------------------------------- a real cluster


async def _node(services: Hyperpod, name: str) -> Node:
    found = {node.name: node for node in await services.nodes()}
    return found[name]


async def test_odd_reasons_and_comments_come_through(slurm: SlurmTestbed, services: Hyperpod) -> None:
    slurm.exec("ctl", "scontrol", "update", "NodeName=node2", "State=DRAIN", f"Reason={ODD}")
    slurm.exec("ctl", "scontrol", "update", "NodeName=node2", f"Comment={ODD}")
    try:
        node = await _node(services, "node2")
        assert node.reason == ODD
        assert node.comment == ODD
        assert node.state == "drained"
        assert node.accelerators_free == 0
        assert (await _node(services, "node4")).state == "up"
    finally:
        slurm.exec("ctl", "scontrol", "update", "NodeName=node2", "Comment=")


async def test_gpus_of_a_job_are_in_use_by_number(slurm: SlurmTestbed, services: Hyperpod) -> None:
    where = ("--nodelist=node3", "--partition=batch")
    job = sbatch(slurm, *where, "--gpus-per-node=h100:3", wait="RUNNING")
    node = await _node(services, "node3")
    assert node.accelerators == 8
    assert node.accelerators_free == 5
    assert len(node.resources[0].used_at) == 3
    assert node.jobs == (job,)
    assert node.cpu_load is not None


async def test_a_node_that_died_is_down_with_a_reason(slurm: SlurmTestbed, services: Hyperpod) -> None:
    slurm.exec(*("ctl", "scontrol", "update", "NodeName=node1", "State=DOWN", "Reason=power supply"))
    node = await _node(services, "node1")
    assert node.state == "down"
    assert node.reason == "power supply"
    assert node.reason_by == "root"


async def test_all_who_ask_at_once_share_one_look(slurm: SlurmTestbed, services: Hyperpod) -> None:
    slurm.forget_calls()
    await asyncio.gather(*(services.nodes() for _ in range(20)))
    await asyncio.gather(*(services.queues() for _ in range(20)))
    await asyncio.gather(*(services.jobs() for _ in range(20)))
    assert len(slurm.calls()) <= 3
