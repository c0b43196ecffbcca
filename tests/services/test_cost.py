"""What a run would cost, what its records say it has cost, and who used how much: tables of cases."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.clusters.node_shapes import known_nodes
from hyperpod_jlab.clusters.service import Clusters, NodeList
from hyperpod_jlab.core.cluster import Node
from hyperpod_jlab.core.config import CostConfig
from hyperpod_jlab.core.cost import Execution, Price, Prices, Shape
from hyperpod_jlab.core.records import AttemptRecords, Head, NodeRecord, Observation, ObservedState, RunRecords
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.protocol import NativeFacts
from hyperpod_jlab.features.cost.models import UsageCounter, Use, csv_rows, days_of
from hyperpod_jlab.run.cost import Estimate, estimate_of, executions_of, limit_findings

HOUR, DAY = 3600.0, 86_400.0
P5, G5 = Shape("p5", 192, 8), Shape("g5", 32, 1)
PRICES = Prices("USD", {"p5": [Price("p5", 100, "configuration")], "g5": [Price("g5", 3, "configuration")]})


NATIVE = JobSpec.model_validate({"source": {"kind": "native", "path": "job.sbatch"}})


def spec(**fields: Any) -> JobSpec:
    return JobSpec.model_validate({"source": {"kind": "command", "command": "true"}, **fields})


@pytest.mark.parametrize(
    ("fields", "candidates", "limit", "per_hour", "at_most", "gpu_hours"),
    [
        pytest.param(
            {"resources": {"nodes": 2, "gpus_per_node": 8}}, {P5}, 7200, 200, 400, 32,
            id="whole nodes",
        ),
        pytest.param({"resources": {"gpus_per_node": 2}}, {P5}, 3600, 25, 25, 2, id="some GPUs"),
        pytest.param(
            {"resources": {"gpus_per_node": 1}}, {P5, G5}, 3600, 12.5, 12.5, 1, id="the dearer type"
        ),
        pytest.param(
            {"resources": {"gpus_per_node": 8}}, {P5}, None, 100, None, None, id="no time limit"
        ),
        pytest.param(
            {"resources": {"gpus_per_node": 8}}, {Shape("x", 4, 8)}, 3600, None, None, 8,
            id="no price",
        ),
        pytest.param(
            {"resources": {"gpus_per_node": 1}}, {P5, Shape("x", 4, 1)}, 3600, None, None, 1,
            id="one type without a price",
        ),
        pytest.param(
            {"resources": {"gpus_per_node": 8}, "array": "0-9%4"}, {P5}, 3600, 400, 1000, 80,
            id="an array, four at once",
        ),
        pytest.param(
            {"resources": {"gpus_per_node": 1}, "slurm": {"flags": {"exclusive": True}}},
            {P5}, 3600, 100, 100, 1, id="exclusive",
        ),
        pytest.param(
            {"resources": {"gpus_per_node": 8}, "max_restarts": 9}, {P5}, 3600, 100, 1000, 80,
            id="ten attempts",
        ),
        pytest.param(
            {"resources": {"cpus": 48}}, {P5}, 3600, 25, 25, 0, id="CPUs only"
        ),
    ],
)  # fmt: skip
def test_estimate(
    fields: dict[str, Any],
    candidates: set[Shape],
    limit: int | None,
    per_hour: float | None,
    at_most: float | None,
    gpu_hours: float | None,
) -> None:
    found = estimate_of(spec(**fields), candidates, PRICES, limit, now=0)
    assert found.gpu_hours == gpu_hours
    for value, expected in ((found.per_hour, per_hour), (found.at_most, at_most)):
        assert value == (None if expected is None else pytest.approx(expected))
    assert (limit is None) == any("no time limit" in note for note in found.notes)


def test_a_native_file_is_counted_by_what_it_asks_for() -> None:
    facts = NativeFacts(nodes=2, array="0-9%4", gpus_per_node=8, time_limit=3600)
    found = estimate_of(NATIVE, {P5}, PRICES, None, facts=facts, now=0)
    assert (found.per_hour, found.at_most, found.gpu_hours, found.gpus) == (800, 2000, 160, 64)
    found = estimate_of(NATIVE, {P5}, PRICES, 3600, facts=NativeFacts(gpus_per_node=None), now=0)
    assert (found.at_most, found.gpu_hours, found.gpus) == (100, None, None)
    limits = CostConfig.model_validate({"refuse_over": 200, "refuse_gpu_hours_over": 10})
    (warning,) = limit_findings(found, limits, accepted=False)
    assert warning.code == "cost_unknown"
    assert "the limit of 10.00 GPU-hours was not checked" in warning.message


def estimate(per_hour: float | None, at_most: float | None, gpu_hours: float | None) -> Estimate:
    return Estimate("USD", per_hour, at_most, gpu_hours, gpu_hours, gpus=8)


@pytest.mark.parametrize(
    ("config", "found", "code"),
    [
        ({}, estimate(1e6, 1e6, 1e6), None),
        ({"confirm_over": 100}, estimate(50, 100, 8), None),
        ({"confirm_over": 100}, estimate(50, 100.01, 8), "cost_not_confirmed"),
        ({"confirm_over": 100}, estimate(50, None, None), "cost_not_confirmed"),
        ({"confirm_over": 100}, estimate(None, None, 1e6), "cost_unknown"),
        ({"confirm_gpu_hours_over": 100}, estimate(None, None, 101), "cost_not_confirmed"),
        ({"confirm_gpu_hours_over": 100}, estimate(None, None, None), "cost_not_confirmed"),
        ({"confirm_over": 100, "refuse_over": 200}, estimate(50, 201, 8), "cost_refused"),
        ({"refuse_gpu_hours_over": 0}, estimate(50, 201, 8), "cost_refused"),
    ],
)
def test_limits(config: dict[str, Any], found: Estimate, code: str | None) -> None:
    limits = CostConfig.model_validate(config)
    assert [one.code for one in limit_findings(found, limits, accepted=False)] == ([code] if code else [])
    for one in limit_findings(found, limits, accepted=False):
        if code != "cost_unknown":
            assert ("may use" in one.message) is ("GPU-hours" in one.message)
            assert ("may cost" in one.message) is ("USD" in one.message)
    accepted = limit_findings(found, limits, accepted=True)
    stays = code in {"cost_refused", "cost_unknown"}
    assert [one.code for one in accepted] == ([code] if stays else [])


HEAD = Head(
    run_id="r", name="r", user="alice", host="h", created_at=0, cluster="c", orchestrator="o", spec_digest="", nodes=2
)  # fmt: skip
GPUS = spec(resources={"nodes": 2, "gpus_per_node": 8})


def node(rank: int, start: float, end: float | None) -> NodeRecord:
    return NodeRecord(node_rank=rank, node=f"node{rank}", started_at=start, ended_at=end)


@pytest.mark.parametrize(
    ("attempts", "ended", "expected"),
    [
        pytest.param([], True, [], id="never started"),
        pytest.param(
            [[node(0, 0, 10), node(1, 2, 12)]], True, [(0, 10, False), (2, 12, False)], id="ended"
        ),
        pytest.param([[node(0, 0, None)]], False, [(0, None, False)], id="it runs"),
        pytest.param(
            [[node(0, 0, 5), node(1, 0, None)], [node(0, 9, None)]], False,
            [(0, 5, True), (0, 5, True), (9, None, False)], id="a node was lost",
        ),
        pytest.param([[node(0, 7, None)]], True, [(7, 30, False)], id="only the scheduler saw it end"),
        pytest.param(
            [[node(0, 1, None)], [node(0, 7, None)]], False, [(1, 6, True), (7, None, False)],
            id="its first attempt was killed",
        ),
    ],
)  # fmt: skip
def test_executions_by_records(
    attempts: list[list[NodeRecord]], ended: bool, expected: list[tuple[float, float | None, bool]]
) -> None:
    seen = Observation(time=30, observer="x", state="ended", verdict="failed")
    records = RunRecords(
        HEAD,
        attempts=tuple(AttemptRecords(n, nodes=tuple(nodes)) for n, nodes in enumerate(attempts, 1)),
        observations=(seen,) if ended else (),
    )  # fmt: skip
    ends = {1: 6.0} if len(attempts) > 1 else {}
    found = executions_of(records, GPUS, ended=ended, ends=ends)
    assert [(one.started_at, one.ended_at, one.repeated) for one in found] == expected
    assert {one.accelerators for one in found} <= {8}


@pytest.mark.parametrize(
    ("state", "stop"),
    [
        pytest.param("running", None, id="it runs"),
        pytest.param("ended", 30, id="it has ended, and its array continues"),
        pytest.param("waiting", 30, id="it waits for its next attempt"),
    ],
)
def test_a_child_that_could_not_record_its_end_is_charged_until_then(state: ObservedState, stop: float | None) -> None:
    seen = Observation(time=30, observer="local", state=state, attempt=1, verdict="FAILED" if stop else None)
    attempts = (AttemptRecords(1, nodes=(node(0, 7, None),)),)
    records = RunRecords(HEAD, attempts=attempts, observations=(seen,))
    (found,) = executions_of(records, GPUS, ended=False)
    assert (found.started_at, found.ended_at) == (7, stop)


def test_usage_is_summed_by_key_and_day_whatever_the_order() -> None:
    uses = [
        Use("1", Execution(0, DAY + HOUR, ("a",), accelerators=8), "alice", "research"),
        Use("1", Execution(3 * DAY, 3 * DAY + HOUR, ("a",), accelerators=8), "alice", "research"),
        Use("2_7", Execution(HOUR, 2 * HOUR, ("b",), accelerators=1), "bob"),
        Use("3", Execution(9 * DAY, 10 * DAY, ("b",)), "bob"),  # outside of the period
        Use("4", Execution(-HOUR, HOUR, ("b",), accelerators=8), "carol", "research"),
    ]
    shapes = {"a": P5, "b": P5}
    reports = []
    for order in itertools.permutations(uses):
        counter = UsageCounter("account", 0, 5 * DAY, "USD")
        for use in order:
            counter.add("c", use, shapes, PRICES)
        reports.append(counter.report())
    rows = {row.key: row for row in reports[0].rows}
    assert [row.key for row in reports[0].rows] == ["research", "(none)"]
    assert (rows["research"].runs, rows["(none)"].runs) == (2, 1)
    assert rows["research"].node_hours == pytest.approx(24 + 1 + 1 + 1)
    assert rows["(none)"].amount == pytest.approx(100 / 8)
    assert [(one.day, one.key) for one in reports[0].days] == [
        ("1970-01-01", "(none)"),
        ("1970-01-01", "research"),
        ("1970-01-02", "research"),
        ("1970-01-04", "research"),
    ]
    assert csv_rows(reports[0])[1] == ("1970-01-01", "(none)", "1.000000", "1.000000", "12.500000")
    for report in reports:
        assert [(row.key, row.runs, round(row.gpu_hours, 9)) for row in report.rows] == [
            (row.key, row.runs, round(row.gpu_hours, 9)) for row in reports[0].rows
        ]


def test_a_key_of_another_user_is_no_formula_and_no_escape_sequence() -> None:
    counter = UsageCounter("notebook", 0, DAY, "USD")
    cells = {
        "=1+1": "'=1+1",
        "\t=1": "'=1",
        "\r=1": "'=1",
        "\ta": "'a",
        "\x1b=1": "'=1",
        " =1": "' =1",
        "\uff1d1": "'\uff1d1",
        "a\x1b[2J\u202eb": "a[2Jb",
        "bob=1": "bob=1",
    }
    for text in cells:
        use = Use("1", Execution(0, HOUR, ("a",)), "bob", notebook=text)
        counter.add("c", use, {"a": P5}, PRICES)
    keys = [line[1] for line in csv_rows(counter.report())[1:]]
    assert sorted(keys) == sorted(cells.values())


def test_hours_before_a_node_was_replaced_do_not_hide_that_it_is_idle() -> None:
    counter = UsageCounter("user", 0, 30 * DAY, "USD")
    counter.add_nodes("c", {"a": ("p5", 20 * DAY), "b": ("g5", 0)}, PRICES)
    for name, begin, end in (("a", 0, 21), ("gone", 0, 30), ("b", 0, 30)):
        use = Use(name, Execution(begin * DAY, end * DAY, (name,)), "bob")
        counter.add("c", use, {"a": P5, "b": G5, "gone": P5}, PRICES)
    idle = [(row.instance_type, row.idle_hours) for row in counter.report().idle]
    assert idle == [("p5", 9 * 24), ("g5", 0)]


class Listing(Clusters):
    """Clusters whose next list of nodes is given."""

    def __init__(self) -> None:
        self.next = NodeList[Node]([])

    async def nodes(self, *_: Any, **__: Any) -> NodeList[Node]:
        return self.next


async def test_a_list_of_nodes_with_a_source_missing_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    clusters = Listing()
    clusters.next = NodeList([Node("i-1", "running", instance_type="ml.p5.48xlarge")], partial=True)
    partial = await known_nodes(clusters, "c")
    assert "not all nodes of c are listed" in str(partial.problem)
    clusters.next = NodeList([Node("a", "idle", cpus=4, launched_at=5.0, instance_type="ml.x")])
    whole = await known_nodes(clusters, "c")
    assert (whole.problem, list(whole.present)) == (None, ["a"])
    clusters.next = NodeList([])
    assert (await known_nodes(clusters, "c")).present == whole.present


def test_days_have_no_gaps() -> None:
    parts = list(days_of(DAY - 1, 3 * DAY + 0.5))
    assert [part[0] for part in parts] == ["1970-01-01", "1970-01-02", "1970-01-03", "1970-01-04"]
    assert [part[2] for part in parts[:-1]] == [part[1] for part in parts[1:]]
    assert list(days_of(5, 5)) == []
