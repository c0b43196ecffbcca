"""Adopting a job: one that was sent elsewhere, such as with sbatch, becomes a run with the same panel and the same log view."""

from __future__ import annotations

import asyncio
import hashlib
import platform
import time
from datetime import UTC, datetime

from hyperpod_jlab.capture.name import run_name
from hyperpod_jlab.model.errors import ConflictError, UnsupportedError
from hyperpod_jlab.model.records import Head, Submission
from hyperpod_jlab.model.source import FilesSpec, NativeSource
from hyperpod_jlab.model.spec import JobSpec, Resources
from hyperpod_jlab.orchestrators.plan import launch_plan
from hyperpod_jlab.orchestrators.protocol import ForeignJob, Orchestrator
from hyperpod_jlab.services.engines import Engines
from hyperpod_jlab.services.shared_space import shared_space
from hyperpod_jlab.storage.atomic import to_json
from hyperpod_jlab.storage.bundle import BundleWriter
from hyperpod_jlab.storage.records import BUNDLE_FORMAT, BundleReader
from hyperpod_jlab.storage.users import current_user

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


async def adopt(
    engines: Engines, job: str, cluster: str | None = None, name: str | None = None
) -> str:
    """Take a job of this user's into the list of runs; returns the run's id.

    Args:
        engines: The engines.
        job: The job's id.
        cluster: Its cluster, or None for the default one.
        name: A name for people; the job's own when left out.

    Raises:
        UnsupportedError: The cluster has no jobs from elsewhere.
        InvalidInputError: It is no job's id, or the cluster or the name is none.
        NotFoundError: There is no such job.
        DeniedError: It is somebody else's.
        RefusedError: It is none that has a log.
        ConflictError: It is a run already; which one stands in the detail.
        StorageError: The partition cannot be written to.
    """
    engine = engines.get(cluster)
    if not engine.capabilities.adopt:
        raise UnsupportedError(
            f"{engine.kind} clusters have no jobs from elsewhere to adopt",
            hint="choose another cluster with --cluster; see: hpj clusters",
            detail={"cluster": engine.name, "job": job[:60]},
        )
    found = await engine.foreign_job(job)
    if found.run_id is not None and await asyncio.to_thread(engines.partition.holds, found.run_id):
        raise _known(job, found.run_id)
    run_id = adopted_id(engine.name, found)
    spec = _spec(found, name)
    made = await asyncio.to_thread(_make_bundle, engines, engine, run_id, spec, found)
    if not made:
        raise _known(job, run_id)
    await engine.adopted(BundleReader(engines.partition, run_id))
    return run_id


def adopted_id(cluster: str, job: ForeignJob) -> str:
    """The run id of an adopted job. It follows from the job, so that adopting it twice, even at once, makes one run."""
    submitted = job.submitted_at or 0.0
    told = f"{cluster}\0{job.scheduler_id}\0{submitted:.0f}"
    number = int.from_bytes(hashlib.sha256(told.encode()).digest()[:8])
    tail = "".join(_LETTERS[number >> 5 * place & 31] for place in range(6))
    return f"{datetime.fromtimestamp(submitted, UTC):%Y%m%d-%H%M%S}-{tail}"


def _known(job: str, run_id: str) -> ConflictError:
    return ConflictError(
        f"the job {job} is the run {run_id} already",
        code="already_adopted",
        hint=f"see: hpj show {run_id}",
        detail={"job": job, "run_id": run_id},
    )


def _spec(job: ForeignJob, name: str | None) -> JobSpec:
    from hyperpod_jlab.model.validation import parse

    facts = job.facts
    given = {
        "name": name,
        "source": NativeSource(path=_path(job)).model_dump(),
        "files": FilesSpec(project=False).model_dump(),
        "resources": Resources(nodes=min(facts.nodes, 10_000)).model_dump(),
        "queue": facts.queue,
        "array": facts.array,
    }
    return parse(JobSpec, given)


def _path(job: ForeignJob) -> str:
    """Where the script lay, without what no path of ours may hold."""
    kept = "".join(letter for letter in job.path if ord(letter) >= 32 and ord(letter) != 127)
    return kept[:4096] or "script"


def _make_bundle(
    engines: Engines, engine: Orchestrator, run_id: str, spec: JobSpec, job: ForeignJob
) -> bool:
    now = time.time()
    head = Head(
        format=BUNDLE_FORMAT,
        run_id=run_id,
        name=run_name(spec.name, job.facts.name or f"job-{job.scheduler_id}"),
        user=current_user(),
        space=shared_space(),
        host=platform.node(),
        created_at=now,
        cluster=engine.name,
        orchestrator=engine.kind,
        spec_digest=hashlib.sha256(spec.model_dump_json().encode()).hexdigest(),
        queue=spec.queue,
        kind=job.kind,
        nodes=spec.resources.nodes,
        processes_per_node=1,
        array=spec.array,
    )
    submission = Submission(
        scheduler_id=job.scheduler_id, submitted_at=min(job.submitted_at or now, now)
    )
    with BundleWriter(engines.partition, run_id) as writer:
        if job.script is not None:
            writer.add_bytes(*job.script)
        for path, data in job.files.items():
            writer.write(path, data)
        writer.write("spec.json", spec.model_dump_json().encode())
        writer.write("launch.json", to_json(launch_plan(spec, run_id, (), None)))
        writer.write("submission.json", to_json(submission.model_dump()))
        writer.write("bundle.json", to_json(head.model_dump(exclude_none=True)))
        return writer.commit()
