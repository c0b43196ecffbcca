"""The state of an array as the sum of its children's: counts and the worst state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hyperpod_jlab.model.run import State, Status

_WORST_FIRST: tuple[State, ...] = ("failed", "unknown", "cancelled", "succeeded")


def sum_up_children(parent: Status, children: Sequence[tuple[Status, int]]) -> Status:
    """The array's status.

    While a child may still change the array runs (or waits, when none has started); after that it has the worst of their states.

    Args:
        parent: What the array's own records say, such as being held.
        children: The status of every child, with how many have it; one that never began ends with the array.
    """
    counts: Counter[State] = Counter()
    for child, count in children:
        counts[child.state] += count
    words = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    started = min((child.started_at for child, _ in children if child.started_at), default=None)
    if all(child.ended or child.state == "unknown" for child, _ in children):
        worst = next(state for state in _WORST_FIRST if counts[state])
        codes = [
            child.exit_code for child, _ in children if child.state == "failed" and child.exit_code
        ]
        ends = [child.ended_at for child, _ in children if child.ended_at]
        return Status(
            worst,
            reason=None if worst == "succeeded" else words,
            reason_code=None if worst == "succeeded" else "children",
            exit_code=0 if worst == "succeeded" else next(iter(codes), None),
            started_at=started,
            ended_at=max(ends, default=None),
        )
    if parent.ended:  # children that live go on without it; the others were told of its end
        words = f"its supervisor is gone; {words}"
    busy = len(counts) > 1 or counts["running"] > 0
    if busy or parent.ended:
        return Status("running" if busy else "waiting", reason=words, started_at=started)
    if parent.state == "waiting":  # such as held: the array's own word says why
        return Status("waiting", reason=parent.reason or words, reason_code=parent.reason_code)
    said = {child.reason_code: child.reason for child, _ in children if child.reason_code}
    if len(said) == 1:  # all that know why say the same
        ((code, reason),) = said.items()
        return Status("waiting", reason=f"{words}: {reason}", reason_code=code)
    return Status("waiting", reason=words)
