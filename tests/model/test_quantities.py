"""Durations, sizes, ranges and arrays as people write them, and as attackers do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_jlab.core.quantities import (
    format_duration,
    format_size,
    parse_array,
    parse_duration,
    parse_ranges,
    parse_size,
)

DAY = 86400
LIKE_ALWAYS = settings(deadline=None, derandomize=True, database=None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("1d12h", 129_600),
        ("1w", 604_800),
        ("1h30m", 5400),
        (" 2H ", 7200),
        ("10 min", 600),
        ("1.5h", 5400),
        ("2 h", 7200),
        ("1 hour 30 minutes", 5400),
        ("45 sec", 45),
        ("02:00:00", 7200),
        ("1-00:00:00", DAY),
        ("1-12", DAY + 43_200),
        ("1-2:3", DAY + 7380),
        ("36:00:00", 129_600),
        ("366d", 366 * DAY),
        ("0d1s", 1),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "", "abc", "0", "0s", "-1", "h", "1h2", "1:60", "2:00", "0:45", "1.h", "1.5.5h", "1hm", "1:2:60", "1:2:3:4", "1-",
        "-1:00", "367d", "9" * 12, "9" * 13, "9" * 5000 + ":00", "1" * 5000 + "d", "1e3", "inf", "2h\n3m", "∞", "1y",
    ],
)  # fmt: skip
def test_no_durations(text):
    with pytest.raises(ValueError, match="duration") as caught:
        parse_duration(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("512M", 512 * 1024**2),
        ("16G", 16 * 1024**3),
        ("16GB", 16 * 1024**3),
        ("16GiB", 16 * 1024**3),
        ("16Gi", 16 * 1024**3),
        ("16 g", 16 * 1024**3),
        ("1.5T", 3 * 1024**4 // 2),
        ("100B", 100),
        ("1024P", 1024**6),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "G", "-1G", "0", "0.1", "1025P", "1..5G", "1,5G", "16X", "1e3", "16i", "16iB", "nan", "9" * 400 + "P", "1 6G"],
)  # fmt: skip
def test_no_sizes(text):
    with pytest.raises(ValueError, match="size") as caught:
        parse_size(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (60, "1m 00s"), (125, "2m 05s"), (3600, "1h 00m"), (DAY, "1d 0h"), (27 * 3600, "1d 3h")],
)  # fmt: skip
def test_durations_for_people(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1024**3, "1.0 GiB"), (5 * 1024**4, "5.0 TiB"), (1024**6, "1048576.0 TiB")],
)  # fmt: skip
def test_sizes_for_people(size, text):
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("7", (7,)),
        ("2-5,7", (2, 3, 4, 5, 7)),
        ("7,2-5", (2, 3, 4, 5, 7)),
        ("1,1,1-2", (1, 2)),
        ("3-3", (3,)),
        (" 1 , 2 ", (1, 2)),
        ("0", (0,)),
        ("007", (7,)),
    ],
)
def test_ranges(text, numbers):
    assert parse_ranges(text) == numbers


@pytest.mark.parametrize(
    "text",
    ["", ",", "1,", "-", "3-1", "1-2-3", "-1", "1..3", "a", "1;2", "1 - 2", "0-100000", "9" * 10, "1\n2", "0x1"],
)  # fmt: skip
def test_no_ranges(text):
    with pytest.raises(ValueError, match=r"range|list"):
        parse_ranges(text)


def test_a_backward_range_is_offered_the_right_way_round():
    with pytest.raises(ValueError, match="write 1-3"):
        parse_ranges("3-1")


@pytest.mark.parametrize(
    ("text", "indices", "throttle"),
    [("0-3", (0, 1, 2, 3), None), ("0-3%2", (0, 1, 2, 3), 2), ("1,5,9", (1, 5, 9), None), ("4%1", (4,), 1)],
)
def test_arrays(text, indices, throttle):
    array = parse_array(text)
    assert (array.indices, array.throttle) == (indices, throttle)


@pytest.mark.parametrize("text", ["", "%", "%4", "0-9%", "0-9%0", "0-9%-1", "0-9%4%4", "0-9%x", "0-15:4"])
def test_no_arrays(text):
    with pytest.raises(ValueError, match=r"list|%"):
        parse_array(text)


def test_an_array_is_not_too_long():
    assert len(parse_array("0-99999").indices) == 100_000
    with pytest.raises(ValueError, match="at most 100000"):
        parse_array("0-99999,100000")


@LIKE_ALWAYS
@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused_in_words(text):
    for parse in (parse_duration, parse_size, parse_ranges, parse_array):
        try:
            parse(text)
        except ValueError:
            continue


@LIKE_ALWAYS
@given(st.sets(st.integers(0, 500), min_size=1))
def test_numbers_written_one_by_one_come_back(numbers):
    assert parse_ranges(",".join(map(str, numbers))) == tuple(sorted(numbers))


@LIKE_ALWAYS
@given(st.integers(1, 366 * DAY))
def test_seconds_in_slurms_form_come_back(seconds):
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    assert parse_duration(f"{days}-{hours:02}:{minutes:02}:{rest:02}") == seconds
