"""How often the scheduler is asked for tables, and what is done when it does not respond; its answers are recorded ones."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from hyperpod_jlab.core import cache
from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.engines.slurm import client as bucket
from hyperpod_jlab.engines.slurm import queue, tables
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.facts import ClusterFacts
from hyperpod_jlab.engines.slurm.job_queue import JobQueue
from hyperpod_jlab.engines.slurm.queue import PollInterval, controller_query
from hyperpod_jlab.engines.slurm.tables import SlurmTables
from hyperpod_jlab.engines.slurm.transport import CommandOutput
from tests.slurm.recorded import MARK, recorded

_ANSWERS = {"sinfo": "nodes", "squeue": "jobs", "scontrol": "queues"}


class Answers:
    """A transport that gives recorded answers and counts what it is asked."""

    notes: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.broken = False
        self.ended = False

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 60) -> CommandOutput:
        """The recorded answer, with the mark that is asked for."""
        del stdin, timeout
        self.calls.append(argv[0])
        await asyncio.sleep(0)
        if self.broken:
            return CommandOutput(1, "", f"{argv[0]}: error: Unable to contact slurm controller")
        mark = re.search("\x1e[0-9a-f]{12}", " ".join(argv))
        text = recorded("22.05", _ANSWERS[argv[0]])
        if self.ended:
            text = text.replace("RUNNING", "COMPLETED")
        return CommandOutput(0, text.replace(MARK, mark[0]) if mark else text, "")

    async def close(self) -> None:
        """Nothing is held."""


class Clock:
    """A time of day that goes on when told to."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock by which looks grow old."""
    ticking = Clock()
    for module in (cache, queue, tables, bucket):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=ticking, monotonic=ticking))
    return ticking


@pytest.fixture
def answers() -> Answers:
    """The cluster."""
    return Answers()


@pytest.fixture
def view(answers: Answers, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmTables:
    """The tables of the cluster."""
    del clock
    client = SlurmClient(answers)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pace = PollInterval()
    pace._last_event_at -= 3600  # nothing happened for long
    queue = JobQueue(client, ClusterFacts(client), pace, SlurmCluster(orchestrator="slurm"))
    return SlurmTables(client, queue, pace, runs_here=True)


async def test_pages_that_are_open_cost_two_calls_a_minute(answers: Answers, view: SlurmTables, clock: Clock) -> None:
    for _ in range(60 * 24):
        await asyncio.gather(view.cluster("ml", "slurm"), view.nodes(), view.jobs())
        clock.now += 2.5
    assert len(answers.calls) <= 2 * 60
    assert answers.calls.count("squeue") >= 40


async def test_more_panels_cost_no_more(answers: Answers, view: SlurmTables, clock: Clock) -> None:
    for _ in range(60):
        await asyncio.gather(*(view.cluster("ml", "slurm") for _ in range(10)))
        clock.now += 60
    assert len(answers.calls) <= 2 * 60


async def test_pages_of_a_table_are_of_one_look(answers: Answers, view: SlurmTables) -> None:
    first = await view.jobs()
    assert await view.jobs() is first
    nodes = await view.nodes()
    assert await view.nodes() is nodes
    assert sorted(answers.calls) == ["sinfo", "squeue"]


async def test_a_refresh_goes_past_all_caches(answers: Answers, view: SlurmTables, clock: Clock) -> None:
    before = await view.nodes()
    clock.now += 6
    assert await view.nodes() is before
    view.forget()
    after = await view.nodes()
    assert (before.as_of, after.as_of) == (clock.now - 6, clock.now)
    assert sorted(answers.calls) == ["sinfo", "sinfo", "squeue", "squeue"]


async def test_nodes_are_read_again_once_a_job_has_changed(answers: Answers, view: SlurmTables, clock: Clock) -> None:
    """Else the nodes would say that a job's GPUs are free, up to 75 s long."""
    await view.nodes()
    clock.now += 6
    view._queue.all_queue.forget()  # another process submitted a job
    answers.ended = True
    jobs, nodes = await view.jobs(), await view.nodes()
    assert nodes.as_of == jobs.as_of == clock.now
    assert answers.calls.count("sinfo") == 2


async def test_a_controller_that_is_down_is_left_alone_for_longer_and_longer(
    answers: Answers, view: SlurmTables, clock: Clock
) -> None:
    answers.broken = True
    for _ in range(120):
        with pytest.raises(UnreachableError):
            await view.nodes()
        clock.now += 1
    assert answers.calls.count("sinfo") <= 6
    answers.broken = False
    clock.now += 60
    assert len(await view.nodes()) > 4


async def test_a_look_from_before_a_change_is_not_kept(clock: Clock) -> None:
    begun, going = asyncio.Event(), asyncio.Event()
    seen: list[int] = []

    async def look() -> int:
        seen.append(len(seen))
        number = seen[-1]
        if number == 0:
            begun.set()
            await going.wait()
        return number

    looks = controller_query(look)
    first = asyncio.ensure_future(looks.get(10))
    await begun.wait()
    clock.now += 1
    looks.forget()
    assert await looks.get(10) == 1
    going.set()
    assert await first == 0
    assert looks.last == 1
