"""Start the ranks of a node, directly or with torchrun."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from abc import ABC, abstractmethod
from typing import Any, Dict, List, NamedTuple, Optional

from .bundle_files import AttemptPaths, read_json
from .environment import rank_variables
from .errors import LauncherError
from .logs import Stream
from .plan import NodeArguments, Plan
from .processes import Child, Children
from .system import read_process
from .tracebacks import LoggedError, last_error


class RankState:
    """One rank in the node's record."""

    def __init__(self, rank: int, local_rank: int) -> None:
        self.rank = rank
        self.local_rank = local_rank
        self.pid: Optional[int] = None
        self.started_at: Optional[float] = None
        self.ended_at: Optional[float] = None
        self.exit_code: Optional[int] = None
        self.signal: Optional[int] = None

    def to_dict(self) -> Dict[str, Any]:
        """The rank as the record has it."""
        return dict(vars(self))


class Failure(NamedTuple):
    """What ended the node: exit code in the shell's manner, and the signal, if one did."""

    exit_code: int
    signal: Optional[int]


STOPPED_FAILURE = Failure(128 + signal.SIGTERM, signal.SIGTERM)
"""The end of a node that was told to stop and whose ranks say nothing of their own."""


def rank_command(*options: str) -> List[str]:
    """The words that start a process through an entry of ours; isolated, whatever the environment says."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), "rank", *options, "--"]


class Launch(NamedTuple):
    """All that is needed to start ranks, once the setup lines have run."""

    plan: Plan
    attempt_paths: AttemptPaths
    arguments: NodeArguments
    python: str
    argv: List[str]
    cwd: str
    environment: Dict[str, str]
    children: Children


class Ranks(ABC):
    """The ranks of this node."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        first = launch.attempt_paths.node_rank * launch.plan.processes
        self.states = [RankState(first + local_rank, local_rank) for local_rank in range(launch.plan.processes)]
        self.failure: Optional[Failure] = None
        self.error: Optional[LauncherError] = None
        """Why none of them could be started, when only the end tells that."""
        self.is_stopping = False
        """Whether we have begun to end them."""

    @abstractmethod
    def start(self) -> None:
        """Start them."""

    @abstractmethod
    def refresh(self) -> bool:
        """See what became of them, after the children were waited for; whether something changed."""

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether all of them have ended."""

    @property
    def failing(self) -> bool:
        """Whether one has failed, even if its exit code is not known yet."""
        return self.failure is not None

    @property
    def grace(self) -> float:
        """Seconds that they have from SIGTERM to SIGKILL."""
        return self.launch.plan.stop_grace


class DirectRanks(Ranks):
    """Ranks that the launcher starts itself (`python`, and the single one of `none`)."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._children: List[Child] = []

    def start(self) -> None:
        """Start each through the entry, which becomes the rank, so the process keeps its id."""
        launch = self.launch
        for state in self.states:
            environment = dict(launch.environment)
            environment.update(rank_variables(launch.plan, launch.attempt_paths, state.local_rank))
            argv = [*rank_command(), *launch.argv]
            child = launch.children.start("rank %d" % state.rank, argv, environment, launch.cwd)
            self._children.append(child)
            state.pid, state.started_at = child.pid, child.started_at

    def refresh(self) -> bool:
        """Take over what waiting told."""
        changed = False
        for state, child in zip(self.states, self._children):
            if child.ended and state.ended_at is None:
                changed = True
                state.ended_at, state.exit_code = child.ended_at, child.exit_code
                state.signal = child.signal
        failed = [state for state in self.states if state.exit_code]
        if self.failure is None and failed:
            first = min(failed, key=lambda state: state.ended_at or 0.0)
            self.failure = Failure(first.exit_code or 1, first.signal)
        return changed

    @property
    def ended(self) -> bool:
        """Whether all were waited for."""
        return all(child.ended for child in self._children)


class AgentReport:
    """What torchrun's agent says of the ranks that failed; it is written for people, so nothing is taken for granted."""

    RANK = re.compile(r"\brank\s*:\s*(\d+)\s*\(local_rank:\s*(\d+)\)")
    EXIT = re.compile(r"\bexit_?code\s*:\s*(-?\d+)")
    EARLY = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+)")

    def __init__(self, text: str) -> None:
        self.exit_codes: Dict[int, int] = {}
        self.root: Optional[int] = None
        local_rank: Optional[int] = None
        starts_on_root = False
        for line in text.splitlines():
            early = self.EARLY.search(line)
            if early:
                self.root = int(early.group(2))
                self.exit_codes[self.root] = int(early.group(1))
            starts_on_root = starts_on_root or line.startswith("Root Cause")
            rank, code = self.RANK.search(line), self.EXIT.search(line)
            if rank:
                local_rank = int(rank.group(2))
            elif code and local_rank is not None:
                self.exit_codes[local_rank] = int(code.group(1))
                if starts_on_root:
                    self.root, starts_on_root = local_rank, False
                local_rank = None


