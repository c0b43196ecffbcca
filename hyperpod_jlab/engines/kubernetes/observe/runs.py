"""What becomes of runs: their state, and what their pods say."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from hyperpod_jlab.core.errors import DeniedError, HyperpodError, StorageError, UnreachableError
from hyperpod_jlab.core.records import Observation, RunRecords
from hyperpod_jlab.core.repair import NodeRepair
from hyperpod_jlab.core.state import StateContext, derive
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds.batch_job import BatchJob
from hyperpod_jlab.engines.kubernetes.kinds.kind import OBSERVER
from hyperpod_jlab.engines.kubernetes.kinds.pytorch_job import is_asked_for
from hyperpod_jlab.engines.kubernetes.kinds.train_job import TrainJob
from hyperpod_jlab.engines.kubernetes.observe.native_recorder import NativeRecorder
from hyperpod_jlab.engines.kubernetes.observe.pods import JobRow, indices_of, ranked
from hyperpod_jlab.engines.kubernetes.observe.poll import RunLook, RunSnapshot, Where, task_of
from hyperpod_jlab.engines.kubernetes.observe.spool import Spooler, is_done, note_done
from hyperpod_jlab.engines.kubernetes.observe.spool_files import note_cut_off
from hyperpod_jlab.engines.kubernetes.observe.verdicts import (
    POD_ENDED,
    between_attempts,
    cut_short,
    explained,
    gave_up,
    refined,
)
from hyperpod_jlab.engines.kubernetes.submit.companion_objects import remove
from hyperpod_jlab.engines.kubernetes.submit.sent import read_sent
from hyperpod_jlab.engines.kubernetes.tables.lists import NODES, Looks
from hyperpod_jlab.engines.kubernetes.tables.nodes import HEALTH_LABEL, node_facts
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Runs whose launchers are done though their job goes on: pods that failed are started again, by a runtime again and again, by OnFailure up to the job's limit.

_LARGEST = 1 << 20


def restarts_anyway(seen: JobRow) -> bool:
    """Whether a job's pods may be started again though they are done: a TrainJob's are its runtime's, those that HyperPod resumes have OnFailure."""
    return seen.kind.name == TrainJob.name or is_asked_for(seen.job)


def over(
    bundle: BundleReader, seen: JobRow, records: RunRecords, word: Observation
) -> Observation | None:
    """The end of a run that failed, as its node 0 said it; None as long as its job decides. Blocking.

    Args:
        bundle: The run.
        seen: Its job.
        records: Its records.
        word: What the job says: that it goes on.
    """
    if not restarts_anyway(seen) or not records.attempts:
        return None
    told = any(
        one.observer == OBSERVER and one.verdict and one.state == "ended"
        for one in records.observations
    )
    said = _said(bundle)
    code = said.get("exit_code")
    if said.get("scheduler_id") != word.scheduler_id or not isinstance(code, int) or code == 0:
        return None
    nodes = records.attempts[-1].nodes
    ended = [node.ended_at for node in nodes if node.ended_at is not None]
    if not told and (len(ended) < records.head.nodes or len(ended) < len(nodes)):
        return None
    changes = {
        "time": float(said.get("time") or word.time),
        "state": "ended",
        "verdict": "FAILED",
        # Node 0 ends with its own, which need not be the first.
        "exit_code": None if any(node.exit_code for node in nodes) else code,
        "reason": None,
        "reason_code": None,
    }
    return word.model_copy(update=changes)


def _said(bundle: BundleReader) -> dict[str, Any]:
    try:
        found = from_json(
            descent.read(bundle.records / "status" / "over" / "node-0.json", _LARGEST)
        )
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


# --------------------------------------------------------------------------------------------------
# What is left when a run has ended: pods that go on after their job has failed, which the operator leaves as they are, and what stood beside the job.

_LOG = logging.getLogger(__name__)

TIMEOUT = 60.0
"""Seconds after a job's end in which its pods may end by themselves."""


