"""The rendezvous: the nodes of a run meet by files on the partition, attempt after attempt, where no scheduler starts them together.

Each node's launcher keeps ``status/present/node-R.json``: who it is and what it does, with a counter that shows that it lives. Node 0's file also holds the
order for all: wait, run an attempt, stop, finish. It opens an attempt when all nodes are present and idle (``attempt-N/claim.json`` with the members' instances),
and writes down why one ended (``end.json``). It keeps nothing else: a launcher that starts again, for whatever reason, goes on from the files.

A file may be seen late, for instance where attributes are cached. So what lives is what changes by the reader's own clock; and all orders are in one file that is
there before anybody needs it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from .bundle_files import AttemptPaths, BundleFiles, read_json
from .claims import (
    attempt_numbers,
    check_fence,
    claim_fence,
    free_port,
    has_succeeded,
    is_cancel_requested,
    open_attempt,
)
from .contract import EXIT_FENCED, EXIT_LAUNCHER, HANDLED_SIGNALS, STOP_SIGNALS
from .heartbeat import Heartbeat
from .plan import NodeArguments
from .system import Signals, signal_name


def read_presence(path: str) -> Optional[Dict[str, Any]]:
    """A node's presence. It is opened each time: that asks the server, where `stat` may answer from a cache."""
    return read_json(path)


class Peers:
    """The other nodes of an attempt, as this node's loop sees them. Here a scheduler has started them all: only the attempt's records tell."""

    def __init__(self, attempt_paths: AttemptPaths, arguments: NodeArguments) -> None:
        self._attempt_paths = attempt_paths
        self._single = arguments.nodes == 1
        # Two files a look: 64 nodes read 64 files a second.
        self._every = 2.0 if self._single else max(1.0, arguments.nodes / 32.0)
        self._next = 0.0

    def poll(self) -> Optional[str]:
        """Why this node has to stop, or None."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + self._every
        if os.path.exists(self._attempt_paths.next_attempt):
            return "superseded"
        failed = None if self._single else read_json(self._attempt_paths.failed)
        if failed is not None and failed.get("node_rank") != self._attempt_paths.node_rank:
            return "peer"
        return None

    def announce(self, **changes: Any) -> None:
        """Tell the others how things stand here; here the records do."""

    def pop_notes(self) -> List[str]:
        """What is to be written into the node's log since the last call."""
        return []


class Sighting:
    """What this process has seen of a node's presence, by its own clock and its own looks."""

    LOST_S = 20.0
    """Seconds without a change after which a node is lost; longer where changes are seen late."""
    UNKNOWN_S = 90.0
    """The same before two changes have told how late that is; caches of attributes hold for 60 s."""

    def __init__(self, path: str, interval: float) -> None:
        self._path = path
        self._interval = interval
        self._looked_at: Optional[float] = None
        self._silent_s = self._longest_s = 0.0
        self._changes = 0
        self.document: Dict[str, Any] = {}

    def look(self, now: float) -> None:
        """Read the file. Of the time since the last look no more counts than a look takes: this process may have been held up."""
        document = read_presence(self._path)
        since = self._looked_at if self._looked_at is not None else now
        self._silent_s += min(now - since, 2 * self._interval)
        self._looked_at = now
        if document is None or document == self.document:
            return
        if document.get("instance") != self.instance:
            self._changes = 0
        else:
            self._changes += 1
            if self._changes > 1:
                self._longest_s = max(self._longest_s, self._silent_s)
        self.document, self._silent_s = document, 0.0

    @property
    def instance(self) -> Any:
        """The launcher that wrote it."""
        return self.document.get("instance")

    @property
    def is_lost(self) -> bool:
        """Whether nothing has changed for too long."""
        limit = self.LOST_S if self._changes > 1 else self.UNKNOWN_S
        return self._silent_s > max(limit, 5 * self._interval, 2 * self._longest_s)

    @property
    def is_live(self) -> bool:
        """Whether it is seen to live; a file alone may be that of a dead launcher."""
        return self._changes > 0 and not self.is_lost

    @property
    def is_ready(self) -> bool:
        """Whether it could take part in an attempt."""
        is_idle = not self.document.get("running") and not self.document.get("leaving")
        return self.is_live and is_idle


class EndCause(NamedTuple):
    """Why an attempt ends: `kind` is failure, outside, lost or time_limit."""

    kind: str
    description: str


