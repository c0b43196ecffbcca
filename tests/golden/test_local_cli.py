"""``hpj --json`` on the embedded cluster: runs, from submit to their logs."""

from __future__ import annotations

from typing import Any

import pytest

import hyperpod_jlab
from tests.cli.conftest import Home, Hpj, make_home, write_notebook
from tests.golden.asking import MACHINE, OF_A_RUN, asked, ended, told, until
from tests.golden.frozen import Golden

pytestmark = pytest.mark.local


@pytest.fixture(autouse=True)
def plain(no_aws: pytest.MonkeyPatch) -> None:
    """No AWS."""


@pytest.fixture
def home(tmp_path) -> Home:
    """A project with a script, a notebook and a file of its own, and one slot."""
    home = make_home(tmp_path, slots=1)
    (home.work / "train.py").write_text("import sys\nprint('args', sys.argv[1:])\n")
    (home.work / "data.txt").write_text("data\n")
    write_notebook(home.work / "n.ipynb", "x = 1", ("print(x)\n1 / (x - 1)", ["train"]), "print(3)")
    return home


SIZES = ("cpus", "memory", "accelerators", "accelerators_free", "gpus", "next")


def check(golden: Golden, name: str, document: Any, *varying: str) -> None:
    golden.check(f"local/{name}", document, varying={*OF_A_RUN, *varying}, also=MACHINE)


def double(number: int) -> int:
    """Runs on the cluster."""
    print("doubled")
    return 2 * number


def test_submit(golden: Golden, hpj: Hpj, home: Home) -> None:
    lines = (
        "submit -c 'echo hi' --run-id good --name quick --env A=1 --wait",
        "submit -c 'echo one; echo two; exit 3' --run-id bad --stop-grace 5 --follow",
        "submit -c 'echo hi' --run-id good --name quick --env A=1 --wait",
        "submit -c 'echo ho' --run-id good",
        "clone good --run-id again --name again --env B=2 --wait",
        "clone bad --run-id bad-again --dry-run",
    )
    check(golden, "submit", asked(hpj, *lines))


def test_a_run_that_has_just_been_sent(golden: Golden, hpj: Hpj) -> None:
    hpj("submit", "-c", "sleep 60", "--run-id", "long", "--nodes", "2", "--stop-grace", "1").ok()
    try:
        until(hpj, "long", "running")
        sent = told(hpj("submit", "-c", "true", "--run-id", "next", "--nodes", "2", "--json"))
        # It may not have been looked at yet.
        assert sent["out"][0]["state"] in {"submitting", "waiting"}
        racing = dict.fromkeys(("state", "reason", "reason_code"), "<racing>")
        check(golden, "sent", {**sent, "out": [{**sent["out"][0], **racing}]})
    finally:
        hpj("cancel", "long", "next").ok()


def test_dry_runs(golden: Golden, hpj: Hpj, home: Home) -> None:
    (home.work / "run.toml").write_text(
        'name = "filed"\nargs = ["old"]\n[source]\nkind = "command"\ncommand = "echo $A"\n'
        "[environment.variables]\nA = '1'\n"
    )
    same = "--run-id dry --dry-run"
    lines = (
        f"submit -c 'echo hi; echo ho' {same} --env A=1 --setup 'module load x' --nodes 2",
        f"submit train.py {same} --processes-per-node 2 --launcher python --time-limit 2h --max-restarts 1",
        f"submit train.py {same} --no-project-files --launcher python --array 0-3%2",
        f"submit n.ipynb {same} --cells 1,3 --queue local",
        f"submit n.ipynb {same} --tag train",
        f"submit --spec run.toml {same} --cpus 1 --memory 1G",
        f"submit -c true {same} --slurm constraint=a100 --image x:1 --account a --qos q",
        "demo --dry-run",
    )
    check(golden, "dry-run", asked(hpj, *lines), "size")


