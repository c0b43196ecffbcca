"""What AWS does to the nodes of a run, as the states of instances tell, and what is said of the run then."""

from __future__ import annotations

import pytest

from hyperpod_jlab.core.hyperpod import Instance
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.core.repair import NodeRepair, find_repairs, may_recover, with_repair_reason
from hyperpod_jlab.engines.kubernetes import SCHEDULER as KUBERNETES
from hyperpod_jlab.engines.slurm import SCHEDULER as SLURM

BEGUN = 1000.0
HOST = "ip-10-0-0-1"
NODE = "hyperpod-i-0a"


def instance(name: str, status: str, launched: float = 0.0, host: str | None = HOST) -> Instance:
    where = f"{host}.us-west-2.compute.internal" if host else None
    return Instance(name, "workers", "ml.p5.48xlarge", status, launched_at=launched, host=where)


@pytest.mark.parametrize(
    ("instances", "said"),
    [
        pytest.param([("i-0a", "Running", 0)], None, id="it runs"),
        pytest.param([("i-0a", "Pending", 0)], "reboot", id="the same instance starts"),
        pytest.param([("i-0b", "Pending", 2000)], "replace", id="a later one starts"),
        pytest.param([("i-0b", "DeepHealthCheckInProgress", 2000)], "replace", id="it is checked"),
        pytest.param([("i-0a", "ShuttingDown", 0)], "replace", id="it ends"),
        pytest.param([("i-0a", "ShuttingDown", 0), ("i-0b", "Pending", 2000)], "replace", id="both"),
        pytest.param([("i-0a", "ShuttingDown", 0), ("i-0b", "Running", 2000)], None, id="its place is taken"),
        pytest.param([("i-0a", "Failure", 0)], "repair", id="it failed"),
        pytest.param([("i-0a", "SystemUpdating", 0)], None, id="its software is updated"),
        pytest.param([("i-0a", "Hibernating", 0)], None, id="a word that is newer than we are"),
        pytest.param([], None, id="it is not listed"),
    ],
)
def test_a_node_of_slurm(instances: list[tuple[str, str, float]], said: str | None) -> None:
    found = find_repairs(SLURM, [instance(*one) for one in instances], [HOST], BEGUN)
    assert found == ({HOST: said} if said else {})


@pytest.mark.parametrize(
    ("instances", "said"),
    [
        pytest.param([("i-0a", "Running", 0)], None, id="it runs"),
        pytest.param([("i-0a", "Pending", 0)], "reboot", id="it starts again"),
        pytest.param([("i-0a", "ShuttingDown", 0), ("i-0b", "Pending", 1)], "replace", id="ends"),
        pytest.param([("i-0b", "Pending", 2000)], "replace", id="gone, its successor starts"),
        pytest.param([("i-0b", "Running", 2000)], None, id="gone, its successor runs"),
        pytest.param([], None, id="nothing is listed"),
    ],
)
def test_a_node_of_kubernetes(instances: list[tuple[str, str, float]], said: str | None) -> None:
    """Another instance is another node, so a node may be gone while its successor starts."""
    found = find_repairs(KUBERNETES, [instance(*one) for one in instances], [NODE], BEGUN)
    assert found == ({NODE: said} if said else {})


def test_without_names_of_hosts_nothing_is_said() -> None:
    assert find_repairs(SLURM, [instance("i-0a", "Pending", host=None)], [HOST], BEGUN) == {}


def word(state: str, reason: str | None = None, code: str | None = None) -> Observation:
    return Observation.model_validate(
        {"time": 1.0, "observer": "x", "state": state, "reason": reason, "reason_code": code}
    )


def test_what_is_said_of_a_run() -> None:
    nodes = {f"n{number}": "replace" for number in range(5)}
    said = with_repair_reason(word("running"), nodes, {"n1": "reboot"}, KUBERNETES)
    assert said.reason_code == "recovering"
    assert said.reason == (
        "HyperPod reboots n1, on which it runs; lost pods are recreated on a node with free resources"
    )
    said = with_repair_reason(word("waiting", "no room"), nodes, {"n1": "replace"}, SLURM)
    assert said.reason == "HyperPod replaces n1, on which it ran; Slurm says: no room"
    said = with_repair_reason(word("waiting"), nodes, dict.fromkeys(nodes, "repair"), KUBERNETES)
    assert said.reason == "HyperPod repairs n0, n1, n2 and 2 more, on which it ran"
    assert not may_recover(said)  # it is said once, by whoever knows first
    assert with_repair_reason(said, nodes, {"n1": "replace"}, KUBERNETES) is said


@pytest.mark.parametrize(
    "given", [word("ended"), word("waiting", None, "held"), word("running")], ids=["over", "held", "well"]
)
def test_what_is_not_said(given: Observation) -> None:
    repairs: dict[str, NodeRepair] = {} if given.state == "running" else {"n1": "replace"}
    assert with_repair_reason(given, ["n1"], repairs, SLURM) is given
    assert with_repair_reason(given, ["another"], {"n1": "replace"}, SLURM) is given
