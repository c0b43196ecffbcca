"""The step on the lifecycle configuration of this space: what its script has made ready, and what not."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from hyperpod_jlab.model.check import Step, Told, of_error, ok, warn
from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.storage.lifecycle_files import lifecycle_folders, read_status


def lifecycle_steps() -> list[Step]:
    """One step; it has nothing to say where none has run."""
    return [Step("lifecycle", "lifecycle configuration", "installation", _look)]


async def _look() -> Told | None:
    return await asyncio.to_thread(_told)


def _told() -> Told | None:
    try:
        status = read_status()
    except StorageError as error:
        return of_error(error, "warn")
    if status is None:
        return None
    log = f"see lifecycle.log in {lifecycle_folders()[0]}"
    state = status.state_at(datetime.now(UTC))
    when = f"{status.updated:%Y-%m-%d %H:%M} UTC"
    if state == "failed":
        step = status.trouble
        words = f"{step.name}: {step.message or 'no reason'}" if step else "no step says why"
        # What of it is missing the other checks say; this one stays until the next start.
        return warn(f"it failed at {when}: {words}", f"{log}; restart the space to try again")
    if state == "stopped":
        step = status.current
        words = f" in the step {step.name}" if step else ""
        hint = f"{log}; restart the space to try again"
        return warn(f"it has said nothing since {when}{words}", hint)
    if state == "running":
        step = status.current
        return ok(f"it is at work{f': {step.name}' if step else ''}")
    skipped = [step.name for step in status.steps if step.state == "skipped"]
    more = f", without {', '.join(skipped)}" if skipped else ""
    return ok(f"it was done at {when}{more}")
