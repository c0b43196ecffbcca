"""ssh's error messages as our errors.

The texts are OpenSSH's (sshconnect.c, sshconnect2.c, readconf.c), unchanged from 7.4 to 10; they are never translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    UnreachableError,
    mask_credentials,
)

_IMPORTANT_CODES = ("host_key_changed", "host_key_revoked", "ssh_key_refused", "host_key_unknown")
"""Codes that a user must see first when login nodes have different faults."""

_REVOKED = ("REVOKED HOST KEY", "is marked as revoked")
_UNKNOWN = ("host key is known for", "Host key verification failed")
_REFUSED = (
    "Permission denied (",
    "Too many authentication failures",
    "No more authentication methods",
)
_CONFIG = (
    "Bad configuration option",
    "bad configuration options",
    "Can't open user config file",
    "Bad owner or permissions on",
)
_OFFENDING_KEY = re.compile(r"Offending (?:\S+ )?key in (\S.*?):([0-9]+)")
_FINGERPRINT = re.compile(r"(SHA256:[A-Za-z0-9+/=]+)")
_NOISE = re.compile(r"^(@+|\s*|Shared connection to .* closed\.)$", re.MULTILINE)


def parse_ssh_error(login: str, stderr: str, command_line: str) -> HyperpodError:
    """The error for a failed connection.

    Args:
        login: The login node as configured.
        stderr: ssh's standard error.
        command_line: The command with which a user logs in from a terminal.
    """

    def has(texts: tuple[str, ...]) -> bool:
        return any(text in stderr for text in texts)

    lines = [" ".join(line.split()) for line in _NOISE.sub("", stderr).splitlines()]
    summary = mask_credentials("; ".join(filter(None, lines)))[:300] or "ssh printed no error"
    detail = {"login_node": login}
    if has(_REVOKED):
        return DeniedError(
            f"the host key of {login} is marked as revoked",
            code="host_key_revoked",
            hint="ask your cluster administrator",
            detail={**detail, "ssh": summary},
        )
    if "HOST IDENTIFICATION HAS CHANGED" in stderr:
        return _host_key_changed(login, stderr, command_line)
    if has(_UNKNOWN):
        return DeniedError(
            f"the host key of {login} is unknown",
            code="host_key_unknown",
            hint=f"log in once in a terminal ({command_line}), compare the fingerprint with the one from your cluster administrator, and confirm it",
            detail={**detail, "ssh": summary},
        )
    if has(_REFUSED):
        return DeniedError(
            f"{login} does not accept your ssh keys: {summary}",
            code="ssh_key_refused",
            hint=f"add your public key to ~/.ssh/authorized_keys on {login}, and use a key file or agent without a passphrase; see: {command_line} -v",
            detail=detail,
        )
    if has(_CONFIG):
        return InvalidInputError(
            f"the ssh configuration is invalid: {summary}",
            code="ssh_config",
            hint="correct the file of ssh_config, or ~/.ssh/config",
            detail=detail,
        )
    return UnreachableError(
        f"{login} cannot be reached: {summary}",
        code="login_unreachable",
        hint=f"see: {command_line}",
        detail=detail,
    )


def _host_key_changed(login: str, stderr: str, command_line: str) -> HyperpodError:
    location, found = _OFFENDING_KEY.search(stderr), _FINGERPRINT.search(stderr)
    fingerprint = found[1] if found else None
    place = f"line {location[2]} of {location[1]}" if location else "known_hosts"
    key = f" and has the key {fingerprint}" if fingerprint else ""
    return DeniedError(
        f"the host key of {login} has changed: {place} has another key, so the connection was refused",
        code="host_key_changed",
        hint=f"ask your cluster administrator whether {login} was reinstalled{key}; only if so, delete {place} and log in once in a terminal: {command_line}",
        detail={
            "login_node": login,
            "known_hosts": f"{location[1]}:{location[2]}" if location else None,
            "fingerprint": fingerprint,
        },
    )


def combined_error(errors: Iterable[HyperpodError]) -> HyperpodError:
    """One error for the faults of all login nodes, of which there is at least one."""
    faults = list(errors)
    if len(faults) == 1:
        return faults[0]
    ranks = {code: rank for rank, code in enumerate(_IMPORTANT_CODES)}
    first = min(faults, key=lambda fault: ranks.get(fault.code, len(ranks)))
    have_same_code = len({fault.code for fault in faults}) == 1
    kind = DeniedError if first.code in ranks else UnreachableError
    return kind(
        "no login node can be used: " + "; ".join(fault.message for fault in faults),
        code=first.code if have_same_code or first.code in ranks else "no_login_node",
        hint=first.hint,
        detail={"faults": [fault.to_dict() for fault in faults]},
    )
