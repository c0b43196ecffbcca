"""Requests about runs on a real local cluster."""

import asyncio
from typing import Any

import pytest

from hyperpod_jlab.storage import locate
from hyperpod_jlab.storage import owners as users
from hyperpod_jlab.storage.acl import own_uid

ENDED = {"succeeded", "failed", "cancelled"}


async def test_a_run_is_sent_shown_and_listed(api):
    sent = await api.submit("echo hello", name="one")
    run = await api.ended(sent["run_id"])
    assert (run["state"], run["name"], run["exit_code"]) == ("succeeded", "one", 0)
    listed = await api.get("runs")
    assert [each["run_id"] for each in listed["runs"]] == [run["run_id"]]
    assert listed["next"] is None


async def test_a_run_says_whose_it_is(api, monkeypatch):
    sent = await api.submit("true")
    run = await api.ended(sent["run_id"])
    assert (run["own"], run["uid"]) == (True, own_uid())
    monkeypatch.setattr(users, "own_uid", lambda: own_uid() + 1)
    told = await api.get(f"runs/{run['run_id']}")
    assert (told["own"], told["uid"]) == (False, run["uid"])


async def test_the_same_run_id_is_the_same_run(api):
    body: dict[str, Any] = {
        "run_id": "mine-1",
        "cluster": "local",
        "spec": {"source": {"kind": "command", "command": "true"}},
    }
    first = await api.request("POST", "runs", body)
    again = await api.request("POST", "runs", body)
    assert (first[0], again[0]) == (201, 200)
    assert first[1]["run_id"] == again[1]["run_id"] == "mine-1"
    body["spec"]["source"]["command"] = "false"
    status, error = await api.request("POST", "runs", body)
    assert (status, error["code"], error["detail"]["field"]) == (409, "run_id_taken", "run_id")


async def test_a_run_is_cancelled(api):
    run = await api.submit("sleep 60")
    await api.until(run["run_id"], lambda run: run["state"] == "running")
    status, _ = await api.request("POST", f"runs/{run['run_id']}/cancel", {})
    assert status == 200
    assert (await api.ended(run["run_id"]))["state"] == "cancelled"
    status, again = await api.request("POST", f"runs/{run['run_id']}/cancel", "")
    assert (status, again["state"]) == (200, "cancelled")


async def test_a_run_that_has_ended_is_deleted(api):
    run_id = (await api.submit("sleep 60"))["run_id"]
    await api.until(run_id, lambda run: run["state"] == "running")
    status, error = await api.request("POST", f"runs/{run_id}/delete", {})
    assert (status, error["code"]) == (409, "wrong_state")
    assert error["message"] == f"{run_id} cannot be deleted: it is running"
    await api.request("POST", f"runs/{run_id}/cancel", {})
    await api.ended(run_id)
    assert await api.request("POST", f"runs/{run_id}/delete", {}) == (200, {"run_id": run_id})
    assert (await api.get("runs"))["runs"] == []
    status, error = await api.request("POST", f"runs/{run_id}/delete", {})
    assert (status, error["code"]) == (404, "no_such_run")


async def test_a_run_that_another_waits_for_is_not_deleted(api):
    first = (await api.submit("true"))["run_id"]
    await api.ended(first)
    blocker = [(await api.submit("sleep 60"))["run_id"] for _ in range(4)]
    second = (await api.submit("true", after=[first]))["run_id"]
    await api.request("POST", f"runs/{second}/hold", {})
    status, error = await api.request("POST", f"runs/{first}/delete", {})
    assert (status, error["code"]) == (409, "wrong_state")
    assert error["message"].endswith(f"{second} waits for it")
    for run_id in (second, *blocker):
        await api.request("POST", f"runs/{run_id}/cancel", {})


async def test_another_users_run_is_not_deleted(api, monkeypatch):
    run_id = (await api.submit("true"))["run_id"]
    await api.ended(run_id)
    monkeypatch.setattr(locate, "own_uid", lambda: own_uid() + 1)
    status, error = await api.request("POST", f"runs/{run_id}/delete", {})
    assert (status, error["code"]) == (403, "foreign_run")


