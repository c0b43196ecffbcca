"""What normal use learns about the facts of docs/unverified.md goes to the log, once per process."""

from __future__ import annotations

import logging

_LOG = logging.getLogger(__name__)
_logged: set[str] = set()


def contradicted(fact: str, evidence: str) -> None:
    """Log that a fact does not hold.

    Args:
        fact: Its name in docs/unverified.md.
        evidence: What AWS answered, without account ids.
    """
    if fact not in _logged:
        _logged.add(fact)
        _LOG.warning("fact %s does not hold: %s (see docs/unverified.md)", fact, evidence)
