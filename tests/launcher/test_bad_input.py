"""Plans and arguments that make no sense."""

import json
import subprocess
import sys

import pytest


def test_a_newer_plan(bundle):
    bundle.plan("true", format=2)
    assert bundle.run().returncode == 86
    error = bundle.node()["error"]
    assert error["code"] == "newer_format"
    assert error["hint"]
    assert error["detail"] == {"format": 2, "known": 1}


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "1"}', '{"format": 1}'])
def test_a_plan_that_is_none(bundle, text):
    (bundle.folder / "launch.json").write_text(text)
    assert bundle.run().returncode == 86
    assert bundle.node()["error"]["code"] == "bad_plan"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("command", []),
        ("command", "true"),
        ("command", [1]),
        ("command", [{"python": False}]),
        ("launcher", "mpirun"),
        ("processes_per_node", 0),
        ("processes_per_node", True),
        ("secrets", ["../../etc/passwd"]),
        ("secrets", [1]),
        ("variables", {"A": 1}),
        ("stop_grace", -1),
        ("forward_signals", "maybe"),
        ("cpus", 0),
        ("cwd", 3),
    ],
)
def test_a_field_that_is_wrong_is_named(bundle, field, value):
    bundle.plan("true", **{field: value})
    assert bundle.run().returncode == 86
    error = bundle.node()["error"]
    assert error["code"] == "bad_plan"
    assert field in error["message"]


def test_no_plan_at_all(bundle):
    assert bundle.run().returncode == 86
    assert bundle.node()["error"]["code"] == "bad_plan"
    first = json.loads(bundle.node_log().splitlines()[0].partition(" ")[2])
    assert first["run_id"] is None


USUAL = ["node", "--master-addr=a", "--master-port=1", "--scheduler-id=1", "--incarnation=1"]


def test_fields_that_we_do_not_know_are_left_alone(bundle):
    bundle.plan("true", something_new={"a": 1})
    assert bundle.run().returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nod"],
        ["node"],
        ["node", "--node-rank=0"],
        ["rank"],
        [*USUAL, "--node-rank=2", "--nodes=2"],
        [*USUAL, "--node-rank=x", "--nodes=2"],
        [*USUAL, "--node-rank=0", "--nodes=1", "--attempt=2"],
        [*USUAL, "--node-rank=0", "--nodes=1", "--no-such-option"],
    ],
)
def test_arguments_that_are_wrong(bundle, words):
    bundle.plan("true")
    done = subprocess.run([sys.executable, bundle.folder / "launcher.py", *words], capture_output=True, timeout=30)
    assert done.returncode == 86
    assert done.stderr.startswith(b"hyperpod: ")
    assert b"Traceback" not in done.stderr
    assert not list((bundle.folder / "status").iterdir())


def test_text_that_no_program_can_be_given(bundle):
    bundle.plan("/bin/echo", "\ud800")
    assert bundle.run().returncode == 86
    assert bundle.node()["error"]["code"] == "start_failed"


def test_a_plan_for_another_number_of_nodes_is_noted(bundle):
    bundle.shell("echo $WORLD_SIZE", nodes=4)
    assert bundle.run(0, 1).returncode == 0
    assert bundle.rank_log() == b"1\n"
    assert "the plan is for 4 nodes, started on 1" in bundle.node_log()
