"""The meeting: how node 0 brings the pods of a run together, attempt after attempt.

Two levels, told again and again, so that no word can be lost by a cut connection: each node says how things stand with it (`NodeState`), node 0 says
what is to be done (the directive, `Meeting.directive`). An attempt is opened when all nodes are there and idle, under an incarnation that nobody had before. It
ends for all when one node fails, is told from outside to stop, is lost, or comes anew. Only what the ranks did themselves counts against the restarts.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Set

from .contract import EXIT_FENCED, EXIT_LAUNCHER
from .history import History


class NodeState(NamedTuple):
    """How things stand on a node, as it says itself.

    `incarnation` is that of the attempt which it runs, or ran last. `attempt`, `failures` and `began` are what it knows of earlier attempts: the newest number, how
    many failed by themselves, and when the first began (Unix seconds).
    """

    running: bool = False
    incarnation: Optional[str] = None
    exit_code: Optional[int] = None
    failing: bool = False
    own: bool = False
    leaving: Optional[str] = None
    attempt: int = 0
    failures: int = 0
    began: Optional[float] = None

    @classmethod
    def load(cls, document: Mapping[str, Any]) -> NodeState:
        """The state in a message; what is wrong in it is as if it had not been said."""

        def get(name: str, kind: Any, default: Any) -> Any:
            value = document.get(name)
            is_right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
            return value if is_right else default

        return cls(
            running=get("running", bool, False),
            incarnation=get("incarnation", str, None),
            exit_code=get("exit_code", int, None),
            failing=get("failing", bool, False),
            own=get("own", bool, False),
            leaving=get("leaving", str, None),
            attempt=get("attempt", int, 0),
            failures=get("failures", int, 0),
            began=get("began", (int, float), None),
        )


class Guest:
    """A node as node 0 sees it. `instance` tells a pod from the one that had its place before."""

    def __init__(self, rank: int, instance: str, born: float, name: str) -> None:
        self.rank = rank
        self.instance = instance
        self.born = born
        self.name = name
        self.state = NodeState()
        self.heard = False
        self.cut_at: Optional[float] = None

    @property
    def words(self) -> str:
        """The node as people call it."""
        return "node %d (%s)" % (self.rank, self.name)


class AttemptEnd(NamedTuple):
    """Why an attempt is being ended: `kind` is failure, outside, lost or time_limit."""

    kind: str
    words: str
    since: float


class Terms(NamedTuple):
    """What the meeting keeps to: seconds, but for the numbers of nodes and restarts.

    `patience` is for the first meeting (images are fetched, nodes made), `return_patience` for those after an attempt.
    """

    nodes: int
    max_restarts: int
    time_limit: Optional[float]
    patience: float
    return_patience: float
    unshared: bool


class Meeting:
    """Node 0's part. `step` is to be called often; it reads `guests` and changes `directive`."""

    RETURN = 10.0
    """Seconds in which a node whose connection was cut may come back as if nothing had been."""
    STUCK = 600.0
    """Seconds after which a node that does not end its ranks counts as lost."""
    QUIET = 2.0
    """Seconds for which a gathering has to last before it is written down."""
    WARNING = 120.0
    """Seconds before the time limit at which the ranks are warned, as on Slurm."""

    EARLY = 600.0
    EARLY_LOSSES = 5
    """So many losses in a row, each within `EARLY` seconds of the attempt's start, are taken; then it is the run's own doing."""

    def __init__(
        self,
        terms: Terms,
        history: History,
        free_port: Callable[[], int],
        note: Callable[[str], None],
    ) -> None:
        self.terms = terms
        self.guests: Dict[int, Guest] = {}
        self.directive: Dict[str, Any] = {"do": "wait"}
        self.finished = False
        self.gave_up: Optional[str] = None
        """Whom it waited for in vain, in words."""
        self._history = history
        self._free_port = free_port
        self.note = note
        self._known = NodeState()
        self._party: Dict[int, str] = {}
        self._done: Set[int] = set()
        self._ending: Optional[AttemptEnd] = None
        self._since = self._opened_at = time.monotonic()
        self._losses = 0
        self._told_at = self._since + 3.0 - 60.0
        self._unsaid: Optional[AttemptEnd] = None

    # ---- what the connections tell

    def join(self, rank: int, instance: str, born: float, name: str) -> bool:
        """A node is connected; False when a newer pod has its place."""
        guest = self.guests.get(rank)
        if guest is not None and guest.instance != instance:
            if guest.born > born:
                return False
            self.note("%s was replaced by a new pod (%s)" % (guest.words, name))
            guest = None
        if guest is None:
            guest = self.guests[rank] = Guest(rank, instance, born, name)
        guest.cut_at = None
        return True

    def tell(self, rank: int, state: NodeState) -> None:
        """A node says how things stand with it."""
        self.guests[rank].state, self.guests[rank].heard = state, True
        ran_this = state.incarnation == self.directive.get("incarnation")
        if ran_this and state.exit_code == 0 and not state.running:
            self._done.add(rank)
        known = self._known
        begins = [began for began in (known.began, state.began) if began is not None]
        self._known = known._replace(
            attempt=max(known.attempt, state.attempt),
            failures=max(known.failures, state.failures),
            began=min(begins) if begins else None,
        )

    def cut(self, rank: int, instance: str, now: float) -> None:
        """A node's connection was cut."""
        guest = self.guests.get(rank)
        if guest is not None and guest.instance == instance and guest.cut_at is None:
            guest.cut_at = now

    # ---- what becomes of it

    def step(self, now: float) -> None:
        """Do what is due at this moment (of the monotonic clock)."""
        if self.finished:
            return
        if self.directive["do"] == "run":
            self._watch(now)
        if self._ending is not None:
            self._end(self._ending, now)
        elif self.directive["do"] == "wait":
            self._gather(now)

    @property
    def exit_code(self) -> int:
        """The exit code of the run as a whole: that of a node that failed, or 0."""
        if self.directive.get("succeeded") is True:
            return 0
        codes = [guest.state.exit_code for guest in self.guests.values()]
        own = [guest.state.exit_code for guest in self.guests.values() if guest.state.own]
        return next((code for code in [*own, *codes] if code), EXIT_LAUNCHER)

    def missing(self) -> List[int]:
        """The nodes that an attempt would have to wait for."""
        return [rank for rank in range(self.terms.nodes) if not self._is_ready(rank)]

    def _is_ready(self, rank: int) -> bool:
        guest = self.guests.get(rank)
        if guest is None or guest.cut_at is not None or not guest.heard:
            return False
        return not guest.state.running and guest.state.leaving is None

    def _gather(self, now: float) -> None:
        missing = self.missing()
        if self._time_is_over():
            self._finish("time_limit", "it reached its time limit")
        elif not missing:
            self._open(now)
        elif now - self._since > self._patience():
            self.gave_up = "%s did not connect within %d s" % (in_words(missing), self._patience())
            self.note(self.gave_up)
            self._finish("lost", self.gave_up)
        else:
            self._say_who_is_missing(missing, now)

    def _patience(self) -> float:
        first = not self._known.attempt
        return self.terms.patience if first else self.terms.return_patience

    def _say_who_is_missing(self, missing: List[int], now: float) -> None:
        if now - self._told_at >= 60.0:
            self._told_at = now
            self.note("waiting for " + in_words(missing))
        if self._unsaid is not None and now - self._since >= self.QUIET:
            self._say(self._unsaid, last=False)
            self._unsaid = None

    def _open(self, now: float) -> None:
        """Open the next attempt: all are there."""
        if self._unsaid is not None:
            self._say(self._unsaid, last=False)
            self._unsaid = None
        if self._is_lost_again():
            return
        known = self._known
        if known.attempt and self._was_interrupted():
            self._history.say(known.attempt, "NODE_FAIL", "node 0 was replaced", False)
        self._known = known = known._replace(began=known.began or time.time())
        self._party = {rank: guest.instance for rank, guest in self.guests.items()}
        self._done = set()
        self._opened_at = now
        number = known.attempt + 1 if self.terms.unshared else None
        self.directive = {
            "do": "run",
            "incarnation": "%s.%s" % (self._party[0], os.urandom(4).hex()),
            "master_port": self._free_port(),
            "number": number,
            "failures": known.failures,
            "began": known.began,
            "warned": False,
        }

    def _is_lost_again(self) -> bool:
        """End the run when earlier pods of node 0 left it again and again soon after the start: this one knows of them by their records only."""
        lost = [] if self._party else self._history.early_losses(self.EARLY)
        if len(lost) <= self.EARLY_LOSSES:
            return False
        self._known = self._known._replace(attempt=max(self._known.attempt, lost[0]))
        words = "node 0 was lost or killed %d times in a row soon after the start" % len(lost)
        self._finish("lost", words + "; the kernel may have killed it because memory was low")
        return True

    def _was_interrupted(self) -> bool:
        """Whether the last attempt was one of a node 0 that is no more, and none of the others says that it failed by itself."""
        states = [guest.state for guest in self.guests.values()]
        return not self._party and not any(state.own for state in states)

    def _watch(self, now: float) -> None:
        """See whether the attempt has come to its end."""
        whys = [self._why_it_ends(rank, now) for rank in self._party]
        found = next((why for why in whys if why is not None), None)
        if found is None and self._time_is_over():
            found = AttemptEnd("time_limit", "the time limit is reached", now)
        if found is not None:
            self._ending = found
            reason = "time_limit" if found.kind == "time_limit" else "peer"
            self.note("the attempt ends: " + found.words)
            self.directive = {"do": "stop", "reason": reason, **self._memory()}
        elif self._done.issuperset(self._party):
            self._finish(None, "all nodes have succeeded")
        elif not self.directive["warned"] and self._time_is_over(self._warning()):
            self.directive = {**self.directive, "warned": True}

    def _why_it_ends(self, rank: int, now: float) -> Optional[AttemptEnd]:
        guest, state = self.guests[rank], self.guests[rank].state
        if rank in self._done:
            return None  # whatever becomes of its pod now
        if self._is_lost(rank, now):
            return AttemptEnd("lost", guest.words + " was lost or replaced", now)
        if state.leaving is not None:
            return AttemptEnd("outside", "%s got %s" % (guest.words, state.leaving), now)
        if state.incarnation != self.directive.get("incarnation"):
            return None  # it has not begun yet
        if state.failing or state.exit_code is not None:
            kind = "failure" if state.own or state.failing else "outside"
            return AttemptEnd(kind, guest.words + " failed", now)
        return None

    def _is_lost(self, rank: int, now: float) -> bool:
        guest = self.guests[rank]
        gone = guest.cut_at is not None and now - guest.cut_at > self.RETURN
        return gone or guest.instance != self._party[rank]

    def _end(self, ending: AttemptEnd, now: float) -> None:
        """Wait until no node runs anything more; then see what is next."""
        lost = [rank for rank in self._party if self._is_lost(rank, now)]
        still = [rank for rank in self._party if rank not in lost and self._runs(rank)]
        if still and now - ending.since < self.STUCK:
            return
        outside = [guest.words for guest in self.guests.values() if guest.state.leaving]
        if ending.kind == "failure" and (lost or still):
            gone = in_words(sorted([*lost, *still]))
            ending = AttemptEnd("lost", gone + " was lost or replaced", ending.since)
        elif ending.kind == "failure" and outside:
            ending = AttemptEnd(
                "outside", ", ".join(outside) + " was stopped from outside", ending.since
            )
        self._ending = None
        self._decide(ending, now)

    def _runs(self, rank: int) -> bool:
        guest = self.guests[rank]
        return guest.cut_at is not None or guest.state.running

    def _decide(self, ending: AttemptEnd, now: float) -> None:
        known = self._known
        self._losses = self._losses + 1 if self._is_early_loss(ending, now) else 0
        if self._losses > self.EARLY_LOSSES:
            # Such as the kernel's end of a whole container for want of memory, again and again.
            words = "%s, %d times in a row soon after the start" % (ending.words, self._losses)
            self._finish("lost", words)
            return
        if ending.kind == "failure":
            known = known._replace(failures=known.failures + 1)
        failures = max(known.failures, self._history.failures())
        self._known = known._replace(failures=failures)
        fenced = any(guest.state.exit_code == EXIT_FENCED for guest in self.guests.values())
        too_many = ending.kind == "failure" and failures > self.terms.max_restarts
        if fenced or too_many or ending.kind == "time_limit" or self._history.cancelled():
            self._finish(ending.kind, ending.words)
            return
        self._unsaid = ending
        self._since, self._told_at = now, now + 3.0 - 60.0
        self.directive = {"do": "wait", **self._memory()}

    def _is_early_loss(self, ending: AttemptEnd, now: float) -> bool:
        return ending.kind == "lost" and now - self._opened_at < self.EARLY

    def _finish(self, kind: Optional[str], words: str) -> None:
        self.note("no further attempt: " + words)
        if kind in ("time_limit", "lost"):
            self._say(AttemptEnd(kind or "", words, 0.0), last=True)
        self.finished = True
        self.directive = {"do": "finish", "succeeded": kind is None, **self._memory()}

    def _say(self, ending: AttemptEnd, last: bool) -> None:
        if self._known.attempt:
            verdicts = {"time_limit": "TIMEOUT", "lost": "NODE_FAIL"}
            verdict = verdicts.get(ending.kind)
            self._history.say(self._known.attempt, verdict, ending.words, last)

    def _memory(self) -> Dict[str, Any]:
        """What the nodes keep for a node 0 that comes anew."""
        return {"failures": self._known.failures, "began": self._known.began}

    def _warning(self) -> float:
        return min(self.WARNING, (self.terms.time_limit or 0.0) / 2)

    def _time_is_over(self, before: float = 0.0) -> bool:
        limit, began = self.terms.time_limit, self._known.began
        return limit is not None and began is not None and time.time() >= began + limit - before


def in_words(ranks: List[int]) -> str:
    """Nodes by their ranks, as a person would name them."""
    shown = ", ".join(str(rank) for rank in ranks[:20])
    more = " and %d more" % (len(ranks) - 20) if len(ranks) > 20 else ""
    return ("node " if len(ranks) == 1 else "nodes ") + shown + more
