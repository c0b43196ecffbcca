"""A child that submits on a small disk, which fills up or becomes read-only at a given step."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request, Step
from tests.mounts import fill, remount, tell


def prepare(disk: Path) -> Hyperpod:
    """The services with their partition on the disk and everything else beside it."""
    for name in ("STATE", "CACHE", "CONFIG"):
        os.environ[f"XDG_{name}_HOME"] = str(disk.parent / name.lower())
    config = disk.parent / "config.toml"
    config.write_text(f'[storage]\npath = "{disk}"\n')
    os.environ["HYPERPOD_CONFIG"] = str(config)
    return Hyperpod()


def what(run: Run) -> list[str | None]:
    return [run.run_id, run.state, run.status.reason_code]


def left_in_shards(disk: Path) -> list[str]:
    return sorted(path.name.split("-")[0] for path in disk.glob(".hyperpod/runs/*/*"))


async def submit(hyperpod: Hyperpod, disk: Path, trouble: str, at: str) -> dict[str, Any]:
    """Submit with trouble at a step, look, set it right, and submit again."""

    def on_step(step: Step) -> None:
        if step == at:
            if trouble == "full":
                fill(disk)
            else:
                remount(disk, "ro")

    marks = disk.parent / "marks"
    spec = parse(JobSpec, {"source": {"kind": "command", "command": f"echo x >> {marks}"}})
    request = Request(spec, run_id="run-1", base=disk.parent)
    try:
        await hyperpod.submitter.submit(request, on_step)
        code, exit_code = "done", 0
    except HyperpodError as error:
        code, exit_code = error.code, error.exit_code
    listed = [what(run) for run in (await hyperpod.runs.list()).runs]
    remount(disk, "rw")
    (disk / "filler").unlink(missing_ok=True)
    left = left_in_shards(disk)
    if at not in {"sent", "recorded"}:
        await hyperpod.submitter.submit(request)
    run = await asyncio.wait_for(hyperpod.runs.wait("run-1"), 60)
    ran = len(marks.read_text().split()) if marks.exists() else 0
    return {"code": code, "exit_code": exit_code, "listed": listed, "left": left, "then": what(run), "ran": ran}


if __name__ == "__main__":
    trouble, step = sys.argv[1].split("-")
    place = Path(sys.argv[2])
    services = prepare(place)
    tell(asyncio.run(submit(services, place, trouble, step)))
