"""By which proxy an API server is reached: the kubeconfig's, or the environment's, as kubectl finds it."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

from hyperpod_jlab.model.errors import InvalidInputError

PROXY_HINT = "look at proxy-url in the kubeconfig and at HTTPS_PROXY"
_SCHEMES = {"http", "https", "socks5", "socks5h"}


def proxy_for(server: str, named: str = "") -> str | None:
    """The proxy's address, or None for the straight way.

    Args:
        server: The API server's address.
        named: The ``proxy-url`` of the kubeconfig, which is above the environment.

    Raises:
        InvalidInputError: It is no address of a proxy. The address is not repeated: a password may be in it.
    """
    if named:
        return _checked(named)
    parts = urlsplit(server)
    host, port = parts.hostname or "", parts.port
    if _excepted(host, port):
        return None
    found = _environment(f"{parts.scheme}_proxy")
    if found and "://" not in found:
        found = f"http://{found}"
    return _checked(found) if found else None


def _checked(address: str) -> str:
    try:
        parts = urlsplit(address)
        usable = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInputError(
            f"the proxy's address is none: it has to begin with {', '.join(sorted(_SCHEMES))} and name a host",
            code="bad_proxy",
            hint=PROXY_HINT,
        )
    return address


def _environment(name: str) -> str:
    return os.environ.get(name.upper(), "") or os.environ.get(name, "")


def _excepted(host: str, port: int | None) -> bool:
    """Whether NO_PROXY or its own address keeps a host from any proxy."""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    words = [one.strip().lower() for one in _environment("no_proxy").split(",")]
    return any(_matches(word, host.lower(), port, address) for word in words if word)


def _matches(
    word: str,
    host: str,
    port: int | None,
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None,
) -> bool:
    if word == "*":
        return True
    if "/" in word:
        try:
            return address is not None and address in ipaddress.ip_network(word, strict=False)
        except ValueError:
            return False
    name, colon, said = word.rpartition(":")
    if colon and said.isdigit() and ":" not in name:
        if port != int(said):
            return False
        word = name
    if address is not None:
        return _address(word) == address
    if word.startswith("*."):
        word = word[1:]
    return (
        host.endswith(word) if word.startswith(".") else host == word or host.endswith(f".{word}")
    )


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
