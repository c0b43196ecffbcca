"""Alarms: what is wrong with the course of a run, from the numbers and the silence of its ranks."""

from __future__ import annotations

import math
import re
from collections import deque
from typing import Callable, Deque, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple


class Alarm(NamedTuple):
    """One cause. `since` and `time` are Unix seconds; `rank` is None for a whole node. An alarm is over once its cause is gone."""

    code: str
    message: str
    rank: Optional[int]
    since: float
    is_over: bool = False


def median(values: Sequence[float]) -> float:
    """The middle value; of an even number of values the upper one."""
    return sorted(values)[len(values) // 2]


class LossAlarms:
    """Watches the losses of one rank: not finite, or far above their course."""

    WINDOW = 50
    MIN_POINTS = 20
    IN_A_ROW = 3
    """Number of consecutive points that must be too high, so that a single bad batch raises no alarm."""
    MAX_NAMES = 100
    GOOD_POINTS = 10
    """Finite values after one that is not, until it counts as over."""
    DEVIATIONS = 8.0
    MIN_RISE = 0.3
    """Part of the usual value by which it must have risen in any case."""
    RECORD = re.compile(r"(?:^|[^a-z])(?:best|min|lowest)(?:[^a-z]|$)")
    """Names of the best value so far, which begins as infinite in many programs."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._values: Dict[str, Deque[float]] = {}
        self._high: Dict[str, int] = {}
        self._finite: Dict[str, int] = {}
        self._is_fired: Dict[Tuple[str, str], bool] = {}

    def add(self, values: Mapping[str, float], step: Optional[int], now: float) -> List[Alarm]:
        """Take the numbers of a line; alarms that begin or end with it."""
        alarms: List[Alarm] = []
        for name, value in values.items():
            is_new = name not in self._finite
            lowered = name.lower()
            if "loss" not in lowered or self.RECORD.search(lowered):
                continue
            if is_new and len(self._finite) >= self.MAX_NAMES:
                continue
            self._finite.setdefault(name, 0)
            where = "" if step is None else " at step %d" % step
            if not math.isfinite(value):
                self._finite[name] = 0
                self._fire(alarms, "nan", name, "%s is %s%s" % (name, value, where), now)
                continue
            self._finite[name] = self._finite.get(name, 0) + 1
            if self._finite[name] >= self.GOOD_POINTS:
                self._end(alarms, "nan", name, now)
            self._check_spike(alarms, name, value, where, now)
        return alarms

    def _check_spike(self, alarms: List[Alarm], name: str, value: float, where: str, now: float) -> None:
        past = self._values.setdefault(name, deque(maxlen=self.WINDOW))
        if len(past) >= self.MIN_POINTS:
            usual = median(past)
            deviation = median([abs(one - usual) for one in past]) * 1.4826
            limit = usual + max(self.DEVIATIONS * deviation, self.MIN_RISE * abs(usual), 1e-9)
            if value > limit and self._high.get(name, 0) >= self.WINDOW:
                past.clear()  # it stays there: this is its course now
            elif value > limit:
                self._high[name] = self._high.get(name, 0) + 1
                if self._high[name] >= self.IN_A_ROW:
                    text = "%s is %.4g%s; it was about %.4g" % (name, value, where, usual)
                    self._fire(alarms, "spike", name, text, now)
                return  # what is too high does not become usual
            self._high[name] = 0
            self._end(alarms, "spike", name, now)
        past.append(value)

    def _fire(self, alarms: List[Alarm], code: str, name: str, text: str, now: float) -> None:
        if (code, name) not in self._is_fired:
            self._is_fired[code, name] = True
            alarms.append(Alarm(code, text, self._rank, now))

    def _end(self, alarms: List[Alarm], code: str, name: str, now: float) -> None:
        if self._is_fired.pop((code, name), False):
            if any(other == code for other, _ in self._is_fired):
                return  # another loss still has it
            alarms.append(Alarm(code, "", self._rank, now, True))


class Course:
    """How a rank comes on: the times at which it reported a new step, and at which it printed anything. Times are monotonic."""

    WINDOW = 20

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.step: Optional[int] = None
        self.reported_at: Optional[float] = None
        self.printed_at: Optional[float] = None
        self.intervals: Deque[float] = deque(maxlen=self.WINDOW)
        """Seconds between two reports."""
        self.longest = 0.0
        self.is_done = False
        """The last step of all was reported."""
        self.answers_until = float("-inf")
        """Until then, what it prints is the answer to a request for its stacks, and no progress."""

    def shift(self, seconds: float) -> None:
        """The watcher itself was paused for so long; do not count it as silence of the rank."""
        if self.reported_at is not None:
            self.reported_at += seconds
        if self.printed_at is not None:
            self.printed_at += seconds

    def take_output(self, now: float) -> None:
        """It printed something."""
        if now >= self.answers_until:
            self.printed_at = now

    def report(self, step: Optional[int], now: float) -> None:
        """A line told a step, or numbers without one."""
        if now < self.answers_until:  # such as a bar that the stacks have ended
            self.step = self.step if step is None else step
            return
        if self.reported_at is not None and (step is None or step != self.step):
            interval = now - self.reported_at
            self.intervals.append(interval)
            self.longest = max(self.longest, interval)
        if step is None or step != self.step or self.reported_at is None:
            self.reported_at = now
        self.step = self.step if step is None else step


class HangAlarm:
    """All ranks of a node are silent for longer than they ever were while they came on.

    A rank that never reported numbers is left out: there is nothing to compare it with.
    """

    TIMES = 3.0
    EXTRA_S = 6.0
    MIN_REPORTS = 5

    STOP_AFTER_S, STOP_TIMES = 600.0, 20.0
    """Seconds, and usual intervals, of silence after which an attempt may be ended: checkpoints and evaluations are silent too."""

    def __init__(self) -> None:
        self.is_fired = False

    def is_certain(self, courses: Sequence[Course], now: float) -> bool:
        """Whether the silence has lasted so long that the attempt may be ended."""
        known = [one for one in courses if len(one.intervals) >= self.MIN_REPORTS]
        is_silent = self.is_fired and bool(known)
        return is_silent and all(
            now - max(one.reported_at or 0.0, one.printed_at or 0.0)
            > max(self.STOP_AFTER_S, self.STOP_TIMES * median(one.intervals))
            for one in known
        )

    def check(
        self,
        courses: Sequence[Course],
        now: float,
        time: float,
        patience: float = 0.0,
        other_steps: Callable[[], Mapping[int, int]] = dict,
    ) -> Optional[Alarm]:
        """The alarm that begins or ends now.

        Args:
            courses: The ranks of the node that run.
            now: Monotonic time.
            time: Unix time.
            patience: Seconds by which this node is to be later than others.
            other_steps: The newest steps of ranks of other nodes, by rank; called only for an alarm that begins.
        """
        known = [one for one in courses if len(one.intervals) >= self.MIN_REPORTS]
        silent = [one for one in known if self._is_silent(one, now - patience)]
        if self.is_fired:
            if not silent:
                self.is_fired = False
                return Alarm("hang", "", None, time, True)
            return None
        is_done = any(one.is_done for one in courses)
        if not silent or len(silent) < len(known) or is_done:
            return None
        self.is_fired = True
        last = max(max(one.reported_at or 0.0, one.printed_at or 0.0) for one in silent)
        steps = {**other_steps(), **{one.rank: one.step for one in courses if one.step is not None}}
        message = self._message(steps, now - last)
        return Alarm("hang", message, self._behind(steps), time - (now - last))

    def _is_silent(self, course: Course, now: float) -> bool:
        usual = median(course.intervals)
        limit = max(self.TIMES * usual, 1.2 * course.longest) + self.EXTRA_S
        last = max(course.reported_at or 0.0, course.printed_at or 0.0)
        return now - last > limit

    @staticmethod
    def _behind(steps: Mapping[int, int]) -> Optional[int]:
        if len(set(steps.values())) < 2:
            return None
        return min(steps, key=lambda rank: (steps[rank], rank))

    @staticmethod
    def _message(steps: Mapping[int, int], silence: float) -> str:
        text = "no output and no progress for %d s" % silence
        if steps and len(set(steps.values())) > 1:
            most = max(steps.values())
            behind = sorted(rank for rank, step in steps.items() if step < most)
            names = ", ".join(map(str, behind[:8])) + (", …" if len(behind) > 8 else "")
            text += "; behind step %d: rank %s" % (most, names)
        elif steps:
            text += "; the last step is %d" % max(steps.values())
        return text
