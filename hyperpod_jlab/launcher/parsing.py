"""Python's parser in several threads: what it counts while it makes a tree is one number for all of them.

Up to 3.12 a garbage collection in the midst of it can let another thread in, and then it raises SystemError ("AST constructor recursion depth
mismatch", cpython's gh-106905). Nothing is wrong with the text then; the next try makes the tree.
"""

from __future__ import annotations

import contextlib
from typing import Callable, TypeVar

Tree = TypeVar("Tree")

_MAX_TRIES = 50


def parse_with_retry(parse: Callable[[], Tree]) -> Tree:
    """What a call of the parser gives, tried again when another thread got in its way."""
    for _ in range(_MAX_TRIES):
        with contextlib.suppress(SystemError):
            return parse()
    return parse()
