"""What ended runs used: asked of the engine once, then remembered in the bundle, so that it stays when the scheduler forgets."""

from __future__ import annotations

import asyncio
import contextlib

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.records import RunRecords
from hyperpod_jlab.model.run import Run
from hyperpod_jlab.model.usage import Usage, signal_of
from hyperpod_jlab.orchestrators.usage import journal_usage
from hyperpod_jlab.services.engines import Engines
from hyperpod_jlab.storage.records import BundleReader


async def usage_of(run: Run, bundle: BundleReader, engines: Engines) -> Usage | None:
    """What a run used; None when it has not ended.

    A cluster that does not answer is no fault: the run's own records have to do then, and it is asked the next time.

    Raises:
        DamagedBundleError: The bundle cannot be read.
    """
    if not run.status.ended:
        return None
    records = await asyncio.to_thread(bundle.read)
    known = await asyncio.to_thread(bundle.usage)
    if known is not None and (run.children or known.attempts == len(records.attempts)):
        return known
    said = None
    with contextlib.suppress(HyperpodError):
        said = await engines.get(run.cluster).usage(bundle)
    if said is None:
        return _with_end(await asyncio.to_thread(journal_usage, bundle), run, records)
    found = _with_end(said, run, records)
    with contextlib.suppress(HyperpodError):  # somebody else's run, or no room: it is asked again
        await asyncio.to_thread(bundle.write_usage, found)
    return found


def _with_end(usage: Usage, run: Run, records: RunRecords) -> Usage:
    """With exit code and signal as the ranks' records tell: a scheduler sees only what the launcher ended with."""
    if run.children:
        return usage.model_copy(update={"exit_code": None, "signal": None})
    code = run.status.exit_code
    if code is None:
        return usage
    return usage.model_copy(update={"exit_code": code, "signal": signal_of(records, code)})
