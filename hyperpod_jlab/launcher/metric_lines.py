"""Numbers in what a rank prints: losses, rates, steps, as the common trainers print them."""

from __future__ import annotations

import contextlib
import math
import re
from typing import (
    Callable,
    ContextManager,
    Dict,
    FrozenSet,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Pattern,
)

MAX_LINE = 4096
"""Bytes of a line that are looked at."""
MAX_NAMES = 40
"""Names in one line."""
MAX_SETTINGS = 12
"""Names in a line without a step and a loss, above which it is a dump of settings."""

_NUMBER = (
    rb"[-+]?1\.#(?:IND|[QS]NAN|INF)0*|"
    rb"[-+]?(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    rb"|[-+]?(?:nan|NaN|Nan|NAN|inf(?:inity)?|Inf(?:inity)?|INF)\b"
)
_WORD = rb"[A-Za-z][\w./@'-]*"
_MORE_WORDS = rb"(?: (?!(?i:nan|inf|infinity)\b)" + _WORD + rb"){0,3}"
"""The further words of a name; "loss nan lr" is not one."""
_BEGIN = rb"(?<![\w./@-])(?<![\xc3-\xdf][\x80-\xbf])"
"""Not within a word. A letter that is not ASCII, such as an umlaut, has two bytes."""

PAIR = re.compile(
    _BEGIN + rb"(" + _WORD + _MORE_WORDS + rb"(?: ?\((?:ms|s)\))?)"
    rb"(['\"]?\s*[=:]\s*|\s+)(?:(?:tensor|np\.float[0-9]*|[Aa]rray)\(|\[|['\"])?(" + _NUMBER + rb")"
    rb"(?!\w|\.(?=\S)|,[0-9])(\s?(?:%|/[0-9]+|ms\b|s\b|us\b|\( *[0-9])?)"
)
"""Name, separator, value, unit. A name has at most four words."""
UNIT_PAIR = re.compile(
    _BEGIN + rb"(" + _WORD + _MORE_WORDS + rb")(['\"]?\s*[=:]\s*|\s+)"
    rb"([0-9][0-9,.]*(?:[eE][-+]?[0-9]+)?)(ms|us|s|%|GiB|GB|MiB|MB|it/s|G|M|K)(?![\w/])"
)
RATE = re.compile(
    rb"(?<![\w.,])([0-9][0-9,.]*(?:[eE][-+]?[0-9]+)?) ?(tok(?:en)?s?|samples?|examples?|im(?:a?g)(?:e)?s?|seqs?)/s(?:ec(?:ond)?)?\b"
)
TIME_RATE = re.compile(
    rb"(?<![\w.,])([0-9][0-9.]*(?:[eE][-+]?[0-9]+)?) ?(ms|s|us)/(?:step|it|iter|iteration|batch)\b"
)
TFLOPS = re.compile(rb"\(TFLOP/s/GPU\): ?([0-9][0-9.]*)")
STEP = re.compile(
    rb"(?<![\w./@-])(?:global[ _]?step|(?:completed )?step|iter(?:ation)?|it|update|num_updates|round)\b"
    rb"['\"]?\s*(?:[=:#]\s*)?(?:[\[(]\s*)?([0-9]{1,12})(?![\w.%])(?:\s*(?:/|of)\s*([0-9]{1,12})(?![\w.]))?",
    re.I,
)
EPOCH = re.compile(
    rb"(?<![\w./@-])epoch(?:\(train\)|\b)['\"]?\s*(?:[=:#]\s*)?(?:['\"\[]\s*)?([0-9]{1,9}(?:\.[0-9]+)?)\]?(?:\s*(?:/|of)\s*([0-9]{1,9})(?![\w.]))?",
    re.I,
)
BAR = re.compile(
    rb"(?:^|[|\s])([0-9]{1,12})/([0-9]{1,12}) \[(?:[0-9]+:)?[0-9]+:[0-9]+<[^,\]]*"
    rb"(?:, *([0-9.]+|\?) ?(it/s|s/it|steps?/s|s/step|batch(?:es)?/s|s/batch))?"
)
"""A bar of tqdm: done, total, rate and its unit."""
KERAS_BAR = re.compile(rb"(?:^|\s)([0-9]{1,12})/([0-9]{1,12}) (?:\[[=>.]+\]|[\xe2\x94\x81-]{2,}|-)")
BRACKETS = re.compile(rb"\[\s*([0-9]{1,12})\s*/\s*([0-9]{1,12})(?: \([0-9. ]+%\))?\s*\]")
EPOCHS_BAR = re.compile(rb"epochs?\s*:?\s*[0-9]*%?\s*\|?", re.I)
EPOCH_AND_STEP = re.compile(rb"\s*([0-9]{1,9})\|([0-9]{1,12})\|")
LONE_EPOCH = re.compile(rb"\W*epochs?\W*[0-9]+(?:\s*/\s*[0-9]+)?\W*", re.I)
ROUND = re.compile(rb"^\[([0-9]{1,9})\]\s")
PHASE = re.compile(
    rb"(?:^|[\s\]|])(?:test|eval(?:uation)?|val(?:id(?:ation)?)?|validating) ?(?:set|loop|epoch|results?)?(?: ?[:\]|]| - | loss at | metrics )|(?:^|\s)validate step",
    re.I,
)
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
LONE_LOSS = re.compile(
    rb"(?:(?:train(?:ing)?|val(?:id(?:ation)?)?|eval)[ _/])?loss\s*[=:]\s*[0-9]+\s*", re.I
)
"""All of a line."""
LOSS_IN_DICTIONARY = re.compile(
    rb"\s*\{(?:.*[,{]\s*)?['\"](?:(?:train|eval|val|valid|test)[_/])?loss['\"]: *[0-9]+[,}]"
)
NOT_FINITE = re.compile(rb"(?<![a-z0-9_])(?:nan|inf|infinity)(?![a-z0-9_])|1\.#(?:ind|[qs]nan|inf)")

