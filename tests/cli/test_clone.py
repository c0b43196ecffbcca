"""Sending a run again: the code as it was then."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.local


def test_a_clone_has_the_code_of_then_though_all_of_it_has_changed_since(hpj, home):
    (home.work / "main.py").write_text(
        "import pathlib, sys, part\nprint(part.word, sys.argv[1:])\n"
        "here = pathlib.Path('part.py'); here.unlink(); here.write_text('word = \"spoilt\"')\n"
    )
    (home.work / "part.py").write_text("word = 'then'\n")
    hpj("submit", "main.py", "--name", "old", "--env", "A=1", "--wait", "--", "x").ok()
    old = hpj("show", "last", "--json").ok().json
    for name in ("main.py", "part.py"):
        (home.work / name).unlink()

    done = hpj("clone", "last", "--follow").ok()
    assert done.out == "0|then ['x']\n"
    new = hpj("show", "last", "--json").ok().json
    assert new["run_id"] != old["run_id"]
    assert new["name"] == "old"
    assert new["spec"] == old["spec"]


def test_options_and_arguments_go_over_the_old_ones(hpj, home):
    hpj("submit", "-c", 'echo "$A $B $1"', "--env", "A=1", "--env", "B=2", "--wait", "--", "x").ok()
    done = hpj("clone", "last", "--env", "A=3", "--name", "again", "--follow", "--", "y").ok()
    assert done.out == "0|3 2 y\n"
    assert hpj("show", "last", "--json").ok().json["name"] == "again"


def test_one_failed_child_of_an_array_is_sent_again_alone(hpj):
    command = 'test "$HYPERPOD_ARRAY_INDEX" != 1'
    hpj("submit", "-c", command, "--array", "0-2", "--run-id", "many", "--wait")
    done = hpj("clone", "many.1", "--wait", "--json")
    assert done.code == 1
    assert (done.json["children"], done.json["run_id"] != "many") == ({"failed": 1}, True)


def test_the_nearest_way_out_when_code_is_gone(hpj, home):
    (home.work / "main.py").write_text("import os; os.remove('main.py')\n")
    hpj("submit", "main.py", "--no-project-files", "--wait").ok()
    hpj("clone", "last", "--wait").ok()  # the content store still has it
    for stored in home.partition.glob(".hyperpod/code/??/*"):
        stored.unlink()
    told = hpj("clone", "last", "--json")
    assert (told.code, told.error["code"]) == (2, "code_gone")
    assert "main.py" in told.error["message"]


def test_a_dry_run_sends_nothing(hpj):
    hpj("submit", "-c", "true", "--run-id", "one", "--wait").ok()
    shown = hpj("clone", "one", "--nodes", "2", "--dry-run", "--json").ok().json
    assert shown["plan"]["nodes"] == 2
    assert len(hpj("runs", "--json").ok().json["runs"]) == 1


def test_wrong_options_are_told_by_their_names(hpj):
    hpj("submit", "-c", "true", "--run-id", "one", "--wait").ok()
    told = hpj("clone", "one", "--nodes", "0", "--json")
    assert told.code == 2
    assert told.error["message"].startswith("--nodes: ")
    assert hpj("clone", "one", "--cells", "1").code == 2


def test_a_spec_with_options_that_have_gone_is_shown_and_cloned_but_not_submitted(hpj, home):
    hpj("submit", "-c", "true", "--run-id", "old", "--wait").ok()
    (file,) = home.partition.glob("**/old/spec.json")
    spec = json.loads(file.read_text())
    spec["mlflow"]["log_numbers"] = True
    file.write_text(json.dumps(spec))
    shown = hpj("show", "old", "--json").ok().json
    assert "log_numbers" not in shown["spec"]["mlflow"]
    assert [run["name"] for run in hpj("runs", "--json").ok().json["runs"]] == [shown["name"]]
    hpj("clone", "old", "--wait").ok()
    (home.work / "spec.json").write_text(json.dumps(spec))
    told = hpj("submit", "--spec", "spec.json", "--json")
    assert (told.code, told.error["code"]) == (2, "invalid_spec")
    assert "unknown field 'log_numbers'" in told.error["message"]
    told = hpj("submit", "-c", "true", "--log-numbers", "--json")
    assert "--log-numbers" in told.error["message"]
