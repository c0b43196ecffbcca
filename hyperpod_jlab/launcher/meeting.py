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
            is_valid = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
            return value if is_valid else default

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


class Peer:
    """A node as node 0 sees it. `instance` tells a pod from the one that had its place before."""

    def __init__(self, rank: int, instance: str, created_at: float, name: str) -> None:
        self.rank = rank
        self.instance = instance
        self.created_at = created_at
        self.name = name
        self.state = NodeState()
        self.is_known = False
        self.has_left = False
        """It said that it will not come back."""
        self.disconnected_at: Optional[float] = None

    @property
    def description(self) -> str:
        """The node as people call it."""
        return "node %d (%s)" % (self.rank, self.name)


class EndCause(NamedTuple):
    """Why an attempt is being ended: `kind` is failure, outside, lost or time_limit."""

    kind: str
    description: str
    since: float


class RendezvousConfig(NamedTuple):
    """What the meeting keeps to: seconds, but for the numbers of nodes and restarts.

    `first_timeout` is for the first meeting (images are fetched, nodes made), `return_timeout` for those after an attempt.
    """

    nodes: int
    max_restarts: int
    time_limit: Optional[float]
    first_timeout: float
    return_timeout: float
    unshared: bool


class Coordinator:
    """Node 0's part. `step` is to be called often; it reads `guests` and changes `directive`."""

    RETURN_S = 10.0
    """Seconds in which a node whose connection was cut may come back as if nothing had been."""
    STUCK_AFTER_S = 600.0
    """Seconds after which a node that does not end its ranks counts as lost."""
    QUIET_S = 2.0
    """Seconds for which a gathering has to last before it is written down."""
    WARNING_S = 120.0
    """Seconds before the time limit at which the ranks are warned, as on Slurm."""

    EARLY_S = 600.0
    MAX_EARLY_LOSSES = 5
    """So many losses in a row, each within `EARLY` seconds of the attempt's start, are taken; then it is the run's own doing."""

    def __init__(
        self,
        config: RendezvousConfig,
        history: History,
        free_port: Callable[[], int],
        log_note: Callable[[str], None],
    ) -> None:
        self.config = config
        self.peers: Dict[int, Peer] = {}
        self.directive: Dict[str, Any] = {"do": "wait"}
        self.finished = False
        self.gave_up: Optional[str] = None
        """Whom it waited for in vain, in words."""
        self._history = history
        self._free_port = free_port
        self.log_note = log_note
        self._merged_state = NodeState()
        self._members: Dict[int, str] = {}
        self._finished_ranks: Set[int] = set()
        self._ending: Optional[EndCause] = None
        self._phase_since = self._opened_at = time.monotonic()
        self._losses = 0
        self._reported_at = self._phase_since + 3.0 - 60.0
        self._unrecorded_end: Optional[EndCause] = None

    # ---- what the connections tell

    def join(self, rank: int, instance: str, created_at: float, name: str) -> bool:
        """A node is connected; False when a newer pod has its place."""
        peer = self.peers.get(rank)
        if peer is not None and peer.instance != instance:
            if peer.created_at > created_at:
                return False
            self.log_note("%s was replaced by a new pod (%s)" % (peer.description, name))
            peer = None
        if peer is None:
            peer = self.peers[rank] = Peer(rank, instance, created_at, name)
        peer.disconnected_at = None
        return True

    def update_state(self, rank: int, state: NodeState) -> None:
        """A node says how things stand with it."""
        self.peers[rank].state, self.peers[rank].is_known = state, True
        is_current = state.incarnation == self.directive.get("incarnation")
        if is_current and state.exit_code == 0 and not state.running:
            self._finished_ranks.add(rank)
        merged = self._merged_state
        start_times = [
            start_time for start_time in (merged.began, state.began) if start_time is not None
        ]
        self._merged_state = merged._replace(
            attempt=max(merged.attempt, state.attempt),
            failures=max(merged.failures, state.failures),
            began=min(start_times) if start_times else None,
        )

    def leave(self, rank: int) -> None:
        """A node says that it will not come back."""
        self.peers[rank].has_left = True

    def disconnect(self, rank: int, instance: str, now: float) -> None:
        """A node's connection was cut."""
        peer = self.peers.get(rank)
        if peer is not None and peer.instance == instance and peer.disconnected_at is None:
            peer.disconnected_at = now

    def is_awaited(self, now: float) -> bool:
        """Whether a node may still have to hear that all is over: it has not left, and is there or was so a moment ago."""
        return any(
            not peer.has_left
            and (peer.disconnected_at is None or now - peer.disconnected_at <= self.RETURN_S)
            for rank, peer in self.peers.items()
            if rank != 0
        )

    # ---- what becomes of it

    def advance(self, now: float) -> None:
        """Do what is due at this moment (of the monotonic clock)."""
        if self.finished:
            return
        if self.directive["do"] == "run":
            self._check_members(now)
        if self._ending is not None:
            self._end_attempt(self._ending, now)
        elif self.directive["do"] == "wait":
            self._wait_for_peers(now)

    @property
    def exit_code(self) -> int:
        """The exit code of the run as a whole: that of a node that failed, or 0."""
        if self.directive.get("succeeded") is True:
            return 0
        codes = [peer.state.exit_code for peer in self.peers.values()]
        own = [peer.state.exit_code for peer in self.peers.values() if peer.state.own]
        return next((code for code in [*own, *codes] if code), EXIT_LAUNCHER)

    def missing_ranks(self) -> List[int]:
        """The nodes that an attempt would have to wait for."""
        return [rank for rank in range(self.config.nodes) if not self._is_ready(rank)]

    def _is_ready(self, rank: int) -> bool:
        peer = self.peers.get(rank)
        if peer is None or peer.disconnected_at is not None or not peer.is_known:
            return False
        return not peer.state.running and peer.state.leaving is None

    def _wait_for_peers(self, now: float) -> None:
        missing_ranks = self.missing_ranks()
        if self._is_time_over():
            self._finish("time_limit", "it reached its time limit")
        elif not missing_ranks:
            self._open_attempt(now)
        elif now - self._phase_since > self._timeout():
            self.gave_up = "%s did not connect within %d s" % (
                format_ranks(missing_ranks),
                self._timeout(),
            )
            self.log_note(self.gave_up)
            self._finish("lost", self.gave_up)
        else:
            self._report_missing(missing_ranks, now)

    def _timeout(self) -> float:
        first = not self._merged_state.attempt
        return self.config.first_timeout if first else self.config.return_timeout

    def _report_missing(self, missing_ranks: List[int], now: float) -> None:
        if now - self._reported_at >= 60.0:
            self._reported_at = now
            self.log_note("waiting for " + format_ranks(missing_ranks))
        if self._unrecorded_end is not None and now - self._phase_since >= self.QUIET_S:
            self._record_end(self._unrecorded_end, last=False)
            self._unrecorded_end = None

    def _open_attempt(self, now: float) -> None:
        """Open the next attempt: all are there."""
        if self._unrecorded_end is not None:
            self._record_end(self._unrecorded_end, last=False)
            self._unrecorded_end = None
        if self._has_repeated_losses():
            return
        merged = self._merged_state
        if merged.attempt and self._was_interrupted():
            self._history.record_observation(
                merged.attempt, "NODE_FAIL", "node 0 was replaced", False
            )
        self._merged_state = merged = merged._replace(began=merged.began or time.time())
        self._members = {rank: peer.instance for rank, peer in self.peers.items()}
        self._finished_ranks = set()
        self._opened_at = now
        number = merged.attempt + 1 if self.config.unshared else None
        self.directive = {
            "do": "run",
            "incarnation": "%s.%s" % (self._members[0], os.urandom(4).hex()),
            "master_port": self._free_port(),
            "number": number,
            "failures": merged.failures,
            "began": merged.began,
            "warned": False,
        }

    def _has_repeated_losses(self) -> bool:
        """End the run when earlier pods of node 0 left it again and again soon after the start: this one knows of them by their records only."""
        lost_ranks = [] if self._members else self._history.early_losses(self.EARLY_S)
        if len(lost_ranks) <= self.MAX_EARLY_LOSSES:
            return False
        self._merged_state = self._merged_state._replace(
            attempt=max(self._merged_state.attempt, lost_ranks[0])
        )
        reason = "node 0 was lost or killed %d times in a row soon after the start" % len(
            lost_ranks
        )
        self._finish("lost", reason + "; the kernel may have killed it because memory was low")
        return True

    def _was_interrupted(self) -> bool:
        """Whether the last attempt was one of a node 0 that is no more, and none of the others says that it failed by itself."""
        states = [peer.state for peer in self.peers.values()]
        return not self._members and not any(state.own for state in states)

    def _check_members(self, now: float) -> None:
        """See whether the attempt has come to its end."""
        causes = [self._find_end_cause(rank, now) for rank in self._members]
        cause = next((cause_found for cause_found in causes if cause_found is not None), None)
        if cause is None and self._is_time_over():
            cause = EndCause("time_limit", "the time limit is reached", now)
        if cause is not None:
            self._ending = cause
            reason = "time_limit" if cause.kind == "time_limit" else "peer"
            if len(self._members) > 1:  # alone, a node knows why it ends
                self.log_note("the attempt ends: " + cause.description)
            self.directive = {"do": "stop", "reason": reason, **self._memory()}
        elif self._finished_ranks.issuperset(self._members):
            self._finish(None, "all nodes have succeeded")
        elif not self.directive["warned"] and self._is_time_over(self._warning()):
            self.directive = {**self.directive, "warned": True}

    def _find_end_cause(self, rank: int, now: float) -> Optional[EndCause]:
        peer, state = self.peers[rank], self.peers[rank].state
        if rank in self._finished_ranks:
            return None  # whatever becomes of its pod now
        if self._is_lost(rank, now):
            return EndCause("lost", peer.description + " was lost or replaced", now)
        if state.leaving is not None:
            return EndCause("outside", "%s got %s" % (peer.description, state.leaving), now)
        if state.incarnation != self.directive.get("incarnation"):
            return None  # it has not begun yet
        if state.failing or state.exit_code is not None:
            kind = "failure" if state.own or state.failing else "outside"
            return EndCause(kind, peer.description + " failed", now)
        return None

    def _is_lost(self, rank: int, now: float) -> bool:
        peer = self.peers[rank]
        is_timed_out = (
            peer.disconnected_at is not None and now - peer.disconnected_at > self.RETURN_S
        )
        return is_timed_out or peer.instance != self._members[rank]

    def _end_attempt(self, ending: EndCause, now: float) -> None:
        """Wait until no node runs anything more; then see what is next."""
        lost_ranks = [rank for rank in self._members if self._is_lost(rank, now)]
        running_ranks = [
            rank for rank in self._members if rank not in lost_ranks and self._runs(rank)
        ]
        if running_ranks and now - ending.since < self.STUCK_AFTER_S:
            return
        leaving_nodes = [peer.description for peer in self.peers.values() if peer.state.leaving]
        if ending.kind == "failure" and (lost_ranks or running_ranks):
            ranks_text = format_ranks(sorted([*lost_ranks, *running_ranks]))
            ending = EndCause("lost", ranks_text + " was lost or replaced", ending.since)
        elif ending.kind == "failure" and leaving_nodes:
            ending = EndCause(
                "outside", ", ".join(leaving_nodes) + " was stopped from outside", ending.since
            )
        self._ending = None
        self._decide_next(ending, now)

    def _runs(self, rank: int) -> bool:
        peer = self.peers[rank]
        return peer.disconnected_at is not None or peer.state.running

    def _decide_next(self, ending: EndCause, now: float) -> None:
        merged = self._merged_state
        self._losses = self._losses + 1 if self._is_early_loss(ending, now) else 0
        if self._losses > self.MAX_EARLY_LOSSES:
            # Such as the kernel's end of a whole container for want of memory, again and again.
            reason = "%s, %d times in a row soon after the start" % (
                ending.description,
                self._losses,
            )
            self._finish("lost", reason)
            return
        if ending.kind == "failure":
            merged = merged._replace(failures=merged.failures + 1)
        failures = max(merged.failures, self._history.failures())
        self._merged_state = merged._replace(failures=failures)
        fenced = any(peer.state.exit_code == EXIT_FENCED for peer in self.peers.values())
        exceeds_restarts = ending.kind == "failure" and failures > self.config.max_restarts
        if fenced or exceeds_restarts or ending.kind == "time_limit" or self._history.cancelled():
            self._finish(ending.kind, ending.description)
            return
        self._unrecorded_end = ending
        self._phase_since, self._reported_at = now, now + 3.0 - 60.0
        self.directive = {"do": "wait", **self._memory()}

    def _is_early_loss(self, ending: EndCause, now: float) -> bool:
        return ending.kind == "lost" and now - self._opened_at < self.EARLY_S

    def _finish(self, kind: Optional[str], reason: str) -> None:
        self.log_note("no further attempt: " + reason)
        if kind in ("time_limit", "lost"):
            self._record_end(EndCause(kind or "", reason, 0.0), last=True)
        self.finished = True
        self.directive = {"do": "finish", "succeeded": kind is None, **self._memory()}

    def _record_end(self, ending: EndCause, last: bool) -> None:
        if self._merged_state.attempt:
            verdict_by_kind = {"time_limit": "TIMEOUT", "lost": "NODE_FAIL"}
            verdict = verdict_by_kind.get(ending.kind)
            self._history.record_observation(
                self._merged_state.attempt, verdict, ending.description, last
            )

    def _memory(self) -> Dict[str, Any]:
        """What the nodes keep for a node 0 that comes anew."""
        return {"failures": self._merged_state.failures, "began": self._merged_state.began}

    def _warning(self) -> float:
        return min(self.WARNING_S, (self.config.time_limit or 0.0) / 2)

    def _is_time_over(self, before: float = 0.0) -> bool:
        limit, start_time = self.config.time_limit, self._merged_state.began
        return (
            limit is not None
            and start_time is not None
            and time.time() >= start_time + limit - before
        )


def format_ranks(ranks: List[int]) -> str:
    """Nodes by their ranks, as a person would name them."""
    shown_text = ", ".join(str(rank) for rank in ranks[:20])
    more_text = " and %d more" % (len(ranks) - 20) if len(ranks) > 20 else ""
    return ("node " if len(ranks) == 1 else "nodes ") + shown_text + more_text
