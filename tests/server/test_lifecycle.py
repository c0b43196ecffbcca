"""``GET lifecycle`` and ``GET lifecycle/log``: what the script of a space's start has left, which is not trusted."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import jsonschema
import pytest

from hyperpod_jlab.server.openapi import document

BEGUN = "2026-11-22T09:00:00Z"
STEPS = [
    {"name": "package", "state": "done", "message": "hyperpod_jlab 0.1.0"},
    {"name": "client", "state": "running", "message": ""},
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The user's state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    made = tmp_path / "state" / "hyperpod-jlab"
    made.mkdir(parents=True)
    return made


def write(folder, **more):
    told = {
        "version": 1,
        "app": "jupyterlab",
        "state": "running",
        "started": BEGUN,
        "updated": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "log": "/etc/shadow",
        "steps": STEPS,
        **more,
    }
    (folder / "lifecycle.json").write_text(json.dumps(told))


async def test_nothing_where_none_has_run(api, folder):
    told = await api.get("lifecycle")
    assert (told["state"], told["steps"], told["problem"]) == ("none", [], None)
    status, error = await api.request("GET", "lifecycle/log")
    assert (status, error["code"]) == (404, "no_lifecycle_log")


async def test_its_steps_as_they_are_and_no_more_than_is_described(api, folder):
    write(folder)
    told = await api.get("lifecycle")
    assert (told["state"], told["app"], told["steps"]) == ("running", "jupyterlab", STEPS)
    assert told["started_at"].startswith(BEGUN[:-1])
    types = document()["components"]["schemas"]
    described = types["LifecycleAnswer"]
    jsonschema.validate(told, {**described, "components": {"schemas": types}})
    assert set(told) == set(described["properties"])
    write(folder, state="failed", added_by_a_newer_script=True)
    assert (await api.get("lifecycle"))["state"] == "failed"


async def test_one_that_says_nothing_any_more_has_stopped(api, folder):
    before = datetime.now(UTC) - timedelta(minutes=11)
    write(folder, updated=before.isoformat())
    assert (await api.get("lifecycle"))["state"] == "stopped"
    write(folder, state="done", updated=before.isoformat())
    assert (await api.get("lifecycle"))["state"] == "done"


async def test_where_the_home_cannot_be_written_it_is_below_the_temporary_folder(api, folder, tmp_path):
    other = tmp_path / "tmp" / f"hyperpod-jlab-{os.getuid()}"
    other.mkdir(parents=True)
    write(other)
    (other / "lifecycle.log").write_text("one\n")
    assert (await api.get("lifecycle"))["state"] == "running"
    assert (await api.get("lifecycle/log"))["path"] == str(other / "lifecycle.log")


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 2},
        {"state": "fine"},
        {"app": "emacs"},
        {"updated": "yesterday"},
        {"updated": "2026-01-06T09:00:00"},
        {"steps": [{"name": "<b>", "state": "done"}]},
        {"steps": [{"name": "a", "state": "done", "message": "x" * 5000}]},
        {"steps": STEPS * 40},
        {"steps": None},
        {"padding": "x" * 300_000},
    ],
)
async def test_what_is_no_status_is_said(api, folder, wrong):
    write(folder, **wrong)
    told = await api.get("lifecycle")
    assert (told["state"], told["problem"]["code"]) == ("unknown", "invalid_lifecycle_file")
    assert str(folder / "lifecycle.json") in told["problem"]["message"]


async def test_half_a_file(api, folder):
    (folder / "lifecycle.json").write_text('{"version": 1, "app"')
    assert (await api.get("lifecycle"))["state"] == "unknown"


@pytest.mark.parametrize("name", ["lifecycle.json", "lifecycle.log"])
async def test_links_folders_pipes_and_files_of_others_are_not_read(api, folder, tmp_path, name):
    secret = tmp_path / "secret"
    secret.write_text('{"secret": "of somebody"}')
    path = folder / name

    async def refused():
        if name == "lifecycle.json":
            return (await api.get("lifecycle"))["problem"]
        status, error = await api.request("GET", "lifecycle/log")
        assert status == 507
        return error

    path.symlink_to(secret)
    assert (await refused())["code"] == "invalid_lifecycle_file"
    path.unlink()
    path.mkdir()
    assert "cannot be read" in (await refused())["message"]
    path.rmdir()
    os.mkfifo(path)
    assert "it is not a regular file" in (await refused())["message"]
    path.unlink()
    if os.getuid() == 0:
        path.write_text("{}")
        os.chown(path, 4711, 4711)
        assert "uid 4711" in (await refused())["message"]


async def test_the_end_of_the_log_and_never_the_file_that_the_status_names(api, folder):
    write(folder, log="/etc/passwd")
    (folder / "lifecycle.log").write_bytes(b"== begin\n\xff caf\xc3\xa9\n")
    told = await api.get("lifecycle/log")
    assert (told["text"], told["cut"]) == ("== begin\n� café\n", False)
    lines = "".join(f"line {number:06d}\n" for number in range(40_000))
    (folder / "lifecycle.log").write_text(lines)
    told = await api.get("lifecycle/log")
    assert told["cut"]
    assert told["text"].startswith("line 0")
    assert told["text"].endswith("line 039999\n")
    assert len(told["text"]) <= 256 * 1024
