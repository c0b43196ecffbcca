"""The program of a pod: it meets those of the other pods, and runs its node once for each attempt.

It starts no rank itself: each attempt is a process of the program `node`, which it tells when to end and hears from by a socket (`Control`). So nothing that holds
a node up (its storage, a debugger) makes this pod look lost to the others.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import Any, Dict, List, NamedTuple, Optional, Set, Union

from .claims import free_port
from .contract import EXIT_LAUNCHER, STOP_SIGNALS, WARNING_SIGNALS
from .frames import CUT_OFF
from .history import History
from .host import Host, listen
from .meeting import Meeting, NodeState, Terms
from .node_process import NodeProcess, end_all_below, write_out
from .ranks import STOPPED
from .system import Signals, exit_of, send, signal_name
from .visitor import Dialer, Visitor
from .wire import Card


class PodArguments(NamedTuple):
    """What the engine says about this pod."""

    node_rank: int
    nodes: int
    master_addr: str
    meeting_port: int
    scheduler_id: str
    max_restarts: int
    node_name: str
    time_limit: Optional[float]
    patience: float
    return_patience: float
    task: Optional[int]
    unshared: bool
    frames: bool
    quiet: bool
    no_signal_codes: bool


class Pod:
    """One pod of a run, from its first word to its last."""

    LAST_WORDS = 30.0
    """Seconds for which node 0 waits at the end for the others to leave."""

    def __init__(
        self, arguments: PodArguments, run_id: str, key: bytes, history: History, signals: Signals
    ) -> None:
        self._arguments = arguments
        self._history = history
        self._signals = signals
        self._state = NodeState()
        self._node: Optional[NodeProcess] = None
        self._ran: Set[str] = set()
        self._notes: List[str] = []
        self._exit_code: Optional[int] = None
        self._finish_by: Optional[float] = None
        self._told_at = time.monotonic() - 55.0
        self._noted = self._run_failed = False
        self.gave_up: Optional[str] = None
        self._card = Card(
            run_id,
            arguments.nodes,
            arguments.node_rank,
            arguments.node_name,
            os.urandom(8).hex(),
            time.time(),
        )
        self._meeting: Optional[Meeting] = None
        self._link: Optional[Union[Host, Visitor]] = None
        if arguments.node_rank == 0:
            terms = Terms(
                arguments.nodes,
                arguments.max_restarts,
                arguments.time_limit,
                arguments.patience,
                arguments.return_patience,
                arguments.unshared,
            )
            self._meeting = Meeting(terms, history, free_port, self.note)
            self._meeting.join(0, self._card.instance, self._card.born, self._card.name)
            if arguments.nodes > 1:
                listener = listen(arguments.meeting_port, 60.0)
                self._link = Host(self._card, key, listener, self._meeting)
        else:
            dialer = Dialer(arguments.master_addr, arguments.meeting_port)
            self._link = Visitor(self._card, key, dialer)

    def note(self, text: str) -> None:
        """Say something to people: on stderr, and in the node's log."""
        with contextlib.suppress(OSError):
            os.write(2, ("hyperpod: " + text + "\n").encode("utf-8", "backslashreplace"))
        if self._node is not None:
            self._node.tell({"note": text})
        else:
            self._notes = [*self._notes[-50:], text]

    def run(self) -> int:
        """Run the pod; its exit code."""
        while not self._turn():
            pass
        if self._link is not None:
            self._link.close()
        return self._outcome()

    def _note_over(self) -> None:
        """Write down that all is over: where this program is started again, it must do nothing then."""
        waits_no_more = self.gave_up is None or self._meeting is not None
        if waits_no_more and not self._noted:
            self._noted = True
            self._history.note_over(self._arguments.node_rank, self._outcome())

    # ---- one turn

    def _turn(self) -> bool:
        """Wait a little, then see to everything that may have happened; True when all is over."""
        self._wait(0.25)
        for number in self._signals.take():
            self._take_signal(number)
        self._look_at_node()
        now = time.monotonic()
        directive = self._hear(now)
        self._obey(directive)
        self._say(now)
        return self._is_over(directive, now)

    def _wait(self, seconds: float) -> None:
        poll = select.poll()
        reading, writing = self._link.sockets if self._link else ([], [])
        for sock in reading:
            poll.register(sock, select.POLLIN)
        for sock in writing:
            poll.register(sock, select.POLLIN | select.POLLOUT)
        poll.register(self._signals.bell, select.POLLIN)
        if self._node is not None and self._node.end is None:
            poll.register(self._node.fileno(), select.POLLIN)
        poll.poll(seconds * 1000)
        self._signals.wait(0.0)

    def _take_signal(self, number: int) -> None:
        if number in STOP_SIGNALS and self._state.leaving is None:
            self._state = self._state._replace(leaving=signal_name(number))
            self.note("got %s: this pod ends" % signal_name(number))
        if self._node is not None and number in (*STOP_SIGNALS, *WARNING_SIGNALS):
            self._node.told = self._node.told or signal_name(number)
            send(self._node.pid, number)

    def _look_at_node(self) -> None:
        """Hear what the node's program said, and wait for it and for orphans."""
        node = self._node
        if node is not None:
            node.read()
            self._state = self._state._replace(
                attempt=max(self._state.attempt, node.attempt), failing=node.failing
            )
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if node is not None and pid == node.pid:
                node.read()
                self._take_end(node, exit_of(status)[0])

    def _take_end(self, node: NodeProcess, exit_code: int) -> None:
        end = node.end
        if end is None:  # it came to no attempt, or was killed
            end = {"own": exit_code != 0 and node.told is None}
            end_all_below()
            if self._arguments.frames:
                write_out(CUT_OFF)
            if node.attempt:
                rank = self._arguments.node_rank
                self._history.node_was_killed(node.attempt, rank, exit_code)
        self._exit_code = exit_code
        self._node = None
        node.close()
        self._state = self._state._replace(
            running=False,
            failing=False,
            exit_code=exit_code,
            own=bool(end.get("own")),
            attempt=max(self._state.attempt, node.attempt),
        )

    def _hear(self, now: float) -> Dict[str, Any]:
        """What is to be done."""
        if self._link is not None:
            self._link.turn(now)
        if self._meeting is not None:
            self._meeting.tell(0, self._state)
            self._meeting.step(now)
            self.gave_up = self._meeting.gave_up
            return self._meeting.directive
        visitor = self._link
        assert isinstance(visitor, Visitor)
        if visitor.away_since is not None and self._node is None:
            self._wait_for_host(visitor, visitor.away_since, now)
        return {"do": "finish"} if self.gave_up else visitor.directive(now)

    def _wait_for_host(self, visitor: Visitor, since: float, now: float) -> None:
        arguments = self._arguments
        where = "node 0 at %s:%d" % (arguments.master_addr, arguments.meeting_port)
        why = visitor.trouble or visitor.dialer.trouble
        patience = arguments.return_patience if self._ran else arguments.patience
        if now - since > patience:
            self.gave_up = "%s did not connect within %d s: %s" % (where, patience, why)
            self.note(self.gave_up)
        elif now - self._told_at > 60.0:
            self._told_at = now
            self.note("waiting for %s: %s" % (where, why))

    def _obey(self, directive: Dict[str, Any]) -> None:
        do, state, node = directive["do"], self._state, self._node
        failures, began = directive.get("failures"), directive.get("began")
        if isinstance(failures, int) and isinstance(began, (int, float)):
            self._state = state._replace(failures=failures, began=began)
        if node is not None:
            if do != "run" or directive.get("incarnation") != node.incarnation:
                node.stop("time_limit" if directive.get("reason") == "time_limit" else "peer")
            elif directive.get("warned") and not node.warned:
                node.warned = True
                send(node.pid, signal.SIGUSR2)
        elif do == "run" and state.leaving is None:
            self._start(directive)

    def _start(self, directive: Dict[str, Any]) -> None:
        incarnation, port = directive.get("incarnation"), directive.get("master_port")
        if not isinstance(incarnation, str) or not isinstance(port, int):
            return
        if incarnation in self._ran:
            return
        self._ran.add(incarnation)
        number = directive.get("number")
        words = self._words(incarnation, port, number if isinstance(number, int) else None)
        self._node = NodeProcess(words, incarnation)
        self._state = self._state._replace(
            running=True, incarnation=incarnation, exit_code=None, own=False
        )
        notes, self._notes = self._notes, []
        for text in notes:
            self._node.tell({"note": text})

    def _words(self, incarnation: str, port: int, number: Optional[int]) -> List[str]:
        """The arguments of `node`. Nothing of a message but its incarnation's text and two numbers comes into them."""
        arguments = self._arguments
        options = {
            "node-rank": arguments.node_rank,
            "nodes": arguments.nodes,
            "master-addr": arguments.master_addr if arguments.nodes > 1 else "127.0.0.1",
            "master-port": port,
            "scheduler-id": arguments.scheduler_id,
            "incarnation": incarnation,
            "node-name": arguments.node_name,
            "attempt": number if arguments.unshared else None,
            "task": arguments.task,
        }
        words = ["--%s=%s" % option for option in options.items() if option[1] is not None]
        switches = {
            "--unshared": arguments.unshared,
            "--frames": arguments.frames,
            "--quiet": arguments.quiet,
        }
        return [*words, *(switch for switch, wanted in switches.items() if wanted)]

    def _say(self, now: float) -> None:
        if isinstance(self._link, Visitor):
            self._link.tell(self._state._asdict(), now)
        elif self._meeting is not None:
            self._meeting.tell(0, self._state)
            if self._link is not None:
                self._link.announce(now)

    def _is_over(self, directive: Dict[str, Any], now: float) -> bool:
        if self._node is not None:
            return False
        if self._state.leaving is not None or directive["do"] == "gone":
            return True
        if directive["do"] != "finish":
            return False
        if directive.get("succeeded") is True and self._exit_code is None:
            self._exit_code = 0  # a pod made anew after its node had succeeded
        self._run_failed = directive.get("succeeded") is False
        self._note_over()
        if not isinstance(self._link, Host):
            return True
        self._finish_by = self._finish_by or now + self.LAST_WORDS
        return self._link.guests == 0 or now > self._finish_by

    def _outcome(self) -> int:
        """The pod's exit code; node 0's stands for all."""
        code, leaving = self._exit_code, self._state.leaving is not None
        if code is None:
            return STOPPED.exit_code if leaving else EXIT_LAUNCHER
        if leaving:
            return code
        if code == 0 and self._meeting is not None:
            code = self._meeting.exit_code
        elif code == 0 and self._run_failed:  # this node was done before another one failed
            code = 1
        return 1 if code >= 128 and self._arguments.no_signal_codes else code
