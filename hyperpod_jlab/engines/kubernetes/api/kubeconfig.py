"""Kubeconfigs as kubectl reads them: all files of KUBECONFIG in order; the first definition of each name wins."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hyperpod_jlab.core.errors import InvalidInputError, nearest_hint


@dataclass(frozen=True)
class KubeconfigEntry:
    """A cluster or a user of a kubeconfig.

    Attributes:
        name: The entry's name.
        data: Its content.
        folder: The folder of its file, where relative paths start.
    """

    name: str
    data: Mapping[str, Any]
    folder: Path

    def text(self, key: str) -> str:
        """A value as text, "" when missing."""
        entry = self.data.get(key)
        return "" if entry is None else str(entry)

    def path(self, key: str) -> Path | None:
        """The path of a file that it names."""
        return self.folder / Path(self.text(key)).expanduser() if self.text(key) else None


@dataclass(frozen=True)
class KubeconfigContext:
    """A cluster and the user for it."""

    name: str
    cluster: KubeconfigEntry
    user: KubeconfigEntry


def kubeconfig_files() -> list[Path]:
    """The existing files."""
    return [path for path in _searched_paths() if path.is_file()]


def _searched_paths() -> list[Path]:
    kubeconfig = os.environ.get("KUBECONFIG", "")
    if not kubeconfig:
        return [Path("~/.kube/config").expanduser()]
    return [Path(part).expanduser() for part in kubeconfig.split(os.pathsep) if part]


def _not_found_error() -> InvalidInputError:
    searched = ", ".join(str(path) for path in _searched_paths())
    if os.environ.get("KUBECONFIG"):
        message = f"kubeconfig not found: no file of KUBECONFIG exists ({searched or 'it names none'})"
        hint = "set KUBECONFIG to an existing file, or unset it to use ~/.kube/config"
    else:
        message = f"kubeconfig not found: {searched} is not a file"
        hint = "ask your cluster administrator for one (on EKS: aws eks update-kubeconfig --name NAME, or eks = NAME in the configuration), or set KUBECONFIG"
    return _invalid_error(message, hint=hint)


def read_context(name: str | None) -> KubeconfigContext:
    """A context by name, or the current one.

    Raises:
        InvalidInputError: No kubeconfig exists, it is unreadable, or the context does not exist.
    """
    files = kubeconfig_files()
    if not files:
        raise _not_found_error()
    read = [(_read(path), path.parent.absolute()) for path in files]
    current = next((str(document["current-context"]) for document, _ in read if document.get("current-context")), "")
    context_name = name or current
    contexts = _index_by_name(read, "contexts", "context")
    if not context_name:
        raise _invalid_error(
            "the kubeconfig has no current context",
            hint="set context in the configuration of the cluster; see: kubectl config get-contexts",
        )
    if context_name not in contexts:
        raise _invalid_error(f"the kubeconfig has no context {context_name}", hint=nearest_hint(context_name, contexts))
    context = contexts[context_name]
    cluster = _index_by_name(read, "clusters", "cluster").get(context.text("cluster"))
    if cluster is None or not cluster.text("server"):
        raise _invalid_error(f"the context {context_name} names a cluster that is not in the kubeconfig")
    users = _index_by_name(read, "users", "user")
    user = users.get(context.text("user"))
    if user is None:
        if context.text("user"):
            raise _invalid_error(f"the context {context_name} names a user that is not in the kubeconfig")
        user = KubeconfigEntry("", {}, cluster.folder)
    return KubeconfigContext(context_name, cluster, user)


def _index_by_name(read: list[tuple[Mapping[str, Any], Path]], kind: str, key: str) -> dict[str, KubeconfigEntry]:
    entries: dict[str, KubeconfigEntry] = {}
    for data, folder in read:
        for entry in data.get(kind) or []:
            if isinstance(entry, dict) and entry.get("name") is not None:
                name = str(entry["name"])
                content = entry.get(key)
                entries.setdefault(name, KubeconfigEntry(name, content if isinstance(content, dict) else {}, folder))
    return entries


def _read(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        # The parser's own message would quote a part of the file, which contains secrets.
        raise _invalid_error(f"the kubeconfig {path} cannot be read ({type(error).__name__})") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise _invalid_error(f"{path} is not a kubeconfig")
    return document


def _invalid_error(message: str, hint: str | None = None) -> InvalidInputError:
    return InvalidInputError(
        message, code="invalid_kubeconfig", hint=hint or "see: kubectl config view", detail={"field": "context"}
    )


# --------------------------------------------------------------------------------------------------
# The proxy for an API server: the kubeconfig's or the environment's, in kubectl's order.

PROXY_HINT = "check proxy-url in the kubeconfig and HTTPS_PROXY"
_SCHEMES = {"http", "https", "socks5", "socks5h"}


def find_proxy(server: str, configured: str = "") -> str | None:
    """The proxy's address, or None for a direct connection.

    Args:
        server: The API server's address.
        configured: The kubeconfig's ``proxy-url``, which overrides the environment.

    Raises:
        InvalidInputError: The proxy address is invalid. The message omits it, because it may
            contain a password.
    """
    if configured:
        return _checked(configured)
    parts = urlsplit(server)
    host, port = parts.hostname or "", parts.port
    if _excepted(host, port):
        return None
    proxy = _environment(f"{parts.scheme}_proxy")
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    return _checked(proxy) if proxy else None


def _checked(address: str) -> str:
    try:
        parts = urlsplit(address)
        is_usable = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise InvalidInputError(
            f"the proxy address must start with {', '.join(sorted(_SCHEMES))} and contain a host",
            code="bad_proxy",
            hint=PROXY_HINT,
        )
    return address


def _environment(name: str) -> str:
    return os.environ.get(name.upper(), "") or os.environ.get(name, "")


def _excepted(host: str, port: int | None) -> bool:
    """Whether NO_PROXY or a local address excludes a host from proxies."""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    patterns = [part.strip().lower() for part in _environment("no_proxy").split(",")]
    return any(_matches(pattern, host.lower(), port, address) for pattern in patterns if pattern)


def _matches(
    pattern: str, host: str, port: int | None, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None
) -> bool:
    if pattern == "*":
        return True
    if "/" in pattern:
        try:
            return address is not None and address in ipaddress.ip_network(pattern, strict=False)
        except ValueError:
            return False
    name, colon, port_text = pattern.rpartition(":")
    if colon and port_text.isdigit() and ":" not in name:
        if port != int(port_text):
            return False
        pattern = name
    if address is not None:
        return _address(pattern) == address
    if pattern.startswith("*."):
        pattern = pattern[1:]
    return host.endswith(pattern) if pattern.startswith(".") else host == pattern or host.endswith(f".{pattern}")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
