"""Steps on each cluster of the configuration: those of its engine, and whether it can be seen as a whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hyperpod_jlab.model.check import Step, Told, fail, of_error, ok
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.services.doctor.opened import CONFIGURATION, Opened


def cluster_steps(opened: Opened, only: str | None = None) -> list[Step]:
    """The configured clusters; none where the configuration cannot be read.

    Args:
        opened: The services.
        only: The one cluster that matters; None: all.
    """
    if not opened.is_open:
        return []
    names = [name for name in opened.hyperpod.settings.clusters if only in {None, name}]
    return [step for name in names for step in _steps(opened, name)]


def _steps(opened: Opened, name: str) -> list[Step]:
    try:
        steps = opened.hyperpod.engines.get(name).checkup()
    except HyperpodError as error:
        return [Step("cluster", "cluster", "scheduler", _failed(error), (), name)]
    needs = (CONFIGURATION, *(one.ident for one in steps[:2] if one.group == "scheduler"))
    return [*steps, Step("cluster", "cluster", "scheduler", _answers(opened, name), needs, name)]


def _failed(error: HyperpodError) -> Callable[[], Awaitable[Told]]:
    async def told() -> Told:
        return of_error(error)

    return told


def _answers(opened: Opened, name: str) -> Callable[[], Awaitable[Told]]:
    async def told() -> Told:
        cluster = await opened.hyperpod.cluster(name)
        if cluster.state in {"unreachable", "misconfigured"}:
            fix = "look at it under [clusters] in the configuration"
            return fail(cluster.reason or "does not answer", fix)
        running = f", {cluster.running} running" if cluster.running is not None else ""
        return ok(f"{cluster.orchestrator}, {cluster.state}{running}")

    return told
