"""What ends an attempt on a real cluster, with accounting and without: preemption, a lost node, a requeue that the run asks for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.slurm.cluster import ONE, SlurmTestbed, running
from tests.slurm.fault_fixtures import hpj, sessions, start_now, until
from tests.slurm.hyperpod_fixtures import SlurmSession

__all__ = ["sessions"]

OPTIONS = ("--preempt", "--min-job-age", "2", "--slurmd-timeout", "5")
PEOPLE = ("--users", "alice:20001 bob:20002")
TWICE = "echo this is $HYPERPOD_ATTEMPT; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600"


@pytest.fixture(scope="module", params=["without", pytest.param("with", marks=pytest.mark.full)])
def accounting(request: pytest.FixtureRequest) -> bool:
    """Whether the cluster keeps accounting."""
    return bool(request.param == "with")


@pytest.fixture(scope="module")
def bed(slurm_version: str, accounting: bool) -> Iterator[SlurmTestbed]:
    """A cluster of two nodes on which jobs of the queue high take the others' places."""
    options = [*OPTIONS, *PEOPLE]
    if accounting:
        options += ["--dbd", "--accounts", "research:alice,bob"]
    with ONE.only(running(*options, version=slurm_version, nodes=2)) as cluster:
        yield cluster


@pytest.fixture
def session(bed: SlurmTestbed, sessions: Callable[..., SlurmSession]) -> Iterator[SlurmSession]:
    """A user's services on it."""
    yield sessions(bed)
    bed.heal()


async def log_of(session: SlurmSession, run_id: str) -> list[str]:
    """The rank's lines that ``hpj logs`` shows, and behind them the marks."""
    answer = await hpj(session, "logs", run_id, "--rank", "0")
    assert answer.code == 0, answer.err
    return [*answer.out.splitlines(), *answer.err.splitlines()]


def wrote(session: SlurmSession, run_id: str, text: str) -> bool:
    """Whether the first rank has written something."""
    try:
        return text in session.log(run_id)
    except FileNotFoundError:
        return False


async def test_a_preempted_attempt_is_told_and_the_next_one_goes_on(session: SlurmSession, accounting: bool) -> None:
    run_id = await session.submit(TWICE, queue="batch", resources={"nodes": 1}, slurm={"flags": {"exclusive": True}})
    run = await session.running(run_id)
    await until(lambda: wrote(session, run_id, "this is 1"))
    job = session.job_of(run)
    words = ("sbatch", "-p", "high", "-N1", "-w", run.status.attempts[0].nodes[0])
    session.cluster.exec("ctl", *words, "--exclusive", "-t1", "-o", "/dev/null", "--chdir=/tmp", "--wrap=sleep 3")
    waits = await session.until(run_id, lambda run: run.state == "waiting")
    start_now(session.cluster, job)
    done = await session.ended(run_id)
    assert done.state == "succeeded"
    assert [attempt.reason_code for attempt in done.status.attempts] == ["preempted", None]
    assert await log_of(session, run_id) == [
        "0|this is 1",
        "0|this is 2",
        "--- attempt 2 started: it was preempted ---",
    ]
    assert waits.status.attempts[0].reason_code == "preempted"


@pytest.mark.full
async def test_a_run_that_asks_for_its_requeue_before_its_time_is_over(session: SlurmSession) -> None:
    (session.folder / "train.py").write_text(
        "import os, signal, subprocess, sys, time\n"
        "attempt = int(os.environ['HYPERPOD_ATTEMPT'])\n"
        "if attempt == 2:\n"
        "    sys.exit(print('this is 2'))\n"
        "def save(number, frame):\n"
        "    print('saved', flush=True)\n"
        "    subprocess.run(['scontrol', 'requeue', os.environ['SLURM_JOB_ID']], check=True)\n"
        "signal.signal(signal.SIGUSR2, save)\n"
        "print('this is', attempt, flush=True)\n"
        "time.sleep(600)\n"
    )
    run_id = await session.submit("exec python3 train.py", files={"project": True}, time_limit=3600)
    run = await session.running(run_id)
    job = session.job_of(run)
    await until(lambda: wrote(session, run_id, "this is 1"))
    session.cluster.exec("ctl", "scancel", "--signal=USR2", "--batch", job)
    waits = await session.until(run_id, lambda run: run.state == "waiting")
    assert waits.status.attempts[0].reason_code == "requeued"
    start_now(session.cluster, job)
    done = await session.ended(run_id)
    assert done.state == "succeeded"
    assert await log_of(session, run_id) == [
        "0|this is 1",
        "0|saved",
        "0|this is 2",
        "--- attempt 2 started: it was requeued ---",
    ]


@pytest.mark.full
async def test_a_lost_node(session: SlurmSession) -> None:
    run_id = await session.submit(TWICE, resources={"nodes": 1})
    run = await session.running(run_id)
    await until(lambda: wrote(session, run_id, "this is 1"))
    node = run.status.attempts[0].nodes[0]
    session.cluster.node_kill(node)
    waits = await session.until(run_id, lambda run: run.state == "waiting")
    assert waits.status.attempts[0].reason_code == "node_fail"
    start_now(session.cluster, session.job_of(run))
    done = await session.ended(run_id)
    assert (done.state, len(done.status.attempts)) == ("succeeded", 2)
    assert await log_of(session, run_id) == ["0|this is 1", "0|this is 2", "--- attempt 2 started: a node failed ---"]
