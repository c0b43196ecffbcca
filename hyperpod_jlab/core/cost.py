"""What jobs cost: pure functions from what a job was given, for how long, and the prices of nodes, to money.

A node has a price for an hour. A job that was given a part of a node pays that part: the larger one of its share of the node's accelerators and of its CPUs. An
exclusive node counts whole. Hours are hours of the wall clock between start and end, whatever the job did in them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hyperpod_jlab.core.wire import Time

HOUR_S = 3600.0

PriceSource = Literal["configuration", "price_list"]
"""``configuration``: a person wrote it there. ``price_list``: the AWS Price List, with the configuration's discount, if there is one."""


@dataclass(frozen=True)
class Price:
    """The price of one node for an hour.

    Attributes:
        instance_type: The type, such as ``ml.p5.48xlarge``; null for nodes that have none, such as those of a cluster of one's own.
        price: The amount.
        source: Where it is from.
        valid_from: The first moment at which it holds; null: always.
    """

    instance_type: str | None
    price: float
    source: PriceSource
    valid_from: Time | None = None


@dataclass(frozen=True)
class Shape:
    """What one node has; None if unknown.

    Attributes:
        instance_type: Its type.
        cpus: CPUs that jobs can be given.
        accelerators: GPUs, other accelerators, or slices of them, as its scheduler counts them.
    """

    instance_type: str | None = None
    cpus: float | None = None
    accelerators: float | None = None


@dataclass(frozen=True)
class Execution:
    """One execution of a job on some nodes: a requeued job has several.

    Attributes:
        started_at: When it started (Unix seconds).
        ended_at: When it ended; None: it runs.
        nodes: The names of its nodes; empty if unknown.
        node_count: The number of its nodes.
        accelerators: The accelerators that it was given, on all nodes together.
        cpus: The same of CPUs; None if unknown.
        exclusive: Whether no other job could use its nodes.
        repeated: Whether another execution of the same job followed: what it did is counted as wasted.
    """

    started_at: float
    ended_at: float | None = None
    nodes: tuple[str, ...] = ()
    node_count: int = 1
    accelerators: float = 0.0
    cpus: float | None = None
    exclusive: bool = False
    repeated: bool = False

    def clipped(self, begin: float, end: float) -> tuple[float, float]:
        """The part of it in a period, as start and end; the end is not before the start."""
        start = max(self.started_at, begin)
        stop = end if self.ended_at is None else min(self.ended_at, end)
        return start, max(start, stop)


@dataclass(frozen=True)
class Prices:
    """The prices of a cluster's nodes.

    Attributes:
        currency: The currency, as ISO 4217.
        by_type: The prices of each type, the oldest first; of nodes without a type below None.
        node_price: The price of every node of the cluster, which counts before those of types.
    """

    currency: str
    by_type: Mapping[str | None, Sequence[Price]] = field(default_factory=dict)
    node_price: Price | None = None

    def over(self, instance_type: str | None, begin: float, end: float) -> list[tuple[float, float, Price | None]]:
        """The prices of a node in a period: when each begins and ends, in order. None where none is known."""
        if self.node_price is not None:
            return [(begin, end, self.node_price)]
        prices = list(self.by_type.get(instance_type, ()))
        starts = [price.valid_from or 0.0 for price in prices]
        parts: list[tuple[float, float, Price | None]] = []
        moment = begin
        while moment < end or not parts:
            position = bisect_right(starts, moment)
            until = min(end, starts[position]) if position < len(starts) else end
            parts.append((moment, until, prices[position - 1] if position else None))
            moment = until
        return parts


@dataclass(frozen=True)
class Cost:
    """What executions cost.

    Attributes:
        currency: The currency of `amount`, as ISO 4217.
        amount: Money; null if the price of a node is not known.
        wasted_amount: The part of it of executions that another one followed; null like `amount`.
        node_hours: Hours of whole nodes: the number of nodes times the time, whatever part of them was given.
        gpu_hours: Hours of accelerators.
        wasted_node_hours: The part of `node_hours` of executions that another one followed.
        wasted_gpu_hours: The same of `gpu_hours`.
        prices: The prices that were used.
    """

    currency: str
    amount: float | None = 0.0
    wasted_amount: float | None = 0.0
    node_hours: float = 0.0
    gpu_hours: float = 0.0
    wasted_node_hours: float = 0.0
    wasted_gpu_hours: float = 0.0
    prices: tuple[Price, ...] = ()

    def __add__(self, other: Cost) -> Cost:
        """Both together. An amount that is not known makes the sum unknown."""
        return Cost(
            self.currency,
            _sum(self.amount, other.amount),
            _sum(self.wasted_amount, other.wasted_amount),
            self.node_hours + other.node_hours,
            self.gpu_hours + other.gpu_hours,
            self.wasted_node_hours + other.wasted_node_hours,
            self.wasted_gpu_hours + other.wasted_gpu_hours,
            self.prices + tuple(price for price in other.prices if price not in self.prices),
        )


