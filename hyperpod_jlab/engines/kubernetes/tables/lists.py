"""Lists as small rows for the tables, within this user's permissions; a hidden part is reported with its missing permission."""

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

MISSING_PERMISSION = "missing_right"
"""The code of errors for a missing permission."""

_OLDEST = 5.0
"""Maximum age in seconds of rows while the watch is broken."""
_DENIED_TTL_S = 60.0
"""Seconds before a denied list is requested again."""
_SERVED_TTL_S = 300.0
"""Seconds for which the served versions of a group are cached."""


@dataclass(frozen=True, slots=True)
class ListKind:
    """Objects of one kind.

    Attributes:
        group: The API group and version, such as ``kubeflow.org/v1``; ``v1`` for the core.
        resource: The plural name in paths.
        namespaced: Whether they are namespaced.
    """

    group: str
    resource: str
    namespaced: bool = True

    def path(self, namespace: str | None = None) -> str:
        """The list path, in a namespace or in all of them."""
        root = "/api/v1" if self.group == "v1" else f"/apis/{self.group}"
        if namespace is None:
            return f"{root}/{self.resource}"
        return f"{root}/namespaces/{namespace}/{self.resource}"

    @property
    def group_name(self) -> str:
        """The group without its version; empty for the core."""
        return "" if self.group == "v1" else self.group.partition("/")[0]


NODES = ListKind("v1", "nodes", namespaced=False)
PODS = ListKind("v1", "pods")


@dataclass(frozen=True)
class ListResult(Generic[ListRow]):
    """The readable objects of a kind.

    Attributes:
        rows: The rows; of one namespace only if not all are readable; None if none is.
        missing_permission: The missing permission that hides the others, as text; None when all are
            readable.
    """

    rows: list[ListRow] | None
    missing_permission: str | None = None


def permission_text(kind: ListKind, namespace: str | None = None, verb: str = "list") -> str:
    """A missing permission as text for the admin: verb, resource, namespace."""
    subject = f"{kind.resource}.{kind.group_name}" if kind.group_name else kind.resource
    if not kind.namespaced:
        return f"{verb} {subject}"
    scope_text = "all namespaces" if namespace is None else f"the namespace {namespace}"
    return f"{verb} {subject} in {scope_text}"


def hidden_note(subject: str, permission: str) -> str:
    """The sentence about a hidden part; `subject` is its subject."""
    return f"{subject} are hidden: you do not have the permission to {permission}"


def denied_error(kind: ListKind, namespace: str | None, subject: str) -> DeniedError:
    """The error for a table without any readable object.

    Args:
        kind: The kind.
        namespace: The namespace, or None for all.
        subject: The hidden part, as the subject of a sentence.
    """
    permission = permission_denied("list", kind.group_name, kind.resource, namespace)
    message = hidden_note(subject, permission_text(kind, namespace))
    return DeniedError(message, code=MISSING_PERMISSION, hint=permission.hint, detail=permission.detail)


