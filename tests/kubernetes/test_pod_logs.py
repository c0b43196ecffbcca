"""Runs whose pods mount no shared storage: their logs and records come through the API server, and are what the ranks wrote."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tests.kubernetes.pod_output as pod_output
from hyperpod_jlab.core.run import Run
from tests.kubernetes.session_fixtures import KubernetesSession

SAY = """
import os, random, sys, time
import pod_output
kind, *rest = sys.argv[1:]
rank = int(os.environ["RANK"])
if kind == "special":
    data = pod_output.special(rank)
    while data:
        count = random.choice([1, 7, 100, 5000, 200000])
        os.write(1, data[:count])
        data = data[count:]
        if random.random() < 0.1:
            time.sleep(0.01)
else:
    for line in pod_output.numbered(rank, int(rest[0])).splitlines(keepends=True):
        os.write(1, line)
        time.sleep(float(rest[1]))
"""

BROKEN_OFF = 24

INTERRUPTED = re.compile(r"interrupted; the run \S+ continues\nhint: continue with: hpj logs .*\n")

TWO_BY_TWO: dict[str, Any] = {
    "resources": {"nodes": 2, "processes_per_node": 2},
    "launcher": "python",
}


@pytest.fixture
def bare(sessions: Callable[..., KubernetesSession]) -> KubernetesSession:
    """A session whose pods mount nothing, with a program that prints what a test asks for."""
    session = sessions(claim=False)
    (session.folder / "say.py").write_text(SAY)
    (session.folder / "pod_output.py").write_text(Path(pod_output.__file__).read_text())
    return session


def said(session: KubernetesSession, run_id: str, rank: int, attempt: int = 1) -> bytes:
    """What a rank of two on each node wrote, as it lies in the records."""
    node, local = divmod(rank, 2)
    path = session.records(run_id) / f"logs/attempt-{attempt}/node-{node}.rank-{local}.log"
    return path.read_bytes() if path.exists() else b""


async def say(session: KubernetesSession, *words: str) -> str:
    """Have two ranks on each of two pods print something."""
    return await session.submit(
        source={"kind": "script", "path": "say.py"},
        args=list(words),
        files={"project": True},
        **TWO_BY_TWO,
    )


async def job_failed(session: KubernetesSession, run_id: str) -> None:
    """Wait for a job's end without looking at the run."""
    end = time.monotonic() + session.deadline
    name = f"run-{run_id}"
    while session.cluster.conditions("pytorchjob", name, session.namespace).get("Failed") != "True":
        assert time.monotonic() < end
        await asyncio.sleep(0.2)


async def test_logs_are_the_bytes_that_the_ranks_wrote(bare: KubernetesSession) -> None:
    run_id = await say(bare, "special")
    run = await bare.ended(run_id)
    assert (run.state, run.status.exit_code) == ("succeeded", 0)
    assert {node for one in run.status.attempts for node in one.nodes} <= set(bare.cluster.nodes)
    for rank in range(4):
        got, wanted = said(bare, run_id, rank), pod_output.special(rank)
        at = next(
            (i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b),
            min(len(got), len(wanted)),
        )
        assert got == wanted, (
            f"rank {rank}: {got[at - 20 : at + 20]!r} != {wanted[at - 20 : at + 20]!r}"
        )


async def test_a_failure_has_its_exit_code_and_its_traceback(bare: KubernetesSession) -> None:
    (bare.folder / "fail.py").write_text("print('before')\nraise LookupError('no such thing')\n")
    run_id = await bare.submit(
        source={"kind": "script", "path": "fail.py"}, files={"project": True}
    )
    run = await bare.ended(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 1)
    assert run.status.reason == "rank 0 raised LookupError: no such thing"
    assert bare.log(run_id).startswith("before\nTraceback")


async def test_show_alone_brings_the_log(bare: KubernetesSession) -> None:
    run_id = await bare.submit("echo quick; exit 3")
    await job_failed(bare, run_id)  # nobody looks while it runs
    assert not (bare.records(run_id) / "logs/attempt-1").exists()
    answer = await bare.hpj("logs", run_id)
    assert (answer.code, answer.out) == (0, "0|quick\n")
    run = await bare.ended(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 3)


@pytest.mark.full
async def test_two_who_follow_and_one_who_is_killed_have_each_line_once(
    bare: KubernetesSession,
) -> None:
    run_id = await say(bare, "numbered", "1500", "0.01")
    outputs = [bare.folder / f"follow-{number}.out" for number in range(3)]
    words = (sys.executable, "-m", "hyperpod_jlab.cli.main", "logs", "-f", run_id)

    async def follow(output: Path) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *words,
            stdout=output.open("wb"),
            cwd=bare.folder,
            env={**os.environ, **bare.environment},
        )

    await bare.running(run_id)
    processes = [await follow(output) for output in outputs[:2]]
    for _ in range(3):
        await asyncio.sleep(random.uniform(1.0, 3.0))
        processes[1].send_signal(signal.SIGKILL)
        await processes[1].wait()
        processes[1] = await follow(outputs[1])
    run = await bare.ended(run_id)
    assert run.state == "succeeded"
    for process in processes:
        assert await asyncio.wait_for(process.wait(), 60) == 0
    for rank in range(4):
        assert said(bare, run_id, rank) == pod_output.numbered(rank, 1500)
    for output in outputs[:2]:
        lines = output.read_bytes().splitlines(keepends=True)
        for rank in range(4):
            mine = [line.partition(b"|")[2] for line in lines if line.startswith(b"%d|" % rank)]
            assert b"".join(mine) == pod_output.numbered(rank, 1500)