def cost_of(
    executions: Iterable[Execution],
    shapes: Mapping[str, Shape],
    prices: Prices,
    *,
    now: float,
    period: tuple[float, float] = (0.0, float("inf")),
    default: Shape | None = None,
) -> Cost:
    """What executions cost.

    Args:
        executions: The executions.
        shapes: What the cluster's nodes have, by name.
        prices: The prices.
        now: The end of executions that run (Unix seconds).
        period: Only what lies in it counts.
        default: What a node has that `shapes` does not name; None: nothing is known of it.
    """
    total = Cost(prices.currency)
    for execution in executions:
        start, end = execution.clipped(period[0], min(period[1], max(now, execution.started_at)))
        if end > start:
            total += _cost_of_one(execution, start, end, shapes, prices, default or Shape())
    return total


def _cost_of_one(
    execution: Execution, start: float, end: float, shapes: Mapping[str, Shape], prices: Prices, default: Shape
) -> Cost:
    hours = (end - start) / HOUR_S
    count = len(execution.nodes) or execution.node_count
    names = execution.nodes or ("",) * count
    used: list[Price] = []
    amount: float | None = 0.0
    for name in names:
        shape = shapes.get(name, default)
        share = share_of_node(execution, shape, count)
        for begin, until, price in prices.over(shape.instance_type, start, end):
            money = None if price is None else price.price * share * (until - begin) / HOUR_S
            amount = _sum(amount, money)
            if price is not None and price not in used:
                used.append(price)
    node_hours, gpu_hours = count * hours, execution.accelerators * hours
    wasted = execution.repeated
    return Cost(
        prices.currency,
        amount,
        amount if wasted else 0.0,
        node_hours,
        gpu_hours,
        node_hours if wasted else 0.0,
        gpu_hours if wasted else 0.0,
        tuple(used),
    )


def share_of_node(execution: Execution, shape: Shape, count: int) -> float:
    """The share of each of its nodes that an execution was given, from 0 to 1. What is not known counts as the whole node.

    Args:
        execution: The execution.
        shape: What the node has.
        count: The number of its nodes; it was given the same on each.
    """
    if execution.exclusive:
        return 1.0
    shares = []
    if execution.accelerators and shape.accelerators:
        shares.append(execution.accelerators / count / shape.accelerators)
    if execution.cpus and shape.cpus:
        shares.append(execution.cpus / count / shape.cpus)
    return min(1.0, max(shares)) if shares else 1.0


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


@dataclass(frozen=True)
class IdleRow:
    """Nodes of an instance type that are paid and not allocated.

    Attributes:
        instance_type: The type.
        paid_hours: Node hours that are paid.
        used_hours: Node hours that jobs were given.
        idle_hours: Paid hours without jobs; 0 if more were used than paid.
        price: The price of a node hour; null if unknown.
        amount: What the idle hours cost; null if the price is unknown.
    """

    instance_type: str
    paid_hours: float
    used_hours: float
    idle_hours: float
    price: float | None
    amount: float | None


def idle_cost(
    paid_node_hours: Mapping[str, float], used_node_hours: Mapping[str, float], prices: Mapping[str, float]
) -> list[IdleRow]:
    """What nodes cost while no job had them, by instance type, the most idle hours first.

    Args:
        paid_node_hours: Node hours that are paid, by type.
        used_node_hours: Node hours that jobs were given, in the same period.
        prices: The price of a node hour by type.
    """
    rows = []
    for name, paid in paid_node_hours.items():
        used = used_node_hours.get(name, 0.0)
        idle = max(0.0, paid - used)
        price = prices.get(name)
        rows.append(IdleRow(name, paid, used, idle, price, None if price is None else idle * price))
    return sorted(rows, key=lambda row: (-row.idle_hours, row.instance_type))
