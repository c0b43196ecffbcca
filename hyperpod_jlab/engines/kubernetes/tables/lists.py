"""Lists as small rows, for the tables, as far as this user's rights go: what is hidden is told by what right is missing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hyperpod_jlab.core.errors import DeniedError, NotFoundError
from hyperpod_jlab.engines.kubernetes.api.cluster import Connection
from hyperpod_jlab.engines.kubernetes.api.errors import denied_right
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS

ListRow = TypeVar("ListRow")

MISSING_RIGHT = "missing_right"
"""The code of errors that tell which right is missing."""

_OLDEST = 5.0
"""Seconds for which the rows are good while the watch is cut."""
_DENIED_FOR = 60.0
"""Seconds for which what was denied is not asked for again."""
_SERVED_FOR = 300.0
"""The same for which versions of a group are served."""


@dataclass(frozen=True, slots=True)
class ListKind:
    """Objects of one kind.

    Attributes:
        group: Their API group and version, such as ``kubeflow.org/v1``; ``v1`` for the core.
        resource: The plural that stands in paths.
        namespaced: Whether they are in namespaces.
    """

    group: str
    resource: str
    namespaced: bool = True

    def path(self, namespace: str | None = None) -> str:
        """Where they are listed: in a namespace, or in all of them."""
        root = "/api/v1" if self.group == "v1" else f"/apis/{self.group}"
        if namespace is None:
            return f"{root}/{self.resource}"
        return f"{root}/namespaces/{namespace}/{self.resource}"

    @property
    def plain_group(self) -> str:
        """The group without its version; empty for the core."""
        return "" if self.group == "v1" else self.group.partition("/")[0]


NODES = ListKind("v1", "nodes", namespaced=False)
PODS = ListKind("v1", "pods")


@dataclass(frozen=True)
class Seen(Generic[ListRow]):
    """What may be seen of a kind.

    Attributes:
        rows: The rows; those of one namespace only where not all may be seen; None where nothing may be.
        hidden: The right without which not all could be seen, in words; None when all was.
    """

    rows: list[ListRow] | None
    hidden: str | None = None


def missing_right(kind: ListKind, namespace: str | None = None, verb: str = "list") -> str:
    """The right that somebody lacks, in words for the admin: verb, resource, namespace."""
    what = f"{kind.resource}.{kind.plain_group}" if kind.plain_group else kind.resource
    if not kind.namespaced:
        return f"{verb} {what}"
    where = "all namespaces" if namespace is None else f"the namespace {namespace}"
    return f"{verb} {what} in {where}"


def hidden_note(what: str, right: str) -> str:
    """The sentence for what is hidden; `what` is its subject."""
    return f"{what} are hidden from you: the right to {right} is missing"


def denied(kind: ListKind, namespace: str | None, what: str) -> DeniedError:
    """The error for a table of which nothing may be seen.

    Args:
        kind: What was asked for.
        namespace: Where; None: in all namespaces.
        what: What is hidden thereby, as the subject of a sentence.
    """
    right = denied_right("list", kind.plain_group, kind.resource, namespace)
    said = hidden_note(what, missing_right(kind, namespace))
    return DeniedError(said, code=MISSING_RIGHT, hint=right.hint, detail=right.detail)


class Looks:
    """What the API server has, as rows."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lists: dict[tuple[object, ...], tuple[float, dict[str, Any]]] = {}
        self._denied: dict[tuple[ListKind, str | None], float] = {}
        self._served: dict[str, tuple[float, str | None]] = {}
        self._kinds: dict[str, tuple[float, frozenset[str] | None]] = {}

    @property
    def namespace(self) -> str:
        """The namespace of this cluster's runs."""
        return self._connection.namespace

    async def version(self, group: str) -> str | None:
        """The version of a group that the API server prefers, as ``group/version``; None when it has no such group."""
        at, known = self._served.get(group, (float("-inf"), None))
        if time.monotonic() - at > _SERVED_FOR:
            client = await self._connection.client()
            try:
                found = await client.get(f"/apis/{group}")
                known = str(found["preferredVersion"]["groupVersion"])
            except NotFoundError:
                known = None
            self._served[group] = (time.monotonic(), known)
        return known

    async def object(self, path: str) -> dict[str, Any]:
        """One object, or an answer that is no list."""
        client = await self._connection.client()
        return await client.get(path)

    async def everywhere(
        self, kind: ListKind, reduce: Callable[[Mapping[str, Any]], ListRow], *, fields: str = ""
    ) -> Seen[ListRow]:
        """The rows of all namespaces, else those of the own one, else none.

        Raises:
            DeniedError: The credentials are no good at all.
            NotFoundError: The cluster has no such kind.
            UnreachableError: It does not answer.
        """
        places = (None, self.namespace) if kind.namespaced else (None,)
        for namespace in places:
            if time.monotonic() - self._denied.get((kind, namespace), float("-inf")) < _DENIED_FOR:
                continue
            try:
                rows = await self.rows(kind, reduce, namespace, fields=fields)
            except DeniedError as error:
                if error.code != MISSING_RIGHT:
                    raise
                self._denied[(kind, namespace)] = time.monotonic()
                continue
            hidden = missing_right(kind) if namespace is not None else None
            return Seen(list(rows.values()), hidden)
        if not await self._has(
            kind
        ):  # who lacks the right is told so before it is looked whether there is such a kind
            raise NotFoundError(
                f"the cluster has no {kind.resource} of {kind.group}", code="no_such_kind"
            )
        return Seen(None, missing_right(kind, places[-1]))

    async def _has(self, kind: ListKind) -> bool:
        """Whether the cluster has a kind; it has where this user may not even ask."""
        if not kind.plain_group:
            return True
        at, names = self._kinds.get(kind.group, (float("-inf"), None))
        if time.monotonic() - at > _SERVED_FOR:
            names = await self._names(kind.group)
            self._kinds[kind.group] = (time.monotonic(), names)
        return names is None or kind.resource in names

    async def _names(self, group: str) -> frozenset[str] | None:
        """The kinds of a group and version, by their plurals; none where it is not served, None where this user may not ask."""
        client = await self._connection.client()
        try:
            found = await client.get(f"/apis/{group}")
        except NotFoundError:
            return frozenset()
        except DeniedError as error:
            if error.code != MISSING_RIGHT:
                raise
            return None
        return frozenset(str(one.get("name")) for one in found.get("resources") or [])

    async def rows(
        self,
        kind: ListKind,
        reduce: Callable[[Mapping[str, Any]], ListRow],
        namespace: str | None = None,
        *,
        fields: str = "",
    ) -> Mapping[str, ListRow]:
        """The rows of a kind, by name. Not a copy: it changes.

        Args:
            kind: The kind.
            reduce: Makes a row of an object.
            namespace: Where; None: everywhere.
            fields: Field selector.

        Raises:
            DeniedError: This may not be seen.
            NotFoundError: The cluster has no such kind.
            UnreachableError: It does not answer.
        """
        watches = await self._connection.watches()
        watch = watches.of(kind.path(namespace), reduce, fields=fields)
        try:
            return await watch.rows(_OLDEST)
        except DeniedError as error:
            if (error.detail.get("right") or {}).get("verb") != "watch":
                raise
        return await self._listed(kind.path(namespace), reduce, fields)

    async def _listed(
        self, path: str, reduce: Callable[[Mapping[str, Any]], ListRow], fields: str
    ) -> Mapping[str, ListRow]:
        """The same by lists alone, for who may list and not watch."""
        key = (path, reduce, fields)
        at, rows = self._lists.get(key, (float("-inf"), {}))
        if time.monotonic() - at > _OLDEST:
            rows = {}
            client = await self._connection.client()
            query = {"fieldSelector": fields} if fields else {}
            async for page in client.pages(path, query):
                for item in page.items:
                    meta = item["metadata"]
                    rows[f"{meta.get('namespace', '')}/{meta['name']}"] = reduce(item)
            self._lists[key] = (time.monotonic(), rows)
        return rows


# --------------------------------------------------------------------------------------------------
# The namespaces that this user may send runs to.

NAMESPACES = ListKind("v1", "namespaces", namespaced=False)

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
