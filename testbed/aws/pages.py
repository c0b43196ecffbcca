"""Lists in pages, with tokens that say after which item to go on.

An item that goes away between two pages costs no other one its place.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from testbed.aws.replies import ApiError

Item = TypeVar("Item")

DEFAULT = 10
"""Items on a page where the caller does not say how many."""


def page(
    items: Sequence[Item], key: Callable[[Item], list[Any]], given: Mapping[str, Any]
) -> tuple[list[Item], dict[str, str]]:
    """One page of a list.

    Args:
        items: All items.
        key: What to order them by; JSON types, and different for each item.
        given: The operation's input, with MaxResults, NextToken and SortOrder.

    Returns:
        The items of this page, and the token of the next one as a part of the answer: empty after the last page.

    Raises:
        ApiError: The token was not made for this question.
    """
    downward = given.get("SortOrder") == "Descending"
    ordered = sorted(items, key=key, reverse=downward)
    question = {name: value for name, value in given.items() if name not in {"NextToken", "MaxResults"}}
    token = given.get("NextToken")
    if token is not None:
        after = _read(token, question)
        ordered = [one for one in ordered if (key(one) < after if downward else key(one) > after)]
    size = given.get("MaxResults", DEFAULT)
    shown = ordered[:size]
    if len(ordered) <= size:
        return shown, {}
    text = json.dumps({"after": key(shown[-1]), "question": question}, sort_keys=True)
    return shown, {"NextToken": base64.b64encode(text.encode()).decode()}


def _read(token: str, question: Mapping[str, Any]) -> list[Any]:
    try:
        found = json.loads(base64.b64decode(token, validate=True))
    except (binascii.Error, ValueError):
        found = {}
    if not isinstance(found, dict) or found.get("question") != question:
        raise ApiError("ValidationException", "The pagination token is invalid")
    after: list[Any] = found["after"]
    return after
