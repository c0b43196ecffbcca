"""Bundles of another user, who may write anything into them: nothing is done by what they say, and nothing is written there."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import DeniedError
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.slurm.accounting import AccountingHistory, find_by_folder
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.engine import SlurmOrchestrator
from hyperpod_jlab.engines.slurm.job_files import last_output
from hyperpod_jlab.engines.slurm.native import read_sending
from hyperpod_jlab.engines.slurm.observe import RunObserver
from hyperpod_jlab.engines.slurm.queue import Snapshot
from hyperpod_jlab.engines.slurm.transport import CommandOutput
from hyperpod_jlab.engines.slurm.waiting import _read_request
from hyperpod_jlab.storage.partition import Partition, PathMap
from hyperpod_jlab.storage.records import BundleReader
from tests.slurm.job_fixtures import job
from tests.storage.bundles import make_bundle, write_files
from tests.storage.users import AS_ROOT, give_away, others_bundle

pytestmark = AS_ROOT

RUN = "nightly"


class Transport:
    """Answers nothing, and notes what was asked."""

    notes: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 0) -> CommandOutput:
        self.asked.append(argv)
        return CommandOutput(0, "", "")

    async def close(self) -> None:
        pass


class Queue:
    """A queue with these jobs of this user."""

    def __init__(self, *jobs: Any) -> None:
        self._jobs = jobs
        self.ended: list[str] = []

    async def own_jobs(self) -> Snapshot:
        return Snapshot.build(time.time(), self._jobs)

    async def all_jobs(self) -> Snapshot:
        return await self.own_jobs()

    async def nodes_down(self, names: Iterable[str]) -> bool:
        return False

    async def hides_jobs(self) -> bool:
        return False

    async def cancel(self, job_id: str) -> None:
        self.ended.append(job_id)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    (tmp_path / "fsx").mkdir()
    return Partition(tmp_path / "fsx", shared=True)


def foreign(partition: Partition, run_id: str = RUN, **files: Any) -> BundleReader:
    status = {f"status/{name}.json": content for name, content in files.items() if name == "claim"}
    rest = {f"{name}.json": content for name, content in files.items() if name != "claim"}
    others_bundle(partition.root, run_id, {**status, **rest})
    return BundleReader(partition, run_id)


def contents(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def observe(queue: Queue, *bundles: BundleReader) -> Any:
    async def look() -> Any:
        client = SlurmClient(Transport())
        paths = PathMap.create_map(str(bundles[0].partition.root), None)
        return await RunObserver(queue, AccountingHistory(client), client, paths).observe(bundles)

    return asyncio.run(look())


SENT = {"scheduler_id": "7", "submitted_at": 1.7e9}


def test_another_users_run_ends_no_waiting_job_of_this_user(partition: Partition) -> None:
    claimed = foreign(partition, claim={"scheduler_id": "6", "time": 1.0}, submission=SENT)
    own = make_bundle(partition, "other", code=None)
    queue = Queue(job("7", run_id=RUN))
    observe(queue, claimed, own)
    assert queue.ended == []


def test_another_users_run_that_succeeded_ends_no_waiting_job_of_this_user(partition: Partition) -> None:
    make_bundle(partition, RUN)  # succeeded
    bundle = Partition(partition.root, shared=True).bundle(RUN)
    place = partition.root / ".hyperpod-65534" / "runs" / bundle.parent.name
    place.mkdir(parents=True)
    own = make_bundle(partition, "other", code=None)
    queue = Queue(job("7", run_id=RUN))
    observe(queue, own)
    assert queue.ended == ["7"], "of one's own it is known that nothing is left to do"
    bundle.rename(place / RUN)
    give_away(partition.root / ".hyperpod-65534")
    queue = Queue(job("8", run_id=RUN))
    observe(queue, own)
    assert queue.ended == []


def test_nothing_is_written_into_another_users_bundle(partition: Partition) -> None:
    native: dict[str, Any] = {"script": "code/run.sbatch", "options": [], "args": []}
    bundle = foreign(partition, native=native, submission=SENT)
    before = contents(bundle.folder)
    queue = Queue(job("7", state="FAILED", node_list="n1", started_at=1.0, run_id=RUN))
    words = observe(queue, bundle)
    assert words[RUN].state == "ended", "what the queue says is shown all the same"
    assert contents(bundle.folder) == before


def engine(partition: Partition) -> tuple[SlurmOrchestrator, Transport]:
    found = SlurmOrchestrator("hpc", parse(SlurmCluster, {"orchestrator": "slurm"}), partition)
    transport = Transport()
    found._client.transport = transport
    return found, transport


@pytest.mark.parametrize("action", ["cancel", "hold", "release", "requeue", "submit"])
def test_no_job_that_another_users_bundle_names_is_acted_on(partition: Partition, action: Any) -> None:
    bundle = foreign(partition, submission=SENT)
    acting, transport = engine(partition)
    with pytest.raises(DeniedError) as caught:
        asyncio.run(acting.submit(bundle) if action == "submit" else acting.actions.act(action, bundle))
    assert (caught.value.code, transport.asked) == ("foreign_run", [])


def test_no_job_is_looked_for_of_another_users_run(partition: Partition) -> None:
    acting, transport = engine(partition)
    assert asyncio.run(acting.find(foreign(partition))) is None
    assert transport.asked == []


def test_the_accounting_is_asked_for_this_users_jobs_only() -> None:
    transport = Transport()
    asyncio.run(find_by_folder(SlurmClient(transport), "/home/ada", 1.7e9, 3001))
    (argv,) = transport.asked
    assert "--user=3001" in argv


def test_another_users_script_is_not_tried(partition: Partition) -> None:
    bundle = foreign(partition)
    (bundle.folder / "sbatch.sh").write_text("#!/bin/bash\n")
    assert _read_request(bundle) is None


def test_pipes_and_links_keep_nobody_waiting(partition: Partition, tmp_path: Path) -> None:
    bundle = foreign(partition)
    os.mkfifo(bundle.folder / "native.json")
    (bundle.folder / "logs").mkdir()
    os.mkfifo(bundle.folder / "logs" / "slurm-7.out")
    (tmp_path / "secret").write_text("mine")
    (bundle.folder / "logs" / "slurm-8.out").symlink_to(tmp_path / "secret")
    give_away(bundle.folder)
    assert read_sending(bundle) is None
    assert last_output(bundle, "7") is None
    assert last_output(bundle, "8") is None


def own_array(partition: Partition, indices: str) -> BundleReader:
    bundle = make_bundle(partition, RUN, code=None, array=indices, orchestrator="slurm")
    write_files(bundle.folder, {"submission.json": SENT}.items())
    return bundle


def test_very_many_tasks_that_wait_are_told_as_one(partition: Partition) -> None:
    array = own_array(partition, "0-99999")
    waits = job("7", run_id=RUN, array_task="0-99999%8")
    words = observe(Queue(waits), array)
    assert words[RUN].state == "waiting"
    assert words[f"{RUN}.0"].state == "waiting"
    assert len(words) < 2000
    last = array.child(99_999)
    assert observe(Queue(waits), last)[last.run_id].state == "waiting", "who asks for one is told"


def test_the_end_of_a_child_is_written_once(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    array = own_array(partition, "0-3")
    written: list[str] = []
    put = BundleReader.add_observation

    def add(bundle: BundleReader, word: Observation) -> None:
        written.append(bundle.run_id)
        put(bundle, word)

    monkeypatch.setattr(BundleReader, "add_observation", add)
    done = job("7", run_id=RUN, array_task="0", state="COMPLETED", started_at=1.0, ends_at=2.0)
    rest = job("7", run_id=RUN, array_task="1-3", state="RUNNING", started_at=1.0, node_list="n1")
    observer = RunObserver(
        Queue(done, rest),
        AccountingHistory(SlurmClient(Transport())),
        SlurmClient(Transport()),
        PathMap.create_map(str(partition.root), None),
    )
    for _ in range(3):
        asyncio.run(observer.observe([array]))
    assert written == [f"{RUN}.0"]
    assert [seen.verdict for seen in array.child(0).read().observations] == ["COMPLETED"]