class OrphanedPods:
    """Ends such pods, each once, and jobs that go on though their run has failed; where this user may not, they give up by themselves.

    Args:
        connection: The cluster.
    """

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self._seen: set[str] = set()
        self._alone: set[str] = set()

    async def end(
        self, bundle: BundleReader, where: Where, seen: RunSnapshot, word: Observation
    ) -> None:
        """Look at a run that has ended.

        Args:
            bundle: The run.
            where: Its job.
            seen: What the cluster has of it.
            word: Its end.
        """
        left = [
            pod
            for pod in seen.pods
            if not (pod.ended or pod.state.deleting or pod.uid in self._seen)
        ]
        if not left or seen.job is None or where.native or where.task is not None:
            return
        ended = seen.job.observe(seen.time)
        goes_on = ended.state != "ended"
        late = seen.time - (word if goes_on else ended).time > TIMEOUT
        if not late or not await asyncio.to_thread(lambda: bundle.is_own):
            return
        self._seen.update(pod.uid for pod in left)
        if goes_on and where.kind.name != TrainJob.name:  # it has a limit
            return
        if goes_on:  # its job would make its pods anew
            await self._delete(f"{where.path}/{where.name}", seen.job.uid)
            return
        for pod in left:
            await self._delete(f"/api/v1/namespaces/{where.namespace}/pods/{pod.name}", pod.uid)

    async def remove_companions(self, bundle: BundleReader, where: Where) -> None:
        """Remove what stood beside the job of a run of this user's that has ended: its manifest in the bundle says what that was, whoever sees the end.

        Args:
            bundle: The run.
            where: Its job.
        """
        if not where.accompanied or bundle.run_id in self._alone:
            return
        if not await asyncio.to_thread(lambda: bundle.is_own):
            return
        self._alone.add(bundle.run_id)
        try:
            sent = await asyncio.to_thread(read_sent, bundle)
            await remove(await self._connection.client(), sent)
        except UnreachableError:
            self._alone.discard(bundle.run_id)  # the next look comes
        except HyperpodError as error:
            _LOG.warning("companion objects of %s were not removed: %s", bundle.run_id, error)

    async def _delete(self, path: str, uid: str) -> None:
        client = await self._connection.client()
        with contextlib.suppress(HyperpodError):
            await client.delete(path, {"preconditions": {"uid": uid}})


# --------------------------------------------------------------------------------------------------
# Nodes of Kubernetes that HyperPod repairs: it says so in a label of theirs.

_ACTIONS: Mapping[str, NodeRepair] = {
    "Unschedulable": "repair",
    "UnschedulablePendingReplacement": "replace",
    "UnschedulablePendingReboot": "reboot",
}


async def labelled_repairs(looks: Looks) -> dict[str, NodeRepair]:
    """What HyperPod does to nodes, by their names; nothing where they may not be seen.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    seen = await looks.everywhere(NODES, node_facts)
    found: dict[str, NodeRepair] = {}
    for node in seen.rows or ():
        action = _ACTIONS.get(dict(node.labels).get(HEALTH_LABEL, ""))
        if action is not None:
            found[node.name] = action
    return found


# --------------------------------------------------------------------------------------------------
# Words on runs as wholes: that one ends, that it is gone, that an array has ended.

_SETTLES = 20.0
"""Seconds after a submit in which the API server may not have the job yet."""


def ending(word: Observation, now: float) -> Observation:
    """The word on a run that has ended, while its pods may still say something."""
    return word.model_copy(
        update={
            "time": now,
            "state": "running",
            "verdict": None,
            "exit_code": None,
            "reason": "its last nodes are stopping",
            "reason_code": "ending",
        }
    )


def after(records: RunRecords, word: Observation) -> Observation:
    """A word that is later than all that was said before: the cluster's clock may be behind ours."""
    moment = max([word.time, *(seen.time + 0.001 for seen in records.observations)])
    return word.model_copy(update={"time": moment})


def is_new(records: RunRecords, now: float) -> bool:
    """Whether a run was sent so lately that its job may not be seen yet, or never was."""
    if records.attempts or records.claim is not None:
        return False
    sent = records.submission
    return sent is None or now - sent.submitted_at < _SETTLES


def is_told(records: RunRecords) -> bool:
    """Whether the cluster's word that it ended is written down."""
    return any(
        one.observer == OBSERVER and one.verdict and one.state == "ended"
        for one in records.observations
    )


def array_word(
    bundle: BundleReader, place: Where, seen: RunSnapshot, *, is_open: bool
) -> Observation | None:
    """The word on an array as a whole, which has ended once all of its tasks have. Blocking."""
    records = bundle.read()
    if seen.job is None:
        return gone(place, records, seen)
    word = seen.job.observe(seen.time)
    if word.state != "ended":
        return word
    if is_open:
        return ending(word, seen.time)
    with contextlib.suppress(StorageError):
        bundle.add_observation(after(records, word))
    return word


def gone(place: Where, records: RunRecords, seen: RunSnapshot) -> Observation | None:
    """The word on a run whose object is not there any more: somebody removed it. None when it was never seen there."""
    if is_told(records) or is_new(records, seen.time):
        return None
    return Observation(
        time=max([seen.time, *(one.time + 0.001 for one in records.observations)]),
        observer=OBSERVER,
        scheduler_id=place.name,
        state="ended",
        verdict="LOST",
        reason=f"its {place.kind.name} {place.name} was removed from the cluster",
        reason_code="lost",
    )


# --------------------------------------------------------------------------------------------------
# Which tasks of an array are to be looked at: those that have pods now, and those whose end is not known yet. Methods may block.


