"""What a supervisor says of its run. A partition that is full or away for a while delays its word, and never ends the run."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.model.records import Observation, Submission
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.processes import this_process
from hyperpod_jlab.storage.records import BundleReader

_HEARTBEAT = 5.0
_RETRY = 1.0
_PATIENCE = 3600.0


class Word:
    """The observations of one run, in the order in which they are given, and its heartbeat if the run is this process's own."""

    def __init__(self, bundle: BundleReader, *, heartbeat: bool = True) -> None:
        self._bundle = bundle
        self._heartbeat = heartbeat
        self._unsaid = deque[Callable[[], None]]()
        self._last: tuple[str, str | None] | None = None
        self._beat: float | None = None
        self._tried = 0.0
        self._complained = False

    def say(self, observation: Observation) -> None:
        """Write down what goes on if it is something new; what cannot be written now is kept."""
        new = (observation.state, observation.reason)
        if new == self._last and observation.verdict is None:
            return
        self._last = new
        self._unsaid.append(partial(self._bundle.add_observation, observation))
        self._flush()

    def say_submitted(self, submission: Submission) -> None:
        """Write down that the run was taken."""
        self._unsaid.append(partial(self._bundle.write_submission, submission))
        self._flush()

    def keep(self) -> None:
        """Write the heartbeat when its time has come, and what could not be written before."""
        now = time.monotonic()
        if self._unsaid and now - self._tried > _RETRY:
            self._flush()
        if self._heartbeat and (self._beat is None or now - self._beat > _HEARTBEAT):
            self.beat()

    def beat(self) -> bool:
        """Write the heartbeat; tells whether the partition took it."""
        self._beat = time.monotonic()
        return self._try(lambda: self._bundle.write_owner(this_process(heartbeat=time.time())))

    def pending(self) -> bool:
        """Whether something is still to be written. Of a run that was removed nothing is; where the whole partition is away, nobody knows that."""
        if not self._unsaid:
            return False
        with contextlib.suppress(OSError, StorageError):
            folder = self._bundle.folder
            return _is_there(folder) or not _is_there(folder.parents[1])
        return True

    def finish(self) -> None:
        """Have everything written, however long the partition is away (an hour at most)."""
        finish([self], lambda: time.sleep(_RETRY))

    def _flush(self) -> None:
        self._tried = time.monotonic()
        while self._unsaid and self._try(self._unsaid[0]):
            self._unsaid.popleft()

    def _try(self, write: Callable[[], None]) -> bool:
        try:
            write()
        except StorageError as error:
            if not self._complained:
                self._complained = True
                with contextlib.suppress(OSError):  # supervisor.log lies on the same partition
                    sys.stderr.write(f"{error.message}; trying again\n")
            return False
        return True


def _is_there(folder: Path) -> bool:
    """Whether a folder is there.

    Raises:
        OSError: The partition does not say.
    """
    try:
        descent.state(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def finish(words: Sequence[Word], pause: Callable[[], object]) -> None:
    """Have everything of all written, however long the partition is away (an hour at most for all together).

    Args:
        words: Whose words.
        pause: Waits for a moment.
    """
    deadline = time.monotonic() + _PATIENCE
    while any(word.pending() for word in words) and time.monotonic() < deadline:
        pause()
        for word in words:
            word.keep()
