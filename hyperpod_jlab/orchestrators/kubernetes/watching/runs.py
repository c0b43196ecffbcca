"""What becomes of runs: their state, and what their pods say."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence

from hyperpod_jlab.model.errors import DeniedError, StorageError
from hyperpod_jlab.model.records import Observation, RunRecords
from hyperpod_jlab.model.state import Moment, derive
from hyperpod_jlab.orchestrators.kubernetes.api.connection import Connection
from hyperpod_jlab.orchestrators.kubernetes.kinds.batch_job import BatchJob
from hyperpod_jlab.orchestrators.kubernetes.watching.array_watch import (
    ArrayWatch,
    has_open_task,
)
from hyperpod_jlab.orchestrators.kubernetes.watching.leftovers import Leftovers
from hyperpod_jlab.orchestrators.kubernetes.watching.look import RunLook, Seen, Where
from hyperpod_jlab.orchestrators.kubernetes.watching.over import over, restarts_anyway
from hyperpod_jlab.orchestrators.kubernetes.watching.pod_ranks import ranked
from hyperpod_jlab.orchestrators.kubernetes.watching.spool import (
    Spooler,
    is_done,
    modes_of,
    note_done,
)
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_ends import note_cut_off
from hyperpod_jlab.orchestrators.kubernetes.watching.stand_in import StandIn
from hyperpod_jlab.orchestrators.kubernetes.watching.verdicts import (
    between_attempts,
    cut_short,
    refined,
)
from hyperpod_jlab.orchestrators.kubernetes.watching.why_failed import (
    POD_ENDED,
    explained,
    gave_up,
)
from hyperpod_jlab.orchestrators.kubernetes.watching.words import (
    after,
    array_word,
    ending,
    gone,
    is_new,
    is_told,
)
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

_LOG = logging.getLogger(__name__)

_LAST_WORDS = 30.0
"""Seconds after a run's end in which it counts as running while its last pods end, and what they said last is fetched."""

_REMOVAL = 10.0
"""Seconds after a run's end in which its job may follow pods that were removed: with a namespace all goes, pods first."""

_JOB_FOLLOWS = 10.0
"""Seconds in which a job ends once all of its pods have."""

_AT_ONCE = 16
"""Tasks of an array of which what they say is fetched at a time."""


