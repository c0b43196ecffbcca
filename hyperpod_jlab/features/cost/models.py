"""Usage of clusters over time, summed up by user, account, queue, notebook or cluster. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from hyperpod_jlab.core.cluster import JOB_ENDED, Job
from hyperpod_jlab.core.cost import HOUR_S, Execution, IdleRow, Prices, Shape, cost_of, idle_cost, share_of_node
from hyperpod_jlab.core.wire import Time

By = Literal["user", "account", "queue", "notebook", "cluster"]

DAY_S = 86_400.0
_MAX_DIGITS = 8
"""Digits of ids that get a bit; Slurm counts to 67 million."""
NONE = "(none)"
"""The key of jobs that have no account, queue or notebook."""


@dataclass(frozen=True)
class UsageRow:
    """What one user, account, queue, notebook or cluster used in a period.

    Attributes:
        key: Whose usage it is.
        runs: Jobs that ran; a requeued one counts once.
        node_hours: Hours of nodes.
        gpu_hours: Hours of GPUs or other accelerators.
        amount: Money; null if the price of a node is not known.
    """

    key: str
    runs: int
    node_hours: float
    gpu_hours: float
    amount: float | None


@dataclass(frozen=True)
class UsageDay:
    """The same for one day of UTC, without the number of jobs."""

    day: str
    key: str
    node_hours: float
    gpu_hours: float
    amount: float | None


@dataclass(frozen=True, kw_only=True)
class IdleNodes(IdleRow):
    """Nodes of a cluster that were there and not allocated: those that it has now, since they were launched.

    Attributes:
        cluster: The cluster.
    """

    cluster: str


@dataclass(frozen=True)
class BillLink:
    """Where AWS shows what it charges for a HyperPod cluster.

    Attributes:
        cluster: The cluster.
        url: Its costs of this month in Cost Explorer, found by its tag.
    """

    cluster: str
    url: str


@dataclass(frozen=True)
class UsageReport:
    """The usage of clusters in a period.

    Attributes:
        by: What the keys are.
        begin: The period's begin.
        end: Its end.
        currency: The currency of amounts, as ISO 4217.
        rows: The keys, most GPU-hours first, then node-hours.
        days: The days, the oldest first; a key has none for a day on which it used nothing.
        idle: Nodes that were not allocated, by cluster and instance type; of clusters whose nodes have no known launch time none.
        bills: Where AWS shows what it charges for the HyperPod clusters among them.
        notes: What is not counted, one sentence each.
    """

    by: By
    begin: Time
    end: Time
    currency: str
    rows: tuple[UsageRow, ...] = ()
    days: tuple[UsageDay, ...] = ()
    idle: tuple[IdleNodes, ...] = ()
    bills: tuple[BillLink, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Use:
    """One execution of a job, and whose it is."""

    job_id: str
    execution: Execution
    user: str
    account: str | None = None
    queue: str | None = None
    notebook: str | None = None


class _SeenIds:
    """A set of jobs' ids: a bit for each number, since a month may have a million jobs."""

    def __init__(self) -> None:
        self._numbers = bytearray()
        self._others: set[str] = set()

    def add(self, job_id: str) -> bool:
        """Add an id; returns whether it is new."""
        if not job_id.isdecimal() or len(job_id) > _MAX_DIGITS:
            is_new = job_id not in self._others
            self._others.add(job_id)
            return is_new
        place, bit = divmod(int(job_id), 8)
        if place >= len(self._numbers):
            self._numbers.extend(bytes(place + 1 - len(self._numbers)))
        is_new = not self._numbers[place] >> bit & 1
        self._numbers[place] |= 1 << bit
        return is_new


@dataclass
class _Sum:
    jobs: int = 0
    node_hours: float = 0.0
    gpu_hours: float = 0.0
    amount: float | None = 0.0

    def add(self, node_hours: float, gpu_hours: float, amount: float | None) -> None:
        self.node_hours += node_hours
        self.gpu_hours += gpu_hours
        self.amount = None if amount is None or self.amount is None else self.amount + amount


@dataclass
class _Present:
    """The nodes that a cluster has now, by name, with types and launch times, and the hours by type that jobs had of them since."""

    nodes: Mapping[str, tuple[str, float]]
    prices: Prices
    used: dict[str, float] = field(default_factory=dict)

    def use(self, name: str, share: float, start: float, end: float) -> None:
        """Count a share of a node. What a node of this name did before this one was launched does not count: it was replaced."""
        if name in self.nodes:
            instance_type, launched_at = self.nodes[name]
            hours = share * max(0.0, end - max(start, launched_at)) / HOUR_S
            self.used[instance_type] = self.used.get(instance_type, 0.0) + hours

    def idle(self, begin: float, end: float) -> list[IdleRow]:
        """What was idle in a period, at the prices of its end."""
        there: dict[str, float] = {}
        for instance_type, launched_at in self.nodes.values():
            hours = max(0.0, end - max(begin, launched_at)) / HOUR_S
            there[instance_type] = there.get(instance_type, 0.0) + hours
        now = {name: self.prices.over(name, end, end)[0][2] for name in there}
        known = {name: price.price for name, price in now.items() if price is not None}
        return idle_cost(there, self.used, known)


