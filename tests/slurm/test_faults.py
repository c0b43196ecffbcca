"""A controller and a munge that go away on a real cluster: clear words while they are gone, and nothing doubled or lost afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.submit import Request
from tests.slurm.fault_fixtures import here, hpj, jobs_of, sessions, until
from tests.slurm.hyperpod_fixtures import SlurmSession

__all__ = ["here", "sessions"]


async def send(session: SlurmSession, run_id: str, command: str, step: Callable[[str], None] = lambda _: None) -> None:
    """Submit a command with a hook after each step."""
    source = {"kind": "command", "command": command}
    spec = parse(JobSpec, {"source": source, "files": {"project": False}})
    request = Request(spec, run_id=run_id, base=session.folder)
    await session.hyperpod.submitter.submit(request, step)


class TestController:
    async def test_a_submit_says_that_nobody_answers_and_works_later(self, here: SlurmSession) -> None:
        here.cluster.controller_stop()
        words = ("submit", "--run-id", "run-down", "--no-project-files", "-c", "echo once")
        answer = await hpj(here, *words, "--json")
        assert answer.code == 5
        assert answer.error["code"] == "controller_down"
        assert answer.error["hint"]
        here.cluster.controller_start()
        assert (await hpj(here, *words)).code == 0
        run = await here.ended("run-down")
        assert (run.state, here.log("run-down")) == ("succeeded", "once\n")
        assert len(jobs_of(here.cluster, "run-down")) == 1

    @pytest.mark.full
    async def test_it_goes_away_just_before_sbatch(self, here: SlurmSession) -> None:
        def step(name: str) -> None:
            if name == "committed":
                here.cluster.controller_stop()

        with pytest.raises(UnreachableError) as caught:
            await send(here, "run-between", "echo once", step)
        assert caught.value.code == "controller_down"
        broken = await here.hyperpod.runs.get("run-between")
        assert (broken.state, broken.status.reason_code) == ("failed", "submit_interrupted")
        assert "Unable to contact" in (broken.status.reason or "")
        here.cluster.controller_start()
        await send(here, "run-between", "echo once")
        run = await here.ended("run-between")
        assert (run.state, here.log("run-between")) == ("succeeded", "once\n")
        assert len(jobs_of(here.cluster, "run-between")) == 1

    async def test_what_runs_is_told_by_its_launchers(self, here: SlurmSession) -> None:
        release = here.cluster.partition / "go-on"
        waits = await here.submit("true", slurm={"flags": {"begin": "now+1hour"}})
        run_id = await here.submit(
            f"echo begun; while [ ! -e {here.cluster.partition_on_nodes}/go-on ]; do sleep 0.1; done",
            resources={"nodes": 2},
        )
        await here.until(waits, lambda run: run.state == "waiting")
        await here.running(run_id)
        here.cluster.controller_stop()
        alone = await here.until(run_id, lambda run: "does not answer" in (run.status.reason or ""), 15)
        assert alone.state == "running"
        other = await here.hyperpod.runs.get(waits)
        assert (other.state, other.status.reason_code) == ("unknown", "unreachable")
        release.touch()
        done = await here.ended(run_id, 10)
        assert done.state == "succeeded"
        here.cluster.controller_start()
        again = await here.until(waits, lambda run: run.state == "waiting")
        assert len(jobs_of(here.cluster, waits)) == 1
        await until(lambda: len(jobs_of(here.cluster, run_id)) == 1)
        assert (await here.hyperpod.runs.get(run_id)).state == "succeeded"
        assert again.status.attempts == ()


class TestMunge:
    """Slurm's commands themselves wait 49 s for it."""

    @pytest.mark.full
    @pytest.mark.timeout(300)
    async def test_it_is_named_and_everything_works_when_it_is_back(self, here: SlurmSession) -> None:
        here.cluster.munge_kill()
        words = ("submit", "--run-id", "run-munge", "--no-project-files", "-c", "echo once")
        answer = await hpj(here, *words, "--json")
        assert (answer.code, answer.error["code"]) == (5, "munge_down")
        assert "munge" in answer.error["hint"]
        here.cluster.munge_start()
        assert (await hpj(here, *words)).code == 0
        run = await here.ended("run-munge")
        assert (run.state, here.log("run-munge")) == ("succeeded", "once\n")
        assert len(jobs_of(here.cluster, "run-munge")) == 1
