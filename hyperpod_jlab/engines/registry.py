"""The engines by name. An engine's modules are imported when a cluster needs them; each engine's folder has an `ENGINE`."""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hyperpod_jlab.core.config import ClusterConfig, Settings
from hyperpod_jlab.core.errors import HyperpodError, InternalError, UnsupportedError
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.engines.protocol import Orchestrator
from hyperpod_jlab.storage.partition import Partition

_NAMES = ("local", "slurm", "kubernetes")
"""Engines of this package; each name is a folder."""

Config = TypeVar("Config")


@dataclass(frozen=True)
class EngineFactory:
    """What is known of an engine without importing its modules.

    Attributes:
        scheduler: The scheduler, which has the engine's name.
        make: Creates a cluster's engine from its name, its configuration and the storage partition.
            Imports the engine's modules.
        task_settings: The fields of `TaskSettings` that it supports; empty if it runs no
            administrators' tasks.
    """

    scheduler: Scheduler
    make: Callable[[str, ClusterConfig, Partition], Orchestrator]
    task_settings: tuple[str, ...] = ()


def typed_config(expected: type[Config], config: object) -> Config:
    """A cluster's configuration, typed for its engine."""
    if not isinstance(config, expected):
        raise InternalError(f"not the configuration of this engine: {type(config).__name__}")
    return config


_engines: dict[str, EngineFactory] = {}


def register(engine: EngineFactory) -> None:
    """Add an engine, or replace the one with its name."""
    _engines[engine.scheduler.name] = engine


def find_engine(name: str) -> EngineFactory | None:
    """The engine with this name, which is `orchestrator` in the configuration."""
    if name not in _engines and name in _NAMES:
        engine = importlib.import_module(f"{__package__}.{name}").ENGINE
        if not isinstance(engine, EngineFactory):
            raise InternalError(f"the engine {name} has no ENGINE")
        register(engine)
    return _engines.get(name)


def find_scheduler(name: str | None) -> Scheduler | None:
    """The scheduler of an engine; None for an unknown one."""
    engine = find_engine(name) if name is not None else None
    return engine.scheduler if engine is not None else None


def make_orchestrator(name: str, config: ClusterConfig, partition: Partition) -> Orchestrator:
    """Create a cluster's engine.

    Raises:
        UnsupportedError: This version does not support the cluster's configuration.
    """
    engine = find_engine(config.orchestrator)
    if engine is None:
        raise UnsupportedError(f"this version does not support {config.orchestrator} clusters")
    return engine.make(name, config, partition)


# --------------------------------------------------------------------------------------------------
# The engines of the configured clusters: one each, created on first use.

_LOG = logging.getLogger(__name__)


class Engines:
    """Engines by cluster name."""

    def __init__(self, settings: Settings, partition: Partition) -> None:
        self.settings = settings
        self.partition = partition
        self._engines: dict[str, Orchestrator] = {}

    def get(self, cluster: str | None = None) -> Orchestrator:
        """The engine of a cluster; by default that of the default cluster.

        Raises:
            NotFoundError: The cluster does not exist.
            UnsupportedError: This version has no engine for it.
        """
        name = cluster if cluster is not None else self.settings.default_cluster
        config = self.settings.clusters.get(name)
        if config is None:
            raise self.settings.unknown_cluster(name)
        if name not in self._engines:
            self._engines[name] = make_orchestrator(name, config, self.partition)
        return self._engines[name]

    def load(self) -> None:
        """Create the engines of all clusters. Their imports take a tenth of a second: do not block an event loop with it."""
        for name in self.settings.clusters:
            with contextlib.suppress(HyperpodError):  # reported when the engine is used
                self.get(name)

    def mark_active(self) -> None:
        """Mark all engines as in use."""
        for engine in self._engines.values():
            if engine.polling is not None:
                engine.polling.mark_active()

    def refresh(self, cluster: str | None = None) -> None:
        """Invalidate what the scheduler of a cluster said, or all schedulers."""
        for name, engine in self._engines.items():
            if cluster in {None, name} and engine.polling is not None:
                engine.polling.refresh()

    async def close(self) -> None:
        """Close all engines. If one fails, the others are closed anyway; the first error is raised at the end."""
        failures: list[Exception] = []
        for name, engine in self._engines.items():
            try:
                await engine.close()
            except Exception as error:  # noqa: BLE001 - whatever it is, the others are still to be closed
                _LOG.warning("closing the engine of %s failed: %s", name, error)
                failures.append(error)
        if failures:
            raise failures[0]
