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
from .heartbeat import Heartbeat
from .history import History
from .host import CoordinatorServer, listen
from .meeting import Coordinator, NodeState, RendezvousConfig
from .node_process import NodeProcess, end_descendants
from .ranks import STOPPED_FAILURE
from .system import Signals, parse_wait_status, send, signal_name
from .visitor import CoordinatorClient, Dialer
from .wire import PeerInfo


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
    quiet: bool
    no_signal_codes: bool


class Pod:
    """One pod of a run, from its first word to its last."""

    FINAL_REPORT_S = 30.0
    """Seconds for which node 0 waits at the end for the others to leave."""

    def __init__(
        self, arguments: PodArguments, run_id: str, key: bytes, history: History, signals: Signals
    ) -> None:
        self._arguments = arguments
        self._history = history
        self._signals = signals
        self._heartbeat = Heartbeat()
        self._state = NodeState()
        self._node: Optional[NodeProcess] = None
        self._finished_incarnations: Set[str] = set()
        self._notes: List[str] = []
        self._exit_code: Optional[int] = None
        self._deadline: Optional[float] = None
        self._reported_at = time.monotonic() - 55.0
        self._has_recorded_end = self._run_failed = False
        self.gave_up: Optional[str] = None
        self._card = PeerInfo(
            run_id,
            arguments.nodes,
            arguments.node_rank,
            arguments.node_name,
            os.urandom(8).hex(),
            time.time(),
        )
        self._coordinator: Optional[Coordinator] = None
        self._client: Optional[Union[CoordinatorServer, CoordinatorClient]] = None
        if arguments.node_rank == 0:
            terms = RendezvousConfig(
                arguments.nodes,
                arguments.max_restarts,
                arguments.time_limit,
                arguments.patience,
                arguments.return_patience,
                unshared=False,
            )
            self._coordinator = Coordinator(terms, history, free_port, self.log_note)
            self._coordinator.join(0, self._card.instance, self._card.born, self._card.name)
            if arguments.nodes > 1:
                listener = listen(arguments.meeting_port, 60.0)
                self._client = CoordinatorServer(self._card, key, listener, self._coordinator)
        else:
            dialer = Dialer(arguments.master_addr, arguments.meeting_port)
            self._client = CoordinatorClient(self._card, key, dialer)

    def log_note(self, text: str) -> None:
        """Say something to people: on stderr, and in the node's log."""
        with contextlib.suppress(OSError):
            os.write(2, ("hyperpod: " + text + "\n").encode("utf-8", "backslashreplace"))
        if self._node is not None:
            self._node.send({"note": text})
        else:
            self._notes = [*self._notes[-50:], text]

    def run(self) -> int:
        """Run the pod; its exit code."""
        while not self._poll():
            pass
        if self._client is not None:
            self._client.close()
        return self._outcome()

    def _record_exit_code(self) -> None:
        """Write down that all is over: where this program is started again, it must do nothing then."""
        is_not_waiting = self.gave_up is None or self._coordinator is not None
        if is_not_waiting and not self._has_recorded_end:
            self._has_recorded_end = True
            self._history.record_exit_code(self._arguments.node_rank, self._outcome())

    # ---- one turn

    def _poll(self) -> bool:
        """Wait a little, then see to everything that may have happened; True when all is over."""
        self._wait(0.25)
        for number in self._signals.pop_signals():
            self._handle_signal(number)
        self._check_node()
        now = time.monotonic()
        directive = self._receive_directive(now)
        self._obey(directive)
        self._report_state(now)
        if self._node is None:  # else the node's own loop does it
            self._heartbeat.beat(now)
        return self._is_finished(directive, now)

    def _wait(self, seconds: float) -> None:
        poll = select.poll()
        reading, writing = self._client.sockets if self._client else ([], [])
        for sock in reading:
            poll.register(sock, select.POLLIN)
        for sock in writing:
            poll.register(sock, select.POLLIN | select.POLLOUT)
        poll.register(self._signals.bell, select.POLLIN)
        if self._node is not None and self._node.end is None:
            poll.register(self._node.fileno(), select.POLLIN)
        poll.poll(seconds * 1000)
        self._signals.wait(0.0)

    def _handle_signal(self, number: int) -> None:
        if number in STOP_SIGNALS and self._state.leaving is None:
            self._state = self._state._replace(leaving=signal_name(number))
            self.log_note("got %s: this pod ends" % signal_name(number))
        if self._node is not None and number in (*STOP_SIGNALS, *WARNING_SIGNALS):
            self._node.end_signal = self._node.end_signal or signal_name(number)
            send(self._node.pid, number)

    def _check_node(self) -> None:
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
                self._on_node_end(node, parse_wait_status(status)[0])

    def _on_node_end(self, node: NodeProcess, exit_code: int) -> None:
        end = node.end
        if end is None:  # it came to no attempt, or was killed
            end = {"own": exit_code != 0 and node.end_signal is None}
            end_descendants()
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

    def _receive_directive(self, now: float) -> Dict[str, Any]:
        """What is to be done."""
        if self._client is not None:
            self._client.poll(now)
        if self._coordinator is not None:
            self._coordinator.update_state(0, self._state)
            self._coordinator.advance(now)
            self.gave_up = self._coordinator.gave_up
            return self._coordinator.directive
        client = self._client
        assert isinstance(client, CoordinatorClient)
        if client.away_since is not None and self._node is None:
            self._check_coordinator(client, client.away_since, now)
        return {"do": "finish"} if self.gave_up else client.directive(now)

    def _check_coordinator(self, client: CoordinatorClient, since: float, now: float) -> None:
        arguments = self._arguments
        address_text = "node 0 at %s:%d" % (arguments.master_addr, arguments.meeting_port)
        reason = client.last_problem or client.dialer.last_problem
        timeout = arguments.return_patience if self._finished_incarnations else arguments.patience
        if now - since > timeout:
            self.gave_up = "%s did not connect within %d s: %s" % (address_text, timeout, reason)
            self.log_note(self.gave_up)
        elif now - self._reported_at > 60.0:
            self._reported_at = now
            self.log_note("waiting for %s: %s" % (address_text, reason))

    def _obey(self, directive: Dict[str, Any]) -> None:
        action, state, node = directive["do"], self._state, self._node
        failures, began = directive.get("failures"), directive.get("began")
        if isinstance(failures, int) and isinstance(began, (int, float)):
            self._state = state._replace(failures=failures, began=began)
        if node is not None:
            if action != "run" or directive.get("incarnation") != node.incarnation:
                node.stop("time_limit" if directive.get("reason") == "time_limit" else "peer")
            elif directive.get("warned") and not node.warned:
                node.warned = True
                send(node.pid, signal.SIGUSR2)
        elif action == "run" and state.leaving is None:
            self._start(directive)

    def _start(self, directive: Dict[str, Any]) -> None:
        incarnation, port = directive.get("incarnation"), directive.get("master_port")
        if not isinstance(incarnation, str) or not isinstance(port, int):
            return
        if incarnation in self._finished_incarnations:
            return
        self._finished_incarnations.add(incarnation)
        argv = self._node_argv(incarnation, port)
        self._node = NodeProcess(argv, incarnation)
        self._state = self._state._replace(
            running=True, incarnation=incarnation, exit_code=None, own=False
        )
        notes, self._notes = self._notes, []
        for text in notes:
            self._node.send({"note": text})

    def _node_argv(self, incarnation: str, port: int) -> List[str]:
        """The arguments of `node`. Nothing of a message but its incarnation's text and a number comes into them."""
        arguments = self._arguments
        options = {
            "node-rank": arguments.node_rank,
            "nodes": arguments.nodes,
            "master-addr": arguments.master_addr if arguments.nodes > 1 else "127.0.0.1",
            "master-port": port,
            "scheduler-id": arguments.scheduler_id,
            "incarnation": incarnation,
            "node-name": arguments.node_name,
            "task": arguments.task,
        }
        argv = ["--%s=%s" % option for option in options.items() if option[1] is not None]
        return [*argv, *(["--quiet"] if arguments.quiet else [])]

    def _report_state(self, now: float) -> None:
        if isinstance(self._client, CoordinatorClient):
            self._client.send_state(self._state._asdict(), now)
        elif self._coordinator is not None:
            self._coordinator.update_state(0, self._state)
            if self._client is not None:
                self._client.announce(now)

    def _is_finished(self, directive: Dict[str, Any], now: float) -> bool:
        if self._node is not None:
            return False
        if self._state.leaving is not None or directive["do"] == "gone":
            return True
        if directive["do"] != "finish":
            return False
        if directive.get("succeeded") is True and self._exit_code is None:
            self._exit_code = 0  # a pod made anew after its node had succeeded
        self._run_failed = directive.get("succeeded") is False
        self._record_exit_code()
        if self._coordinator is None:
            return True
        self._deadline = self._deadline or now + self.FINAL_REPORT_S
        return now > self._deadline or not self._coordinator.is_awaited(now)

    def _outcome(self) -> int:
        """The pod's exit code; node 0's stands for all."""
        code, is_leaving = self._exit_code, self._state.leaving is not None
        if code is None:
            return STOPPED_FAILURE.exit_code if is_leaving else EXIT_LAUNCHER
        if is_leaving:
            return code
        if code == 0 and self._coordinator is not None:
            code = self._coordinator.exit_code
        elif code == 0 and self._run_failed:  # this node was done before another one failed
            code = 1
        return 1 if code >= 128 and self._arguments.no_signal_codes else code
