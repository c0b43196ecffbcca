"""A child whose runs live on a small disk that is full for a while."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.local.attempt import find_processes
from hyperpod_jlab.run.cost import list_costs, read_run_cost
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request
from tests.mounts import fill, tell

LONGER_THAN_A_HEARTBEAT = 6.0


def prepare(disk: Path) -> Hyperpod:
    """The services with their partition on the disk, everything else beside it, and two slots."""
    for name in ("STATE", "CACHE", "CONFIG"):
        os.environ[f"XDG_{name}_HOME"] = str(disk.parent / name.lower())
    config = disk.parent / "config.toml"
    config.write_text(f'[storage]\npath = "{disk}"\n[clusters.local]\nslots = 2\n')
    os.environ["HYPERPOD_CONFIG"] = str(config)
    return Hyperpod()


async def until_running(hyperpod: Hyperpod, run_id: str) -> None:
    async for run in hyperpod.runs.watch(run_id):
        if run.status.attempts:
            return


async def full_for_a_while(hyperpod: Hyperpod, disk: Path) -> dict[str, Any]:
    """One run that goes on meanwhile, one that ends, one that waits for a slot."""
    meanwhile, later = disk.parent / "meanwhile", disk.parent / "later"
    commands = {
        "goes-on": f"until [ -e {later} ]; do sleep 0.05; done; echo two",
        "ends": f"until [ -e {meanwhile} ]; do sleep 0.05; done",
        "waits": "echo at last",
    }
    for run_id, command in commands.items():
        spec = parse(JobSpec, {"source": {"kind": "command", "command": command}})
        await hyperpod.submitter.submit(Request(spec, run_id=run_id, base=disk.parent))
        if run_id != "waits":
            await until_running(hyperpod, run_id)
    filler = fill(disk)
    meanwhile.touch()
    await asyncio.sleep(LONGER_THAN_A_HEARTBEAT)
    filler.unlink()
    later.touch()
    ended = [await asyncio.wait_for(hyperpod.runs.wait(run_id), 60) for run_id in commands]
    log = hyperpod.partition.bundle("goes-on") / "logs/attempt-1/node-0.rank-0.log"
    return {"states": {run.run_id: [run.state, run.status.reason] for run in ended}, "log": log.read_text()}


async def filled_by_the_run(hyperpod: Hyperpod, disk: Path) -> dict[str, Any]:
    """A run that prints until nothing more fits; what it wrote stays."""
    source = {"kind": "command", "command": "python3 -c 'while True: print(\"x\" * 10_000)'"}
    spec = parse(JobSpec, {"source": source})
    await hyperpod.submitter.submit(Request(spec, run_id="prints", base=disk.parent))
    run = await asyncio.wait_for(hyperpod.runs.wait("prints"), 40)
    reserve = hyperpod.partition.bundle("prints") / "status/.reserve"
    return {
        "state": run.state,
        "reason": run.status.reason,
        "code": run.status.reason_code,
        "reserved": reserve.exists(),
    }


async def filled_by_children(hyperpod: Hyperpod, disk: Path) -> dict[str, Any]:
    """Children of an array that all print until nothing more fits; the last one starts on the full disk."""
    source = {"kind": "command", "command": "python3 -c 'while True: print(\"x\" * 10_000)'"}
    spec = parse(JobSpec, {"source": source, "array": "0-2"})
    await hyperpod.submitter.submit(Request(spec, run_id="many", base=disk.parent))
    run = await asyncio.wait_for(hyperpod.runs.wait("many"), 50)
    return {"state": run.state, "reason": run.status.reason}


async def array_while_full(hyperpod: Hyperpod, disk: Path) -> dict[str, Any]:
    """An array that waits for a slot when the disk is full; then there is a slot, and room for one child, which fills it."""
    for run_id in ("first", "second"):
        spec = parse(JobSpec, {"source": {"kind": "command", "command": "sleep 311"}})
        await hyperpod.submitter.submit(Request(spec, run_id=run_id, base=disk.parent))
        await until_running(hyperpod, run_id)
    source = {"kind": "command", "command": "cat /dev/zero > rest"}
    spec = parse(JobSpec, {"source": source, "array": "0-2"})
    await hyperpod.submitter.submit(Request(spec, run_id="many", base=disk.parent))
    async for run in hyperpod.runs.watch("many.0"):
        if run.status.reason_code == "slots":
            break
    filler = fill(disk)
    why = await hyperpod.runs.explain_wait("many")
    children = await hyperpod.runs.children("many")
    os.truncate(filler, filler.stat().st_size - (1 << 18))
    await hyperpod.runs.act("first", "cancel")
    async with asyncio.timeout(40):
        async for run in hyperpod.runs.watch("many.0"):
            if run.status.ended:
                break
    before, array = -1.0, await read_run_cost(hyperpod, "many")
    async with asyncio.timeout(20):  # the launcher tries again to write what did not fit
        while before != array.node_hours:
            await asyncio.sleep(3.0)
            before, array = array.node_hours, await read_run_cost(hyperpod, "many")
    parts = [await read_run_cost(hyperpod, f"many.{index}") for index in range(3)]
    (row,) = (await list_costs(hyperpod, [await hyperpod.runs.get("many")])).values()
    filler.unlink()
    for run_id in ("many", "second"):
        await hyperpod.runs.act(run_id, "cancel")
        await asyncio.wait_for(hyperpod.runs.wait(run_id), 20)
    return {
        "why": [why.reason, why.reason_code],
        "children": sorted({str(child.status.reason) for child in children}),
        "state": run.state,
        "same": array.node_hours == row.node_hours == sum(one.node_hours for one in parts),
    }


async def restarted_while_full(hyperpod: Hyperpod, disk: Path) -> dict[str, Any]:
    """A run that fails while nothing can be written, and may be restarted once."""
    meanwhile = disk.parent / "meanwhile"
    command = f'[ "$HYPERPOD_ATTEMPT" = 2 ] && exit; until [ -e {meanwhile} ]; do sleep 0.05; done; exit 1'
    source = {"kind": "command", "command": command}
    spec = parse(JobSpec, {"source": source, "max_restarts": 1})
    await hyperpod.submitter.submit(Request(spec, run_id="again", base=disk.parent))
    await until_running(hyperpod, "again")
    filler = fill(disk)
    meanwhile.touch()
    await asyncio.sleep(LONGER_THAN_A_HEARTBEAT)
    filler.unlink()
    run = await asyncio.wait_for(hyperpod.runs.wait("again"), 60)
    return {"state": run.state, "attempts": [attempt.number for attempt in run.status.attempts]}


async def cancelled_while_full(hyperpod: Hyperpod, disk: Path) -> dict[str, Any]:
    """A run that is cancelled while nothing can be written."""
    spec = parse(JobSpec, {"source": {"kind": "command", "command": "sleep 311"}, "stop_grace": 1})
    await hyperpod.submitter.submit(Request(spec, run_id="filler", base=disk.parent))
    await until_running(hyperpod, "filler")
    filler = fill(disk)
    await hyperpod.runs.act("filler", "cancel")
    records, deadline = hyperpod.partition.bundle("filler"), time.monotonic() + 20
    # Processes of others tell nobody when they end.
    while (left := find_processes(records)) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    filler.unlink()
    run = await asyncio.wait_for(hyperpod.runs.wait("filler"), 60)
    return {"left": left, "state": run.state}


if __name__ == "__main__":
    place = Path(sys.argv[2])
    tell(asyncio.run(globals()[sys.argv[1]](prepare(place), place)))
