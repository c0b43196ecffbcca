"""What checks of facts look at: AWS, the clusters of the account, and a session with fewer rights."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from hyperpod_jlab.admin.choices import list_domains
from hyperpod_jlab.aws.clusters import describe_cluster, list_clusters, list_instances
from hyperpod_jlab.aws.session import Aws, Keys
from hyperpod_jlab.model.errors import DeniedError, HyperpodError
from hyperpod_jlab.model.hyperpod import HyperpodCluster, Instance

_MOST_CLUSTERS = 10
"""Clusters that are looked at where none is named."""

_MOST_NODES = 3
"""Nodes of each cluster that are looked at one by one."""


@dataclass
class Ground:
    """What is looked at.

    Attributes:
        aws: AWS, as the caller.
        domain: The domain of Studio that was named, or this space's; None: the first of the region, if there is one.
        cluster: The cluster that was named; None: some of the region.
        as_role: ARN of a role that the caller may assume, for what needs a session with fewer rights.
    """

    aws: Aws
    domain: str | None = None
    cluster: str | None = None
    as_role: str | None = None
    _clusters: list[HyperpodCluster] | HyperpodError | None = field(default=None, repr=False)
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def clusters(self) -> list[HyperpodCluster]:
        """The clusters, described; they are looked up once.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        async with self._looking:
            if self._clusters is None:
                try:
                    self._clusters = await self._found()
                except HyperpodError as error:
                    self._clusters = error
        if isinstance(self._clusters, HyperpodError):
            raise self._clusters
        return self._clusters

    async def _found(self) -> list[HyperpodCluster]:
        region = await self.aws.region()
        if self.cluster is not None:
            named = HyperpodCluster(self.cluster, self.cluster, region, "")
            return [await describe_cluster(self.aws, named)]
        found = [one async for page in list_clusters(self.aws) for one in page]
        return [await describe_cluster(self.aws, one) for one in found[:_MOST_CLUSTERS]]

    async def check_named(self) -> None:
        """See that the domain and the cluster that were named are there, and that AWS can be asked at all; a right that is missing is each fact's own matter.

        Raises:
            HyperpodError: One of them is not there, or AWS does not answer.
        """
        with contextlib.suppress(DeniedError):
            if self.cluster is not None:
                await self.clusters()
        with contextlib.suppress(DeniedError):
            if self.domain is not None:
                await self.aws.call("sagemaker", "DescribeDomain", DomainId=self.domain)

    async def running_nodes(self, cluster: HyperpodCluster) -> list[Instance]:
        """Some nodes of a cluster that run.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        pages = list_instances(self.aws, cluster.name)
        nodes = [one async for page in pages for one in page if one.status == "Running"]
        return nodes[:_MOST_NODES]

    async def some_domain(self) -> str | None:
        """The domain, or the first of the region; None: there is none.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        if self.domain is None:
            found = await list_domains(self.aws)
            self.domain = found[0].id if found else None
        return self.domain

    async def limited(self, actions: Sequence[str], resource: str = "*") -> Aws | None:
        """AWS as a session of `as_role` that has the right to these actions on this resource and to nothing else; None: no role was named.

        A session has what both the role and its own policy allow (IAM's documentation of session policies).

        Raises:
            HyperpodError: See `aws.errors`.
        """
        if self.as_role is None:
            return None
        statement = {"Effect": "Allow", "Action": list(actions), "Resource": resource}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        given = {"RoleArn": self.as_role, "RoleSessionName": "hyperpod-jlab-verify"}
        told = await self.aws.call("sts", "AssumeRole", **given, Policy=policy)
        one = told["Credentials"]
        keys = Keys(one["AccessKeyId"], one["SecretAccessKey"], one["SessionToken"])
        return Aws(await self.aws.region(), keys=keys)
