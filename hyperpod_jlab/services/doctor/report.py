"""The examination as a report that a user can hand to an admin: every check, who has to do what, and no secret."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hyperpod_jlab.model.addresses import USER_INFO
from hyperpod_jlab.model.check import GROUPS, Check, Level

_HIDDEN = "[hidden]"

_SECRETS = (
    re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}\b"),  # access keys of AWS
    re.compile(r"\bk8s-aws-v1\.[\w-]+"),  # tokens for EKS
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"),  # JSON web tokens
    USER_INFO,
    re.compile(r"(?i)\bBearer\s+[\w.~+/=-]{8,}"),
    re.compile(
        r"(?i)(?:password|passwd|secret|token|api[_-]?key|signature|credential)s?\s*[=:]\s*[^\s,;'\"]{4,}"
    ),
)
"""What looks like a secret, whoever printed it."""

_SECRET_NAME = re.compile(r"(?i)token|secret|passw|credential|api_?key|access_?key|jwt|private")
"""Names of variables whose values are secret."""

_HOMES = re.compile(r"(?<![\w.-])(/home|/Users)/([^/\s,;:'\"]+)")

_WORDS: dict[Level, str] = {
    "ok": "ok",
    "warn": "warning",
    "fail": "failed",
    "unknown": "could not be checked",
}


def report(checks: Sequence[Check], *, now: datetime | None = None) -> str:
    """The report, in Markdown.

    Account numbers, ARNs and ids of AWS stay: an admin needs them to find what is meant, and AWS does not count them as secrets. Whatever looks like
    a secret is hidden, as are values of this process's variables with names like ``TOKEN``, and the names of others' home folders.

    Args:
        checks: All checks.
        now: The time of the report; default: now.
    """
    when = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    lines = [
        "# Report of hpj doctor",
        "",
        f"{when}, {getpass.getuser()} (uid {os.getuid()}) on {socket.gethostname()}. "
        + ", ".join(_counts(checks))
        + ".",
        "",
        *_tasks("For the admin", checks, "admin"),
        *_tasks("For the user", checks, "you"),
        "## All checks",
        "",
        *_table(checks),
        "Account numbers and ids of AWS are left in; secrets, and others' home folders, are not.",
    ]
    return redacted("\n".join(lines)) + "\n"


def redacted(text: str, environment: Mapping[str, str] | None = None) -> str:
    """A text without what looks like a secret.

    Args:
        text: The text.
        environment: Variables whose secret values are not to be in it; default: this process's.
    """
    for name, value in (os.environ if environment is None else environment).items():
        if _SECRET_NAME.search(name) and len(value) >= 8:
            text = text.replace(value, _HIDDEN)
    for pattern in _SECRETS:
        text = pattern.sub(_HIDDEN, text)
    home = str(Path.home())
    if home != "/":
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
    return _HOMES.sub(rf"\1/{_HIDDEN}", text)


def _counts(checks: Sequence[Check]) -> Iterator[str]:
    for level, word in _WORDS.items():
        count = sum(check.level == level for check in checks)
        if count:
            yield f"{count} {word}"


def _tasks(title: str, checks: Iterable[Check], who: str) -> Iterator[str]:
    """What somebody has to do; what failed comes first."""
    order: tuple[Level, ...] = ("fail", "warn", "unknown")
    found = [one for level in order for one in checks if one.level == level and one.who == who]
    if not found:
        return
    yield f"## {title}"
    yield ""
    for number, one in enumerate(found, 1):
        yield f"{number}. **{one.name}** ({_WORDS[one.level]}): {_line(one.evidence)}"
        yield ""
        yield "   ```"
        yield from (f"   {line}" for line in (one.fix or "").splitlines())
        yield "   ```"
        yield ""


def _table(checks: Sequence[Check]) -> Iterator[str]:
    for group, title in GROUPS.items():
        found = [check for check in checks if check.group == group]
        if not found:
            continue
        yield f"### {title}"
        yield ""
        yield "| check | how it is | evidence |"
        yield "| --- | --- | --- |"
        for one in found:
            evidence = _line(one.evidence).replace("|", "\\|")
            yield f"| {one.name} | {_WORDS[one.level]} | {evidence} |"
        yield ""


def _line(text: str) -> str:
    return " ".join(text.split())
