"""The log of one container of a pod, each line exactly once, over cut connections and restarts of everything.

    log = PodLog(client, namespace, pod, "pytorch")
    async with aclosing(log.follow(cursor)) as portions:    # a Cursor kept from earlier, or none: from the oldest line there is
        async for portion in portions:
            for item in portion.items:                      # Entry | Started | Ended | Gap | Over
                ...
            keep(portion.cursor.to_dict())                  # JSON; after a crash: Cursor.from_dict(...)

What is written with `portion.items` and kept as `portion.cursor` together makes each line come exactly once over crashes of the reader too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnreachableError,
    nearest_hint,
)
from hyperpod_jlab.engines.kubernetes.api.client import Backoff, KubeClient
from hyperpod_jlab.engines.kubernetes.api.errors import CUT
from hyperpod_jlab.engines.kubernetes.api.log_bytes import (
    SECOND,
    Count,
    Cursor,
    Ended,
    Entry,
    Gap,
    Item,
    Lines,
    Over,
    Portion,
    Resume,
    RotatedError,
    Search,
    Started,
)

# --------------------------------------------------------------------------------------------------
# One answer of a pod's log, from a cursor on.

LOG_GONE = "log_gone"
"""Code of an `UnreachableError`: the node's container runtime does not give the log, now or ever again."""
_FIRST_LINE = 120
"""Bytes in which a line's stamp lies."""


class LogAnswer:
    """Asks once for a log and gives what is new in the answer.

    Attributes:
        cursor: Where one stands after what was given.
        new: Whether anything was given.
        reached: Whether the answer came to where the cursor stood.
        moved: Whether the pod had another container by then, so that nothing was read.
        found: When the last line was searched: whether it was there; None when the answer was too short to tell.
    """

    def __init__(
        self, client: KubeClient, path: str, container: str, cursor: Cursor, *, search: bool = False
    ) -> None:
        self.cursor = cursor
        self.new = self.reached = self.moved = False
        self.found: bool | None = None
        self._client, self._path, self._container = client, path, container
        self._search = search and cursor.last is not None

    async def portions(
        self, *, previous: bool, live: bool, right: Callable[[], Awaitable[bool]]
    ) -> AsyncGenerator[Portion, None]:
        """What is new.

        Args:
            previous: Read the container before the newest.
            live: Go on until the container or the connection ends.
            right: Says, after the answer has begun, whether it is of the cursor's container.

        Raises:
            RotatedError: The log does not begin as it did.
            UnreachableError: As of the client; with the code ``log_gone`` when a text of the kubelet's came instead of lines.
        """
        since = self._since()
        query = {"container": self._container, "timestamps": "true"}
        query |= {"previous": "true"} if previous else {}
        query |= {"follow": "true"} if live else {}
        query |= {"sinceTime": since_time(since)} if since is not None else {}
        count, lines = Count(since), Lines()
        gate = Search(self.cursor, count) if self._search else Resume(self.cursor, count)
        async with self._client.stream(self._path, **query) as stream:
            if not await right():
                self.moved = True
                return
            async with aclosing(stream.chunks()) as chunks:
                async for chunk in chunks:
                    if (portion := self._portion(gate, count, lines.feed(chunk))) is not None:
                        yield portion
        entries = lines.close()
        if (portion := self._portion(gate, count, entries, end=True)) is not None:
            yield portion
        if lines.foreign:
            raise _no_log()

    async def first_stamp(self) -> int | None:
        """The stamp of the first line (Unix nanoseconds) since the cursor's anchor, of whatever container is the newest."""
        since = self._since()
        query = {"container": self._container, "timestamps": "true"}
        query |= {"sinceTime": since_time(since)} if since is not None else {}
        lines = Lines()
        async with self._client.stream(self._path, limitBytes=str(_FIRST_LINE), **query) as stream:
            found = [entry async for chunk in stream.chunks() for entry in lines.feed(chunk)]
        found += lines.close()
        if lines.foreign and not found:
            raise _no_log()
        return found[0].stamp if found else None

    def _since(self) -> int | None:
        if self.cursor.last is None:
            return None
        if self.cursor.anchor is not None:
            return self.cursor.anchor.second
        return self.cursor.last.stamp // SECOND - 2

    def _portion(
        self, gate: Search | Resume, count: Count, entries: list[Entry], *, end: bool = False
    ) -> Portion | None:
        found: list[Item] = [*gate.take(entries)]
        if isinstance(gate, Search):
            undecided = self.found is None
            if end:
                found += gate.close()
            self.found = gate.found
            self.reached = gate.found is not None
            if undecided and self.found is False and found:
                found.insert(0, Gap("rotated"))
        else:
            self.reached = gate.reached
        if not found:
            return None
        self.new = True
        self.cursor = replace(self.cursor, anchor=count.anchor, last=count.last)
        return Portion(tuple(found), self.cursor)