def test_show(golden: Golden, hpj: Hpj, home: Home) -> None:
    hpj("submit", "-c", "echo hi", "--run-id", "command").ok()
    two = ("--processes-per-node", "2", "--launcher", "python")
    hpj("submit", "train.py", "--run-id", "script", *two).ok()
    hpj("submit", "n.ipynb", "--run-id", "cells", "--cells", "1,3").ok()
    hpj("submit", "n.ipynb", "--run-id", "failed", "--tag", "train").ok()
    function = hyperpod_jlab.submit(double, args=(21,), run_id="function")
    assert function.result(60) == 42
    ended(hpj, "command", "script", "cells", "failed")
    shown = asked(hpj, "show command", "show script", "show cells", "show failed", "show function")
    check(golden, "show", shown, "traceback")
    lists = asked(
        hpj,
        "runs",
        "runs --state succeeded,failed --limit 2",
        "runs --cluster local --state failed",
        "runs --state running",
        "runs --all-users --limit 1",
    )
    check(golden, "runs", lists, "next")
    cursor = lists["runs --state succeeded,failed --limit 2"]["out"][0]["next"]
    rest = told(hpj("runs", "--limit", "2", "--cursor", cursor, "--state", "succeeded,failed", "--json"))
    check(golden, "runs-second-page", rest, "next")


def test_an_array(golden: Golden, hpj: Hpj) -> None:
    command = "echo child $HYPERPOD_ARRAY_INDEX; exit $HYPERPOD_ARRAY_INDEX"
    hpj("submit", "-c", command, "--array", "0-1%1", "--run-id", "array").ok()
    ended(hpj, "array")
    lines = ("show array", "show array.0", "show array.1", "logs array", "logs array.1", "runs")
    check(golden, "array", asked(hpj, *lines, "why array.0", "clone array.1 --dry-run --run-id x"))


def test_logs(golden: Golden, hpj: Hpj) -> None:
    command = "for i in 1 2 3 4; do echo line $i; done; printf 'ü\\033[31mred\\033[0m no end'"
    hpj("submit", "-c", command, "--run-id", "lines").ok()
    hpj("submit", "-c", "head -c 20000 /dev/zero | tr '\\0' x; echo", "--run-id", "wide").ok()
    hpj("submit", "-c", "echo rank $RANK; exit $RANK", "--run-id", "ranks", "--nodes", "2").ok()
    ended(hpj, "lines", "wide", "ranks")
    lines = (
        "logs lines",
        "logs lines --tail 2",
        "logs lines --grep '[23]'",
        "logs lines --node 0 --rank 0 --attempt 1",
        "logs lines --since 2001-01-01T00:00:00Z --tail 1",
        "logs lines --follow --tail 1",
        "logs lines --attempt 2",
        "logs lines --rank 7",
        "logs lines --node 3",
        "logs lines --cursor nonsense",
        "logs ranks --rank 1",
    )
    check(golden, "logs", asked(hpj, *lines))
    pieces = told(hpj("logs", "wide", "--json").ok())
    for piece in pieces["out"]:
        assert set(piece["line"]) == {"x"}
        piece["line"] = f"{len(piece['line'])} x"
    check(golden, "logs-pieces", pieces)


def test_what_waits_and_what_is_done_to_it(golden: Golden, hpj: Hpj) -> None:
    for name in ("first", "second"):
        words = ("--nodes", "2", "--stop-grace", "1", "--name", name)
        hpj("submit", "-c", "sleep 60", "--run-id", name, *words).ok()
        until(hpj, name, "running" if name == "first" else "waiting")
    hpj("submit", "-c", "true", "--run-id", "third", "--after", "second").ok()
    try:
        until(hpj, "second", "waiting", reason_code="slots")
        until(hpj, "third", "waiting", reason_code="dependency")
        told_of = asked(hpj, "why second", "why third", "why first", "runs --state waiting")
        check(golden, "waiting", told_of)
        looks = asked(hpj, "jobs", "jobs --limit 1", "queues", "clusters", "nodes --limit 1")
        check(golden, "busy", looks, *SIZES)
        done = asked(hpj, "hold second nobody first", "release first", "requeue second nobody")
        until(hpj, "second", "waiting", reason_code="held")
        done |= asked(hpj, "show second", "jobs", "why second")
        done |= asked(hpj, "change second --queue other", "change first --time-limit 1h")
        done |= asked(hpj, "change nobody first --time-limit 1h", "release second")
        done |= asked(hpj, "cancel --jobs 1 2", "hold --jobs x", "change second")
        until(hpj, "second", "waiting", reason_code="slots")
        check(golden, "actions", done)
    finally:
        hpj("cancel", "first", "second", "third").ok()
    ended(hpj, "first", "second", "third")
    check(golden, "cancelled", asked(hpj, "cancel first nobody second", "show first", "show second"))
