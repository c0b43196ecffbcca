"""The Admin page over REST, against the testbed's AWS: plan, apply, stop, take back; two tabs and two servers."""

from __future__ import annotations

import asyncio
import stat
from datetime import timedelta

import pytest

from hyperpod_jlab.admin.fsx.aws import claim_tag
from hyperpod_jlab.admin.fsx.reconcile import Reconciler
from hyperpod_jlab.server.events import ADMIN_SCHEMA_ID as SCHEMA_ID
from testbed.aws.state import Profile, Space, StudioLifecycleConfig, lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, disk
from tests.aws.conftest import REGION, endpoint
from tests.server.admin_calls import (
    BACK,
    PER_USER,
    SHARED,
    UPDATE,
    applied,
    aws,
    here,
    made,
    planned,
    posted,
    quick,
    steps,
    until,
)

__all__ = ["aws", "disk", "endpoint", "quick"]


def claim(aws):
    """What the domain says of an apply that is under way."""
    return aws.account.domains[DOMAIN].tags.get(claim_tag(FILE_SYSTEM))


async def test_before_the_first_plan_there_is_none(api):
    answer = await api.get("admin/work")
    assert (answer["state"], answer["number"], answer["plan"]) == ("none", 0, None)
    assert (await api.get("admin/steps"))["steps"] == []


async def test_plan_apply_toggle_and_take_back(aws, api, disk):
    at = here(disk)
    answer = await planned(api, {**PER_USER, **at})
    assert answer["plan"]["now"] is None
    assert answer["plan"]["counts"] == {"as_wanted": 3, "to_do": 9, "waits": 0, "blocked": 0}
    assert {"kind": "profile", "total": 3, "differ": 3} in answer["plan"]["drift"]
    assert answer["read"] == {"done": 5, "total": 5}
    assert aws.account.profiles[DOMAIN, "alice"].file_systems == []
    step = (await steps(api))["profile alice"]
    assert (step["state"], step["before"], step["after"]) == ("to-do", "not mounted", "/alice")

    await posted(api, "admin/apply", {"plan": answer["plan"]["id"]})
    answer = await until(api, "applied", "failed")
    assert answer["results"] == {"done": 9, "failed": 0, "left": 0}
    assert stat.S_IMODE((disk / "alice").stat().st_mode) == 0o700
    assert aws.account.profiles[DOMAIN, "alice"].file_systems == [lustre_at(FILE_SYSTEM, "/alice")]
    assert {step["state"] for step in (await steps(api)).values()} == {"done", "as-wanted"}
    (disk / "alice" / "mine.txt").write_text("alice's")

    answer = await planned(api, {**SHARED, **at})
    assert answer["plan"]["now"] == "per-user"
    answer = await applied(api, {**SHARED, **at})
    assert answer["state"] == "applied"
    assert aws.account.domains[DOMAIN].file_systems == [lustre_at(FILE_SYSTEM, "/shared")]
    answer = await applied(api, BACK)
    assert (answer["state"], answer["plan"]["now"]) == ("applied", "shared")
    assert aws.account.domains[DOMAIN].file_systems == []
    assert (disk / "alice" / "mine.txt").read_text() == "alice's"
    answer = await planned(api, BACK)
    assert answer["plan"]["counts"]["to_do"] == 0


async def test_lifecycle_configurations_are_taken_back_too(aws, api):
    """As `hpj admin destroy` does; a plan for a mode leaves them alone."""
    name = "hyperpod-jlab-jupyterlab-0123456789ab"
    tags = {"hyperpod-jlab": "JupyterLab", f"hyperpod-jlab-domain-{DOMAIN}": ""}
    aws.account.lifecycle_configs[REGION, name] = StudioLifecycleConfig("", "JupyterLab", tags)
    arn = f"arn:aws:sagemaker:{REGION}:{aws.account.account_id}:studio-lifecycle-config/{name}"
    domain = aws.account.domains[DOMAIN]
    domain.app_settings = {"JupyterLab": {"BuiltInLifecycleConfigArn": arn}}
    kind = "lifecycle"
    answer = await planned(api, SHARED)
    assert kind not in [one["kind"] for one in answer["plan"]["drift"]]
    answer = await planned(api, BACK)
    assert {"kind": kind, "total": 2, "differ": 2} in answer["plan"]["drift"]
    assert (await applied(api, BACK))["state"] == "applied"
    assert aws.account.lifecycle_configs == {}
    assert arn not in str(domain.app_settings)