KEYWORDS = (
    *(b"loss", b"acc", b"perplexity", b"ppl", b"reward", b"grad", b"learning", b"lr"),
    *(b"tok", b"samples", b"examples", b"it/s", b"s/it", b"/step", b"epoch", b"step", b"iter"),
    *(b"error", b"auc", b"f1", b"bleu", b"rouge", b"iou", b"map", b"mse", b"mae", b"nll", b"wer"),
    *(b"cer", b"score", b"kl", b"entropy", b"tps", b"tflop", b"mfu", b"rmse", b"l2", b"l1"),
    *(b"top1", b"top5", b"elbo"),
)
"""A text without any of these (in lower case) has no numbers for us."""


def _words(*lines: str) -> FrozenSet[str]:
    return frozenset(" ".join(lines).split())


_PRIMARY = _words(
    "loss acc accuracy ppl perplexity reward rewards auc f1 bleu rouge iou miou map mse",
    "rmse mae nll wer cer logloss elbo kl entropy top1 top5 acc1 acc5 score",
)
_SECONDARY = _words(
    "learning_rate lr tokens_per_second samples_per_second step_time tflops mfu memory",
    "throughput l1 l2 precision recall error grad_norm gnorm",
)
_ALIASES: Dict[str, str] = {}
for _target, _names in {
    "loss": "loss train_loss train/loss training_loss training/loss lm_loss total_loss reduced_train_loss average_loss avg_loss mean_loss"
    " loss/train loss/train/total train_loss_step global_avg_loss actor/loss",
    "eval_loss": "eval_loss eval/loss val_loss val/loss valid_loss validation_loss validation/loss dev_loss loss/val valid/loss test_loss"
    " loss/eval lm_loss_validation",
    "learning_rate": "learning_rate lr train/learning_rate train/lr learning/rate lr-adamw lr-adam lr-sgd actor/lr",
    "grad_norm": "grad_norm gradnorm gradient_norm gnorm train/grad_norm train/gnorm total_norm grad/norm l2_norm/grad/global actor/grad_norm",
    "accuracy": "accuracy acc train_acc train_accuracy train/acc train/accuracy training_accuracy",
    "tokens_per_second": "tokens_per_second tokens_per_sec tokens/s tokens/sec tok/s tok/sec tps tgs tokens_per_second_per_gpu"
    " tokens/s/device wps tokens/sec/gpu tokens_per_sec_per_gpu train_tokens_per_second throughput/tokens_per_sec",
    "samples_per_second": "samples_per_second samples_per_sec samples/s samples/sec examples/s examples/sec images/s images/sec img/s"
    " imgs/s runningavgsamplespersec samplespersec currsamplespersec",
    "step_time": "step_time time_per_step iter_time iteration_time time_per_iteration s/it sec/it time/step train_step_timing elapsed_time_per_iteration"
    " step/time timing_s/step time_per_iter batch_time sec_per_step",
    "tflops": "tflops tflop/s tflop/s/device tflop/s/gpu throughput_per_gpu flops",
}.items():
    _ALIASES.update((_name, _target) for _name in _names.split())

