"""Wrong input of every kind: exit code 2 or 3, one error that says what is wrong, and nothing left of it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import pytest

from .conftest import write_notebook


@dataclass(frozen=True)
class Bad:
    """A wrong call, and words that its error or hint must have."""

    words: list[str]
    says: tuple[str, ...]
    field: str | None = None
    exit_code: int = 2


def _submit(*words: str) -> list[str]:
    return ["submit", *words]


def _command(*words: str) -> list[str]:
    return ["submit", "-c", "true", *words]


CASES = {
    "option nobody knows": Bad(_command("--gpu-per-node", "1"), ("--gpus-per-node",)),
    "cell 13 of 12": Bad(_submit("twelve.ipynb", "--cells", "13"), ("12 code cells", "13"), "source.cells"),
    "cell 0": Bad(_submit("twelve.ipynb", "--cells", "0"), ("--cells", "numbered from 1"), "source.cells"),
    "range that runs backwards": Bad(_submit("twelve.ipynb", "--cells", "3-1"), ("--cells", "1-3"), "source.cells"),
    "no range": Bad(_submit("twelve.ipynb", "--cells", "two"), ("--cells", "two"), "source.cells"),
    "other digits": Bad(
        _submit("twelve.ipynb", "--cells", "\u0661-\u0662"), ("--cells", "is not a list such as"), "source.cells"
    ),
    "wide digits of an array": Bad(_command("--array", "0-\uff13"), ("--array",), "array"),
    "wide digits of a time": Bad(_command("--time-limit", "\uff13m"), ("--time-limit",), "time_limit"),
    "wide digits of nodes": Bad(_command("--nodes", "\uff12"), ("--nodes",), "resources.nodes"),
    "wide digits of ranks": Bad(["logs", "x", "--rank", "\uff10"], ("--rank",), "ranks"),
    "wide digits of an age": Bad(["clean", "--older", "\uff13d"], ("--older",), "older"),
    "tag nobody has": Bad(_submit("twelve.ipynb", "--tag", "trian"), ("trian", "train"), "source.tag"),
    "cells of a script": Bad(_submit("train.py", "--cells", "1"), ("--cells", "notebook"), "source.cells"),
    "no notebook": Bad(_submit("broken.ipynb"), ("broken.ipynb",), "source.path"),
    "empty file": Bad(_submit("empty.ipynb"), ("empty.ipynb",), "source.path"),
    "no such notebook": Bad(_submit("nobody.ipynb"), ("nobody.ipynb",), "source.path"),
    "no such script": Bad(_submit("nobody.py"), ("nobody.py",), "source.path"),
    "no kind of ours": Bad(_submit("data.csv"), ("data.csv", ".ipynb", ".py", "-c")),
    "shell script": Bad(_submit("plain.sh"), ("plain.sh", "-c 'bash plain.sh'")),
    "folder": Bad(_submit("."), (".ipynb",)),
    "nothing to run": Bad(_submit(), ("-c",)),
    "two things to run": Bad(_submit("train.py", "other.py"), ("other.py", "--")),
    "file and command": Bad(_command("train.py"), ("not both",)),
    "empty command": Bad(_submit("-c", ""), ("command", "-c", "empty")),
    "blank command": Bad(_submit("-c", "  \t"), ("command", "-c", "empty")),
    "no number of nodes": Bad(_command("--nodes", "abc"), ("--nodes", "whole number", "'abc'"), "resources.nodes"),
    "0 nodes": Bad(_command("--nodes", "0"), ("--nodes",), "resources.nodes"),
    "-1 nodes": Bad(_command("--nodes", "-1"), ("--nodes",), "resources.nodes"),
    "a milliard nodes": Bad(_command("--nodes", "1000000000"), ("--nodes",), "resources.nodes"),
    "too many nodes for this machine": Bad(_command("--nodes", "65"), ("64",), "resources.nodes"),
    "nodes in words": Bad(_command("--nodes", "two"), ("--nodes",), "resources.nodes"),
    "no time": Bad(_command("--time-limit", "abc"), ("--time-limit", "abc"), "time_limit"),
    "no time at all": Bad(_command("--time-limit", "0"), ("--time-limit",), "time_limit"),
    "no size": Bad(_command("--memory", "lots"), ("--memory", "lots"), "resources.memory"),
    "variable without a value": Bad(_command("--env", "PLAIN"), ("--env", "PLAIN", "="), "environment.variables"),
    "variable with a line break": Bad(_command("--env", "A\nB=1"), ("--env", "line break"), "environment.variables"),
    "no variable's name": Bad(_command("--env", "1A=2"), ("--env", "1A"), "environment.variables"),
    "name of ours": Bad(_command("--env", "HYPERPOD_RUN_ID=x"), ("HYPERPOD_",), "environment.variables"),
    "secret without a reference": Bad(_command("--secret", "A="), ("--secret",), "environment.secrets"),
    "secret without a value": Bad(_command("--secret", "NOBODY_HAS_IT"), ("NOBODY_HAS_IT",), "environment.secrets"),
    "long name": Bad(_command("--name", "n" * 10_000), ("--name",), "name"),
    "name that climbs": Bad(_command("--name", "../x"), ("--name", "../x"), "name"),
    "run id that climbs": Bad(_command("--run-id", "../x"), ("../x",), "run_id"),
    "run id with a slash": Bad(_command("--run-id", "a/b"), ("a/b",), "run_id"),
    "empty run id": Bad(_command("--run-id", ""), ("run id",), "run_id"),
    "long run id": Bad(_command("--run-id", "a" * 41), ("run id",), "run_id"),
    "no python there": Bad(_command("--python", "/nobody/python"), ("/nobody/python",), "environment.python"),
    "python that is none": Bad(_command("--python", "/bin/true"), ("/bin/true",), "environment.python"),
    "unknown cluster": Bad(_command("--cluster", "locla"), ("locla", "local"), "cluster", 3),
    "unknown launcher": Bad(_command("--launcher", "mpirun"), ("--launcher", "mpirun"), "launcher"),
    "image on this machine": Bad(_command("--image", "x:1"), ("containers",), "environment.image"),
    "array of nothing": Bad(_command("--array", "9-0"), ("--array",), "array"),
    "wait for no run id": Bad(_command("--after", "a/b"), ("--after", "a/b"), "after"),
    "GPUs that nobody has": Bad(_command("--gpus-per-node", "512"), ("512",), "resources.gpus_per_node"),
    "no spec file": Bad(_submit("--spec", "nobody.json"), ("nobody.json",), "spec"),
    "spec file that is none": Bad(_submit("--spec", "broken.toml"), ("broken.toml", "line 1"), "spec"),
    "spec with an unknown field": Bad(
        _submit("--spec", "typo.json"), ("typo.json", "nodse", "nodes"), "resources.nodse"
    ),
    "sbatch here": Bad(_submit("job.sbatch"), ("sbatch",), "source"),
    "manifest here": Bad(_submit("job.yaml"), ("manifest",), "source"),
    "log of a run with a slash": Bad(["logs", "a/b"], ("a/b",), "run_id"),
    "no ranks": Bad(["logs", "x", "--rank", "one"], ("--rank", "one"), "ranks"),
    "no duration": Bad(["logs", "x", "--since", "yesterday"], ("--since", "yesterday"), "since"),
    "list on an unknown cluster": Bad(["nodes", "--cluster", "locla"], ("local",), "cluster", 3),
    "a pipe for a script": Bad(_submit("pipe.py"), ("not a regular file",), "source.path"),
    "a pipe for a notebook": Bad(_submit("pipe.ipynb"), ("not a regular file",), "source.path"),
    "a device for a script": Bad(_submit("zero.py"), ("not a regular file",), "source.path"),
    "a pipe for a spec": Bad(["submit", "--spec", "pipe.py"], ("not a regular file",)),
    "an id that means another run": Bad(_command("--run-id", "last"), ("last", "newest"), "run_id"),
    "a variable of the launcher": Bad(_command("--env", "RANK=7"), ("RANK", "launcher")),
    "runs of an unknown cluster": Bad(["runs", "--cluster", "locla"], ("local",), "cluster", 3),
    "no cursor": Bad(["runs", "--cursor", "x"], ("cursor",), "cursor"),
    "admin": Bad(["admin", "plan"], ("admin",)),
    "clean without a word": Bad(["clean", "--older", "soon"], ("--older", "soon"), "older"),
}


@pytest.fixture
def files(home):
    """The files that the wrong calls name."""
    cells: list[Any] = [f"x = {number}" for number in range(11)]
    write_notebook(home.work / "twelve.ipynb", *cells, ("y = 1", ["train"]))
    (home.work / "broken.ipynb").write_text("no notebook at all")
    (home.work / "empty.ipynb").write_text("")
    (home.work / "train.py").write_text("print('hi')\n")
    (home.work / "data.csv").write_text("1,2\n")
    (home.work / "plain.sh").write_text("echo hi\n")
    (home.work / "job.sbatch").write_text("#!/bin/bash\n#SBATCH -N 1\n")
    (home.work / "job.yaml").write_text("kind: Job\n")
    for name in ("pipe.py", "pipe.ipynb"):
        os.mkfifo(home.work / name)
    (home.work / "zero.py").symlink_to("/dev/zero")
    (home.work / "broken.toml").write_text("nodes = = 1\n")
    source = {"kind": "command", "command": "true"}
    (home.work / "typo.json").write_text(json.dumps({"source": source, "resources": {"nodse": 2}}))


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_is_refused_with_one_json_line_and_leaves_nothing(hpj, home, files, case):
    told = hpj(*case.words, "--json")
    assert told.code == case.exit_code
    assert told.out == ""
    text = f"{told.error['message']} {told.error['hint']}"
    assert [word for word in case.says if word not in text] == []
    if case.field is not None:
        assert told.error["detail"]["field"] == case.field
    assert len(told.error["message"]) < 400
    assert home.bundles() == []
    assert hpj("runs", "--json").ok().json == {"runs": [], "next": None}


def test_is_refused_in_words_too(hpj, files):
    told = hpj("submit", "twelve.ipynb", "--cells", "13")
    assert told.code == 2
    assert told.err.startswith("error: twelve.ipynb has 12 code cells, but no cell 13\n")


@pytest.mark.parametrize("words", [["runs"], ["submit", "-c", "true"], ["clusters"], ["logs", "x"]])
def test_a_broken_configuration_is_told_with_line_and_column(hpj, home, words):
    home.config.write_text('[clusters.local]\nslots = 2\n\n[storage]\npath = "no end\n')
    told = hpj(*words, "--json")
    assert (told.code, told.error["code"]) == (2, "invalid_config")
    assert f"{home.config}, line 5, column" in told.error["message"]
    assert told.error["detail"]["line"] == 5
    assert told.error["detail"]["column"] > 1


def test_an_unknown_key_of_the_configuration_gets_the_nearest_name(hpj, home):
    home.config.write_text("[clusters.local]\nslotz = 2\n")
    told = hpj("runs", "--json")
    assert (told.code, told.error["code"]) == (2, "invalid_config")
    assert "slotz" in told.error["message"]
    assert told.error["hint"] == "did you mean 'slots'?"


def test_a_configuration_file_that_is_not_there_is_told(hpj, home):
    home.config.unlink()
    told = hpj("runs", "--json")
    assert (told.code, told.error["code"]) == (2, "invalid_config")
    assert str(home.config) in told.error["message"]


def test_no_bad_name_reaches_the_terminal_whole(hpj):
    told = hpj("submit", "-c", "true", "--name", "x" * 10_000)
    assert told.code == 2
    assert len(told.err) < 500