def _no_log() -> UnreachableError:
    return UnreachableError(
        "the node does not give the log",
        code=LOG_GONE,
        hint="its container runtime does not answer, or has removed the container",
    )


def since_time(second: int) -> str:
    """A whole second as the API server takes it."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --------------------------------------------------------------------------------------------------
# What of a pod's state matters for its log: which container runs, which ran before, and whether another will.

_FINAL = {"Succeeded", "Failed"}
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended.

    Attributes:
        container_id: Which container.
        code: Its exit code, None when nobody knows.
        reason: The kubelet's word, such as ``Error`` or ``OOMKilled``.
        at: When (Unix seconds), as far as known.
        message: The runtime's sentence to it.
    """

    container_id: str
    code: int | None
    reason: str | None
    at: float | None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerState:
    """A container of a pod, by name; each restart of it is another container, with its own id and its own log.

    Attributes:
        name: Its name.
        restart: Number of restarts before the newest one that has begun.
        container_id: The newest one that has begun; "" when none has.
        running: Whether that one runs.
        started_at: When it began (Unix seconds), as far as known.
        exit: How that one ended; None while it runs.
        previous: How the one before ended, as long as the kubelet keeps it.
        waiting: The kubelet's word for why none runs, such as ``ImagePullBackOff``.
        message: The kubelet's sentence to it.
    """

    name: str
    restart: int = 0
    container_id: str = ""
    running: bool = False
    started_at: float | None = None
    exit: Exit | None = None
    previous: Exit | None = None
    waiting: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod.

    Attributes:
        name: Its name.
        uid: Its uid: a pod of the same name with another uid is another pod.
        version: Its resource version.
        phase: ``Pending``, ``Running``, ``Succeeded``, ``Failed`` or ``Unknown``.
        node: The node it is bound to, or None.
        deleting: Whether it is being deleted.
        restart_policy: ``Always``, ``OnFailure`` or ``Never``.
        containers: Its containers by name, those that run first (init) too, as far as the kubelet has spoken of them.
        names: The names of all its containers.
    """

    name: str
    uid: str
    version: str
    phase: str
    node: str | None
    deleting: bool
    restart_policy: str
    containers: Mapping[str, ContainerState]
    names: tuple[str, ...] = ()

    def container(self, name: str) -> ContainerState:
        """A container by its name; one of which the kubelet has not spoken yet has not begun."""
        return self.containers.get(name) or ContainerState(name)

    def starts_again(self, name: str) -> bool:
        """Whether another container of that name may follow the newest one; for one that runs: when it ends."""
        if self.phase in _FINAL or self.deleting:
            return False
        exit_ = self.container(name).exit
        if exit_ is None or self.restart_policy == "Always":
            return True
        return self.restart_policy == "OnFailure" and exit_.code != 0


def pod_state(pod: Mapping[str, Any]) -> PodState:
    """A pod object's state; as `reduce` of a `Watch` of pods it makes its rows."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    said = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
        *(status.get("ephemeralContainerStatuses") or []),
    ]
    return PodState(
        name=str(metadata["name"]),
        uid=str(metadata.get("uid", "")),
        version=str(metadata.get("resourceVersion", "")),
        phase=str(status.get("phase") or "Pending"),
        node=spec.get("nodeName") or None,
        deleting=bool(metadata.get("deletionTimestamp")),
        restart_policy=str(spec.get("restartPolicy") or "Always"),
        containers={str(one["name"]): _container(one) for one in said},
        names=tuple(str(one["name"]) for key in _CONTAINERS for one in spec.get(key) or []),
    )


