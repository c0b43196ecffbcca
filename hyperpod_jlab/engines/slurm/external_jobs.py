"""External jobs, submitted with sbatch directly: find them for adoption, and mark them as ours."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import PurePosixPath

from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
)
from hyperpod_jlab.core.quantities import format_ranges
from hyperpod_jlab.engines.protocol import ExternalJob, NativeFacts
from hyperpod_jlab.engines.slurm.accounting import Details, query_details, sacct
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.job_files import JobFiles
from hyperpod_jlab.engines.slurm.jobs import (
    COMMENT,
    ENDED_STATES,
    parse_run_id,
    parse_tasks,
    parse_time,
)
from hyperpod_jlab.engines.slurm.native import FILENAME, Sending
from hyperpod_jlab.engines.slurm.native_recorder import JOB_FILE
from hyperpod_jlab.engines.slurm.rows import FIELD
from hyperpod_jlab.storage.files import to_json

_JOB = re.compile(r"[1-9][0-9]{0,9}")
_TASK = re.compile(r"([1-9][0-9]{0,9})_(?:[0-9]{1,10}|\[[0-9,:%-]{1,1000}\])")
_PART = re.compile(r"([1-9][0-9]{0,9})[.+].*")
_SCRIPT = "code/script.sbatch"
_MAX_SCRIPT_BYTES = 4 << 20

_SACCT_FIELDS = ("JobID", "User", "Partition", "Submit", "NNodes", "State", "WorkDir", "JobName")


async def find_job(client: SlurmClient, current_user: str, job: str) -> ExternalJob:
    """Find a job for adoption.

    Args:
        client: The commands.
        current_user: This user's name on the cluster.
        job: The id that the user gave. An array task stands for its array.

    Raises:
        InvalidInputError: Not a job id, or the id of a part of a job.
        NotFoundError: The job does not exist.
        DeniedError: The job belongs to another user.
        RefusedError: The job has no script.
    """
    job = check_id(job)
    rows = await query_details(client, [job])
    if rows and rows[0].array_job_id != job:  # a task's own id
        job = rows[0].array_job_id
        rows = await query_details(client, [job])
    if not rows:
        return await _from_accounting(client, current_user, job)
    first = rows[0]
    _check_owner(job, first.user, current_user)
    if not any(row.batch for row in rows):
        raise _script_error(job)
    array = None
    if first.tasks is not None:
        array = format_ranges(await _tasks(client, job, rows))
    script = await _script(client, first)
    facts = NativeFacts(first.files.name, first.partition, first.node_count, array)
    files = first.files
    if first.tasks is not None and files.stdout == f"{files.folder}/slurm-{first.scheduler_id}.out":
        files = replace(files, stdout=f"{files.folder}/slurm-{job}.out")  # the array's own default
    return _foreign(job, facts, files, first.submitted, parse_run_id(first.comment), script)


def check_id(job: str) -> str:
    """The id of the job or array.

    Raises:
        InvalidInputError: Not a job id, or the id of a step.
    """
    if _JOB.fullmatch(job):
        return job
    task = _TASK.fullmatch(job)
    if task is not None:
        return task[1]
    part = _PART.fullmatch(job)
    if part is not None:
        raise InvalidInputError(
            f"{job[:60]} is part of the job {part[1]}",
            code="invalid_job",
            hint=f"adopt the whole job: hpj adopt {part[1]}",
            detail={"field": "job"},
        )
    raise InvalidInputError(
        f"'{job[:60]}' is not a job id",
        code="invalid_job",
        hint="use a number, such as 1234; list jobs with: hpj jobs",
        detail={"field": "job"},
    )


async def mark_job(client: SlurmClient, job: str, run_id: str) -> bool:
    """Prepend the run's id to the comment of an adopted job; returns whether that succeeded.

    It fails for ended jobs, and on clusters where only admins may change comments.
    """
    with contextlib.suppress(HyperpodError):
        alive = [row for row in await query_details(client, [job]) if row.state not in ENDED_STATES]
        if alive:
            old_comment = "" if parse_run_id(alive[0].comment) else alive[0].comment
            comment = f"{COMMENT}{run_id} {old_comment}".strip()
            await client.scontrol("update", f"JobId={job}", f"Comment={comment}")
            return True
    return False


async def _tasks(client: SlurmClient, job: str, rows: Sequence[Details]) -> set[int]:
    """The tasks that the controller or the accounting knows."""
    indices = {index for row in rows for index in parse_tasks(row.tasks)}
    with contextlib.suppress(HyperpodError):
        indices |= _parse_task_ids(await sacct(client, [job]))
    return indices


def _parse_task_ids(scheduler_ids: Iterable[str]) -> set[int]:
    """The indices in the accounting's ids: ``12_3``, or ``12_[4-6]`` for tasks that were cancelled before they started."""
    indices: set[int] = set()
    for scheduler_id in scheduler_ids:
        with contextlib.suppress(ValueError):  # the id of a job outside an array
            indices.update(parse_tasks(scheduler_id.partition("_")[2]))
    return indices


