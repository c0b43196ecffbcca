"""The events of HyperPod clusters for many who look: one look at a time, with what the journal has besides."""

from __future__ import annotations

import asyncio
import time

from hyperpod_jlab.aws.events import EventFilter, list_events
from hyperpod_jlab.model.errors import HyperpodError, NotFoundError, StorageError
from hyperpod_jlab.model.hyperpod_events import ClusterEvent
from hyperpod_jlab.services.hyperpod_events import (
    HyperpodEvents,
    check_kept,
    journal_of,
    remembered,
    with_reasons,
)
from hyperpod_jlab.services.hyperpod_watch import HyperpodWatch
from hyperpod_jlab.services.looks import Look, Looks, Shown
from hyperpod_jlab.storage.event_journal import EventJournal, Kept


class EventWatch:
    """The events of the clusters of one region.

    Args:
        watch: Knows the clusters.
        events: Asks AWS for events.
    """

    def __init__(self, watch: HyperpodWatch, events: HyperpodEvents) -> None:
        self._watch = watch
        self._events = events
        self._looks = Looks()
        self._notes: dict[str, list[str]] = {}

    async def events(
        self, cluster: str, *, refresh: bool = False
    ) -> tuple[Shown[ClusterEvent], list[str]]:
        """The events of a cluster in no order, and what is to be said of the journal.

        Those of the journal are there before AWS answers, and when it does not.

        Args:
            cluster: Its name or ARN.
            refresh: Ask AWS now.

        Raises:
            UnsupportedError: AWS keeps no events of it.
            NotFoundError: There is no such cluster (any more).
            HyperpodError: Nothing is known (see `aws.errors`).
        """
        shown: Shown[ClusterEvent] = await self._looks.get(
            cluster, lambda look: self._read(look, cluster), refresh=refresh
        )
        return shown, self._notes.get(cluster, [])

    async def event(self, cluster: str, event_id: str) -> ClusterEvent:
        """One event with its details (see `HyperpodEvents.event`)."""
        return await self._events.event(cluster, event_id)

    def forget(self, cluster: str) -> None:
        """Something was done there: whoever looks next has AWS asked again."""
        self._looks.forget(cluster)

    async def close(self) -> None:
        """Break off what goes on."""
        await self._looks.close()

    async def _read(self, look: Look[ClusterEvent], cluster: str) -> None:
        journal, notes = await self._journal(cluster)
        begun = time.time()
        kept = Kept()
        if journal is not None:
            try:
                kept = await asyncio.to_thread(journal.read)
            except StorageError as error:
                notes = [f"{error.message} ({error.hint})"]
        if kept.events:
            # What the journal has is as old as the last look that went into it.
            look.began_at = kept.looked_at or begun
            await look.put({one.event_id: one for one in kept.events})
        told: list[ClusterEvent] = []
        async for page in list_events(self._events.aws, cluster, EventFilter()):
            look.began_at = begun
            told += page
            await look.put({one.event_id: one for one in with_reasons(page, kept)})
        _, problems = await remembered(journal, told, begun, whole=True)
        self._notes[cluster] = list(dict.fromkeys(notes + problems))

    async def _journal(self, cluster: str) -> tuple[EventJournal | None, list[str]]:
        """The journal of a cluster that has events; which it is, its description tells.

        Raises:
            UnsupportedError: It has none.
        """
        try:
            (described,) = (await self._watch.cluster(cluster)).rows
        except NotFoundError:
            raise
        except HyperpodError:
            return journal_of(None, cluster)
        check_kept(described)
        return journal_of(described, cluster)