class UsageCounter:
    """Sums up jobs, in any order and in parts: its memory hardly grows with their number.

    Args:
        by: What is told apart.
        begin: The period's begin (Unix seconds).
        end: Its end.
        currency: The currency of all prices.
    """

    def __init__(self, by: By, begin: float, end: float, currency: str) -> None:
        self._by = by
        self._begin, self._end = begin, end
        self._currency = currency
        self._seen: dict[str, _SeenIds] = {}
        self._rows: dict[str, _Sum] = {}
        self._days: dict[tuple[str, str], _Sum] = {}
        self._present: dict[str, _Present] = {}

    def add(
        self, cluster: str, use: Use, shapes: Mapping[str, Shape], prices: Prices, default: Shape | None = None
    ) -> None:
        """Count one use of a cluster.

        Args:
            cluster: The cluster.
            use: What was used.
            shapes: What the cluster's nodes have, by name.
            prices: Their prices.
            default: What a node has that `shapes` does not name.
        """
        start, end = use.execution.clipped(self._begin, self._end)
        if end <= start:
            return
        key = (cluster if self._by == "cluster" else getattr(use, self._by)) or NONE
        row = self._rows.setdefault(key, _Sum())
        row.jobs += self._seen.setdefault(cluster, _SeenIds()).add(use.job_id)
        present = self._present.get(cluster)
        if present is not None:
            for name, share in _shares(use.execution, shapes, default):
                present.use(name, share, start, end)
        for day, begin, stop in days_of(start, end):
            part = replace(use.execution, started_at=begin, ended_at=stop)
            cost = cost_of([part], shapes, prices, now=stop, default=default)
            row.add(cost.node_hours, cost.gpu_hours, cost.amount)
            self._days.setdefault((day, key), _Sum()).add(cost.node_hours, cost.gpu_hours, cost.amount)

    def add_nodes(self, cluster: str, nodes: Mapping[str, tuple[str, float]], prices: Prices) -> None:
        """Count for how long a cluster's nodes were there, to find those that are idle. Call it before its uses are added.

        Args:
            cluster: The cluster.
            nodes: The nodes that it has now, by name: instance type, and when each was launched (Unix seconds).
            prices: Their prices.
        """
        self._present[cluster] = _Present(nodes, prices)

    def report(self, notes: Iterable[str] = (), bills: Iterable[BillLink] = ()) -> UsageReport:
        """What was counted."""
        rows = [UsageRow(key, one.jobs, one.node_hours, one.gpu_hours, one.amount) for key, one in self._rows.items()]
        days = [
            UsageDay(day, key, one.node_hours, one.gpu_hours, one.amount)
            for (day, key), one in sorted(self._days.items())
        ]
        rows.sort(key=lambda row: (-row.gpu_hours, -row.node_hours, row.key))
        return UsageReport(
            self._by,
            self._begin,
            self._end,
            self._currency,
            tuple(rows),
            tuple(days),
            tuple(
                IdleNodes(**vars(row), cluster=cluster)
                for cluster, present in self._present.items()
                for row in present.idle(self._begin, self._end)
            ),
            tuple(bills),
            tuple(dict.fromkeys(notes)),
        )


def _shares(execution: Execution, shapes: Mapping[str, Shape], default: Shape | None) -> Iterable[tuple[str, float]]:
    """The nodes of an execution whose types are known: name, and the share that it had."""
    count = len(execution.nodes)
    for name in execution.nodes:
        shape = shapes.get(name, default)
        if shape is not None and shape.instance_type is not None:
            yield name, share_of_node(execution, shape, count)


def uses_of_job(job: Job, notebook: str | None) -> list[Use]:
    """What the scheduler's row of a job tells of its use; nothing if it has not started."""
    if job.started_at is None:
        return []
    execution = Execution(
        job.started_at,
        job.ends_at if job.state in JOB_ENDED else None,
        job.nodes,
        job.node_count or max(1, len(job.nodes)),
        accelerators=job.accelerators,
        cpus=job.cpus,
    )
    return [Use(job.scheduler_id, execution, job.user, job.account, job.queue, notebook)]


def days_of(start: float, end: float) -> Iterable[tuple[str, float, float]]:
    """The days of UTC between two moments, each with its part: name, begin and end in Unix seconds."""
    moment = start
    while moment < end:
        until = min(end, (moment // DAY_S + 1) * DAY_S)
        yield datetime.fromtimestamp(moment, UTC).date().isoformat(), moment, until
        moment = until


_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""How a formula of a spreadsheet begins, also in full width."""


def _cell(key: str) -> str:
    """A key, which another user may have chosen, for a terminal and a spreadsheet: without control characters; an apostrophe keeps it from being a formula."""
    shown = "".join(character for character in key if character.isprintable())
    return f"'{shown}" if _FORMULA.match(key) or _FORMULA.match(shown) else shown


def csv_rows(report: UsageReport) -> list[tuple[str, ...]]:
    """The days of a report as rows of a table, with a title row."""
    title = ("day", report.by, "node_hours", "gpu_hours", f"amount_{report.currency.lower()}")
    return [
        title,
        *(
            (
                one.day,
                _cell(one.key),
                f"{one.node_hours:.6f}",
                f"{one.gpu_hours:.6f}",
                "" if one.amount is None else f"{one.amount:.6f}",
            )
            for one in report.days
        ),
    ]
