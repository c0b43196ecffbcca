"""A cluster at a glance: which jobs have which GPUs, and who waits."""

from __future__ import annotations

from hyperpod_jlab.clusters.overview import GpuShare, in_waiting_order, tiles_of
from hyperpod_jlab.core.cluster import GpuTotals, Job, Node, Resource, gpu_totals


def node(name: str, used: int, state: str = "up", total: int = 8, kind: str = "h100") -> Node:
    free = total - used if state == "up" else 0
    gpus = Resource("gpu", kind, total, used, free, accelerator=True)
    return Node(name, state, accelerators=total, accelerator_type=kind, resources=(gpus,))


def job(ident: str, state: str = "running", **more: object) -> Job:
    return Job(ident, f"job-{ident}", "ann", state, **more)  # type: ignore[arg-type]


def test_a_job_has_its_share_on_each_of_its_nodes() -> None:
    nodes = [node("a", 8), node("b", 8), node("c", 0)]
    both = job("1", nodes=("a", "b"), accelerators=12)
    one = job("2", nodes=("b",), accelerators=2)
    tiles = tiles_of(nodes, [both, one, job("3", "waiting", accelerators=8)])
    assert [tile.shares for tile in tiles] == [(GpuShare("1", 6),), (GpuShare("1", 6), GpuShare("2", 2)), ()]


def test_no_job_has_more_than_is_in_use() -> None:
    (tile,) = tiles_of([node("a", 3)], [job("1", nodes=("a",), accelerators=8)])
    assert tile.shares == (GpuShare("1", 3),)
    (tile,) = tiles_of([node("a", 0)], [job("1", nodes=("a",))])
    assert tile.shares == (GpuShare("1", 0),)


def test_totals_tell_free_gpus_from_those_of_drained_nodes() -> None:
    nodes = [node("a", 3), node("b", 1, "drained"), node("c", 0, kind="a100", total=4), Node("cpu", "up")]
    assert gpu_totals(nodes) == (GpuTotals("h100", 16, 4, 5, 7), GpuTotals("a100", 4, 0, 4, 0))


def test_totals_are_unknown_where_a_node_hides_its_use() -> None:
    hidden = Node("b", "up", accelerators=8, accelerators_free=None, accelerator_type="h100")
    assert gpu_totals([node("a", 3), hidden]) == (GpuTotals("h100", 16, None, None, 0),)


def test_who_has_an_expected_start_is_listed_first() -> None:
    jobs = [
        job("1", "waiting", submitted_at=1.0),
        job("2", "held", submitted_at=0.0),
        job("3", "waiting", submitted_at=2.0, expected_start=50.0),
        job("4", "waiting", submitted_at=3.0, expected_start=40.0),
        job("5"),
        job("6", "succeeded"),
    ]
    assert [one.scheduler_id for one in in_waiting_order(jobs)] == ["4", "3", "2", "1"]
