"""What an account was billed, as Cost Explorer knows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta


@dataclass(frozen=True)
class CostLine:
    """What was billed on a day for one usage type of what has a tag."""

    day: str
    usage_type: str
    quantity: float
    amount: float
    tags: dict[str, str] = field(default_factory=dict)
    currency: str = "USD"


@dataclass
class Bills:
    """What Cost Explorer knows.

    Attributes:
        lines: What was billed.
        cost_tags: The status of tags, ``Active`` or ``Inactive``; others were never seen.
        per_day: The forecast of a day; None: there are too few days to make one.
        closed_until: The first day whose results are estimates.
    """

    lines: list[CostLine] = field(default_factory=list)
    cost_tags: dict[str, str] = field(default_factory=dict)
    per_day: float | None = 100.0
    closed_until: str = "2000-01-01"


def add_days(
    bills: Bills,
    tags: dict[str, str],
    usage: Iterable[tuple[str, float, float]],
    begin: str,
    days: int,
) -> None:
    """Bill the same usage (usage type, quantity, amount) on some days."""
    for number in range(days):
        day = (date.fromisoformat(begin) + timedelta(number)).isoformat()
        bills.lines += [CostLine(day, *one, tags=tags) for one in usage]
