"""On-demand prices of HyperPod's instances, from the AWS Price List.

Sources:
    - HyperPod's instances are billed under the service code ``AmazonSageMaker``, with usage types such as ``USE1-Cluster:ml.p5.48xlarge`` (AWS, "AI on
      SageMaker HyperPod", Cost Allocation from CUR).
    - Their products have the attributes ``component`` = ``Cluster`` and ``regionCode``, and prices per unit ``Hrs``; products of reserved and spot
      capacity have other usage types (published offer file of AmazonSageMaker in us-east-1, 2026-09-16).
    - The API has endpoints in four regions only, each with the prices of all regions of its partition (botocore's endpoints; AWS, "Using the AWS Price
      List Query API"). Requests are free.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from hyperpod_jlab.core.cost import Price
from hyperpod_jlab.core.errors import DeniedError, Error, HyperpodError, UnreachableError
from hyperpod_jlab.storage.cache_file import read_cache, write_cache

if TYPE_CHECKING:
    from hyperpod_jlab.aws.session import Aws

SERVICE_CODE = "AmazonSageMaker"

_FILE = "price-list.json"
_TTL_S = 86400.0
"""Seconds for which a region's list is kept."""

_PROBLEM_TTL_S = {"missing_right": 3600.0, "aws_unreachable": 600.0}
"""Seconds for which it is kept that AWS did not answer, by the error's code."""

_USAGE_TYPE = re.compile(r"(?:[A-Z0-9]+-)?Cluster:(ml\..+)")


def price_list_currency(region: str) -> str:
    """The currency of the Price List for a region."""
    return "CNY" if region.startswith("cn-") else "USD"


def price_list_region(region: str) -> str | None:
    """The region of the Price List's endpoint for the prices of a region; None if its partition has none."""
    if region.startswith("cn-"):
        return "cn-northwest-1"
    if re.match(r"us-gov|us-iso|eu-isoe|eusc", region):
        return None
    by_continent = {"eu": "eu-central-1", "ap": "ap-south-1"}
    return by_continent.get(region.partition("-")[0], "us-east-1")


