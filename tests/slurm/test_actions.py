"""What can be done to runs and to jobs of the queue on a real cluster: one result each, and why not where it cannot be done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.core.job_actions import MAX_JOBS, Change, JobResult
from hyperpod_jlab.run.services import Hyperpod
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import CLUSTER, SlurmSession, make_hyperpod

HOUR = 3600


def send(cluster: SlurmTestbed, user: str, *options: str) -> str:
    """A job that is no run, sent by a user's own sbatch."""
    words = ("sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", "-t30", *options)
    return cluster.exec("ctl", *words, "--wrap=sleep 300", user=user).strip()


def look(cluster: SlurmTestbed, job: str, letters: str) -> str:
    """What squeue says of a job."""
    return cluster.exec("ctl", "squeue", "-h", "-t", "all", "-j", job, "-o", letters).strip()


async def until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + SlurmSession.deadline
    while not await asyncio.to_thread(there):
        assert time.monotonic() < end
        await asyncio.sleep(0.1)


def errors(results: list[JobResult]) -> list[str | None]:
    return [result.error.code if result.error else None for result in results]


@pytest.fixture
async def alice(slurm: SlurmTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hyperpod]:
    """The services of a user without rights over others' jobs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    hyperpod = make_hyperpod(slurm, "ssh", user="alice")
    yield hyperpod
    await hyperpod.close()


class TestRuns:
    async def test_hold_and_release_are_seen_at_once(self, session: SlurmSession) -> None:
        run_id = await session.submit("true", slurm={"flags": {"begin": "now+1hour"}})
        held = await session.hyperpod.runs.act(run_id, "hold")
        assert (held.state, held.status.reason_code) == ("waiting", "held")
        again = await session.hyperpod.runs.act(run_id, "release")
        assert again.status.reason_code != "held"

    @pytest.mark.both_transports
    async def test_limit_and_queue_of_what_waits(self, session: SlurmSession) -> None:
        run_id = await session.submit("true", queue="dev", time_limit="10m", slurm={"flags": {"begin": "now+1hour"}})
        run = await session.hyperpod.runs.act(run_id, "change", Change(2 * HOUR, "batch"))
        job = session.job_of(run)
        assert run.queue == "batch"
        assert look(session.cluster, job, "%P %l") == "batch 2:00:00"
        spec = session.hyperpod.runs.bundle(run_id).spec()
        assert (spec.queue, spec.time_limit) == ("dev", 600)
        written = session.hyperpod.runs.bundle(run_id).actions()[-1]
        assert (written.action, written.time_limit, written.queue) == ("change", 7200, "batch")

    async def test_the_limit_of_what_runs_is_lowered_and_its_queue_stays(self, session: SlurmSession) -> None:
        run_id = await session.submit("sleep 300", queue="dev", time_limit="30m")
        run = await session.running(run_id)
        await session.hyperpod.runs.act(run_id, "change", Change(time_limit=1200))
        assert look(session.cluster, session.job_of(run), "%l") == "20:00"
        with pytest.raises(ConflictError, match="only while a job is waiting") as caught:
            await session.hyperpod.runs.act(run_id, "change", Change(queue="batch"))
        assert caught.value.code == "wrong_state"
        assert (await session.hyperpod.runs.get(run_id)).queue == "dev"

    async def test_a_queue_that_is_none(self, session: SlurmSession) -> None:
        run_id = await session.submit("true", slurm={"flags": {"begin": "now+1hour"}})
        with pytest.raises(RefusedError) as caught:
            await session.hyperpod.runs.act(run_id, "change", Change(queue="nowhere"))
        assert caught.value.code == "unknown_queue"

    async def test_no_text_becomes_a_word_of_the_command(self, session: SlurmSession) -> None:
        run_id = await session.submit("true", slurm={"flags": {"begin": "now+1hour"}})
        session.cluster.forget_calls()
        for queue in ("dev timelimit=1", "dev\npriority=9", "-dev", "a=b", "", "'dev'"):
            with pytest.raises(InvalidInputError):
                await session.hyperpod.runs.act(run_id, "change", Change(queue=queue))
        assert [call for call in session.cluster.calls() if call.name == "scontrol"] == []

    async def test_nothing_to_change(self, session: SlurmSession) -> None:
        with pytest.raises(InvalidInputError, match="nothing to change"):
            await session.hyperpod.runs.act("any", "change", Change())

    async def test_a_run_that_may_not_be_requeued(self, session: SlurmSession) -> None:
        run_id = await session.submit("sleep 300", slurm={"flags": {"requeue": False}})
        await session.running(run_id)
        with pytest.raises(ConflictError) as caught:
            await session.hyperpod.runs.act(run_id, "requeue")
        assert caught.value.code == "not_requeueable"

    async def test_of_an_array_the_tasks_that_wait_are_changed_and_those_that_run_requeued(
        self, session: SlurmSession
    ) -> None:
        run_id = await session.submit("[ $HYPERPOD_ARRAY_INDEX = 0 ] || sleep 300", array="0-3%2", time_limit="20m")
        await session.ended(f"{run_id}.0")
        await session.running(f"{run_id}.1")
        run = await session.running(f"{run_id}.2")
        await session.hyperpod.runs.act(run_id, "change", Change(time_limit=600))
        job = session.job_of(run)
        limits = session.cluster.exec("ctl", "squeue", "-h", "-r", "-j", job, "-o", "%K %l")
        assert sorted(limits.split("\n")[:-1]) == ["1 10:00", "2 10:00", "3 10:00"]
        await session.hyperpod.runs.act(run_id, "requeue")
        await session.until(f"{run_id}.1", lambda child: child.state == "waiting")
        await session.until(f"{run_id}.1", lambda child: child.status.attempts[0].reason_code == "requeued")
        assert (await session.hyperpod.runs.get(f"{run_id}.0")).state == "succeeded"

    @pytest.mark.full  # without munge each command tries for long
    async def test_what_was_not_done_is_not_in_the_journal(self, session: SlurmSession) -> None:
        run_id = await session.submit("sleep 4")
        await session.running(run_id)
        session.cluster.munge_kill()
        try:
            with pytest.raises(UnreachableError):
                await session.hyperpod.runs.act(run_id, "cancel")
        finally:
            session.cluster.munge_start()
        assert session.hyperpod.runs.bundle(run_id).actions() == ()
        assert (await session.ended(run_id)).state == "succeeded"


class TestJobs:
    async def test_a_run_is_cancelled_as_a_run(self, session: SlurmSession) -> None:
        run_id = await session.submit("sleep 300")
        run = await session.running(run_id)
        results = await session.hyperpod.act_on_jobs(CLUSTER, "cancel", [session.job_of(run)])
        assert errors(results) == [None]
        ended = await session.ended(run_id)
        assert ended.state == "cancelled"
        actions = session.hyperpod.runs.bundle(run_id).actions()
        assert [action.action for action in actions] == ["cancel"]

    async def test_a_task_of_an_array_is_its_child(self, session: SlurmSession) -> None:
        run_id = await session.submit("sleep 300", array="0-2")
        child = await session.running(f"{run_id}.1")
        job = session.job_of(child)
        await session.hyperpod.act_on_jobs(CLUSTER, "cancel", [f"{job}_1"])
        assert (await session.ended(f"{run_id}.1")).state == "cancelled"
        assert (await session.hyperpod.runs.get(f"{run_id}.2")).state == "running"
        assert session.hyperpod.runs.bundle(run_id).actions() == ()

    async def test_own_and_others_jobs_at_once(self, alice: Hyperpod, slurm: SlurmTestbed) -> None:
        own, other = send(slurm, "alice", "--hold"), send(slurm, "bob", "--hold")
        results = await alice.act_on_jobs(CLUSTER, "cancel", [own, other, "999999"])
        assert errors(results) == [None, "denied", "no_such_job"]
        assert isinstance(results[1].error, DeniedError)
        assert results[1].error.message == (
            f"job {other} belongs to bob; only bob or an operator of the cluster may cancel it"
        )
        assert isinstance(results[2].error, NotFoundError)
        assert look(slurm, own, "%T") == "CANCELLED"
        assert look(slurm, other, "%T") == "PENDING"

    @pytest.mark.parametrize("action", ["hold", "release", "requeue", "change"])
    async def test_others_jobs_say_whose_they_are(self, alice: Hyperpod, slurm: SlurmTestbed, action: str) -> None:
        other = send(slurm, "bob")
        await until(lambda: look(slurm, other, "%T") == "RUNNING")
        change = Change(time_limit=60) if action == "change" else None
        results = await alice.act_on_jobs(CLUSTER, action, [other], change)  # type: ignore[arg-type]
        assert errors(results) == ["denied"]
        assert "belongs to bob" in str(results[0].error)

    async def test_many_are_held_released_and_changed_by_one_command(
        self, alice: Hyperpod, slurm: SlurmTestbed
    ) -> None:
        jobs = [send(slurm, "alice", "--begin=now+1hour") for _ in range(3)]
        slurm.forget_calls()
        for action, change in (("hold", None), ("release", None), ("change", Change(300, "batch"))):
            results = await alice.act_on_jobs(CLUSTER, action, jobs, change)  # type: ignore[arg-type]
            assert errors(results) == [None, None, None]
        assert [call.name for call in slurm.calls()].count("scontrol") == 3
        assert look(slurm, ",".join(jobs), "%P %l").splitlines() == ["batch 5:00"] * 3

    async def test_one_that_cannot_be_does_not_stop_the_others(self, alice: Hyperpod, slurm: SlurmTestbed) -> None:
        runs, waits = send(slurm, "alice"), send(slurm, "alice", "--begin=now+1hour")
        await until(lambda: look(slurm, runs, "%T") == "RUNNING")
        change = Change(queue="batch")
        results = await alice.act_on_jobs(CLUSTER, "change", [runs, waits], change)
        assert errors(results) == ["wrong_state", None]
        assert look(slurm, waits, "%P") == "batch"

    async def test_a_limit_is_lowered_and_not_raised(self, alice: Hyperpod, slurm: SlurmTestbed) -> None:
        job = send(slurm, "alice")
        await until(lambda: look(slurm, job, "%T") == "RUNNING")
        higher = await alice.act_on_jobs(CLUSTER, "change", [job], Change(time_limit=3000))
        assert errors(higher) == ["limit_raised"]
        assert "only an operator of the cluster may set time limit 50m 00s" in str(higher[0].error)
        lower = await alice.act_on_jobs(CLUSTER, "change", [job], Change(time_limit=600))
        assert errors(lower) == [None]
        assert look(slurm, job, "%l") == "10:00"

    async def test_a_requeue_is_told_once(self, alice: Hyperpod, slurm: SlurmTestbed) -> None:
        jobs = [send(slurm, "alice") for _ in range(2)]
        waits = send(slurm, "alice", "--hold")
        await until(lambda: look(slurm, ",".join(jobs), "%T").split() == ["RUNNING", "RUNNING"])
        slurm.forget_calls()
        results = await alice.act_on_jobs(CLUSTER, "requeue", [*jobs, waits])
        assert errors(results) == [None, None, "wrong_state"]
        assert [call.name for call in slurm.calls()].count("scontrol") == 1

    async def test_tasks_that_wait_in_one_row(self, alice: Hyperpod, slurm: SlurmTestbed) -> None:
        array = send(slurm, "alice", "--array=0-8:4%1", "--hold")
        rows = [job.scheduler_id for job in await alice.jobs(CLUSTER)]
        row = next(one for one in rows if one.startswith(array))
        results = await alice.act_on_jobs(CLUSTER, "change", [row], Change(time_limit=240))
        assert errors(results) == [None]
        one = await alice.act_on_jobs(CLUSTER, "cancel", [f"{array}_4"])
        assert errors(one) == [None]
        listed = slurm.exec("ctl", "squeue", "-h", "-r", "-j", array, "-o", "%K %l").splitlines()
        assert sorted(listed) == ["0 4:00", "8 4:00"]

    async def test_what_has_ended(self, alice: Hyperpod, slurm: SlurmTestbed) -> None:
        job = send(slurm, "alice", "--hold")
        assert errors(await alice.act_on_jobs(CLUSTER, "cancel", [job])) == [None]
        for action in ("cancel", "requeue"):
            results = await alice.act_on_jobs(CLUSTER, action, [job])
            assert errors(results) == ["wrong_state"]
            assert "has ended (CANCELLED)" in str(results[0].error)

    async def test_nothing_but_an_id_gets_into_a_command(self, alice: Hyperpod, slurm: SlurmTestbed) -> None:
        job = send(slurm, "alice", "--hold")
        slurm.forget_calls()
        bad = ["--user=alice", "-ualice", f"{job},{job}", f"{job} {job}", "$(id)", "1;id", "", "all"]
        bad += [f"{job}_[0-", f"{job}_*", f"{job}\n1", "1" * 2000]
        results = await alice.act_on_jobs(CLUSTER, "cancel", bad)
        assert set(errors(results)) == {"invalid_input", "no_such_job"}
        assert [call for call in slurm.calls() if call.name in {"scancel", "scontrol"}] == []
        assert look(slurm, job, "%T") == "PENDING"

    async def test_too_many_and_none(self, alice: Hyperpod) -> None:
        for jobs in ([], [str(number) for number in range(MAX_JOBS + 1)]):
            with pytest.raises(InvalidInputError, match=f"1 to {MAX_JOBS}"):
                await alice.act_on_jobs(CLUSTER, "hold", jobs)
