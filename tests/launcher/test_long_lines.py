"""What a rank prints takes no long time to read, whatever it is."""

from __future__ import annotations

import time

import pytest

from hyperpod_jlab.launcher.metric_lines import MAX_LINE, MetricParser

BEGINS = ["", "step", "it=", "epoch [", "loss at step 1: ", "{", "1/1 [1:1<", "train loss", "x 1"]
UNITS = [" ", "\t", "a", "1", "a: 1 ", '"a":1,', "{", "1/1 [1:1<", "\x1b]", ", ", "1,111", "epoch ", "step  "]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("begin", BEGINS)
def test_no_line_takes_long(begin: str, unit: str) -> None:
    for end in ("", "!", "x", "]", "}", " 1!"):
        text = (begin + unit * MAX_LINE)[: MAX_LINE - len(end)] + end
        began = time.process_time()
        MetricParser().read(text.encode())
        assert time.process_time() - began < 2, end  # it was minutes for some


def test_blanks_between_a_step_and_its_number_do_not_matter() -> None:
    for line in (b"step   =   [  7 loss: 0.5", b"step 7 loss: 0.5", b"step #7, loss: 0.5"):
        (numbers,) = MetricParser().read(line)
        assert (numbers.step, numbers.values) == (7, {"loss": 0.5})
