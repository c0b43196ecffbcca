"""Numbers in what a rank prints: names and numbers in dictionaries, JSON, ``key=value``, words and progress bars, and the steps that they belong to."""

from __future__ import annotations

import contextlib
import math
import re
from functools import lru_cache
from itertools import islice
from typing import Callable, ContextManager, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Pattern

MAX_LINE = 4096
"""Bytes of a line that are looked at."""
MAX_NAMES = 40
"""Names in one line."""
MAX_SETTINGS = 12
"""Names in a line without a step and a loss, above which it is a dump of settings."""

_NUMBER = (
    rb"[-+]?(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    rb"|[-+]?(?:nan|NaN|Nan|NAN|inf(?:inity)?|Inf(?:inity)?|INF)\b"
)
_WORD = rb"[A-Za-z][\w./@'-]*"
_BEGIN = rb"(?<![\w./@-])(?<![\xc3-\xdf][\x80-\xbf])"
"""Not within a word. A letter that is not ASCII, such as an umlaut, has two bytes."""

PAIR = re.compile(
    # At most four words; "loss nan lr" is no name.
    _BEGIN + rb"(" + _WORD + rb"(?: (?!(?i:nan|inf|infinity)\b)" + _WORD + rb"){0,3}"
    rb"(?: ?\((?:ms|s|TFLOP/s/GPU)\))?)"
    rb"(['\"]?\s*[=:]\s*|\s+)(?:(?:tensor|np\.float[0-9]*|[Aa]rray)\(|\[|['\"])?(" + _NUMBER + rb")"
    rb"((?:ms|us|s|%|[GM]i?B|it/s|[GMK])(?![\w/])"
    rb"|(?!\w|\.(?=\S)|,[0-9])(?:\s?(?:%|/[0-9]+|ms\b|s\b|us\b|\( *[0-9]))?)"
)
"""Name, separator, value, unit."""
RATE = re.compile(
    rb"(?<![\w.,])([0-9][0-9,.]*(?:[eE][-+]?[0-9]+)?) ?(?:(tok)(?:en)?s?|samples?|examples?|im(?:a?g)(?:e)?s?|seqs?)/s(?:ec(?:ond)?)?\b"
)
TIME_RATE = re.compile(rb"(?<![\w.,])([0-9][0-9.]*(?:[eE][-+]?[0-9]+)?) ?(ms|s|us)/(?:step|it|iter|iteration|batch)\b")
STEP = re.compile(
    rb"(?<![\w./@-])(?:global[ _]?step|(?:completed )?step|iter(?:ation)?|it|update|num_updates|round)\b"
    rb"['\"]?\s*(?:[=:#]\s*)?(?:[\[(]\s*)?([0-9]{1,12})(?![\w.%])(?:\s*(?:/|of)\s*([0-9]{1,12})(?![\w.]))?",
    re.I,
)
EPOCH = re.compile(
    rb"(?<![\w./@-])epoch(?:\(train\)|\b)['\"]?\s*(?:[=:#]\s*)?(?:['\"\[]\s*)?([0-9]{1,9}(?:\.[0-9]+)?)\]?(?:\s*(?:/|of)\s*([0-9]{1,9})(?![\w.]))?",
    re.I,
)
LONE_EPOCH = re.compile(rb"\W*epochs?\W*[0-9]+(?:\s*/\s*[0-9]+)?\W*", re.I)
BAR = re.compile(
    rb"(?:^|[|\s])([0-9]{1,12})/([0-9]{1,12}) \[(?:[0-9]+:)?[0-9]+:[0-9]+<[^,\]]*"
    rb"(?:, *([0-9.]+|\?) ?(it/s|s/it|steps?/s|s/step|batch(?:es)?/s|s/batch))?"
)
"""A bar of tqdm: done, total, rate and its unit."""
EPOCHS_BAR = re.compile(rb"epochs?\s*:?\s*[0-9]*%?\s*\|?", re.I)
EPOCH_AND_STEP = re.compile(rb"\s*([0-9]{1,9})\|([0-9]{1,12})\|")
"""Before a bar: torchtune writes the step over all epochs."""
KERAS_BAR = re.compile(rb"(?:^|\s)([0-9]{1,12})/([0-9]{1,12}) (?:\[[=>.]+\]|[\xe2\x94\x81-]{2,}|-)")
BRACKETS = re.compile(rb"\[\s*([0-9]{1,12})\s*/\s*([0-9]{1,12})(?: \([0-9. ]+%\))?\s*\]")
ROUND = re.compile(rb"\[([0-9]{1,9})\]()\s")
PHASE = re.compile(
    rb"(?:^|[\s\]|])(?:test|eval(?:uation)?|val(?:id(?:ation)?)?|validating) ?(?:set|loop|epoch|results?)?(?: ?[:\]|]| - | loss at | metrics )|(?:^|\s)validate step",
    re.I,
)
"""An evaluation's line."""
OTHER_BAR = re.compile(
    rb"download|upload|fetch|map\b|filter|load|tokeniz|generat|saving|writ|eval|valid|test|infer|predict|extract|compil"
    rb"|shard|build|sanity|pack|convert|files|proc",
    re.I,
)
"""What stands before a bar that is not the training's."""
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|[\x08]+")
CODE = re.compile(
    rb"`|\bassert\b|(?<![=!<>])[=!]=(?![=>])|(?<!metrics)= ?\{|\}\[|;\s*(?:$|\})|\b(?:int|float|char|unsigned) \w+ ?=|^\s*(?:def|class|return|raise|import|from|File|print) |Error: |\bHTTP/[12]|::\w|Warning: |\bprint\(|\bf['\"]"
    rb"|(?:Namespace|Config(?:uration)?|Args|Arguments|Options|Settings|Params|Parameters)\(\w+="
)
"""A line of a program's text, as tracebacks and compilers show it, or of its settings as Python shows them."""
LOSS_AT_STEP = re.compile(
    rb"((?:(?<![A-Za-z])[A-Za-z]+[ _])?loss)(?: \([a-z ]{1,40}\))? at ((?:step|iteration|epoch) [0-9]{1,12})[:=] ?(?=[-+0-9.NIni])",
    re.I,
)
"""Keras's guide and others write the step behind the name."""
WHOLE_LOSS = re.compile(
    rb"(?i:(?:(?:train(?:ing)?|val(?:id(?:ation)?)?|eval)[ _/])?loss\s*[=:]\s*[0-9]+\s*)"
    rb"|\s*\{(?:.*[,{]\s*)?['\"](?:(?:train|eval|val|valid|test)[_/])?loss['\"]: *[0-9]+[,}](?:.*\})?\s*"
)
"""Nothing but a loss, or a dictionary with one: there, a whole number leaves no doubt either."""
NOT_FINITE = re.compile(rb"(?<![a-z0-9_])(?:nan|inf|infinity)(?![a-z0-9_])")


