"""Jobs that were sent with sbatch itself, taken into the list of runs, on a real cluster."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.fault_fixtures import start_now
from tests.slurm.hyperpod_fixtures import SlurmSession, make_hyperpod
from tests.slurm.native_fixtures import bundle_of, log, log_lines, told

here_only = pytest.mark.parametrize("transport", ["here"], indirect=True)
"""Nothing in it depends on the way to the cluster."""


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the queue is not taken for another process's, which is good for seconds."""
    monkeypatch.setattr("hyperpod_jlab.engines.slurm.queue.SHARED_TTL_S", 0.0)


def sbatch(session: SlurmSession, text: str, *options: str, user: str | None = None) -> str:
    """Send a script as a Slurm user would; returns the job's id. It writes into the partition."""
    folder = session.cluster.partition_on_nodes
    words = ("sbatch", "--parsable", f"--chdir={folder}", *options)
    done = session.cluster.run("ctl", *words, input=f"#!/bin/bash\n{text}\n", user=user)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def until_state(session: SlurmSession, job: str, state: str) -> None:
    """Wait until the controller says so."""
    end = time.monotonic() + 30
    while state not in (now := told(session, job, "State").split()):
        assert time.monotonic() < end, now
        time.sleep(0.1)


class TestWholeLives:
    @pytest.mark.both_transports
    async def test_a_running_job(self, session: SlurmSession) -> None:
        job = sbatch(session, "echo one; sleep 2; echo two; exit 3", "-Jmine", "--comment=my own")
        until_state(session, job, "RUNNING")
        run_id = await session.hyperpod.adopt(job)
        assert told(session, job, "Comment") == f"hyperpod:{run_id} my own"
        assert await log_lines(session, run_id, follow=True) == ["one", "two"]
        run = await session.ended(run_id)
        assert (run.state, run.status.exit_code, run.name) == ("failed", 3, "mine")
        assert (run.scheduler_id, run.queue, run.nodes) == (job, "dev", 1)
        assert [len(attempt.nodes) for attempt in run.status.attempts] == [1]
        script = bundle_of(session, run_id) / "code" / "script.sbatch"
        assert script.read_text() == "#!/bin/bash\necho one; sleep 2; echo two; exit 3\n"

    @pytest.mark.both_transports
    async def test_a_waiting_job_that_is_cancelled_here(self, session: SlurmSession) -> None:
        job = sbatch(session, "true", "--begin=now+1hour")
        run_id = await session.hyperpod.adopt(job, name="later")
        run = await session.until(run_id, lambda run: run.status.reason_code == "BeginTime")
        assert (run.state, run.name) == ("waiting", "later")
        await session.hyperpod.runs.act(run_id, "cancel")
        run = await session.ended(run_id)
        assert run.state == "cancelled"

    async def test_a_job_that_has_ended(self, session: SlurmSession) -> None:
        job = sbatch(session, "echo it was; exit 4", "--output=was-%j")
        until_state(session, job, "FAILED")
        run_id = await session.hyperpod.adopt(job)
        run = await session.hyperpod.runs.get(run_id)
        assert (run.state, run.status.exit_code) == ("failed", 4)
        assert await log(session, run_id) == "it was"
        listed = await session.hyperpod.runs.list()
        assert run_id in [each.run_id for each in listed.runs]