async def test_one_profile_that_fails_leaves_the_others(aws, api, disk, monkeypatch):
    answer = await planned(api, {**PER_USER, **here(disk)})
    before = Reconciler.executor

    def executor(self, there, guard=None):
        # Deleted by somebody in just that moment.
        aws.account.profiles.pop((DOMAIN, "bob"), None)
        return before(self, there, guard)

    monkeypatch.setattr(Reconciler, "executor", executor)
    await posted(api, "admin/apply", {"plan": answer["plan"]["id"]})
    answer = await until(api, "applied")
    assert answer["results"] == {"done": 8, "failed": 1, "left": 0}
    failed = await steps(api, state="failed")
    assert list(failed) == ["profile bob"]
    assert "not found" in failed["profile bob"]["reason"]
    assert aws.account.profiles[DOMAIN, "carol"].file_systems == [lustre_at(FILE_SYSTEM, "/carol")]


async def test_a_plan_is_confirmed_by_its_id_and_used_once(aws, api, disk):
    body = {**PER_USER, **here(disk)}
    first = await planned(api, body)
    await planned(api, {**SHARED, **here(disk)})
    error = await posted(api, "admin/apply", {"plan": first["plan"]["id"]}, 409)
    assert error["code"] == "other_plan"
    assert aws.account.domains[DOMAIN].file_systems == []
    again = await planned(api, body)
    assert again["plan"]["id"] == first["plan"]["id"], "the same plan has the same id"
    await applied(api, body)
    error = await posted(api, "admin/apply", {"plan": first["plan"]["id"]}, 409)
    assert error["code"] == "plan_is_used"


async def test_where_more_would_be_done_than_was_shown_nothing_is(aws, api, disk):
    body = {**PER_USER, **here(disk)}
    first = await planned(api, body)
    aws.account.profiles[DOMAIN, "dave"] = Profile()
    await posted(api, "admin/apply", {"plan": first["plan"]["id"]})
    answer = await until(api, "planned", "applied")
    assert (answer["state"], answer["plan"]["changed"]) == ("planned", True)
    assert answer["plan"]["id"] != first["plan"]["id"]
    assert "profile dave" in await steps(api)
    assert made(aws, UPDATE) == 0
    await posted(api, "admin/apply", {"plan": answer["plan"]["id"]})
    assert (await until(api, "applied"))["results"]["failed"] == 0
    assert aws.account.profiles[DOMAIN, "dave"].file_systems == [lustre_at(FILE_SYSTEM, "/dave")]


async def test_what_another_admin_has_done_since_is_no_obstacle(aws, api, disk):
    body = {**PER_USER, **here(disk)}
    first = await planned(api, body)
    aws.account.profiles[DOMAIN, "alice"].file_systems = [lustre_at(FILE_SYSTEM, "/alice")]
    aws.account.spaces[DOMAIN, "work"].apps = ["JupyterLab"]
    await posted(api, "admin/apply", {"plan": first["plan"]["id"]})
    answer = await until(api, "applied", "planned")
    assert answer["state"] == "applied"
    found = await steps(api)
    assert found["profile alice"]["state"] == "as-wanted"
    assert found["space work"]["state"] == "waits"
    assert found["profile bob"]["state"] == "done"


async def test_two_tabs_mean_the_same_work(aws, api):
    aws.faults.slow["sagemaker:DescribeDomain"] = 0.5
    first, second = await asyncio.gather(*(posted(api, "admin/plan", SHARED) for _ in range(2)))
    assert first["number"] == second["number"]
    error = await posted(api, "admin/plan", PER_USER, 409)
    assert error["code"] == "admin_busy"
    answer = await until(api, "planned")
    one, other = await asyncio.gather(*(posted(api, "admin/apply", {"plan": answer["plan"]["id"]}) for _ in range(2)))
    assert one["number"] == other["number"] == first["number"]


