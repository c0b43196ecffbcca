"""Sending things: what is sent, what is printed, and what the exit code says."""

from __future__ import annotations

import json
import re

import pytest

from hyperpod_jlab.core.options import spec_options
from hyperpod_jlab.core.spec import JobSpec

from .conftest import write_notebook

pytestmark = pytest.mark.local

RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-z]{6}\n")


def test_every_option_of_the_spec_is_an_option_of_submit(hpj):
    shown = hpj("submit", "--help").ok().out
    for entry in spec_options(JobSpec):
        assert f" {entry.option.flag.split('/')[0]} " in shown
        assert entry.help.split()[0] in shown


def test_prints_the_run_id_alone(home):
    sent = home.process("submit", "-c", "true").ok()
    assert RUN_ID.fullmatch(sent.out)
    assert sent.err == ""


def test_json_prints_one_run(hpj):
    run = hpj("submit", "-c", "true", "--name", "quick", "--json").ok().json
    assert run["name"] == "quick"
    assert run["state"] in {"submitting", "waiting", "running", "succeeded"}
    assert {"run_id", "cluster", "orchestrator", "user", "queue", "reason", "reason_code"} <= run.keys()
    assert {"exit_code", "submitted_at", "started_at", "ended_at", "scheduler_id"} <= run.keys()
    assert {"parent", "bundle", "attempts"} <= run.keys()


def test_follow_prints_the_logs_and_the_last_word(home):
    done = home.process("submit", "-c", "echo one; echo two >&2", "--follow").ok()
    assert done.out == "0|one\n0|two\n"
    first, last = done.err.splitlines()
    assert last.startswith(f"{first} succeeded after ")


def test_follow_of_a_failure_names_the_rank_and_where_its_traceback_is(hpj, home):
    write_notebook(home.work / "n.ipynb", "import os", "x = 1\nassert os.environ['RANK'] == '0', 'not me'")
    words = ("submit", "n.ipynb", "--processes-per-node", "2", "--launcher", "python", "--follow")
    done = hpj(*words)
    assert done.code == 1
    assert "1|AssertionError: not me" in done.out
    assert "rank 1 raised AssertionError in cell 2 line 2: not me" in done.err
    assert "hint: rank 1 failed first; its traceback: hpj show " in done.err


def test_follow_with_json_gives_log_lines_then_the_run_then_the_error(hpj):
    done = hpj("submit", "-c", "echo a; exit 3", "--follow", "--json")
    assert done.code == 1
    line, run = map(json.loads, done.out.splitlines())
    assert line.keys() == {"attempt", "node", "rank", "time", "line", "cursor"}
    assert (line["rank"], line["line"]) == (0, "a")
    assert (run["state"], run["exit_code"]) == ("failed", 3)
    assert done.error["code"] == "run_failed"
    assert done.error["detail"]["run_id"] == run["run_id"] == done.err.splitlines()[0]


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("exit 7", 1)])
def test_wait_tells_the_id_at_once_and_exits_by_the_end(home, command, code):
    done = home.process("submit", "-c", command, "--wait")
    assert done.code == code
    assert RUN_ID.fullmatch(done.out)
    assert done.err.startswith(done.out)


def test_arguments_behind_the_dashes_arrive_as_they_are(hpj, home):
    (home.work / "a.py").write_text("import sys; print(sys.argv[1:])")
    words = ["--json", "a b", "--", "-c", "", "$HOME", "ü"]
    done = hpj("submit", "a.py", "--follow", "--no-project-files", "--", *words).ok()
    assert done.out == f"0|{words}\n"


def test_variables_arrive_and_nothing_of_the_own_environment_does(hpj, monkeypatch):
    monkeypatch.setenv("MINE", "here")
    command = 'echo "$A/$B/${MINE-none}"'
    sent = hpj("submit", "-c", command, "--env", "A=x=y z", "--env", "B=", "--follow").ok()
    assert sent.out == "0|x=y z//none\n"


def test_a_secret_arrives_and_is_shown_nowhere(hpj, home, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "very-secret-word")
    done = hpj("submit", "-c", "echo ${#HF_TOKEN}", "--secret", "HF_TOKEN", "--follow").ok()
    assert done.out == "0|16\n"
    assert "very-secret-word" not in hpj("submit", "-c", "true", "--secret", "HF_TOKEN", "--dry-run").out
    assert "very-secret-word" not in hpj("show", "last", "--json").ok().out
    texts = [path.read_bytes() for path in home.partition.rglob("*") if path.is_file()]
    assert not any(b"very-secret-word" in text for text in texts)


