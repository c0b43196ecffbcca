"""What becomes of one magic or shell line: the Python that takes its place, and what to say about it."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from typing import Literal

from hyperpod_jlab.launcher.parsing import steadily
from hyperpod_jlab.model.finding import Level

SERVICE = "__hyperpod__"
"""Name under which the runner offers shell lines, timers and the rest to the rewritten cells."""

NOTHING = "pass"
"""Python for a line without effect."""

VerdictCode = Literal[
    "magic_runs", "magic_differs", "magic_without_effect", "misplaced_magic", "unknown_magic"
]


@dataclass(frozen=True)
class Verdict:
    """What becomes of one magic.

    Attributes:
        code: Python on one line; None when the magic cannot run in a job.
        note: What becomes of it, in a few words.
        kind: Which case it is.
        hint: What to do about it, or None.
        secret: Name of a variable that it sets to what looks like a secret, or None.
    """

    code: str | None
    note: str
    kind: VerdictCode = "magic_runs"
    hint: str | None = None
    secret: str | None = None

    @property
    def level(self) -> Level:
        """How loud to be about it."""
        if self.code is None:
            return "error"
        return "warning" if self.kind == "magic_differs" else "info"


def runs(method: str, note: str, *arguments: object, hint: str | None = None) -> Verdict:
    """It runs, by a method of the runner's service."""
    return Verdict(call(method, *arguments), note, hint=hint)


def differs(code: str, note: str, hint: str | None = None) -> Verdict:
    """It runs, otherwise than in the notebook."""
    return Verdict(code, note, "magic_differs", hint)


def without_effect(note: str, hint: str | None = None) -> Verdict:
    """It is left out, and nothing is lost by that."""
    return Verdict(NOTHING, note, "magic_without_effect", hint)


def unknown(note: str, hint: str) -> Verdict:
    """It cannot run in a job."""
    return Verdict(None, note, "unknown_magic", hint)


def call(method: str, *arguments: object) -> str:
    """Python text of a call of the runner's service. Texts go in as literals, whatever is in them."""
    return f"{SERVICE}.{method}({', '.join(repr(argument) for argument in arguments)})"


def parses(text: str, mode: Literal["exec", "eval"] = "exec") -> bool:
    """Whether a text is Python, top-level ``await`` allowed."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            steadily(lambda: compile(text, "<magic>", mode, flags, dont_inherit=True))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
