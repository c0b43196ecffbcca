"""Wrong specs: each is refused with its field by name, in words, and with the nearest valid name."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from pydantic import BaseModel

from hyperpod_jlab.core.config import LocalCluster, Settings
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.fields import NOT_BOOL
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse

COMMAND = {"kind": "command", "command": "true"}


def refused(data) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        parse(JobSpec, data)
    error = caught.value
    assert (error.code, error.exit_code, error.status) == ("invalid_spec", 2, 400)
    json.dumps(error.to_dict())
    return error


def with_command(**more):
    return {"source": COMMAND, **more}


@pytest.mark.parametrize(
    ("data", "field", "hint"),
    [
        (with_command(nmae="x"), "nmae", "did you mean 'name'?"),
        (with_command(time_limt="2h"), "time_limt", "did you mean 'time_limit'?"),
        (with_command(resources={"node": 2}), "resources.node", "did you mean 'nodes'?"),
        (with_command(resources={"gpus": 2}), "resources.gpus", "did you mean 'cpus'?"),
        (with_command(resources={"accelerators": {"cout": 1}}), "resources.accelerators.cout", "did you mean 'count'?"),
        (with_command(environment={"varaibles": {}}), "environment.varaibles", "did you mean 'variables'?"),
        (with_command(files={"max_byte": 1}), "files.max_byte", "did you mean 'max_bytes'?"),
        (with_command(slurm={"flag": {}}), "slurm.flag", "did you mean 'flags'?"),
        (with_command(kubernetes={"namspace": "a"}), "kubernetes.namspace", "did you mean 'namespace'?"),
        (with_command(Nodes=2), "Nodes", "did you mean 'notebook'?"),
        ({"source": {**COMMAND, "comand": "x"}}, "source.comand", "did you mean 'command'?"),
        ({"source": {"kind": "notebook", "path": "a.ipynb", "cell": "1"}}, "source.cell", "did you mean 'cells'?"),
        ({"source": {"kind": "script", "path": "a.py", "pth": 1}}, "source.pth", "did you mean 'path'?"),
    ],
)  # fmt: skip
def test_an_unknown_field_is_named_with_the_nearest_valid_one(data, field, hint):
    error = refused(data)
    assert error.detail["field"] == field
    if "notebook" not in hint:
        assert error.hint == hint
    assert f"unknown field '{field.rsplit('.', maxsplit=1)[-1]}'" in error.message


def test_names_of_another_kind_of_source_are_not_offered():
    error = refused({"source": {"kind": "script", "path": "a.py", "cells": "1"}})
    assert error.detail["field"] == "source.cells"
    assert error.hint == "valid: kind, path"


def test_a_far_off_field_lists_the_valid_ones():
    assert refused(with_command(zzzz=1)).hint.startswith("valid: account, after, alarms")


def test_a_very_long_field_name_is_cut():
    error = refused(with_command(**{"x" * 10_000: 1}))
    assert len(error.message) < 300


@pytest.mark.parametrize(
    ("data", "field", "hint"),
    [
        (with_command(launcher="torchrn"), "launcher", "did you mean 'torchrun'?"),
        (with_command(launcher="zzz"), "launcher", "valid: none, python, torchrun"),
        (with_command(forward_signals="allways"), "forward_signals", "did you mean 'always'?"),
        (with_command(resources={"accelerators": {"kind": "gpus"}}), "resources.accelerators.kind", "did you mean 'gpu'?"),
        (with_command(kubernetes={"kind": "PytorchJob"}), "kubernetes.kind", "did you mean 'PyTorchJob'?"),
        ({"source": {"kind": "notbook", "path": "a"}}, "source", "did you mean 'notebook'?"),
        ({"source": {"kind": None}}, "source", "valid: command, function, native, notebook, script"),
    ],
)  # fmt: skip
def test_a_wrong_word_is_named_with_the_nearest_valid_one(data, field, hint):
    error = refused(data)
    assert (error.detail["field"], error.hint) == (field, hint)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "source"),
        ({"source": {"kind": "command"}}, "source.command"),
        ({"source": {"kind": "notebook"}}, "source.path"),
        ({"source": {"kind": "function", "module": "m"}}, "source.qualname"),
    ],
)
def test_what_is_missing_is_named(data, field):
    error = refused(data)
    assert error.message == f"{field}: is missing"
    assert error.detail["field"] == field


def test_a_source_without_its_kind():
    error = refused({"source": {"path": "a.py"}})
    assert error.detail["field"] == "source.kind"
    assert error.message == "source.kind: is missing"
    assert error.hint == "valid: command, function, native, notebook, script"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (with_command(name="x" * 10_000), "name"),
        (with_command(name="../x"), "name"),
        (with_command(name="a\n"), "name"),
        (with_command(name=""), "name"),
        (with_command(name="-a"), "name"),
        (with_command(name="$(reboot)"), "name"),
        (with_command(format=2), "format"),
        (with_command(resources={"nodes": 0}), "resources.nodes"),
        (with_command(resources={"nodes": -1}), "resources.nodes"),
        (with_command(resources={"nodes": 10**9}), "resources.nodes"),
        (with_command(resources={"nodes": "two"}), "resources.nodes"),
        (with_command(resources={"nodes": 1.5}), "resources.nodes"),
        (with_command(resources={"processes_per_node": 0}), "resources.processes_per_node"),
        (with_command(resources={"gpus_per_node": -1}), "resources.gpus_per_node"),
        (with_command(resources={"memory": "lots"}), "resources.memory"),
        (with_command(resources={"memory": "9" * 400 + "G"}), "resources.memory"),
        (with_command(resources={"gpus_per_node": 1, "accelerators": {"count": 2}}), "resources"),
        (with_command(time_limit="abc"), "time_limit"),
        (with_command(time_limit=0), "time_limit"),
        (with_command(time_limit=1.5), "time_limit"),
        (with_command(time_limit=True), "time_limit"),
        (with_command(max_restarts=101), "max_restarts"),
        (with_command(after=["../x"]), "after"),
        (with_command(after="abc"), "after"),
        (with_command(array="3-1"), "array"),
        (with_command(queue="a\nb"), "queue"),
        (with_command(queue=""), "queue"),
        (with_command(account="a\x1b[31m"), "account"),
        (with_command(args=["a\0b"]), "args.0"),
        (with_command(environment={"variables": {"A B": "1"}}), "environment.variables"),
        (with_command(environment={"variables": {"A\n": "1"}}), "environment.variables"),
        (with_command(environment={"variables": {"": "1"}}), "environment.variables"),
        (with_command(environment={"variables": {"A=B": "1"}}), "environment.variables"),
        (with_command(environment={"variables": {"1A": "1"}}), "environment.variables"),
        (with_command(environment={"variables": {"A": "x\0y"}}), "environment.variables"),
        (with_command(environment={"variables": {"HYPERPOD_RUN_ID": "x"}}), "environment.variables"),
        (with_command(environment={"variables": {"A": 1}}), "environment.variables.A"),
        (with_command(environment={"secrets": {"../A": ""}}), "environment.secrets"),
        (with_command(environment={"python": "a\nb"}), "environment.python"),
        (with_command(environment={"setup": "a\0b"}), "environment.setup"),
        (with_command(kubernetes={"namespace": "A_B"}), "kubernetes.namespace"),
        ({"source": {"kind": "command", "command": ""}}, "source.command"),
        ({"source": {"kind": "command", "command": " \t\n"}}, "source.command"),
        ({"source": {"kind": "command", "command": "a\0b"}}, "source.command"),
        ({"source": {"kind": "script", "path": "a\nb.py"}}, "source.path"),
        ({"source": {"kind": "script", "path": ""}}, "source.path"),
        ({"source": {"kind": "notebook", "path": "a", "cells": "0"}}, "source.cells"),
        ({"source": {"kind": "notebook", "path": "a", "cells": "3-1"}}, "source.cells"),
        ({"source": {"kind": "notebook", "path": "a", "cells": ""}}, "source.cells"),
        ({"source": {"kind": "notebook", "path": "a", "tag": ""}}, "source.tag"),
        ({"source": "a.py"}, "source"),
        (with_command(resources=[]), "resources"),
        (with_command(files=None), "files"),
        (with_command(name="\ud800"), "name"),
        (with_command(args=["\ud800"]), "args.0"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_at_its_field(data, field):
    error = refused(data)
    assert error.detail["field"] == field
    assert error.message.startswith(f"{field}: ")
    assert len(error.message) < 400
    assert "pydantic" not in error.message


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (with_command(resources={"nodes": "abc"}), "resources.nodes: must be a whole number, not 'abc'", "write a whole number, such as 2"),
        (with_command(resources={"nodes": "9" * 5000}), "resources.nodes: must be a whole number, not '" + "9" * 60 + "'", "write a whole number, such as 2"),
        (with_command(resources={"nodes": ""}), "resources.nodes: must be a whole number, not ''", "write a whole number, such as 2"),
        (with_command(resources={"nodes": 1.5}), "resources.nodes: must be a whole number, not 1.5", "write a whole number, such as 2"),
        (with_command(resources={"nodes": float("nan")}), "resources.nodes: must be a finite number, not nan", None),
        (with_command(resources={"nodes": []}), "resources.nodes: must be a whole number, not a list", "write a whole number, such as 2"),
        (with_command(resources={"nodes": None}), "resources.nodes: must be a whole number, not nothing", "write a whole number, such as 2"),
        (with_command(resources={"nodes": 0}), "resources.nodes: must be at least 1, not 0", None),
        (with_command(resources={"nodes": 10**30}), "resources.nodes: must be at most 10000, not so large a number", None),
        (with_command(resources={"nodes": "0"}), "resources.nodes: must be at least 1, not 0", None),
        (with_command(max_restarts=101), "max_restarts: must be at most 100, not 101", None),
        (with_command(auto_resume="perhaps"), "auto_resume: must be true or false, not 'perhaps'", "valid: false, true"),
        (with_command(auto_resume=[]), "auto_resume: must be true or false, not a list", "valid: false, true"),
        (with_command(queue=7), "queue: must be text, not 7", "put it in quotes"),
        (with_command(queue={}), "queue: must be text, not a table", "put it in quotes"),
        (with_command(queue=""), "queue: must not be empty", None),
        (with_command(queue="x" * 5000), "queue: must have at most 4096 characters", None),
        (with_command(args="a"), "args: must be a list, not 'a'", 'write a list, such as ["a", "b"]'),
        (with_command(args=[True]), "args.0: must be text, not true", "put it in quotes"),
        (with_command(environment={"variables": ["A=1"]}), "environment.variables: must be names with values, not a list", 'write names with values, such as {"NAME": "value"}'),
        (with_command(resources=3), "resources: must be an object with fields, not one value", None),
        (with_command(name="-a"), "name: must have at most 63 letters A-Z, digits, spaces and . _ -, and start with a letter or digit, not '-a'", None),
        (with_command(name="x" * 64), f"name: must have at most 63 letters A-Z, digits, spaces and . _ -, and start with a letter or digit, not '{'x' * 60}'", None),
        (with_command(resources={"accelerators": {"type": "a b"}}), "resources.accelerators.type: must have at most 63 letters A-Z, digits and . _ -, and start with a letter or digit, not 'a b'", None),
        (with_command(kubernetes={"namespace": "A"}), "kubernetes.namespace: must have at most 63 lower-case letters, digits and -, and start and end with a letter or digit, not 'A'", None),
        ({"source": {"kind": "command", "command": ""}}, "source.command: must not be empty", None),
        ({"source": {"kind": "command", "command": "  "}}, "source.command: must not be empty", None),
    ],
)  # fmt: skip
def test_the_words_are_our_own(data, message, hint):
    error = refused(data)
    assert (error.message, error.hint) == (message, hint)


@pytest.mark.parametrize(
    "place",
    [
        ("resources", "nodes"),
        ("resources", "processes_per_node"),
        ("resources", "gpus_per_node"),
        ("resources", "cpus"),
        ("resources", "efa"),
        ("resources", "memory"),
        ("resources", "accelerators", "count"),
        ("files", "max_bytes"),
        ("max_restarts",),
        ("time_limit",),
        ("stop_grace",),
    ],
)
@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_is_no_number(place, value):
    data = value
    for name in reversed(place):
        data = {name: data}
    error = refused(with_command(**data))
    shown = "true" if value else "false"
    assert error.message == f"{'.'.join(place)}: must be a whole number, not {shown}"


def numbers_of(model, path=()):
    """All whole numbers of a model, by their place."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        kinds = {inner, *get_args(inner)}
        if int in kinds:
            yield (*path, name), field
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from numbers_of(kind, (*path, name))