class RunWatch:
    """The runs of one cluster.

    Args:
        connection: The cluster.
        shared: Whether its pods mount the partition; else what they say is fetched.
    """

    def __init__(self, connection: Connection, *, shared: bool = True) -> None:
        self._shared = shared
        self._look = RunLook(connection)
        self._spooler = Spooler(connection, self._look)
        self._leftovers = Leftovers(connection)
        self._arrays = ArrayWatch(fetched=not shared)
        self._ends: dict[str, asyncio.Task[bool]] = {}
        self._attended = False

    @property
    def look(self) -> RunLook:
        """Tells what the cluster has of a run."""
        return self._look

    def attend(self) -> None:
        """Somebody goes on looking at runs: lists are watched, and what pods say is fetched as it comes."""
        self._attended = True
        self._look.attend()

    def forget(self) -> None:
        """Something was or may have been changed: what was seen before counts no more."""
        self._look.forget()

    async def observe(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """What the cluster says of these runs."""
        places = await self._places(bundles)
        seen = await self._look.look([place for _, place in places])
        arrays = [(bundle, place) for bundle, place in places if place.is_array]
        places = [(bundle, place) for bundle, place in places if not place.is_array]
        if arrays:
            asked = {place.run_id for _, place in places}
            due = await asyncio.to_thread(self._tasks_due, arrays, seen)
            places += [(bundle, place) for bundle, place in due if place.run_id not in asked]
            seen |= await self._look.look([place for _, place in places])
        said, undone, doubted = await asyncio.to_thread(self._words, places, seen)
        for bundle, place, records in doubted:
            seen[place.run_id] = again = await self._look.anew(place)
            word = await asyncio.to_thread(self._word, bundle, place, again, records)
            if isinstance(word, Observation):
                said[place.run_id] = word
        for bundle, place in places:
            found, word = seen[place.run_id], said.get(place.run_id)
            if self._attended and place.run_id in undone:
                self._fetch(bundle, place, found)
            ended = word is not None and word.state == "ended"
            if word is not None and ended:
                await self._leftovers.end(bundle, place, found, word)
            if place.accompanied and (ended or await self._follows(bundle, place)):
                await self._leftovers.remove_companions(bundle, place)
        for bundle, place in arrays:
            is_open = has_open_task(place.run_id, said)
            found = seen[place.run_id]
            word = await asyncio.to_thread(array_word, bundle, place, found, is_open=is_open)
            said |= {place.run_id: word} if word is not None else {}
        return said

    def _tasks_due(
        self, arrays: Sequence[tuple[BundleReader, Where]], seen: Mapping[str, Seen]
    ) -> list[tuple[BundleReader, Where]]:
        """The tasks of arrays that are to be looked at. Blocking."""
        return [
            task
            for bundle, place in arrays
            for task in self._arrays.due(bundle, place, seen[place.run_id])
        ]

    async def _follows(self, bundle: BundleReader, place: Where) -> bool:
        """Whether a run's job ends now, whose records say already that the run has succeeded: it may be that nobody looks again."""
        end = time.monotonic() + _JOB_FOLLOWS
        while await asyncio.to_thread(_has_succeeded, bundle) and time.monotonic() < end:
            job = (await self._look.anew(place)).job
            if job is None or job.observe(time.time()).state == "ended":
                return True
            await asyncio.sleep(0.5)
        return False

    async def remove_companions(self, bundle: BundleReader) -> None:
        """Remove what stood beside the job of a run that has ended."""
        await self._leftovers.remove_companions(bundle, await self._look.where(bundle))

    def _fetch(self, bundle: BundleReader, place: Where, seen: Seen) -> None:
        """Go on fetching what a run's pods say; of one that has ended all, after which nothing is fetched any more."""
        if seen.job is not None and seen.job.observe(seen.time).state != "ended":
            self._spooler.follow(bundle, place)
        elif place.run_id not in self._ends:
            task = asyncio.create_task(self.catch_up(bundle, _LAST_WORDS), name="hyperpod-end")
            self._ends[place.run_id] = task
            task.add_done_callback(lambda done: self._fetched(place.run_id, done))

    def _fetched(self, run_id: str, task: asyncio.Task[bool]) -> None:
        del self._ends[run_id]
        if not task.cancelled() and task.exception() is not None:
            _LOG.debug("the last words of %s cannot be fetched: %s", run_id, task.exception())

    async def catch_up(self, bundle: BundleReader, seconds: float) -> bool:
        """Fetch what a run's pods have said by now, where they do not mount the partition; only of this user's runs.

        Args:
            bundle: The run.
            seconds: How long that may take; then it goes on by itself.

        Returns:
            Whether there may be news in the bundle.

        Raises:
            DeniedError: This user may not read them, and nobody else has fetched anything.
        """
        if not await asyncio.to_thread(lambda: bundle.is_own):
            return False
        place = await self._look.where(bundle)
        if not self._is_fetched(place) or await asyncio.to_thread(is_done, bundle):
            return False
        if place.is_array:
            return await self._catch_up_tasks(bundle, place, seconds)
        over = await self._spooler.catch_up(bundle, place, seconds)
        if over is not None:
            seen = (await self._look.look([place]))[place.run_id]
            if over.issuperset(pod.uid for pod in seen.pods):  # else one came meanwhile
                await asyncio.to_thread(_note_end, bundle, place, seen)
        trouble = self._spooler.trouble(bundle.run_id)
        if isinstance(trouble, DeniedError) and not await asyncio.to_thread(_has_logs, bundle):
            raise trouble
        return True

    async def _catch_up_tasks(self, bundle: BundleReader, place: Where, seconds: float) -> bool:
        """The same of an array: some of its tasks at a time, in their order, as many as the time allows."""
        seen = await self._look.look([place])
        due = await asyncio.to_thread(self._tasks_due, [(bundle, place)], seen)
        room = asyncio.Semaphore(_AT_ONCE)

        async def one(child: BundleReader) -> None:
            async with room:
                await self.catch_up(child, seconds)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(one(child) for child, _ in due))
        return bool(due)

    async def close(self) -> None:
        """Fetch nothing any more."""
        ends = list(self._ends.values())
        for task in ends:
            task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        await self._spooler.close()

    async def _places(self, bundles: Sequence[BundleReader]) -> list[tuple[BundleReader, Where]]:
        found = []
        for bundle in bundles:
            with contextlib.suppress(StorageError):  # its records tell what can be told
                found.append((bundle, await self._look.where(bundle)))
        return found

    def _words(
        self, places: Sequence[tuple[BundleReader, Where]], seen: Mapping[str, Seen]
    ) -> tuple[dict[str, Observation], set[str], list[tuple[BundleReader, Where, RunRecords]]]:
        """The words on runs, by run id; those of which something is left to be fetched; and those to look at anew, with their records. Blocking."""
        found, undone, doubted = {}, set(), []
        for bundle, place in places:
            word = self._word(bundle, place, seen[place.run_id])
            if isinstance(word, RunRecords):
                doubted.append((bundle, place, word))
            elif word is not None:
                found[bundle.run_id] = word
            fetched = self._is_fetched(place) and bundle.is_own
            if fetched and seen[place.run_id].pods and not is_done(bundle):
                undone.add(place.run_id)
        return found, undone, doubted

    def _word(
        self, bundle: BundleReader, place: Where, seen: Seen, known: RunRecords | None = None
    ) -> Observation | RunRecords | None:
        """The word on a run, or what its records are when they may be of a later moment than what was seen. Blocking.

        Args:
            bundle: The run.
            place: Its job.
            seen: What the cluster has of it.
            known: Its records as they were read before that was seen.
        """
        if place.native and seen.pods and bundle.is_own:
            StandIn(bundle, place.name, modes_of(bundle)).play(seen.pods)
        records = known or bundle.read()
        if seen.job is None:
            return gone(place, records, seen)
        if place.task is not None and _is_cancelled(records, seen):
            return None
        retried = place.native and place.kind.name == BatchJob.name
        word = refined(seen.job.observe(seen.time), seen.pods, records.head.nodes, retried=retried)
        if place.native:
            word = gave_up(word, seen.job.job, records)
        if word.state != "ended" and not place.native:
            word = over(bundle, seen.job, records, word) or word
        if word.state != "ended":
            if place.native and _is_retried(records):
                return _again(bundle, records, seen, word, retried=True)
            if known is None and _may_be_older(records, seen, word):
                return records
            return _again(bundle, records, seen, word)
        if not self._is_settled(bundle, place, seen) and seen.time - word.time < _LAST_WORDS:
            return ending(word, seen.time)
        word = explained(word, bundle, records)
        if word.reason_code == POD_ENDED and seen.time - word.time < _REMOVAL:
            return ending(word, seen.time)
        if place.task is None or not is_told(records):  # of tasks there may be many
            with contextlib.suppress(StorageError):  # another user's: nothing is written there
                bundle.add_observation(after(records, word))
        return word

    def _is_fetched(self, where: Where) -> bool:
        """Whether what its pods say must be fetched: no launcher of ours writes it into the bundle."""
        return where.native or not self._shared

    def _is_settled(self, bundle: BundleReader, place: Where, seen: Seen) -> bool:
        """Whether all that can be known of an ended run is there. Blocking."""
        if self._is_fetched(place):
            return is_done(bundle)
        again = seen.job is not None and restarts_anyway(seen.job)
        return again or all(pod.ended for pod in seen.pods)


