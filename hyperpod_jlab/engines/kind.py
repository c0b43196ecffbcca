"""An engine kind: its facts that are available without importing its modules. Each engine's folder has one as `KIND` in `kind.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hyperpod_jlab.core.config import ClusterConfig
from hyperpod_jlab.core.errors import InternalError
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.engines.protocol import Orchestrator
from hyperpod_jlab.storage.partition import Partition

Config = TypeVar("Config")


@dataclass(frozen=True)
class EngineKind:
    """An engine kind.

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


def typed_config(kind: type[Config], config: object) -> Config:
    """A cluster's configuration, typed for its engine."""
    if not isinstance(config, kind):
        raise InternalError(f"not the configuration of this engine: {type(config).__name__}")
    return config
