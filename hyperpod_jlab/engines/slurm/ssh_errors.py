"""ssh's error messages as our errors.

The texts are OpenSSH's (sshconnect.c, sshconnect2.c, readconf.c), unchanged from 7.4 to 10; they are never translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hyperpod_jlab.core.errors import DeniedError, HyperpodError, InvalidInputError, UnreachableError, mask_credentials

_CASES: tuple[tuple[str, type[HyperpodError], tuple[str, ...], str, str], ...] = (
    (
        "host_key_changed",
        DeniedError,
        ("HOST IDENTIFICATION HAS CHANGED",),
        "the host key of {login} has changed: {place} has another key, so the connection was refused",
        "ask your cluster administrator whether {login} was reinstalled{key}; only if so, delete {place} and log in once in a terminal: {command}",
    ),
    (
        "host_key_revoked",
        DeniedError,
        ("REVOKED HOST KEY", "is marked as revoked"),
        "the host key of {login} is marked as revoked",
        "ask your cluster administrator",
    ),
    (
        "host_key_unknown",
        DeniedError,
        ("host key is known for", "Host key verification failed"),
        "the host key of {login} is unknown",
        "log in once in a terminal ({command}), compare the fingerprint with the one from your cluster administrator, and confirm it",
    ),
    (
        "ssh_key_refused",
        DeniedError,
        ("Permission denied (", "Too many authentication", "No more authentication methods"),
        "{login} does not accept your ssh keys: {said}",
        "add your public key to ~/.ssh/authorized_keys on {login}, and use a key file or agent without a passphrase; see: {command} -v",
    ),
    (
        "ssh_config",
        InvalidInputError,
        ("ad configuration option", "Can't open user config file", "Bad owner or permissions on"),
        "the ssh configuration is invalid: {said}",
        "correct the file of ssh_config, or ~/.ssh/config",
    ),
    ("login_unreachable", UnreachableError, ("",), "{login} cannot be reached: {said}", "see: {command}"),
)
"""For each error: its code, its class, the texts by which ssh reports it (any of them), our message, and our hint. The last entry matches all output."""

_IMPORTANT = ("host_key_changed", "host_key_revoked", "ssh_key_refused", "host_key_unknown")
"""Codes that a user must see first when login nodes have different faults."""

_OFFENDING_KEY = re.compile(r"Offending (?:\S+ )?key in (\S.*?):([0-9]+)")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/=]+")
_NOISE = re.compile(r"^(@+|\s*|Shared connection to .* closed\.)$", re.MULTILINE)


def parse_ssh_error(login: str, stderr: str, command: str) -> HyperpodError:
    """The error for a failed connection.

    Args:
        login: The login node as configured.
        stderr: ssh's standard error.
        command: The command with which a user logs in from a terminal.
    """
    lines = [" ".join(line.split()) for line in _NOISE.sub("", stderr).splitlines()]
    said = mask_credentials("; ".join(filter(None, lines)))[:300] or "ssh printed no error"
    line, fingerprint = _OFFENDING_KEY.search(stderr), _FINGERPRINT.search(stderr)
    values = {
        "login": login,
        "said": said,
        "command": command,
        "place": f"line {line[2]} of {line[1]}" if line else "known_hosts",
        "key": f" and has the key {fingerprint[0]}" if fingerprint else "",
    }
    code, kind, _, message, hint = next(case for case in _CASES if any(text in stderr for text in case[2]))
    detail: dict[str, str | None] = {"login_node": login}
    if code == "host_key_changed":
        detail["known_hosts"] = f"{line[1]}:{line[2]}" if line else None
        detail["fingerprint"] = fingerprint[0] if fingerprint else None
    elif "{said}" not in message:
        detail["ssh"] = said
    return kind(message.format_map(values), code=code, hint=hint.format_map(values), detail=detail)


def combined_error(errors: Iterable[HyperpodError]) -> HyperpodError:
    """One error for the faults of all login nodes, of which there is at least one."""
    faults = list(errors)
    if len(faults) == 1:
        return faults[0]
    first = min(faults, key=lambda fault: [*_IMPORTANT, fault.code].index(fault.code))
    is_important = first.code in _IMPORTANT
    have_same_code = len({fault.code for fault in faults}) == 1
    return (DeniedError if is_important else UnreachableError)(
        "no login node can be used: " + "; ".join(fault.message for fault in faults),
        code=first.code if have_same_code or is_important else "no_login_node",
        hint=first.hint,
        detail={"faults": [fault.to_dict() for fault in faults]},
    )
