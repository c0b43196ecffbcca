"""Which of a run's numbers come first."""

from __future__ import annotations

from collections.abc import Iterable

_RESULTS = ("loss", "eval_loss", "accuracy")
_CONDITIONS = ("learning_rate", "tokens_per_second", "step_time")
_NO_RESULT = "epoch"


def order_names(names: Iterable[str]) -> list[str]:
    """Names of series, the most important first; the epoch is left out."""
    given = set(names)
    known = [name for name in (*_RESULTS, *_CONDITIONS) if name in given]
    return known + sorted(given - {*known, _NO_RESULT})


def main_name(names: Iterable[str]) -> str | None:
    """The metric that a list of runs shows: the loss if there is one, else the next in the order of importance. None without metrics."""
    ordered = order_names(names)
    results = [name for name in ordered if name not in _CONDITIONS]
    return next(iter([*results, *ordered]), None)
