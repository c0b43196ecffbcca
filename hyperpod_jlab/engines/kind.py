"""A kind of engine: what is known of it before its modules are imported. Each engine's folder has one as `KIND` in `kind.py`."""

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
    """A kind of engine.

    Attributes:
        scheduler: Its scheduler, with the engine's name.
        make: Makes the engine of a cluster, from its name, its configuration and the storage partition. Imports the engine's modules.
        task_settings: The fields of `TaskSettings` that it knows; none where it runs no tasks of administrators.
    """

    scheduler: Scheduler
    make: Callable[[str, ClusterConfig, Partition], Orchestrator]
    task_settings: tuple[str, ...] = ()


def typed_config(kind: type[Config], config: object) -> Config:
    """A cluster's configuration as that of the engine that is made for it."""
    if not isinstance(config, kind):
        raise InternalError(f"not the configuration of this engine: {type(config).__name__}")
    return config