class Leader:
    """Node 0's part: decides what is to be done, from what it sees of all nodes."""

    STUCK_AFTER_S = 600.0
    """Seconds after which a node that does not end its ranks counts as lost."""
    WARNING_S = 120.0
    """Seconds before the time limit at which the ranks are warned, as on Slurm."""
    EARLY_S = 600.0
    MAX_EARLY_LOSSES = 5
    """So many losses in a row, each within `EARLY_S` of the attempt's start, are accepted; then it is the run's own doing."""

    def __init__(self, member: Member, files: BundleFiles, status: str) -> None:
        self.order: Dict[str, Any] = {"do": "wait"}
        self.gave_up: Optional[str] = None
        """Whom it waited for in vain, in words."""
        self._member = member
        self._arguments = member.arguments
        self._files = files
        self._status = status
        self._peers = {
            rank: Sighting(presence_path(status, rank), member.interval) for rank in range(1, self._arguments.nodes)
        }
        claim_fence(files, status, self._arguments)
        self._since = self._opened_at = time.monotonic()
        self._reported_at = self._since + 3.0 - 60.0
        self._ending: Optional[EndCause] = None
        self._interrupted = False
        self._members: Dict[str, Any] = {}
        numbers = attempt_numbers(status)
        self._number = max(numbers) if numbers else 0
        claims = [self._read("claim.json", number) for number in sorted(numbers)]
        times = [claim["time"] for claim in claims if "time" in claim]
        self._began: Optional[float] = times[0] if times else None
        if self._number:
            self._resume(claims[-1])

    def _resume(self, claim: Mapping[str, Any]) -> None:
        """Go on from the newest attempt."""
        members = claim.get("members", {})
        if members.get("0") == self._member.instance:  # this launcher has opened it
            self._members = members
            self.order = {"do": "run", "attempt": self._number, "warned": False}
        elif has_succeeded(self._status, self._number, self._arguments.nodes):
            self._finish(None, "all nodes have succeeded")
        elif not self._read("end.json"):
            has_ended = self._read("node-0.json").get("ended_at") is not None
            failed = self._read("failed.json")
            is_own = failed.get("node_rank") == 0 and failed.get("stopped_by") is None
            kind = "failure" if is_own else "outside" if has_ended else "lost"
            self._interrupted = not is_own
            is_early = time.time() - claim.get("time", 0.0) < self.EARLY_S
            self._write_end(EndCause(kind, "node 0 was replaced"), is_early)
            losses = self._early_losses()
            if losses > self.MAX_EARLY_LOSSES:
                reason = "node 0 was lost or killed %d times in a row soon after the start" % losses
                self._finish("lost", reason + "; the kernel may have killed it because memory was low")

    def advance(self, now: float) -> None:
        """Do what is due at this moment (of the monotonic clock)."""
        if self.order["do"] == "finish":
            return
        for peer in self._peers.values():
            peer.look(now)
        if self.order["do"] == "run":
            self._check_members(now)
        if self._ending is not None:
            self._end_attempt(self._ending, now)
        elif self.order["do"] == "wait":
            self._wait_for_peers(now)

    @property
    def exit_code(self) -> int:
        """The exit code of the run as a whole: that of a node that failed by itself, if one did."""
        states = [self._state(rank) for rank in range(self._arguments.nodes)]
        own = [state.get("exit_code") for state in states if state.get("own")]
        return next((code for code in [*own, *(s.get("exit_code") for s in states)] if code), EXIT_LAUNCHER)

    # ---- between attempts

    def _wait_for_peers(self, now: float) -> None:
        missing = [rank for rank, peer in self._peers.items() if not peer.is_ready]
        arguments = self._arguments
        timeout = arguments.return_patience if self._number else arguments.patience
        if self._is_time_over():
            self._finish("time_limit", "it reached its time limit")
        elif not missing and not self._member.state["running"]:
            self._open_attempt(now)
        elif now - self._since > timeout:
            self.gave_up = "%s did not connect within %d s" % (format_ranks(missing), timeout)
            self._finish("lost", self.gave_up)
        elif now - self._reported_at >= 60.0:
            self._reported_at = now
            self._member.log_note("waiting for " + format_ranks(missing))

    def _open_attempt(self, now: float) -> None:
        if self._interrupted:
            self._interrupted = False
            if any(self._state(rank).get("attempt") == self._number for rank in self._peers):
                self._observe(EndCause("lost", "node 0 was replaced"), last=False)
        members = {str(rank): peer.instance for rank, peer in self._peers.items()}
        members["0"] = self._member.instance
        arguments = self._arguments._replace(
            incarnation="%s.%s" % (self._member.instance, os.urandom(4).hex()), master_port=free_port()
        )
        self._number = open_attempt(self._files, self._status, arguments, members)
        self._began = self._began or time.time()
        self._members, self._opened_at = members, now
        self.order = {"do": "run", "attempt": self._number, "warned": False}

    # ---- while one runs

    def _check_members(self, now: float) -> None:
        """See whether the attempt has come to its end."""
        causes = [self._find_end_cause(rank) for rank in range(len(self._members))]
        cause = next((cause_found for cause_found in causes if cause_found is not None), None)
        if cause is None and self._is_time_over():
            cause = EndCause("time_limit", "the time limit is reached")
        if cause is not None:
            self._ending, self._since = cause, now
            if self._peers:  # alone, a node knows why it ends
                self._member.log_note("the attempt ends: " + cause.description)
            reason = "time_limit" if cause.kind == "time_limit" else "peer"
            self.order = {"do": "stop", "attempt": self._number, "reason": reason}
        elif all(self._has_finished(rank) for rank in range(len(self._members))):
            self._finish(None, "all nodes have succeeded")
        elif not self.order["warned"]:
            self.order["warned"] = self._is_time_over(self._warning())

    def _find_end_cause(self, rank: int) -> Optional[EndCause]:
        state = self._state(rank)
        name = "node %d (%s)" % (rank, state.get("name"))
        if self._has_finished(rank):
            return None  # whatever becomes of its launcher now
        if self._is_lost(rank):
            if not self._peers[rank].is_lost:
                self._member.log_note("node %d was replaced by a new pod (%s)" % (rank, state.get("name")))
            return EndCause("lost", name + " was lost or replaced")
        if state.get("leaving"):
            return EndCause("outside", "%s got %s" % (name, state["leaving"]))
        if state.get("attempt") != self._number:
            return None  # it has not begun yet
        if state.get("failing") or state.get("exit_code") is not None:
            kind = "failure" if state.get("own") or state.get("failing") else "outside"
            return EndCause(kind, name + " failed")
        return None

    def _has_finished(self, rank: int) -> bool:
        """Whether a node's ranks have succeeded in this attempt; its record stays when its launcher is replaced."""
        state = self._state(rank)
        if state.get("instance") == self._members[str(rank)]:
            is_current = state.get("attempt") == self._number and not state.get("running")
            return is_current and state.get("exit_code") == 0
        return self._read("node-%d.json" % rank).get("exit_code") == 0

    def _is_lost(self, rank: int) -> bool:
        if rank == 0:
            return False
        peer = self._peers[rank]
        return peer.is_lost or (bool(peer.document) and peer.instance != self._members[str(rank)])

    def _end_attempt(self, ending: EndCause, now: float) -> None:
        """Wait until no node runs anything more; then see what is next."""
        ranks = range(len(self._members))
        lost = [rank for rank in ranks if self._is_lost(rank) and not self._has_finished(rank)]
        running = [rank for rank in ranks if rank not in lost and self._state(rank).get("running")]
        if running and now - self._since < self.STUCK_AFTER_S:
            return
        leaving = [rank for rank in ranks if self._state(rank).get("leaving")]
        if ending.kind == "failure" and (lost or running):
            text = format_ranks(sorted([*lost, *running]))
            ending = EndCause("lost", text + " was lost or replaced")
        elif ending.kind == "failure" and leaving:
            ending = EndCause("outside", format_ranks(leaving) + " was stopped from outside")
        self._write_end(ending, now - self._opened_at < self.EARLY_S)
        losses = self._early_losses()
        fenced = any(self._state(rank).get("exit_code") == EXIT_FENCED for rank in ranks)
        exceeds_restarts = ending.kind == "failure" and self._failures() > self._arguments.max_restarts
        if losses > self.MAX_EARLY_LOSSES:
            # Such as the kernel's end of a whole container for want of memory, again and again.
            reason = "%s, %d times in a row soon after the start" % (ending.description, losses)
            self._finish("lost", reason)
        elif fenced or exceeds_restarts or ending.kind == "time_limit" or is_cancel_requested(self._status):
            self._finish(ending.kind, ending.description)
        else:
            self._observe(ending, last=False)
            self._since, self._reported_at = now, now + 3.0 - 60.0
            self.order = {"do": "wait"}
        self._ending = None

    def _finish(self, kind: Optional[str], reason: str) -> None:
        self._member.log_note("no further attempt: " + reason)
        if kind in ("time_limit", "lost"):
            self._observe(EndCause(kind or "", reason), last=True)
        self.order = {"do": "finish", "succeeded": kind is None}

    # ---- records

    def _state(self, rank: int) -> Mapping[str, Any]:
        return self._member.state if rank == 0 else self._peers[rank].document

    def _read(self, name: str, number: Optional[int] = None) -> Dict[str, Any]:
        folder = "attempt-%d" % (number or self._number)
        return read_json(os.path.join(self._status, folder, name)) or {}

    def _write_end(self, ending: EndCause, is_early: bool) -> None:
        path = os.path.join(self._status, "attempt-%d" % self._number, "end.json")
        document = {"time": time.time(), "early": is_early, **ending._asdict()}
        self._files.write_once(path, document)

    def _ends(self) -> List[Dict[str, Any]]:
        """Why each attempt ended, in order."""
        return [self._read("end.json", number) for number in sorted(attempt_numbers(self._status))]

    def _failures(self) -> int:
        return sum(end.get("kind") == "failure" for end in self._ends())

    def _early_losses(self) -> int:
        """How many attempts in a row, up to the newest, lost a node soon after their start."""
        count = 0
        for end in reversed(self._ends()):
            if end.get("kind") != "lost" or not end.get("early"):
                break
            count += 1
        return count

    def _observe(self, ending: EndCause, last: bool) -> None:
        """Write down how an attempt ended; as another observer's word it does not change the node's records."""
        if not self._number:
            return
        now, reason = time.time(), ending.description
        document = {
            "time": now,
            "observer": "launcher",
            "scheduler_id": self._arguments.scheduler_id,
            "attempt": self._number,
            "state": "ended" if last else "waiting",
            "reason": reason if last else reason + "; the next attempt waits for all nodes",
            "reason_code": None if last else "recovering",
            "verdict": {"time_limit": "TIMEOUT", "lost": "NODE_FAIL"}.get(ending.kind),
        }
        folder = os.path.join(self._status, "observations")
        with contextlib.suppress(OSError):
            self._files.make_folders(folder)
            if document["verdict"] is not None:
                path = os.path.join(folder, "launcher.attempt-%d.json" % self._number)
                first = {**document, "time": now - 0.001, "reason": reason, "reason_code": None}
                self._files.write_once(path, first)
            self._files.write(os.path.join(folder, "launcher.json"), document)

    def _warning(self) -> float:
        return min(self.WARNING_S, (self._arguments.time_limit or 0.0) / 2)

    def _is_time_over(self, before: float = 0.0) -> bool:
        limit, began = self._arguments.time_limit, self._began
        return limit is not None and began is not None and time.time() >= began + limit - before


