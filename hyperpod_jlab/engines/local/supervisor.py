"""The supervisor of one run on the embedded cluster: waits for a slot, runs its attempts, leaves no process behind.

Started detached, as
``python -P -m hyperpod_jlab.engines.local.supervisor ROOT RUN_ID --folder BOARD --slots N``. A
second one for the same run exits at once, so starting it again is harmless.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.records import AttemptRecords, Observation, ObservedState, Submission
from hyperpod_jlab.core.run_id import split_run_id
from hyperpod_jlab.engines.launch import EXIT_UNTRUSTED
from hyperpod_jlab.engines.local import machine
from hyperpod_jlab.engines.local.attempt import CANCEL, AttemptEnd, ObservationLog, RunningAttempt
from hyperpod_jlab.engines.local.board import Board, BoardEntry, RequestedState, check_dependencies, reduce_actions
from hyperpod_jlab.engines.local.machine import UntrustedBundleError, check_bundle, scheduler_id
from hyperpod_jlab.engines.local.observe import entries_ahead, waiting_reason
from hyperpod_jlab.engines.local.spawn import ArrayRunner
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from hyperpod_jlab.storage.removal import remove_tree

_POLL_S = 0.1
_HELD_POLL_S = 0.3
_QUEUED_POLL_S = 2.0
_WARNING_LEAD_S = 60.0


class Supervisor:
    """Supervises one run until its end."""

    def __init__(self, bundle: BundleReader, board: Board, launcher: str) -> None:
        """Create a supervisor for a bundle whose launcher has the digest `launcher`.

        Raises:
            UntrustedBundleError: The bundle is not this user's.
        """
        check_bundle(bundle.partition, bundle.folder)
        self._bundle = bundle
        self._launcher = launcher
        self._board = board
        self._spec = bundle.spec()
        self._head = bundle.head()
        self._plan = bundle.plan()
        self._scheduler_id = scheduler_id(bundle.run_id)
        self._stopping = self._cancel_requested = False
        self._log = ObservationLog(bundle)

    def run(self) -> None:
        """Register the run on the board and supervise it, unless another supervisor does or it has ended."""
        registration = self._board.register(self._entry())
        if registration is None:
            return
        self._registration = registration
        try:
            if not self._has_ended():
                self._supervise()
        finally:
            self._board.unregister(registration)

    def _supervise(self) -> None:
        self._log.refresh()
        if self._bundle.index is None:
            self._submitted()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_stop)
        signal.signal(CANCEL, self._on_cancel)
        is_array = self._spec.array is not None and self._bundle.index is None
        is_over = not is_array  # if this fails, the run ends; an array's children continue
        try:
            if is_array:
                self._board.set_state(self._registration, "array")
                array = ArrayRunner(self._bundle, self._board, self._spec, self._log, launcher=self._launcher)
                is_over = array.run(self._tick)
            else:
                is_over = self._run_attempts()
            self._log.finish()
        except UntrustedBundleError:
            is_over = False  # another job has it now
            raise
        finally:
            # Children share their array's secrets, and another job that fenced this one may still
            # need to read them.
            if is_over and self._bundle.index is None:
                with contextlib.suppress(OSError):
                    remove_tree(self._bundle.folder / "secrets")

    def _run_attempts(self) -> bool:
        """Wait, run, and restart if needed; False when the run continues in another job."""
        restarts, requeues = 0, self._requested_state().requeues
        while True:
            if not self._wait_for_start():
                return True
            end, number = self._run_attempt(requeues)
            verdict = end.verdict
            if verdict == "REQUEUED":
                requeues = self._requested_state().requeues
                self._board.set_state(self._registration, "waiting")
                self._observe("waiting", "was requeued", "requeued", verdict=verdict, attempt=number)
            elif verdict in {"FAILED", "LOST", "NODE_FAIL"} and restarts < self._spec.max_restarts:
                restarts += 1
                reason = f"restart {restarts} of {self._spec.max_restarts} after a failure"
                self._observe("waiting", reason, "recovering", verdict=verdict, attempt=number)
            elif verdict != "FENCED":
                self._observe("ended", end.reason, verdict=verdict, attempt=number)
                return True
            else:
                return False

    def _wait_for_start(self) -> bool:
        """Wait for dependencies, a release and a slot; False when the run ended while it waited."""
        while not self._stopping:
            requested, pause_s = self._requested_state(), _HELD_POLL_S
            if requested.cancelled:
                self._observe("ended", verdict="CANCELLED")
                return False
            decision = check_dependencies(self._bundle.partition, self._spec.after)
            if decision is not None and decision.is_final:
                self._observe("ended", decision.reason, "dependency", verdict="DEPENDENCY")
                return False
            if requested.held or decision is not None:
                self._board.set_state(self._registration, "held")
                reason = "held by its user" if requested.held else decision.reason if decision else None
                self._observe("waiting", reason, "held" if requested.held else "dependency")
            else:
                started, entries = self._take_slot()
                if started and self._can_record():
                    return True
                if started:  # an attempt that can record nothing would only fail
                    self._board.set_state(self._registration, "waiting")
                    self._tick(_QUEUED_POLL_S)
                    continue
                reason, code = waiting_reason(self._board, entries, self._bundle.run_id)
                self._observe("waiting", reason, code)
                # Runs far back in the queue poll rarely, so that a long queue costs little.
                pause_s = min(_QUEUED_POLL_S, _POLL_S * (1 + len(entries_ahead(entries, self._bundle.run_id))))
            self._tick(pause_s)
        self._observe("ended", "its supervisor was stopped", "lost", verdict="LOST")
        return False

    def _take_slot(self) -> tuple[bool, list[BoardEntry]]:
        """Whether the run has a slot now, and all entries of the board if it has just requested one."""
        if self._registration.entry.state == "running":
            return True, []  # a restart keeps its slot
        self._board.set_state(self._registration, "waiting")
        return self._board.try_start(self._registration)

    def _can_record(self) -> bool:
        """Whether the partition accepts what an attempt writes."""
        # The heartbeat first: it creates no folder while the whole partition is away.
        if not self._log.write_heartbeat():
            return False
        logs = self._bundle.records / "logs"
        try:
            descent.make_folders(self._bundle.folder, logs, self._bundle.folder_mode)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            os.close(descent.open_file(logs / "supervisor.log", flags, self._bundle.file_mode))
            self._log.reserve()
        except OSError:
            return False
        return True

    def _run_attempt(self, requeues: int) -> tuple[AttemptEnd, int | None]:
        """Run one attempt; returns how it ended and its number."""
        check_bundle(self._bundle.partition, self._bundle.folder)
        attempt = RunningAttempt(
            partition=self._bundle.partition,
            launcher=self._launcher,
            bundle=self._bundle.folder,
            records=self._bundle.records,
            plan=self._plan,
            scheduler_id=self._scheduler_id,
            gpus=self._registration.entry.gpus,
            task=self._bundle.index,
        )
        self._observe("running")
        try:
            attempt.start()
            end = self._watch(attempt, requeues) or attempt.outcome()
        except BaseException:
            attempt.end()  # it would be unsupervised
            raise
        attempt.end_leftovers()
        return end, self._attempt_number(attempt.incarnation)

    def _watch(self, attempt: RunningAttempt, requeues: int) -> AttemptEnd | None:
        """Wait for the attempt's end; returns why it was ended early: by the user, the time limit, or the loss of a node."""
        limit = self._spec.time_limit
        warned = limit is None or limit <= 2 * _WARNING_LEAD_S
        while attempt.running():
            elapsed = time.monotonic() - attempt.started_at
            requested = self._requested_state()
            verdict = None
            if requested.cancelled:
                verdict = "CANCELLED"
            elif requested.requeues > requeues:
                verdict = "REQUEUED"
            elif limit is not None and elapsed > limit:
                verdict = "TIMEOUT"
            elif self._stopping:
                verdict = "LOST"
            end = attempt.detect_loss() if verdict is None else AttemptEnd(verdict)
            if end is not None:
                attempt.end()
                return end
            if limit is not None and not warned and elapsed > limit - _WARNING_LEAD_S:
                attempt.send_warning()
                warned = True
            self._tick()
        return None

    def _requested_state(self) -> RequestedState:
        requested = reduce_actions(self._bundle.actions())
        return replace(requested, cancelled=requested.cancelled or self._cancel_requested)

    def _attempt_number(self, incarnation: str) -> int | None:
        attempts: Sequence[AttemptRecords] = ()
        with contextlib.suppress(HyperpodError):  # the partition is away: the observation is recorded without it
            attempts = self._bundle.read().attempts
        for attempt in attempts:
            if attempt.claim is not None and attempt.claim.incarnation == incarnation:
                return attempt.number
        return None

    def _has_ended(self) -> bool:
        observations = self._bundle.read().observations
        return any(observation.observer == "local" and observation.state == "ended" for observation in observations)

    def _entry(self) -> BoardEntry:
        array = self._spec.array is not None and self._bundle.index is None
        gpus = self._spec.resources.accelerator.count * self._spec.resources.nodes
        return BoardEntry(
            run_id=self._bundle.run_id,
            bundle=str(self._bundle.records),
            name=self._head.name,
            user=self._head.user,
            order=self._head.created_at,
            state="array" if array else "waiting",
            nodes=self._spec.resources.nodes,
            gpus_wanted=gpus,
            pid=os.getpid(),
        )

    def _submitted(self) -> None:
        if not descent.is_file(self._bundle.folder / "submission.json"):
            self._log.record_submission(Submission(scheduler_id=self._scheduler_id, submitted_at=time.time()))

    def _observe(
        self,
        state: ObservedState,
        reason: str | None = None,
        code: str | None = None,
        *,
        verdict: str | None = None,
        attempt: int | None = None,
    ) -> None:
        """Record an observation if it is new."""
        self._log.record(
            Observation(
                time=time.time(),
                observer="local",
                scheduler_id=self._scheduler_id,
                attempt=attempt,
                state=state,
                reason=reason,
                reason_code=code,
                verdict=verdict,
                exit_code=0 if verdict == "COMPLETED" else None,
            )
        )

    def _tick(self, pause_s: float = _POLL_S) -> bool:
        """Pause briefly and write the heartbeat; False when the supervisor must stop."""
        time.sleep(pause_s)
        self._log.refresh()
        return not self._stopping

    def _on_stop(self, *_: object) -> None:
        self._stopping = True

    def _on_cancel(self, *_: object) -> None:
        self._cancel_requested = True