def test_options_go_over_the_spec_file(hpj, home):
    spec = {"source": {"kind": "command", "command": "echo $A $1"}, "name": "filed", "args": ["old"]}
    spec["environment"] = {"variables": {"A": "1"}}
    (home.work / "run.json").write_text(json.dumps(spec))
    (home.work / "run.toml").write_text(
        'name = "filed"\nargs = ["old"]\n[source]\nkind = "command"\ncommand = "echo $A $1"\n'
        "[environment.variables]\nA = '1'\n"
    )
    for name in ("run.json", "run.toml"):
        done = hpj("submit", "--spec", name, "--follow", "--json").ok()
        assert json.loads(done.out.splitlines()[0])["line"] == "1 old"
        assert json.loads(done.out.splitlines()[1])["name"] == "filed"
    over = hpj("submit", "--spec", "run.toml", "--env", "A=2", "--follow", "--", "new").ok()
    assert over.out == "0|2 new\n"


def test_the_same_id_again_is_the_same_run_and_with_another_spec_refused(hpj):
    words = ("submit", "-c", "true", "--run-id", "mine-1")
    assert hpj(*words).ok().out == "mine-1\n"
    assert hpj(*words).ok().out == "mine-1\n"
    assert len(hpj("runs", "--json").ok().json["runs"]) == 1
    other = hpj("submit", "-c", "false", "--run-id", "mine-1", "--json")
    assert (other.code, other.error["code"]) == (2, "run_id_taken")
    assert len(hpj("runs", "--json").ok().json["runs"]) == 1


def test_a_dry_run_shows_all_and_sends_nothing(hpj, home):
    write_notebook(home.work / "n.ipynb", "x = 1", "%time x\n!ls", ("print(x)", ["t"]))
    shown = hpj("submit", "n.ipynb", "--cells", "1-2", "--dry-run").ok()
    for word in ("local.json", '"processes_per_node": 1', "x = 1", "note: ", "!ls"):
        assert word in shown.out
    assert "print(x)" not in shown.out
    assert home.bundles() == []

    document = hpj("submit", "n.ipynb", "--tag", "t", "--dry-run", "--json").ok().json
    assert json.loads(document["rendered"])["launcher"] == "python"
    assert [part["text"] for part in document["parts"]] == ["print(x)"]
    for finding in document["findings"]:
        assert finding.keys() == {"level", "code", "message", "hint", "field", "fixes"}
    assert home.bundles() == []


def test_a_dry_run_with_an_error_shows_it_and_exits_with_2(hpj):
    words = ("submit", "-c", "true", "--nodes", "65", "--gpus-per-node", "9", "--dry-run")
    shown = hpj(*words, "--json")
    assert shown.code == 2
    codes = {found["code"]: found for found in shown.json["findings"]}
    assert {"too_many_nodes", "not_enough_gpus"} <= codes.keys()
    assert codes["too_many_nodes"]["level"] == "error"
    assert shown.json["rendered"]
    assert shown.error["code"] in codes
    plain = hpj(*words)
    assert plain.code == 2
    assert "error: the local cluster simulates at most 64 nodes, not 65" in plain.out
    assert plain.err == "error: the run would be rejected: see the findings of the dry run\n"


def test_a_variable_that_looks_like_a_secret_is_warned_of(hpj):
    sent = hpj("submit", "-c", "true", "--env", "HF_TOKEN=hf_abcdefghijklmnopqrstuvwx").ok()
    assert "warning: " in sent.err
    assert "HF_TOKEN" in sent.err
    assert "hf_abc" not in sent.err


def test_an_array_is_waited_for_as_one_run(hpj):
    words = ("submit", "-c", "exit $HYPERPOD_ARRAY_INDEX", "--array", "0-1", "--wait", "--json")
    done = hpj(*words)
    assert done.code == 1
    assert done.json["children"] == {"succeeded": 1, "failed": 1}
    run_id = done.json["run_id"]
    assert hpj("show", f"{run_id}.0", "--json").ok().json["state"] == "succeeded"
    shown = hpj("show", run_id).ok().out
    assert f"{run_id}.1" in shown
    assert hpj("logs", run_id, "--json").ok().out == ""


def test_slurms_name_of_the_time_limit_is_accepted_but_not_in_the_help(hpj):
    document = hpj("submit", "-c", "true", "--time", "30m", "--dry-run", "--json").ok().json
    assert json.loads(document["rendered"])["time_limit"] == 1800
    assert "--time " not in hpj("submit", "--help").ok().out