class TorchrunRanks(Ranks):
    """Ranks that torchrun's agent starts: one agent on each node, rendezvous by the given address, restarts are ours."""

    CLOSING = re.compile(rb"closing signal|failed \(exitcode")

    def __init__(self, launch: Launch, log: Stream) -> None:
        super().__init__(launch)
        self._log = log
        self._log_from = 0
        self._read_offset = 0
        self._agent: Optional[Child] = None
        self._start_times: Dict[int, int] = {}
        self._close_at: Optional[float] = None
        self._report_read = False

    def start(self) -> None:
        """Start the agent."""
        launch, plan = self.launch, self.launch.plan
        self._log.poll()
        self._log_from = self._read_offset = self._log.size
        arguments = launch.arguments
        options = {
            "nnodes": arguments.nodes,
            "node_rank": arguments.node_rank,
            "nproc_per_node": plan.processes,
            "master_addr": arguments.master_addr,
            "master_port": arguments.master_port,
            "rdzv_id": "%s-%d" % (plan.run_id, launch.attempt_paths.attempt),
            "max_restarts": 0,
            "monitor_interval": 0.1,
        }
        argv = [*rank_command("--keep-output"), launch.python]
        argv += [os.path.abspath(__file__), "agent", "--no_python"]
        argv += ["--%s=%s" % option for option in options.items()]
        argv += [*rank_command("--write-pid"), *launch.argv]
        environment = dict(launch.environment)
        environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = str(int(plan.stop_grace) + 1)
        self._agent = launch.children.start("torchrun", argv, environment, launch.cwd)

    def refresh(self) -> bool:
        """See which ranks are up, which are gone, and what the agent says."""
        changed = self._check_processes()
        if not self.is_stopping:
            self._check_agent()
        if self._agent is not None and self._agent.ended and not self._report_read:
            self._report_read = changed = True
            self._apply_report(self._agent)
        return changed

    @property
    def ended(self) -> bool:
        """Whether the agent was waited for."""
        return self._report_read

    @property
    def failing(self) -> bool:
        """Whether the agent has begun to end its ranks, or did end with an error."""
        return self.failure is not None or self._close_at is not None

    @property
    def grace(self) -> float:
        """What is left of the grace that the agent already gives."""
        grace = super().grace
        if self._close_at is None:
            return grace
        return max(0.0, self._close_at + grace - time.monotonic())

    def _check_processes(self) -> bool:
        changed = False
        for state in self.states:
            if state.pid is None:
                changed = self._read_pid(state) or changed
            elif state.ended_at is None and state.local_rank in self._start_times:
                process = read_process(state.pid)
                start_time = self._start_times[state.local_rank]
                if process is None or process.started != start_time or process.state in "ZX":
                    state.ended_at = time.time()
                    changed = True
        return changed

    def _read_pid(self, state: RankState) -> bool:
        path = self.launch.attempt_paths.pid_file(state.local_rank)
        pid_record = read_json(path) or {}
        pid, started_at = pid_record.get("pid"), pid_record.get("time")
        if not isinstance(pid, int) or not isinstance(started_at, float):
            return False
        state.pid, state.started_at = pid, started_at
        process = read_process(pid)
        if process is not None:
            self._start_times[state.local_rank] = process.started
        elif os.path.isdir("/proc/self"):
            state.ended_at = time.time()
        with contextlib.suppress(OSError):
            os.unlink(path)
        return True

    def _check_agent(self) -> None:
        """An agent that ends its ranks has seen one fail; it may take half a minute to say so, we don't."""
        if self._close_at is None and self._log.size > self._read_offset:
            data, self._read_offset = self._new_bytes(), self._log.size
            if self.CLOSING.search(data):
                self._close_at = time.monotonic()
        if self._close_at is not None and self.grace == 0.0:
            self.failure = self.failure or Failure(1, None)

    def _new_bytes(self) -> bytes:
        # A little of what was seen before, in case the words came in two parts.
        start = max(self._log_from, self._read_offset - 64)
        with contextlib.suppress(OSError):
            return os.pread(self._log.descriptor, 1 << 20, start)
        return b""

    def _apply_report(self, agent: Child) -> None:
        """Take over what the agent's end and its words tell."""
        self._log.poll()
        data, start = self._log.tail(1 << 18)
        report = AgentReport(data[max(0, self._log_from - start) :].decode("utf-8", "replace"))
        for state in self.states:
            state.ended_at = state.ended_at or agent.ended_at
            code = report.exit_codes.get(state.local_rank)
            if agent.exit_code == 0:
                state.exit_code = 0
            elif code is not None:
                state.exit_code, state.signal = (code, None) if code >= 0 else (128 - code, -code)
        if agent.exit_code and (self.failure is None or report.root is not None):
            self.failure = self._failure(agent, report)
        if agent.exit_code and not self.is_stopping and not any(state.pid for state in self.states):
            self.error = self._agent_error(agent, last_error(data, start))

    def _failure(self, agent: Child, report: AgentReport) -> Failure:
        roots = [state for state in self.states if state.local_rank == report.root and state.exit_code]
        if roots:
            return Failure(roots[0].exit_code or 1, roots[0].signal)
        if self.is_stopping:
            return STOPPED_FAILURE
        return Failure(agent.exit_code, agent.signal)

    def _agent_error(self, agent: Child, error: Optional[LoggedError]) -> LauncherError:
        log = os.path.relpath(self.launch.attempt_paths.node_log, self.launch.attempt_paths.bundle)
        error_text = ": %s: %s" % (error.type, error.message) if error else ""
        text = "torchrun did not start the ranks" + error_text[:1000]
        return LauncherError("torchrun_failed", text, "see " + log, None, agent.exit_code)