_IGNORED = _words(
    "step steps global_step globalstep iter iteration iterations it update num_updates",
    "updates batch epoch epochs round rank local_rank pid port seed time timestamp ts eta",
    "gpu gpus node nodes world_size version line v_num skipped wall train_wall bsz ups",
    "wpb level lineno thread process created msecs elapsed remaining total runtime",
    "train_runtime eval_runtime num_examples consumed_samples global_batch_size",
    "batch_size micro_step microstep max_steps num_train_epochs date data data_time",
    "duration ms loss_scale none cuda device",
)
_MODIFIERS = _words(
    "train training val valid validation eval test lm dev grad gradient learning mean avg",
    "average total top tokens samples examples images step iter iteration elapsed time",
    "per time_per throughput running global l2 max min moving",
)
_NOT_A_LOSS = _words(
    "scale weight weights coef coeff coefficient fn function type reduction ratio factor",
)


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


_SPOKEN = _words(
    "score error kl entropy map f1 auc reward rewards",
)
"""Words that need a sign between them and their number: they stand in sentences too."""

_COUNTS = _words(
    "max min num number total n size count",
)
_TIMES = _words(
    "time seconds batch_time iter_time step_time_s dt",
)
_MAX_STEP_TIME_S = 86_400.0
_IN_SECONDS = {b"ms": 1e3, b"us": 1e6}
_SET_NAME = re.compile(r"(train|valid|val|eval|test)\w*('s)?")


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
        self._step: Optional[int] = None
        self._total: Optional[int] = None
        self._epoch: Optional[float] = None
        self._epochs: Optional[int] = None
        self._offset = 0
        self._last_raw: Optional[int] = None
        self._highest_epoch = -1.0
        self._bar_total = 0
        self._has_values = False
        self._has_steps = False
        self._is_epoch_step = False
        self._is_numbered = False
        self._pending: Optional[LineNumbers] = None
        self._held: Optional[LineNumbers] = None
        self._last_bar = b""
        self._last_values: Dict[str, float] = {}
        self._is_last_counted = False
        self._told: Dict[str, float] = {}

    def read(self, line: bytes, is_behind_bar: bool = False) -> List[LineNumbers]:
        """The numbers of a line. Empty if there are none.

        Those of a progress bar are held back until the bar moves on, and those of a dictionary beside a bar until the next line: tqdm removes its bar for
        the line, and the bar that it draws again has the step.
        """
        line = line[:MAX_LINE]
        if b"\x1b" in line or b"\x08" in line:
            line = ESCAPES.sub(b"", line)
        bar = BAR.search(line)
        end = line.find(b"]", bar.end()) + 1 if bar is not None else 0
        if bar is None:
            return self._read_text(line, line.startswith(b"{") and not is_behind_bar)
        if not end or len(line) - end <= 8:
            return self._read_bar_line(line, bar)
        # A line that was printed behind a bar: tqdm does not know of it.
        return self._read_bar_line(line[:end], bar) + self.read(line[end:], True)

    def _read_text(self, line: bytes, may_wait: bool) -> List[LineNumbers]:
        found = self._release(self._held) if line.strip() else []
        values = self._own_values(line)
        self._read_line(line, values)
        if not values:
            return found
        self._has_values = True
        numbers = LineNumbers(self._step, self._total, values)
        if b"%|" in line:
            return found + self._replace_pending(numbers)
        found += self.flush()
        if may_wait and self._bar_total and STEP.search(line) is None:
            self._held = numbers
            return found
        return [*found, numbers]

    def _read_bar_line(self, line: bytes, bar: "re.Match[bytes]") -> List[LineNumbers]:
        is_new = line != self._last_bar  # else it is drawn once more
        if is_new:
            self._last_bar = line
            self._last_values = self._own_values(line)
            self._is_last_counted = self._read_bar(line, bar, self._last_values)
        numbers = LineNumbers(self._step, self._total, self._last_values)
        held = self._held
        if held is not None and self._is_last_counted:
            held = held._replace(step=self._step, total=self._total)
        found = self._release(held)
        if self._last_values:
            self._has_values = True
        elif not (self._is_last_counted and self._has_values):
            return found
        return found + self._replace_pending(numbers) if is_new else found

    def _replace_pending(self, numbers: LineNumbers) -> List[LineNumbers]:
        pending, self._pending = self._pending, numbers
        if pending is None or pending.step == numbers.step:
            return []  # of one step, a bar's last state counts
        return [self._without_old(pending)]

    def _release(self, held: Optional[LineNumbers]) -> List[LineNumbers]:
        self._held = None
        return [] if held is None else [held]

    def flush(self) -> List[LineNumbers]:
        """What was held back: the last state of a bar, and the numbers of a dictionary."""
        pending, held = self._pending, self._held
        self._pending = self._held = None
        found = [] if pending is None else [self._without_old(pending)]
        return found if held is None else [*found, held]

    @property
    def has_pending(self) -> bool:
        """Whether something is held back."""
        return self._pending is not None or self._held is not None

    @property
    def awaits_bar(self) -> bool:
        """Whether numbers are held back whose step the next bar tells."""
        return self._held is not None

    def _without_old(self, numbers: LineNumbers) -> LineNumbers:
        """A bar repeats the numbers of its last evaluation: each counts once."""
        values = {}
        for name, value in numbers.values.items():
            is_seldom = "val" in name or "epoch" in name or "test" in name
            if not (is_seldom and self._told.get(name) == value):
                values[name] = value
            self._told[name] = value
        return numbers._replace(values=values)

    # ---- the user's rules

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
            value = to_number(match.group(1)) if match and match.group(1) is not None else None
            if value is not None:
                values[name] = value
        return values

    # ---- bars

    def _read_bar(self, line: bytes, bar: "re.Match[bytes]", values: Dict[str, float]) -> bool:
        """Take a bar's values and step; whether it is the training's."""
        done, total = int(bar.group(1)), int(bar.group(2))
        head = line[: bar.start(1)]
        epoch = EPOCH.search(head)
        if OTHER_BAR.search(head) or not total:
            return False
        if epoch is None and EPOCHS_BAR.search(head):
            self._epoch, self._epochs = float(done), total
            return False
        found: Dict[str, float] = {}
        if done or not self._last_raw:  # at its beginning a bar has the numbers of the one before
            found = self._pairs(line[bar.end() :], has_step=True)
            for name, value in self._pairs(head.partition(b"%|")[0], has_step=True).items():
                found.setdefault(name, value)
        if (bar.group(4) is None and not found) or (total < self._bar_total and not found):
            return False
        self._bar_total = max(total, self._bar_total)
        counted = EPOCH_AND_STEP.match(head)
        if counted is not None:  # torchtune writes the step over all epochs
            self._step, self._is_numbered = int(counted.group(2)), True
        elif not self._is_numbered:
            self._set_step(done, total, epoch, is_bar=True)
        for name, value in found.items():
            values.setdefault(name, value)
        rate = to_number(bar.group(3)) if bar.group(3) not in (None, b"?") else None
        if rate and values and "step_time" not in values:
            is_inverse = bar.group(4).endswith(b"/s")
            values["step_time"] = float("%.4g" % (1.0 / rate)) if is_inverse else rate
        return True

    # ---- other lines

    def _read_line(self, line: bytes, values: Dict[str, float]) -> None:
        if b" at " in line:
            line = LOSS_AT_STEP.sub(rb"\2: \1: ", line)
        epoch = EPOCH.search(line)
        keras = KERAS_BAR.search(line)
        brackets = BRACKETS.search(line, epoch.end() if epoch is not None else 0)
        step = keras or STEP.search(line) or ROUND.match(line) or brackets
        found: Dict[str, float] = {}
        if not CODE.search(line):
            found = self._pairs(line, has_step=step is not None or epoch is not None)
        if not found and not values:
            self._read_lone_epoch(line, epoch)
            return
        is_evaluation = PHASE.search(line[:80]) is not None
        self._take_values(line, found, is_evaluation, values)
        if epoch is not None:
            values.setdefault("epoch", float(epoch.group(1)))
        if is_evaluation:
            return  # its steps are not the training's
        if step is not None:
            self._take_step(step, brackets, epoch)
        elif epoch is not None:
            self._set_epoch(epoch)
            self._is_epoch_step = not self._has_steps and not self._bar_total
        if step is None and self._is_epoch_step and self._epoch is not None:
            self._step, self._total = int(self._epoch), self._epochs

    def _read_lone_epoch(self, line: bytes, epoch: "Optional[re.Match[bytes]]") -> None:
        """Keras and others write "Epoch 1/3" on a line of its own."""
        if epoch is not None and len(line) < 40 and LONE_EPOCH.fullmatch(line):
            self._set_epoch(epoch)
            has_end = epoch.group(2) is not None
            self._is_epoch_step = not (self._has_steps or self._bar_total or has_end)

    @staticmethod
    def _take_values(
        line: bytes, found: Dict[str, float], is_evaluation: bool, values: Dict[str, float]
    ) -> None:
        if b"train_runtime" in line and "loss" in found:
            found["train_loss"] = found.pop("loss")  # the mean over all of the training
        for name, value in found.items():
            is_marked = not is_evaluation or "val" in name or _kind(name) != "primary"
            values.setdefault(name if is_marked else "eval_" + name, value)

    def _take_step(
        self,
        step: "re.Match[bytes]",
        brackets: "Optional[re.Match[bytes]]",
        epoch: "Optional[re.Match[bytes]]",
    ) -> None:
        number = int(step.group(1))
        total = None if step.re is ROUND else step.group(2)
        if not total and brackets is not None and int(brackets.group(1)) == number:
            total = brackets.group(2)
        is_keras = step.re is KERAS_BAR
        in_epoch = is_keras or (step.re is BRACKETS and epoch is not None)
        self._set_step(number, int(total) if total else None, epoch, in_epoch)
        self._has_steps = self._has_steps or not is_keras

    def _set_epoch(self, epoch: "re.Match[bytes]") -> None:
        if b"." in epoch.group(1):
            return  # how far the training is, not which epoch
        self._epoch = float(epoch.group(1))
        if epoch.group(2) is not None:
            self._epochs = int(epoch.group(2))

    def _set_step(
        self,
        step: int,
        total: Optional[int],
        epoch: "Optional[re.Match[bytes]]",
        is_in_epoch: bool = False,
        is_bar: bool = False,
    ) -> None:
        """Take a step; the count may restart with each epoch."""
        if epoch is not None:
            self._set_epoch(epoch)
        last = self._last_raw
        has_begun_anew = last is not None and (
            step < last or (step == last and (epoch is not None or is_in_epoch))
        )
        if last is not None and has_begun_anew:
            if self._epoch is not None and self._epoch > self._highest_epoch:
                self._offset += max(last, total or 0)
            elif is_bar and last == total and step < last and epoch is None:
                self._offset += last
        self._last_raw = step
        # Two trainers in one log take turns: only an epoch that was not there yet goes on.
        self._highest_epoch = max(self._highest_epoch, -1.0 if self._epoch is None else self._epoch)
        self._step = self._offset + step
        if total is not None:
            has_epochs = (is_in_epoch or epoch is not None) and self._epoch is not None
            if not has_epochs and not self._offset:
                self._total = total
            else:
                self._total = total * self._epochs if self._epochs else None

    # ---- names and values

    def _pairs(self, text: bytes, has_step: bool) -> Dict[str, float]:
        """The metrics of a line; empty unless one of them leaves no doubt."""
        found: Dict[str, float] = {}
        is_sure = False
        pairs = _matches(text)
        if len(pairs) > MAX_SETTINGS and not has_step and b"loss" not in text.lower():
            return {}  # the settings of a program
        for pair in pairs:
            name = pair.series
            kind = _kind(name)
            value = pair.value(name)
            if value is None or kind == "ignored" or (kind == "other" and pair.is_spaced):
                continue
            if pair.is_spaced and name.lower() in _SPOKEN:
                continue
            is_rate = kind == "secondary" and has_step and not pair.is_spaced
            if kind == "primary" or is_rate:
                is_sure = is_sure or has_step or pair.has_point
            found.setdefault(name, value)
        is_sure = is_sure or (bool(found) and _is_whole_loss(text))
        if is_sure:
            _add_rates(text, found)
        return found if is_sure else {}


