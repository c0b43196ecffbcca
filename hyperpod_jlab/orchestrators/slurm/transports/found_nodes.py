"""Login nodes that AWS names, for a cluster whose configuration names its HyperPod cluster and no login nodes.

All processes of a user share what was found, for some minutes: a command line asks AWS once, not each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.aws.login_nodes import NO_LOGIN_NODES, find_login_nodes
from hyperpod_jlab.aws.session import Aws, home_region
from hyperpod_jlab.model.errors import HyperpodError, UnreachableError
from hyperpod_jlab.model.hyperpod import region_of

_FRESH = 900.0
"""Seconds for which what was found is not asked for again, unless none of them answers."""

_PAUSE = 60.0
"""Seconds between two questions while none of them answers."""


@dataclass(frozen=True)
class Found:
    """What AWS named: hosts, and what a user should know of them."""

    hosts: tuple[str, ...]
    note: str | None


class FoundNodes:
    """The login nodes of a HyperPod cluster.

    Args:
        cluster: Its name or ARN.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    async def get(self, *, anew: bool = False) -> Found:
        """The hosts.

        Args:
            anew: Whether none of those that were given last answers, so that they may have been replaced.

        Raises:
            HyperpodError: AWS does not say, and nothing is known from before.
        """
        path = await asyncio.to_thread(self._path)
        age, kept = await asyncio.to_thread(_read, path)
        if kept is not None and age < (_PAUSE if anew else _FRESH):
            return kept
        try:
            nodes = await find_login_nodes(Aws(region_of(self._cluster)), self._cluster)
        except HyperpodError as error:
            if kept is not None and error.code != NO_LOGIN_NODES:
                return kept
            raise _unknown(self._cluster, error) from error
        found = Found(tuple(one.host for one in nodes.instances if one.host), nodes.note)
        await asyncio.to_thread(_write, path, found)
        return found

    def _path(self) -> Path:
        """The file in which all who mean the same cluster of the same account keep what was found."""
        place = [self._cluster, home_region() or "", *map(os.environ.get, _ACCOUNT)]
        digest = hashlib.sha256("\0".join(part or "" for part in place).encode()).hexdigest()
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
        return base / "hyperpod-jlab" / "slurm" / f"login-{digest[:16]}.json"


_ACCOUNT = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL")
"""Variables that say which account is asked."""


def _read(path: Path) -> tuple[float, Found | None]:
    """What was found, and how many seconds ago. What cannot be read was not found."""
    try:
        age = time.time() - path.stat().st_mtime
        data = json.loads(path.read_text(encoding="utf-8"))
        found = Found(tuple(map(str, data["hosts"])), data["note"] and str(data["note"]))
    except (OSError, ValueError, TypeError, KeyError):
        return 0.0, None
    return (age, found) if age >= 0 and found.hosts else (0.0, None)


def _write(path: Path, found: Found) -> None:
    """Keep it; where that fails AWS is asked more often."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({"hosts": found.hosts, "note": found.note}))
        temporary.replace(path)


def _unknown(cluster: str, error: HyperpodError) -> HyperpodError:
    if error.code == NO_LOGIN_NODES:
        return error
    hint = 'name them in the configuration: login_nodes = ["HOST"]'
    return UnreachableError(
        f"AWS does not name the login nodes of {cluster}: {error.message}",
        code=error.code,
        hint=f"{error.hint}; or {hint}" if error.hint else hint,
        detail={**error.detail, "field": "login_nodes"},
    )
