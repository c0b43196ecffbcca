"""The namespaces that this user may send runs to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

from hyperpod_jlab.orchestrators.kubernetes.api.connection import Connection
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import KINDS
from hyperpod_jlab.orchestrators.kubernetes.tables.looks import Kind, Looks

NAMESPACES = Kind("v1", "namespaces", namespaced=False)

_MOST = 100
"""So many are asked about at most: a question each."""
_AT_ONCE = 8
_GOOD_FOR = 300.0
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
