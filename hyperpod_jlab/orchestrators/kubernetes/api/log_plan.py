"""What to do next for a pod's log, from the pod's state and where one stands. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from hyperpod_jlab.orchestrators.kubernetes.api.log_cursor import Cursor
from hyperpod_jlab.orchestrators.kubernetes.api.log_items import (
    Ended,
    Gap,
    Item,
    Over,
    Portion,
    Started,
)
from hyperpod_jlab.orchestrators.kubernetes.api.pod_state import ContainerState, Exit, PodState


@dataclass(frozen=True, slots=True)
class Say:
    """Hand out this; then look again at what is next, for which the state need not be asked anew."""

    portion: Portion


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be read until the pod's state changes."""


@dataclass(frozen=True, slots=True)
class Read:
    """Read the log of the cursor's container.

    Attributes:
        previous: Whether it is the one before the newest.
        live: Whether it runs.
    """

    previous: bool
    live: bool


Step: TypeAlias = Say | Wait | Read


def next_step(state: PodState | None, name: str, cursor: Cursor, *, doubt: bool) -> Step:
    """What to do next.

    Args:
        state: The pod, or None when there is none of that name.
        name: The container's name.
        cursor: Where one stands.
        doubt: Whether the last answer was cut, so that more may have been written than was read.
    """
    if state is None or (cursor.uid and state.uid != cursor.uid):
        return _gone(cursor, doubt=doubt, replaced=state is not None)
    one = state.container(name)
    if not cursor.container_id or (cursor.finished and cursor.container_id != one.container_id):
        return _begin(state, one, cursor)
    if cursor.finished:
        return Wait() if state.starts_again(name) else _over(cursor)
    if cursor.container_id == one.container_id:
        return Read(previous=False, live=one.running)
    if (before := _before(one)) is not None and cursor.container_id == before.container_id:
        return Read(previous=True, live=False)
    return Say(finished(cursor, one.exit if not one.container_id else None, Gap("restarted")))


def finished(cursor: Cursor, exit_: Exit | None, *first: Item) -> Portion:
    """The cursor's container has ended, and was read to its end."""
    ended = Ended(
        restart=cursor.restart,
        container_id=cursor.container_id,
        exit_code=exit_.code if exit_ else None,
        reason=exit_.reason if exit_ else None,
        at=exit_.at if exit_ else None,
    )
    return Portion((*first, ended), replace(cursor, finished=True))


def exit_of(state: PodState | None, name: str, container_id: str) -> Exit | None:
    """How a container ended, as far as the pod still says it."""
    one = state.container(name) if state is not None else ContainerState(name)
    return next(
        (
            known
            for known in (one.exit, one.previous)
            if known and known.container_id == container_id
        ),
        None,
    )


def _gone(cursor: Cursor, *, doubt: bool, replaced: bool) -> Step:
    items: list[Item] = []
    if cursor.container_id and not cursor.finished:
        gap = (Gap("deleted"),) if doubt else ()
        items += finished(cursor, None, *gap).items
    items.append(Over("replaced" if replaced else "deleted"))
    return Say(Portion(tuple(items), replace(cursor, finished=True, over=True)))


def _over(cursor: Cursor) -> Step:
    return Say(Portion((Over("ended"),), replace(cursor, over=True)))


def _before(one: ContainerState) -> Exit | None:
    """The container before the newest, as long as the kubelet keeps it."""
    before = one.previous
    if before is None or not before.container_id or before.container_id == one.container_id:
        return None
    return before


def _begin(state: PodState, one: ContainerState, cursor: Cursor) -> Step:
    """The oldest container after the cursor's that can still be read."""
    before = _before(one)
    next_restart = cursor.restart + 1 if cursor.container_id else 0
    if before is not None and before.container_id != cursor.container_id:
        return _started(state, before.container_id, one.restart - 1, None, next_restart)
    if one.container_id:
        return _started(state, one.container_id, one.restart, one.started_at, next_restart)
    if state.starts_again(one.name):
        return Wait()
    return _over(replace(cursor, uid=state.uid))


def _started(
    state: PodState,
    container_id: str,
    restart: int,
    at: float | None,
    expected: int,
) -> Step:
    gap = (Gap("restarted"),) if restart > expected else ()
    return Say(
        Portion(
            (*gap, Started(restart, container_id, at)),
            Cursor(uid=state.uid, restart=restart, container_id=container_id),
        )
    )
