"""Why a run waits on this machine, in words."""

from __future__ import annotations

from hyperpod_jlab.orchestrators.local.board import Board, Entry


def ahead_of(entries: list[Entry], run_id: str) -> list[Entry]:
    """The waiting runs that come before this one."""
    waiting = [entry for entry in entries if entry.state == "waiting"]
    names = [entry.run_id for entry in waiting]
    return waiting[: names.index(run_id)] if run_id in names else []


def why_waiting(board: Board, entries: list[Entry], run_id: str) -> tuple[str, str]:
    """The reason and its code: no slot, no GPUs, or others before it."""
    running = [entry for entry in entries if entry.state == "running"]
    ahead = ahead_of(entries, run_id)
    mine = next((entry for entry in entries if entry.run_id == run_id), None)
    before = f"; {len(ahead)} before it" if ahead else ""
    if len(running) >= board.slots:
        slots = "the only slot" if board.slots == 1 else f"all {board.slots} slots"
        names = ", ".join(entry.name for entry in running[:3])
        return f"{slots} of this machine taken by {names}{before}", "slots"
    held = sum(len(entry.gpus) for entry in running)
    if mine is not None and mine.gpus_wanted > board.gpus - held:
        return f"needs {mine.gpus_wanted} GPUs, {board.gpus - held} are free{before}", "gpus"
    return f"about to start{before}", "starting"
