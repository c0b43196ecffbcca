"""Numbers in what a rank prints: losses, rates, steps, as the common trainers print them."""

from __future__ import annotations

import math
import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Pattern, Tuple

MAX_LINE = 4096
"""Bytes of a line that are looked at."""
MAX_NAMES = 40
"""Names in one line."""

_NUMBER = (
    rb"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    rb"|[-+]?(?:nan|NaN|NAN|inf(?:inity)?|Inf(?:inity)?|INF)\b"
)
_WORD = rb"[A-Za-z][\w./@'-]*"

PAIR = re.compile(
    rb"(?<![\w./@-])(" + _WORD + rb"(?: " + _WORD + rb"){0,3}(?: ?\((?:ms|s)\))?)"
    rb"(['\"]?\s*[=:|]\s*|\s+)(?:tensor\(|\[|['\"])?(" + _NUMBER + rb")"
    rb"(?![\w.])(\s?(?:%|/[0-9]+|ms\b|s\b|us\b)?)"
)
"""Name, separator, value, unit. A name has at most four words."""
UNIT_PAIR = re.compile(
    rb"(?<![\w./@-])(" + _WORD + rb"(?: " + _WORD + rb"){0,3})(['\"]?\s*[=:|]\s*|\s+)"
    rb"([0-9][0-9,.]*(?:[eE][-+]?[0-9]+)?)(ms|us|s|%|GiB|GB|MiB|MB|it/s|G|M|K)(?![\w/])"
)
RATE = re.compile(
    rb"(?<![\w.,])([0-9][0-9,.]*(?:[eE][-+]?[0-9]+)?) ?(tok(?:en)?s?|samples?|examples?|im(?:a?g)(?:e)?s?|seqs?)/s(?:ec(?:ond)?)?\b"
)
STEP = re.compile(
    rb"(?<![\w./@-])(?:global[ _]?step|(?:completed )?step|iter(?:ation)?|it|update|num_updates|batch|round)s?\b"
    rb"['\"]?\s*[=:#]?\s*[\[(]?\s*([0-9]{1,12})(?![\w.%])(?:\s*(?:/|of)\s*([0-9]{1,12})(?![\w.]))?",
    re.I,
)
EPOCH = re.compile(
    rb"(?<![\w./@-])epochs?\b['\"]?\s*[=:#]?\s*\[?\s*([0-9]{1,9}(?:\.[0-9]+)?)\]?(?:\s*(?:/|of)\s*([0-9]{1,9})(?![\w.]))?",
    re.I,
)
BAR = re.compile(
    rb"(?:^|[|\s])([0-9]{1,12})/([0-9]{1,12}) \[(?:[0-9]+:)?[0-9]+:[0-9]+<[^,\]]*"
    rb"(?:, *([0-9.]+|\?) ?(it/s|s/it|steps?/s|s/step|batch(?:es)?/s|s/batch))?"
)
"""A bar of tqdm: done, total, rate and its unit."""
KERAS_BAR = re.compile(rb"(?:^|\s)([0-9]{1,12})/([0-9]{1,12}) (?:\[[=>.]+\]|[\xe2\x94\x81-]{2,}|-)")
BRACKETS = re.compile(rb"\[\s*([0-9]{1,12})\s*/\s*([0-9]{1,12})(?: \([0-9. ]+%\))?\s*\]")
ROUND = re.compile(rb"^\[([0-9]{1,9})\]\s")
PHASE = re.compile(
    rb"(?:^|[\s\]|])(?:test set|test|eval(?:uation)?|val(?:id(?:ation)?)?|validating)\s?(?:set|loop|epoch)?\s*[:\]|-]",
    re.I,
)
OTHER_BAR = re.compile(
    rb"download|upload|fetch|map\b|filter|load|tokeniz|generat|saving|writ|eval|valid|test|infer|predict|extract|compil"
    rb"|shard|build|sanity|pack|convert|files|proc",
    re.I,
)
"""What stands before a bar that is not the training's."""
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|[\x08]+")
NOT_FINITE = re.compile(rb"(?<![a-z0-9_])(?:nan|inf|infinity)(?![a-z0-9_])")

