"""The children of an array on the embedded cluster: each is a run with a supervisor of its own, some at a time."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.ranges import parse_array
from hyperpod_jlab.model.records import Observation, ObservedState
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.orchestrators.local.board import Board
from hyperpod_jlab.orchestrators.local.identity import scheduler_id
from hyperpod_jlab.orchestrators.local.journal import sum_up
from hyperpod_jlab.orchestrators.local.word import Word, finish
from hyperpod_jlab.orchestrators.seal import EXIT_UNTRUSTED
from hyperpod_jlab.storage.records import BundleReader

_AHEAD = 2  # children that may already wait while all slots are taken


class ArrayRunner:
    """Starts an array's children in order and waits for them."""

    def __init__(
        self, bundle: BundleReader, board: Board, spec: JobSpec, word: Word, launcher: str
    ) -> None:
        self._bundle = bundle
        self._launcher = launcher
        self._board = board
        array = parse_array(spec.array or "0")
        self._todo = list(array.indices)
        self._limit = min(array.throttle or len(array.indices), board.slots + _AHEAD)
        self._alive: list[tuple[int, subprocess.Popen[bytes]]] = []
        self._word = word
        self._words: list[Word] = []  # on children that can say nothing themselves

    def run(self, tick: Callable[[], bool]) -> bool:
        """See all children through; `tick` pauses and tells whether to go on.

        Returns whether all have ended: when told to stop it leaves those that run to themselves.
        """
        held = None
        while self._todo or self._alive:
            wishes = sum_up(self._bundle.actions())
            if held != (wishes.held and not self._alive):
                held = wishes.held and not self._alive
                self._word.say(
                    self._seen(self._bundle, "waiting" if held else "running", held=held)
                )
            if wishes.cancelled:
                self._give_up_rest()
            self._alive = [child for child in self._alive if self._lives(*child)]
            while self._todo and not wishes.held and len(self._alive) < self._limit:
                index = self._todo.pop(0)
                self._alive.append((index, self._start(index)))
            for word in self._words:
                word.keep()
            if not tick():
                return not self._todo and not self._alive
        finish(self._words, tick)
        self._word.say(self._seen(self._bundle, "ended", "COMPLETED"))
        return True

    def _lives(self, index: int, process: subprocess.Popen[bytes]) -> bool:
        code = process.poll()
        # It could not say itself how it ended; of a bundle that is not ours any more nobody says anything in it.
        if code not in {None, 0, EXIT_UNTRUSTED}:
            self._say_of_child(index, "LOST")
        return code is None

    def _start(self, index: int) -> subprocess.Popen[bytes]:
        partition = self._bundle.partition
        command = [sys.executable, "-P", "-m", "hyperpod_jlab.orchestrators.local.supervisor"]
        command += [str(partition.root), f"{self._bundle.run_id}.{index}"]
        command += [f"--folder={self._board.folder}", f"--slots={self._board.slots}"]
        command.append(f"--launcher={self._launcher}")
        command += ["--shared"] if partition.shared else []
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def _give_up_rest(self) -> None:
        """The array was cancelled: say so for the children that never started."""
        for index in self._todo:
            self._say_of_child(index, "CANCELLED")
        self._todo.clear()

    def _say_of_child(self, index: int, verdict: str) -> None:
        child = BundleReader(self._bundle.partition, f"{self._bundle.run_id}.{index}")
        with contextlib.suppress(
            HyperpodError
        ):  # else the partition is away, or the array was removed
            if any(word.state == "ended" for word in child.read().observations):
                return
        word = Word(child, heartbeat=False)
        self._words.append(word)
        word.say(self._seen(child, "ended", verdict))

    @staticmethod
    def _seen(
        bundle: BundleReader,
        state: ObservedState,
        verdict: str | None = None,
        *,
        held: bool = False,
    ) -> Observation:
        return Observation(
            time=time.time(),
            observer="local",
            scheduler_id=scheduler_id(bundle.run_id),
            state=state,
            reason="held by its user" if held else None,
            reason_code="held" if held else None,
            verdict=verdict,
        )