def _container(said: Mapping[str, Any]) -> ContainerState:
    state, last = said.get("state") or {}, said.get("lastState") or {}
    restart = int(said.get("restartCount") or 0)
    name = str(said["name"])
    waiting = state.get("waiting")
    previous = _exit(last.get("terminated"))
    if waiting is None:
        running = state.get("running")
        ended = _exit(state.get("terminated"))
        return ContainerState(
            name=name,
            restart=restart,
            container_id=(ended.container_id if ended else "") or str(said.get("containerID", "")),
            running=running is not None,
            started_at=when((running or state.get("terminated") or {}).get("startedAt")),
            exit=ended,
            previous=previous,
        )
    # Between two containers the newest that has begun is the one that ended last.
    return ContainerState(
        name=name,
        restart=restart,
        container_id=previous.container_id if previous else "",
        started_at=when((last.get("terminated") or {}).get("startedAt")),
        exit=previous,
        waiting=str(waiting.get("reason") or "") or None,
        message=str(waiting.get("message") or "")[:600] or None,
    )


def _exit(said: Mapping[str, Any] | None) -> Exit | None:
    if said is None:
        return None
    code = said.get("exitCode")
    return Exit(
        container_id=str(said.get("containerID", "")),
        code=int(code) if code is not None else None,
        reason=str(said.get("reason") or "") or None,
        at=when(said.get("finishedAt")),
        message=str(said.get("message") or "")[:600] or None,
    )


def when(text: Any) -> float | None:
    """A time as the API server writes it, in Unix seconds; None for anything else."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None


# --------------------------------------------------------------------------------------------------
# What to do next for a pod's log, from the pod's state and where one stands. Pure.


@dataclass(frozen=True, slots=True)
class Say:
    """Hand out this; then look again at what is next, for which the state need not be asked anew."""

    portion: Portion


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be read until the pod's state changes."""


@dataclass(frozen=True, slots=True)
class Read:
    """Read the log of the cursor's container.

    Attributes:
        previous: Whether it is the one before the newest.
        live: Whether it runs.
    """

    previous: bool
    live: bool


Step: TypeAlias = Say | Wait | Read


def next_step(state: PodState | None, name: str, cursor: Cursor, *, doubt: bool) -> Step:
    """What to do next.

    Args:
        state: The pod, or None when there is none of that name.
        name: The container's name.
        cursor: Where one stands.
        doubt: Whether the last answer was cut, so that more may have been written than was read.
    """
    if state is None or (cursor.uid and state.uid != cursor.uid):
        return _gone(cursor, doubt=doubt, replaced=state is not None)
    one = state.container(name)
    if not cursor.container_id or (cursor.finished and cursor.container_id != one.container_id):
        return _begin(state, one, cursor)
    if cursor.finished:
        return Wait() if state.starts_again(name) else _over(cursor)
    if cursor.container_id == one.container_id:
        return Read(previous=False, live=one.running)
    if (before := _before(one)) is not None and cursor.container_id == before.container_id:
        return Read(previous=True, live=False)
    return Say(finished(cursor, one.exit if not one.container_id else None, Gap("restarted")))


def finished(cursor: Cursor, exit_: Exit | None, *first: Item) -> Portion:
    """The cursor's container has ended, and was read to its end."""
    ended = Ended(
        restart=cursor.restart,
        container_id=cursor.container_id,
        exit_code=exit_.code if exit_ else None,
        reason=exit_.reason if exit_ else None,
        at=exit_.at if exit_ else None,
    )
    return Portion((*first, ended), replace(cursor, finished=True))


def exit_of(state: PodState | None, name: str, container_id: str) -> Exit | None:
    """How a container ended, as far as the pod still says it."""
    one = state.container(name) if state is not None else ContainerState(name)
    return next(
        (
            known
            for known in (one.exit, one.previous)
            if known and known.container_id == container_id
        ),
        None,
    )


def _gone(cursor: Cursor, *, doubt: bool, replaced: bool) -> Step:
    items: list[Item] = []
    if cursor.container_id and not cursor.finished:
        gap = (Gap("deleted"),) if doubt else ()
        items += finished(cursor, None, *gap).items
    items.append(Over("replaced" if replaced else "deleted"))
    return Say(Portion(tuple(items), replace(cursor, finished=True, over=True)))


