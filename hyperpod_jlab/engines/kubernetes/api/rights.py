"""What a user may do, asked before it is tried: for a namespace all at once, kept for a minute."""

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
from hyperpod_jlab.engines.kubernetes.api.errors import denied_right
from hyperpod_jlab.engines.kubernetes.api.watch import Watches

_LASTS = 60.0
_REVIEWS = "/apis/authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Right:
    """A right.

    Attributes:
        verb: ``get``, ``list``, ``watch``, ``create``, ``patch``, ``delete`` ...
        group: The kind's group; "" for the core's.
        resource: Its name in paths, with a part of it after a slash: ``pods/log``.
        namespace: Where; None: in the whole cluster.
    """

    verb: str
    group: str
    resource: str
    namespace: str | None = None

    def to_dict(self) -> dict[str, str | None]:
        """As plain data, as errors carry it."""
        return {
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "namespace": self.namespace,
        }

    def denied(self) -> DeniedError:
        """What to say to who lacks it."""
        return denied_right(self.verb, self.group, self.resource, self.namespace)


@dataclass(frozen=True, slots=True)
class _Rules:
    rules: tuple[Mapping[str, Any], ...]
    complete: bool


class Rights:
    """The rights of the client's user.

    What the cluster cannot say (it may have judges that do not answer questions beforehand) counts as allowed: trying tells.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._rules: Cache[str, _Rules] = Cache(_LASTS)
        self._answers: Cache[Right, bool] = Cache(_LASTS)

    async def may(self, verb: str, group: str, resource: str, namespace: str | None = None) -> bool:
        """Whether the user has a right."""
        right = Right(verb, group, resource, namespace)
        if namespace is not None:
            rules = await self._rules.get(namespace, partial(self._of, namespace))
            if any(_grants(rule, right) for rule in rules.rules):
                return True
            if rules.complete:
                return False
        return await self._answers.get(right, partial(self._asked, right))

    async def missing(self, wanted: Iterable[Right]) -> list[Right]:
        """Those of some rights that the user lacks, in their order."""
        rights = list(wanted)
        has = await asyncio.gather(
            *(self.may(one.verb, one.group, one.resource, one.namespace) for one in rights)
        )
        return [right for right, may in zip(rights, has, strict=True) if not may]

    def forget(self) -> None:
        """Ask anew: somebody was just refused, or was just given something."""
        self._rules.clear()
        self._answers.clear()

    async def _of(self, namespace: str) -> _Rules:
        """The rules that hold in a namespace."""
        status = await self._review("selfsubjectrulesreviews", {"namespace": namespace})
        return _Rules(
            tuple(status.get("resourceRules") or []),
            complete=bool(status) and not status.get("incomplete"),
        )

    async def _asked(self, right: Right) -> bool:
        """Ask for one right."""
        resource, _, part = right.resource.partition("/")
        attributes = {"verb": right.verb, "group": right.group, "resource": resource}
        attributes |= {"subresource": part} if part else {}
        attributes |= {"namespace": right.namespace} if right.namespace is not None else {}
        said = await self._review("selfsubjectaccessreviews", {"resourceAttributes": attributes})
        return bool(said.get("allowed", True))

    async def _review(self, kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer's status; empty when even the question is refused."""
        try:
            found = await self._client.post(f"{_REVIEWS}/{kind}", {"spec": spec})
        except (DeniedError, NotFoundError, RefusedError) as error:
            if error.code == "unauthorized":
                raise
            return {}
        status = found.get("status")
        return status if isinstance(status, dict) else {}


def _grants(rule: Mapping[str, Any], right: Right) -> bool:
    if rule.get("resourceNames"):
        return False
    verbs, groups = rule.get("verbs") or [], rule.get("apiGroups") or []
    if not ({"*", right.verb} & set(verbs)) or not ({"*", right.group} & set(groups)):
        return False
    part = right.resource.partition("/")[2]
    matching = {"*", right.resource} | ({f"*/{part}"} if part else set())
    return bool(matching & set(rule.get("resources") or []))


# --------------------------------------------------------------------------------------------------
# The client of one configured cluster, and what is asked of it once for all who ask: made when first needed.


@dataclass(frozen=True)
class _Made:
    client: KubeClient
    watches: Watches
    rights: Rights


class ClusterConnection:
    """The way to a cluster.

    All methods raise as `load_access` does: `UnsupportedError` when a package is missing, `InvalidInputError` when there is no usable kubeconfig or no such context,
    `DeniedError` when its way to log in fails.

    Attributes:
        config: Its configuration.
        namespace: The namespace of its runs.
    """

    def __init__(self, config: KubernetesCluster) -> None:
        self.config = config
        self.namespace = config.namespace or "default"
        self._made: _Made | None = None
        self._lock = asyncio.Lock()

    async def client(self) -> KubeClient:
        """The client."""
        return (await self._all()).client

    async def watches(self) -> Watches:
        """The watches of this process, shared by all who ask for the same."""
        return (await self._all()).watches

    async def rights(self) -> Rights:
        """What the user may do."""
        return (await self._all()).rights

    async def close(self) -> None:
        """End the watches and close the connections."""
        made, self._made = self._made, None
        if made is not None:
            await made.watches.close()
            await made.client.close()

    async def _all(self) -> _Made:
        async with self._lock:
            if self._made is None:
                client = KubeClient(await asyncio.to_thread(load_access, self.config))
                self._made = _Made(client, Watches(client), Rights(client))
        return self._made