def _words(*lines: str) -> FrozenSet[str]:
    return frozenset(" ".join(lines).split())


_PRIMARY = _words(
    "loss acc accuracy ppl perplexity reward rewards auc f1 bleu rouge iou miou map mse",
    "rmse mae nll wer cer logloss elbo kl entropy top1 top5 acc1 acc5 score",
)
"""Last words of names that make a line one with numbers."""
_SECONDARY = _words(
    "learning_rate lr tokens_per_second samples_per_second step_time tflops mfu memory",
    "throughput l1 l2 precision recall error grad_norm gnorm",
)
"""The same beside a step."""
_SPOKEN = _words("score error kl entropy map f1 auc reward rewards")
"""Words that need a sign between them and their number: they stand in sentences too."""
_IGNORED = _words(
    "step steps global_step globalstep iter iteration iterations it update num_updates",
    "updates batch epoch epochs round rank local_rank pid port seed time timestamp ts eta",
    "gpu gpus node nodes world_size version line v_num skipped wall train_wall bsz ups",
    "wpb level lineno thread process created msecs elapsed remaining total runtime",
    "train_runtime eval_runtime num_examples consumed_samples global_batch_size",
    "batch_size micro_step microstep max_steps num_train_epochs date data data_time",
    "duration ms loss_scale none cuda device",
    "scale weight weights coef coeff coefficient fn function type reduction ratio factor",
)
"""Last words of names that are no metrics."""
_COUNTS = _words("max min num number total n size count")
"""First words of such names."""
_TIMES = _words("time seconds batch_time iter_time step_time_s dt")
_MODIFIERS = _words(
    "train training val valid validation eval test lm dev grad gradient learning mean avg",
    "average total top tokens samples examples images step iter iteration elapsed time",
    "per time_per throughput running global l2 max min moving",
)
"""Words before the last one that are a part of the name."""

