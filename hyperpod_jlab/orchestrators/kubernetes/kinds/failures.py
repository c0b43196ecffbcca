"""Why a job failed, in words: what operators write into its condition. The texts are those of the training operator 1.8 and 1.9, Kubernetes 1.34 and JobSet 0.8."""

from __future__ import annotations

import re

_LONGEST = 400

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"because 1 (?P<role>\w+) replica\(s\) failed"), "a pod of its failed ({role})"),
    (
        re.compile(r"because (?P<count>\d+) (?P<role>\w+) replica\(s\) failed"),
        "{count} of its pods failed ({role})",
    ),
    (
        re.compile(r"reached the specified backoff limit"),
        "its pods failed as often as they may (backoffLimit)",
    ),
    (re.compile(r"was active longer than specified deadline"), "it reached its time limit"),
    (
        re.compile(
            r"for pod \S*?(?P<pod>[^\s/]+) failed with exit code (?P<code>\d+) matching FailJob rule"
        ),
        "its pod {pod} ended with exit code {code}, at which it gives up (podFailurePolicy)",
    ),
    (
        re.compile(r"jobset failed due to one or more job failures"),
        "one or more of its jobs failed",
    ),
)


def failure_words(message: str) -> str | None:
    """An operator's message in words; one that is not known here as it is, None for none."""
    for pattern, words in _RULES:
        found = pattern.search(message)
        if found is not None:
            return words.format(**found.groupdict())
    return f"its operator says: {message[:_LONGEST]}" if message else None
