"""Which login nodes a cluster has, and in which order a user tries them.

Users are spread over the login nodes, and each user always starts at the same one. A cluster whose configuration names its HyperPod
cluster and no login nodes uses those that AWS lists. All processes of a user share that list for some minutes, so that a command line
does not query AWS each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import hashlib
import json
import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.aws.clusters import NO_LOGIN_NODES, find_login_nodes
from hyperpod_jlab.aws.session import Aws, home_region
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.core.hyperpod import region_of

_TTL_S = 900.0
"""Seconds for which the list is cached, unless none of the login nodes answers."""

_REFRESH_PAUSE_S = 60.0
"""Seconds between two queries while none of them answers."""

_ACCOUNT = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL")
"""Variables that select the AWS account."""


def rotate_hosts(hosts: Sequence[str], user_key: str) -> list[str]:
    """The hosts in a user's order: it starts at a host derived from the name and wraps around.

    So the users of a failed host do not all move to the same next one.
    """
    if not hosts:
        return []
    first = int.from_bytes(hashlib.sha256(user_key.encode()).digest()[:8], "big") % len(hosts)
    return [*hosts[first:], *hosts[:first]]


def current_user_key() -> str:
    """A key for the current user. In Studio all users have the same user name on their machines, so there the key is the space's."""
    studio = find_studio()
    if studio is not None and studio.space is not None:
        return f"{studio.domain_id}/{studio.space}"
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a name
        return str(os.getuid())


@dataclass(frozen=True)
class LoginNodes:
    """AWS's response: hosts, and a note for the user."""

    hosts: tuple[str, ...]
    note: str | None


class LoginNodeDiscovery:
    """The login nodes of a HyperPod cluster.

    Args:
        cluster: Its name or ARN.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    async def get(self, *, refresh: bool = False) -> LoginNodes:
        """The login nodes.

        Args:
            refresh: Whether none of the last returned hosts answers, so that they may have been
                replaced.

        Raises:
            HyperpodError: AWS does not answer, and nothing is cached.
        """
        path = await asyncio.to_thread(self._path)
        age, cached = await asyncio.to_thread(_read, path)
        if cached is not None and age < (_REFRESH_PAUSE_S if refresh else _TTL_S):
            return cached
        try:
            nodes = await find_login_nodes(Aws(region_of(self._cluster)), self._cluster)
        except HyperpodError as error:
            if error.code == NO_LOGIN_NODES:
                raise
            if cached is not None:
                return cached
            hint = 'set them in the configuration: login_nodes = ["HOST"]'
            raise UnreachableError(
                f"AWS does not list the login nodes of {self._cluster}: {error.message}",
                code=error.code,
                hint=f"{error.hint}; or {hint}" if error.hint else hint,
                detail={**error.detail, "field": "login_nodes"},
            ) from error
        hosts = tuple(instance.host for instance in nodes.instances if instance.host)
        login_nodes = LoginNodes(hosts, nodes.note)
        await asyncio.to_thread(_write, path, login_nodes)
        return login_nodes

    def _path(self) -> Path:
        """The cache file for the same cluster of the same account."""
        key_parts = [self._cluster, home_region() or "", *map(os.environ.get, _ACCOUNT)]
        digest = hashlib.sha256("\0".join(part or "" for part in key_parts).encode()).hexdigest()
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
        return base / "hyperpod-jlab" / "slurm" / f"login-{digest[:16]}.json"


def _read(path: Path) -> tuple[float, LoginNodes | None]:
    """The cached list and its age in seconds. An unreadable file counts as missing."""
    try:
        age = time.time() - path.stat().st_mtime
        data = json.loads(path.read_text(encoding="utf-8"))
        login_nodes = LoginNodes(tuple(map(str, data["hosts"])), data["note"] and str(data["note"]))
    except (OSError, ValueError, TypeError, KeyError):
        return 0.0, None
    return (age, login_nodes) if age >= 0 and login_nodes.hosts else (0.0, None)


def _write(path: Path, login_nodes: LoginNodes) -> None:
    """Save the list; if that fails, AWS is queried more often."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({"hosts": login_nodes.hosts, "note": login_nodes.note}))
        temporary.replace(path)
