"""The node."""

from __future__ import annotations

import json
import os
import time
from typing import Dict, Mapping, Optional, Sequence

from .bundle_files import AttemptPaths, BundleFiles, Records
from .contract import FORMAT, STOP_SIGNALS, WARNING_SIGNALS
from .environment import delete_secrets, mask_secrets, read_secrets
from .errors import LauncherError, StopRequested
from .heartbeat import Heartbeat
from .logs import NodeLog, Outlet
from .metrics import MetricsChild
from .plan import NodeArguments, Plan
from .preparation import ErrorRecorder, Preparation
from .processes import Belongings, Child, Children, ProcessTermination
from .ranks import STOPPED_FAILURE, DirectRanks, Failure, Ranks, TorchrunRanks, rank_command
from .rendezvous import Peers
from .resources import ResourceLog
from .streams import Streams
from .system import Signals, send, signal_name, topmost_catchers
from .webhook import post_end

STEPS = {
    "the environment": "building the environment",
    "setup": "running the setup lines",
    "the check for torch": "checking for torch",
}
"""What the node's record says of a step before the ranks start."""


class Node:
    """One node in one attempt, from its first record to its last."""

    END_DELAY_S = 0.05
    STEP_RECORDED_AFTER_S = 2.0
    """A shorter step is not worth a record."""

    def __init__(
        self,
        arguments: NodeArguments,
        attempt_paths: AttemptPaths,
        files: BundleFiles,
        signals: Signals,
        outlet: Outlet,
        peers: Peers,
    ) -> None:
        self._arguments = arguments
        self._attempt_paths = attempt_paths
        self._signals = signals
        self._heartbeat = Heartbeat()
        self._log = NodeLog(files, attempt_paths.node_log)
        self._records = Records(files, self._log.note)
        self._outlet = outlet
        is_quiet = arguments.quiet
        self._streams = Streams(attempt_paths, files, arguments.nodes, outlet, is_quiet)
        self._streams.open("node", attempt_paths.node_log, "node-%d" % attempt_paths.node_rank)
        self._errors = ErrorRecorder(attempt_paths, self._streams, self._records)
        self._children = Children(self._log.descriptor)
        self._belongings = Belongings(attempt_paths, self._children)
        self._resources = ResourceLog(files, attempt_paths.resources, self._children)
        self._metrics: Optional[MetricsChild] = None
        self._peers = peers
        self._preparation = Preparation(attempt_paths, arguments, files, self._log)
        self._started_at = time.time()
        self._ended_at: Optional[float] = None
        self._plan: Optional[Plan] = None
        self._ranks: Optional[Ranks] = None
        self._process_ending: Optional[ProcessTermination] = None
        self._secrets: Dict[str, str] = {}
        self._step: Optional[str] = None
        self._stopped_by: Optional[str] = None
        self._is_cut_short = False
        self._error: Optional[LauncherError] = None
        self._outcome: Optional[Failure] = None
        self._announced = False
        self.has_failed_itself = False
        self._stdout_error_reported = False

    def run(self) -> int:
        """Run the node; its exit code."""
        try:
            self._prepare()
            self._supervise()
        except LauncherError as error:
            self._error = error
        except StopRequested:
            pass  # _stopped_by tells
        except OSError as error:
            text = "the storage of the node failed: %s" % error
            self._error = LauncherError("storage", text, "check its free space and your quota")
        except Exception as error:  # noqa: BLE001 - a fault of ours must still end the ranks and be told
            import traceback

            self._log.write_line(traceback.format_exc().rstrip())
            text = "the launcher failed: %s" % type(error).__name__
            self._error = LauncherError("internal", text, "see the node's log")
        if self._error is not None:
            self._log.note(str(self._error))
        self._announce_failure()
        self._end_processes()
        return self._finish()

    # ---- the loop

    def poll(self) -> None:
        """One turn of the loop: wait a little, then see to everything that may have happened."""
        delay = self._streams.delay
        self._signals.wait(min(delay, self.END_DELAY_S) if self._process_ending else delay)
        for number in self._signals.pop_signals():
            self._handle_signal(number)
        for text in self._peers.pop_notes():
            self._log.note(text)
        self._children.reap()
        self._streams.poll(self._records)
        if self._ranks is not None and self._ranks.refresh():
            self._write_record()
        if self._process_ending is None:
            self._resources.poll(self._running_ranks())
        is_ending = self._process_ending is not None or self._stopped_by is not None
        alarm = self._metrics.poll(is_ending) if self._metrics is not None else None
        if alarm is not None and not is_ending:
            raise LauncherError("alarm", "ended by the alarm " + alarm, exit_code=1)
        reason = self._peers.poll()
        if reason is not None and self._stopped_by is None and self._process_ending is None:
            self._stop(reason)
        self._records.retry()
        self._report_broken_stdout()
        self._heartbeat.beat(time.monotonic())

    def _running_ranks(self) -> Dict[int, int]:
        """The process ids of the ranks that run."""
        states = self._ranks.states if self._ranks else []
        return {state.rank: state.pid for state in states if state.pid is not None and state.ended_at is None}

    def _handle_signal(self, number: int) -> None:
        if number in WARNING_SIGNALS:
            self._forward(number)
            return
        self._peers.announce(leaving=signal_name(number))
        if self._process_ending is None and self._stopped_by is None:
            self._stop(signal_name(number))

    def _stop(self, reason: str) -> None:
        self._stopped_by = reason
        self._is_cut_short = reason != "peer" and (self._ranks is None or not self._ranks.ended)
        text = {
            "peer": "another node failed",
            "superseded": "a later attempt of this run has begun",
            "time_limit": "the time limit is reached",
        }
        self._log.note("stopping: " + text.get(reason, "got " + reason))

    def _is_stop_requested(self) -> bool:
        self._peers.poll()
        stops = [number for number in self._signals.pop_signals() if number in STOP_SIGNALS]
        if stops:
            self._peers.announce(leaving=signal_name(stops[0]))
        return bool(stops)

    def _check_stop(self) -> None:
        if self._stopped_by is not None:
            raise StopRequested(self._stopped_by)

    def _report_broken_stdout(self) -> None:
        if self._outlet.broken is not None and not self._stdout_error_reported:
            self._stdout_error_reported = True
            text = "stdout: %s; logs continue only in their files"
            self._log.note(text % self._outlet.broken)

    def _forward(self, number: int) -> None:
        """Pass a warning signal on to the ranks that can do something with it."""
        policy = self._plan.forward_signals if self._plan else "never"
        reached_ranks = []
        for state in self._ranks.states if self._ranks and policy != "never" else ():
            if state.pid is None or state.ended_at is not None:
                continue
            targets = [state.pid] if policy == "always" else topmost_catchers(state.pid, number)
            if [target for target in targets if send(target, number)]:
                reached_ranks.append(str(state.rank))
        report = "passed to rank " + ", ".join(reached_ranks) if reached_ranks else "not passed to a rank"
        self._log.note("%s: %s (%s)" % (signal_name(number), report, policy))

    # ---- from the plan to running ranks

    def _prepare(self) -> None:
        """Read the plan and the secrets, run the setup lines, start the ranks."""
        plan = self._read_plan()
        self._delete_read_secrets(False)
        self.poll()
        self._check_stop()
        launch = self._preparation.launch(plan, self._secrets, self._children, self._run_step)
        torchrun = plan.launcher == "torchrun"
        self._ranks = TorchrunRanks(launch, self._streams["node"]) if torchrun else DirectRanks(launch)
        for state in self._ranks.states:
            path = self._attempt_paths.rank_log(state.local_rank)
            self._streams.open(str(state.local_rank), path, str(state.rank))
        self._check_stop()
        self._ranks.start()
        self._metrics = MetricsChild(self._children, self._attempt_paths, self._log.note, self._secrets)
        self._write_record()

    def _read_plan(self) -> Plan:
        """The plan; the node's first record says by its being there that the secrets were read."""
        try:
            self._plan = Plan.load(os.path.join(self._attempt_paths.bundle, "launch.json"))
            self._secrets = read_secrets(self._attempt_paths.bundle, self._plan.secrets)
        finally:
            self._log_start()
            self._write_record()
        return self._plan

    def _log_start(self) -> None:
        """The machine-readable line: first in the node's log, and on stdout even when that is to be quiet."""
        arguments, plan = self._arguments, self._plan
        document = {
            "run_id": plan.run_id if plan else None,
            "host": os.uname().nodename,
            "node": arguments.node_name,
            "node_rank": arguments.node_rank,
            "attempt": self._attempt_paths.attempt,
            "local_world_size": plan.processes if plan else None,
            "pid": os.getpid(),
        }
        line = "##hyperpod " + json.dumps(document)
        self._log.write_line(line)
        self._outlet.put(line.encode() + b"\n")
        self._streams["node"].skip_echo()
        if plan is not None and plan.nodes != arguments.nodes:
            text = "the plan is for %d nodes, started on %d"
            self._log.note(text % (plan.nodes, arguments.nodes))

    def _run_step(
        self, name: str, argv: Sequence[str], environment: Mapping[str, str], cwd: str, fds: Sequence[int]
    ) -> Child:
        command = [*rank_command("--keep-output"), *argv]
        child = self._children.start(name, command, environment, cwd, fds)
        recorded_at = time.monotonic() + self.STEP_RECORDED_AFTER_S
        while not child.ended:
            self.poll()
            self._check_stop()
            if self._step is None and time.monotonic() >= recorded_at:
                self._step = STEPS[name]
                self._write_record()
        self._step = None
        return child

    def _delete_read_secrets(self, failed: bool) -> None:
        """Delete the secrets' files when all nodes have read them, or this one has failed.

        A node's record is there once it has read them.
        """
        plan, attempt_paths, arguments = self._plan, self._attempt_paths, self._arguments
        keeps_secrets = plan is None or plan.keep_secrets or arguments.task is not None
        if keeps_secrets or plan is None or not plan.secrets:
            return
        other_nodes = (node for node in range(arguments.nodes) if node != attempt_paths.node_rank)
        if failed or all(os.path.exists(attempt_paths.node_record_path(node)) for node in other_nodes):
            delete_secrets(attempt_paths.bundle, plan.secrets)

    # ---- while they run, and the end

    def _supervise(self) -> None:
        """Until all ranks have ended, one has failed, or somebody wants a stop."""
        ranks = self._ranks
        while ranks is not None and not (ranks.ended or ranks.failure or self._stopped_by):
            self.poll()
            self._announce_failure()

    @property
    def _failed(self) -> bool:
        return self._error is not None or (self._ranks is not None and self._ranks.failing)

    def _announce_failure(self) -> None:
        """Let the other nodes know as early as can be, so that they stop, and say what it was."""
        if self._failed and not self._announced:
            self._announced = True
            self._peers.announce(failing=True)
            failure = self._ranks.failure if self._ranks else None
            self._mark_failed(Failure(self._error.exit_code, None) if self._error else failure)
            self._record_errors()

    def _mark_failed(self, failure: Optional[Failure]) -> None:
        self.has_failed_itself = self._stopped_by is None
        document = {
            "time": time.time(),
            "node_rank": self._attempt_paths.node_rank,
            "exit_code": failure.exit_code if failure else None,
            "signal": failure.signal if failure else None,
            "stopped_by": self._stopped_by,
        }
        self._records.write_once(self._attempt_paths.failed, document)

    def _record_errors(self) -> None:
        if self._ranks is not None:
            self._errors.record(self._ranks.states, self._secrets)

    def _end_processes(self) -> None:
        """End whatever of this node still runs: ranks, their helpers, what the setup lines started."""
        self._resources.stop()
        ranks = self._ranks
        grace = self._plan.stop_grace if self._plan else 0.0
        natural = False
        if ranks is not None:
            grace, natural = ranks.grace, ranks.ended and not ranks.failing
            ranks.is_stopping = True
            if natural:
                self._finish_metrics()
        # What the ranks leave behind often ends by itself, just after them.
        ending = ProcessTermination(self._belongings.find, grace, 0.25 if natural else 0.0)
        self._process_ending = ending
        while not ending.step(self._children.reaped):
            self.poll()
        self._children.reap()
        if ranks is not None and ranks.refresh():
            self._write_record()
        for text, processes in (("killed", ending.killed), ("cannot be stopped", ending.unkillable)):
            if processes:
                names = sorted("%s (%d)" % (name, pid) for pid, name in processes.items())
                self._log.note("%s: %s" % (text, ", ".join(names[:20])))

    def _finish_metrics(self) -> None:
        """Let the last numbers be read, and what an alarm has started come to its end."""
        metrics = self._metrics
        if metrics is None:
            return
        metrics.stop()
        while metrics.is_running and self._stopped_by is None:
            self.poll()

    def _finish(self) -> int:
        """The last words: errors, logs, records."""
        self._streams.poll(self._records)
        self._record_errors()
        if self._error is None and self._ranks is not None:
            self._error = self._ranks.error
        if self._error is not None:
            self._error.message = mask_secrets(self._error.message, self._secrets)
        outcome = self._find_outcome()
        if outcome.exit_code and not self._announced and self._stopped_by != "peer":
            self._mark_failed(outcome)
        self._delete_read_secrets(outcome.exit_code != 0)
        self._report_broken_stdout()
        limit, drain_pause = (1.0, 0.5) if self._stopped_by else (30.0, 2.0)
        unwritten_bytes = self._streams.drain(limit, drain_pause, self._is_stop_requested)
        if unwritten_bytes:
            text = "stdout did not accept the last %d bytes; they are in the log files"
            self._log.note(text % unwritten_bytes)
        self._outcome, self._ended_at = outcome, time.time()
        self._streams.finish(self._records)
        self._write_record()
        self._records.flush(1.0)
        post_end(self._attempt_paths, self._arguments.scheduler_id, self._secrets, self._log.note)
        return outcome.exit_code

    def _find_outcome(self) -> Failure:
        if self._error is not None:
            return Failure(self._error.exit_code, None)
        ranks = self._ranks
        if ranks is not None and ranks.failure is not None:
            return ranks.failure
        # Ranks that save a checkpoint and exit with 0 when they are told to stop have not done their work.
        if self._is_cut_short or (self._stopped_by is not None and (ranks is None or not ranks.ended)):
            return STOPPED_FAILURE
        return Failure(0, None)

    def _write_record(self) -> None:
        """Write the node's record as things stand."""
        outcome, states = self._outcome, self._ranks.states if self._ranks else []
        document = {
            "format": FORMAT,
            "node_rank": self._attempt_paths.node_rank,
            "node": self._arguments.node_name,
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "started_at": self._started_at,
            "ended_at": self._ended_at,
            "exit_code": outcome.exit_code if outcome else None,
            "signal": outcome.signal if outcome else None,
            "step": self._step,
            "ranks": [state.to_dict() for state in states],
            "max_memory": self._children.max_memory,
            "cpu_seconds": self._children.cpu_seconds,
            "stopped_by": self._stopped_by,
            "error": self._error.to_dict() if self._error else None,
        }
        self._records.write(self._attempt_paths.node_record, document)