@pytest.mark.parametrize("model", [JobSpec, Settings, LocalCluster])
def test_no_number_of_a_model_was_forgotten(model):
    for place, field in numbers_of(model):
        strict = any(getattr(mark, "strict", False) for mark in field.metadata)
        assert strict or NOT_BOOL in field.metadata, place


def test_all_problems_are_told():
    error = refused(with_command(nmae="x", launcher="zzz", resources={"nodes": 0}))
    fields = [problem["field"] for problem in error.detail["problems"]]
    assert sorted(fields) == ["launcher", "nmae", "resources.nodes"]


@pytest.mark.parametrize(
    "data",
    [
        with_command(name="Train 1_b.c-d"),
        with_command(resources={"gpus_per_node": 2, "accelerators": {"count": 2}}),
        with_command(resources={"nodes": "2", "memory": "16G"}, time_limit="2h"),
        with_command(environment={"variables": {"A": "a\nb=c$(d)`e`", "_": ""}}),
        with_command(args=["", "-x", "a b", "$HOME", "ü", "\n"]),
        {"source": {"kind": "notebook", "path": "dir with space/ü.ipynb", "cells": "2-5,7"}},
    ],
)
def test_good_ones(data):
    spec = parse(JobSpec, data)
    assert parse(JobSpec, json.loads(spec.model_dump_json())) == spec


