"""The times that metrics are shown of, in periods that CloudWatch can answer."""

from __future__ import annotations

import math
import time

from hyperpod_jlab.model.errors import InvalidInputError, UnsupportedError
from hyperpod_jlab.model.node_metrics import Window

LONGEST = 63 * 86400
"""Seconds that can be looked back."""

_POINTS = 60
_COARSE_AFTER = 15 * 86400
"""Seconds after which CloudWatch keeps points of five minutes only."""


def last(seconds: float) -> Window:
    """The last seconds, in at most 60 periods that CloudWatch can answer; the first begins where CloudWatch's own do.

    Raises:
        InvalidInputError: It does not keep such points so long, or there is none in so short a time.
    """
    if not 60 <= seconds <= LONGEST:
        raise InvalidInputError(
            "metrics can be shown of one minute to 63 days",
            hint="CloudWatch keeps points of five minutes for 63 days",
            detail={"field": "since"},
        )
    now = time.time()
    return _window(now - seconds, now, seconds)


def between(begin: float, end: float | None) -> Window:
    """A time that was, in the same periods; the last is whole, so it may end later.

    Args:
        begin: Unix seconds.
        end: Unix seconds, not before the begin; None: it goes on.

    Raises:
        UnsupportedError: It began longer ago than CloudWatch keeps such points.
    """
    now = time.time()
    if now - begin > LONGEST:
        raise UnsupportedError("it began more than 63 days ago: there are no metrics any more")
    found = _window(begin, now if end is None else end, now - begin)
    if end is None:
        return found
    whole = max(math.ceil((end - found.begin) / found.period), 1) * found.period
    return Window(found.begin, found.begin + whole, found.period)


def _window(begin: float, end: float, age: float) -> Window:
    step = 300 if age > _COARSE_AFTER else 60
    period = max(math.ceil((end - begin) / _POINTS / step), 1) * step
    return Window(begin // period * period, end, period)
