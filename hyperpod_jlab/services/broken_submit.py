"""What is written down of a submit that was broken off."""

from __future__ import annotations

import asyncio
import contextlib
import time

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.storage.records import BundleReader


async def tell_failure(bundle: BundleReader, error: BaseException) -> None:
    """Write into the run's records that handing it over was broken off, and why."""
    with contextlib.suppress(HyperpodError):  # there is no place for it then
        await asyncio.to_thread(bundle.add_observation, _failed_to_send(error))


def _failed_to_send(error: BaseException) -> Observation:
    reason = "the submit was broken off; submit it again with the same run id"
    if isinstance(error, HyperpodError):
        reason = error.message
    return Observation(
        time=time.time(),
        observer="submit",
        state="ended",
        verdict="REFUSED",
        reason=reason,
        reason_code="submit_interrupted",
    )
