"""Prices of HyperPod's instances from the AWS Price List."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from hyperpod_jlab.aws.price_list import list_prices, price_list_region
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.cost import Price
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.storage.mounts import own_cache_folder
from testbed.aws.pricing import add_price_list, product
from tests.aws.conftest import REGION
from tests.aws.test_rest import made

ACTION = "pricing:GetProducts"
NOW = "2026-01-01T00:00:00Z"
P5 = "ml.p5.48xlarge"


@pytest.fixture
def products(endpoint, hpj):
    add_price_list(endpoint.account, REGION)
    return endpoint.account.products


def ask(*names, region=REGION):
    notes: list[str] = []
    found = asyncio.run(list_prices(Aws(REGION), region, names, notes))
    return found, notes


def cache_file():
    folder = own_cache_folder()
    assert folder is not None
    return folder / "price-list.json"


def age(seconds):
    """Make the cache older."""
    cached = json.loads(cache_file().read_text())
    for one in cached.values():
        one["read_at"] -= seconds
    cache_file().write_text(json.dumps(cached))


def test_prices_of_types(products, endpoint):
    found, notes = ask(P5, "ml.c5.xlarge", P5, "g5.8xlarge")
    assert found == {P5: [Price(P5, 98.32, "price_list")], "ml.c5.xlarge": [Price("ml.c5.xlarge", 0.204, "price_list")]}
    assert notes == []
    assert [call.region for call in endpoint.calls] == ["us-east-1"]


def test_a_region_is_asked_once_a_day_also_for_what_it_has_not(products, endpoint):
    assert ask(P5)[0].keys() == {P5}
    found, (note,) = ask("ml.x9.large")
    assert found == {}
    assert note == f"the AWS Price List has no price of ml.x9.large in {REGION}"
    assert made(endpoint, ACTION) == 1
    age(86401)
    ask(P5)
    assert made(endpoint, ACTION) == 2


@pytest.mark.parametrize("text", ["", "[]", "{", '{"us-west-2": {"read_at": "x"}}', "\0"])
def test_a_damaged_cache_is_ignored(products, endpoint, text):
    cache_file().write_text(text)
    assert ask(P5)[0][P5][0].price == 98.32
    assert ask(P5)[0][P5][0].price == 98.32
    assert made(endpoint, ACTION) == 1


def test_other_regions_and_other_capacity_are_not_taken(products, endpoint):
    products += [
        product("ml.p4d.24xlarge", "eu-west-1", {NOW: 31.0}),
        product("ml.p4d.24xlarge", REGION, {NOW: 1.0}, usage="ReservedCluster"),
        product("ml.p4d.24xlarge", REGION, {NOW: 2.0}, usage="Train"),
    ]
    assert ask("ml.p4d.24xlarge")[0] == {}
    assert ask("ml.p4d.24xlarge", region="eu-west-1")[0]["ml.p4d.24xlarge"][0].price == 31.0
    assert [call.region for call in endpoint.calls] == ["us-east-1", "eu-central-1"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ([product(P5, REGION, {NOW: 99.0})], "several products"),
        ([product("ml.a1.large", REGION, {NOW: 9.0}, unit="Quantity")], "no single price per hour"),
        ([product("ml.a1.large", REGION, {NOW: 9.0}, currency="EUR")], "no single price per hour"),
        ([product("ml.a1.large", REGION, {NOW: 0.0})], "no single price per hour"),
        ([product("ml.a1.large", REGION, {})], "no single price per hour"),
        ([product("ml.a1.large", REGION, {NOW: 1}), product("ml.a1.large", REGION, {})], "several products"),
    ],
)
def test_what_is_not_sure_is_left_out_with_a_note(products, more, reason):
    products += more
    name = more[0]["product"]["attributes"]["instanceType"].removesuffix("-Cluster")
    found, (note,) = ask(name)
    assert found == {}
    assert reason in note
    assert name in note


@pytest.mark.parametrize("price", ["inf", "-inf", "nan", "1e999", "much", None, [1]])
def test_what_is_no_number_is_no_price(products, price):
    products.append(product("ml.a1.large", REGION, {NOW: price}))
    found, (note,) = ask("ml.a1.large")
    assert found == {}
    assert "no price of ml.a1.large" in note


def test_a_price_that_will_change(products):
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(days=20)
    products.append(product("ml.a1.large", REGION, {soon.isoformat(): 2.0, NOW: 3.0}))
    products.append(product("ml.a1.xlarge", REGION, {soon.isoformat(): 5.0}))
    found, _ = ask("ml.a1.large", "ml.a1.xlarge")
    assert found["ml.a1.large"] == [
        Price("ml.a1.large", 3.0, "price_list"),
        Price("ml.a1.large", 2.0, "price_list", soon.timestamp()),
    ]
    assert found["ml.a1.xlarge"][0].valid_from == soon.timestamp()


def test_lists_come_in_pages(products, endpoint):
    products += [product(f"ml.a{number}.large", REGION, {NOW: 1.0}) for number in range(250)]
    assert ask("ml.a249.large")[0]["ml.a249.large"][0].price == 1.0
    assert made(endpoint, ACTION) == 3


def test_china_is_asked_in_china(products, endpoint):
    products.append(product(P5, "cn-north-1", {NOW: 700.0}, currency="CNY"))
    endpoint.account.partition = "aws-cn"
    assert ask(P5, region="cn-north-1")[0][P5][0].price == 700.0
    assert endpoint.calls[0].region == "cn-northwest-1"


def test_partitions_without_a_price_list(products, endpoint):
    assert price_list_region("us-gov-west-1") is None
    found, (note,) = ask(P5, region="us-gov-west-1")
    assert found == {}
    assert "cannot be asked" in note
    assert endpoint.calls == []


def test_a_denied_request_is_repeated_after_an_hour(products, endpoint):
    endpoint.faults.deny(ACTION)
    for _ in range(2):
        with pytest.raises(HyperpodError, match=f"permission {ACTION}") as caught:
            ask(P5)
        assert caught.value.code == "missing_right"
    assert made(endpoint, ACTION) == 1
    endpoint.faults.denied.clear()
    age(3601)
    assert ask(P5)[0][P5][0].price == 98.32


def test_a_throttled_request_is_not_remembered(products, endpoint):
    endpoint.faults.throttled[ACTION] = 4
    with pytest.raises(HyperpodError) as caught:
        ask(P5)
    assert caught.value.code == "aws_throttled"
    assert ask(P5)[0][P5][0].price == 98.32


def test_products_that_are_none_of_an_instance(products):
    products.append(
        {
            "serviceCode": "AmazonSageMaker",
            "product": {"attributes": {"regionCode": REGION, "component": "Cluster"}},
            "terms": {},
        }
    )
    assert ask(P5)[0].keys() == {P5}


def test_nothing_is_asked_without_instance_types(endpoint, hpj):
    assert ask("p5.48xlarge") == ({}, [])
    assert endpoint.calls == []


def test_the_list_is_not_used_with_another_currency(products, endpoint):
    notes: list[str] = []
    found = asyncio.run(list_prices(Aws(REGION), REGION, [P5], notes, currency="EUR"))
    assert found == {}
    assert notes == ["the AWS Price List is in USD, so it is not used with the currency EUR of the configuration"]
    assert endpoint.calls == []
    assert asyncio.run(list_prices(Aws(REGION), REGION, [P5], notes, currency="USD")).keys() == {P5}
