"""What Slurm answered to orders on arrays of which some tasks are over: as 22.05 and 24.11 wrote it, word for word."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hyperpod_jlab.core.errors import ConflictError, DeniedError, InvalidInputError, UnreachableError
from hyperpod_jlab.core.job_actions import Change
from hyperpod_jlab.engines.slurm.actions import JobCommand, apply_to_jobs, apply_to_run
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.jobs import FIELDS, SlurmJob, to_job
from hyperpod_jlab.engines.slurm.transport import COMMAND_TIMEOUT, CommandOutput


class Told:
    """A transport that answers what it is given, and keeps what it was told."""

    notes: tuple[str, ...] = ()

    def __init__(self, err: str) -> None:
        self.err = err
        self.words: list[Sequence[str]] = []

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT) -> CommandOutput:
        self.words.append(argv)
        return CommandOutput(1 if self.err else 0, "", self.err)

    async def close(self) -> None:
        return


def row(job: str, task: str | None, state: str, array: str = "12") -> SlurmJob:
    given = {"job_id": job, "array_job_id": array, "array_task": task or "N/A", "state": state}
    names = [name for name, _ in (*FIELDS.fixed, *FIELDS.free)]
    return to_job({**dict.fromkeys(names, ""), "user": "bob", "limit": "30:00", **given})


QUEUE = [row("13", "0", "COMPLETED"), row("14", "1", "RUNNING"), row("12", "2-3%1", "PENDING")]

SOME = [
    "12_0: Job has already finished\n",
    "12_0: Job has already finished\n12_1-3: No error\n",
    "12_0: Job has already finished\n12_1: Job is no longer pending execution\n",
]


@pytest.mark.parametrize("said", SOME)
async def test_it_is_done_to_the_tasks_that_it_fits(said: str):
    told = Told(said)
    await apply_to_run(SlurmClient(told), JobCommand("change", Change(600)), "12", QUEUE)
    assert told.words == [["scontrol", "update", "jobid=12", "timelimit=0-00:10:00"]]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("12_0-3: Job has already finished\n", ConflictError),
        ("12_0-3: Invalid user id\n", DeniedError),
        ("12_0: Job has already finished\n12_1-3: Access/permission denied\n", DeniedError),
        ("Job has already finished for job 12\n", ConflictError),
    ],
)
async def test_it_fails_when_it_fits_none(said: str, kind: type[Exception]):
    with pytest.raises(kind):
        await apply_to_run(SlurmClient(Told(said)), JobCommand("hold"), "12", QUEUE)


async def test_only_tasks_that_run_are_requeued():
    told = Told("")
    await apply_to_run(SlurmClient(told), JobCommand("requeue"), "12", QUEUE)
    assert told.words == [["scontrol", "requeue", "12_1"]]


async def test_of_an_array_in_the_table_too():
    told = Told("")
    results = await apply_to_jobs(SlurmClient(told), JobCommand("requeue"), ["12", "12_0"], QUEUE)
    assert told.words == [["scontrol", "requeue", "12_1"]]
    assert [one.error.code if one.error else None for one in results] == [None, "wrong_state"]


async def test_each_complaint_belongs_to_the_job_that_it_names():
    lines = [
        "Access/permission denied for job 1",
        "12_0: Job has already finished",
        "slurm_suspend error: No error",
        "scancel: error: Kill job error on job id 7: Access/permission denied",
    ]
    queue = [*QUEUE, *(row(job, None, "RUNNING", job) for job in ("1", "2", "7"))]
    told = Told("\n".join(lines))
    asked = ["1", "2", "7", "12", "12_0"]
    results = await apply_to_jobs(SlurmClient(told), JobCommand("cancel"), asked, queue)
    assert len(told.words) == 1
    codes = [one.error.code if one.error else None for one in results]
    assert codes == ["denied", None, "denied", None, "wrong_state"]


async def test_a_complaint_that_names_none_is_about_all():
    told = Told("scontrol: error: Unable to contact slurm controller (connect failure)")
    queue = [row(job, None, "RUNNING", job) for job in ("1", "2")]
    with pytest.raises(UnreachableError):
        await apply_to_jobs(SlurmClient(told), JobCommand("hold"), ["1", "2"], queue)


async def test_tasks_in_one_row_are_named_one_by_one():
    told = Told("")
    queue = [row("12", "0-8:4%1", "PENDING")]
    await apply_to_jobs(SlurmClient(told), JobCommand("hold"), ["12_0-8:4%1"], queue)
    assert told.words == [["scontrol", "hold", "12_[0,4,8]"]]


@pytest.mark.parametrize("queue", ["dev timelimit=1", "dev\npriority=9", "-dev", "a=b", "", "'d'"])
async def test_no_queue_becomes_a_word_of_its_own(queue: str):
    told = Told("")
    with pytest.raises(InvalidInputError):
        await apply_to_run(SlurmClient(told), JobCommand("change", Change(queue=queue)), "12", QUEUE)
    assert told.words == []


async def test_a_wrong_queue_stops_all_before_anything_is_told():
    told = Told("")
    with pytest.raises(InvalidInputError):
        await apply_to_jobs(SlurmClient(told), JobCommand("change", Change(queue="a=b")), ["12", "13"], QUEUE)
    assert told.words == []