@dataclass
class _RegionList:
    """The prices of a region: amounts and the times from which they hold (Unix seconds) by instance type, and why types have none."""

    read_at: float
    prices: dict[str, list[tuple[float, float | None]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    problem: Error | None = None

    @property
    def is_fresh(self) -> bool:
        ttl = _TTL_S if self.problem is None else _PROBLEM_TTL_S.get(self.problem.code, 0.0)
        return 0 <= time.time() - self.read_at < ttl


@cache
def _kind() -> TypeAdapter[dict[str, _RegionList]]:
    return TypeAdapter(dict[str, _RegionList])


async def list_prices(
    aws: Aws, region: str, instance_types: Sequence[str], notes: list[str] | None = None, *, currency: str | None = None
) -> dict[str, list[Price]]:
    """The on-demand prices of an instance hour in a HyperPod cluster, the oldest first; types without a sure price are left out.

    A price holds from its start only if it is in the future or there is an earlier price. The list of a region is kept for a day.

    Args:
        aws: AWS, in any region of the same partition.
        region: The cluster's region.
        instance_types: The types, such as ``ml.p5.48xlarge``.
        notes: Gets a sentence for each type that is left out.
        currency: The currency of all other amounts; the list is not used if it has another one. Default: that of the list.

    Raises:
        HyperpodError: See `aws.errors`. A denied request is repeated after an hour.
    """
    notes = [] if notes is None else notes
    asked = list(dict.fromkeys(name for name in instance_types if name.startswith("ml.")))
    endpoint = price_list_region(region)
    if not asked:
        return {}
    if currency not in {None, price_list_currency(region)}:
        notes.append(
            f"the AWS Price List is in {price_list_currency(region)}, so it is not used with the currency {currency} of the configuration"
        )
        return {}
    if endpoint is None:
        notes.append(f"the AWS Price List cannot be asked in the partition of {region}")
        return {}
    listed = await _region_list(aws.at(endpoint), region)
    for name in asked:
        if name not in listed.prices:
            missing = f"the AWS Price List has no price of {name} in {region}"
            notes.append(listed.notes.get(name, missing))
    return {
        name: [Price(name, price, "price_list", since) for price, since in listed.prices[name]]
        for name in asked
        if name in listed.prices
    }


def cached_prices(instance_types: Sequence[str], currency: str) -> dict[str, list[Price]]:
    """The prices that the cache has, if it is sure of which region they are. Asks nothing, and does not load boto3. May block."""
    cached = read_cache(_FILE, _kind()) or {}
    if len(cached) != 1:
        return {}
    ((region, listed),) = cached.items()
    if price_list_currency(region) != currency:
        return {}
    return {
        name: [Price(name, price, "price_list", since) for price, since in listed.prices[name]]
        for name in instance_types
        if name in listed.prices
    }


async def _region_list(aws: Aws, region: str) -> _RegionList:
    """The list of a region, from the cache or from AWS.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    cached = await asyncio.to_thread(read_cache, _FILE, _kind()) or {}
    listed = cached.get(region)
    if listed is None or not listed.is_fresh:
        try:
            listed = await _read(aws, region)
        except HyperpodError as error:
            if error.code not in _PROBLEM_TTL_S:
                raise
            listed = _RegionList(time.time(), problem=error.shape)
        await asyncio.to_thread(write_cache, _FILE, _kind(), {**cached, region: listed})
    if (problem := listed.problem) is not None:
        kind = DeniedError if problem.code == "missing_right" else UnreachableError
        raise kind(problem.message, code=problem.code, hint=problem.hint, detail=problem.detail)
    return listed


async def _read(aws: Aws, region: str) -> _RegionList:
    filters = [
        {"Type": "TERM_MATCH", "Field": name, "Value": value}
        for name, value in (("regionCode", region), ("component", "Cluster"))
    ]
    products = [
        text
        async for page in aws.pages("pricing", "GetProducts", ServiceCode=SERVICE_CODE, Filters=filters)
        for text in page["PriceList"]
    ]
    return await asyncio.to_thread(_parse, products, region, time.time())


# --------------------------------------------------------------------------------------------------
# The documents of the Price List (AWS, "Reading an offer file").


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class _Dimension(_Part):
    unit: str
    price_per_unit: dict[str, FiniteFloat]


class _Term(_Part):
    effective_date: datetime
    price_dimensions: dict[str, _Dimension]


class _Terms(_Part):
    on_demand: dict[str, _Term] = Field({}, alias="OnDemand")


class _Attributes(_Part):
    usagetype: str
    region_code: str | None = None


class _Product(_Part):
    attributes: _Attributes


class _Item(_Part):
    product: _Product
    terms: _Terms = _Terms()


def _parse(products: Iterable[str], region: str, now: float) -> _RegionList:
    """The prices in documents of products. A type with several products, prices or units is left out: which one is billed would be a guess."""
    found = _RegionList(now)
    for text in products:
        try:
            item = _Item.model_validate_json(text)
        except ValidationError:  # no product of an instance
            continue
        attributes = item.product.attributes
        match = _USAGE_TYPE.fullmatch(attributes.usagetype)
        if match is None or attributes.region_code not in {None, region}:
            continue
        name = match[1]
        prices = _prices(item.terms.on_demand.values(), price_list_currency(region), now)
        if name in found.prices and found.prices[name] != prices:
            found.notes[name] = (
                f"the AWS Price List has several products for {name} in {region}, so its price is not used"
            )
        elif prices is None:
            found.notes[name] = f"the AWS Price List has no single price per hour for {name} in {region}"
        else:
            found.prices[name] = prices
    for name in found.notes:
        found.prices.pop(name, None)
    return found


def _prices(terms: Iterable[_Term], currency: str, now: float) -> list[tuple[float, float | None]] | None:
    """Amounts with the times from which they hold, the oldest first; None if they are not plain prices per hour."""
    prices: list[tuple[float, float | None]] = []
    for term in sorted(terms, key=lambda one: one.effective_date):
        dimensions = list(term.price_dimensions.values())
        if len(dimensions) != 1 or dimensions[0].unit != "Hrs":
            return None
        amount = dimensions[0].price_per_unit.get(currency)
        if amount is None or amount <= 0:
            return None
        since = term.effective_date.timestamp()
        prices.append((amount, since if prices or since > now else None))
    return prices or None