KEYWORDS = tuple(
    word.encode()
    for word in (
        *(*_PRIMARY, *_SECONDARY, "grad", "learning", "tok", "samples"),
        *("epoch", "step", "iter", "it/s", "s/it"),
    )
)
"""A text without any of these (in lower case) has no numbers for us."""

NORMAL_NAMES = {
    name: re.compile(pattern, re.I)
    for name, pattern in {
        "loss": r"(?:(?:train(?:ing)?|lm|total|reduced|average|avg|mean|global|actor)[_/])*loss(?:[_/](?:train|total|step))*",
        "eval_loss": r"(?:eval|val(?:id(?:ation)?)?|dev|test)[_/]loss|(?:lm_)?loss[_/](?:eval|val(?:idation)?)",
        "learning_rate": r"(?:(?:train|actor)/)?(?:lr|learning[_/]rate)|lr_(?:adamw?|sgd)",
        "grad_norm": r"(?:(?:train|actor)/)?(?:grad(?:ient)?[_/]?norm|gnorm)|total_norm|l2_norm/grad/global",
        "accuracy": r"(?:train(?:ing)?[_/])?acc(?:uracy)?",
        "tokens_per_second": r"(?:train_|throughput/)?tok(?:en)?s?(?:/|_per_)s(?:ec(?:ond)?)?(?:(?:/|_per_)(?:gpu|device))?|tps|tgs|wps",
        "samples_per_second": r"(?:samples?|examples|im(?:age|g)s?)(?:/|_per_)s(?:ec(?:ond)?)?|\w*samplespersec",
        "step_time": r"(?:elapsed_)?(?:time|sec|s)(?:/|_per_)(?:step|it(?:er(?:ation)?)?)|(?:train_)?(?:step|iter(?:ation)?|batch)(?:[_/]time|_timing)|timing_s/step",
        "tflops": r"(?:tflops?(?:/s)?|flops)(?:/(?:device|gpu))?|throughput_per_gpu",
    }.items()
}
"""The few names that are the same whoever prints them."""
_MAX_STEP_TIME_S = 86_400.0
_IN_SECONDS = {b"ms": 1e3, b"us": 1e6}
_SET_NAME = re.compile(r"(train|valid|val|eval|test)\w*('s)?")
_SELDOM = re.compile("val|epoch|test")


class PatternTimeout(Exception):  # noqa: N818 - it is what ends a search, not what went wrong
    """A rule of the user took too long."""


class LineNumbers(NamedTuple):
    """What one line says. `step` counts over all epochs; `total` is None where the line does not tell the end."""

    step: Optional[int]
    total: Optional[int]
    values: Dict[str, float]


def may_have_numbers(text: bytes) -> bool:
    """Whether a look at the lines of a text pays: fast, and never wrong with no."""
    lowered = text.lower()
    return any(word in lowered for word in KEYWORDS)


def is_whole_bar(line: bytes) -> bool:
    """Whether a line that has no end yet is a bar of tqdm, which gets its end only with the next one."""
    return line.endswith(b"]") and BAR.search(line) is not None


