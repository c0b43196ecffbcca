"""What a meeting knows of earlier attempts."""

from __future__ import annotations

import contextlib
import os
import time
from typing import List, Optional

from .bundle_files import BundleFiles, read_json
from .claims import count_failures, is_cancel_requested
from .system import describe_end


class History:
    """What is known of earlier attempts beyond the meeting; here nothing. The pod's program puts the records in its place."""

    def failures(self) -> int:
        """How many attempts failed by themselves, as far as is written down."""
        return 0

    def early_losses(self, seconds: float) -> List[int]:
        """The newest attempts, newest first, that node 0 left without a word, each no longer after its start than that."""
        del seconds
        return []

    def cancelled(self) -> bool:
        """Whether the user has cancelled the run."""
        return False

    def record_observation(
        self, attempt: int, verdict: Optional[str], reason: str, last: bool
    ) -> None:
        """Write down how an attempt ended and whether it was the last."""

    def read_exit_code(self, node_rank: int) -> Optional[int]:
        """The exit code with which this node's program was told that nothing more is to be done; None as long as something is."""

    def record_exit_code(self, node_rank: int, exit_code: int) -> None:
        """Write down that nothing more is to be done, and the exit code."""

    def node_was_killed(self, attempt: int, node_rank: int, exit_code: int) -> None:
        """Write down the end of a node that could not do so itself."""


class FileHistory(History):
    """What the records tell of earlier attempts, and what node 0 adds to them (``status/observations/launcher*.json``)."""

    def __init__(self, files: BundleFiles, status: str, scheduler_id: str, unshared: bool) -> None:
        self._files = files
        self._status = status
        self._scheduler_id = scheduler_id
        self._unshared = unshared

    def failures(self) -> int:
        """How many attempts failed by themselves; where each node has records of its own, nobody knows from these."""
        if self._unshared:
            return 0
        with contextlib.suppress(OSError):
            return count_failures(self._status)
        return 0

    def early_losses(self, seconds: float) -> List[int]:
        """As node 0's records tell; where each node has records of its own, nobody knows."""
        numbers: List[int] = []
        if self._unshared:
            return numbers
        next_start = time.time()
        for number in reversed(_attempts(self._status)):
            name = os.path.join("attempt-%d" % number, "node-0.json")
            record = read_json(os.path.join(self._status, name)) or {}
            started_at = record.get("started_at")
            if not isinstance(started_at, (int, float)) or record.get("ended_at") is not None:
                break
            if next_start - started_at > seconds:
                break
            numbers.append(number)
            next_start = started_at
        return numbers

    def cancelled(self) -> bool:
        """Whether the user has cancelled the run, as its journal says."""
        with contextlib.suppress(OSError):
            return is_cancel_requested(self._status)
        return False

    def record_observation(
        self, attempt: int, verdict: Optional[str], reason: str, last: bool
    ) -> None:
        """Write down how an attempt ended; as another observer's word it does not change the node's records."""
        now = time.time()
        document = {
            "time": now,
            "observer": "launcher",
            "scheduler_id": self._scheduler_id,
            "attempt": attempt,
            "state": "ended" if last else "waiting",
            "reason": reason if last else reason + "; the next attempt waits for all nodes",
            "reason_code": None if last else "recovering",
            "verdict": verdict,
        }
        folder = os.path.join(self._status, "observations")
        with contextlib.suppress(OSError):
            self._files.make_folders(folder)
            if verdict is not None:
                path = os.path.join(folder, "launcher.attempt-%d.json" % attempt)
                attempt_observation = {
                    **document,
                    "time": now - 0.001,
                    "reason": reason,
                    "reason_code": None,
                }
                self._files.write_once(path, attempt_observation)
            self._files.write(os.path.join(folder, "launcher.json"), document)

    def read_exit_code(self, node_rank: int) -> Optional[int]:
        """What `note_over` wrote for the same job, in this pod or (on shared storage) in an earlier one."""
        document = read_json(self._exit_code_path(node_rank)) or {}
        code = document.get("exit_code")
        is_own = document.get("scheduler_id") == self._scheduler_id
        return code if is_own and isinstance(code, int) else None

    def record_exit_code(self, node_rank: int, exit_code: int) -> None:
        """For a cluster that starts containers again whatever they ended with (``restartPolicy: OnFailure``)."""
        path = self._exit_code_path(node_rank)
        claim = read_json(os.path.join(self._status, "claim.json")) or {}
        if claim.get("scheduler_id", self._scheduler_id) != self._scheduler_id:
            return  # we are fenced off: the run is another job's
        document = {
            "time": time.time(),
            "scheduler_id": self._scheduler_id,
            "node_rank": node_rank,
            "exit_code": exit_code,
        }
        with contextlib.suppress(OSError):
            self._files.make_folders(os.path.dirname(path))
            self._files.write(path, document)

    def _exit_code_path(self, node_rank: int) -> str:
        return os.path.join(self._status, "over", "node-%d.json" % node_rank)

    def node_was_killed(self, attempt: int, node_rank: int, exit_code: int) -> None:
        """Write down the end of a node whose program was killed."""
        path = os.path.join(self._status, "attempt-%d" % attempt, "node-%d.json" % node_rank)
        record = read_json(path)
        if record is None or record.get("ended_at") is not None:
            return
        number = exit_code - 128 if exit_code > 128 else None
        reason = describe_end(exit_code, number)
        error = {
            "code": "launcher_killed",
            "message": "the launcher " + reason,
            "hint": "the kernel may have killed it because memory was low",
            "detail": {},
        }
        now = time.time()
        for rank in record.get("ranks", ()):
            rank["ended_at"] = rank.get("ended_at") or now
        record.update(ended_at=now, exit_code=exit_code, signal=number, error=error)
        failure_record = {
            "time": now,
            "node_rank": node_rank,
            "exit_code": exit_code,
            "signal": number,
            "stopped_by": None,
        }
        with contextlib.suppress(OSError):
            self._files.write(path, record)
            self._files.write_once(
                os.path.join(os.path.dirname(path), "failed.json"), failure_record
            )


def _attempts(status: str) -> List[int]:
    """The numbers of the attempts that there were, in order."""
    names = os.listdir(status) if os.path.isdir(status) else []
    suffixes = [name[len("attempt-") :] for name in names if name.startswith("attempt-")]
    return sorted(int(suffix) for suffix in suffixes if suffix.isdigit())