KEYWORDS = (
    *(b"loss", b"acc", b"perplexity", b"ppl", b"reward", b"grad", b"learning", b"lr"),
    *(b"tok", b"samples", b"examples", b"it/s", b"s/it", b"/step", b"epoch", b"step", b"iter"),
    *(b"error", b"auc", b"f1", b"bleu", b"rouge", b"iou", b"map", b"mse", b"mae", b"nll", b"wer"),
    *(b"cer", b"score", b"kl", b"entropy", b"tps", b"tflop", b"mfu", b"rmse", b"l2", b"l1"),
)
"""A text without any of these (in lower case) has no numbers for us."""

_PRIMARY = frozenset(
    "loss acc accuracy ppl perplexity reward rewards grad_norm gnorm auc f1 bleu rouge iou miou map mse rmse mae nll wer cer"
    " logloss elbo kl entropy top1 top5 acc1 acc5 score".split()
)
_SECONDARY = frozenset(
    "learning_rate lr tokens_per_second samples_per_second step_time tflops mfu memory throughput l1 l2 precision recall error".split()
)
_ALIASES: Dict[str, str] = {}
for _target, _names in {
    "loss": "loss train_loss train/loss training_loss training/loss lm_loss total_loss reduced_train_loss average_loss avg_loss mean_loss"
    " loss/train loss/train/total train_loss_step global_avg_loss actor/loss",
    "eval_loss": "eval_loss eval/loss val_loss val/loss valid_loss validation_loss validation/loss dev_loss loss/val valid/loss test_loss"
    " loss/eval lm_loss_validation",
    "learning_rate": "learning_rate lr train/learning_rate train/lr learning/rate lr-adamw lr-adam lr-sgd",
    "grad_norm": "grad_norm gradient_norm gnorm train/grad_norm train/gnorm total_norm grad/norm l2_norm/grad/global actor/grad_norm",
    "accuracy": "accuracy acc train_acc train_accuracy train/acc train/accuracy training_accuracy",
    "eval_accuracy": "eval_accuracy eval_acc val_acc val_accuracy val/acc val/accuracy valid_acc valid_accuracy validation_accuracy eval/accuracy"
    " test_acc test_accuracy",
    "tokens_per_second": "tokens_per_second tokens_per_sec tokens/s tokens/sec tok/s tok/sec tps tgs tokens_per_second_per_gpu"
    " tokens/s/device tokens/sec/gpu tokens_per_sec_per_gpu train_tokens_per_second throughput/tokens_per_sec",
    "samples_per_second": "samples_per_second samples_per_sec samples/s samples/sec examples/s examples/sec images/s images/sec img/s"
    " imgs/s runningavgsamplespersec samplespersec currsamplespersec",
    "step_time": "step_time time_per_step iter_time iteration_time time_per_iteration s/it sec/it time/step train_step_timing elapsed_time_per_iteration"
    " step/time timing_s/step time_per_iter batch_time sec_per_step",
    "tflops": "tflops tflop/s tflop/s/device tflop/s/gpu throughput_per_gpu flops",
}.items():
    _ALIASES.update((_name, _target) for _name in _names.split())

_IGNORED = frozenset(
    "step steps global_step globalstep iter iteration iterations it update num_updates updates batch epoch epochs round rank local_rank"
    " pid port seed time timestamp ts eta gpu gpus node nodes world_size version line v_num skipped wall train_wall bsz ups wpb"
    " level lineno thread process created msecs elapsed remaining total runtime train_runtime eval_runtime num_examples"
    " consumed_samples global_batch_size batch_size micro_step microstep max_steps num_train_epochs date data data_time seconds duration"
    " ms loss_scale".split()
)
_MODIFIERS = frozenset(
    "train training val valid validation eval test lm dev grad gradient learning mean avg average total top tokens samples examples images"
    " step iter iteration elapsed time per time_per throughput running global l2 max min moving".split()
)
_LAST_WORDS = frozenset("norm rate second sec iteration step gpu time s".split())
_NOT_A_LOSS = frozenset(
    "scale weight weights coef coeff coefficient fn function type reduction ratio factor".split()
)


class LineNumbers(NamedTuple):
    """What one line says. `step` counts over all epochs; `total` is None where the line does not tell the end."""

    step: Optional[int]
    total: Optional[int]
    values: Dict[str, float]


