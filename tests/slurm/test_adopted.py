"""Runs that an older version made of jobs that were sent with sbatch itself."""

from __future__ import annotations

import getpass
import json
import secrets
import time
from dataclasses import asdict

import pytest

from hyperpod_jlab.core.records import Head, Submission
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.launch import launch_plan
from hyperpod_jlab.engines.slurm.job_files import JobFiles
from hyperpod_jlab.run.access import read_access
from hyperpod_jlab.storage.bundle import BundleWriter
from hyperpod_jlab.storage.files import to_json
from hyperpod_jlab.storage.records import BUNDLE_FORMAT
from tests.slurm.hyperpod_fixtures import CLUSTER, SlurmSession
from tests.slurm.native_fixtures import log, told

SCRIPT = "#!/bin/bash\necho one; sleep 2; echo two; exit 3\n"


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the queue is not taken for another process's, which is good for seconds."""
    monkeypatch.setattr("hyperpod_jlab.engines.slurm.queue.SHARED_TTL_S", 0.0)


def adopted(session: SlurmSession) -> tuple[str, str]:
    """A running job, and the bundle that an older version made of it; returns the run's and the job's id."""
    folder = session.cluster.partition_on_nodes
    words = ("sbatch", "--parsable", "--job-name=mine", f"--chdir={folder}")
    job = session.cluster.run("ctl", *words, input=SCRIPT).stdout.strip()
    end = time.monotonic() + 30
    while told(session, job, "State") != "RUNNING":
        assert time.monotonic() < end
        time.sleep(0.1)
    output = f"{folder}/slurm-{job}.out"
    spec = parse(
        JobSpec,
        {
            "source": {"kind": "native", "path": f"{folder}/script.sbatch"},
            "files": {"project": False},
        },
    )
    run_id = f"20260101-000000-{secrets.token_hex(3)}"
    user = getpass.getuser()
    now = time.time()
    head = Head(
        format=BUNDLE_FORMAT,
        run_id=run_id,
        name="mine",
        user=user,
        space=None,
        host="space",
        created_at=now,
        cluster=CLUSTER,
        orchestrator="slurm",
        spec_digest="0" * 64,
        queue="dev",
        nodes=1,
        processes_per_node=1,
    )
    native = {
        "format": 1,
        "script": "code/script.sbatch",
        "options": [],
        "args": [],
        "adopted": job,
    }
    files = JobFiles(output, output, str(folder), "mine", user)
    with BundleWriter(session.hyperpod.engines.partition, run_id) as writer:
        writer.add_bytes("code/script.sbatch", SCRIPT.encode())
        writer.write("native.json", json.dumps(native).encode())
        writer.write("status/job.json", to_json(asdict(files)))
        writer.write("spec.json", spec.model_dump_json().encode())
        writer.write("launch.json", to_json(launch_plan(spec, run_id, (), None)))
        sent = Submission(scheduler_id=job, submitted_at=now)
        writer.write("submission.json", to_json(sent.model_dump()))
        writer.write("bundle.json", to_json(head.model_dump(exclude_none=True)))
        assert writer.commit()
    return run_id, job


@pytest.mark.both_transports
async def test_it_is_listed_and_read_to_its_end(session: SlurmSession) -> None:
    run_id, job = adopted(session)
    run = await session.until(run_id, lambda run: run.state == "running")
    access = await read_access(session.hyperpod.engines, session.hyperpod.runs, run_id)
    assert [f"--jobid={job}" in shell.command for shell in access.shells] == [True], access
    run = await session.ended(run_id)
    assert (run.state, run.status.exit_code, run.scheduler_id) == ("failed", 3, job)
    assert [len(attempt.nodes) for attempt in run.status.attempts] == [1]
    assert await log(session, run_id) == "one\ntwo"
    assert run_id in [one.run_id for one in (await session.hyperpod.runs.list()).runs]
