"""Kubeconfigs as kubectl reads them: the files of KUBECONFIG one after the other, of each name the first that is found."""

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
        name: Its name.
        data: What it says.
        folder: The folder of the file in which it stands; relative paths begin there.
    """

    name: str
    data: Mapping[str, Any]
    folder: Path

    def text(self, key: str) -> str:
        """A value as text, "" when it is not there."""
        found = self.data.get(key)
        return "" if found is None else str(found)

    def path(self, key: str) -> Path | None:
        """A file that it names."""
        return self.folder / Path(self.text(key)).expanduser() if self.text(key) else None


@dataclass(frozen=True)
class KubeconfigContext:
    """A cluster and who one is there."""

    name: str
    cluster: KubeconfigEntry
    user: KubeconfigEntry


def kubeconfig_files() -> list[Path]:
    """The files that there are."""
    return [path for path in _looked_for() if path.is_file()]


def _looked_for() -> list[Path]:
    named = os.environ.get("KUBECONFIG", "")
    if not named:
        return [Path("~/.kube/config").expanduser()]
    return [Path(one).expanduser() for one in named.split(os.pathsep) if one]


def _none_there() -> InvalidInputError:
    looked = ", ".join(str(path) for path in _looked_for())
    if os.environ.get("KUBECONFIG"):
        message = (
            f"kubeconfig not found: no file of KUBECONFIG exists ({looked or 'it names none'})"
        )
        hint = "set KUBECONFIG to an existing file, or unset it to use ~/.kube/config"
    else:
        message = f"kubeconfig not found: {looked} is not a file"
        hint = "ask your cluster administrator for one (on EKS: aws eks update-kubeconfig --name NAME, or eks = NAME in the configuration), or set KUBECONFIG"
    return _wrong(message, hint=hint)


def read_context(name: str | None) -> KubeconfigContext:
    """A context by its name, or the current one.

    Raises:
        InvalidInputError: There is no kubeconfig, it cannot be read, or it has no such context.
    """
    files = kubeconfig_files()
    if not files:
        raise _none_there()
    read = [(_read(path), path.parent.absolute()) for path in files]
    current = next(
        (str(one["current-context"]) for one, _ in read if one.get("current-context")), ""
    )
    wanted = name or current
    contexts = _named(read, "contexts", "context")
    if not wanted:
        raise _wrong(
            "the kubeconfig has no current context",
            hint="set context in the configuration of the cluster; see: kubectl config get-contexts",
        )
    if wanted not in contexts:
        raise _wrong(f"the kubeconfig has no context {wanted}", hint=nearest_hint(wanted, contexts))
    context = contexts[wanted]
    cluster = _named(read, "clusters", "cluster").get(context.text("cluster"))
    if cluster is None or not cluster.text("server"):
        raise _wrong(f"the context {wanted} names a cluster that is not in the kubeconfig")
    users = _named(read, "users", "user")
    user = users.get(context.text("user"))
    if user is None:
        if context.text("user"):
            raise _wrong(f"the context {wanted} names a user that is not in the kubeconfig")
        user = KubeconfigEntry("", {}, cluster.folder)
    return KubeconfigContext(wanted, cluster, user)


def _named(
    read: list[tuple[Mapping[str, Any], Path]], kind: str, key: str
) -> dict[str, KubeconfigEntry]:
    found: dict[str, KubeconfigEntry] = {}
    for data, folder in read:
        for one in data.get(kind) or []:
            if isinstance(one, dict) and one.get("name") is not None:
                name = str(one["name"])
                said = one.get(key)
                found.setdefault(
                    name, KubeconfigEntry(name, said if isinstance(said, dict) else {}, folder)
                )
    return found


def _read(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        # The parser's own words would show a piece of the file, in which secrets stand.
        raise _wrong(f"the kubeconfig {path} cannot be read ({type(error).__name__})") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _wrong(f"{path} is not a kubeconfig")
    return found


def _wrong(message: str, hint: str | None = None) -> InvalidInputError:
    return InvalidInputError(
        message,
        code="invalid_kubeconfig",
        hint=hint or "see: kubectl config view",
        detail={"field": "context"},
    )


# --------------------------------------------------------------------------------------------------
# By which proxy an API server is reached: the kubeconfig's, or the environment's, as kubectl finds it.

PROXY_HINT = "check proxy-url in the kubeconfig and HTTPS_PROXY"
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
            f"the proxy address must start with {', '.join(sorted(_SCHEMES))} and contain a host",
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