def _over(cursor: Cursor) -> Step:
    return Say(Portion((Over("ended"),), replace(cursor, over=True)))


def _before(one: ContainerState) -> Exit | None:
    """The container before the newest, as long as the kubelet keeps it."""
    before = one.previous
    if before is None or not before.container_id or before.container_id == one.container_id:
        return None
    return before


def _begin(state: PodState, one: ContainerState, cursor: Cursor) -> Step:
    """The oldest container after the cursor's that can still be read."""
    before = _before(one)
    next_restart = cursor.restart + 1 if cursor.container_id else 0
    if before is not None and before.container_id != cursor.container_id:
        return _started(state, before.container_id, one.restart - 1, None, next_restart)
    if one.container_id:
        return _started(state, one.container_id, one.restart, one.started_at, next_restart)
    if state.starts_again(one.name):
        return Wait()
    return _over(replace(cursor, uid=state.uid))


def _started(
    state: PodState,
    container_id: str,
    restart: int,
    at: float | None,
    expected: int,
) -> Step:
    gap = (Gap("restarted"),) if restart > expected else ()
    return Say(
        Portion(
            (*gap, Started(restart, container_id, at)),
            Cursor(uid=state.uid, restart=restart, container_id=container_id),
        )
    )


__all__ = [
    "Cursor",
    "Ended",
    "Entry",
    "Gap",
    "Item",
    "Over",
    "PodLog",
    "PodNews",
    "Portion",
    "Started",
]


_LONG = 10.0
"""Seconds that a stream must have lasted for the next try to come soon."""
_AGAIN = 0.5
_RESTARTING = (0.5, 1.0, 1.5)
"""Seconds between looks in which a restart that the kubelet knows of should have come to the API server."""
_UNKNOWN = 30.0
"""Seconds for which a 401 is not believed."""
_GONE = 60.0
"""Seconds for which a runtime may be silent about an ended container, before its log is taken to be removed."""
_FRESH = 2.0
"""Seconds for which a pod's state is believed when its log is opened. A container that ended in them is found out when its log is read to the end (`_swapped`)."""
_WAITING = 0.1
_NEWS = 10.0
"""Seconds after which a pod is looked at although nothing was heard of it."""


_MENDED = (UnreachableError, NotFoundError, InvalidInputError)
"""Errors that another try may mend: a pod's state is older than what its kubelet does."""


class PodNews(Protocol):
    """Who knows when a pod's state changes, so that a follower need not ask: a `Watch` of pods with `pod_state` rows."""

    @property
    def version(self) -> int:
        """Grows with each change."""
        ...

    async def changed(self, since: int, timeout: float | None = None) -> int:
        """Wait until `version` is greater than `since`, or for the time (seconds); returns `version`."""
        ...


