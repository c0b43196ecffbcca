"""Steps on each cluster of the configuration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hyperpod_jlab.model.check import Step, Told, fail, ok
from hyperpod_jlab.services.doctor.opened import CONFIGURATION, Opened


def cluster_steps(opened: Opened) -> list[Step]:
    """The configured clusters; none where the configuration cannot be read."""
    if not opened.is_open:
        return []
    return [
        Step(
            "cluster",
            "cluster",
            "scheduler",
            _answers(opened, name),
            needs=(CONFIGURATION,),
            about=name,
        )
        for name in opened.hyperpod.settings.clusters
    ]


def _answers(opened: Opened, name: str) -> Callable[[], Awaitable[Told]]:
    async def told() -> Told:
        cluster = await opened.hyperpod.cluster(name)
        if cluster.state in {"unreachable", "misconfigured"}:
            fix = "look at it under [clusters] in the configuration"
            return fail(cluster.reason or "does not answer", fix)
        running = f", {cluster.running} running" if cluster.running is not None else ""
        return ok(f"{cluster.orchestrator}, {cluster.state}{running}")

    return told
