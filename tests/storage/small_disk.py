"""What a child does on a small disk; the test looks at what it says of it."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.storage.bundle import BundleWriter
from hyperpod_jlab.storage.content import ContentStore
from hyperpod_jlab.storage.index import RunIndex, Session
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.mounts import fill, remount, tell


def code_of(work: Callable[[], Any]) -> str:
    """The code of the error that it ends with."""
    try:
        work()
    except HyperpodError as error:
        return error.code
    return "done"


def left(partition: Partition) -> list[str]:
    """What lies in shards and store, temporary files too."""
    shards = partition.runs.glob("*/*") if partition.runs.is_dir() else []
    hidden = [path for path in partition.root.rglob("*") if path.name.endswith(".tmp")]
    return sorted(path.name for path in (*shards, *hidden))


def write(partition: Partition, run_id: str, size: int = 10) -> None:
    with BundleWriter(partition, run_id) as writer:
        writer.add_bytes("code/main.py", random.Random(size).randbytes(size))
        writer.write("bundle.json", b"{}")
        writer.commit()


def full_while_adding(folder: Path) -> Any:
    partition = Partition(folder)
    return [code_of(lambda: write(partition, "run-1", 4 << 20)), left(partition)]


def full_while_copying_a_file(folder: Path) -> Any:
    partition = Partition(folder)
    source = folder.parent / "source"
    source.write_bytes(os.urandom(4 << 20))

    def add() -> None:
        with BundleWriter(partition, "run-1") as writer:
            writer.add_file("work/source", source)
            writer.commit()

    return [code_of(add), left(partition)]


def full_before_anything(folder: Path) -> Any:
    partition = Partition(folder)
    fill(folder)
    return [code_of(lambda: write(partition, "run-1", 5000)), left(partition)]


def full_at_each_file(folder: Path) -> Any:
    """Only so many files fit; one more each time, until the bundle fits."""
    partition = Partition(folder)
    partition.prepare()
    told = []
    for files in range(1, 40):
        remount(folder, f"nr_inodes={files + 6}")
        told.append(code_of(lambda: write(partition, "run-1")))
        if told[-1] == "done":
            return [sorted(set(told)), len(told), left(partition)]
        assert left(partition) == [], left(partition)
    return [told]


def full_while_recording(folder: Path) -> Any:
    """The earlier word stays whole."""
    partition = Partition(folder)
    write(partition, "run-1")
    bundle = BundleReader(partition, "run-1")
    word = Observation(time=1, observer="local", state="waiting", reason="first")
    bundle.add_observation(word)
    fill(folder)
    later = word.model_copy(update={"reason": "later" * 5000})
    codes = [
        code_of(lambda: bundle.add_observation(later)),
        code_of(lambda: [bundle.add_action("cancel", "x" * 5000) for _ in range(100)]),
    ]
    path = bundle.records / "status/observations/local.json"
    return [codes, path.read_text(), left(partition)]


def read_only(folder: Path) -> Any:
    partition = Partition(folder)
    codes = []
    remount(folder, "ro")
    codes.append(code_of(partition.prepare))
    remount(folder, "rw")
    write(partition, "run-1")
    remount(folder, "ro")
    bundle = BundleReader(partition, "run-1")
    codes += [
        code_of(lambda: write(partition, "run-2")),
        code_of(lambda: write(partition, "run-1")),
        code_of(lambda: bundle.add_action("cancel", "ada")),
    ]
    return [codes, left(partition)]


def read_only_in_between(folder: Path) -> Any:
    partition = Partition(folder)

    def add() -> None:
        with BundleWriter(partition, "run-1") as writer:
            writer.add_bytes("code/main.py", b"1")
            remount(folder, "ro")
            writer.commit()

    code = code_of(add)
    remount(folder, "rw")
    return [code, [name.rpartition("-")[0] for name in left(partition)]]


def store_on_another_file_system(folder: Path) -> Any:
    partition = Partition(folder)
    partition.prepare()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", partition.content], check=True)
    store = ContentStore(partition)
    copied = [store.put_bytes(b"12345", folder / name).copied for name in ("a", "b")]
    store.put_bytes(b"1", folder / "x", executable=True)
    texts = [(folder / name).read_text() for name in ("a", "b")]
    return [copied, texts, oct((folder / "a").stat().st_mode), oct((folder / "x").stat().st_mode), left(partition)]


def index_on_bad_disk(folder: Path) -> Any:
    """The index on a disk that is full or read-only is none, and the runs are found all the same."""
    partition = Partition(folder.parent / "fsx")
    write(partition, "run-1")
    told = []

    def look() -> list[str]:
        def read(session: Session) -> list[str]:
            session.refresh()
            return session.list_unread()

        return RunIndex(partition, folder / "index.sqlite").use(read)

    fill(folder)
    told.append(look())
    remount(folder, "ro")
    told.append(look())
    remount(folder, "rw")
    (folder / "filler").unlink()
    told.append(look())
    remount(folder, "ro")
    write(partition, "run-2")
    told.append(sorted(look()))
    return told


if __name__ == "__main__":
    start = time.monotonic()
    case, place = sys.argv[1], Path(sys.argv[2])
    try:
        tell(globals()[case](place))
    finally:
        shutil.rmtree(place.parent / "fsx", ignore_errors=True)