async def test_it_can_be_stopped_between_steps_and_goes_on_by_a_new_plan(aws, api, disk):
    for number in range(20):
        aws.account.profiles[DOMAIN, f"user-{number:02}"] = Profile()
    aws.account.update_time = timedelta(seconds=0.3)
    body = {**PER_USER, **here(disk)}
    answer = await planned(api, body)
    await posted(api, "admin/apply", {"plan": answer["plan"]["id"]})
    async with asyncio.timeout(60):
        while not any("profile" in target for target in await steps(api, state="done")):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert (await posted(api, "admin/cancel", {}))["state"] == "stopping"
    answer = await until(api, "stopped")
    assert answer["results"]["left"] > 0
    assert answer["results"]["failed"] == 0
    assert all(one.status == "InService" for one in aws.account.profiles.values())
    states = {step["state"] for step in (await steps(api, limit="1000")).values()}
    assert states >= {"done", "not-begun"}
    # Each step has come to its end, so nothing is claimed any more.
    assert claim(aws) is None
    aws.account.update_time = timedelta(seconds=0.02)
    answer = await applied(api, body)
    assert answer["results"]["left"] == answer["results"]["failed"] == 0
    assert (await planned(api, body))["plan"]["counts"]["to_do"] == 0


async def test_a_plan_that_is_stopped_has_done_nothing(aws, api):
    aws.faults.slow["sagemaker:DescribeDomain"] = 1.0
    await posted(api, "admin/plan", SHARED)
    answer = await posted(api, "admin/cancel", {})
    assert (answer["state"], answer["plan"]) == ("stopped", None)
    aws.faults.slow.clear()
    answer = await planned(api, SHARED)
    aws.faults.slow["sagemaker:DescribeDomain"] = 1.0
    await posted(api, "admin/apply", {"plan": answer["plan"]["id"]})
    again = await posted(api, "admin/cancel", {})
    assert (again["state"], again["plan"]["id"]) == ("planned", answer["plan"]["id"])


async def test_a_server_that_ends_in_between_leaves_what_a_new_plan_goes_on_from(aws, api, process, disk):
    for number in range(8):
        aws.account.profiles[DOMAIN, f"user-{number}"] = Profile()
    aws.account.update_time = timedelta(seconds=0.2)
    body = {**PER_USER, **here(disk)}
    answer = await planned(api, body)
    await posted(api, "admin/apply", {"plan": answer["plan"]["id"]})
    async with asyncio.timeout(60):
        while not made(aws, UPDATE):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await (await process.admin()).plans.close()
    process._admin = None  # what a new server has
    assert (await api.get("admin/work"))["state"] == "none"
    error = await posted(api, "admin/apply", {"plan": answer["plan"]["id"]}, 409)
    assert error["code"] == "other_plan"
    await asyncio.sleep(0.3)  # what SageMaker had begun, it ends
    assert claim(aws) == "per-user"
    answer = await planned(api, body)
    assert {"kind": "apply", "total": 1, "differ": 1} in answer["plan"]["drift"]
    step = (await steps(api))[f"apply to domain {DOMAIN}"]
    assert (step["state"], step["before"], step["after"]) == ("to-do", "started, not ended: per-user", "none started")
    await posted(api, "admin/apply", {"plan": answer["plan"]["id"]})
    answer = await until(api, "applied", "stopped", "failed")
    assert (answer["state"], answer["results"]["failed"]) == ("applied", 0)
    assert answer["results"]["left"] == 0
    assert claim(aws) is None
    assert all(one.file_systems for one in aws.account.profiles.values())


async def test_findings_keep_a_plan_from_being_applied(aws, api):
    aws.account.file_systems[REGION][0].vpc = "vpc-0fedcba9876543210"
    answer = await planned(api, SHARED)
    assert [one["code"] for one in answer["plan"]["findings"]] == ["other_vpc"]
    error = await posted(api, "admin/apply", {"plan": answer["plan"]["id"]}, 422)
    assert error["code"] == "other_vpc"


async def test_what_runs_is_named_and_waits(aws, api, disk):
    aws.account.spaces[DOMAIN, "work"].apps = ["JupyterLab"]
    answer = await planned(api, {**SHARED, **here(disk)})
    assert answer["plan"]["restarts"] == [{"target": "space work", "apps": ["JupyterLab"]}]
    assert list(await steps(api, state="waits")) == ["space work"]


