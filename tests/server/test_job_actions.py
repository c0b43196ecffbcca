"""Requests that do something to jobs of the queue, on the local cluster, whose jobs are runs."""

import asyncio
import time

import pytest

PATH = "clusters/local/jobs/actions"


async def waiting(api):
    """A run that waits, and its job."""
    run = await api.submit("sleep 60", after=[(await api.submit("sleep 60"))["run_id"]])
    await api.until(run["run_id"], lambda run: run["reason_code"] == "dependency")
    deadline = time.monotonic() + 20
    while True:
        jobs = (await api.get("clusters/local/jobs"))["jobs"]
        found = [job["scheduler_id"] for job in jobs if job["run_id"] == run["run_id"]]
        if found:
            return run, found[0]
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


async def test_what_can_be_done_is_told_with_the_cluster(api):
    (local,) = (await api.get("clusters"))["clusters"]
    assert local["actions"] == ["cancel", "hold", "release", "requeue"]


async def test_jobs_that_are_runs_get_it_as_runs(api):
    run, job = await waiting(api)
    status, answer = await api.request("POST", PATH, {"action": "hold", "jobs": [job, "nowhere"]})
    assert status == 200
    done, missing = answer["results"]
    assert done == {"scheduler_id": job, "ok": True, "error": None}
    assert (missing["ok"], missing["error"]["code"]) == (False, "no_such_job")
    await api.until(run["run_id"], lambda run: run["reason_code"] == "held")
    _, answer = await api.request("POST", PATH, {"action": "cancel", "jobs": [job, job]})
    assert [result["ok"] for result in answer["results"]] == [True]
    assert (await api.ended(run["run_id"]))["state"] == "cancelled"


async def test_what_does_not_fit_says_why(api):
    _, job = await waiting(api)
    _, answer = await api.request("POST", PATH, {"action": "requeue", "jobs": [job]})
    assert answer["results"][0]["error"]["code"] == "wrong_state"
    _, answer = await api.request("POST", PATH, {"action": "change", "jobs": [job], "time_limit": "2h"})
    assert answer["results"][0]["error"]["code"] == "unsupported"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"jobs": ["1"]}, "action"),
        ({"action": "kill", "jobs": ["1"]}, "action"),
        ({"action": "hold", "jobs": []}, "jobs"),
        ({"action": "hold", "jobs": ["1"] * 501}, "jobs"),
        ({"action": "hold", "jobs": [""]}, "jobs.0"),
        ({"action": "hold", "jobs": [1]}, "jobs.0"),
        ({"action": "change", "jobs": ["1"]}, "time_limit"),
        ({"action": "change", "jobs": ["1"], "time_limit": "soon"}, "time_limit"),
        ({"action": "change", "jobs": ["1"], "queue": ""}, "queue"),
        ({"action": "hold", "jobs": ["1"], "queue": "dev"}, "action"),
    ],
)
async def test_a_wrong_body_names_the_field(api, body, field):
    status, error = await api.request("POST", PATH, body)
    assert (status, error["detail"]["field"]) == (400, field)


@pytest.mark.parametrize("job", ["--all", "-u me", "1 2", "$(id)", "a\nb"])
async def test_what_is_no_id_is_told_so(api, job):
    status, answer = await api.request("POST", PATH, {"action": "cancel", "jobs": [job]})
    assert status == 200
    assert answer["results"][0]["error"]["code"] == "invalid_input"


async def test_an_unknown_cluster_is_not_found(api):
    path = "clusters/lokal/jobs/actions"
    status, error = await api.request("POST", path, {"action": "hold", "jobs": ["1"]})
    assert (status, error["code"]) == (404, "unknown_cluster")


async def test_a_run_is_changed_where_that_can_be(api):
    run, _ = await waiting(api)
    status, error = await api.request("POST", f"runs/{run['run_id']}/change", {"queue": "long"})
    assert (status, error["code"]) == (422, "unsupported")
    status, error = await api.request("POST", f"runs/{run['run_id']}/change", {})
    assert (status, error["code"]) == (400, "nothing_to_change")