class Pair(NamedTuple):
    """A name and its number, as they are printed."""

    name: str
    separator: bytes
    raw: bytes
    unit: bytes
    is_key: bool
    """Whether the name is a text in quotes."""

    @property
    def is_spaced(self) -> bool:
        """Whether nothing but blanks stands between them."""
        return not self.separator.strip(b" '\"\t")

    @property
    def has_point(self) -> bool:
        """Whether it is not written as a whole number."""
        return not self.raw.isdigit() and (
            b"." in self.raw or b"n" in self.raw.lower() or b"e" in self.raw.lower()
        )

    @property
    def series(self) -> str:
        """The name of its series."""
        name = normal_name(self.name, self.is_key)
        is_time = self.unit in (b"ms", b"s", b"us") or self.unit.startswith(b"(")
        # With a sign, and not as a word in quotes, which is a time of day more often.
        is_time = is_time or self.separator.strip() in (b":", b"=")
        return "step_time" if is_time and name.lower() in _TIMES else name

    def value(self, series: str) -> Optional[float]:
        """The number: seconds of a step time, the quotient of an accuracy such as 98/100; None if it belongs to no series."""
        value = to_number(self.raw)
        if value is None or (self.unit == b"%" and series.endswith("loss")):
            return None
        if self.unit.startswith(b"/"):
            is_share = "acc" in series.lower()
            return float("%.6g" % (value / max(1.0, float(self.unit[1:])))) if is_share else None
        if series == "step_time":
            value /= _IN_SECONDS.get(self.unit, 1e3 if "(ms)" in self.name else 1.0)
            return float("%.6g" % value) if value < _MAX_STEP_TIME_S else None
        return value