async def test_five_hundred_profiles_by_pages(aws, api, disk):
    for number in range(500):
        aws.account.profiles[DOMAIN, f"user-{number:03}"] = Profile()
        aws.account.spaces[DOMAIN, f"space-{number:03}"] = Space(f"user-{number:03}")
    answer = await planned(api, {**PER_USER, **here(disk)})
    assert answer["plan"]["counts"]["to_do"] > 1000
    page = await api.get("admin/steps", limit=50, filter="profile user-1", state="to-do")
    assert (len(page["steps"]), page["total"]) == (50, 100)
    more = await api.get("admin/steps", limit=50, filter="profile user-1", state="to-do", cursor=page["next"])
    assert more["next"] is None
    assert not {one["key"] for one in page["steps"]} & {one["key"] for one in more["steps"]}


async def test_progress_is_told_on_the_bus(aws, api, jp_serverapp, disk):
    told = []

    async def listen(logger, schema_id, data):
        told.append((data["number"], data["version"], data["state"]))

    jp_serverapp.event_logger.add_listener(schema_id=SCHEMA_ID, listener=listen)
    await applied(api, {**PER_USER, **here(disk)})
    async with asyncio.timeout(10):
        while not told or told[-1][2] != "applied":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    states = list(dict.fromkeys(state for _, _, state in told))
    assert states == ["planning", "planned", "checking", "applying", "applied"]
    versions = [version for _, version, _ in told]
    assert versions == sorted(set(versions))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"mode": "shared", "file_system": FILE_SYSTEM}, "domain"),
        ({"mode": "shared", "domain": DOMAIN}, "file_system"),
        ({**SHARED, "domain": "../x"}, "domain"),
        ({**SHARED, "file_system": "vol-1"}, "file_system"),
        ({**SHARED, "shared_path": "shared"}, "shared_path"),
        ({**SHARED, "shared_path": "/a/../b"}, "shared_path"),
        ({**SHARED, "shared_path": "/shared/"}, "shared_path"),
        ({**SHARED, "folders": {"by": "here", "mounted_at": "/no/such/folder"}}, "folders.mounted_at"),
        ({**SHARED, "folders": {"by": "here", "queue": "gpu"}}, "folders.queue"),
        ({**SHARED, "folders": {"by": "none", "mounted_at": "/fsx"}}, "folders.mounted_at"),
        ({**SHARED, "folders": {"by": "me"}}, "folders.by"),
        ({**SHARED, "mode": "both"}, "mode"),
        ({"domain": DOMAIN}, "mode"),
        ({**SHARED, "profiles": []}, "profiles"),
        ({**SHARED, "more": 1}, "more"),
    ],
)
async def test_bad_words_name_the_field(aws, api, body, field):
    error = await posted(api, "admin/plan", body, 400)
    assert error["detail"]["field"] == field


async def test_a_profile_that_is_not_there(aws, api):
    await posted(api, "admin/plan", {**SHARED, "profiles": ["alice", "nobody"]})
    answer = await until(api, "planned", "failed")
    assert answer["problem"]["code"] == "no_such_profile"
    assert answer["problem"]["message"].endswith("no user profile 'nobody'")


async def test_a_quick_look_tells_the_mode_that_is_there(aws, api, disk):
    at = {"domain": DOMAIN, "file_system": FILE_SYSTEM}
    assert await api.get("admin/mode", **at) == {"mode": None, "shared_path": None}
    await applied(api, {**SHARED, "shared_path": "/team", **here(disk)})
    assert await api.get("admin/mode", **at) == {"mode": "shared", "shared_path": "/team"}
    await applied(api, {**PER_USER, "profiles": ["bob"], **here(disk)})
    assert await api.get("admin/mode", **at) == {"mode": "both", "shared_path": "/team"}
    await applied(api, {**PER_USER, **here(disk)})
    assert await api.get("admin/mode", **at) == {"mode": "per-user", "shared_path": None}
    for number in range(60):
        aws.account.profiles[DOMAIN, f"user-{number:02}"] = Profile()
    before = made(aws, "sagemaker:DescribeUserProfile")
    assert (await api.get("admin/mode", **at))["mode"] == "per-user"
    assert made(aws, "sagemaker:DescribeUserProfile") - before == 20
    status, error = await api.request("GET", "admin/mode", query={**at, "domain": "x"})
    assert (status, error["detail"]["field"]) == (400, "domain")
