"""What a fact about AWS is, and what its check says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

How = Literal["read", "write", "by hand"]
"""How a fact is checked: with calls that change nothing, in a throw-away domain, or by a person."""

Verdict = Literal["holds", "does not hold", "not checked"]


@dataclass(frozen=True)
class Fact:
    """Something that this project believes of AWS and could not try.

    Attributes:
        name: A stable word for it.
        statement: What is believed.
        code: The files that depend on it, from the repository's root.
        if_wrong: What happens if it is wrong.
        how: How it is checked.
        check: What the check does; by hand: what to do, and what to look at.
    """

    name: str
    statement: str
    code: tuple[str, ...]
    if_wrong: str
    how: How
    check: str


@dataclass(frozen=True)
class Finding:
    """What a check found: a verdict, and why."""

    verdict: Verdict
    words: str


@dataclass(frozen=True)
class Outcome:
    """What became of a fact."""

    fact: Fact
    finding: Finding

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "fact": self.fact.name,
            "statement": self.fact.statement,
            "how": self.fact.how,
            "verdict": self.finding.verdict,
            "reason": self.finding.words,
            "if_wrong": self.fact.if_wrong,
            "code": list(self.fact.code),
        }


def holds(words: str) -> Finding:
    """It is as believed."""
    return Finding("holds", words)


def wrong(words: str) -> Finding:
    """It is not as believed."""
    return Finding("does not hold", words)


def unknown(words: str) -> Finding:
    """Nothing was learned."""
    return Finding("not checked", words)
