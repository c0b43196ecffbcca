"""Catches what ends up on stderr without anybody having asked for it, when an event loop and all that runs there are ended."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any


def strays(work: Callable[[], Awaitable[None]]) -> list[str]:
    """Run something on a loop of its own, as `asyncio.run` does; what its end made Python say."""
    found: list[str] = []

    def loop_says(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        del loop
        found.append(f"{context['message']}: {context.get('exception')!r}")

    def python_says(said: sys.UnraisableHookArgs) -> None:
        found.append(f"{said.err_msg}: {said.object!r}: {said.exc_value!r}")

    before, sys.unraisablehook = sys.unraisablehook, python_says
    try:
        with warnings.catch_warnings(record=True, action="always") as warned:
            with asyncio.Runner() as runner:
                runner.get_loop().set_exception_handler(loop_says)
                runner.run(_ended(work))
            gc.collect()
        found += [str(one.message) for one in warned]
    finally:
        sys.unraisablehook = before
    return found


async def _ended(work: Callable[[], Awaitable[None]]) -> None:
    await work()
