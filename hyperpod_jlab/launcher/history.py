"""What a meeting knows of earlier attempts."""

from __future__ import annotations

import contextlib
import os
import time
from typing import List, Optional

from .bundle_files import BundleFiles, read_json
from .claims import asked_to_cancel, failed_by_itself
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

    def say(self, attempt: int, verdict: Optional[str], words: str, last: bool) -> None:
        """Write down how an attempt ended and whether it was the last."""

    def over(self, node_rank: int) -> Optional[int]:
        """The exit code with which this node's program was told that nothing more is to be done; None as long as something is."""

    def note_over(self, node_rank: int, exit_code: int) -> None:
        """Write down that nothing more is to be done, and the exit code."""

    def node_was_killed(self, attempt: int, node_rank: int, exit_code: int) -> None:
        """Write down the end of a node that could not do so itself."""


class WrittenHistory(History):
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
            return failed_by_itself(self._status)
        return 0

    def early_losses(self, seconds: float) -> List[int]:
        """As node 0's records tell; where each node has records of its own, nobody knows."""
        found: List[int] = []
        if self._unshared:
            return found
        later = time.time()
        for number in reversed(_attempts(self._status)):
            name = os.path.join("attempt-%d" % number, "node-0.json")
            record = read_json(os.path.join(self._status, name)) or {}
            began = record.get("started_at")
            if not isinstance(began, (int, float)) or record.get("ended_at") is not None:
                break
            if later - began > seconds:
                break
            found.append(number)
            later = began
        return found

    def cancelled(self) -> bool:
        """Whether the user has cancelled the run, as its journal says."""
        with contextlib.suppress(OSError):
            return asked_to_cancel(self._status)
        return False

    def say(self, attempt: int, verdict: Optional[str], words: str, last: bool) -> None:
        """Write down how an attempt ended; as another observer's word it does not change the node's records."""
        now = time.time()
        said = {
            "time": now,
            "observer": "launcher",
            "scheduler_id": self._scheduler_id,
            "attempt": attempt,
            "state": "ended" if last else "waiting",
            "reason": words if last else words + "; the next attempt waits for all nodes",
            "reason_code": None if last else "recovering",
            "verdict": verdict,
        }
        folder = os.path.join(self._status, "observations")
        with contextlib.suppress(OSError):
            self._files.make_folders(folder)
            if verdict is not None:
                kept = os.path.join(folder, "launcher.attempt-%d.json" % attempt)
                on_attempt = {**said, "time": now - 0.001, "reason": words, "reason_code": None}
                self._files.write_once(kept, on_attempt)
            self._files.write(os.path.join(folder, "launcher.json"), said)

    def over(self, node_rank: int) -> Optional[int]:
        """What `note_over` wrote for the same job, in this pod or (on shared storage) in an earlier one."""
        said = read_json(self._over_path(node_rank)) or {}
        code = said.get("exit_code")
        ours = said.get("scheduler_id") == self._scheduler_id
        return code if ours and isinstance(code, int) else None

    def note_over(self, node_rank: int, exit_code: int) -> None:
        """For a cluster that starts containers again whatever they ended with (``restartPolicy: OnFailure``)."""
        path = self._over_path(node_rank)
        claim = read_json(os.path.join(self._status, "claim.json")) or {}
        if claim.get("scheduler_id", self._scheduler_id) != self._scheduler_id:
            return  # we are fenced off: the run is another job's
        said = {
            "time": time.time(),
            "scheduler_id": self._scheduler_id,
            "node_rank": node_rank,
            "exit_code": exit_code,
        }
        with contextlib.suppress(OSError):
            self._files.make_folders(os.path.dirname(path))
            self._files.write(path, said)

    def _over_path(self, node_rank: int) -> str:
        return os.path.join(self._status, "over", "node-%d.json" % node_rank)

    def node_was_killed(self, attempt: int, node_rank: int, exit_code: int) -> None:
        """Write down the end of a node whose program was killed."""
        path = os.path.join(self._status, "attempt-%d" % attempt, "node-%d.json" % node_rank)
        record = read_json(path)
        if record is None or record.get("ended_at") is not None:
            return
        number = exit_code - 128 if exit_code > 128 else None
        how = describe_end(exit_code, number)
        error = {
            "code": "launcher_killed",
            "message": "the launcher " + how,
            "hint": "the kernel may have killed it because memory was low",
            "detail": {},
        }
        now = time.time()
        for rank in record.get("ranks", ()):
            rank["ended_at"] = rank.get("ended_at") or now
        record.update(ended_at=now, exit_code=exit_code, signal=number, error=error)
        mark = {
            "time": now,
            "node_rank": node_rank,
            "exit_code": exit_code,
            "signal": number,
            "stopped_by": None,
        }
        with contextlib.suppress(OSError):
            self._files.write(path, record)
            self._files.write_once(os.path.join(os.path.dirname(path), "failed.json"), mark)


def _attempts(status: str) -> List[int]:
    """The numbers of the attempts that there were, in order."""
    names = os.listdir(status) if os.path.isdir(status) else []
    words = [name[len("attempt-") :] for name in names if name.startswith("attempt-")]
    return sorted(int(word) for word in words if word.isdigit())
