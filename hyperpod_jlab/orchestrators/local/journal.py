"""What the user has asked of a run: the sum of its journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hyperpod_jlab.model.records import Action


@dataclass(frozen=True)
class Wishes:
    """Is the run cancelled, is it held, and how often was it requeued."""

    cancelled: bool = False
    held: bool = False
    requeues: int = 0


def sum_up(actions: Iterable[Action]) -> Wishes:
    """The sum of a journal, oldest action first."""
    cancelled = held = False
    requeues = 0
    for action in actions:
        if action.action == "cancel":
            cancelled = True
        elif action.action == "requeue":
            requeues += 1
        elif action.action in {"hold", "release"}:
            held = action.action == "hold"
    return Wishes(cancelled, held, requeues)