class StepCount:
    """The newest step of a rank, counted over all epochs, and the last one of all if it is known."""

    def __init__(self) -> None:
        self.step: Optional[int] = None
        self.total: Optional[int] = None
        self.epoch: Optional[float] = None
        self.epochs: Optional[int] = None
        self.last: Optional[int] = None
        """The newest step as it was printed."""
        self._offset = 0
        self._highest_epoch = -1.0

    def take_epoch(self, epoch: "re.Match[bytes]") -> None:
        """Take an epoch."""
        if b"." in epoch.group(1):
            return  # how far the training is, not which epoch
        self.epoch = float(epoch.group(1))
        if epoch.group(2) is not None:
            self.epochs = int(epoch.group(2))

    def take_epoch_as_step(self) -> None:
        """Where nothing else is counted, epochs are."""
        if self.epoch is not None:
            self.step, self.total = int(self.epoch), self.epochs

    def take(self, step: int, total: Optional[int], in_epoch: bool = False, is_bar: bool = False) -> None:
        """Take a step; the count may restart with each epoch.

        Args:
            step: The step as it is printed.
            total: The last one as it is printed.
            in_epoch: Whether the line is about one epoch.
            is_bar: Whether it is a bar, which may be the next epoch's without saying so.
        """
        last = self.last
        if last is not None and (step < last or (step == last and in_epoch)):
            # Two trainers in one log take turns: only an epoch that was not there yet goes on.
            if self.epoch is not None and self.epoch > self._highest_epoch:
                self._offset += max(last, total or 0)
            elif is_bar and last == total and not in_epoch:
                self._offset += last
        self.last = step
        self._highest_epoch = max(self._highest_epoch, -1.0 if self.epoch is None else self.epoch)
        self.step = self._offset + step
        if total is not None:
            is_of_epoch = (in_epoch and self.epoch is not None) or self._offset
            self.total = total * (self.epochs or 0) or None if is_of_epoch else total


