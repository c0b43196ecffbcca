"""Signals that come while a launcher starts, as each engine starts it: warnings never end it, a stop always does."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.kinds.batch_job import BatchJob
from hyperpod_jlab.engines.kubernetes.kinds.hyperpod_job import HyperPodPyTorchJob
from hyperpod_jlab.engines.kubernetes.kinds.kind import Kind
from hyperpod_jlab.engines.kubernetes.kinds.pytorch_job import PyTorchJob
from hyperpod_jlab.engines.kubernetes.submit.render import pod_command
from hyperpod_jlab.engines.launch import GuardPolicy
from hyperpod_jlab.engines.local.attempt import RunningAttempt
from hyperpod_jlab.engines.protocol import RenderInput
from hyperpod_jlab.engines.slurm.render import render
from hyperpod_jlab.storage.partition import Partition, PathMap

from .conftest import NODE_PYTHON, Bundle, make_bundle, processes_with, until

pytestmark = pytest.mark.local

LANES = 4
WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)

MASK = sum(1 << (number - 1) for number in (*WARNINGS, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))

RANK = "grep -E '^Sig(Blk|Ign)' /proc/self/status; until [ -e go ]; do sleep 0.1; done; echo done"

SRUN = """\
#!/bin/bash
# Like srun it takes every signal as the order to end until its task runs, which begins with none ignored.
while [ "${1#--}" != "$1" ]; do shift; done
: >"$STARTED"
sleep 0.1
exec "$@"
"""


@dataclass
class Begun:
    """A launcher that starts, and the program that gets the scheduler's signals."""

    bundle: Bundle
    process: subprocess.Popen[bytes]


def given(bundle: Bundle) -> RenderInput:
    """All that its command or script depends on."""
    root = bundle.folder.parent
    return RenderInput(
        run_id="test-run",
        name="test",
        spec=JobSpec.model_validate({"source": {"kind": "command", "command": "true"}}),
        bundle=bundle.folder.name,
        paths=PathMap.create_map(str(root), str(root)),
        python=NODE_PYTHON,
        guard_policy=GuardPolicy.current(),
    )


def slurm_environment(bundle: Bundle) -> dict[str, str]:
    program = bundle.folder.parent / "bin" / "srun"
    if not program.exists():
        program.parent.mkdir(exist_ok=True)
        program.write_text(SRUN)
        program.chmod(0o755)
    return {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "STARTED": str(bundle.folder / "started"),
        "SLURM_JOB_ID": "17",
        "SLURM_NODEID": "0",
        "SLURMD_NODENAME": "node1",
    }


def errors_of(bundle: Bundle) -> Path:
    return bundle.folder / "logs" / "supervisor.log"