def main(arguments: list[str] | None = None) -> int:
    """Entry point of the supervisor's process."""
    parser = argparse.ArgumentParser(description="Look after one run on the embedded cluster.")
    parser.add_argument("root", type=Path)
    parser.add_argument("run_id")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--launcher", metavar="SHA256", required=True)
    parser.add_argument("--shared", action="store_true")
    args = parser.parse_args(arguments)
    split_run_id(args.run_id)
    atexit.register(gc.freeze)  # skip garbage collection in a process that ends
    partition = Partition(args.root, shared=args.shared)
    bundle = BundleReader(partition, args.run_id)
    try:
        board = Board(args.folder, slots=args.slots, gpus=len(machine.gpus()))
        Supervisor(bundle, board, args.launcher).run()
    except UntrustedBundleError as error:
        # Nothing is written to the bundle: the message goes to the process that started this one.
        sys.stderr.write(f"hyperpod: {error.message}\n")
        return EXIT_UNTRUSTED
    except BaseException as error:
        # The traceback goes to supervisor.log; the user gets the error at once instead of after a
        # wait for a dead process.
        log = ObservationLog(bundle, heartbeat=False)
        log.record(_crash_observation(args.run_id, error))
        log.finish()
        raise
    return 0


def _crash_observation(run_id: str, error: BaseException) -> Observation:
    return Observation(
        time=time.time(),
        observer="local",
        scheduler_id=scheduler_id(run_id),
        state="ended",
        verdict="LOST",
        reason=f"its supervisor failed: {type(error).__name__}: {error}"[:500],
        reason_code="lost",
    )


if __name__ == "__main__":
    sys.exit(main())