class MetricParser:
    """Reads the lines of one rank; remembers the step that the numbers of a line without one belong to.

    Args:
        patterns: Rules of the user: by name, a regular expression with one group that is the number.
        guard: Ends a search of a rule that takes too long, with `PatternTimeout`.
    """

    def __init__(
        self,
        patterns: Optional[Mapping[str, "Pattern[bytes]"]] = None,
        guard: "Optional[Callable[[], ContextManager[object]]]" = None,
    ) -> None:
        self._patterns = dict(patterns or {})
        self._guard = guard or contextlib.nullcontext
        self.slow_patterns: List[str] = []
        """Rules that took too long and are not used any more."""
        self._count = StepCount()
        self._bar_total = 0
        self._has_values = self._has_steps = self._is_epoch_step = self._is_numbered = False
        self._pending: Optional[LineNumbers] = None
        """A bar's last state."""
        self._held: Optional[LineNumbers] = None
        """A dictionary's numbers, whose step the next bar tells."""
        self._last_bar = b"", False
        """And whether it is the training's."""
        self._told: Dict[str, float] = {}

    def read(self, line: bytes, is_behind_bar: bool = False) -> List[LineNumbers]:
        """The numbers of a line. Empty if there are none.

        Those of a progress bar are held back until the bar moves on, and those of a dictionary beside a bar until the next line: tqdm removes its bar for
        the line, and the bar that it draws again has the step.

        Args:
            line: The line, or a part of it.
            is_behind_bar: Whether a bar stands before it on its line.
        """
        line = line[:MAX_LINE]
        if b"\x1b" in line or b"\x08" in line:
            line = ESCAPES.sub(b"", line)
        bar = BAR.search(line)
        if bar is None:
            return self._read_text(line, line.startswith(b"{") and not is_behind_bar)
        end = line.find(b"]", bar.end()) + 1
        if not end or len(line) - end <= 8:
            return self._read_bar_line(line, bar)
        # A line that was printed behind a bar: tqdm does not know of it.
        return self._read_bar_line(line[:end], bar) + self.read(line[end:], True)

    def flush(self) -> List[LineNumbers]:
        """What was held back: the last state of a bar, and the numbers of a dictionary."""
        found = [] if self._pending is None else [self._without_old(self._pending)]
        self._pending = None
        return found + self._release()

    @property
    def has_pending(self) -> bool:
        """Whether something is held back."""
        return self._pending is not None or self._held is not None

    @property
    def awaits_bar(self) -> bool:
        """Whether numbers are held back whose step the next bar tells."""
        return self._held is not None

    def has_own_values(self, line: bytes) -> bool:
        """Whether a rule of the user finds a number."""
        return bool(self._own_values(line[:MAX_LINE]))

    def _own_values(self, line: bytes) -> Dict[str, float]:
        values: Dict[str, float] = {}
        for name, pattern in list(self._patterns.items()):
            try:
                with self._guard():
                    match = pattern.search(line)
            except PatternTimeout:
                del self._patterns[name]
                self.slow_patterns.append(name)
                continue
            value = to_number(match.group(1)) if match else None
            if value is not None:
                values[name] = value
        return values

    def _numbers(self, values: Dict[str, float]) -> LineNumbers:
        return LineNumbers(self._count.step, self._count.total, values)

    def _release(self, with_step: bool = False) -> List[LineNumbers]:
        held, self._held = self._held, None
        return [] if held is None else [self._numbers(held.values) if with_step else held]

    def _replace_pending(self, numbers: LineNumbers) -> List[LineNumbers]:
        pending, self._pending = self._pending, numbers
        if pending is None or pending.step == numbers.step:
            return []  # of one step, a bar's last state counts
        return [self._without_old(pending)]

    def _without_old(self, numbers: LineNumbers) -> LineNumbers:
        """A bar repeats the numbers of its last evaluation: each counts once."""
        told, values = self._told, numbers.values
        self._told = {**told, **values}
        is_old = {name: _SELDOM.search(name) and told.get(name) == values[name] for name in values}
        return numbers._replace(values={n: values[n] for n in values if not is_old[n]})

    # ---- bars

    def _read_bar_line(self, line: bytes, bar: "re.Match[bytes]") -> List[LineNumbers]:
        last, is_counted = self._last_bar
        if line == last:  # it is drawn once more
            return self._release(is_counted)
        values = self._own_values(line)
        is_counted = self._read_bar(line, bar, values)
        self._last_bar = line, is_counted
        found = self._release(is_counted)
        self._has_values = self._has_values or bool(values)
        if not values and not (is_counted and self._has_values):
            return found
        return found + self._replace_pending(self._numbers(values))

    def _read_bar(self, line: bytes, bar: "re.Match[bytes]", values: Dict[str, float]) -> bool:
        """Take a bar's values and step; whether it is the training's."""
        done, total, count = int(bar.group(1)), int(bar.group(2)), self._count
        head = line[: bar.start(1)]
        epoch = EPOCH.search(head)
        if OTHER_BAR.search(head) or not total:
            return False
        if epoch is None and EPOCHS_BAR.search(head):
            count.epoch, count.epochs = float(done), total
            return False
        found: Dict[str, float] = {}
        if done or not count.last:  # at its beginning a bar has the numbers of the one before
            found = read_pairs(line[bar.end() :], True)
            found = {**read_pairs(head.partition(b"%|")[0], True), **found}
        if not found and (bar.group(4) is None or total < self._bar_total):
            return False
        self._bar_total = max(total, self._bar_total)
        over_epochs = EPOCH_AND_STEP.match(head)
        if over_epochs is not None:
            count.step, self._is_numbered = int(over_epochs.group(2)), True
        elif not self._is_numbered:
            if epoch is not None:
                count.take_epoch(epoch)
            count.take(done, total, epoch is not None, is_bar=True)
        for name, value in found.items():
            values.setdefault(name, value)
        rate = to_number(bar.group(3)) if bar.group(3) not in (None, b"?") else None
        if rate and values and "step_time" not in values:
            is_inverse = bar.group(4).endswith(b"/s")
            values["step_time"] = float("%.4g" % (1.0 / rate)) if is_inverse else rate
        return True

    # ---- other lines

    def _read_text(self, line: bytes, may_wait: bool) -> List[LineNumbers]:
        found = self._release() if line.strip() else []
        values = self._own_values(line)
        self._read_line(line, values)
        if not values:
            return found
        self._has_values = True
        numbers = self._numbers(values)
        if b"%|" in line:
            return found + self._replace_pending(numbers)
        found += self.flush()
        if may_wait and self._bar_total and STEP.search(line) is None:
            self._held = numbers
            return found
        return [*found, numbers]

    def _read_line(self, line: bytes, values: Dict[str, float]) -> None:
        """Take a line's values and step."""
        if b" at " in line:
            line = LOSS_AT_STEP.sub(rb"\2: \1: ", line)
        epoch = EPOCH.search(line)
        brackets = BRACKETS.search(line, epoch.end() if epoch is not None else 0)
        step = KERAS_BAR.search(line) or STEP.search(line) or ROUND.match(line) or brackets
        found: Dict[str, float] = {}
        if not CODE.search(line):
            found = read_pairs(line, step is not None or epoch is not None)
        if not found and not values:
            self._read_lone_epoch(line, epoch)
            return
        is_evaluation = PHASE.search(line[:80]) is not None
        if b"train_runtime" in line and "loss" in found:
            found["train_loss"] = found.pop("loss")  # the mean over all of the training
        for name, value in found.items():
            is_marked = not is_evaluation or "val" in name or _kind(name) != "primary"
            values.setdefault(name if is_marked else "eval_" + name, value)
        if epoch is not None:
            values.setdefault("epoch", float(epoch.group(1)))
        if not is_evaluation:  # whose steps are not the training's
            self._take_step(step, brackets, epoch)

    def _take_step(
        self,
        step: "Optional[re.Match[bytes]]",
        brackets: "Optional[re.Match[bytes]]",
        epoch: "Optional[re.Match[bytes]]",
    ) -> None:
        if epoch is not None:
            self._count.take_epoch(epoch)
        if step is not None:
            number, total = int(step.group(1)), step.group(2)
            if not total and brackets is not None and int(brackets.group(1)) == number:
                total = brackets.group(2)
            is_keras = step.re is KERAS_BAR
            self._count.take(number, int(total) if total else None, is_keras or epoch is not None)
            self._has_steps = self._has_steps or not is_keras
            return
        if epoch is not None:
            self._is_epoch_step = not self._has_steps and not self._bar_total
        if self._is_epoch_step:
            self._count.take_epoch_as_step()

    def _read_lone_epoch(self, line: bytes, epoch: "Optional[re.Match[bytes]]") -> None:
        """Keras and others write "Epoch 1/3" on a line of its own."""
        if epoch is not None and len(line) < 40 and LONE_EPOCH.fullmatch(line):
            self._count.take_epoch(epoch)
            has_end = epoch.group(2) is not None
            self._is_epoch_step = not (self._has_steps or self._bar_total or has_end)