@pytest.mark.parametrize(
    "times", [BROKEN_OFF // 4, pytest.param(BROKEN_OFF, marks=pytest.mark.full)]
)
async def test_who_breaks_off_at_any_moment_sees_nothing_but_what_was_said(
    bare: KubernetesSession, times: int
) -> None:
    """Ctrl-C, or the end of a `| head`."""
    run_id = await say(bare, "numbered", "100000", "0.01")
    await bare.running(run_id)
    lanes = asyncio.Semaphore(4)

    async def broken_off(seed: int) -> str:
        by_signal, moment = seed % 2, random.Random(seed).uniform(0, 1.5)
        ours, theirs = os.pipe()
        async with lanes:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hyperpod_jlab.cli.main", "logs", "-f", run_id),
                stdout=theirs,
                stderr=asyncio.subprocess.PIPE,
                cwd=bare.folder,
                env={**os.environ, **bare.environment},
            )
            os.close(theirs)
            with os.fdopen(ours, "rb") as lines:
                assert await asyncio.to_thread(lines.readline)
                await asyncio.sleep(moment)
                if by_signal:
                    process.send_signal(signal.SIGINT)
                    await asyncio.to_thread(lines.read)
            _, errors = await process.communicate()
            assert process.returncode == (130 if by_signal else 0), errors.decode()
            return errors.decode()

    found = await asyncio.gather(*map(broken_off, range(times)))
    await bare.hyperpod.runs.act(run_id, "cancel")
    assert [said for said in found[0::2] if said] == []
    assert [said for said in found[1::2] if not INTERRUPTED.fullmatch(said)] == []


@pytest.mark.full
async def test_a_functions_value_comes_back(bare: KubernetesSession) -> None:
    (bare.folder / "call.py").write_text(
        "import hyperpod_jlab\n"
        "def add(a, b):\n    print('adding')\n    return {'sum': a + b}\n"
        "run = hyperpod_jlab.submit(add, args=(2, 3))\n"
        "print(run.result(timeout=100))\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "call.py"),
        stdout=asyncio.subprocess.PIPE,
        cwd=bare.folder,
        env={**os.environ, **bare.environment},
    )
    out, _ = await asyncio.wait_for(process.communicate(), 110)
    assert out.decode().strip().splitlines()[-1] == "{'sum': 5}"


@pytest.mark.full
async def test_a_server_that_only_lists_runs_fetches_what_they_say(bare: KubernetesSession) -> None:
    bare.hyperpod.engines.load()
    bare.hyperpod.engines.mark_active()
    run_id = await say(bare, "numbered", "200", "0.01")

    async def listed(wanted: str) -> Run:
        end = time.monotonic() + bare.deadline
        while True:
            runs = (await bare.hyperpod.runs.list()).runs
            found = next(run for run in runs if run.run_id == run_id)
            if found.state == wanted:
                return found
            assert time.monotonic() < end, found.status
            await asyncio.sleep(0.5)

    await listed("running")
    run = await listed("succeeded")
    assert [len(one.nodes) for one in run.status.attempts] == [2]
    for rank in range(4):
        assert said(bare, run_id, rank) == pod_output.numbered(rank, 200)


@pytest.mark.full
async def test_who_may_not_read_logs_is_told(
    bare: KubernetesSession, sessions: Callable[..., KubernetesSession]
) -> None:
    jobs = {"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"], "verbs": ["*"]}
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    kubeconfig = bare.cluster.user("deaf", bare.namespace, rules=[jobs, pods])
    deaf = sessions(claim=False, kubeconfig=kubeconfig)
    run_id = await deaf.submit("echo x; exit 3")
    run = await deaf.ended(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 3)
    answer = await deaf.hpj("logs", "--json", run_id)
    assert answer.code == 4
    assert "pods/log" in answer.error["message"]


RESTARTED = {
    "spec": {
        "pytorchReplicaSpecs": {
            "Master": {"restartPolicy": "ExitCode"},
            "Worker": {"restartPolicy": "ExitCode"},
        }
    }
}


@pytest.mark.full
async def test_a_pod_that_is_deleted_while_followed_opens_an_attempt_in_the_same_log(
    bare: KubernetesSession,
) -> None:
    run_id = await bare.submit(
        source={"kind": "script", "path": "say.py"},
        args=["numbered", "300", "0.05"],
        files={"project": True},
        kubernetes={"patch": RESTARTED},
        **TWO_BY_TWO,
    )
    output = bare.folder / "follow.out"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hyperpod_jlab.cli.main", "logs", "-f", run_id),
        stdout=output.open("wb"),
        cwd=bare.folder,
        env={**os.environ, **bare.environment},
    )
    await bare.running(run_id)
    await bare.until(run_id, lambda _: said(bare, run_id, 3).count(b"\n") > 20)
    pod = bare.pods_of(run_id)[1]["metadata"]["name"]
    bare.cluster.kubectl("delete", "pod", pod, "--wait=false", namespace=bare.namespace)
    run = await bare.ended(run_id)
    assert run.state == "succeeded"
    assert [one.state for one in run.status.attempts] == ["failed", "succeeded"]
    assert await asyncio.wait_for(process.wait(), 60) == 0
    lines = output.read_bytes().splitlines(keepends=True)
    for rank in range(4):
        first, second = (said(bare, run_id, rank, attempt) for attempt in (1, 2))
        assert second == pod_output.numbered(rank, 300)
        assert pod_output.numbered(rank, 300).startswith(first)
        mine = [line.partition(b"|")[2] for line in lines if line.startswith(b"%d|" % rank)]
        assert b"".join(mine) == first + second
