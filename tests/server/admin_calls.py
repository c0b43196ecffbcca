"""What tests do with the Admin page's requests: plan, apply, look at the steps."""

from __future__ import annotations

import asyncio

import pytest

from hyperpod_jlab.admin.fsx import apply as applying
from hyperpod_jlab.admin.fsx import service as wirings
from hyperpod_jlab.aws.session import forget_session
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, domain_account

PER_USER = {"mode": "per-user", "domain": DOMAIN, "file_system": FILE_SYSTEM}
SHARED = {**PER_USER, "mode": "shared"}
BACK = {**PER_USER, "mode": None}
UPDATE = "sagemaker:UpdateUserProfile"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """SageMaker is quick here, so it is looked at often."""
    monkeypatch.setattr(applying, "POLL_S", 0.02)
    monkeypatch.setattr(wirings, "NOTIFY_INTERVAL_S", 0.02)


@pytest.fixture
def aws(endpoint):
    endpoint.account = domain_account()
    forget_session()
    yield endpoint
    assert endpoint.drift == []


def here(disk):
    """Folders are looked at and made by the server's machine."""
    return {"folders": {"by": "here", "mounted_at": str(disk)}}


async def posted(api, path, body, status=200):
    found, answer = await api.request("POST", path, body)
    assert found == status, answer
    return answer


async def until(api, *states):
    """The work once it is in one of the states."""
    async with asyncio.timeout(60):
        while (answer := await api.get("admin/work"))["state"] not in states:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return answer


async def planned(api, body):
    await posted(api, "admin/plan", body)
    answer = await until(api, "planned", "failed")
    assert answer["state"] == "planned", answer["problem"]
    return answer


async def applied(api, body):
    answer = await planned(api, body)
    await posted(api, "admin/apply", {"plan": answer["plan"]["id"]})
    return await until(api, "applied", "stopped", "failed", "planned")


async def steps(api, **query):
    answer = await api.get("admin/steps", **query)
    return {step["target"]: step for step in answer["steps"]}


def made(aws, action):
    """How often an action was asked for."""
    return [call.action for call in aws.calls].count(action)
