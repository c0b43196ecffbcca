"""State changes on Jupyter's event bus."""

import asyncio
import json

import pytest

from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request
from hyperpod_jlab.server.run_events import (
    IDLE_TIMEOUT_S,
    LOOK_S,
    MAX_INTERVAL_S,
    MIN_INTERVAL_S,
    SCHEMA_ID,
    next_interval,
)


@pytest.fixture
def heard(jp_serverapp):
    """What the event bus tells of runs."""
    told = []

    async def listen(logger, schema_id, data):
        told.append({name: value for name, value in data.items() if not name.startswith("__")})

    jp_serverapp.event_logger.add_listener(schema_id=SCHEMA_ID, listener=listen)
    return told


async def until(there):
    async with asyncio.timeout(30):
        while not there():  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.05)


def states(told, run_id):
    return [event["state"] for event in told if event["run_id"] == run_id]


async def test_a_runs_states_are_told_in_order_and_once(api, heard):
    run = await api.submit("sleep 1", name="events")
    await until(lambda: "succeeded" in states(heard, run["run_id"]))
    told = [(one["state"], one["reason_code"]) for one in heard if one["run_id"] == run["run_id"]]
    assert len(told) == len(set(told)), told  # a state is told anew when its reason is another
    assert told[-1] == ("succeeded", None)
    assert heard[-1] == {
        "run_id": run["run_id"],
        "name": "events",
        "cluster": "local",
        "state": "succeeded",
        "reason_code": None,
        "parent": None,
    }


async def test_what_was_done_is_told_at_once(api, heard):
    run = await api.submit("sleep 60")
    await api.until(run["run_id"], lambda run: run["state"] == "running")
    await api.request("POST", f"runs/{run['run_id']}/cancel", "")
    await until(lambda: "cancelled" in states(heard, run["run_id"]))


async def test_how_things_were_is_no_news(api, heard, process, monkeypatch):
    monkeypatch.setattr("hyperpod_jlab.server.run_events.MAX_INTERVAL_S", 0.3)
    hyperpod = Hyperpod()
    spec = JobSpec.model_validate({"source": {"kind": "command", "command": "true"}})
    old = await hyperpod.submitter.submit(Request(spec))
    await hyperpod.runs.wait(old)
    await api.get("version")
    await until(lambda: process.events.looks >= 1 and process.events._begun is not None)
    assert heard == []
    # What is sent from elsewhere afterwards is told, however soon it ends.
    new = await hyperpod.submitter.submit(Request(spec))
    await hyperpod.runs.wait(new)
    await until(lambda: "succeeded" in states(heard, new))
    assert states(heard, old) == []
    await hyperpod.close()


async def test_a_run_that_somebody_looks_at_is_followed(api, heard, process):
    await api.get("version")
    await until(lambda: process.events._begun is not None)
    hyperpod = Hyperpod()
    spec = JobSpec.model_validate({"source": {"kind": "command", "command": "sleep 1"}})
    run_id = await hyperpod.submitter.submit(Request(spec))
    await api.get(f"runs/{run_id}")
    await until(lambda: "succeeded" in states(heard, run_id))
    await hyperpod.close()


async def test_nobody_listening_means_no_look(api, process):
    run = await api.submit("sleep 60")
    await api.get("runs")
    await asyncio.sleep(1.5)
    assert process.events.looks == 0
    await api.request("POST", f"runs/{run['run_id']}/cancel", "")


async def test_events_reach_jupyters_own_socket(api, jp_ws_fetch):
    socket = await jp_ws_fetch("api", "events", "subscribe")
    run = await api.submit()
    async with asyncio.timeout(20):
        event = json.loads(await socket.read_message())
    assert (event["schema_id"], event["run_id"]) == (SCHEMA_ID, run["run_id"])
    assert "bundle" not in json.dumps(event)
    socket.close()


def test_the_pause_grows_with_idleness():
    assert next_interval(anything_open=True, idle=0) == MIN_INTERVAL_S
    assert next_interval(anything_open=True, idle=300) == 5.0
    assert next_interval(anything_open=True, idle=10_000) == MAX_INTERVAL_S
    assert next_interval(anything_open=True, idle=0, cost=0.5) == 5.0
    assert next_interval(anything_open=False, idle=0) == LOOK_S
    assert next_interval(anything_open=False, idle=10) == 10.0
    assert next_interval(anything_open=False, idle=0, cost=0.5) == 5.0
    assert next_interval(anything_open=False, idle=60) == MAX_INTERVAL_S
    assert next_interval(anything_open=False, idle=IDLE_TIMEOUT_S) is None
