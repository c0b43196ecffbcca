"""Lists of runs, one run, and how a run is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Home, make_home

pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with three runs: two that succeeded, and in between one that failed."""
    home = make_home(tmp_path_factory.mktemp("runs"))
    for name, command in (("run-a", "true"), ("run-b", "exit 3"), ("other-c", "true")):
        home.process("submit", "-c", command, "--name", name, "--run-id", name, "--wait")
    return home


@pytest.fixture
def look(three, hpj, monkeypatch):
    """Call ``hpj`` in that home."""
    for name, value in three.environment.items():
        monkeypatch.setenv(name, value)
    return hpj


def _ids(result) -> list[str]:
    return [run["run_id"] for run in result.ok().json["runs"]]


def test_runs_are_listed_newest_first(look):
    assert _ids(look("runs", "--json")) == ["other-c", "run-b", "run-a"]
    assert look("runs", "--json").json["next"] is None
    lines = look("runs").ok().out.splitlines()
    assert lines[0].split()[:4] == ["RUN", "NAME", "CLUSTER", "STATE"]
    assert [line.split()[0] for line in lines[1:]] == ["other-c", "run-b", "run-a"]
    assert lines[2].endswith("exit code 3")


def test_a_run_has_its_newest_number_and_its_alarms(home, hpj):
    command = "echo step 1 loss 2.5; echo step 2 loss nan"
    hpj("submit", "-c", command, "--run-id", "numbers", "--wait").ok()
    hpj("submit", "-c", "true", "--run-id", "silent", "--wait").ok()
    head, silent, numbers = hpj("runs").ok().out.splitlines()
    column = head.index("NEWEST")
    assert numbers[column:].startswith("loss nan, alarm nan")
    assert silent[column:].split()[0] == "-"
    assert "metrics" not in hpj("runs", "--json").ok().json["runs"][0]


def test_runs_are_chosen_by_state_and_cluster(look):
    assert _ids(look("runs", "--state", "failed", "--json")) == ["run-b"]
    assert _ids(look("runs", "--state", "failed,running", "--json")) == ["run-b"]
    both = look("runs", "--state", "failed", "--state", "succeeded", "--cluster", "local", "--json")
    assert _ids(both) == ["other-c", "run-b", "run-a"]
    assert look("runs", "--state", "running").ok().err == "no runs\n"


def test_pages_follow_each_other(look):
    first = look("runs", "--limit", "2", "--json")
    assert _ids(first) == ["other-c", "run-b"]
    second = look("runs", "--limit", "2", "--cursor", first.json["next"], "--json")
    assert _ids(second) == ["run-a"]
    assert second.json["next"] is None


def test_json_times_are_iso_8601_utc(look):
    run = look("show", "run-b", "--json").ok().json
    for moment in (run["submitted_at"], run["started_at"], run["ended_at"]):
        assert moment.endswith("Z")
    (attempt,) = run["attempts"]
    assert (attempt["number"], attempt["state"], attempt["exit_code"]) == (1, "failed", 3)
    assert attempt["nodes"] == ["local-0"]


def test_show_tells_spec_and_paths_on_each_side(look, three):
    run = look("show", "run-b", "--json").ok().json
    assert run["spec"]["source"] == {"kind": "command", "command": "exit 3"}
    assert run["paths"]["bundle"] == {"here": run["bundle"], "there": run["bundle"]}
    assert run["bundle"].startswith(str(three.partition))
    text = look("show", "run-b").ok().out
    for word in ("run-b  failed", "exit code 3", "command: exit 3", run["bundle"], "ATTEMPT"):
        assert word in text


def test_show_tells_the_first_error_with_its_traceback(hpj, home):
    (home.work / "bad.py").write_text("def inner():\n    raise KeyError('lost')\ninner()\n")
    hpj("submit", "bad.py", "--wait")
    shown = hpj("show", "last").ok().out
    assert "first error: rank 0" in shown
    assert "KeyError: 'lost'" in shown
    assert "in inner" in shown


@pytest.mark.parametrize(("name", "found"), [("last", "other-c"), ("oth", "other-c"), ("a", "run-a")])
def test_a_run_may_be_named_by_a_part(look, name, found):
    assert look("show", name, "--json").ok().json["run_id"] == found


def test_a_part_that_means_several_runs_is_refused(look):
    told = look("show", "run", "--json")
    assert (told.code, told.error["code"]) == (2, "ambiguous_run")
    assert told.error["hint"] == "run-b, run-a"


def test_a_command_that_changes_a_run_wants_its_whole_name(look):
    told = look("cancel", "oth", "--json")
    assert (told.code, told.error["code"]) == (3, "no_such_run")


@pytest.mark.parametrize("command", ["show", "logs", "cancel", "why", "clone", "hold"])
def test_a_run_that_is_not_there_is_3(look, command):
    told = look(command, "nobody", "--json")
    assert (told.code, told.error["code"]) == (3, "no_such_run")


@pytest.mark.parametrize(("text", "code"), [("{", "damaged"), ('{"format": 99}', "newer_format"), ("", "damaged")])
def test_a_damaged_bundle_is_shown_as_such_and_the_others_still_listed(hpj, text, code):
    hpj("submit", "-c", "true", "--run-id", "good").ok()
    bad = hpj("submit", "-c", "true", "--run-id", "bad", "--wait", "--json").ok().json
    Path(bad["bundle"], "bundle.json").write_text(text)
    runs = {run["run_id"]: run for run in hpj("runs", "--all-users", "--json").ok().json["runs"]}
    assert runs["bad"]["state"] == "unknown"
    assert runs["bad"]["reason_code"] == code
    assert "good" in runs
    assert "bad" in hpj("runs", "--all-users").ok().out
    told = hpj("show", "bad", "--json")
    assert (told.code, told.error["code"]) == (2, code)
    assert hpj("logs", "bad", "--json").code == 2
    doctor = hpj("doctor", "--json")
    (check,) = [check for check in doctor.json["checks"] if check["name"] == "runs"]
    assert (check["level"], "bad" in check["evidence"]) == ("warn", True)


def test_lists_of_the_cluster(look):
    (cluster,) = look("clusters", "--json").ok().json["clusters"]
    assert (cluster["name"], cluster["state"], cluster["default"]) == ("local", "up", True)
    for name in ("nodes", "queues"):
        document = look(name, "--json").ok().json
        assert (len(document[name]), document["next"]) == (1, None)
        assert look(name).ok().out.splitlines()[1].split()[0]
    assert look("jobs", "--json").ok().json == {"jobs": [], "next": None}
    assert look("nodes", "--limit", "1", "--cursor", "1", "--json").ok().json["nodes"] == []


def test_a_terminal_and_a_pipe_show_the_same_table(look, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    shown = look("runs").ok().out
    assert "\x1b[32msucceeded\x1b[0m" in shown
    assert "\x1b[31mfailed" in shown
    monkeypatch.delenv("FORCE_COLOR")
    assert "\x1b" not in look("runs").ok().out


def test_json_lists_are_one_line_in_a_pipe(look):
    out = look("runs", "--json").ok().out
    assert out.count("\n") == 1
    json.loads(out)


def test_show_tells_what_an_ended_run_used(look):
    shown = look("show", "run-b").ok().out
    assert "of memory at its peak (from the records of the run)" in shown
    usage = look("show", "run-b", "--json").ok().json["usage"]
    assert (usage["source"], usage["exit_code"], usage["signal"]) == ("journal", 3, None)
