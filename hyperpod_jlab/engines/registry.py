"""Making the engine of a configured cluster; its package is imported only then."""

from __future__ import annotations

import contextlib
import logging

from hyperpod_jlab.core.config import ClusterConfig, LocalCluster, Settings, SlurmCluster
from hyperpod_jlab.core.errors import (
    HyperpodError,
    InvalidInputError,
    UnsupportedError,
    nearest_hint,
)
from hyperpod_jlab.engines.protocol import Orchestrator
from hyperpod_jlab.storage.partition import Partition


def make_orchestrator(name: str, config: ClusterConfig, partition: Partition) -> Orchestrator:
    """The engine behind a cluster.

    Raises:
        UnsupportedError: This version cannot run on a cluster that is configured so.
    """
    if isinstance(config, LocalCluster):
        from hyperpod_jlab.engines.local.engine import LocalOrchestrator

        return LocalOrchestrator(name, config, partition)
    if isinstance(config, SlurmCluster):
        from hyperpod_jlab.engines.slurm.engine import SlurmOrchestrator

        return SlurmOrchestrator(name, config, partition)
    try:
        from hyperpod_jlab.engines.kubernetes.engine import KubernetesOrchestrator
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("hyperpod_jlab"):
            raise
        raise UnsupportedError(
            f"Kubernetes clusters need the package {error.name}, which is not installed",
            code="kubernetes_missing",
            hint="pip install 'hyperpod-jlab[kubernetes]'",
            detail={"cluster": name},
        ) from error
    return KubernetesOrchestrator(name, config, partition)


# --------------------------------------------------------------------------------------------------
# The engines of the configured clusters: one each, made when first needed.

_LOG = logging.getLogger(__name__)


class Engines:
    """Engines by cluster name."""

    def __init__(self, settings: Settings, partition: Partition) -> None:
        self.settings = settings
        self.partition = partition
        self._made: dict[str, Orchestrator] = {}

    def get(self, cluster: str | None = None) -> Orchestrator:
        """The engine of a cluster; of the default one when none is named.

        Raises:
            InvalidInputError: There is no such cluster.
            UnsupportedError: This version has no engine for it.
        """
        name = cluster if cluster is not None else self.settings.default_cluster
        config = self.settings.clusters.get(name)
        if config is None:
            raise InvalidInputError(
                f"there is no cluster '{name[:60]}'",
                code="unknown_cluster",
                hint=nearest_hint(name, self.settings.clusters),
                detail={"field": "cluster"},
            )
        if name not in self._made:
            self._made[name] = make_orchestrator(name, config, self.partition)
        return self._made[name]

    def load(self) -> None:
        """Make the engines of all clusters. To import them takes a tenth of a second, for which no event loop should be held."""
        for name in self.settings.clusters:
            with contextlib.suppress(HyperpodError):  # told to whoever asks for it
                self.get(name)

    def attend(self) -> None:
        """Somebody looks at runs or clusters now."""
        for engine in self._made.values():
            engine.attend()

    async def close(self) -> None:
        """Close all engines. One that fails to close keeps none of the others open; the first failure is raised when all are closed."""
        failures: list[Exception] = []
        for name, engine in self._made.items():
            try:
                await engine.close()
            except Exception as error:  # noqa: BLE001 - whatever it is, the others are still to be closed
                _LOG.warning("the engine of %s did not close well: %s", name, error)
                failures.append(error)
        if failures:
            raise failures[0]
