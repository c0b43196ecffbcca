"""The wire format: what a class makes of itself as JSON, and what comes back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.core.wire import HIDDEN, As, Time, Wire, from_plain, iso_time, to_json, to_plain, wire_property
from hyperpod_jlab.server.openapi import document


@dataclass(frozen=True)
class Part:
    at: Time
    until: Time | None = None


@dataclass(frozen=True)
class Whole(Wire):
    name: str
    parts: tuple[Part, ...] = ()
    problem: HyperpodError | None = None
    secret: str = field(default="", metadata=HIDDEN)
    word: Annotated[str, As(int, len)] = ""

    @property
    @wire_property
    def first(self) -> Time | None:
        return self.parts[0].at if self.parts else None

    @property
    def not_shown(self) -> str:
        return self.secret


@dataclass(frozen=True)
class More(Whole):
    more: int = 0


NOT_BOOL = Whole("a", (Part(1.5), Part(2.0, 3.0)), NotFoundError("gone", hint="look"), "s", "four")
PLAIN = {
    "name": "a",
    "parts": [
        {"at": "1970-01-01T00:00:01.500Z", "until": None},
        {"at": "1970-01-01T00:00:02.000Z", "until": "1970-01-01T00:00:03.000Z"},
    ],
    "problem": {"code": "not_found", "message": "gone", "hint": "look", "detail": {}},
    "word": 4,
    "first": "1970-01-01T00:00:01.500Z",
}


def test_a_class_is_what_it_shows():
    assert to_plain(NOT_BOOL) == PLAIN
    assert json.loads(to_json(NOT_BOOL, Whole)) == PLAIN


def test_a_subclass_shows_more_and_as_its_base_the_same():
    more = More(**vars(NOT_BOOL), more=1)
    assert to_plain(more) == {**PLAIN, "more": 1}
    assert to_plain(more, Whole) == PLAIN
    assert to_plain([more], list[Whole]) == [PLAIN]


def test_plain_data_come_back():
    part = Part(1.5, 2.25)
    assert from_plain(Part, to_plain(part)) == part
    assert from_plain(Part, {"at": "1970-01-01T00:00:01.500Z", "newer": 1}) == Part(1.5)


@given(st.floats(min_value=-1e9, max_value=2e11))
def test_times_are_those_of_datetime(moment):
    text = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    assert iso_time(moment) == text.replace("+00:00", "Z")


@pytest.mark.parametrize("moment", [0.0, 0.9995, 0.9999996, 1e9 - 1e-7, 86_399.9999999, -0.25])
def test_times_beside_a_whole_second_are_those_of_datetime(moment):
    text = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    assert iso_time(moment) == text.replace("+00:00", "Z")


def test_half_a_character_is_written_as_its_escape():
    assert json.loads(to_json(Whole("\ud800"), Whole))["name"] == "\ud800"


def test_schemas_have_all_fields_and_what_they_mean():
    schemas = document()["components"]["schemas"]
    detail, cluster = schemas["ClusterDetail"], schemas["HyperpodCluster"]
    assert set(detail["required"]) == set(detail["properties"])
    assert {"cluster", "tags", "as_of"} <= set(detail["required"])
    assert set(cluster["required"]) == set(cluster["properties"])
    assert {"state", "target", "described_at"} <= set(cluster["required"])
    assert cluster["properties"]["created_at"]["description"] == "When it was created."
    assert not any("Attributes:" in schema.get("description", "") for schema in schemas.values())
    assert not any("__" in name for name in schemas)