@here_only
class TestKinds:
    async def test_an_array(self, session: SlurmSession) -> None:
        text = "echo task $SLURM_ARRAY_TASK_ID; sleep 2"
        job = sbatch(session, text, "--array=0-5:2%2")
        until_state(session, job, "RUNNING")
        run_id = await session.hyperpod.adopt(job)
        run = await session.ended(run_id)
        assert run.children == {"succeeded": 3}
        assert sorted(await log_lines(session, run_id)) == ["task 0", "task 2", "task 4"]

    async def test_an_array_that_has_ended(self, session: SlurmSession) -> None:
        job = sbatch(session, "echo task $SLURM_ARRAY_TASK_ID", "--array=3,7")
        until_state(session, job, "COMPLETED")
        await asyncio.sleep(1)
        run_id = await session.hyperpod.adopt(job)
        run = await session.ended(run_id)
        assert run.children == {"succeeded": 2}
        assert await log(session, f"{run_id}.7") == "task 7"

    async def test_a_task_stands_for_its_array(self, session: SlurmSession) -> None:
        job = sbatch(session, "sleep 600", "--array=1-2")
        until_state(session, job, "RUNNING")
        words = ("squeue", "-h", "-j", job, "-r", "-O", "JobID:20")
        own = {word for word in session.cluster.exec("ctl", *words).split() if word != job}
        run_id = await session.hyperpod.adopt(own.pop())
        run = await session.hyperpod.runs.get(run_id)
        assert run.scheduler_id == job
        for name in (f"{job}_1", f"{job}_[1-2%1]", job):
            with pytest.raises(ConflictError, match=run_id):
                await session.hyperpod.adopt(name)

    async def test_several_nodes_and_odd_names(self, session: SlurmSession) -> None:
        name = "x\n' \"%j|=é😀" + "y" * 200
        job = sbatch(session, "srun hostname", f"--job-name={name}", "-N2", "--output=odd %j.txt")
        run_id = await session.hyperpod.adopt(job)
        run = await session.ended(run_id)
        assert run.state == "succeeded"
        assert run.nodes == 2
        assert run.name.startswith("x-")
        assert sorted(await log_lines(session, run_id)) == list(run.status.attempts[0].nodes)

    async def test_an_output_that_cannot_be_read_here(self, session: SlurmSession) -> None:
        job = sbatch(session, "echo unseen", "--output=/tmp/unseen-%j.txt")
        run_id = await session.hyperpod.adopt(job)
        await session.ended(run_id)
        assert f"is at /tmp/unseen-{job}.txt on its nodes" in await log(session, run_id)

    async def test_a_requeued_one(self, session: SlurmSession) -> None:
        text = "echo this is ${SLURM_RESTART_COUNT:-0}; sleep ${SLURM_RESTART_COUNT:-600}"
        job = sbatch(session, text, "--requeue", "--open-mode=append")
        run_id = await session.hyperpod.adopt(job)
        await session.running(run_id)
        await session.hyperpod.runs.act(run_id, "requeue")
        await session.until(run_id, lambda run: run.state == "waiting")
        start_now(session.cluster, job)
        run = await session.ended(run_id)
        assert [attempt.number for attempt in run.status.attempts] == [1, 2]
        assert (await log_lines(session, run_id))[-1] == "this is 1"

    async def test_its_script_can_be_sent_again(self, session: SlurmSession) -> None:
        job = sbatch(session, "#SBATCH -J again\necho once more", "--begin=now+1hour")
        run_id = await session.hyperpod.adopt(job)
        spec = session.hyperpod.runs.bundle(run_id).spec()
        again = await session.hyperpod.submitter.submit(Request(spec, clone_of=run_id))
        run = await session.ended(again)
        assert run.state == "succeeded"
        assert await log(session, again) == "once more"


@here_only
class TestRefused:
    async def test_what_is_no_id_costs_no_call(self, session: SlurmSession) -> None:
        with pytest.raises(InvalidInputError, match="is not a job id"):
            await session.hyperpod.adopt("12;id")
        assert session.cluster.calls() == []

    async def test_a_job_that_is_not_there(self, session: SlurmSession) -> None:
        with pytest.raises(NotFoundError, match="job 999999 not found"):
            await session.hyperpod.adopt("999999")

    async def test_a_job_of_somebody_elses(self, session: SlurmSession) -> None:
        job = sbatch(session, "sleep 60", user="alice")
        with pytest.raises(DeniedError, match=f"the job {job} belongs to alice"):
            await session.hyperpod.adopt(job)
        assert told(session, job, "Comment") == "(null)"

    async def test_an_allocation_without_a_script(self, session: SlurmSession) -> None:
        words = ("salloc", "--no-shell", "-J", "shell")
        done = await asyncio.to_thread(session.cluster.run, "ctl", *words)
        job = done.stderr.split("job allocation ")[1].split()[0]
        with pytest.raises(RefusedError, match="has no script"):
            await session.hyperpod.adopt(job)

    async def test_twice_and_a_run_of_ours(self, session: SlurmSession) -> None:
        job = sbatch(session, "sleep 60")
        run_id = await session.hyperpod.adopt(job)
        with pytest.raises(ConflictError) as caught:
            await session.hyperpod.adopt(job)
        assert caught.value.detail["run_id"] == run_id
        own = await session.submit("true")
        run = await session.hyperpod.runs.get(own)
        with pytest.raises(ConflictError, match=own):
            await session.hyperpod.adopt(session.job_of(run))

    async def test_at_once_makes_one_run(self, session: SlurmSession) -> None:
        job = sbatch(session, "true", "--begin=now+1hour")
        results = await asyncio.gather(
            *(session.hyperpod.adopt(job) for _ in range(4)), return_exceptions=True
        )
        assert sum(isinstance(result, str) for result in results) == 1
        assert sum(isinstance(result, ConflictError) for result in results) == 3

    async def test_an_ended_one_twice(self, session: SlurmSession) -> None:
        job = sbatch(session, "true")
        until_state(session, job, "COMPLETED")
        run_id = await session.hyperpod.adopt(job)
        with pytest.raises(ConflictError, match=run_id):
            await session.hyperpod.adopt(job)

    async def test_a_name_that_is_none(self, session: SlurmSession) -> None:
        job = sbatch(session, "true", "--begin=now+1hour")
        with pytest.raises(InvalidInputError):
            await session.hyperpod.adopt(job, name="\n$(x)")
        assert told(session, job, "Comment") == "(null)"

    @pytest.mark.full
    async def test_a_controller_that_is_down(self, session: SlurmSession) -> None:
        session.cluster.controller_kill()
        with pytest.raises(HyperpodError) as caught:
            await session.hyperpod.adopt("12")
        assert caught.value.code == "controller_down"