class ListCache:
    """The API server's lists, as rows."""

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self._lists: Cache[tuple[object, ...], Mapping[str, Any]] = Cache(_OLDEST)
        self._denied: Cache[tuple[ListKind, str | None], None] = Cache(_DENIED_TTL_S)
        self._served: Cache[str, str | None] = Cache(_SERVED_TTL_S)
        self._kinds: Cache[str, frozenset[str] | None] = Cache(_SERVED_TTL_S)

    @property
    def namespace(self) -> str:
        """The namespace of this cluster's runs."""
        return self._connection.namespace

    async def version(self, group: str) -> str | None:
        """The API server's preferred version of a group, as ``group/version``; None when it does not have the group."""
        return await self._served.get(group, lambda: self._preferred(group))

    async def _preferred(self, group: str) -> str | None:
        client = await self._connection.client()
        try:
            response = await client.get(f"/apis/{group}")
        except NotFoundError:
            return None
        return str(response["preferredVersion"]["groupVersion"])

    async def object(self, path: str) -> dict[str, Any]:
        """One object, or a response that is not a list."""
        client = await self._connection.client()
        return await client.get(path)

    async def everywhere(
        self, kind: ListKind, reduce: Callable[[Mapping[str, Any]], ListRow], *, fields: str = ""
    ) -> ListResult[ListRow]:
        """The rows of all namespaces, else those of the own one, else none.

        Raises:
            DeniedError: The credentials were rejected.
            NotFoundError: The cluster does not have the kind.
            UnreachableError: The cluster does not answer.
        """
        namespaces = (None, self.namespace) if kind.namespaced else (None,)
        for namespace in namespaces:
            if self._denied.is_fresh((kind, namespace)):
                continue
            try:
                rows = await self.rows(kind, reduce, namespace, fields=fields)
            except DeniedError as error:
                if error.code != MISSING_PERMISSION:
                    raise
                self._denied.put((kind, namespace), None)
                continue
            missing_permission = permission_text(kind) if namespace is not None else None
            return ListResult(list(rows.values()), missing_permission)
        if not await self._is_served(kind):  # a missing permission is checked before the existence of the kind
            raise NotFoundError(f"the cluster has no {kind.resource} of {kind.group}", code="no_such_kind")
        return ListResult(None, permission_text(kind, namespaces[-1]))

    async def _is_served(self, kind: ListKind) -> bool:
        """Whether the cluster has a kind; assumed if this user lacks the permission to ask."""
        if not kind.group_name:
            return True
        names = await self._kinds.get(kind.group, lambda: self._names(kind.group))
        return names is None or kind.resource in names

    async def _names(self, group: str) -> frozenset[str] | None:
        """The kinds of a group and version, by plural; empty when it is not served, None if this user lacks the permission to ask."""
        client = await self._connection.client()
        try:
            response = await client.get(f"/apis/{group}")
        except NotFoundError:
            return frozenset()
        except DeniedError as error:
            if error.code != MISSING_PERMISSION:
                raise
            return None
        return frozenset(str(resource.get("name")) for resource in response.get("resources") or [])

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
            reduce: Converts an object to a row.
            namespace: The namespace, or None for all.
            fields: Field selector.

        Raises:
            DeniedError: The user may not read it.
            NotFoundError: The cluster does not have the kind.
            UnreachableError: The cluster does not answer.
        """
        informers = await self._connection.informers()
        informer = informers.get(kind.path(namespace), reduce, fields=fields)
        try:
            return await informer.rows(_OLDEST)
        except DeniedError as error:
            if (error.detail.get("right") or {}).get("verb") != "watch":
                raise
        path = kind.path(namespace)
        key = (path, reduce, fields)
        return await self._lists.get(key, lambda: self._list_pages(path, reduce, fields))

    async def _list_pages(
        self, path: str, reduce: Callable[[Mapping[str, Any]], ListRow], fields: str
    ) -> Mapping[str, ListRow]:
        """The same with lists only, for users who may list but not watch."""
        rows = {}
        client = await self._connection.client()
        query = {"fieldSelector": fields} if fields else {}
        async for page in client.pages(path, query):
            for item in page.items:
                meta = item["metadata"]
                rows[f"{meta.get('namespace', '')}/{meta['name']}"] = reduce(item)
        return rows


# --------------------------------------------------------------------------------------------------
# The namespaces to which this user may submit.

NAMESPACES = ListKind("v1", "namespaces", namespaced=False)

_MAX_NAMESPACES = 100
"""Maximum number of namespaces to check, one request each."""
_CONCURRENCY = 8
_USABLE_TTL_S = 300.0
_EXISTS_TTL_S = 60.0
"""Seconds for which an existing namespace is cached."""
_SYSTEM = ("kube-", "openshift-")


class Namespaces:
    """Checks which namespaces are usable.

    Args:
        connection: The cluster.
        list_cache: Its lists.
    """

    def __init__(self, connection: ClusterConnection, list_cache: ListCache) -> None:
        self._connection = connection
        self._list_cache = list_cache
        self._usable_cache: Cache[str, bool] = Cache(_USABLE_TTL_S)
        self._problem: Cache[None, str | None] = Cache(lambda problem: 0.0 if problem else _EXISTS_TTL_S)

    async def problem(self) -> str | None:
        """Why the namespace of this cluster's runs is unusable; None when it is usable, or when this user may not check.

        Raises:
            UnreachableError: The API server does not answer.
        """
        return await self._problem.get(None, self._load_names)

    async def _load_names(self) -> str | None:
        name = self._connection.namespace
        try:
            response = await self._list_cache.object(f"/api/v1/namespaces/{name}")
        except NotFoundError:
            return f"namespace {name} not found: set namespace in the configuration of the cluster to an existing one"
        except DeniedError as error:
            if error.code != MISSING_PERMISSION:
                raise
            response = {}
        if (response.get("metadata") or {}).get("deletionTimestamp"):
            return f"the namespace {name} is being deleted and accepts no runs"
        return None

    async def names(self) -> tuple[str, ...] | None:
        """The usable ones, by name; None when namespaces may not be listed.

        Raises:
            UnreachableError: The API server does not answer.
        """
        namespaces_listed = await self._list_cache.everywhere(NAMESPACES, _name)
        if namespaces_listed.rows is None:
            return None
        names = [name for name in namespaces_listed.rows if name and not name.startswith(_SYSTEM)]
        return tuple(sorted(await self.filter_usable(sorted(names))))

    async def filter_usable(self, names: Iterable[str]) -> frozenset[str]:
        """The usable ones among some namespaces: those in which the user may create any kind of job."""
        gate = asyncio.Semaphore(_CONCURRENCY)

        async def check(name: str) -> bool:
            async with gate:
                return await self._usable_cache.get(name, lambda: self._is_allowed(name))

        checked = list(dict.fromkeys(names))[:_MAX_NAMESPACES]
        results = await asyncio.gather(*(check(name) for name in checked))
        return frozenset(name for name, is_allowed in zip(checked, results, strict=True) if is_allowed)

    async def _is_allowed(self, namespace: str) -> bool:
        permissions = await self._connection.permissions()
        for kind in KINDS:
            if await permissions.is_allowed("create", kind.group, kind.plural, namespace):
                return True
        return False


def _name(namespace: Mapping[str, Any]) -> str | None:
    """Its name; None while it is being deleted."""
    meta = namespace["metadata"]
    return None if meta.get("deletionTimestamp") else str(meta["name"])
