"""Whether an event matches a pattern of EventBridge (its documentation of event patterns); what is not known here is an error, never a match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ABSENT = object()


def matches(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Whether each field of the pattern is matched by the event's."""
    return all(_field(wanted, event.get(name, _ABSENT)) for name, wanted in pattern.items())


def _field(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, Mapping):
        return matches(wanted, found if isinstance(found, Mapping) else {})
    assert isinstance(wanted, list), "a field of a pattern is a list of what may stand there"
    values = found if isinstance(found, list) else [found]
    return any(_one(choice, value) for choice in wanted for value in values)


def _one(choice: Any, value: Any) -> bool:
    if not isinstance(choice, Mapping):
        return bool(choice == value)
    ((operator, operand),) = choice.items()
    if operator == "exists":
        return (value is not _ABSENT) is bool(operand)
    if operator == "prefix":
        return isinstance(value, str) and value.startswith(operand)
    raise AssertionError(f"{operator} is not known here")
