"""A run id is executed once on a real cluster, wherever its sender is killed and however late the controller answers."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import get_args

import pytest

from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.run.submit import Step
from hyperpod_jlab.storage.records import BundleReader
from tests.services.racing import Answer, Submitting, all_at_once
from tests.session import write_config
from tests.slurm.hyperpod_fixtures import CLUSTER, SlurmSession, settings_for

STEPS = get_args(Step)


@pytest.fixture
def sender(session: SlurmSession, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmSession:
    """The services, with a configuration file for processes that submit too."""
    settings = settings_for(session.cluster, transport)
    path = tmp_path / "config.toml"
    write_config(settings, path)
    monkeypatch.setenv("HYPERPOD_CONFIG", str(path))
    monkeypatch.chdir(session.folder)
    return session


def mark(session: SlurmSession, word: str) -> str:
    """A command that leaves a line each time it runs."""
    return f"echo {word} >> '{session.cluster.partition_on_nodes}/marks-{word}'"


def times(session: SlurmSession, word: str) -> int:
    """How often it ran."""
    path = session.cluster.partition / f"marks-{word}"
    return len(path.read_text().splitlines()) if path.exists() else 0


async def send_again(session: SlurmSession, run_id: str, word: str) -> None:
    """Send what a killed process sent."""
    command = mark(session, word)
    await session.submit(command, run_id=run_id, stop_grace=10, files={"project": True})


@pytest.mark.both_transports
async def test_killed_at_each_step(sender: SlurmSession) -> None:
    names = {step: f"run-{step}-{random.randrange(10**6)}" for step in STEPS}
    # Two at a time: six logins at once can be too many for a busy machine, and this is not about load.
    for pair in (STEPS[at : at + 2] for at in range(0, len(STEPS), 2)):
        senders = [Submitting(names[step], mark(sender, names[step]), die_at=step) for step in pair]
        assert all_at_once(senders) == [Answer(-9, "")] * len(pair)
    for step in STEPS:
        await send_again(sender, names[step], names[step])
    for step in STEPS:
        run = await sender.ended(names[step])
        assert (run.state, len(run.status.attempts)) == ("succeeded", 1), step
    assert {step: times(sender, names[step]) for step in STEPS} == dict.fromkeys(STEPS, 1)


async def kill_at_random(sender: SlurmSession, number: int, longest: float) -> None:
    dice = random.Random(number)
    names = [f"run-{n}-{random.randrange(10**6)}" for n in range(number)]
    for begin in range(0, number, 5):
        batch = names[begin : begin + 5]
        senders = [Submitting(name, mark(sender, name), die_after=dice.uniform(0, longest)) for name in batch]
        all_at_once(senders)
        for name in batch:
            await send_again(sender, name, name)
    for name in names:
        run = await sender.ended(name)
        assert run.state == "succeeded"
    assert [times(sender, name) for name in names] == [1] * number


async def test_killed_at_random_moments(sender: SlurmSession) -> None:
    await kill_at_random(sender, 10, 1.5)


@pytest.mark.full
@pytest.mark.timeout(900)
async def test_killed_at_a_hundred_random_moments(sender: SlurmSession) -> None:
    await kill_at_random(sender, 100, 1.5)


@pytest.mark.both_transports
async def test_four_submits_of_one_id_at_the_same_moment(sender: SlurmSession) -> None:
    name = f"run-{random.randrange(10**6)}"
    answers = all_at_once([Submitting(name, mark(sender, name)) for _ in range(4)])
    assert answers == [Answer(0, name)] * 4
    run = await sender.ended(name)
    assert (run.state, times(sender, name)) == ("succeeded", 1)


async def test_a_job_that_was_sent_twice_runs_once_and_its_double_is_ended(sender: SlurmSession) -> None:
    """As when the answer of sbatch was lost and the look-up found nothing: the fence holds.

    Which end the double takes depends on when it comes to run: refused by the fence, cancelled in the queue, or with nothing left to do.
    """
    run_id = await sender.submit(mark(sender, name := f"run-{random.randrange(10**6)}") + "; sleep 5", run_id=name)
    engine = sender.hyperpod.engines.get(CLUSTER)
    double = await engine.submit(BundleReader(sender.hyperpod.partition, run_id))
    run = await sender.ended(run_id)
    assert run.state == "succeeded"
    state = ""
    for _ in range(100):
        state = sender.cluster.run("ctl", "squeue", "-h", "-t", "all", "-j", double.scheduler_id, "-o", "%T").stdout
        if state.strip() in {"FAILED", "CANCELLED", "COMPLETED"}:
            break
        await asyncio.sleep(0.2)
    assert state.strip() in {"FAILED", "CANCELLED", "COMPLETED"}
    assert times(sender, name) == 1
    assert (await sender.hyperpod.runs.get(run_id)).state == "succeeded"


@pytest.mark.parametrize("seconds", [12, pytest.param(30, marks=pytest.mark.full)])
async def test_a_controller_that_answers_late_is_sent_nothing_twice(sender: SlurmSession, seconds: float) -> None:
    name = f"run-{random.randrange(10**6)}"
    sender.cluster.controller_hang()
    sending = asyncio.create_task(sender.submit(mark(sender, name), run_id=name))
    await asyncio.sleep(seconds)
    sender.cluster.controller_resume()
    (answer,) = await asyncio.gather(sending, return_exceptions=True)
    if isinstance(answer, UnreachableError):
        assert f"--run-id {name}" in str(answer.hint)
    else:
        assert answer == name
    await sender.submit(mark(sender, name), run_id=name)
    run = await sender.ended(name)
    assert (run.state, times(sender, name)) == ("succeeded", 1)