def started(bundle: Bundle, words: list[str], environment: dict[str, str]) -> Begun:
    with errors_of(bundle).open("wb") as errors:
        process = subprocess.Popen(
            words,
            cwd=bundle.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    bundle.launchers.append(process)
    return Begun(bundle, process)


def until_safe(process: subprocess.Popen[bytes]) -> None:
    """Wait until a warning would not end it: the shell's or the guard's first line has run."""
    path = Path(f"/proc/{process.pid}/status")

    def is_safe() -> bool:
        masks = dict(line.split(":") for line in path.read_text().splitlines())
        return any(int(masks[name], 16) & 1 << 11 for name in ("SigBlk", "SigIgn", "SigCgt"))

    until(is_safe, "the first line")


def script_of(bundle: Bundle) -> list[str]:
    path = bundle.folder / "sbatch.sh"
    path.write_text(render(given(bundle)).text)
    return ["/bin/bash", str(path)]


def by_slurms_task(bundle: Bundle) -> Begun:
    """What slurmstepd starts, signalled by `scancel --signal`."""
    environment = slurm_environment(bundle)
    words = bundle.folder / "words"
    tell = words.parent.parent / "tell" / "srun"
    tell.parent.mkdir(exist_ok=True)
    tell.write_text(SRUN.replace('exec "$@"', 'printf "%s\\0" "$@" >"$WORDS"'))
    tell.chmod(0o755)
    telling = {**environment, "PATH": f"{tell.parent}:{environment['PATH']}", "WORDS": str(words)}
    subprocess.run(script_of(bundle), cwd=bundle.folder, env=telling, check=True, timeout=30)
    begun = started(bundle, words.read_text().split("\0")[:-1], environment)
    until_safe(begun.process)
    return begun


def by_slurms_script(bundle: Bundle) -> Begun:
    """The job's script, signalled by `--signal=B:USR2@...`, once it had time to read its first lines."""
    begun = started(bundle, script_of(bundle), slurm_environment(bundle))
    until((bundle.folder / "started").exists, "srun")
    return begun


def by_the_supervisor(bundle: Bundle) -> Begun:
    attempt = RunningAttempt(
        partition=Partition(bundle.folder.parent),
        launcher=GuardPolicy.current().digest,
        bundle=bundle.folder,
        records=bundle.folder,
        plan=json.loads((bundle.folder / "launch.json").read_text()),
        scheduler_id="17",
    )
    attempt.start()
    bundle.launchers += attempt.launchers
    return Begun(bundle, attempt.launchers[0])


def by_a_pod(kind: Kind) -> Callable[[Bundle], Begun]:
    """What the kubelet starts, or HyperPod's agent in a pod."""

    def begin(bundle: Bundle) -> Begun:
        environment = {**os.environ, "RANK": "0", "MASTER_ADDR": "127.0.0.1"}
        meeting = replace(kind.rendezvous("run", 1), node_rank="0", master_addr="127.0.0.1")
        words = pod_command(given(bundle), "run", meeting)
        words = [word.replace("$$", "$") for word in kind.wrap(words, 1)]
        words = words[words.index("--no-python") + 1 :] if "--no-python" in words else words
        process = started(bundle, words, environment).process
        until_safe(process)
        return Begun(bundle, process)

    return begin


WAYS: dict[str, tuple[Callable[[Bundle], Begun], int]] = {
    "slurm_task": (by_slurms_task, 50),
    "slurm_script": (by_slurms_script, 40),
    "local": (by_the_supervisor, 40),
    "pod": (by_a_pod(PyTorchJob()), 30),
    "agent": (by_a_pod(HyperPodPyTorchJob()), 10),
    "job": (by_a_pod(BatchJob()), 30),
}
"""Ways to start a launcher, and how many of the 200 are started so; `make test` starts the first quarter of each."""


async def seen_through(way: str, root: Path, seed: int) -> None:
    """Start a launcher, send it both warnings in its first second, and to every second one a stop."""
    chance = random.Random(f"{way} {seed}")
    bundle = make_bundle(root / f"run-{seed}").shell(RANK)
    begun = WAYS[way][0](bundle)
    process = begun.process
    moments = [(chance.random(), number) for number in WARNINGS]
    if seed % 2:
        moments.append((chance.random(), signal.SIGTERM))
    at = time.monotonic()
    try:
        for moment, number in sorted(moments):
            await asyncio.sleep(max(0.0, at + moment - time.monotonic()))
            process.send_signal(number)
    finally:  # else it waits for ever when another one has failed
        (begun.bundle.folder / "work").mkdir(exist_ok=True)  # it may not be unpacked yet
        (begun.bundle.folder / "work" / "go").touch()
    mark = f"HYPERPOD_BUNDLE={begun.bundle.folder}"
    await asyncio.to_thread(until, lambda: process.poll() is not None, "the end")
    await asyncio.to_thread(until, lambda: not processes_with(mark), "the last process's end")
    said = errors_of(bundle).read_text()
    seen = f"launcher {seed}: {moments}, {process.returncode}: {said}"
    record = begun.bundle.node()
    codes = {143}
    if way == "slurm_script":  # bash forgets the code of a program that ends while it runs a trap
        codes.add(255)
    if seed % 2 == 0 or process.returncode == 0:  # it may have ended before the stop
        assert process.returncode == 0, seen
        *masks, done = begun.bundle.rank_log().decode().splitlines()
        assert [int(mask.split()[1], 16) & MASK for mask in masks] == [0, 0], seen
        assert done == "done", seen
    elif record is None:
        if way in {"slurm_task", "agent"}:  # between the shell and the guard
            codes.add(-signal.SIGTERM)
        assert process.returncode in codes, seen
    else:
        assert process.returncode in codes, seen
        assert (record["stopped_by"], record["exit_code"]) == ("SIGTERM", 143), seen
        assert record["ended_at"] is not None, seen


@pytest.fixture(autouse=True)
def without_nohup():
    """`nohup` ignores SIGHUP, and every child inherits that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", [0.25, pytest.param(1, marks=pytest.mark.full)])
async def test_signals_at_random_moments_of_the_start(tmp_path: Path, way: str, part: float):
    lanes = asyncio.Semaphore(LANES)

    async def in_a_lane(seed: int) -> None:
        async with lanes:
            await seen_through(way, tmp_path, seed)

    async with asyncio.TaskGroup() as group:
        for seed in range(int(WAYS[way][1] * part)):
            group.create_task(in_a_lane(seed))
