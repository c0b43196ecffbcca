"""What runs cost, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hyperpod_jlab.core.cost import Cost, Price
    from hyperpod_jlab.run.cost import Estimate, QuotaShare

_WITHOUT_CENTS = frozenset({"JPY", "KRW", "CLP", "ISK", "VND"})
_SOURCES = {"configuration": "the configuration", "price_list": "the AWS Price List"}


def money(amount: float, currency: str) -> str:
    """An amount with its currency, such as ``1,234.50 USD``; small ones with more digits."""
    digits = 0 if currency in _WITHOUT_CENTS else 2 if amount >= 0.1 or amount == 0 else 4
    return f"{amount:,.{digits}f} {currency}"


def format_hours(hours: float) -> str:
    """Hours with three significant digits, such as ``0.0117`` or ``12.5``."""
    if 0 < hours < 0.001:
        return "<0.001"
    return f"{hours:.3g}" if hours < 1000 else f"{hours:,.0f}"


def format_estimate(estimate: Estimate) -> str:
    """An estimate in one line."""
    parts = []
    if estimate.per_hour is not None:
        parts.append(f"{money(estimate.per_hour, estimate.currency)} an hour")
    if estimate.at_most is not None:
        parts.append(f"at most {money(estimate.at_most, estimate.currency)} by its time limit")
    if estimate.gpu_hours:
        parts.append(f"at most {gpu_hours(estimate.gpu_hours)}")
    elif estimate.node_hours is not None:
        parts.append(f"at most {node_hours(estimate.node_hours)}")
    elif estimate.gpus:
        parts.append("1 GPU" if estimate.gpus == 1 else f"{estimate.gpus} GPUs")
    parts += [_share(one) for one in estimate.shares]
    return ", ".join(parts) + sources(estimate.prices, estimate.currency) if parts else "not known"


def _share(one: QuotaShare) -> str:
    return f"{one.share:.0%} of the {one.unit} of {one.quota}"


def short_cost(cost: Cost) -> str:
    """A cost for a narrow column, such as ``12.50 USD`` or ``3.2 GPU-h``."""
    if cost.amount is not None:
        return money(cost.amount, cost.currency)
    if cost.gpu_hours:
        return f"{format_hours(cost.gpu_hours)} GPU-h"
    return f"{format_hours(cost.node_hours)} node-h"


def format_cost(cost: Cost) -> str:
    """A cost in one line."""
    hours = gpu_hours(cost.gpu_hours) if cost.gpu_hours else node_hours(cost.node_hours)
    if cost.amount is None:
        return hours
    return f"{money(cost.amount, cost.currency)}, {hours}{sources(cost.prices, cost.currency)}"


def format_wasted(cost: Cost) -> str | None:
    """What attempts cost that another one followed; None if nothing."""
    if not cost.wasted_node_hours:
        return None
    hours = node_hours(cost.wasted_node_hours)
    if cost.wasted_amount is None:
        return hours
    return f"{money(cost.wasted_amount, cost.currency)}, {hours}"


def node_hours(hours: float) -> str:
    """Hours of nodes with their unit, such as ``1 node-hour``."""
    return _with_unit(hours, "node-hour")


def gpu_hours(hours: float) -> str:
    """Hours of GPUs with their unit, such as ``1 GPU-hour``."""
    return _with_unit(hours, "GPU-hour")


def _with_unit(hours: float, unit: str) -> str:
    text = format_hours(hours)
    return f"{text} {unit}" if text == "1" else f"{text} {unit}s"


def sources(prices: Iterable[Price], currency: str) -> str:
    """The prices and where they are from, such as `` (98.32 USD an hour of ml.p5.48xlarge, from the configuration)``."""
    told = [
        f"{money(price.price, currency)} an hour of {price.instance_type or 'a node'}, from {_SOURCES[price.source]}"
        for price in prices
    ]
    return f" ({'; '.join(told)})" if told else ""
