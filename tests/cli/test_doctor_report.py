"""``hpj doctor`` for one cluster, with a real job, and as a report that may be handed on."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from hyperpod_jlab.core.check import Check
from hyperpod_jlab.features.doctor.service import redact, report

UNREACHABLE = '[clusters.far]\norchestrator = "slurm"\ntransport = "ssh"\nlogin_nodes = ["nobody.invalid"]\n'


def keys(told):
    return {(one["key"], one["about"]) for one in told.json["checks"]}


def test_one_cluster_only(hpj, home):
    home.config.write_text(UNREACHABLE)
    told = hpj("doctor", "--cluster", "local", "--json").ok()
    assert ("cluster", "local") in keys(told)
    assert ("local-board", None) in keys(told)
    assert not any(about == "far" for _, about in keys(told))
    far = hpj("doctor", "--cluster", "far", "--json")
    assert far.code == 2
    assert ("local-board", None) not in keys(far)
    assert ("storage", None) in keys(far)
    assert {about for _, about in keys(far)} == {None, "far"}


def test_a_cluster_that_is_not_there(hpj):
    told = hpj("doctor", "--cluster", "locall", "--json")
    assert (told.code, told.error["code"]) == (3, "unknown_cluster")
    assert told.error["hint"] == "did you mean 'local'?"
    assert told.out == ""


def test_no_job_is_sent_unasked(hpj, home):
    assert ("job", "local") not in keys(hpj("doctor", "--json").ok())
    assert home.bundles() == []


def test_a_real_job_and_its_log_and_nothing_stays(hpj, home):
    told = hpj("doctor", "--job", "--json").ok()
    (check,) = (one for one in told.json["checks"] if one["key"] == "job")
    assert (check["level"], check["about"]) == ("ok", "local")
    assert f"as uid {os.getuid()}" in check["evidence"]
    assert "one task on one node" in check["evidence"]
    assert home.bundles() == []
    assert hpj("runs", "--all-users", "--json").ok().json["runs"] == []
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert "hpj-doctor-" not in running.stdout


def test_a_job_that_cannot_start_says_why(hpj, home):
    home.config.write_text('[clusters.local]\npython = "/nowhere/python"\n')
    told = hpj("doctor", "--job", "--json")
    assert told.code == 2
    (check,) = (one for one in told.json["checks"] if one["key"] == "job")
    assert check["level"] == "fail"
    assert "/nowhere/python" in check["evidence"]
    assert home.bundles() == []


def _take_the_slot(hpj):
    hpj("submit", "-c", "sleep 60", "--run-id", "first", "--no-project-files").ok()
    end = time.monotonic() + 40
    while hpj("show", "first", "--json").ok().json["state"] != "running":
        assert time.monotonic() < end, "the first run does not start"
        time.sleep(0.1)


def test_a_job_that_gets_no_turn_is_cancelled(hpj, home, monkeypatch):
    monkeypatch.setattr("hyperpod_jlab.features.doctor.checks.TIMEOUT_S", 3.0)
    home.config.write_text("[clusters.local]\nslots = 1\n")
    _take_the_slot(hpj)
    try:
        told = hpj("doctor", "--job", "--json").ok()
        (check,) = (one for one in told.json["checks"] if one["key"] == "job")
        assert check["level"] == "warn"
        assert "it was still waiting" in check["evidence"]
        assert "was cancelled" in check["evidence"]
        assert [path.name for path in home.bundles()] == ["first"]
    finally:
        hpj("cancel", "first")


def test_an_interrupted_job_is_cancelled_too(hpj, home):
    home.config.write_text("[clusters.local]\nslots = 1\n")
    _take_the_slot(hpj)
    started = home.start("doctor", "--job", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + 40
        while len(home.bundles()) < 2:
            assert time.monotonic() < end, "no job was sent"
            time.sleep(0.1)
        started.send_signal(signal.SIGINT)
        assert started.wait(40) == 130
        assert [path.name for path in home.bundles()] == ["first"]
    finally:
        started.kill()
        started.communicate()
        hpj("cancel", "first")


def test_the_report_in_a_file_and_on_the_output(hpj, home):
    home.config.write_text(UNREACHABLE)
    path = home.work / "for-my-admin.md"
    told = hpj("doctor", "--report", str(path))
    assert told.code == 2
    assert "fail     Slurm's commands far" in told.out
    text = path.read_text()
    assert text.startswith("# Report of hpj doctor\n")
    assert "1 failed" in text
    assert "| versions | ok | Python 3." in text
    assert "### The controller or API server" in text
    assert "could not be checked" in text
    assert "## For the user" in text
    printed = hpj("doctor", "--report")
    assert printed.out.startswith("# Report of hpj doctor\n")
    assert hpj("doctor", "--report", "--json").json["report"].startswith("# Report")


def test_a_report_that_cannot_be_written(hpj, home):
    told = hpj("doctor", "--report", str(home.work / "no" / "folder.md"), "--json")
    assert (told.code, told.error["code"]) == (2, "output")


SECRETS = (
    "AKIAIOSFODNN7EXAMPLE",
    "k8s-aws-v1.aHR0cHM6Ly9zdHMudXM",
    "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2ln",
    "password=hunter2secret",
    "Bearer abcdefgh12345678",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_that_looks_like_a_secret_is_told(secret):
    check = Check("x", "x", "mount", "fail", f"it said {secret} there", f"give {secret}", "you")
    text = report([check])
    assert secret not in text
    assert "[hidden]" in text
    assert "it said" in text


def test_the_environments_secrets_and_others_homes_are_hidden(monkeypatch):
    monkeypatch.setenv("HOME", "/home/alice")
    environment = {"WANDB_API_KEY": "0123456789abcdef", "PATH": "/usr/bin", "MY_TOKEN": "abc"}
    text = redact(
        "key 0123456789abcdef in /home/alice/fsx, /home/bob/fsx, /usr/bin abc "
        "https://me:pass@host/x arn:aws:iam::111122223333:role/StudioRole",
        environment,
    )
    assert text == (
        "key [hidden] in ~/fsx, /home/[hidden]/fsx, /usr/bin abc "
        "https://[hidden]host/x arn:aws:iam::111122223333:role/StudioRole"
    )


def test_tasks_are_told_to_who_has_to_do_them_and_failures_come_first():
    checks = [
        Check("a", "first", "mount", "warn", "so so", "fix a", "admin"),
        Check("b", "second", "domain", "fail", "bad | worse", "fix b\nfix c", "admin"),
        Check("c", "third", "domain", "ok", "well"),
    ]
    text = report(checks)
    admin = text[text.index("## For the admin") : text.index("## All checks")]
    assert admin.index("**second** (failed)") < admin.index("**first** (warning)")
    assert "   fix b\n   fix c\n" in admin
    assert "## For the user" not in text
    assert "bad \\| worse" in text
    assert text.index("### The domain") < text.index("### Mounted file systems")
