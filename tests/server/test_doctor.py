"""The doctor over REST: one examination at a time, shown as it goes on, told on the event bus."""

from __future__ import annotations

import asyncio

import pytest

from hyperpod_jlab.core.check import CheckResult, CheckStep, Group, fail, ok, unknown, warn
from hyperpod_jlab.server.events import DOCTOR_SCHEMA_ID as SCHEMA_ID
from tests.server.test_events import until


@pytest.fixture
def heard(jp_serverapp):
    """What the event bus tells of examinations."""
    told = []

    async def listen(logger, schema_id, data):
        told.append((data["number"], data["version"], data["state"]))

    jp_serverapp.event_logger.add_listener(schema_id=SCHEMA_ID, listener=listen)
    return told


async def begun(api, **body):
    status, answer = await api.request("POST", "doctor", body)
    assert status == 200, answer
    return answer


async def ended(api):
    """The examination once it has ended."""
    async with asyncio.timeout(60):
        while (answer := await api.get("doctor"))["state"] == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return answer


class Slow:
    """An examination that waits to be let on, between its two checks."""

    def __init__(self):
        self.on = asyncio.Event()
        self.closed = False

    async def __call__(self, asked, begun):
        async def look():
            return None

        try:
            for key, told in (("first", ok("well")), ("second", warn("hm", "mend it", "admin"))):
                step = CheckStep(key, key, "installation", look)
                begun(step)
                if key == "second":
                    await self.on.wait()
                yield step.to_check(told)
        finally:
            self.closed = True


@pytest.fixture
async def slow(process):
    """Examinations of two checks, the second of which waits."""
    made = Slow()
    (await process.examinations())._make = made
    return made


async def test_before_the_first_one_there_is_none(api):
    answer = await api.get("doctor")
    assert (answer["state"], answer["number"], answer["checks"]) == ("none", 0, [])


async def test_the_real_one_on_the_embedded_cluster(api):
    assert (await begun(api))["state"] == "running"
    answer = await ended(api)
    assert answer["state"] == "done"
    assert answer["problem"] is answer["step"] is None
    checks = {check["name"]: check for check in answer["checks"]}
    assert checks["writing"]["level"] == "ok"
    assert checks["cluster local"]["level"] == "ok"
    assert checks["cluster local"]["about"] == "local"
    assert {check["group"] for check in answer["checks"]} >= {"installation", "partition"}
    assert all(check["who"] for check in answer["checks"] if check["fix"])


async def test_a_configuration_that_cannot_be_read_is_what_it_finds(api, cluster):
    config = cluster / "config.toml"
    config.write_text("[clusters.local]\nslot = 8\n")
    status, _ = await api.request("GET", "clusters")
    assert status == 400
    await begun(api)
    answer = await ended(api)
    failed = [check for check in answer["checks"] if check["level"] == "fail"]
    assert answer["state"] == "done"
    assert [check["key"] for check in failed] == ["configuration"]
    assert "slot" in failed[0]["evidence"]
    config.write_text("[clusters.local]\nslots = 8\n")
    await begun(api)
    assert all(check["level"] != "fail" for check in (await ended(api))["checks"])


async def test_what_is_there_so_far_is_shown_and_told(api, heard, slow):
    first = await begun(api)
    assert first["number"] == 1
    await until(lambda: len(heard) >= 4)
    answer = await api.get("doctor")
    assert answer["state"] == "running"
    assert [check["key"] for check in answer["checks"]] == ["first"]
    assert answer["step"]["key"] == "second"
    again = await begun(api)
    assert again["number"] == 1, "all tabs share one"
    slow.on.set()
    answer = await ended(api)
    assert [check["level"] for check in answer["checks"]] == ["ok", "warn"]
    assert answer["checks"][1]["who"] == "admin"
    assert answer["ended_at"] is not None
    await until(lambda: heard[-1][2] == "done")
    assert [version for _, version, _ in heard] == sorted({version for _, version, _ in heard})
    assert (await begun(api))["number"] == 2


async def test_another_one_has_to_wait(api, slow):
    await begun(api)
    status, error = await api.request("POST", "doctor", {"job": True})
    assert (status, error["code"]) == (409, "examination_running")
    status, error = await api.request("POST", "doctor", {"cluster": "nowhere"})
    assert (status, error["code"]) == (404, "unknown_cluster")
    slow.on.set()
    await ended(api)


async def test_a_tiny_job_on_the_embedded_cluster(api):
    answer = await begun(api, cluster="local", job=True)
    assert (answer["cluster"], answer["job"]) == ("local", True)
    answer = await ended(api)
    assert [check["level"] for check in answer["checks"] if check["group"] == "job"] == ["ok"]
    assert (await api.get("runs"))["runs"] == [], "nothing of it is left"


async def test_a_report_for_an_admin(api, slow):
    status, error = await api.request("GET", "doctor/report")
    assert (status, error["code"]) == (404, "no_examination")
    await begun(api)
    slow.on.set()
    await ended(api)
    report = await api.get("doctor/report")
    assert report["name"].endswith(".md")
    assert "1 ok, 1 warning" in report["text"]
    assert "## For the admin" in report["text"]
    assert "mend it" in report["text"]


async def test_it_can_be_ended_and_what_it_found_stays(api, slow):
    await begun(api)
    status, answer = await api.request("POST", "doctor/cancel", "")
    assert (status, answer["state"], answer["step"]) == (200, "cancelled", None)
    assert slow.closed
    assert [check["key"] for check in answer["checks"]] == ["first"]
    status, again = await api.request("POST", "doctor/cancel", "")
    assert (status, again["version"]) == (200, answer["version"])


async def test_one_that_breaks_says_so_without_a_traceback(api, process):
    async def broken(asked, begun):
        yield int("a secret path")

    (await process.examinations())._make = broken
    await begun(api)
    answer = await ended(api)
    assert answer["state"] == "failed"
    assert answer["problem"]["code"] == "internal"
    assert "secret" not in str(answer)


async def test_the_server_stops_in_the_midst_of_one(api, process, slow):
    await begun(api)
    await process.close()
    assert slow.closed


async def test_the_path_says_where_it_breaks(api, process):
    async def looks(asked, begun):
        async def look():
            return None

        groups: tuple[tuple[str, Group, CheckResult], ...] = (
            ("one", "installation", warn("hm")),
            ("two", "role", unknown("denied")),
            ("three", "security-groups", fail("blocked")),
            ("four", "interfaces", ok("well")),
            ("five", "queue", unknown("not checked")),
        )
        for key, group, told in groups:
            yield CheckStep(key, key, group, look).to_check(told)

    (await process.examinations())._make = looks
    await begun(api)
    answer = await ended(api)
    path = [
        (stage["stage"], stage["level"], stage["checks"], stage["problems"], stage["broken"])
        for stage in answer["stages"]
    ]
    assert path == [
        ("jupyterlab", "warn", 1, 1, False),
        ("aws", "unknown", 1, 1, False),
        ("network", "fail", 2, 1, True),
        ("file-system", None, 0, 0, False),
        ("scheduler", "unknown", 1, 1, False),
        ("nodes", None, 0, 0, False),
    ]
    assert {check["stage"] for check in answer["checks"]} == {"jupyterlab", "aws", "network", "scheduler"}