def read_pairs(text: bytes, has_step: bool) -> Dict[str, float]:
    """The metrics of a text; empty unless one of them leaves no doubt.

    Args:
        text: The text.
        has_step: Whether the line has a step.
    """
    found: Dict[str, float] = {}
    matches = list(islice(PAIR.finditer(text), MAX_NAMES))
    if len(matches) > MAX_SETTINGS and not has_step and b"loss" not in text.lower():
        return {}  # the settings of a program
    is_sure = WHOLE_LOSS.fullmatch(text) is not None
    for match in matches:
        separator, raw, unit = match.group(2), match.group(3), match.group(4).strip()
        is_key = match.group(1).endswith(b"'") or separator[:1] in (b"'", b'"')
        if is_key and text[match.start() - 1 : match.start()] not in (b"'", b'"'):
            continue  # the end of a key
        printed = match.group(1).decode("ascii", "replace")
        name = normal_name(printed, is_key)
        is_time = unit in (b"ms", b"s", b"us") or unit.startswith(b"(")
        # With a sign, and not as a word in quotes, which is a time of day more often.
        if (is_time or separator.strip() in (b":", b"=")) and name.lower() in _TIMES:
            name = "step_time"
        kind, is_spaced = _kind(name), not separator.strip(b" '\"\t")
        value = _scaled(raw, unit, name, "(ms)" in printed)
        if value is None or kind == "ignored":
            continue
        if is_spaced and (kind == "other" or name.lower() in _SPOKEN):
            continue
        if kind == "primary" or (kind == "secondary" and has_step and not is_spaced):
            is_sure = is_sure or has_step or re.search(rb"[.ne]", raw, re.I) is not None
        found.setdefault(name, value)
    if not is_sure or not found:
        return {}
    _add_rates(text, found)
    return found