def _is_whole_loss(text: bytes) -> bool:
    """Whether nothing but a loss is on the line, or the line is a dictionary with one: there, a whole number leaves no doubt either."""
    if LONE_LOSS.fullmatch(text):
        return True
    return text.rstrip().endswith(b"}") and LOSS_IN_DICTIONARY.match(text) is not None


def _add_rates(text: bytes, found: Dict[str, float]) -> None:
    """Numbers that stand before their name: 1,234 tok/s, 12 ms/step."""
    for match in RATE.finditer(text):
        name = "tokens_per_second" if match.group(2).startswith(b"tok") else "samples_per_second"
        value = to_number(match.group(1))
        if value is not None:
            found.setdefault(name, value)
    for match in TFLOPS.finditer(text):
        value = to_number(match.group(1))
        if value is not None:
            found.setdefault("tflops", value)
    for match in TIME_RATE.finditer(text):
        value = to_number(match.group(1))
        if value is not None:
            seconds = value / _IN_SECONDS.get(match.group(2), 1.0)
            found.setdefault("step_time", float("%.6g" % seconds))


def _matches(text: bytes) -> List[Pair]:
    """The first pairs of a line. Each search goes on where its last match was, or a long line would be searched once for each pair."""
    found: List[Pair] = []
    plain, with_unit = PAIR.search(text), UNIT_PAIR.search(text)
    while len(found) < MAX_NAMES:
        match = plain
        if with_unit is not None and (match is None or with_unit.start() <= match.start()):
            match = with_unit
        if match is None:
            break
        position = match.end(3)
        if plain is not None and plain.start() < position:
            plain = PAIR.search(text, position)
        if with_unit is not None and with_unit.start() < position:
            with_unit = UNIT_PAIR.search(text, position)
        printed, separator = match.group(1), match.group(2)
        is_key = printed.endswith(b"'") or separator[:1] in (b"'", b'"')
        if is_key and text[match.start() - 1 : match.start()] not in (b"'", b'"'):
            continue  # the end of a key
        name = printed.decode("ascii", "replace")
        unit = (match.group(4) or b"").strip()
        found.append(Pair(name, separator, match.group(3), unit, is_key))
    return found