def may_have_numbers(text: bytes) -> bool:
    """Whether a look at the lines of a text pays: fast, and never wrong with no."""
    lowered = text.lower()
    return any(word in lowered for word in KEYWORDS)


class MetricParser:
    """Reads the lines of one rank; remembers the step that the numbers of a line without one belong to.

    Args:
        patterns: Rules of the user: by name, a regular expression with one group that is the number.
    """

    def __init__(self, patterns: Optional[Mapping[str, "Pattern[bytes]"]] = None) -> None:
        self._patterns = dict(patterns or {})
        self._step: Optional[int] = None
        self._total: Optional[int] = None
        self._epoch: Optional[float] = None
        self._epochs: Optional[int] = None
        self._offset = 0
        self._last_raw: Optional[int] = None
        self._raw_epoch: Optional[float] = None
        self._bar_total = 0
        self._has_values = False
        self._is_counted = False

    def read(self, line: bytes) -> Optional[LineNumbers]:
        """The numbers of a line; None when it has none."""
        line = line[:MAX_LINE]
        if b"\x1b" in line or b"\x08" in line:
            line = ESCAPES.sub(b"", line)
        values = self._own_values(line)
        bar = BAR.search(line)
        if bar is not None:
            self._read_bar(line, bar, values)
        else:
            self._read_line(line, values)
        if values:
            self._has_values = True
        elif bar is None or not self._has_values or not self._is_counted:
            return None
        return LineNumbers(self._step, self._total, values)

    # ---- the user's rules

    def _own_values(self, line: bytes) -> Dict[str, float]:
        values: Dict[str, float] = {}
        for name, pattern in self._patterns.items():
            match = pattern.search(line)
            value = to_number(match.group(1)) if match and match.group(1) is not None else None
            if value is not None:
                values[name] = value
        return values

    # ---- bars

    def _read_bar(self, line: bytes, bar: "re.Match[bytes]", values: Dict[str, float]) -> None:
        done, total = int(bar.group(1)), int(bar.group(2))
        head = line[: bar.start(1)]
        epoch = EPOCH.search(head)
        self._is_counted = False
        if OTHER_BAR.search(head) or not total:
            return
        if re.search(rb"epochs?\s*:?\s*[0-9]*%?\s*\|?", head, re.I) and epoch is None:
            self._epoch, self._epochs = float(done), total  # a bar of epochs
            return
        found = self._pairs(line[bar.end() :], has_step=True)
        if bar.group(4) is None and not found:
            return
        if total >= self._bar_total or found:
            self._is_counted = True
            self._bar_total = max(total, self._bar_total)
            self._set_step(done, total, epoch)
            rate = to_number(bar.group(3)) if bar.group(3) not in (None, b"?") else None
            for name, value in found.items():
                values.setdefault(name, value)
            if rate and values and "step_time" not in values:
                is_inverse = bar.group(4).endswith(b"/s")
                values["step_time"] = float("%.4g" % (1.0 / rate)) if is_inverse else rate

    # ---- other lines

    def _read_line(self, line: bytes, values: Dict[str, float]) -> None:
        epoch = EPOCH.search(line)
        keras = KERAS_BAR.search(line)
        step = None if keras else STEP.search(line) or ROUND.match(line)
        if step is None and keras is None:
            step = BRACKETS.search(line)
        found = self._pairs(line, has_step=step is not None or keras is not None or epoch is not None)
        if not found and not values:
            if epoch is not None and epoch.group(2) is not None and len(line) < 40:
                self._set_epoch(epoch)  # Keras: "Epoch 1/3" on a line of its own
            return
        if PHASE.search(line[:80]):
            for name in ("loss", "accuracy"):
                if name in found and "eval_" + name not in found:
                    found["eval_" + name] = found.pop(name)
        for name, value in found.items():
            values.setdefault(name, value)
        if keras is not None:
            self._set_step(int(keras.group(1)), int(keras.group(2)), epoch, is_in_epoch=True)
        elif step is not None:
            total = step.group(2) if step.re is not ROUND else None
            brackets = None if total else BRACKETS.search(line)
            if brackets is not None and int(brackets.group(1)) == int(step.group(1)):
                total = brackets.group(2)
            in_epoch = step.re is BRACKETS and epoch is not None
            self._set_step(int(step.group(1)), int(total) if total else None, epoch, in_epoch)
        elif epoch is not None:
            self._set_epoch(epoch)

    def _set_epoch(self, epoch: "re.Match[bytes]") -> None:
        self._epoch = float(epoch.group(1))
        if epoch.group(2) is not None:
            self._epochs = int(epoch.group(2))

    def _set_step(
        self,
        step: int,
        total: Optional[int],
        epoch: "Optional[re.Match[bytes]]",
        is_in_epoch: bool = False,
    ) -> None:
        """Take a step that may begin anew with each epoch."""
        if epoch is not None:
            self._set_epoch(epoch)
        last = self._last_raw
        if last is not None and step < last and self._epoch != self._raw_epoch:
            self._offset += max(last, total or 0)
        self._last_raw, self._raw_epoch = step, self._epoch
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
        count = 0
        has_rest = False
        for printed, separator, raw, unit in _matches(text):
            name = normal_name(printed)
            count += 1
            if count > MAX_NAMES:
                break
            value = to_number(raw)
            kind = _kind(name)
            is_spaced = not separator.strip(b" '\"\t")
            if value is None or kind == "ignored" or (kind == "other" and is_spaced):
                continue
            unit = unit.strip()
            if unit == b"%" and name.endswith("loss"):
                continue
            if unit.startswith(b"/") and len(unit) > 1:
                if "accuracy" not in name:
                    continue
                value = value / max(1.0, float(unit[1:]))
            if kind == "other":
                has_rest = True
            elif kind == "primary" or has_step:
                has_point = not float(value).is_integer() or b"." in raw or b"e" in raw.lower()
                is_sure = is_sure or has_step or has_point
            if name == "step_time":
                value = value / {b"ms": 1e3, b"us": 1e6}.get(unit, 1e3 if "(ms)" in printed else 1.0)
                value = float("%.6g" % value)
            if name not in found:
                found[name] = value
        for match in RATE.finditer(text):
            name = "tokens_per_second" if match.group(2).startswith(b"tok") else "samples_per_second"
            value = to_number(match.group(1))
            if value is not None and is_sure:
                found.setdefault(name, value)
        return found if is_sure else {}


