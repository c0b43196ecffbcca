"""The environments that a notebook job can run in: those of jupyter-scheduler, and our clusters."""

from __future__ import annotations

import logging

from jupyter_scheduler.environments import CondaEnvironmentManager
from jupyter_scheduler.models import RuntimeEnvironment

from hyperpod_jlab.clusters.configuration import load_settings
from hyperpod_jlab.core.config import LOCAL
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.server.notebook_jobs.permission import is_allowed

_PREFIX = "HyperPod: "
_FORMATS = ["ipynb", "html"]


def cluster_of(environment: str) -> str | None:
    """The cluster that an environment's name stands for; None for an environment of jupyter-scheduler's own."""
    return environment.removeprefix(_PREFIX) if environment.startswith(_PREFIX) else None


class HyperPodEnvironmentManager(CondaEnvironmentManager):
    """Lists the configured clusters after jupyter-scheduler's own environments.

    Attributes:
        has_clusters: Whether the scheduler runs jobs on clusters; false with another scheduler class, to which our names mean nothing.
    """

    has_clusters = False

    async def list_environments(self) -> list[RuntimeEnvironment]:
        """The environments that the user may run jobs in; those that conda or this Python provide come first and stay the default."""
        environments: list[RuntimeEnvironment] = super().list_environments()
        if self.has_clusters and await is_allowed("execute"):
            environments += self._clusters()
        return environments

    def _clusters(self) -> list[RuntimeEnvironment]:
        try:
            settings = load_settings()
        except HyperpodError as error:
            logging.getLogger(__name__).warning("no clusters for notebook jobs: %s", error)
            return []
        return [
            RuntimeEnvironment(
                # The page shows the name, and sends the label as the name.
                name=f"{_PREFIX}{name}",
                label=f"{_PREFIX}{name}",
                description="This machine" if name == LOCAL else f"{cluster.orchestrator} cluster",
                file_extensions=["ipynb"],
                output_formats=_FORMATS,
                metadata={"cluster": name},
            )
            for name, cluster in settings.clusters.items()
        ]
