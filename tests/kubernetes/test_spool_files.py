"""Log files that several processes make from the pieces of pods' logs: always the same bytes, and what is lost is said."""

from __future__ import annotations

import random
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperpod_jlab.engines.kubernetes.observe.spool_files import (
    LogSegment,
    LostRange,
    Modes,
    SpooledLog,
)
from hyperpod_jlab.logs.bundle_file import TimeIndex

SECOND = 1_000_000_000
DATA = random.Random(1).randbytes(200_000)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture
def modes(bundle: Path) -> Modes:
    return Modes(bundle, 0o700, 0o600)


@pytest.fixture
def put(bundle: Path, modes: Modes) -> Callable[..., None]:
    """Puts bytes of `DATA` into the log, as a process of its own would."""

    def put(begin: int, end: int, step: int = 1000) -> None:
        log = SpooledLog(log_of(bundle), bundle / "spool", modes, sleep=lambda _: None)
        pieces = [
            LogSegment(at, DATA[at : min(at + step, end)], 1_000_000 * SECOND + at * 1_000_000)
            for at in range(begin, end, step)
        ]
        while pieces:
            count = random.randint(1, 20)
            log.write(pieces[:count])
            pieces = pieces[count:]
        log.close()

    return put


def log_of(bundle: Path) -> Path:
    return bundle / "logs/attempt-1/node-0.rank-0.log"


def index_of(bundle: Path) -> list[tuple[int, int]]:
    data = log_of(bundle).with_suffix(".idx").read_bytes()
    return list(struct.iter_unpack("<qq", data))


def test_many_at_once_write_what_one_writes(bundle: Path, put: Callable[..., None]) -> None:
    threads = [threading.Thread(target=put, args=(0, len(DATA), step)) for step in (1000, 1000, 77)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log_of(bundle).read_bytes() == DATA
    assert all(time == 1_000_000 * SECOND + at * 1_000_000 for time, at in index_of(bundle))
    stamps = TimeIndex(log_of(bundle).with_suffix(".idx")).stamps(0, len(DATA))
    assert stamps[0][0] == 0
    assert stamps == sorted(stamps)
    # A record every second of the log would be one in 1000 bytes; those that crossed are left out.
    assert len(stamps) > len(DATA) // 5000


def test_times_are_those_of_the_pieces(bundle: Path, put: Callable[..., None]) -> None:
    put(0, 100_000)
    for time, offset in index_of(bundle):
        assert time == 1_000_000 * SECOND + offset * 1_000_000
    before = index_of(bundle)
    put(0, 100_000)
    assert index_of(bundle) == before


def test_what_is_lost_is_said_in_its_place(bundle: Path, put: Callable[..., None]) -> None:
    put(0, 50_000)
    put(60_000, 100_000)
    words = LostRange(50_000, 60_000).marker
    assert words.startswith(b"hyperpod: 10000 bytes of this log are lost here")
    wanted = DATA[:50_000] + words + DATA[60_000:100_000]
    assert log_of(bundle).read_bytes() == wanted
    # Who comes with the lost bytes afterwards, or reads all again, changes nothing.
    put(0, 100_000)
    assert log_of(bundle).read_bytes() == wanted
    put(120_000, 130_000, 333)
    assert (
        log_of(bundle).read_bytes()
        == wanted + LostRange(100_000, 120_000).marker + DATA[120_000:130_000]
    )


def test_a_log_whose_begin_is_lost_says_so(bundle: Path, put: Callable[..., None]) -> None:
    put(5_000, 6_000)
    assert log_of(bundle).read_bytes() == LostRange(0, 5_000).marker + DATA[5_000:6_000]


def test_what_another_process_has_is_not_lost(
    bundle: Path, modes: Modes, put: Callable[..., None]
) -> None:
    put(0, 1_000)
    waits = []

    def another_writes(seconds: float) -> None:
        waits.append(seconds)
        put(1_000 * len(waits), 1_000 * (len(waits) + 1))

    log = SpooledLog(log_of(bundle), bundle / "spool", modes, sleep=another_writes)
    log.write([LogSegment(5_000, DATA[5_000:6_000], 0)])
    log.close()
    assert log_of(bundle).read_bytes() == DATA[:6_000]


def test_a_process_that_died_after_its_claim_leaves_nothing_undone(
    bundle: Path, put: Callable[..., None]
) -> None:
    put(0, 1_000)
    (bundle / "spool").mkdir()
    (bundle / "spool/attempt-1.node-0.rank-0.lost-0.json").write_text("[1000, 2000]")
    put(2_000, 3_000)
    assert (
        log_of(bundle).read_bytes()
        == DATA[:1_000] + LostRange(1_000, 2_000).marker + DATA[2_000:3_000]
    )