class ArrayWatch:
    """Remembers which tasks are over and done with, so that those of a large array are looked at once.

    Args:
        fetched: Whether what pods say must be fetched; else their launchers write it into the bundle.
    """

    def __init__(self, *, fetched: bool) -> None:
        self._fetched = fetched
        self._settled: dict[str, set[int]] = {}

    def due(
        self, bundle: BundleReader, place: Where, seen: RunSnapshot
    ) -> list[tuple[BundleReader, Where]]:
        """The tasks of an array to look at; all others are as their records say, or as the array."""
        tasks, indices = seen.tasks(), indices_of(place.array or "")
        settled = self._settled.setdefault(bundle.run_id, set())
        over: set[int] = set()
        if bundle.is_own:  # nothing is written into another user's
            over = {*tasks.failed, *(tasks.completed if self._fetched else ())} - settled
        records = bundle.read()
        found = []
        for number in sorted(tasks.live | over):
            if number >= len(indices):
                continue
            child = bundle.child(indices[number], records)
            if number in over and self._is_settled(child):
                settled.add(number)
            else:
                found.append((child, task_of(place, indices[number])))
        return found

    def _is_settled(self, child: BundleReader) -> bool:
        if self._fetched and not is_done(child):
            return False
        return derive(child.read(), StateContext(time.time(), "alive")).ended


def has_open_task(array: str, words: Mapping[str, Observation]) -> bool:
    """Whether a task of an array has not ended, as far as there are words on them."""
    return any(
        word.state != "ended" for run_id, word in words.items() if run_id.startswith(f"{array}.")
    )


_RUNS_LOG = logging.getLogger(__name__)

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

    def __init__(self, connection: ClusterConnection, *, shared: bool = True) -> None:
        self._shared = shared
        self._look = RunLook(connection)
        self._spooler = Spooler(connection, self._look)
        self._leftovers = OrphanedPods(connection)
        self._arrays = ArrayWatch(fetched=not shared)
        self._ends: dict[str, asyncio.Task[bool]] = {}
        self._marked = False

    @property
    def look(self) -> RunLook:
        """Tells what the cluster has of a run."""
        return self._look

    def mark_active(self) -> None:
        """Somebody goes on looking at runs: lists are watched, and what pods say is fetched as it comes."""
        self._marked = True
        self._look.mark_active()

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
            if self._marked and place.run_id in undone:
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
        self, arrays: Sequence[tuple[BundleReader, Where]], seen: Mapping[str, RunSnapshot]
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

    def _fetch(self, bundle: BundleReader, place: Where, seen: RunSnapshot) -> None:
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
            _RUNS_LOG.debug("the final logs of %s cannot be fetched: %s", run_id, task.exception())

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
        self, places: Sequence[tuple[BundleReader, Where]], seen: Mapping[str, RunSnapshot]
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
        self, bundle: BundleReader, place: Where, seen: RunSnapshot, known: RunRecords | None = None
    ) -> Observation | RunRecords | None:
        """The word on a run, or what its records are when they may be of a later moment than what was seen. Blocking.

        Args:
            bundle: The run.
            place: Its job.
            seen: What the cluster has of it.
            known: Its records as they were read before that was seen.
        """
        if place.native and seen.pods and bundle.is_own:
            NativeRecorder(bundle, place.name).play(seen.pods)
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

    def _is_settled(self, bundle: BundleReader, place: Where, seen: RunSnapshot) -> bool:
        """Whether all that can be known of an ended run is there. Blocking."""
        if self._is_fetched(place):
            return is_done(bundle)
        again = seen.job is not None and restarts_anyway(seen.job)
        return again or all(pod.ended for pod in seen.pods)


def _is_cancelled(records: RunRecords, seen: RunSnapshot) -> bool:
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
        derive(bundle.read(), StateContext(time.time(), "alive")).state == "succeeded"
    )


def _note_end(bundle: BundleReader, where: Where, seen: RunSnapshot) -> None:
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
        return any(
            name.startswith("attempt-") for name in descent.list_names(bundle.records / "logs")
        )
    return False


def _may_be_older(records: RunRecords, seen: RunSnapshot, word: Observation) -> bool:
    """Whether a word by which the newest attempt is over may be from before it began: its records came while the cluster was asked, or a watch is behind."""
    if not _waits_after_attempt(records, seen, word):
        return False
    number = records.attempts[-1].number
    return not any(one.attempt == number and one.verdict for one in records.observations)


def _waits_after_attempt(records: RunRecords, seen: RunSnapshot, word: Observation) -> bool:
    begun = any(pod.main.container_id and not pod.ended for pod in seen.pods)
    return word.state == "waiting" and bool(records.attempts) and not begun


def _is_retried(records: RunRecords) -> bool:
    """Whether the newest attempt failed by itself, so that nobody need say why it is over."""
    nodes = records.attempts[-1].nodes if records.attempts else ()
    return bool(nodes) and all(node.exit_code for node in nodes)


def _again(
    bundle: BundleReader,
    records: RunRecords,
    seen: RunSnapshot,
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
