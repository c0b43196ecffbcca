"""What executions cost, as a pure function: tables of cases."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hyperpod_jlab.core.cost import Execution, Price, Prices, Shape, cost_of

H = 3600.0
P5 = Price("ml.p5.48xlarge", 98.32, "configuration")
G5 = Price("ml.g5.8xlarge", 3.0, "price_list")
PRICES = Prices("USD", {"ml.p5.48xlarge": [P5], "ml.g5.8xlarge": [G5]})
SHAPES = {
    "a": Shape("ml.p5.48xlarge", 192, 8),
    "b": Shape("ml.p5.48xlarge", 192, 8),
    "g": Shape("ml.g5.8xlarge", 32, 1),
    "mig": Shape("ml.p5.48xlarge", 192, 56),
    "odd": Shape("ml.unknown.1xlarge", 4, 0),
    "bare": Shape(None, 4, 0),
}


def execution(
    start: float,
    end: float | None,
    *nodes: str,
    node_count: int = 1,
    accelerators: float | None = None,
    cpus: float | None = None,
    exclusive: bool = False,
    repeated: bool = False,
) -> Execution:
    """One of whole nodes with 8 GPUs, unless it says otherwise; times are hours."""
    return Execution(
        start * H,
        None if end is None else end * H,
        nodes,
        node_count,
        8.0 * len(nodes) if accelerators is None else accelerators,
        cpus,
        exclusive,
        repeated,
    )


@pytest.mark.parametrize(
    ("executions", "amount", "node_hours", "gpu_hours", "wasted_node_hours"),
    [
        pytest.param([], 0, 0, 0, 0, id="nothing ran"),
        pytest.param([execution(0, 2, "a", "b")], 4 * 98.32, 4, 32, 0, id="whole nodes"),
        pytest.param(
            [execution(0, 1, "a", repeated=True), execution(3, 5, "b")],
            3 * 98.32, 3, 24, 1, id="requeued",
        ),
        pytest.param(
            [execution(0, 1, "a", "b", repeated=True), execution(1, 2, "a", "g", accelerators=2)],
            2 * 98.32 + 98.32 / 8 + 3.0, 4, 18, 2, id="a node was replaced by another type",
        ),
        pytest.param([execution(0, 1, "a", accelerators=2)], 98.32 / 4, 1, 2, 0, id="some GPUs"),
        pytest.param(
            [execution(0, 1, "a", accelerators=2, cpus=96)], 98.32 / 2, 1, 2, 0,
            id="more CPUs than GPUs",
        ),
        pytest.param(
            [execution(0, 1, "a", accelerators=0, cpus=48)], 98.32 / 4, 1, 0, 0, id="CPUs only"
        ),
        pytest.param(
            [execution(0, 1, "a", accelerators=1, exclusive=True)], 98.32, 1, 1, 0, id="exclusive"
        ),
        pytest.param([execution(0, 1, "mig", accelerators=7)], 98.32 / 8, 1, 7, 0, id="MIG"),
        pytest.param(
            [execution(0, 1, "a", accelerators=0.5)], 98.32 / 16, 1, 0.5, 0, id="half a GPU"
        ),
        pytest.param(
            [execution(0, 1, "a", accelerators=0)], 98.32, 1, 0, 0,
            id="what it was given is not known",
        ),
        pytest.param([execution(9, None, "a")], 98.32, 1, 8, 0, id="it runs"),
        pytest.param([execution(12, None, "a")], 0, 0, 0, 0, id="it starts in the future"),
        pytest.param([execution(5, 4, "a")], 0, 0, 0, 0, id="it ended before it started"),
        pytest.param([execution(0, 1, "odd")], None, 1, 8, 0, id="no price"),
        pytest.param([execution(0, 1, "a", "odd")], None, 2, 16, 0, id="one node without a price"),
        pytest.param([execution(0, 1, "gone")], None, 1, 8, 0, id="a node that nobody knows"),
        pytest.param(
            [execution(0, 1, node_count=3, accelerators=24)], None, 3, 24, 0, id="unknown nodes"
        ),
    ],
)  # fmt: skip
def test_cost(
    executions: list[Execution], amount: float | None, node_hours: float, gpu_hours: float, wasted_node_hours: float
) -> None:
    cost = cost_of(executions, SHAPES, PRICES, now=10 * H)
    assert cost.amount == (None if amount is None else pytest.approx(amount))
    assert (cost.node_hours, cost.gpu_hours, cost.wasted_node_hours) == pytest.approx(
        (node_hours, gpu_hours, wasted_node_hours)
    )


def test_a_price_that_changes_in_mid_run() -> None:
    prices = Prices(
        "USD",
        {
            "ml.p5.48xlarge": [
                Price("ml.p5.48xlarge", 100, "configuration"),
                Price("ml.p5.48xlarge", 10, "configuration", valid_from=2 * H),
                Price("ml.p5.48xlarge", 1, "configuration", valid_from=3 * H),
            ]
        },
    )
    cost = cost_of([execution(0, 5, "a")], SHAPES, prices, now=9 * H)
    assert cost.amount == pytest.approx(200 + 10 + 2)
    assert [price.price for price in cost.prices] == [100, 10, 1]


def test_a_price_that_begins_later_makes_the_amount_unknown() -> None:
    later = Price("ml.p5.48xlarge", 10, "configuration", valid_from=2 * H)
    prices = Prices("USD", {"ml.p5.48xlarge": [later]})
    assert cost_of([execution(0, 5, "a")], SHAPES, prices, now=9 * H).amount is None
    assert cost_of([execution(2, 5, "a")], SHAPES, prices, now=9 * H).amount == pytest.approx(30)


def test_the_price_of_a_cluster_is_for_all_its_nodes() -> None:
    own = Price(None, 1.5, "configuration")
    prices = Prices("EUR", {"ml.p5.48xlarge": [P5]}, node_price=own)
    cost = cost_of([execution(0, 2, "a", "bare")], SHAPES, prices, now=9 * H)
    assert (cost.currency, cost.prices) == ("EUR", (own,))
    assert cost.amount == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("2026-10-31T23:00:00", "2026-11-01T01:00:00"),  # a month ends
        ("2026-02-28T23:59:59", "2026-03-01T00:00:01"),
        ("2026-10-25T00:00:00", "2026-10-25T04:00:00"),  # clocks in Europe go back
        ("2026-03-08T06:00:00", "2026-03-08T12:00:00"),  # clocks in America go forward
        ("2023-12-31T00:00:00", "2024-12-31T00:00:00"),  # a leap year
    ],
)
def test_parts_of_a_period_add_up_to_the_second(begin: str, end: str) -> None:
    start = datetime.fromisoformat(begin).replace(tzinfo=UTC).timestamp()
    stop = datetime.fromisoformat(end).replace(tzinfo=UTC).timestamp()
    one = Execution(start, stop, ("a",), accelerators=8)
    whole = cost_of([one], SHAPES, PRICES, now=stop)
    middle = (start + stop) // 2
    parts = [
        cost_of([one], SHAPES, PRICES, now=stop, period=period) for period in ((0.0, middle), (middle, float("inf")))
    ]
    assert round(sum(part.node_hours for part in parts) * H) == stop - start
    assert sum(part.amount or 0 for part in parts) == pytest.approx(whole.amount)
