"""Permission checks before an action: all of a namespace in one request, cached for a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import DeniedError, NotFoundError, RefusedError
from hyperpod_jlab.engines.kubernetes.api.access import load_access
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.errors import permission_denied
from hyperpod_jlab.engines.kubernetes.api.watch import Informers

_TTL_S = 60.0
_REVIEWS = "/apis/authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class ResourcePermission:
    """A permission.

    Attributes:
        verb: ``get``, ``list``, ``watch``, ``create``, ``patch``, ``delete`` ...
        group: The kind's API group; "" for the core group.
        resource: Its name in paths, with a subresource after a slash: ``pods/log``.
        namespace: The namespace, or None for the whole cluster.
    """

    verb: str
    group: str
    resource: str
    namespace: str | None = None

    def to_dict(self) -> dict[str, str | None]:
        """As plain data for errors."""
        return {"verb": self.verb, "group": self.group, "resource": self.resource, "namespace": self.namespace}

    def denied(self) -> DeniedError:
        """The error for a user who lacks the permission."""
        return permission_denied(self.verb, self.group, self.resource, self.namespace)


@dataclass(frozen=True, slots=True)
class _Rules:
    rules: tuple[Mapping[str, Any], ...]
    complete: bool


class PermissionChecker:
    """The permissions of the client's user.

    A permission that the cluster cannot evaluate beforehand, as with some authorizers, counts as
    allowed; the request itself decides.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._rules: Cache[str, _Rules] = Cache(_TTL_S)
        self._cache: Cache[ResourcePermission, bool] = Cache(_TTL_S)

    async def is_allowed(self, verb: str, group: str, resource: str, namespace: str | None = None) -> bool:
        """Whether the user has a permission."""
        permission = ResourcePermission(verb, group, resource, namespace)
        if namespace is not None:
            rules = await self._rules.get(namespace, partial(self._namespace_rules, namespace))
            if any(_rule_allows(rule, permission) for rule in rules.rules):
                return True
            if rules.complete:
                return False
        return await self._cache.get(permission, partial(self._review_one, permission))

    async def list_missing(self, permissions: Iterable[ResourcePermission]) -> list[ResourcePermission]:
        """The missing ones among some permissions, in order."""
        permission_list = list(permissions)
        allowed = await asyncio.gather(
            *(
                self.is_allowed(permission.verb, permission.group, permission.resource, permission.namespace)
                for permission in permission_list
            )
        )
        return [permission for permission, is_granted in zip(permission_list, allowed, strict=True) if not is_granted]

    def forget(self) -> None:
        """Clear the cache after a permission was denied or granted."""
        self._rules.clear()
        self._cache.clear()

    async def _namespace_rules(self, namespace: str) -> _Rules:
        """The rules of a namespace."""
        status = await self._review("selfsubjectrulesreviews", {"namespace": namespace})
        return _Rules(tuple(status.get("resourceRules") or []), complete=bool(status) and not status.get("incomplete"))

    async def _review_one(self, permission: ResourcePermission) -> bool:
        """Check one permission."""
        resource, _, part = permission.resource.partition("/")
        attributes = {"verb": permission.verb, "group": permission.group, "resource": resource}
        attributes |= {"subresource": part} if part else {}
        attributes |= {"namespace": permission.namespace} if permission.namespace is not None else {}
        review = await self._review("selfsubjectaccessreviews", {"resourceAttributes": attributes})
        return bool(review.get("allowed", True))

    async def _review(self, kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The response's status; empty when even the review is denied."""
        try:
            response = await self._client.post(f"{_REVIEWS}/{kind}", {"spec": spec})
        except (DeniedError, NotFoundError, RefusedError) as error:
            if error.code == "unauthorized":
                raise
            return {}
        status = response.get("status")
        return status if isinstance(status, dict) else {}


def _rule_allows(rule: Mapping[str, Any], permission: ResourcePermission) -> bool:
    if rule.get("resourceNames"):
        return False
    verbs, groups = rule.get("verbs") or [], rule.get("apiGroups") or []
    if not ({"*", permission.verb} & set(verbs)) or not ({"*", permission.group} & set(groups)):
        return False
    part = permission.resource.partition("/")[2]
    matching = {"*", permission.resource} | ({f"*/{part}"} if part else set())
    return bool(matching & set(rule.get("resources") or []))


# --------------------------------------------------------------------------------------------------
# The client of one configured cluster and its shared queries, created on first use.


@dataclass(frozen=True)
class _Connected:
    client: KubeClient
    informers: Informers
    permissions: PermissionChecker


class ClusterConnection:
    """The connection to a cluster.

    All methods raise as `load_access` does: `UnsupportedError` when a package is missing,
    `InvalidInputError` when there is no usable kubeconfig or the context does not exist,
    `DeniedError` when authentication fails.

    Attributes:
        config: Its configuration.
        namespace: The namespace of its runs.
    """

    def __init__(self, config: KubernetesCluster) -> None:
        self.config = config
        self.namespace = config.namespace or "default"
        self._connected: _Connected | None = None
        self._lock = asyncio.Lock()

    async def client(self) -> KubeClient:
        return (await self._all()).client

    async def informers(self) -> Informers:
        """This process's informers, shared by all callers."""
        return (await self._all()).informers

    async def permissions(self) -> PermissionChecker:
        """The user's permissions."""
        return (await self._all()).permissions

    async def close(self) -> None:
        """End the informers and close the connections."""
        connected, self._connected = self._connected, None
        if connected is not None:
            await connected.informers.close()
            await connected.client.close()

    async def _all(self) -> _Connected:
        async with self._lock:
            if self._connected is None:
                client = KubeClient(await asyncio.to_thread(load_access, self.config))
                self._connected = _Connected(client, Informers(client), PermissionChecker(client))
        return self._connected
