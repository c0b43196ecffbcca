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
    RecordFile,
    SpooledLog,
    SpooledRecords,
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


@pytest.fixture
def records(bundle: Path, modes: Modes) -> SpooledRecords:
    return SpooledRecords(bundle, modes)


def claim(incarnation: str) -> bytes:
    return b'{"scheduler_id": "run-x", "incarnation": "%s", "time": 1.0}\n' % incarnation.encode()


def test_an_attempt_is_known_by_its_incarnation(records: SpooledRecords, bundle: Path) -> None:
    assert records.attempt(1, claim("a")) == 1
    assert records.attempt(2, claim("b")) == 2
    # All pods were made anew, so that they count from 1 again.
    assert records.attempt(1, claim("c")) == 3
    assert [
        records.attempt(told, claim(name)) for told, name in ((1, "a"), (2, "b"), (1, "c"))
    ] == [1, 2, 3]
    assert (bundle / "status/attempt-3/claim.json").read_bytes() == claim("c")


def test_two_who_open_an_attempt_at_once_agree(records: SpooledRecords) -> None:
    for number in range(1, 30):
        found: list[int] = []

        def open_it(number: int = number, found: list[int] = found) -> None:
            found.append(records.attempt(1, claim(str(number))))

        threads = [threading.Thread(target=open_it) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [number] * 4


def test_the_later_record_counts_whenever_it_comes(records: SpooledRecords, bundle: Path) -> None:
    path = "status/attempt-1/node-0.json"
    records.store(RecordFile(path, 20.0, write_once=False, content=b"later"), 4)
    records.store(RecordFile(path, 10.0, write_once=False, content=b"earlier"), 4)
    assert (bundle / "status/attempt-4/node-0.json").read_bytes() == b"later"
    records.store(RecordFile(path, 30.0, write_once=False, content=b"last"), 4)
    assert (bundle / "status/attempt-4/node-0.json").read_bytes() == b"last"


def test_what_is_written_once_stays(records: SpooledRecords, bundle: Path) -> None:
    for content in (b"first", b"second"):
        records.store(RecordFile("status/claim.json", 1.0, write_once=True, content=content), None)
    assert (bundle / "status/claim.json").read_bytes() == b"first"


def test_a_bundle_that_was_removed_does_not_come_back(
    records: SpooledRecords, bundle: Path
) -> None:
    bundle.rmdir()
    with pytest.raises(OSError, match="No such file"):
        records.attempt(1, claim("a"))
    assert not bundle.exists()
