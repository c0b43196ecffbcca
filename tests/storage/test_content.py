"""The content store: every file of code once, and never somebody else's."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from hyperpod_jlab.storage.content import ContentStore
from hyperpod_jlab.storage.partition import Partition
from tests.storage.racing import PROCESSES, race
from tests.storage.users import AS_ROOT

DATA = b"print('hello')\n" * 1000
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    made = Partition(tmp_path / "fsx")
    made.prepare()
    return made


@pytest.fixture
def store(partition: Partition) -> ContentStore:
    return ContentStore(partition)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_bytes(DATA)
    return path


def stored(partition: Partition, name: str = DIGEST) -> Path:
    return partition.content / name[:2] / name


def other_user(path: Path) -> None:
    os.chown(path, 12345, 12345)


def test_the_first_put_copies_and_the_second_links(store, partition, source, tmp_path):
    first = store.put_file(source, tmp_path / "a")
    second = store.put_file(source, tmp_path / "b")
    third = store.put_bytes(DATA, tmp_path / "c")
    assert [first.copied, second.copied, third.copied] == [len(DATA), 0, 0]
    assert {first.digest, second.digest, third.digest} == {DIGEST}
    paths = [stored(partition), tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    assert len({path.stat().st_ino for path in paths}) == 1
    assert stored(partition).stat().st_nlink == 4


def test_the_source_is_never_linked_itself(store, source, tmp_path):
    store.put_file(source, tmp_path / "a")
    assert source.stat().st_nlink == 1
    source.write_bytes(b"edited")
    assert (tmp_path / "a").read_bytes() == DATA


def test_executables_are_files_of_their_own(store, source, tmp_path):
    store.put_file(source, tmp_path / "plain")
    store.put_file(source, tmp_path / "tool", executable=True)
    assert (tmp_path / "plain").stat().st_mode & 0o777 == 0o400
    assert (tmp_path / "tool").stat().st_mode & 0o777 == 0o500
    assert store.put_file(source, tmp_path / "again", executable=True).copied == 0


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_modes_on_a_shared_partition(tmp_path, source, umask):
    before = os.umask(umask)
    try:
        partition = Partition(tmp_path / "fsx", shared=True)
        partition.prepare()
        ContentStore(partition).put_file(source, tmp_path / "a")
        ContentStore(partition).put_file(source, tmp_path / "x", executable=True)
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o444
    assert (tmp_path / "x").stat().st_mode & 0o7777 == 0o555
    assert stored(partition).parent.stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("data", [b"", b"x" * len(DATA), DATA + b"more"])
def test_a_stored_file_that_was_changed_in_place_is_noticed(store, partition, source, tmp_path, data):
    store.put_file(source, tmp_path / "a")
    stored(partition).chmod(0o600)
    stored(partition).write_bytes(data)
    assert store.put_file(source, tmp_path / "b").copied == len(DATA)
    assert (tmp_path / "b").read_bytes() == DATA
    assert stored(partition).read_bytes() == DATA


def test_a_store_that_is_emptied_all_the_time(store, partition, source, tmp_path):
    stop = threading.Event()

    def empty() -> None:
        while not stop.is_set():
            for path in store.unused():
                path.unlink(missing_ok=True)

    cleaner = threading.Thread(target=empty)
    cleaner.start()
    try:
        for number in range(200):
            target = tmp_path / f"target-{number}"
            store.put_file(source, target)
            assert target.read_bytes() == DATA
            target.unlink()
    finally:
        stop.set()
        cleaner.join()


def test_racing_puts_of_the_same_file(partition, source, tmp_path):
    for turn in range(10):
        shutil.rmtree(partition.content)
        partition.prepare()
        store = ContentStore(partition)
        copied = race(lambda number: store.put_file(source, tmp_path / f"{turn}-{number}").copied)  # noqa: B023
        assert set(copied) <= {0, len(DATA)}
        for number in range(PROCESSES):
            assert (tmp_path / f"{turn}-{number}").read_bytes() == DATA
        assert [path.name for path in stored(partition).parent.iterdir()] == [DIGEST]


def test_a_file_that_grows_while_it_is_taken_is_taken_at_some_length(store, partition, tmp_path):
    source = tmp_path / "metrics.log"
    source.write_bytes(b"0" * 1000)
    stop = threading.Event()

    def grow() -> None:
        with source.open("ab", buffering=0) as file:
            while not stop.is_set():
                file.write(b"0" * 1000)
                time.sleep(0.0001)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        taken = [store.put_file(source, tmp_path / f"t{number}") for number in range(20)]
    finally:
        stop.set()
        writer.join()
    for number, one in enumerate(taken):
        data = (tmp_path / f"t{number}").read_bytes()
        assert hashlib.sha256(data).hexdigest() == one.digest
        assert stored(partition, one.digest).read_bytes() == data


def test_what_no_bundle_uses_is_found(store, partition, source, tmp_path):
    store.put_file(source, tmp_path / "a")
    store.put_bytes(b"other", tmp_path / "b")
    assert list(store.unused()) == []
    (tmp_path / "a").unlink()
    (stored(partition).parent / ".left-over.tmp").write_bytes(b"")
    assert {path.name for path in store.unused()} == {DIGEST, ".left-over.tmp"}


@AS_ROOT
def test_a_file_that_somebody_else_laid_there_is_not_used(tmp_path, source):
    """On a shared partition another user could lay other code under the name of ours."""
    partition = Partition(tmp_path / "fsx", shared=True)
    partition.prepare()
    store = ContentStore(partition)
    store.put_file(source, tmp_path / "a")
    planted = stored(partition)
    stamp = planted.stat().st_mtime_ns
    planted.unlink()
    planted.write_bytes(b"import evil    \n" * 1000 + b" ")
    os.truncate(planted, len(DATA))
    planted.chmod(0o444)
    os.utime(planted, ns=(stamp, stamp))
    other_user(planted)
    store.put_file(source, tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == DATA
    assert (tmp_path / "b").stat().st_uid == os.getuid()
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o444


def test_a_symlink_in_the_store_is_not_followed(store, partition, source, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    store.put_file(source, tmp_path / "a")
    stamp = stored(partition).stat().st_mtime_ns
    elsewhere.write_bytes(b"x" * len(DATA))
    os.utime(elsewhere, ns=(stamp, stamp))
    stored(partition).unlink()
    stored(partition).symlink_to(elsewhere)
    store.put_file(source, tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == DATA
    assert not (tmp_path / "b").is_symlink()