def _matches(text: bytes) -> List[Tuple[str, bytes, bytes, bytes]]:
    found = []
    position = 0
    while True:
        match = PAIR.search(text, position)
        with_unit = UNIT_PAIR.search(text, position)
        if with_unit is not None and (match is None or with_unit.start() <= match.start()):
            match = with_unit
        if match is None:
            return found
        position = match.end(3)
        name = match.group(1).decode("ascii", "replace")
        found.append((name, match.group(2), match.group(3), match.group(4) or b""))


def normal_name(printed: str) -> str:
    """The name of a series: one of ours for what everybody prints, else as it is printed, without the words before it."""
    words = printed.replace("(ms)", "").replace("(s)", "").split()
    kept = words[-1:]
    for word in reversed(words[:-1]):
        if word.lower().rstrip("s") not in _MODIFIERS and word.lower() not in _MODIFIERS:
            break
        kept.insert(0, word)
    name = "_".join(kept).strip("'./-")
    return _ALIASES.get(name.lower(), _ALIASES.get(name.lower().replace("-", "_"), name))


def _kind(name: str) -> str:
    lowered = name.lower()
    if lowered in _IGNORED:
        return "ignored"
    if lowered in _PRIMARY:
        return "primary"
    if lowered in _SECONDARY:
        return "secondary"
    words = [word for word in re.split(r"[\W_]+", lowered) if word]
    if not words or words[-1] in _NOT_A_LOSS or "size" in words or "number" in words or "num" in words:
        return "ignored"
    if words[-1] in _PRIMARY or (words[0] == "loss" and len(words) > 1):
        return "primary"
    return "secondary" if words[-1] in _SECONDARY else "other"


def to_number(raw: "Optional[bytes]") -> Optional[float]:
    """A number as it is printed; None where it is none, or too large for one."""
    if raw is None or len(raw) > 60:
        return None
    try:
        value = float(raw.replace(b",", b""))
    except ValueError:
        return None
    if math.isinf(value) and any(48 <= byte <= 57 for byte in raw):
        return None
    return value
