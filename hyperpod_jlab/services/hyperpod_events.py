"""The events of a HyperPod cluster: of those with continuous provisioning, since AWS keeps none of others. Older ones are from the journal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import replace

from hyperpod_jlab.aws.clusters import describe_cluster
from hyperpod_jlab.aws.events import EventFilter, describe_event, list_events
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.cluster import Rows
from hyperpod_jlab.model.errors import (
    HyperpodError,
    NotFoundError,
    StorageError,
    UnsupportedError,
)
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.model.hyperpod_events import KEPT, ClusterEvent, newest_first, said_once
from hyperpod_jlab.storage.event_journal import EventJournal, Kept


class HyperpodEvents:
    """Events of the HyperPod clusters of one region.

    Args:
        aws: AWS in that region.
    """

    def __init__(self, aws: Aws) -> None:
        self.aws = aws

    async def events(
        self, cluster: str, wanted: EventFilter | None = None, level: str | None = None
    ) -> Rows[ClusterEvent]:
        """The events of a cluster, newest first; one that AWS tells twice within a moment once.

        What AWS tells goes into the journal, and what AWS has dropped comes from there.

        Args:
            cluster: Its name or ARN.
            wanted: Which of them AWS is asked for.
            level: The least bad ones: a word of `EVENT_LEVELS`. Those of no known level are there always.

        Raises:
            UnsupportedError: AWS keeps no events of such a cluster.
            NotFoundError: There is no such cluster.
            HyperpodError: See `aws.errors`.
        """
        journal, notes = journal_of(await self._described(cluster), cluster)
        wanted = wanted or EventFilter()
        begun = time.time()
        found = [one async for page in list_events(self.aws, cluster, wanted) for one in page]
        whole = wanted == EventFilter()
        both, problems = await remembered(journal, found, begun, whole=whole)
        notes += problems
        rows = newest_first(filter(wanted.matches, both))
        shown = said_once(event for event in rows if event.is_as_bad(level))
        if len(found) >= KEPT:
            notes = [f"AWS keeps the newest {KEPT} events of a cluster", *notes]
        return Rows(shown, notes)

    async def event(self, cluster: str, event_id: str) -> ClusterEvent:
        """One event with its details; one that AWS has dropped as the journal has it.

        Raises:
            HyperpodError: As with `events`.
        """
        journal, _ = journal_of(await self._described(cluster), cluster)
        try:
            found = await describe_event(self.aws, cluster, event_id)
        except NotFoundError:
            kept = await _kept(journal, event_id)
            if kept is None:
                raise
            return kept
        if journal is not None:
            try:
                await asyncio.to_thread(journal.add, [found])
            except StorageError:
                return found  # what was asked for is there; `events` says what is wrong
        return found

    async def _described(self, cluster: str) -> HyperpodCluster | None:
        """The cluster; None where it may not be described, for then AWS will say whether it has events.

        Raises:
            UnsupportedError: It has none.
        """
        bare = HyperpodCluster(cluster, cluster, await self.aws.region(), "")
        try:
            found = await describe_cluster(self.aws, bare)
        except NotFoundError:
            raise
        except HyperpodError:
            return None
        check_kept(found)
        return found


def check_kept(cluster: HyperpodCluster) -> None:
    """Check that AWS keeps events of a cluster.

    Raises:
        UnsupportedError: It does not (``no_events``).
    """
    if cluster.provisioning != "Continuous":
        raise UnsupportedError(
            f"AWS keeps events of clusters with continuous provisioning only, and {cluster.name} has another",
            code="no_events",
            hint=f"its states and their reasons: hpj nodes --hyperpod {cluster.name}",
            detail={"provisioning": cluster.provisioning},
        )


def journal_of(
    described: HyperpodCluster | None, asked: str
) -> tuple[EventJournal | None, list[str]]:
    """The journal of a cluster, or None and what is to be said of that: nobody knows its ARN.

    Args:
        described: The cluster, where it could be described.
        asked: The name or ARN by which it was asked for.
    """
    arn = described.arn if described else asked
    if arn.startswith("arn:"):
        return EventJournal(arn), []
    return None, [f"{asked} could not be described, so the journal of its events was left out"]


async def remembered(
    journal: EventJournal | None, told: Iterable[ClusterEvent], begun: float, *, whole: bool
) -> tuple[list[ClusterEvent], list[str]]:
    """Put what AWS told into the journal.

    Args:
        journal: The journal; None where there is none.
        told: What AWS told.
        begun: When it was asked (Unix seconds).
        whole: Whether that is all that AWS has.

    Returns:
        These and the events that only the journal has, and what is to be said of the journal.
    """
    told = list(told)
    if journal is None:
        return told, []
    try:
        kept = await asyncio.to_thread(journal.read, begun)
        await asyncio.to_thread(journal.add, told, begun if whole else None)
    except StorageError as error:
        return told, [f"{error.message} ({error.hint})"]
    listed = {event.event_id for event in told}
    older = [event for event in kept.events if event.event_id not in listed]
    return [*with_reasons(told, kept), *older], []


def with_reasons(told: Iterable[ClusterEvent], kept: Kept) -> list[ClusterEvent]:
    """Events as AWS lists them, which says no reasons, with the reasons of those whose details are in the journal."""
    reasons = {event.event_id: event.reason for event in kept.events if event.reason}
    return [replace(one, reason=reasons.get(one.event_id, one.reason)) for one in told]


async def _kept(journal: EventJournal | None, event_id: str) -> ClusterEvent | None:
    if journal is None:
        return None
    try:
        kept = await asyncio.to_thread(journal.read)
    except StorageError:
        return None
    found = (event for event in kept.events if event.event_id == event_id)
    return next(found, None)
