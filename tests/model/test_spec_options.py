"""One schema: what the faces read of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hyperpod_jlab.core.errors import nearest, nearest_hint
from hyperpod_jlab.core.options import (
    OPTIONS_FILE,
    dump_options,
    known_options,
    option_name,
    spec_options,
    to_spec_data,
)
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse

OPTIONS = list(spec_options(JobSpec))
IDS = [entry.option.flag for entry in OPTIONS]
SCHEMA = JobSpec.model_json_schema()


def at(path: tuple[str, ...]) -> dict[str, Any]:
    """The field's JSON schema."""
    found: list[dict[str, Any]] = [SCHEMA]
    for name in path:
        inner = [schema["properties"][name] for schema in found if name in schema.get("properties", {})]
        assert inner, f"{path} is not in the schema"
        found = [model for schema in inner for model in resolved(schema)] + inner
    return found[-1]


def resolved(schema: dict[str, Any]) -> list[dict[str, Any]]:
    references = re.findall(r"'\$ref': '#/\$defs/([^']+)'", str(schema))
    return [SCHEMA["$defs"][name] for name in references]


def test_the_list_that_the_command_line_reads_is_that_of_the_spec():
    assert list(known_options()) == OPTIONS
    stale = "the list of options is stale: run scripts/make_reference.py"
    assert OPTIONS_FILE.read_text(encoding="utf-8") == dump_options(JobSpec), stale


@pytest.mark.parametrize("entry", OPTIONS, ids=IDS)
def test_an_option_leads_to_its_field(entry):
    schema = at(entry.path)
    assert schema["x-option"]["flag"] == entry.option.flag
    assert schema["x-option"]["basic"] == entry.option.basic
    assert schema["description"]


@pytest.mark.parametrize("entry", OPTIONS, ids=IDS)
def test_an_option_says_what_it_does(entry):
    assert entry.help
    assert "\n" not in entry.help
    assert re.fullmatch(r"--[a-z][a-z-]*[a-z](/--no-[a-z-]+)?", entry.option.flag)


def test_no_two_options_share_a_flag_a_name_or_a_field():
    flags = [flag for entry in OPTIONS for flag in entry.option.flag.split("/")]
    assert len(set(flags)) == len(flags)
    names = [option_name(entry.option.flag) for entry in OPTIONS]
    assert len(set(names)) == len(names)
    assert len({entry.path for entry in OPTIONS}) == len(OPTIONS)


def test_the_options_of_the_contract_are_there():
    contract = (
        "cells tag name nodes gpus-per-node processes-per-node cpus memory launcher python image env"
        " secret queue account time-limit max-restarts after array"
    )
    flags = {flag for entry in OPTIONS for flag in entry.option.flag.split("/")}
    assert {f"--{name}" for name in contract.split()} <= flags


@pytest.mark.parametrize(
    ("flag", "kind", "choices", "repeat"),
    [
        ("--nodes", "int", (), ""),
        ("--memory", "text", (), ""),
        ("--time-limit", "text", (), ""),
        ("--launcher", "text", ("torchrun", "python", "none"), ""),
        ("--auto-resume/--no-auto-resume", "bool", (), ""),
        ("--env", "text", (), "map"),
        ("--secret", "text", (), "secrets"),
        ("--after", "text", (), "list"),
        ("--slurm", "text", (), "flags"),
    ],
)
def test_form_of_an_option(flag, kind, choices, repeat):
    entry = next(entry for entry in OPTIONS if entry.option.flag == flag)
    assert (entry.kind, entry.choices, entry.option.repeat) == (kind, choices, repeat)


def test_every_field_of_every_part_is_described():
    for name, model in {"JobSpec": SCHEMA, **SCHEMA["$defs"]}.items():
        assert model["description"], name
        for field, schema in model["properties"].items():
            if field != "kind" or "const" not in schema:
                assert schema.get("description"), f"{name}.{field}"


def test_option_values_land_in_their_fields():
    values = {"nodes": 2, "env": {"A": "b"}, "time_limit": "2h", "cells": "1", "nope": 1}
    data, unknown = to_spec_data(OPTIONS, values)
    assert unknown == ["nope"]
    assert data == {
        "resources": {"nodes": 2},
        "environment": {"variables": {"A": "b"}},
        "time_limit": "2h",
        "source": {"cells": "1"},
    }
    data["source"] |= {"kind": "notebook", "path": "a.ipynb"}
    assert parse(JobSpec, data).time_limit == 7200


@pytest.mark.parametrize(
    ("flag", "name"),
    [("--time-limit", "time_limit"), ("--auto-resume/--no-auto-resume", "auto_resume"), ("--env", "env")],
)  # fmt: skip
def test_names_in_python(flag, name):
    assert option_name(flag) == name


def test_nearest_word():
    assert nearest("LOKAL", ["local", "ml-slurm"]) == "local"
    assert nearest("zzz", ["local"]) is None
    assert nearest_hint("zzz", ["b", "a"]) == "valid: a, b"
    assert nearest_hint("PytorchJob", ["PyTorchJob", "Job"]) == "did you mean 'PyTorchJob'?"
