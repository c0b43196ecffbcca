"""What ssh complains about, as errors of ours. The texts are OpenSSH's (sshconnect.c, sshconnect2.c, readconf.c), the same from 7.4 to 10; it has no translations."""

from __future__ import annotations

import re
from collections.abc import Callable

from hyperpod_jlab.model.addresses import without_passwords
from hyperpod_jlab.model.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    UnreachableError,
)

_OFFENDING = re.compile(r"Offending (?:\S+ )?key in (\S.*?):([0-9]+)")
_FINGERPRINT = re.compile(r"(SHA256:[A-Za-z0-9+/=]+)")
_NOISE = re.compile(r"^(@+|\s*|Shared connection to .* closed\.)$", re.MULTILINE)


def ssh_complaint(login: str, said: str, typed: str) -> HyperpodError:
    """The error for a connection that could not be made.

    Args:
        login: The login node, as the configuration names it.
        said: What ssh wrote to its standard error.
        typed: What a user types in a terminal to log in there.
    """
    for text, make in _SAID:
        if text in said:
            return make(login, said, typed)
    return UnreachableError(
        f"{login} cannot be reached: {_short(said)}",
        code="login_unreachable",
        hint=f"see: {typed}",
        detail={"login_node": login},
    )


def _short(said: str) -> str:
    lines = [" ".join(line.split()) for line in _NOISE.sub("", said).splitlines()]
    told = without_passwords("; ".join(line for line in lines if line))
    return (told or "ssh said nothing")[:300]


def _changed(login: str, said: str, typed: str) -> HyperpodError:
    place, print_ = _OFFENDING.search(said), _FINGERPRINT.search(said)
    known = f"{place[1]}:{place[2]}" if place else None
    where = f"line {place[2]} of {place[1]}" if place else "known_hosts"
    return DeniedError(
        f"the host key of {login} has changed: {where} holds another one, and nothing was sent",
        code="host_key_changed",
        hint=f"ask the cluster's admin whether {login} was made anew"
        + (f" and has the key {print_[1]}" if print_ else "")
        + f"; only if so, delete {where} and log in once in a terminal: {typed}",
        detail={
            "login_node": login,
            "known_hosts": known,
            "fingerprint": print_[1] if print_ else None,
        },
    )


def _unknown(login: str, said: str, typed: str) -> HyperpodError:
    return DeniedError(
        f"the host key of {login} is not known",
        code="host_key_unknown",
        hint=f"log in once in a terminal ({typed}), compare the fingerprint with the one that the cluster's admin gives, and say yes",
        detail={"login_node": login, "ssh": _short(said)},
    )


def _revoked(login: str, said: str, typed: str) -> HyperpodError:
    del typed
    return DeniedError(
        f"the host key of {login} is marked as revoked",
        code="host_key_revoked",
        hint="ask the cluster's admin",
        detail={"login_node": login, "ssh": _short(said)},
    )


def _key(login: str, said: str, typed: str) -> HyperpodError:
    return DeniedError(
        f"{login} accepts no key of yours: {_short(said)}",
        code="ssh_key_refused",
        hint=f"your public key must be in ~/.ssh/authorized_keys on {login}, and its key file or agent here must need no passphrase; see: {typed} -v",
        detail={"login_node": login},
    )


def _config(login: str, said: str, typed: str) -> HyperpodError:
    del typed
    return InvalidInputError(
        f"ssh does not understand its configuration: {_short(said)}",
        code="ssh_config",
        hint="correct the file that ssh_config names, or ~/.ssh/config",
        detail={"login_node": login},
    )


_SAID: tuple[tuple[str, Callable[[str, str, str], HyperpodError]], ...] = (
    ("REVOKED HOST KEY", _revoked),
    ("is marked as revoked", _revoked),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", _changed),
    ("HOST IDENTIFICATION HAS CHANGED", _changed),
    ("host key is known for", _unknown),
    ("Host key verification failed", _unknown),
    ("Permission denied (", _key),
    ("Too many authentication failures", _key),
    ("No more authentication methods", _key),
    ("Bad configuration option", _config),
    ("bad configuration options", _config),
    ("Can't open user config file", _config),
    ("Bad owner or permissions on", _config),
)