async def _script(client: SlurmClient, job: Details) -> bytes | None:
    """The job's script. The controller shows it only to the owner, and only while it knows the job."""
    try:
        text = await client.scontrol("write", "batch_script", job.job_id, "-")
    except HyperpodError:
        return None
    data = text.encode("utf-8", "replace")
    return data if data.startswith(b"#!") and len(data) <= _MAX_SCRIPT_BYTES else None


async def _from_accounting(client: SlurmClient, current_user: str, job: str) -> ExternalJob:
    """A job that the controller has forgotten. Only newer versions record its output path; on others the default path is tried."""
    rows = await _accounting_rows(client, job)
    if not rows:
        raise NotFoundError(
            f"job {job} not found on the cluster",
            code="no_such_job",
            hint="list jobs with: hpj jobs",
        )
    mains = [row for row in rows if "." not in row["JobID"]]
    first = mains[0]
    array_id, separator, _ = first["JobID"].partition("_")
    if array_id != job:
        return await _from_accounting(client, current_user, array_id)
    _check_owner(job, first["User"], current_user)
    if not any(row["JobID"].endswith(".batch") for row in rows) and any(
        "." in row["JobID"] for row in rows
    ):
        raise _script_error(job)
    array = format_ranges(_parse_task_ids(row["JobID"] for row in mains)) if separator else None
    default = "slurm-%A_%a.out" if separator else "slurm-%j.out"
    folder = first["WorkDir"]
    stdout = first.get("StdOut") or f"{folder}/{default}"
    files = JobFiles(stdout, first.get("StdErr") or stdout, folder, first["JobName"], first["User"])
    nodes = first["NNodes"]
    facts = NativeFacts(
        files.name, first["Partition"], max(1, int(nodes) if nodes.isdecimal() else 1), array
    )
    return _foreign(job, facts, files, parse_time(first["Submit"]), None, None)


async def _accounting_rows(client: SlurmClient, job: str) -> list[dict[str, str]]:
    """Accounting rows of the job, its tasks and their steps."""
    for extra_fields in (("StdOut", "StdErr"), ()):  # newer versions record these
        names = (*extra_fields, *_SACCT_FIELDS)
        argv = ["sacct", "--allusers", "--noheader", "--parsable2", f"--delimiter={FIELD}"]
        try:
            text = await client.query([*argv, f"--format={','.join(names)}", f"--jobs={job}"])
        except RefusedError:
            continue
        except HyperpodError as error:
            if error.code == "no_accounting":
                return []
            raise
        rows = (line.split(FIELD, len(names) - 1) for line in text.splitlines())
        return [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]
    return []


def _foreign(
    job: str,
    facts: NativeFacts,
    files: JobFiles,
    submitted: float | None,
    run_id: str | None,
    script: bytes | None,
) -> ExternalJob:
    sending = Sending(_SCRIPT if script is not None else None, adopted=job)
    extra_files = {
        FILENAME: sending.to_json().encode(),
        f"status/{JOB_FILE}": to_json(asdict(files)),
    }
    return ExternalJob(
        scheduler_id=job,
        facts=facts,
        submitted_at=submitted,
        run_id=run_id,
        path=str(PurePosixPath(files.folder) / "script.sbatch"),
        script=(_SCRIPT, script) if script is not None else None,
        files=extra_files,
    )


def _check_owner(job: str, user: str, current_user: str) -> None:
    if user != current_user:
        raise DeniedError(
            f"the job {job} belongs to {user}; only your own jobs can be adopted",
            code="not_yours",
            hint="list jobs with: hpj jobs",
            detail={"job": job, "user": user},
        )


def _script_error(job: str) -> RefusedError:
    return RefusedError(
        f"the job {job} has no script: it was started with srun or salloc, whose output goes to a terminal",
        code="no_script",
        hint="jobs that are submitted with sbatch or hpj submit have a log",
        detail={"job": job},
    )
