"""What a run used, in words."""

import pytest

from hyperpod_jlab.cli.cost import gpu_hours, node_hours
from hyperpod_jlab.cli.usage import format_usage, hours
from hyperpod_jlab.core.usage import Usage


def test_all_of_it_and_who_says_so():
    usage = Usage(
        source="accounting",
        accelerator_seconds=57_600,
        cpu_seconds=7265,
        max_memory=3 * 2**30 // 2,
        exit_code=139,
        signal=11,
    )
    assert format_usage(usage) == (
        "16 GPU-hours, 2h 01m of CPU time, 1.5 GiB of memory at its peak, ended by SIGSEGV"
        " (from the scheduler's accounting)"
    )


def test_nothing_and_who_says_so():
    usage = Usage(source="journal", accelerator_seconds=0)
    assert format_usage(usage) == "no usage recorded (from the records of the run)"


def test_other_accelerators_and_a_signal_without_a_name():
    usage = Usage(source="journal", accelerator_seconds=1800, accelerator_kind="neuron", signal=99)
    assert format_usage(usage).startswith("0.5 accelerator-hours, ended by signal 99 (")


@pytest.mark.parametrize(("seconds", "text"), [(42, "0.0117"), (45_000, "12.5"), (3600 * 12_345, "12345")])
def test_hours(seconds, text):
    assert hours(seconds) == text


def test_one_hour_is_no_plural():
    assert [node_hours(1), node_hours(2), gpu_hours(1.0), gpu_hours(1.5)] == [
        "1 node-hour",
        "2 node-hours",
        "1 GPU-hour",
        "1.5 GPU-hours",
    ]
