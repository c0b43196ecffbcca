"""The start of a child process, cancelled at any step."""

from __future__ import annotations

import asyncio

import pytest

from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.child_process import start_child

TIMEOUT_S = 10.0


async def begin_start(steps: int) -> asyncio.Task[asyncio.subprocess.Process]:
    """Start a child, and return after so many steps of the loop."""
    started = asyncio.ensure_future(start_child("sleep", "60"))
    for _ in range(steps):
        await asyncio.sleep(0)
    return started


@pytest.mark.parametrize("steps", range(8))
def test_a_start_that_is_cancelled_ends(steps):
    async def cancel_after_steps():
        started = await begin_start(steps)
        started.cancel()
        await asyncio.wait({started}, timeout=TIMEOUT_S)
        return started.cancelled()

    assert asyncio.run(cancel_after_steps())


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("steps", range(8))
def test_the_loop_ends_while_a_child_starts(steps):
    asyncio.run(begin_start(steps))


async def test_closing_a_cache_ends_loads_of_forgotten_keys():
    cache: Cache[str, None] = Cache()
    task = cache.start("key", lambda: asyncio.sleep(60))
    await asyncio.sleep(0)
    cache.forget("key")
    await cache.close()
    assert task.cancelled()