async def test_the_local_cluster_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    hyperpod = Hyperpod()
    with pytest.raises(UnsupportedError, match="cannot be adopted"):
        await hyperpod.adopt("12", "local")
    await hyperpod.close()


@pytest.fixture
async def forgetful(
    slurm_start: Callable[..., SlurmTestbed],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[SlurmSession]:
    """A user's services on a cluster whose controller forgets jobs after two seconds; with accounting where it says so."""
    accounting = ["--dbd", "--accounts", "research:alice"] if request.param else []
    cluster = slurm_start("--min-job-age", "2", "--users", "alice:20001", *accounting)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    hyperpod = make_hyperpod(cluster)
    (tmp_path / "project").mkdir()
    yield SlurmSession(cluster, hyperpod, tmp_path / "project")
    await hyperpod.close()


def until_forgotten(session: SlurmSession, job: str) -> None:
    """Wait until the controller knows the job no more."""
    end = time.monotonic() + 90
    words = ("squeue", "-h", "-t", "all", "-o", "%A")
    while job in session.cluster.exec("ctl", *words).split():
        assert time.monotonic() < end
        time.sleep(0.5)


class TestForgotten:
    @pytest.mark.full
    @pytest.mark.parametrize("forgetful", [True], indirect=True)
    async def test_with_accounting_it_is_adopted_all_the_same(
        self, forgetful: SlurmSession
    ) -> None:
        job = sbatch(forgetful, "echo it was; exit 4", "-J", "past")
        array = sbatch(forgetful, "echo task $SLURM_ARRAY_TASK_ID", "--array=1-2")
        mixed = sbatch(forgetful, "exit $((SLURM_ARRAY_TASK_ID - 1))", "--array=1-3")
        cancelled = sbatch(forgetful, "true", "--array=1-4", "--hold")
        forgetful.cluster.exec("ctl", "scancel", cancelled)
        other = sbatch(forgetful, "true", user="alice")
        for each in (job, array, mixed, cancelled, other):
            until_forgotten(forgetful, each)
        run_id = await forgetful.hyperpod.adopt(job)
        run = await forgetful.hyperpod.runs.get(run_id)
        assert (run.state, run.status.exit_code, run.name) == ("failed", 4, "past")
        assert run.status.attempts[0].nodes == ("node1",)
        assert await log(forgetful, run_id) == "it was"
        with pytest.raises(ConflictError, match=run_id):
            await forgetful.hyperpod.adopt(job)
        run_id = await forgetful.hyperpod.adopt(array)
        run = await forgetful.ended(run_id)
        assert run.children == {"succeeded": 2}
        assert await log(forgetful, f"{run_id}.2") == "task 2"
        run_id = await forgetful.hyperpod.adopt(mixed)
        run = await forgetful.ended(run_id)
        assert run.children == {"succeeded": 1, "failed": 2}
        child = await forgetful.hyperpod.runs.get(f"{run_id}.3")
        assert (child.state, child.status.exit_code) == ("failed", 2)
        run = await forgetful.ended(await forgetful.hyperpod.adopt(cancelled))
        assert run.children == {"cancelled": 4}
        with pytest.raises(DeniedError):
            await forgetful.hyperpod.adopt(other)

    @pytest.mark.full
    @pytest.mark.parametrize("forgetful", [False], indirect=True)
    async def test_without_accounting_nothing_is_known_of_it(self, forgetful: SlurmSession) -> None:
        job = sbatch(forgetful, "true")
        adopted = sbatch(forgetful, "echo it was")
        run_id = await forgetful.hyperpod.adopt(adopted)
        for each in (job, adopted):
            until_forgotten(forgetful, each)
        with pytest.raises(NotFoundError, match=f"job {job} not found"):
            await forgetful.hyperpod.adopt(job)
        # Nobody looked while it ran: how it ended is lost, its log is not.
        _age(forgetful, run_id)
        run = await forgetful.ended(run_id)
        assert (run.state, run.status.reason_code) == ("failed", "lost")
        assert await log(forgetful, run_id) == "it was"


def _age(session: SlurmSession, run_id: str) -> None:
    """Let a run have been sent long ago."""
    path = bundle_of(session, run_id) / "submission.json"
    told: dict[str, Any] = json.loads(path.read_bytes())
    path.write_text(json.dumps({**told, "submitted_at": told["submitted_at"] - 3600}))
