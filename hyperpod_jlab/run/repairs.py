"""Repairs of instances by AWS: shows a run as recovering while AWS repairs its instance, even before its scheduler reports it.

Instances are queried while a client views the cluster's runs: once a run waits after an attempt, or a client keeps viewing. The query is the one of the
cluster's page, with its limits. It adds little latency, and unknown repairs are omitted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from hyperpod_jlab.clusters.aws import HyperpodClusters
from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.hyperpod import Instance, region_of
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.core.repair import RECOVERING, find_repairs, may_recover, with_repair_reason
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.engines.registry import find_scheduler
from hyperpod_jlab.engines.repairs import find_attempt, list_nodes
from hyperpod_jlab.storage.records import BundleReader

_MIN_WATCH_S = 10.0
"""Seconds after which a client that views running runs counts as a continuing one."""

_LIST_TIMEOUT_S = 3.0
"""Timeout for AWS, in seconds, when a run waits after an attempt."""

_QUICK_TIMEOUT_S = 0.05
"""The same when it runs."""

_ERROR_TTL_S = 60.0
"""Seconds without requests to AWS after a failure."""

_REFRESH_INTERVAL_S = 10.0
"""Minimum seconds between refreshes that are caused by a list older than a loss."""

_MAX_LOSSES = 1000
"""Maximum number of remembered losses."""


class AwsRepairs:
    """Repairs by AWS, for the runs of the configured clusters.

    Args:
        settings: The configuration.
        aws_in: The HyperPod clusters of a region (None: see `aws.session.Aws`).
    """

    def __init__(self, settings: Settings, aws_in: Callable[[str | None], HyperpodClusters]) -> None:
        self._settings = settings
        self._aws_in = aws_in
        self._active_since: dict[str, float] = {}
        self._lists: Cache[str, list[Instance]] = Cache(error_ttl=lambda _: _ERROR_TTL_S)
        self._losses: dict[tuple[str, int | None], float] = {}
        self._refreshed_at: dict[str, float] = {}

    async def with_repairs(
        self, cluster: str, bundles: Sequence[BundleReader], observations: dict[str, Observation]
    ) -> dict[str, Observation]:
        """The observations of a cluster's runs, with the repair of their instances as the reason.

        Args:
            cluster: The cluster's name.
            bundles: The runs.
            observations: The scheduler's observations, by run id.
        """
        config = self._settings.clusters.get(cluster)
        scheduler = find_scheduler(config.orchestrator) if config is not None else None
        hyperpod = config.hyperpod_cluster if config is not None else None
        if scheduler is None or hyperpod is None:
            return observations
        open_words = [recoverable for recoverable in observations.values() if may_recover(recoverable)]
        losses = [
            self._loss_time(run, recoverable) for run, recoverable in observations.items() if _has_lost(recoverable)
        ]
        has_losses = bool(losses)
        if not has_losses and not self._are_runs_active(cluster, any(w.state == "running" for w in open_words)):
            return observations
        seconds = _LIST_TIMEOUT_S if has_losses else _QUICK_TIMEOUT_S
        instances = await self._instances(hyperpod, seconds, max(losses, default=0.0))
        if all(instance.state == "running" for instance in instances):
            return observations
        return await asyncio.to_thread(_apply_repairs, scheduler, instances, bundles, observations)

    async def close(self) -> None:
        """Cancel the requests."""
        await self._lists.close()

    def _are_runs_active(self, cluster: str, runs: bool) -> bool:
        """Whether runs of a cluster have been running, and viewed, for a while."""
        if not runs:
            self._active_since.pop(cluster, None)
            return False
        since = self._active_since.setdefault(cluster, time.monotonic())
        return time.monotonic() - since > _MIN_WATCH_S

    def _loss_time(self, run_id: str, observation: Observation) -> float:
        """When a run was first seen waiting after an attempt (Unix seconds)."""
        if len(self._losses) > _MAX_LOSSES:
            del self._losses[next(iter(self._losses))]
        return self._losses.setdefault((run_id, observation.attempt), time.time())

    async def _instances(self, hyperpod: str, seconds: float, since: float) -> list[Instance]:
        """The cached instances, or new ones if they arrive in time; empty if unknown."""
        try:
            async with asyncio.timeout(seconds):
                return await self._lists.get(hyperpod, lambda: self._list_instances(hyperpod, since))
        except TimeoutError:
            return self._cached_instances(hyperpod)
        except HyperpodError:  # the cluster's page shows the reason
            return []

    def _cached_instances(self, hyperpod: str) -> list[Instance]:
        """The cached list; empty if a later refresh failed."""
        last = self._lists.last(hyperpod)
        return last.value if last is not None and last.error is None else []

    async def _list_instances(self, hyperpod: str, since: float) -> list[Instance]:
        """List the instances; refreshes a list from before `since` (Unix seconds), with a minimum interval."""
        aws = self._aws_in(region_of(hyperpod))
        cached = await aws.instances(hyperpod, wait=_LIST_TIMEOUT_S)
        now = time.monotonic()
        is_outdated = not cached.loading and cached.as_of < since
        if is_outdated and now - self._refreshed_at.get(hyperpod, float("-inf")) > _REFRESH_INTERVAL_S:
            self._refreshed_at[hyperpod] = now
            cached = await aws.instances(hyperpod, refresh=True, wait=_LIST_TIMEOUT_S)
        # An incomplete list does not prove that an instance is gone.
        return self._cached_instances(hyperpod) if cached.loading else cached.rows


def _has_lost(observation: Observation) -> bool:
    """Whether a run waits after an attempt."""
    if not may_recover(observation):
        return False
    return observation.state == "waiting" and (observation.reason_code == RECOVERING or observation.attempt is not None)


def _apply_repairs(
    scheduler: Scheduler,
    instances: Sequence[Instance],
    bundles: Sequence[BundleReader],
    observations: dict[str, Observation],
) -> dict[str, Observation]:
    result = dict(observations)
    for bundle in bundles:
        observation = observations.get(bundle.run_id)
        if observation is None or not may_recover(observation):
            continue
        attempt = find_attempt(bundle, observation)
        if attempt is None:
            continue
        nodes = list_nodes(attempt)
        started_at = min((node.started_at for node in attempt.nodes), default=None)
        repairs = find_repairs(scheduler, instances, nodes, started_at)
        result[bundle.run_id] = with_repair_reason(observation, nodes, repairs, scheduler)
    return result