def _add_rates(text: bytes, found: Dict[str, float]) -> None:
    """Numbers that stand before their name: 1,234 tok/s, 12 ms/step."""
    for match in RATE.finditer(text):
        rate = to_number(match.group(1))
        if rate is not None:
            found.setdefault("tokens_per_second" if match.group(2) else "samples_per_second", rate)
    for match in TIME_RATE.finditer(text):
        seconds = _scaled(match.group(1), match.group(2), "step_time", False)
        if seconds is not None:
            found.setdefault("step_time", seconds)


def _scaled(raw: bytes, unit: bytes, name: str, is_ms: bool) -> Optional[float]:
    """The number: seconds of a step time, the quotient of an accuracy such as 98/100; None if it belongs to no series."""
    value = to_number(raw)
    if value is None or (unit == b"%" and name.endswith("loss")):
        return None
    if unit.startswith(b"/"):
        is_share = "acc" in name.lower()
        return float("%.6g" % (value / max(1.0, float(unit[1:])))) if is_share else None
    if name == "step_time":
        value /= _IN_SECONDS.get(unit, 1e3 if is_ms else 1.0)
        return float("%.6g" % value) if value < _MAX_STEP_TIME_S else None
    return value


@lru_cache(maxsize=1000)
def normal_name(printed: str, is_key: bool = False) -> str:
    """The name of a series: one of ours for what everybody prints, else as it is printed, without the words before it unless all are a key."""
    words = re.sub(r" ?\((?:ms|s|TFLOP/s/GPU)\)| in s\b", "", printed).split()
    if words[-1] == "is" and not is_key and _is_loss(words[:-1]):
        words.pop()
    kept = words[-1:]
    for word in reversed(words[:-1]):
        if is_key:
            kept.insert(0, word)
            continue
        if word.lower().rstrip("s") not in _MODIFIERS and not _SET_NAME.fullmatch(word.lower()):
            break
        kept.insert(0, word[:-2] if word.endswith("'s") else word)
    if len(words) > 1 and kept == ["value"]:
        return normal_name(" ".join(words[:-1]))
    while len(kept) > 1 and kept[0].lower() in ("avg", "average", "mean"):
        kept.pop(0)
    name = "_".join(kept).strip("'./-")
    plain = name.replace("-", "_")
    found = (normal for normal, pattern in NORMAL_NAMES.items() if pattern.fullmatch(plain))
    return next(found, name)


def _is_loss(words: List[str]) -> bool:
    """Whether words such as "the training loss" are about a loss, and not about that of packets."""
    before = {word.lower() for word in words[:-1]} - {"the", "current"}
    return words[-1:] != [] and words[-1].lower() in ("loss", "val_loss") and before <= _MODIFIERS


@lru_cache(maxsize=1000)
def _kind(name: str) -> str:
    """Whether a name is a primary or secondary metric, another one, or to be ignored."""
    lowered = name.lower()
    for kind, names in (("ignored", _IGNORED), ("primary", _PRIMARY), ("secondary", _SECONDARY)):
        if lowered in names:
            return kind
    words = [word for word in re.split(r"[\W_]+", lowered) if word]
    if words[-1:] in (["epoch"], ["step"]) and "loss" in words:
        return "primary"
    is_file = lowered.endswith((".py", ".cc", ".cpp", ".cu", ".c", ".h"))
    is_number = words[-1:] == ["number"] and _IGNORED.issuperset(words[:-1])
    if not words or is_file or is_number or words[-1] in _IGNORED:
        return "ignored"
    if words[0] in _COUNTS or "size" in words or words[:2] == ["number", "of"]:
        return "ignored"
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    if words[-1] in _PRIMARY or (words[0] == "loss" and len(words) > 1):
        return "primary"
    return "secondary" if words[-1] in _SECONDARY else "other"


def to_number(raw: "Optional[bytes]") -> Optional[float]:
    """Read a printed number; None if it is not a number or is too large for a float."""
    if raw is None or len(raw) > 60:
        return None
    try:
        value = float(raw.replace(b",", b""))
    except ValueError:
        return None
    if math.isinf(value) and any(48 <= byte <= 57 for byte in raw):
        return None
    return value
