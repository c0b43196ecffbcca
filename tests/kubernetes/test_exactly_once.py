"""A run id is one job and one execution on a real cluster, wherever its sender is killed, and whatever the API server does with the request that makes the job."""

from __future__ import annotations

import asyncio
import random
from typing import get_args

import pytest

from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.run.submit import Step
from tests.kubernetes.client_fixtures import proxy
from tests.kubernetes.proxy import FaultyProxy, Pipe, delay, drop, hang, lose_answer, page, refuse
from tests.kubernetes.session_fixtures import MOUNT, KubernetesSession, Sessions
from tests.services.racing import Answer, Submitting, all_at_once

__all__ = ["proxy"]

STEPS = get_args(Step)
#: The request that makes a job, which a dry run does not.
MAKES = r"/pytorchjobs(?!.*dryRun)"


def submits_elsewhere(session: KubernetesSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of the test's submit as the session does."""
    for name, value in session.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(session.folder)


@pytest.fixture
def sender(session: KubernetesSession, monkeypatch: pytest.MonkeyPatch) -> KubernetesSession:
    """The services, and what processes that submit too need."""
    submits_elsewhere(session, monkeypatch)
    return session


@pytest.fixture
def behind(sessions: Sessions, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> KubernetesSession:
    """A session whose requests go through the proxy."""
    made = sessions(kubeconfig=proxy.kubeconfig)
    submits_elsewhere(made, monkeypatch)
    return made


def new_name() -> str:
    return f"once-{random.randrange(10**9)}"


def mark(word: str) -> str:
    """A command that leaves a line each time it runs."""
    return f"echo {word} >> {MOUNT}/marks-{word}"


def times(session: KubernetesSession, word: str) -> int:
    """How often it ran."""
    path = session.partition / f"marks-{word}"
    return len(path.read_text().splitlines()) if path.exists() else 0


async def send(session: KubernetesSession, run_id: str) -> str:
    """Send what the processes send."""
    return await session.submit(mark(run_id), run_id=run_id, stop_grace=10, files={"project": True})


async def holds(session: KubernetesSession, *names: str) -> None:
    """Each run has succeeded in one attempt, ran once, and there is one job of it with one pod."""
    for name in names:
        run = await session.ended(name)
        assert (run.state, len(run.status.attempts)) == ("succeeded", 1), name
    assert {name: times(session, name) for name in names} == dict.fromkeys(names, 1)
    found = session.cluster.get("pytorchjobs", namespace=session.namespace)["items"]
    assert sorted(job["metadata"]["name"] for job in found) == sorted(f"run-{n}" for n in names)
    for name in names:
        assert len(session.pods_of(name)) == 1


async def test_killed_at_each_step(sender: KubernetesSession) -> None:
    names = {step: f"{step}-{new_name()}" for step in STEPS}
    dying = [Submitting(name, mark(name), die_at=step) for step, name in names.items()]
    assert [answer.code for answer in all_at_once(dying)] == [-9] * len(STEPS)
    for name in names.values():
        await send(sender, name)
    await holds(sender, *names.values())


async def kill_at_random(sender: KubernetesSession, number: int, longest: float) -> None:
    dice = random.Random(number)
    names = [f"{n}-{new_name()}" for n in range(number)]
    for begin in range(0, number, 5):
        batch = names[begin : begin + 5]
        all_at_once([Submitting(name, mark(name), die_after=dice.uniform(0, longest)) for name in batch])
        for name in batch:
            await send(sender, name)
    await holds(sender, *names)


@pytest.mark.full
@pytest.mark.timeout(900)
async def test_killed_at_a_hundred_random_moments(sender: KubernetesSession) -> None:
    await kill_at_random(sender, 100, 1.5)


@pytest.mark.full
async def test_four_submits_of_one_id_at_the_same_moment(sender: KubernetesSession) -> None:
    name = new_name()
    answers = all_at_once([Submitting(name, mark(name)) for _ in range(4)])
    assert answers == [Answer(0, name)] * 4
    await holds(sender, name)


#: What becomes of the request, whether the job was made by it, and what the first submit says of it.
ANSWERS = {
    "late": (delay(4), True),
    "lost": (lose_answer(), True),
    "dropped": (drop(), False),
    "a page": (page(500, "<html><body>Internal Server Error</body></html>"), False),
    "unavailable": (refuse(503), False),
    "in a while": (refuse(429, retry_after=1), True),
}


@pytest.mark.parametrize(
    "how",
    ["late", "lost"]
    + [pytest.param(how, marks=pytest.mark.full) for how in ("dropped", "a page", "unavailable", "in a while")],
)
async def test_an_answer_that_is(how: str, behind: KubernetesSession, proxy: FaultyProxy) -> None:
    """It is made once, and the one who was not told sees it, or is told how to send it again."""
    answer, made = ANSWERS[how]
    name = new_name()
    fault = proxy.add(answer, verb="POST", path=MAKES, times=1)
    (said,) = await asyncio.gather(send(behind, name), return_exceptions=True)
    assert fault.hits == 1
    if isinstance(said, UnreachableError):
        assert f"--run-id {name}" in str(said.hint)
        there = behind.cluster.run("get", "pytorchjob", f"run-{name}", namespace=behind.namespace)
        assert (there.returncode == 0) == made
    else:
        assert said == name
    assert await send(behind, name) == name
    await holds(behind, name)


@pytest.mark.parametrize("silence", [pytest.param(hang(), id="never"), pytest.param(delay(45), id="after-45-s")])
@pytest.mark.full
@pytest.mark.timeout(300)
async def test_an_answer_that_comes(silence: Pipe, behind: KubernetesSession, proxy: FaultyProxy) -> None:
    """The submit gives up; the request may still arrive after a second submit has made the job."""
    name = new_name()
    proxy.add(silence, verb="POST", path=MAKES, times=1)
    with pytest.raises(UnreachableError) as refused:
        await send(behind, name)
    assert f"--run-id {name}" in str(refused.value.hint)
    assert await send(behind, name) == name
    await holds(behind, name)


async def test_the_answer_is_lost_and_then_the_server(behind: KubernetesSession, proxy: FaultyProxy) -> None:
    """The job runs; as long as nobody can be asked, nothing is sent again."""
    name = new_name()
    proxy.add(lose_answer(), verb="POST", path=MAKES, times=1)
    proxy.add(drop(), verb="GET", path="/pytorchjobs/")
    with pytest.raises(UnreachableError) as refused:
        await send(behind, name)
    assert f"--run-id {name}" in str(refused.value.hint)
    proxy.down()
    with pytest.raises(UnreachableError):
        await send(behind, name)
    proxy.up()
    proxy.clear()
    assert await send(behind, name) == name
    await holds(behind, name)


async def sent_at_random(behind: KubernetesSession, proxy: FaultyProxy, number: int) -> None:
    """Processes are killed, and half of the requests go wrong in some way."""
    dice = random.Random(number)
    faults: list[Pipe] = [lose_answer(), drop(), delay(1.5), page(502, "<html>"), refuse(500)]
    names = [f"{n}-{new_name()}" for n in range(number)]
    for begin in range(0, number, 5):
        batch = names[begin : begin + 5]
        proxy.clear()
        for name in batch:
            if dice.random() < 0.5:
                proxy.add(dice.choice(faults), verb="POST", path=MAKES, times=dice.randint(1, 2))
            del name
        all_at_once([Submitting(name, mark(name), die_after=dice.uniform(0.2, 4)) for name in batch])
        for name in batch:
            (said,) = await asyncio.gather(send(behind, name), return_exceptions=True)
            assert said == name or isinstance(said, UnreachableError), said
    proxy.clear()
    for name in names:
        assert await send(behind, name) == name
    await holds(behind, *names)


@pytest.mark.full
async def test_kills_and_faults_together(behind: KubernetesSession, proxy: FaultyProxy) -> None:
    await sent_at_random(behind, proxy, 10)


@pytest.mark.full
@pytest.mark.timeout(1200)
async def test_a_hundred_kills_and_faults_together(behind: KubernetesSession, proxy: FaultyProxy) -> None:
    await sent_at_random(behind, proxy, 100)


async def test_a_job_that_was_deleted_after_its_end_is_not_made_again(sender: KubernetesSession) -> None:
    """As a time to live does it: the run has ended, and its id is taken."""
    name = new_name()
    await send(sender, name)
    await holds(sender, name)
    sender.cluster.kubectl("delete", "pytorchjob", f"run-{name}", namespace=sender.namespace)
    assert await send(sender, name) == name
    await asyncio.sleep(2)
    assert (await sender.hyperpod.runs.get(name)).state == "succeeded"
    assert times(sender, name) == 1
    assert sender.cluster.get("pytorchjobs", namespace=sender.namespace)["items"] == []


async def test_an_object_of_that_name_that_is_not_ours(sender: KubernetesSession) -> None:
    """A job that somebody made under the run's name is not taken for the run, nor touched."""
    name = new_name()
    container = {"name": "pytorch", "image": sender.cluster.image, "command": ["true"]}
    replica = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": f"run-{name}"},
        "spec": {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": {"Master": replica}},
    }
    sender.cluster.create(job, namespace=sender.namespace)
    before = sender.job_of(name)["metadata"]["uid"]
    with pytest.raises(HyperpodError) as refused:
        await send(sender, name)
    assert refused.value.code in {"name_taken", "run_id_taken", "conflict"}
    assert f"run-{name}" in str(refused.value)
    assert sender.job_of(name)["metadata"]["uid"] == before
    assert not sender.pods_of(name)