async def test_lists_have_pages_and_filters(api):
    sent = [(await api.submit(name=f"run {number}"))["run_id"] for number in range(3)]
    for run_id in sent:
        await api.ended(run_id)
    first = await api.get("runs", limit="2")
    rest = await api.get("runs", limit="2", cursor=first["next"])
    names = [run["run_id"] for run in (*first["runs"], *rest["runs"])]
    assert names == list(reversed(sent)), "newest first"
    assert rest["next"] is None
    assert (await api.get("runs", state="failed,cancelled"))["runs"] == []
    assert len((await api.get("runs", cluster="local", all_users="true"))["runs"]) == 3
    assert (await api.get("runs", cluster="other"))["runs"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"state": "sleeping"}, "state.0"),
        ({"cursor": "!!"}, "cursor"),
        ({"sort": "name"}, "sort"),
    ],
)
async def test_a_wrong_query_names_the_field(api, query, field):
    status, error = await api.request("GET", "runs", query=query)
    assert (status, error["detail"]["field"]) == (400, field)


async def test_what_jupyters_clients_add_to_a_query_is_no_field(api):
    await api.get("runs", **{"1732201234567": "", "no_track_activity": "1"})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("", ""),
        ("[1]", ""),
        ("{", ""),
        ({}, "spec"),
        ({"spec": {"source": {"kind": "command", "command": "true"}, "rank": 1}}, "spec.rank"),
        (
            {"spec": {"source": {"kind": "command", "command": "true"}, "resources": {"nodes": 0}}},
            "spec.resources.nodes",
        ),
        ({"spec": {"source": {"kind": "script", "path": "gone.py"}}}, "spec.source.path"),
        ({"spec": {"source": {"kind": "script", "path": "../x.py"}}}, "spec.source.path"),
        ({"spec": {"source": {"kind": "script", "path": "/etc/passwd"}}}, "spec.source.path"),
        ({"spec": {"source": {"kind": "script", "path": "~/x.py"}}}, "spec.source.path"),
        ({"spec": {"source": {"kind": "script", "path": "~nobody-at-all/x"}}}, "spec.source.path"),
        ({"spec": {"source": {"kind": "command", "command": "true"}, "files": {"root": "../.."}}}, "spec.files.root"),
        ({"spec": {"source": {"kind": "command", "command": "true"}}, "base": "../x"}, "base"),
        ({"spec": {"source": {"kind": "command", "command": "true"}}, "base": "gone"}, "base"),
        ({"spec": {"source": {"kind": "command", "command": "true"}}, "run_id": "A"}, "run_id"),
        ({"spec": {"source": {"kind": "command", "command": "true"}}, "clone_of": "../x"}, "clone_of"),
    ],
)
@pytest.mark.parametrize("path", ["runs", "runs/preview"])
async def test_a_wrong_body_names_the_field(api, path, body, field):
    status, error = await api.request("POST", path, body)
    assert (status, error["detail"].get("field")) == (400, field), error
    assert set(error) == {"code", "message", "hint", "detail"}


@pytest.mark.parametrize("path", ["runs", "runs/preview"])
async def test_an_unknown_cluster_names_the_field(api, path):
    body = {"spec": {"source": {"kind": "command", "command": "true"}}, "cluster": "x"}
    status, error = await api.request("POST", path, body)
    assert (status, error["code"]) == (404, "unknown_cluster")
    assert error["detail"]["field"] == "cluster"


async def test_a_refusal_names_the_field_too(api):
    spec = {"source": {"kind": "command", "command": "true"}, "environment": {"python": "/no/such/python"}}
    for path in ("runs", "runs/preview"):
        status, error = await api.request("POST", path, {"spec": spec})
        assert (status, error["code"]) == (422, "no_python")
        assert error["detail"]["field"] == "spec.environment.python"


@pytest.mark.parametrize("path", ["~/secret.py", "../../secret.py", "/etc/secret.py"])
async def test_no_path_leads_out_of_the_root(api, jp_root_dir, path):
    (jp_root_dir / "work").mkdir()
    body = {"spec": {"source": {"kind": "script", "path": path}}, "base": "work"}
    status, error = await api.request("POST", "runs/preview", body)
    assert (status, error["code"]) == (400, "outside_root")


