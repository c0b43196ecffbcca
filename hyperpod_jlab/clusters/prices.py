"""The prices of a cluster's nodes: from the configuration, else from the AWS Price List. Never a guess."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

from hyperpod_jlab.core.cost import Price, Prices
from hyperpod_jlab.core.errors import HyperpodError

if TYPE_CHECKING:
    from hyperpod_jlab.clusters.service import Clusters
    from hyperpod_jlab.core.config import CostConfig, DatedPrice, Settings


@dataclass(frozen=True)
class ClusterPrices:
    """The prices, and why some are missing, one sentence each."""

    prices: Prices
    notes: tuple[str, ...] = ()


async def read_prices(
    clusters: Clusters, settings: Settings, cluster: str, types: Collection[str | None], *, cached_only: bool = False
) -> ClusterPrices:
    """The prices of instance types on a configured cluster.

    Args:
        clusters: The clusters.
        settings: The configuration.
        cluster: Its name in the configuration.
        types: The instance types; None stands for nodes whose type is not known.
        cached_only: Whether AWS must not be asked.
    """
    cost, configured = settings.cost, settings.clusters[cluster]
    node_price = configured.cost.node_price
    if node_price is not None:
        price = Price(None, node_price, "configuration")
        return ClusterPrices(Prices(cost.currency, node_price=price))
    by_type: dict[str | None, Sequence[Price]] = {
        name: configured_prices(name, cost.prices[name]) for name in types if name in cost.prices
    }
    missing = sorted(name for name in types if name is not None and name not in by_type)
    notes: list[str] = []
    if missing and cost.price_list and configured.at_aws:
        listed, notes = await _listed(clusters, cost, cluster, missing, cached_only=cached_only)
        by_type.update(listed)
        missing = [name for name in missing if name not in listed]
    if missing:
        notes.append(f"no price is known for {', '.join(missing)}; set it below [cost.prices] in the configuration")
    elif None in types and configured.orchestrator != "local":
        notes.append(
            f"the instance types of some nodes are not known; set node_price below [clusters.{cluster}.cost] in the configuration"
        )
    return ClusterPrices(Prices(cost.currency, by_type), tuple(notes))


def configured_prices(name: str, prices: Sequence[DatedPrice]) -> list[Price]:
    """The prices of a type as the configuration has them, the oldest first."""
    found = [
        Price(
            name,
            one.price,
            "configuration",
            None if one.since is None else datetime.combine(one.since, time(), tzinfo=UTC).timestamp(),
        )
        for one in prices
    ]
    return sorted(found, key=lambda price: price.valid_from or 0.0)


async def _listed(
    clusters: Clusters, cost: CostConfig, cluster: str, types: Sequence[str], *, cached_only: bool
) -> tuple[dict[str, list[Price]], list[str]]:
    """The prices of the AWS Price List, less the discounts; and why there are none."""
    from hyperpod_jlab.aws.price_list import cached_prices, list_prices

    if cached_only:
        listed = await asyncio.to_thread(cached_prices, types, cost.currency)
        return _discounted(listed, cost), []
    from hyperpod_jlab.aws.session import Aws

    notes: list[str] = []
    try:
        resolved = await clusters.resolve(cluster)
        aws = Aws(resolved.region, fail_fast=True)
        region = await aws.region()
        listed = await list_prices(aws, region, types, notes, currency=cost.currency)
    except HyperpodError as error:
        return {}, [f"the AWS Price List was not read: {error.message}"]
    return _discounted(listed, cost), notes


def _discounted(listed: Mapping[str, Sequence[Price]], cost: CostConfig) -> dict[str, list[Price]]:
    """Listed prices, less the discounts of the configuration."""
    return {
        name: [replace(price, price=price.price * (1 - cost.discounts.get(name, 0.0) / 100)) for price in prices]
        for name, prices in listed.items()
    }
