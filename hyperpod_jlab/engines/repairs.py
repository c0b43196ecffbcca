"""Runs on nodes that HyperPod repairs: shows that they recover, and on which nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.quantities import parse_array
from hyperpod_jlab.core.records import AttemptRecords, Observation, RunRecords
from hyperpod_jlab.core.repair import NodeRepair, may_recover, with_repair_reason
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.core.spec import Accelerators
from hyperpod_jlab.core.usage import Usage, usage_of_records
from hyperpod_jlab.storage.records import BundleReader, DamagedBundleError


async def with_repairs(
    observations: dict[str, Observation],
    bundles: Sequence[BundleReader],
    load_repairs: Callable[[], Awaitable[Mapping[str, NodeRepair]]],
    scheduler: Scheduler,
) -> dict[str, Observation]:
    """Add repairs to observations: a run on nodes under repair, or one that waits after it ran there, gets that as its reason.

    Args:
        observations: The scheduler's observations, by run id.
        bundles: The runs.
        load_repairs: Loads the repairs of nodes by node name. Called only when a run runs or waits;
            on failure the observations stay unchanged.
        scheduler: Their scheduler.
    """
    if not any(may_recover(observation) for observation in observations.values()):
        return observations
    try:
        repairs = await load_repairs()
    except HyperpodError:
        return observations
    if not repairs:
        return observations
    return await asyncio.to_thread(_add_repairs, observations, bundles, repairs, scheduler)


def find_attempt(bundle: BundleReader, observation: Observation) -> AttemptRecords | None:
    """The attempt that a run's observation is about: the newest one. Blocking.

    None if there is none, if its records are unreadable, or if it is over and the run runs: then
    the next attempt is running but has not recorded its nodes yet.
    """
    try:
        records = bundle.read()
    except HyperpodError:  # the bundle's readers report a damaged bundle
        return None
    if not records.attempts:
        return None
    attempt = records.attempts[-1]
    has_verdict = any(
        observation.verdict and observation.attempt == attempt.number for observation in records.observations
    )
    return None if has_verdict and observation.state == "running" else attempt


def list_nodes(attempt: AttemptRecords) -> list[str]:
    """The nodes of an attempt, under the scheduler's names."""
    return sorted({node.node.partition(".")[0] for node in attempt.nodes})


def _add_repairs(
    observations: dict[str, Observation],
    bundles: Sequence[BundleReader],
    repairs: Mapping[str, NodeRepair],
    scheduler: Scheduler,
) -> dict[str, Observation]:
    result = dict(observations)
    for bundle in bundles:
        observation = observations.get(bundle.run_id)
        if observation is None or not may_recover(observation):
            continue
        attempt = find_attempt(bundle, observation)
        if attempt is not None:
            result[bundle.run_id] = with_repair_reason(observation, list_nodes(attempt), repairs, scheduler)
    return result


# --------------------------------------------------------------------------------------------------
# A run's usage from its own records: for engines without accounting, and for gaps in the
# accounting.


def journal_usage(bundle: BundleReader) -> Usage:
    """Usage from the records of a run, or of an array's children.

    Raises:
        DamagedBundleError: The records are unreadable.
    """
    return usage_of_records(read_records(bundle), read_accelerators(bundle))


def read_records(bundle: BundleReader) -> list[RunRecords]:
    """The records of a run or, for an array, of its existing children: what exists counts, whatever the array's record claims."""
    records = bundle.read()
    if records.head.array is None or bundle.index is not None:
        return [records]
    indices = frozenset(parse_array(records.head.array).indices)
    existing = (index for index in bundle.child_indices() if index in indices)
    return [bundle.child(index, records).read() for index in existing]


def read_accelerators(bundle: BundleReader) -> Accelerators | None:
    """A run's accelerators per node; None when its spec does not tell, as for a file in the scheduler's own format."""
    try:
        spec = bundle.spec()
    except DamagedBundleError:
        return None
    return None if spec.source.kind == "native" else spec.resources.accelerator
