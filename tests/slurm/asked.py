"""A cluster that is asked about specs, before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.slurm.engine import SlurmOrchestrator
from hyperpod_jlab.storage.partition import Partition
from tests.slurm.cluster import SlurmTestbed


class Asked:
    """A cluster that is asked about specs, by a user of a login node or from this machine."""

    def __init__(self, slurm: SlurmTestbed, partition: Partition, **config: Any) -> None:
        common = {
            "orchestrator": "slurm",
            "storage": str(slurm.partition_on_nodes / partition.root.relative_to(slurm.partition)),
            "python": slurm.python_on_nodes,
        }
        here = {"commands": str(slurm.folder / "bin"), "slurm_conf": slurm.environment["SLURM_CONF"]}
        data = common | (config if "transport" in config else here | config)
        self.partition = partition
        self.engine = SlurmOrchestrator("slurm", SlurmCluster.model_validate(data), partition)

    def findings(self, **spec: Any) -> list[Finding]:
        """All that is found."""
        return self._asked(lambda: self.engine.preflight(spec_of(**spec)))

    def codes(self, level: str, **spec: Any) -> list[str]:
        """The codes of what is found, of one level."""
        return [found.code for found in self.findings(**spec) if found.level == level]

    def errors(self, **spec: Any) -> list[Finding]:
        """What would refuse the run."""
        return [found for found in self.findings(**spec) if found.level == "error"]

    def error(self, **spec: Any) -> Finding:
        """The only error."""
        found = self.errors(**spec)
        assert len(found) == 1, found
        return found[0]

    def about(self, field: str, **spec: Any) -> Finding:
        """What is found of one field."""
        (found,) = [found for found in self.findings(**spec) if found.field == field]
        return found

    def time_limit(self, **spec: Any) -> int | None:
        """The limit of a run without one."""
        return self._asked(lambda: self.engine.time_limits.time_limit(spec_of(**spec)))

    def choices(self) -> dict[str, list[str]]:
        """What the faces offer."""
        return self._asked(self.engine.choices.choices)

    def _asked(self, question: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        async def answer() -> Any:
            try:
                return await asyncio.wait_for(question(), 60)
            finally:
                await self.engine.close()

        return asyncio.run(answer())


def spec_of(**spec: Any) -> JobSpec:
    """A spec of a command."""
    return JobSpec.model_validate({"source": {"kind": "command", "command": "true"}, **spec})


def folder_of(slurm: SlurmTestbed, name: str, mode: int = 0o755) -> Path:
    """A storage partition in the shared folder."""
    folder = slurm.partition / name
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)
    return folder
