"""What the engines of clusters say of runs now, beyond the runs' records."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from hyperpod_jlab.model.errors import DeniedError, HyperpodError
from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.services.array_children import EndedChildren, Look
from hyperpod_jlab.services.engines import Engines
from hyperpod_jlab.services.repairs import AwsRepairs
from hyperpod_jlab.services.view import orphans
from hyperpod_jlab.storage.records import BundleReader


@dataclass(frozen=True)
class Words:
    """What engines say of runs, by run id, and why others say nothing."""

    said: dict[str, Observation] = field(default_factory=dict)
    unreachable: dict[str, str] = field(default_factory=dict)

    def add(self, other: Words) -> None:
        """Take in what another engine says."""
        self.said.update(other.said)
        self.unreachable.update(other.unreachable)

    def look(
        self, run_id: str, ended: EndedChildren | None = None, seconds: float | None = None
    ) -> Look:
        """What is said of a run, and what is remembered of its children."""
        return Look(self.said, self.unreachable.get(run_id), ended, seconds)


async def ask_engine(
    engines: Engines, repairs: AwsRepairs | None, cluster: str, bundles: Sequence[BundleReader]
) -> Words:
    """What a cluster's engine says of runs; that it does not answer is no error, but told of each run."""
    try:
        engine = engines.get(cluster)
    except HyperpodError:  # a cluster that this machine's configuration does not know
        return Words()
    try:
        said = await engine.runs(bundles)
        if repairs is not None:
            said = await repairs.told(cluster, bundles, said)
        children = await asyncio.to_thread(orphans, bundles, said)
        return Words({**said, **await engine.runs(children)} if children else said)
    except HyperpodError as error:
        silent = "does not tell you" if isinstance(error, DeniedError) else "does not answer"
        reason = f"{cluster} {silent}: {error.message}"
        return Words(unreachable=dict.fromkeys((b.run_id for b in bundles), reason))