class PodLog:
    """Follows one container (all its restarts) of one pod."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        pod: str,
        container: str,
        *,
        news: PodNews | None = None,
    ) -> None:
        """Follow a container.

        Args:
            client: Of the cluster.
            namespace: Of the pod.
            pod: Its name.
            container: The container's name.
            news: Tells when the pod may have changed.
        """
        self.trouble: HyperpodError | None = None
        """Why nothing can be read at the moment (a node that does not answer); None when all is well, also while a container waits to start: see `state`."""
        self.state: PodState | None = None
        """The pod as it was last seen."""
        self._client, self._news = client, news
        self._pod, self._container = pod, container
        self._path = f"/api/v1/namespaces/{namespace}/pods/{pod}"
        self._at = Cursor()
        self._backoff = Backoff(0.1, 5.0)
        self._doubt = False
        self._lost = False
        self._short = 0
        self._looked = 0.0
        self._since: dict[str, float] = {}

    async def follow(self, cursor: Cursor | None = None) -> AsyncGenerator[Portion, None]:
        """What the container writes, from a cursor on, until nothing more can come (`Over` is the last item then).

        Waits for a container that has yet to start. While the cluster or the node does not answer it tries again, for ever, and `trouble` says so.

        Raises:
            NotFoundError: There is no such pod, and the cursor knows of none.
            InvalidInputError: The pod has no such container.
            DeniedError: The user may not read this pod or its log.
        """
        async with aclosing(self._run(cursor or Cursor(), follow=True)) as portions:
            async for portion in portions:
                yield portion

    async def read(self, cursor: Cursor | None = None) -> AsyncGenerator[Portion, None]:
        """What is there now, from a cursor on; does not wait for more. `Over` comes where `follow` would give it.

        Raises:
            NotFoundError: There is no such pod, and the cursor knows of none.
            InvalidInputError: The pod has no such container.
            DeniedError: The user may not read this pod or its log.
            UnreachableError: The cluster or the node does not answer.
        """
        async with aclosing(self._run(cursor or Cursor(), follow=False)) as portions:
            async for portion in portions:
                yield portion

    # ------------------------------------------------------------------------------------------ step by step

    async def _run(self, cursor: Cursor, *, follow: bool) -> AsyncGenerator[Portion, None]:
        self._at, self._doubt = cursor, True
        if cursor.over:
            return
        if self.state is None:
            await self._look(patient=follow)
        if self.state is None and not cursor.uid:
            raise NotFoundError(f"there is no pod {self._pod}", code="no_pod")
        if self.state is not None and self._container not in self.state.names:
            raise InvalidInputError(
                f"the pod {self._pod} has no container {self._container}",
                code="no_container",
                hint=nearest_hint(self._container, self.state.names),
            )
        while not self._at.over:
            step = next_step(self.state, self._container, self._at, doubt=self._doubt)
            if isinstance(step, Say):
                self._at = step.portion.cursor
                # Of a container that was just found nothing was read yet.
                self._doubt, self._lost, self._short = True, False, 0
                yield step.portion
            elif isinstance(step, Read):
                async with aclosing(self._reading(step, follow=follow)) as portions:
                    async for portion in portions:
                        self._at = portion.cursor
                        yield portion
                if step.live and not follow:
                    return
            elif follow:
                await self._wait()
            else:
                return

    async def _reading(self, step: Read, *, follow: bool) -> AsyncGenerator[Portion, None]:
        """Asks for the log once, and sees what became of it."""
        began, lost = time.monotonic(), self._lost
        answer = self._answer(search=lost or self._at.anchor is None)
        try:
            if lost and (aside := await self._other_log(step)) is not None:
                self._lost = False
                yield aside
                return
            live = follow and step.live and not lost
            async with aclosing(self._portions(answer, step, live=live)) as portions:
                async for portion in portions:
                    self._well()
                    yield portion
        except RotatedError:
            self._lost = True
            return
        except HyperpodError as error:
            if (given_up := await self._give_up(error, step, follow=follow)) is not None:
                yield given_up
                return
            # What ended while it was read to a clean end has said all, even if it cannot be asked again.
            self._doubt = self._doubt or step.live or error.code == CUT
        else:
            self._well()
            self._lost = False
            if (end := await self._ended(answer, step, searched=lost)) is not None:
                yield end
            if answer.moved or not step.live:
                return
        if not follow:
            return
        if answer.new or time.monotonic() - began > _LONG:
            self._backoff.reset()
        await asyncio.sleep(self._backoff.pause())
        await self._look(patient=True)

    async def _ended(self, answer: LogAnswer, step: Read, *, searched: bool) -> Portion | None:
        """An answer has ended cleanly: that was all of a container that runs no more, if nothing new came."""
        if answer.moved:
            return None
        if not searched:
            self._doubt = not answer.reached
        if step.live:
            return None
        if answer.new:
            self._short = 0
        elif searched:
            return self._finished(*((Gap("rotated"),) if self._doubt else ()))
        elif answer.reached:
            return self._finished()
        elif self._short:
            self._lost = True
        else:
            self._short += 1  # the kubelet may have died over it, whose answers end cleanly then
            await asyncio.sleep(_AGAIN)
        return None

    async def _other_log(self, step: Read) -> Portion | None:
        """The log is not the one that was read: has the kubelet begun a new file (None), or is it another container's?"""
        if step.live:
            for pause in _RESTARTING:
                await asyncio.sleep(pause)
                await self._look(patient=True)
                if not self._is_newest():
                    return Portion((), self._at)
        return await self._swapped() if step.previous else None

    async def _swapped(self) -> Portion | None:
        """What was read as the previous container's may have been the newest one's already: the kubelet knows of a restart before the API server does.

        Then the previous one's log comes now, late but whole, and the newest one's goes on.
        """
        at, state = self._at, self.state
        if at.last is None or at.anchor is None or state is None:
            return None
        newest = state.container(self._container)
        if await self._answer().first_stamp() != at.anchor.stamp:
            return None
        bare = Cursor(uid=at.uid, restart=at.restart, container_id=at.container_id)
        answer = LogAnswer(self._client, f"{self._path}/log", self._container, bare)
        items: list[Item] = []
        step = Read(previous=True, live=False)
        async with aclosing(self._portions(answer, step, live=False)) as portions:
            async for portion in portions:
                items += portion.items
        if answer.moved:
            return None
        ended = finished(bare, exit_of(state, self._container, at.container_id), *items)
        started = Started(newest.restart, newest.container_id, newest.started_at)
        cursor = replace(at, container_id=newest.container_id, restart=newest.restart)
        return Portion((*ended.items, started), cursor)

    # ------------------------------------------------------------------------------------------ parts

    def _answer(self, *, search: bool = False) -> LogAnswer:
        return LogAnswer(
            self._client, f"{self._path}/log", self._container, self._at, search=search
        )

    def _portions(
        self, answer: LogAnswer, step: Read, *, live: bool
    ) -> AsyncGenerator[Portion, None]:
        wanted = self._at.container_id

        async def right() -> bool:
            if time.monotonic() - self._looked > _FRESH:
                await self._look(patient=False)
            state = self.state
            if state is None or state.uid != self._at.uid:
                return False
            one = state.container(self._container)
            before = one.previous.container_id if one.previous else ""
            return wanted == (before if step.previous else one.container_id)

        return answer.portions(previous=step.previous, live=live, right=right)

    def _finished(self, *first: Item) -> Portion:
        exit_ = exit_of(self.state, self._container, self._at.container_id)
        self._at = replace(self._at, finished=True)
        return finished(self._at, exit_, *first)

    def _is_newest(self) -> bool:
        state, at = self.state, self._at
        return (
            state is not None
            and state.uid == at.uid
            and state.container(self._container).container_id == at.container_id
            and state.container(self._container).running
        )

    def _well(self) -> None:
        self.trouble = None
        self._since.clear()

    async def _give_up(self, error: HyperpodError, step: Read, *, follow: bool) -> Portion | None:
        """What to say instead of trying for ever; None: try again. Raises what no further try can mend."""
        if step.previous and await self._removed(error):
            return self._finished(Gap("deleted"))
        if not follow:
            raise error
        self.trouble = error
        first = self._since.setdefault(error.code, time.monotonic())
        if isinstance(error, DeniedError):
            # A cluster that is being started, or a token just being renewed, may refuse for a moment.
            if error.code != "unauthorized" or time.monotonic() - first > _UNKNOWN:
                raise error
        elif error.code == LOG_GONE:
            if not step.live and time.monotonic() - first > _GONE:
                return self._finished(Gap("deleted"))
        elif not isinstance(error, _MENDED):
            raise error
        return None

    async def _removed(self, error: HyperpodError) -> bool:
        """Whether the log of the previous container has been removed: nothing is wrong with the newest one's."""
        if "previous terminated container" in error.message:
            return True
        if error.code != LOG_GONE:
            return False
        try:
            await self._answer().first_stamp()
        except HyperpodError:
            return False
        return True

    async def _look(self, *, patient: bool) -> None:
        """Ask for the pod's state."""
        backoff = Backoff(0.2, 5.0)
        while True:
            try:
                self._looked = time.monotonic()
                self.state = pod_state(await self._client.get(self._path))
            except NotFoundError as error:
                if error.code != NotFoundError.default_code:
                    raise
                self.state = None
            except UnreachableError as error:
                if not patient:
                    raise
                self.trouble = error
                await asyncio.sleep(backoff.pause())
                continue
            return

    async def _wait(self) -> None:
        """Wait for a change of the pod's state."""
        before = self.state
        pause = Backoff(_WAITING, 2.0)
        while self.state == before:
            if self._news is not None:
                version = self._news.version
                await self._look(patient=True)
                if self.state == before:
                    await self._news.changed(version, _NEWS)
            else:
                await asyncio.sleep(pause.pause())
                await self._look(patient=True)
        self._well()