async def test_links_under_the_root_lead_where_they_lead(api, jp_root_dir, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.py").write_text("print(1)\n")
    (jp_root_dir / "fsx").symlink_to(elsewhere)
    body = {"spec": {"source": {"kind": "script", "path": "a.py"}}, "base": "fsx"}
    status, _ = await api.request("POST", "runs/preview", body)
    assert status == 200


async def test_an_unknown_run_is_not_found(api):
    for verb, rest in (("GET", ""), ("POST", "/cancel")):
        body = "" if verb == "POST" else None
        status, error = await api.request(verb, f"runs/no-such-run{rest}", body)
        assert (status, error["code"]) == (404, "no_such_run")


async def test_a_preview_shows_what_would_run_and_writes_nothing(api, jp_root_dir):
    folder = jp_root_dir / "work"
    folder.mkdir()
    (folder / "a.py").write_text("print('on disk')\n")
    spec = {"source": {"kind": "script", "path": "a.py"}, "args": ["--lr", "1"], "name": "try"}
    status, preview = await api.request("POST", "runs/preview", {"spec": spec, "base": "work"})
    assert status == 200
    assert preview["name"] == "try"
    assert preview["rendered"]["name"] == "local.json"
    assert preview["command"][-2:] == ["--lr", "1"]
    assert any("on disk" in part["text"] for part in preview["parts"])
    assert "work/a.py" in preview["files"]
    assert (await api.get("runs"))["runs"] == []


async def test_the_notebook_on_the_screen_is_what_runs(api, jp_root_dir):
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "c1",
        "metadata": {},
        "source": "print('unsaved')",
        "outputs": [],
        "execution_count": None,
    }
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    body: dict[str, Any] = {"spec": {"source": {"kind": "notebook", "path": "new.ipynb"}}, "notebook": document}
    status, preview = await api.request("POST", "runs/preview", body)
    assert status == 200, preview
    assert any("unsaved" in part["text"] for part in preview["parts"])


async def test_secrets_are_told_to_nobody(api, caplog):
    spec: dict[str, Any] = {
        "source": {"kind": "command", "command": "test $KEY = s3cret"},
        "environment": {"secrets": {"KEY": ""}},
    }
    body = {"spec": spec, "secrets": {"KEY": "s3cret"}}
    status, run = await api.request("POST", "runs", body)
    assert status == 201
    assert (await api.ended(run["run_id"]))["state"] == "succeeded"
    spec["resources"] = {"nodes": 0}
    status, error = await api.request("POST", "runs", body)
    assert status == 400
    assert "s3cret" not in str((run, error)) + caplog.text


@pytest.mark.parametrize("path", ["runs", "runs/preview"])
@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"../../x": "s3cret"}, "secret_unknown"),
        ({"KEYS": "s3cret"}, "secret_unknown"),
        ({"": "s3cret"}, "secret_unknown"),
        ({"\x1b]0;x": "s3cret"}, "secret_unknown"),
        ({"REFERRED": "s3cret"}, "secret_has_reference"),
        ({"KEY": "s3cret\0"}, "bad_secret"),
    ],
)
async def test_values_of_what_is_no_secret_of_the_spec_are_refused(api, path, values, code):
    spec: dict[str, Any] = {
        "source": {"kind": "command", "command": "true"},
        "environment": {"secrets": {"KEY": "", "REFERRED": "vault/key"}},
    }
    body = {"spec": spec, "secrets": {"KEY": "good", **values}}
    status, error = await api.request("POST", path, body)
    assert (status, error["code"], error["detail"]["field"]) == (400, code, "secrets")
    assert "s3cret" not in str(error)
    assert "\x1b" not in error["message"]


async def test_a_secrets_name_that_no_file_can_have_is_refused(api):
    spec = {"source": {"kind": "command", "command": "true"}, "environment": {"secrets": {"A" * 300: ""}}}
    status, error = await api.request("POST", "runs", {"spec": spec, "secrets": {"A" * 300: "x"}})
    assert (status, error["detail"]["field"]) == (400, "spec.environment.secrets")


async def test_runs_sent_at_once_with_one_id_are_one(api):
    body = {"run_id": "twice", "spec": {"source": {"kind": "command", "command": "true"}}}
    answers = await asyncio.gather(*(api.request("POST", "runs", body) for _ in range(4)))
    assert sorted(status for status, _ in answers) == [200, 200, 200, 201]


async def test_what_a_run_used_is_told_once_it_has_ended(api):
    run_id = (await api.submit("sleep 1; exit 3"))["run_id"]
    assert await api.get(f"runs/{run_id}/usage") == {"usage": None}
    await api.ended(run_id)
    usage = (await api.get(f"runs/{run_id}/usage"))["usage"]
    assert (usage["source"], usage["exit_code"], usage["nodes"]) == ("journal", 3, 1)
    assert usage["elapsed"] >= 1
