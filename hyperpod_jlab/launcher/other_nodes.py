"""How the ranks of the other nodes come on, from the ends of their nodes' files of numbers."""

from __future__ import annotations

import json
import os
import stat
from collections import deque
from typing import Deque, Dict, Optional, Set, Tuple

from .alarms import median
from .bundle_files import AttemptPaths


class Pace:
    """Seconds that a rank takes for a step, between looks that are some seconds apart.

    A look sees only the newest step. That is the same measure for each rank, however often its node looks at its output.
    """

    WINDOW = 6
    MIN_INTERVALS, MIN_STEPS = 3, 10

    def __init__(self) -> None:
        self._points: Deque[Tuple[int, float]] = deque(maxlen=self.WINDOW + 1)

    @property
    def step(self) -> Optional[int]:
        """The newest step."""
        return self._points[-1][0] if self._points else None

    def add(self, step: int, time: float) -> None:
        """Take the newest step and when it was reported, by any clock that stays the same."""
        if self._points:
            last_step, last_time = self._points[-1]
            if step == last_step:
                return
            if step < last_step or time <= last_time:  # the count restarted, or the clock went back
                self._points.clear()
        self._points.append((step, time))

    @property
    def seconds(self) -> Optional[float]:
        """The median; None as long as too little is known."""
        points = list(self._points)
        if len(points) <= self.MIN_INTERVALS or points[-1][0] - points[0][0] < self.MIN_STEPS:
            return None
        return median(
            [
                (later[1] - earlier[1]) / (later[0] - earlier[0])
                for earlier, later in zip(points, points[1:])
            ]
        )


class OtherNodes:
    """Looks at the files of the other nodes, some at a time. Without shared storage there are none, and nothing is known."""

    EVERY_S = 10.0
    """Seconds between two looks at a file."""
    MAX_NODES = 4096
    TAIL, TAIL_OF_RANK = 4096, 512
    """Bytes that are read at the end of a file: at least, and for each of its ranks."""
    MAX_STEP, MAX_TIME = 1 << 53, 1e11

    def __init__(self, paths: AttemptPaths, nodes: int, processes: int) -> None:
        self._paths = paths
        self._processes = processes
        self._nodes = [
            node for node in range(min(nodes, self.MAX_NODES)) if node != paths.node_rank
        ]
        self._sizes: Dict[int, int] = {}
        self._next = 0
        self.paces: Dict[int, Pace] = {}
        """By rank; only of ranks that reported a step."""

    def look(self, seconds: float) -> bool:
        """Look at as many files as are due after so many seconds; whether all were looked at once more."""
        count = max(1, int(len(self._nodes) * seconds / self.EVERY_S + 0.999))
        end = self._next + count
        for node in self._nodes[self._next : end]:
            self._read(node)
        self._next = end if end < len(self._nodes) else 0
        return self._next == 0

    def look_at_all(self) -> Dict[int, int]:
        """The newest steps, by rank."""
        for node in self._nodes:
            self._read(node)
        return {rank: pace.step for rank, pace in self.paces.items() if pace.step is not None}

    def _read(self, node: int) -> None:
        path = self._paths.metrics_path(node)
        try:
            status = os.lstat(path)
            if not stat.S_ISREG(status.st_mode) or status.st_size == self._sizes.get(node):
                return
            self._sizes[node] = status.st_size
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(path, flags)
            try:
                length = max(self.TAIL, self.TAIL_OF_RANK * self._processes)
                start = max(0, status.st_size - length)
                data = os.pread(descriptor, length, start)
            finally:
                os.close(descriptor)
        except OSError:
            return
        if start:
            data = data.partition(b"\n")[2]
        for rank, (step, time) in self._newest(data, node * self._processes).items():
            self.paces.setdefault(rank, Pace()).add(step, time)

    def _newest(self, data: bytes, first: int) -> Dict[int, Tuple[int, float]]:
        """For each rank of a node, its newest step and the time of the first record of that step."""
        found: Dict[int, Tuple[int, float]] = {}
        complete: Set[int] = set()
        for line in reversed(data.split(b"\n")[:-1]):
            try:
                document = json.loads(line)
                rank, step, time = document["rank"], document["step"], document["time"]
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
            # Whatever the file says, it is about the ranks of its own node, and a number that can be reckoned with.
            if type(rank) is not int or not first <= rank < first + self._processes:
                continue
            if type(step) is not int or not 0 <= step < self.MAX_STEP:
                continue
            if type(time) not in (int, float) or not 0 <= time < self.MAX_TIME:
                continue
            if rank not in complete:
                if rank in found and found[rank][0] != step:
                    complete.add(rank)
                    if len(complete) == self._processes:
                        break
                else:
                    found[rank] = (step, float(time))
        return found
