"""Who waits before whom in a local queue."""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_jlab.orchestrators.kubernetes.tables.kueue import WorkloadRow

Name = tuple[str, str]
"""Namespace and name of a workload."""


def whole_line(told: Sequence[Name], waiting: Sequence[WorkloadRow]) -> list[Name]:
    """The line of a queue as Kueue tells it, with those that it leaves out for the moment.

    While Kueue looks at a workload, some times a second, that one is in no line of its visibility API. It is put back before the first one that comes after it: a
    lower priority, or the same and created later (Kueue's own order, see its concepts' "queueing strategy").

    Args:
        told: The line as Kueue tells it.
        waiting: The workloads that wait in this queue.
    """
    line = list(told)
    rows = {(one.namespace, one.name): one for one in waiting}
    for name, row in sorted(rows.items(), key=lambda item: _order(item[1])):
        if name not in line:
            after = (
                index
                for index, other in enumerate(line)
                if other in rows and _order(rows[other]) > _order(row)
            )
            line.insert(next(after, len(line)), name)
    return line


def _order(row: WorkloadRow) -> tuple[int, str]:
    return -(row.priority or 0), row.created or ""
