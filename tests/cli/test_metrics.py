"""Numbers of runs on the command line: curves in a terminal, tables, and what a filter finds."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from testbed.loopback import Handler, Loopback

from .conftest import Home
from .terminal import on_terminal

pytestmark = pytest.mark.local


def _write(home: Home, run_id: str, *records: dict[str, Any]) -> None:
    """Write the numbers that the launcher would have read."""
    (bundle,) = (one for one in home.bundles() if one.name == run_id)
    path = bundle / "logs" / "attempt-1" / "node-0.metrics.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records))


def _record(step: int, rank: int, **values: Any) -> dict[str, Any]:
    return {"time": 1000.0 + step, "rank": rank, "step": step, "values": values}


def _last_frame(shown: str) -> str:
    return shown.rpartition("\x1b[J")[2]


@pytest.mark.parametrize(("end", "words"), [("true", ["succeeded"]), ("exit 3", ["failed", "reason exit code 3"])])
def test_the_last_frame_of_a_watched_run_is_its_end(home, end, words):
    command = f"for i in 1 2 3 4; do echo step $i/4 loss 2.$i; sleep 0.6; done; {end}"
    home.process("submit", "-c", command, "--run-id", "short").ok()
    shown = on_terminal(home, "watch", "short")
    assert "short  running" in shown
    frame = _last_frame(shown)
    assert all(word in frame for word in words)
    assert "left" not in frame


def test_a_watched_run_of_many_ranks_shows_their_lowest_and_highest_value(home, hpj):
    hpj("submit", "-c", "true", "--run-id", "wide", "--wait").ok()
    _write(home, "wide", *(_record(5, rank, loss=2 + rank / 100) for rank in range(64)))
    assert "2 to 2.63 on 64 ranks" in hpj("watch", "wide").ok().out
    _write(home, "wide", _record(5, 0, loss=2.0))
    assert "ranks" not in hpj("watch", "wide").ok().out


def test_a_filter_that_finds_nothing_names_what_there_is(home, hpj):
    hpj("submit", "-c", "true", "--run-id", "two", "--wait").ok()
    assert hpj("metrics", "two", "--name", "nope").ok().err.startswith("no numbers in the output\n")
    _write(home, "two", *(_record(5, rank, loss=2.0, my_score=3.0) for rank in range(2)))
    for words, message, known in (
        (("--name", "nope"), "no number named nope", "loss, my_score"),
        (("--rank", "99"), "no numbers of rank 99", "0, 1"),
        (("--attempt", "5"), "no numbers of attempt 5", "1"),
    ):
        told = hpj("metrics", "two", *words, "--json")
        assert (told.code, told.error["code"]) == (3, "no_such_number")
        assert told.error["message"] == message
        assert told.error["hint"] == f"there are: {known}"
        hpj("metrics", "two", *words[:1], {"--name": "loss"}.get(words[0], "1")).ok()
    told = hpj("watch", "two", "--name", "nope")
    assert told.code == 3
    assert "there are: loss, my_score" in told.err


def test_a_run_that_waits_has_no_numbers_so_far(hpj):
    hpj("submit", "-c", "sleep 60", "--run-id", "long").ok()
    assert "no numbers in the output so far\n" in hpj("metrics", "long").ok().err
    hpj("cancel", "long").ok()


def _write_use(home: Home, run_id: str, ranks: int) -> None:
    """Write samples as the launcher does."""
    (bundle,) = (one for one in home.bundles() if one.name == run_id)
    used = [[rank, 1.0, 1e9] for rank in range(ranks)]
    lines: list[dict[str, Any]] = [{"format": 1, "cpus": 8, "memory": 1e10}]
    lines += [{"time": 1000.0 + t, "cpu": 2.0, "memory": 2e9, "ranks": used} for t in range(3)]
    path = bundle / "logs" / "attempt-1" / "node-0.resources.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))


def test_the_newest_values_have_no_range_and_what_is_used_is_of_the_chosen_ranks(home, hpj):
    hpj("submit", "-c", "true", "--run-id", "used", "--wait").ok()
    _write(home, "used", *(_record(step, 0, loss=4.0 - step) for step in range(3)))
    _write_use(home, "used", 64)
    whole = hpj("metrics", "used").ok().out
    assert "LOWEST" in whole.partition("USED")[0]
    assert "and 70 more; choose with --rank" in whole
    last = hpj("metrics", "used", "--last").ok().out.partition("USED")[0]
    assert last.splitlines()[1].split() == ["NUMBER", "RANK", "ATTEMPT", "STEP", "LAST"]
    assert last.splitlines()[2].split() == ["loss", "0", "1", "2", "2"]
    one = hpj("metrics", "used", "--rank", "7").ok()
    assert [line.split("  ")[0] for line in one.out.splitlines()] == [*("used", "", "USED", "CPUs busy", "memory")]
    assert one.err.startswith("no numbers of rank 7")
    assert "USED" not in hpj("metrics", "used", "--name", "loss").ok().out


def test_of_an_array_a_child_that_exists_is_named(hpj):
    hpj("submit", "-c", "echo step 1 loss 2", "--array", "1-3", "--run-id", "many", "--wait").ok()
    for command in ("watch", "metrics"):
        told = hpj(command, "many")
        assert (told.code, "choose a child: many.1\n" in told.err) == (2, True)
    assert "loss" in hpj("watch", "many.1").ok().out


def test_a_comparison_has_steps_and_each_variable_once(hpj):
    hpj("submit", "-c", "echo step 7 loss 2", "--run-id", "plain", "--wait").ok()
    words = ("--env", "A=1", "--run-id", "other", "--wait")
    hpj("submit", "-c", "echo step 7 loss 2", *words).ok()
    shown = hpj("compare", "plain", "other").ok().out
    assert shown.count("environment.variables") == 1
    assert "environment.variables.A" in shown
    assert "2 at step 7 (2 to 2)" in shown


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("--metric", "p"), "--metric: 'p' has no '='", "NAME=REGEX"),
        (("--metric", "p=(.)", "--metric", "p=(..)"), "'p' is given twice", "its own name"),
        (("--stop-on", "nan,hang"), "not one value", "--stop-on nan --stop-on hang"),
        (("--alarm-webhook", "file:///etc/passwd"), "begins with https:// or http://", None),
        (("--alarm-webhook", "${HOOK"), "begins with https:// or http://", None),
        (("--alarm-webhook", "https://x/${HOOK}"), "begins with https:// or http://", None),
        (("--alarm-webhook", "${HOOK}"), "secret HOOK, which the run does not have", None),
    ],
)
def test_what_is_wrong_with_an_option_of_metrics_or_alarms(hpj, words, message, hint):
    told = hpj("submit", "-c", "true", *words, "--dry-run", "--json")
    assert told.code == 2
    assert message in told.error["message"]
    assert (hint or "") in (told.error["hint"] or "")
    assert "own variable" not in (told.error["hint"] or "")


def test_the_url_of_a_webhook_may_be_a_secret(hpj, home, monkeypatch):
    got = []

    class Hook(Handler):
        def take(self):
            got.append((self.path, json.loads(self.body())["code"]))
            self.answer(204)

    with Loopback(Hook) as server:
        monkeypatch.setenv("HOOK", f"{server.url}/very-secret")
        words = ("--secret", "HOOK", "--alarm-webhook", "${HOOK}", "--run-id", "told", "--wait")
        hpj("submit", "-c", "echo step 1 loss nan", *words).ok()
        while len(got) < 2:  # the launcher posts the end after its last record
            time.sleep(0.1)
    assert got == [("/very-secret", "nan"), ("/very-secret", "succeeded")]
    (bundle,) = home.bundles()
    files = [path for path in bundle.rglob("*") if path.is_file()]
    assert not [path for path in files if b"very-secret" in path.read_bytes()]


def test_of_a_variable_the_last_value_counts(hpj):
    hpj("submit", "-c", "true", "--env", "A=1", "--env", "A=2", "--dry-run").ok()


def test_options_and_ids_that_do_not_fit_are_explained(hpj):
    hpj("submit", "-c", "true", "--run-id", "here", "--wait").ok()
    assert "--json" not in hpj("watch", "--help").ok().out
    assert hpj("watch", "here", "--json").error["hint"] == "hpj metrics here --json"
    told = hpj("metrics", "here", "--last", "0", "--json")
    assert (told.code, told.error["code"]) == (2, "usage")
    assert told.error["message"].startswith("--last takes no value")
    assert "unexpected extra" in hpj("metrics", "here", "there", "--json").error["message"]
    told = hpj("compare", "here/1", "here", "--json")
    assert told.error["hint"] == "a child of an array is here.1"
