"""Lists as small rows, for the tables, as far as this user's rights go: what is hidden is told by what right is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.errors import DeniedError, NotFoundError
from hyperpod_jlab.engines.kubernetes.api.errors import permission_denied
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
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
    return f"{what} are hidden: you do not have the permission to {right}"


def denied(kind: ListKind, namespace: str | None, what: str) -> DeniedError:
    """The error for a table of which nothing may be seen.

    Args:
        kind: What was asked for.
        namespace: Where; None: in all namespaces.
        what: What is hidden thereby, as the subject of a sentence.
    """
    right = permission_denied("list", kind.plain_group, kind.resource, namespace)
    said = hidden_note(what, missing_right(kind, namespace))
    return DeniedError(said, code=MISSING_RIGHT, hint=right.hint, detail=right.detail)


class ListCache:
    """What the API server has, as rows."""

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self._lists: Cache[tuple[object, ...], Mapping[str, Any]] = Cache(_OLDEST)
        self._denied: Cache[tuple[ListKind, str | None], None] = Cache(_DENIED_FOR)
        self._served: Cache[str, str | None] = Cache(_SERVED_FOR)
        self._kinds: Cache[str, frozenset[str] | None] = Cache(_SERVED_FOR)

    @property
    def namespace(self) -> str:
        """The namespace of this cluster's runs."""
        return self._connection.namespace

    async def version(self, group: str) -> str | None:
        """The version of a group that the API server prefers, as ``group/version``; None when it has no such group."""
        return await self._served.get(group, lambda: self._preferred(group))

    async def _preferred(self, group: str) -> str | None:
        client = await self._connection.client()
        try:
            found = await client.get(f"/apis/{group}")
        except NotFoundError:
            return None
        return str(found["preferredVersion"]["groupVersion"])

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
            if self._denied.is_fresh((kind, namespace)):
                continue
            try:
                rows = await self.rows(kind, reduce, namespace, fields=fields)
            except DeniedError as error:
                if error.code != MISSING_RIGHT:
                    raise
                self._denied.put((kind, namespace), None)
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
        names = await self._kinds.get(kind.group, lambda: self._names(kind.group))
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
        watches = await self._connection.informers()
        watch = watches.get(kind.path(namespace), reduce, fields=fields)
        try:
            return await watch.rows(_OLDEST)
        except DeniedError as error:
            if (error.detail.get("right") or {}).get("verb") != "watch":
                raise
        path = kind.path(namespace)
        key = (path, reduce, fields)
        return await self._lists.get(key, lambda: self._listed(path, reduce, fields))

    async def _listed(
        self, path: str, reduce: Callable[[Mapping[str, Any]], ListRow], fields: str
    ) -> Mapping[str, ListRow]:
        """The same by lists alone, for who may list and not watch."""
        rows = {}
        client = await self._connection.client()
        query = {"fieldSelector": fields} if fields else {}
        async for page in client.pages(path, query):
            for item in page.items:
                meta = item["metadata"]
                rows[f"{meta.get('namespace', '')}/{meta['name']}"] = reduce(item)
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

    def __init__(self, connection: ClusterConnection, looks: ListCache) -> None:
        self._connection = connection
        self._looks = looks
        self._usable: Cache[str, bool] = Cache(_GOOD_FOR)
        self._problem: Cache[None, str | None] = Cache(
            lambda problem: 0.0 if problem else _THERE_FOR
        )

    async def problem(self) -> str | None:
        """Why the namespace of this cluster's runs cannot be used; None when it can, or when this user may not look.

        Raises:
            UnreachableError: The API server does not answer.
        """
        return await self._problem.get(None, self._look)

    async def _look(self) -> str | None:
        name = self._connection.namespace
        try:
            found = await self._looks.object(f"/api/v1/namespaces/{name}")
        except NotFoundError:
            return f"namespace {name} not found: set namespace in the configuration of the cluster to an existing one"
        except DeniedError as error:
            if error.code != MISSING_RIGHT:
                raise
            found = {}
        if (found.get("metadata") or {}).get("deletionTimestamp"):
            return f"the namespace {name} is being deleted and accepts no runs"
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
            async with gate:
                return await self._usable.get(name, lambda: self._may(name))

        asked = list(dict.fromkeys(names))[:_MOST]
        found = await asyncio.gather(*(ask(name) for name in asked))
        return frozenset(name for name, may in zip(asked, found, strict=True) if may)

    async def _may(self, namespace: str) -> bool:
        permissions = await self._connection.permissions()
        for kind in KINDS:
            if await permissions.is_allowed("create", kind.group, kind.plural, namespace):
                return True
        return False


def _name(namespace: Mapping[str, Any]) -> str | None:
    """Its name; None of one that is being removed."""
    meta = namespace["metadata"]
    return None if meta.get("deletionTimestamp") else str(meta["name"])