class Member(Peers):
    """This node in the rendezvous, from its first word to its last."""

    def __init__(self, files: BundleFiles, records: str, arguments: NodeArguments, signals: Signals) -> None:
        self.arguments = arguments
        # Node 0 reads all files, each node node 0's and its own: 64 nodes read 64 files a second.
        self.interval = min(10.0, max(0.5, arguments.nodes * 3 / 64.0))
        self.instance = arguments.instance or os.urandom(8).hex()
        self.state: Dict[str, Any] = {
            "instance": self.instance,
            "generation": 0,
            "beat": 0,
            "name": arguments.node_name,
            "attempt": 0,
            "running": False,
            "notes": [],
        }
        self.has_run = False
        self.gave_up: Optional[str] = None
        self._files = files
        self._records = records
        self._status = os.path.join(records, "status")
        self._signals = signals
        self._path = presence_path(self._status, arguments.node_rank)
        self._next = self._since = 0.0
        self._report_at = 0.0
        self._replaced = self._warned = False
        self._leader: Optional[Leader] = None
        self._head = Sighting(presence_path(self._status, 0), self.interval)

    # ---- while an attempt runs

    def poll(self) -> Optional[str]:
        """Say how things stand here, see what is to be done; why this node has to stop, or None."""
        now = time.monotonic()
        if now >= self._next:
            self._look(now)
        order = self._order()
        if self._replaced:
            return "superseded"
        if order["do"] != "run" or order.get("attempt") != self.state["attempt"]:
            return "time_limit" if order.get("reason") == "time_limit" else "peer"
        if order.get("warned") and not self._warned:
            self._warned = True
            os.kill(os.getpid(), signal.SIGUSR2)
        return None

    def announce(self, **changes: Any) -> None:
        """Tell the others how things stand here, at once."""
        self.state.update(changes)
        self._look(time.monotonic())

    def log_note(self, text: str) -> None:
        """Say something to people: on stderr, and in the node's log."""
        with contextlib.suppress(OSError):
            os.write(2, ("hyperpod: " + text + "\n").encode("utf-8", "backslashreplace"))
        self.state["notes"] = [*self.state["notes"][-50:], text]

    def pop_notes(self) -> List[str]:
        """What is to be written into the node's log since the last call."""
        notes: List[str] = self.state["notes"]
        self.state["notes"] = []
        return notes

    # ---- between attempts

    def wait_for_attempt(self) -> Optional[NodeArguments]:
        """Wait for an attempt that this node takes part in; None when there is none any more.

        Raises:
            FencedError: Another job holds the run's claim.
        """
        heartbeat = Heartbeat()
        self._files.make_folders(os.path.dirname(self._path))
        self._since = time.monotonic()
        self._report_at = self._since + 5.0
        while True:
            for number in self._signals.pop_signals():
                if number in STOP_SIGNALS:
                    self.log_note("got %s: this pod ends" % signal_name(number))
                    self.announce(leaving=signal_name(number))
            joined = self.find_attempt()
            if joined is not None or self.is_over:
                return joined
            heartbeat.beat(time.monotonic())
            self._signals.wait(0.25)

    def find_attempt(self) -> Optional[NodeArguments]:
        """One turn of waiting: the attempt that this node takes part in now, if there is one."""
        now = time.monotonic()
        if self._is_in() and now >= self._next:
            self._look(now)
        order = self._order()
        if order["do"] == "finish":
            self._record_end()
        elif order["do"] == "run" and order["attempt"] > self.state["attempt"] and not self.is_over:
            return self._join(order["attempt"])
        elif self._leader is None:
            self._wait_for_head(now)
        return None

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to do for this launcher."""
        is_gone = self._replaced or self.gave_up is not None or "leaving" in self.state
        return is_gone or self._order()["do"] == "finish"

    def _wait_for_head(self, now: float) -> None:
        arguments = self.arguments
        patience = arguments.return_patience if self.state["attempt"] else arguments.patience
        if self._head.is_live:
            self._since = now
        elif now - self._since > patience:
            self.gave_up = "node 0 did not connect within %d s" % patience
            self.log_note(self.gave_up)
        elif now >= self._report_at:
            self._report_at = now + 60.0
            self.log_note("waiting for node 0")

    def end_attempt(self, exit_code: int, own: bool) -> None:
        """Tell the others how this node's part of the attempt ended."""
        self.has_run = True
        self.announce(running=False, failing=False, exit_code=exit_code, own=own)

    def outcome(self) -> int:
        """The exit code; node 0's stands for all."""
        code, leaving = self.state.get("exit_code"), self.state.get("leaving")
        has_succeeded_all = self._order().get("succeeded")
        if code is None:
            return 0 if has_succeeded_all else 128 + signal.SIGTERM if leaving else EXIT_LAUNCHER
        if leaving:
            return int(code)
        if code == 0 and has_succeeded_all is False:  # this node was done before another one failed
            code = self._leader.exit_code if self._leader is not None else 1
        return 1 if code >= 128 and self.arguments.no_signal_codes else int(code)

    def previous_exit_code(self) -> Optional[int]:
        """What was written down when the run ended; node 0's word is for all: a launcher that came anew meanwhile has heard nothing."""
        for rank in (self.arguments.node_rank, 0):
            document = read_json(self._end_path(rank)) or {}
            code = document.get("exit_code")
            if document.get("scheduler_id") == self.arguments.scheduler_id and isinstance(code, int):
                return code
        return None

    def _record_end(self) -> None:
        """Write down that all is over: started again, as by ``restartPolicy: OnFailure``, this program must do nothing then."""
        rank = self.arguments.node_rank
        document = {
            "time": time.time(),
            "scheduler_id": self.arguments.scheduler_id,
            "node_rank": rank,
            "exit_code": self.outcome(),
        }
        with contextlib.suppress(OSError):
            self._files.make_folders(os.path.dirname(self._end_path(rank)))
            self._files.write(self._end_path(rank), document)

    def _end_path(self, rank: int) -> str:
        return os.path.join(self._status, "over", "node-%d.json" % rank)

    # ---- files

    def _is_in(self) -> bool:
        """Whether our job holds the run's claim, which node 0 makes. Before that nothing is written: it might be another job's place."""
        if self.state["generation"]:
            return True
        if self.arguments.node_rank == 0:
            claim_fence(self._files, self._status, self.arguments)
        elif not check_fence(self._status, self.arguments.scheduler_id):
            return False
        previous = read_presence(self._path) or {}
        if previous.get("instance") == self.instance:
            previous.pop("order", None)
            self.state.update(previous, running=False)
        else:
            self.state["generation"] = int(previous.get("generation", 0)) + 1
        if self.arguments.node_rank == 0:
            self._leader = Leader(self, self._files, self._status)
        return True

    def _look(self, now: float) -> None:
        """One turn: decide or hear what is to be done, and say how things stand here."""
        self._next = now + self.interval
        if not self.state["generation"]:  # we may not write there yet
            return
        if self._leader is not None:
            with contextlib.suppress(OSError):  # tried again at the next turn
                self._leader.advance(now)
            self.gave_up = self._leader.gave_up
        else:
            self._head.look(now)
        own = read_presence(self._path) or {}
        if own.get("instance") not in (None, self.instance):
            newer = (own.get("generation", 0), own["instance"])
            self._replaced = self._replaced or newer > (self.state["generation"], self.instance)
        if self._replaced:
            self.log_note("a newer pod has the place of node %d" % self.arguments.node_rank)
            return
        self.state["beat"] += 1
        order = {} if self._leader is None else {"order": self._leader.order}
        with contextlib.suppress(OSError):
            self._files.write(self._path, {**self.state, **order})

    def _order(self) -> Mapping[str, Any]:
        """What is to be done, as node 0 said last; without node 0 nothing goes on for long."""
        if self._leader is not None:
            return self._leader.order
        order = self._head.document.get("order", {"do": "wait"})
        return order if order["do"] == "finish" or self._head.is_live else {"do": "wait"}

    def _join(self, number: int) -> Optional[NodeArguments]:
        """Take part in an attempt, once, if node 0 has counted this launcher in."""
        check_fence(self._status, self.arguments.scheduler_id)
        paths = AttemptPaths("", self._records, number, self.arguments.node_rank)
        claim = read_json(os.path.join(paths.status, "claim.json")) or {}
        if claim.get("members", {}).get(str(self.arguments.node_rank)) != self.instance:
            return None
        if self.has_run:
            self._start_again()
            return None  # a signal came
        self.announce(attempt=number, running=True, failing=False, exit_code=None, own=False)
        return self.arguments._replace(incarnation=claim["incarnation"], master_port=claim["master_port"])

    def _start_again(self) -> None:
        """Become a new launcher for the next attempt: nothing is left over from the one before, and whoever comes back finds all in the files."""
        self.announce()  # the notes, too
        words = [word for word in sys.argv[1:] if not word.startswith("--instance=")]
        command = [sys.executable, "-I", "-X", "utf8", os.path.abspath(__file__), *words]
        # Signals wait until there are handlers again.
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
        if not self._signals.has_some:
            os.execv(sys.executable, [*command, "--instance=" + self.instance])  # noqa: S606
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)


def presence_path(status: str, rank: int) -> str:
    """Where a node says that it is there."""
    return os.path.join(status, "present", "node-%d.json" % rank)


def format_ranks(ranks: List[int]) -> str:
    """Nodes by their ranks, as a person would name them."""
    shown_text = ", ".join(str(rank) for rank in ranks[:20])
    more_text = " and %d more" % (len(ranks) - 20) if len(ranks) > 20 else ""
    return ("node " if len(ranks) == 1 else "nodes ") + shown_text + more_text
