"""Too many calls for half a minute: what was there stays, and few more calls are made."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.aws.test_rest import DESCRIBE, LIST, example, until_loaded
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.conftest import *  # noqa: F403

__all__ = ["example"]


@pytest.mark.full
async def test_thirty_seconds_of_too_many_calls_leave_what_was_there(example, api):
    before = await until_loaded(api, "clusters")
    example.calls.clear()
    for action in (LIST, DESCRIBE):
        example.faults.throttled[action] = 10_000
    answer = before
    begin = time.monotonic()
    while time.monotonic() - begin < 30:
        answer = await api.get("clusters", refresh="true")
        assert [row["name"] for row in answer["clusters"]] == [row["name"] for row in before["clusters"]]
        await asyncio.sleep(1)
    assert answer["problem"]["code"] == "aws_throttled"
    # One look at a time, however often somebody asks, and its four tries wait longer and longer (3.5 s on average).
    assert len(example.calls) <= 4 * 30 / 2
    example.faults.throttled.clear()
    deadline = time.monotonic() + 30
    while (answer := await api.get("clusters", refresh="true"))["problem"] is not None:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.5)
    assert answer["as_of"] > before["as_of"]
