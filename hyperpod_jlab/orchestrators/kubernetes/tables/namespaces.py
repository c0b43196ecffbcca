"""The namespaces that this user may send runs to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

from hyperpod_jlab.model.errors import DeniedError, NotFoundError
from hyperpod_jlab.orchestrators.kubernetes.api.connection import Connection
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import KINDS
from hyperpod_jlab.orchestrators.kubernetes.tables.looks import MISSING_RIGHT, Kind, Looks

NAMESPACES = Kind("v1", "namespaces", namespaced=False)

_MOST = 100
"""So many are asked about at most: a question each."""
_AT_ONCE = 8
_GOOD_FOR = 300.0
_THERE_FOR = 60.0
"""Seconds for which a namespace that was there is not looked for again."""
_SYSTEM = ("kube-", "openshift-")


class Namespaces:
    """Asks which namespaces may be used.

    Args:
        connection: The cluster.
        looks: Its lists.
    """

    def __init__(self, connection: Connection, looks: Looks) -> None:
        self._connection = connection
        self._looks = looks
        self._known: dict[str, tuple[float, bool]] = {}
        self._there = float("-inf")

    async def problem(self) -> str | None:
        """Why the namespace of this cluster's runs cannot be used; None when it can, or when this user may not look.

        Raises:
            UnreachableError: The API server does not answer.
        """
        if time.monotonic() - self._there < _THERE_FOR:
            return None
        name = self._connection.namespace
        try:
            found = await self._looks.object(f"/api/v1/namespaces/{name}")
        except NotFoundError:
            return f"there is no namespace {name}: name one that there is as namespace in the cluster's configuration"
        except DeniedError as error:
            if error.code != MISSING_RIGHT:
                raise
            found = {}
        if (found.get("metadata") or {}).get("deletionTimestamp"):
            return f"the namespace {name} is being removed, and takes no runs any more"
        self._there = time.monotonic()
        return None

    async def names(self) -> tuple[str, ...] | None:
        """Those that may be used, by name; None when namespaces may not be listed.

        Raises:
            UnreachableError: The API server does not answer.
        """
        seen = await self._looks.everywhere(NAMESPACES, _name)
        if seen.rows is None:
            return None
        there = [name for name in seen.rows if name and not name.startswith(_SYSTEM)]
        return tuple(sorted(await self.usable(sorted(there))))

    async def usable(self, names: Iterable[str]) -> frozenset[str]:
        """Which of some namespaces may be used: in which jobs of any kind may be made."""
        gate = asyncio.Semaphore(_AT_ONCE)

        async def ask(name: str) -> bool:
            at, known = self._known.get(name, (float("-inf"), False))
            if time.monotonic() - at > _GOOD_FOR:
                async with gate:
                    known = await self._may(name)
                self._known[name] = (time.monotonic(), known)
            return known

        asked = list(dict.fromkeys(names))[:_MOST]
        found = await asyncio.gather(*(ask(name) for name in asked))
        return frozenset(name for name, may in zip(asked, found, strict=True) if may)

    async def _may(self, namespace: str) -> bool:
        rights = await self._connection.rights()
        for kind in KINDS:
            if await rights.may("create", kind.group, kind.plural, namespace):
                return True
        return False


def _name(namespace: Mapping[str, Any]) -> str | None:
    """Its name; None of one that is being removed."""
    meta = namespace["metadata"]
    return None if meta.get("deletionTimestamp") else str(meta["name"])
