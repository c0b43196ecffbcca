"""The report on an account: Markdown for an issue, without what says whose account it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from hyperpod_jlab.admin.verify.fact import Outcome, Verdict

_VERDICTS: tuple[Verdict, ...] = ("does not hold", "holds", "not checked")
"""In the order in which they are told."""

_MASKS = (
    (
        re.compile(r"(arn:aws[\w-]*:(?:iam|sts):[\w-]*:)\d{12}:([\w-]+)/[^\s'\"`,;()|]+"),
        r"\1<account>:\2/<name>",
    ),
    (re.compile(r"\b\d{12}\b"), "<account>"),
    (re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{8,}\b"), "<key>"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "<address>"),
)


def masked(text: str) -> str:
    """A text without account ids, names of roles and users, keys and addresses of people."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


def report(results: Sequence[Outcome], about: Sequence[str], notes: Sequence[str] = ()) -> str:
    """The report.

    Args:
        results: What became of each fact.
        about: What was run and where, such as versions and the region.
        notes: What else is to be said, such as what was left behind.
    """
    counts = ", ".join(
        f"{sum(one.finding.verdict == verdict for one in results)} {verdict}"
        for verdict in _VERDICTS
    )
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = [
        "### hpj admin verify-aws",
        "",
        f"{'; '.join((*about, now))}. {counts}.",
        "",
        "| fact | verdict | why |",
        "| --- | --- | --- |",
    ]
    for verdict in _VERDICTS:
        lines += [_row(one) for one in results if one.finding.verdict == verdict]
    for one in results:
        if one.finding.verdict == "does not hold":
            lines += ["", f"**{one.fact.name}**: {one.fact.statement} It does not hold here."]
            lines += [f"What follows: {one.fact.if_wrong}"]
            lines += [f"Code: {', '.join(f'`{path}`' for path in one.fact.code)}"]
    if notes:
        lines += ["", *(f"- {note}" for note in notes)]
    return masked("\n".join(lines)) + "\n"


def _row(one: Outcome) -> str:
    words = one.finding.words.replace("|", "\\|").replace("\n", " ")
    verdict = one.finding.verdict
    return f"| `{one.fact.name}` | {f'**{verdict}**' if verdict == 'does not hold' else verdict} | {words} |"