def _is_cancelled(records: RunRecords, seen: Seen) -> bool:
    """Whether a task was cancelled and nothing of it runs any more, or its turn had not come; its Job may take a moment to count it as failed."""
    if not is_told(records):
        return False
    if not records.attempts:
        return True
    asked = any(one.action == "cancel" for one in records.actions)
    return asked and not any(pod.main.container_id and not pod.ended for pod in seen.pods)


def _has_succeeded(bundle: BundleReader) -> bool:
    """Whether the records of a run of this user's say so. Blocking."""
    return bundle.is_own and (
        derive(bundle.read(), Moment(time.time(), "alive")).state == "succeeded"
    )


def _note_end(bundle: BundleReader, where: Where, seen: Seen) -> None:
    """Write down that all was fetched of a run whose job has ended or was removed. Blocking."""
    records = bundle.read()
    if seen.job is None:
        if is_new(records, seen.time):
            return
    elif seen.job.observe(seen.time).state != "ended":
        return
    if not where.native:
        begun = [rank for rank, pod in ranked(seen.pods) if pod.main.container_id]
        note_cut_off(bundle, records, begun)
    note_done(bundle)


def _has_logs(bundle: BundleReader) -> bool:
    with contextlib.suppress(OSError):
        return any(name.startswith("attempt-") for name in descent.names(bundle.records / "logs"))
    return False


def _may_be_older(records: RunRecords, seen: Seen, word: Observation) -> bool:
    """Whether a word by which the newest attempt is over may be from before it began: its records came while the cluster was asked, or a watch is behind."""
    if not _waits_after_attempt(records, seen, word):
        return False
    number = records.attempts[-1].number
    return not any(one.attempt == number and one.verdict for one in records.observations)


def _waits_after_attempt(records: RunRecords, seen: Seen, word: Observation) -> bool:
    begun = any(pod.main.container_id and not pod.ended for pod in seen.pods)
    return word.state == "waiting" and bool(records.attempts) and not begun


def _is_retried(records: RunRecords) -> bool:
    """Whether the newest attempt failed by itself, so that nobody need say why it is over."""
    nodes = records.attempts[-1].nodes if records.attempts else ()
    return bool(nodes) and all(node.exit_code for node in nodes)


def _again(
    bundle: BundleReader,
    records: RunRecords,
    seen: Seen,
    word: Observation,
    *,
    retried: bool = False,
) -> Observation:
    """A word on a run that goes on: when it waits after an attempt, that attempt is over, and why is written down, unless it is `retried`. Blocking."""
    if word.state == "running":
        launchers = _launchers_wait(records)
        if launchers is None:
            return word
        return after(records, between_attempts(word, seen.pods, launchers))
    if not _waits_after_attempt(records, seen, word):
        return word
    number = records.attempts[-1].number
    word = after(records, word).model_copy(
        update={"attempt": number, "reason_code": word.reason_code or "recovering"}
    )
    if retried or any(one.attempt == number and one.verdict for one in records.observations):
        return word
    verdict, why = cut_short(seen.pods)
    with contextlib.suppress(StorageError):
        bundle.add_observation(word.model_copy(update={"verdict": verdict, "reason": why}))
    return word


def _launchers_wait(records: RunRecords) -> Observation | None:
    """What the launchers said last, when it is that the attempt after the newest one waits."""
    said = [one for one in records.observations if one.observer == "launcher"]
    newest = max(said, key=lambda one: one.time, default=None)
    if newest is None or newest.state != "waiting" or not records.attempts:
        return None
    return newest if newest.attempt == records.attempts[-1].number else None
