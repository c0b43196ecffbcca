"""The AWS Price List: products with their prices. It answers in four regions only, with the prices of all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.pages import page
from testbed.aws.replies import ApiError
from testbed.aws.state import Account

REGIONS = {"us-east-1", "eu-central-1", "ap-south-1", "cn-northwest-1"}

EXAMPLE = {"ml.p5.48xlarge": 98.32, "ml.c5.xlarge": 0.204, "ml.g5.8xlarge": 3.06}
"""Prices of instance hours."""


def product(
    instance_type: str,
    region: str,
    prices: Mapping[str, float],
    *,
    usage: str = "Cluster",
    unit: str = "Hrs",
    currency: str = "USD",
) -> dict[str, Any]:
    """A product as AWS publishes it; `prices` are amounts by the time from which they hold."""
    sku = f"{usage}{unit}{instance_type}".replace(".", "").upper()
    terms = {
        f"{sku}.{number}": {
            "effectiveDate": since,
            "priceDimensions": {
                f"{sku}.{number}.1": {
                    "unit": unit,
                    "beginRange": "0",
                    "endRange": "Inf",
                    "pricePerUnit": {currency: str(amount)},
                }
            },
        }
        for number, (since, amount) in enumerate(prices.items())
    }
    attributes = {
        "instanceType": f"{instance_type}-Cluster",
        "usagetype": f"USW2-{usage}:{instance_type}",
        "component": "Cluster",
        "regionCode": region,
    }
    return {
        "product": {"sku": sku, "productFamily": "ML Instance", "attributes": attributes},
        "serviceCode": "AmazonSageMaker",
        "terms": {"OnDemand": terms},
    }


def add_price_list(account: Account, region: str) -> None:
    """Publish the prices of `EXAMPLE` in a region."""
    account.products += [product(name, region, {"2026-01-01T00:00:00Z": price}) for name, price in EXAMPLE.items()]


def get_products(request: Request) -> dict[str, Any]:
    if request.region not in REGIONS:
        raise ApiError("TestbedHasNone", f"the Price List has no endpoint in {request.region}", 501)
    wanted = {one["Field"]: one["Value"] for one in request.given.get("Filters", ())}
    found = [
        one
        for one in request.account.products
        if one["serviceCode"] == request.given["ServiceCode"]
        and all(one["product"]["attributes"].get(k) == v for k, v in wanted.items())
    ]
    numbered = list(enumerate(found))
    shown, following = page(numbered, lambda one: [one[0]], request.given)
    texts = [json.dumps(one) for _, one in shown]
    return {"FormatVersion": "aws_v1", "PriceList": texts, **following}


SERVICE = Service("pricing", {"GetProducts": get_products}, lambda _: Resource(None, "*"))
