"""Checks with fixes, and where the storage lies."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime

import pytest


def _checks(told):
    return {check["name"]: check for check in told.json["checks"]}


def test_a_fresh_home_is_well(hpj, home):
    told = hpj("doctor", "--json").ok()
    checks = _checks(told)
    assert told.json["ok"] is True
    expected = {"versions", "config files", "storage", "privacy", "writing", "room", "local queue"}
    assert expected <= checks.keys()
    assert {"local python", "runs", "cluster local"} <= checks.keys()
    assert str(home.config) in checks["config files"]["evidence"]
    assert list(home.partition.glob(".hyperpod/.doctor*")) == []
    assert "ok       storage  " in hpj("doctor").ok().out


def test_a_folder_that_others_may_read_is_warned_of(hpj, home):
    hpj("doctor").ok()
    (home.partition / ".hyperpod").chmod(0o755)
    told = hpj("doctor", "--json").ok()
    check = _checks(told)["privacy"]
    assert check["level"] == "warn"
    assert check["fix"].startswith("chmod 700 ")


def test_a_link_in_the_way_fails_with_a_fix(hpj, home, tmp_path):
    home.partition.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (home.partition / ".hyperpod").symlink_to(tmp_path / "elsewhere")
    told = hpj("doctor", "--json")
    assert (told.code, told.error["code"]) == (2, "doctor")
    check = _checks(told)["storage"]
    assert "symbolic link" in check["evidence"]
    assert check["fix"]
    assert "fail" in hpj("doctor").out


def test_a_broken_configuration_is_one_of_the_checks(hpj, home):
    home.config.write_text("[storage\n")
    told = hpj("doctor", "--json")
    assert told.code == 2
    assert "line 1, column" in _checks(told)["configuration"]["evidence"]


def test_a_python_without_torch_is_warned_of(hpj, home):
    home.config.write_text('[clusters.local]\npython = "/usr/bin/python3"\n')
    if not os.path.exists("/usr/bin/python3"):  # noqa: PTH110
        pytest.fail("this machine has no /usr/bin/python3")
    check = _checks(hpj("doctor", "--json"))["local python"]
    assert "/usr/bin/python3" in check["evidence"]
    assert check["level"] in {"ok", "warn"}


def test_a_cluster_that_cannot_be_reached_fails(hpj, home):
    home.config.write_text(
        '[clusters.far]\norchestrator = "slurm"\ntransport = "ssh"\nlogin_nodes = ["nobody.invalid"]\n'
    )
    told = hpj("doctor", "--json")
    assert told.code == 2
    assert _checks(told)["Slurm's commands far"]["level"] == "fail"
    assert _checks(told)["cluster far"]["level"] == "unknown"
    assert _checks(told)["cluster local"]["level"] == "ok"


def test_storage_tells_paths_on_each_side(hpj, home):
    document = hpj("storage", "--json").ok().json
    assert document["partition"]["path"] == str(home.partition)
    assert document["partition"]["free"] > 0
    assert document["clusters"][0]["here"] == document["clusters"][0]["there"] == str(home.partition)
    assert str(home.partition) in hpj("storage").ok().out
    assert not home.partition.exists()


def test_a_read_only_partition_is_a_check_that_fails(hpj, home, monkeypatch):
    def refuse(path, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr("pathlib.Path.touch", refuse)
    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    check = _checks(hpj("doctor", "--json"))["writing"]
    assert (check["level"], "Read-only" in check["evidence"]) == ("fail", True)


def test_what_stands_on_a_failed_check_could_not_be_checked(hpj, home):
    home.config.write_text("[storage\n")
    checks = hpj("doctor", "--json").json["checks"]
    by_key = {check["key"]: check for check in checks}
    assert by_key["configuration"]["level"] == "fail"
    for key in ("storage", "privacy", "writing", "room", "runs"):
        assert by_key[key]["level"] == "unknown"
        assert "not checked: configuration failed" in by_key[key]["evidence"]
    assert by_key["versions"]["level"] == "ok"


def test_a_check_says_who_mends_it_and_is_itself_by_key_and_subject(hpj, home):
    home.config.write_text(
        '[clusters.far]\norchestrator = "slurm"\ntransport = "ssh"\nlogin_nodes = ["nobody.invalid"]\n'
    )
    checks = hpj("doctor", "--json").json["checks"]
    for check in checks:
        assert check["level"] in {"ok", "warn", "fail", "unknown"}
        assert (check["fix"] is None) == (check["who"] is None)
    idents = [(check["key"], check["about"]) for check in checks]
    assert len(set(idents)) == len(idents)
    assert {("cluster", "local"), ("cluster", "far")} <= set(idents)


@pytest.mark.parametrize(
    ("state", "steps", "level", "words"),
    [
        ("done", [("client", "skipped", "")], "ok", "without client"),
        ("running", [("client", "running", "")], "ok", "is running: client"),
        ("failed", [("client", "failed", "no partition")], "warn", "client: no partition"),
    ],
)
def test_what_the_lifecycle_configuration_of_this_space_made_ready(
    hpj, home, tmp_path, monkeypatch, state, steps, level, words
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert "lifecycle configuration" not in _checks(hpj("doctor", "--json"))
    folder = tmp_path / "state" / "hyperpod-jlab"
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC).isoformat()
    told = {
        "version": 1,
        "app": "code-editor",
        "state": state,
        "started": now,
        "updated": now,
        "log": "x",
        "steps": [dict(zip(("name", "state", "message"), s, strict=True)) for s in steps],
    }
    (folder / "lifecycle.json").write_text(json.dumps(told))
    check = _checks(hpj("doctor", "--json").ok())["lifecycle configuration"]
    assert check["level"] == level
    assert words in check["evidence"]
    (folder / "lifecycle.json").write_text("{")
    check = _checks(hpj("doctor", "--json"))["lifecycle configuration"]
    assert (check["level"], "is not a valid status" in check["evidence"]) == ("warn", True)
