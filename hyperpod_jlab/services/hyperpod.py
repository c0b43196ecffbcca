"""All services over one configuration: what a face holds on to."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hyperpod_jlab.model.cluster import Cluster, Job, Node, Queue
from hyperpod_jlab.model.config import Settings
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.services.configuration import find_partition, load_settings
from hyperpod_jlab.services.engines import Engines
from hyperpod_jlab.services.logs import LogService
from hyperpod_jlab.services.run_logs import RunLogsOf
from hyperpod_jlab.services.runs import Runs
from hyperpod_jlab.services.submission import Submitter


class Hyperpod:
    """The services of one process."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings if settings is not None else load_settings()
        self.partition = find_partition(self.settings)
        self.engines = Engines(self.settings, self.partition)
        self.runs = Runs(self.engines)
        known = RunLogsOf(self.runs)
        self.logs = LogService(known, elsewhere=known.array_streams)
        self.submitter = Submitter(self.engines)

    async def clusters(self) -> list[Cluster]:
        """The configured clusters; one that does not answer says why in its reason."""
        return list(await asyncio.gather(*(self._cluster(name) for name in self.settings.clusters)))

    async def nodes(self, cluster: str | None = None) -> list[Node]:
        """The nodes of one cluster."""
        return await self.engines.get(cluster).nodes()

    async def queues(self, cluster: str | None = None) -> list[Queue]:
        """The queues of one cluster."""
        return await self.engines.get(cluster).queues()

    async def jobs(self, cluster: str | None = None) -> list[Job]:
        """The queue of all users of one cluster."""
        return await self.engines.get(cluster).jobs()

    async def close(self) -> None:
        """Give back what is held open."""
        await self.logs.close()
        await self.engines.close()

    async def _cluster(self, name: str) -> Cluster:
        default = name == self.settings.default_cluster
        try:
            return replace(await self.engines.get(name).cluster(), default=default)
        except HyperpodError as error:
            kind = self.settings.clusters[name].orchestrator
            return Cluster(name, kind, default, "unreachable", error.message)
