"""Cleaning up: what goes, what stays, and that nobody is disturbed."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from hyperpod_jlab.run import clean as cleaning
from hyperpod_jlab.storage.owners import current_user
from hyperpod_jlab.storage.partition import Partition
from tests.storage.bundles import make_bundle

from .conftest import make_home

pytestmark = pytest.mark.local

LATER = "1s"


def _wait_until_old() -> None:
    time.sleep(1.1)


@pytest.fixture
def old(hpj, home):
    """A run that succeeded and one that failed, both old, with code of their own."""
    for name, code in (("good", "print(1)\n"), ("bad", "raise SystemExit(3)\n")):
        (home.work / "main.py").write_text(code)
        hpj("submit", "main.py", "--run-id", name).ok()
    hpj("logs", "-f", "good").ok()
    hpj("logs", "-f", "bad").ok()
    _wait_until_old()


def test_without_a_word_it_is_told_how_much_and_nothing_is_removed(hpj, home, old):
    shown = hpj("clean", "--older", LATER, "--dry-run", "--json").ok().json
    assert {run["run_id"] for run in shown["runs"]} == {"good", "bad"}
    assert shown["bytes"] > 0
    assert shown["removed"] is False
    text = hpj("clean", "--older", LATER, "--dry-run").ok().out
    assert "2 runs, " in text
    for words in ([], ["--json"]):
        told = hpj("clean", "--older", LATER, *words)
        assert told.code == 2
        assert "--yes" in told.err
        assert "2 runs" in told.err
    assert len(home.bundles()) == 2


def test_old_runs_go_with_the_code_that_only_they_had(hpj, home, old):
    (home.work / "main.py").write_text("print(2)\n")
    hpj("submit", "main.py", "--run-id", "young", "--wait").ok()
    done = hpj("clean", "--older", LATER, "--yes", "--json").ok().json
    assert done["removed"] is True
    assert done["code"]["files"] == 2
    assert [path.name for path in home.bundles()] == ["young"]
    stored = {path.read_bytes() for path in home.partition.glob(".hyperpod/code/??/*")}
    assert b"print(2)\n" in stored
    assert not stored & {b"print(1)\n", b"raise SystemExit(3)\n"}
    assert [run["run_id"] for run in hpj("runs", "--json").ok().json["runs"]] == ["young"]
    assert hpj("logs", "young").ok().out == "0|2\n"
    assert hpj("show", "good").code == 3


def test_failed_runs_can_be_kept(hpj, home, old):
    hpj("clean", "--older", LATER, "--keep-failed", "--yes").ok()
    assert [path.name for path in home.bundles()] == ["bad"]


def test_a_young_run_stays(hpj, home):
    hpj("submit", "-c", "true", "--wait").ok()
    told = hpj("clean", "--yes").ok()
    assert told.out == "nothing to remove\n"
    assert told.err.startswith("1 run has ended more recently, with ")
    assert told.err.endswith("give a shorter --older, such as --older 1h\n")
    assert len(home.bundles()) == 1


def test_live_runs_and_those_they_wait_for_stay(tmp_path, monkeypatch, hpj):
    home = make_home(tmp_path / "one", slots=1)
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    hpj("submit", "-c", "true", "--run-id", "before", "--wait").ok()
    hpj("submit", "-c", "sleep 60", "--run-id", "running").ok()
    hpj("submit", "-c", "true", "--run-id", "waiting", "--after", "before").ok()
    hpj("hold", "waiting")
    _wait_until_old()
    done = hpj("clean", "--older", LATER, "--yes", "--json").ok().json
    assert done["runs"] == []
    assert done["kept"] == [{"run_id": "before", "reason": "waiting waits for it"}]
    assert {path.name for path in home.bundles()} == {"before", "running", "waiting"}
    hpj("cancel", "running", "waiting").ok()


def test_what_broken_off_submits_left_goes_once_it_is_old(hpj, home, monkeypatch):
    hpj("submit", "-c", "true", "--run-id", "one", "--wait").ok()
    (bundle,) = home.bundles()
    left = bundle.with_name(".staging-other-1234")
    (left / "code").mkdir(parents=True)
    (left / "code" / "x.py").write_text("x = 1\n")
    (left / "code").chmod(0o500)
    assert hpj("clean", "--yes").ok().out == "nothing to remove\n"
    monkeypatch.setattr(cleaning, "_STAGING_AGE", 0.0)
    done = hpj("clean", "--yes", "--json").ok().json
    assert done["staging"]["folders"] == 1
    assert home.bundles() == [bundle]


def test_code_that_nobody_uses_goes_once_it_is_old(hpj, home, monkeypatch):
    hpj("submit", "-c", "true", "--wait").ok()
    folder = home.partition / ".hyperpod" / "code" / "ab"
    folder.mkdir(exist_ok=True)
    (folder / ".half.tmp").write_text("half")
    assert hpj("clean", "--yes").ok().out == "nothing to remove\n"
    monkeypatch.setattr(cleaning, "_CODE_AGE", 0.0)
    assert hpj("clean", "--yes", "--json").ok().json["code"]["files"] == 1
    assert list(folder.iterdir()) == []
    hpj("clone", "last", "--wait").ok()


def test_secrets_of_a_run_that_has_ended_go_at_once(hpj, home):
    # Made by hand: after a real run its supervisor removes them too, at a moment of its own.
    ended, me = time.time() - 60, current_user()
    bundle = make_bundle(Partition(home.partition), "run-1", created=ended, user=me).folder
    (bundle / "secrets").mkdir()
    (bundle / "secrets" / "TOKEN").write_text("word")
    assert "1 run's secrets" in hpj("clean", "--dry-run").ok().out
    assert hpj("clean", "--yes", "--json").ok().json["secrets"] == 1
    assert not (bundle / "secrets").exists()
    assert hpj("show", "last").ok()


def test_a_damaged_bundle_is_left_for_its_owner_to_look_at(hpj, home, old):
    (bundle,) = (path for path in home.bundles() if path.name == "good")
    (bundle / "bundle.json").write_text("{")
    hpj("clean", "--older", LATER, "--yes").ok()
    assert [path.name for path in home.bundles()] == ["good"]


def test_submits_are_not_disturbed_by_a_cleaning_at_the_same_time(hpj, home):
    loop = (
        "import hyperpod_jlab.run.clean as c; c._CODE_AGE = 0\n"
        "from hyperpod_jlab.cli.main import main\n"
        "while True:\n    assert main(['clean', '--older', '5s', '--yes']) == 0\n"
    )
    (home.work / "part.py").write_text("word = 'there'\n")
    (home.work / "main.py").write_text("import part; print(part.word)\n")
    hpj("submit", "main.py", "--wait").ok()
    cleaner = subprocess.Popen([sys.executable, "-c", loop], env=home.process_environment(), stdout=subprocess.DEVNULL)
    try:
        for _ in range(6):
            assert hpj("submit", "main.py", "--follow").ok().out == "0|there\n"
        assert cleaner.poll() is None
    finally:
        cleaner.kill()
        cleaner.wait()


def test_two_cleanings_at_once_are_no_trouble(hpj, home):
    partition = Partition(home.partition)
    for number in range(40):
        make_bundle(partition, f"run-{number}", created=1000.0, user=current_user())
    words = ["clean", "--older", LATER, "--yes"]
    cleaners = [home.start(*words, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [cleaner.communicate(timeout=60)[1] for cleaner in cleaners]
    assert [text for text in told if "error" in text] == []
    assert [cleaner.returncode for cleaner in cleaners] == [0, 0]
    assert home.bundles() == []