def test_a_spec_cannot_be_changed():
    spec = parse(JobSpec, with_command())
    with pytest.raises(ValueError, match="frozen"):
        spec.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("more", "launcher", "world"),
    [
        ({}, "none", 1),
        ({"resources": {"nodes": 2, "processes_per_node": 3}}, "none", 6),
        ({"launcher": "torchrun", "resources": {"gpus_per_node": 4}}, "torchrun", 4),
        ({"source": {"kind": "script", "path": "a.py"}}, "python", 1),
        ({"source": {"kind": "script", "path": "a.py"}, "resources": {"nodes": 2}}, "torchrun", 2),
        ({"source": {"kind": "script", "path": "a.py"}, "resources": {"gpus_per_node": 0}}, "python", 1),
    ],
)  # fmt: skip
def test_what_the_defaults_come_to(more, launcher, world):
    spec = parse(JobSpec, with_command(**more))
    assert (spec.resolved_launcher, spec.world_size) == (launcher, world)


@pytest.mark.parametrize(
    "part", [{"time_limit": "\uff11h"}, {"array": "0-\u0663"}, {"resources": {"memory": "\uff14G"}}]
)
def test_numbers_have_the_digits_0_to_9(part):
    with pytest.raises(InvalidInputError):
        parse(JobSpec, {"source": {"kind": "command", "command": "true"}, **part})


@pytest.mark.parametrize(
    "more",
    [
        {f"k{number}": 0 for number in range(30_000)},
        {"after": [0] * 30_000},
        {"environment": {"variables": {f"K{number}": 0 for number in range(30_000)}}},
        {"kubernetes": {"patch": {"a": [[{}] * 100] * 300}}},
        {"args": ["x"] * 9_000, "files": {"include": ["x"] * 12_000}},
    ],
)
def test_a_spec_with_very_many_values_is_refused_whole(more):
    assert refused(with_command(**more)).message == "more than 20000 values are not allowed here"


def test_an_error_has_at_most_a_hundred_problems():
    error = refused(with_command(after=[0] * 10_000))
    assert len(error.detail["problems"]) == 100


@pytest.mark.parametrize("text", ["1s " * 10**6, "9" * 10**6, " " * 10**6])
def test_a_long_text_is_no_duration(text):
    assert "is not a duration" in refused(with_command(time_limit=text)).message