def normal_name(printed: str, is_key: bool = False) -> str:
    """The name of a series: one of ours for what everybody prints, else as it is printed, without the words before it unless all are a key."""
    words = printed.replace("(ms)", "").replace("(s)", "").replace(" in s", "").split()
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
    return _ALIASES.get(name.lower(), _ALIASES.get(name.lower().replace("-", "_"), name))


def _is_loss(words: List[str]) -> bool:
    """Whether words such as "the training loss" are about a loss, and not about that of packets."""
    before = {word.lower() for word in words[:-1]} - {"the", "current"}
    return words[-1:] != [] and words[-1].lower() in ("loss", "val_loss") and before <= _MODIFIERS


def _kind(name: str) -> str:
    lowered = name.lower()
    for kind, names in (("ignored", _IGNORED), ("primary", _PRIMARY), ("secondary", _SECONDARY)):
        if lowered in names:
            return kind
    words = [word for word in re.split(r"[\W_]+", lowered) if word]
    if words[-1:] in (["epoch"], ["step"]) and "loss" in words:
        return "primary"
    if _is_setting(lowered, words):
        return "ignored"
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    if words[-1] in _PRIMARY or (words[0] == "loss" and len(words) > 1):
        return "primary"
    return "secondary" if words[-1] in _SECONDARY else "other"


def _is_setting(lowered: str, words: List[str]) -> bool:
    """Whether a name is that of a file, a count or a setting."""
    is_file = lowered.endswith((".py", ".cc", ".cpp", ".cu", ".c", ".h"))
    if not words or is_file or words[-1] in _NOT_A_LOSS or words[-1] in _IGNORED:
        return True
    if words[-1] == "number" and all(word in _IGNORED for word in words[:-1]):
        return True
    return words[0] in _COUNTS or "size" in words or words[:2] == ["number", "of"]


def to_number(raw: "Optional[bytes]") -> Optional[float]:
    """Read a printed number; None if it is not a number or is too large for a float."""
    if raw is None or len(raw) > 60:
        return None
    if raw.lstrip(b"+-").startswith(b"1.#"):  # as older C libraries on Windows print it
        infinity = -math.inf if raw.startswith(b"-") else math.inf
        return infinity if b"INF" in raw else math.nan
    try:
        value = float(raw.replace(b",", b""))
    except ValueError:
        return None
    if math.isinf(value) and any(48 <= byte <= 57 for byte in raw):
        return None
    return value
