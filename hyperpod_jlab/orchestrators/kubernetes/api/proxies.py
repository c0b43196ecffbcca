"""By which proxy an API server is reached: the kubeconfig's, or the environment's, as kubectl finds it."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit


def proxy_for(server: str, named: str = "") -> str | None:
    """The proxy's address, or None for the straight way.

    Args:
        server: The API server's address.
        named: The ``proxy-url`` of the kubeconfig, which is above the environment.
    """
    if named:
        return named
    parts = urlsplit(server)
    host, port = parts.hostname or "", parts.port
    if _excepted(host, port):
        return None
    found = _environment(f"{parts.scheme}_proxy")
    if found and "://" not in found:
        found = f"http://{found}"
    return found or None


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
