"""The accounting as history of all users' jobs: rows, executions, windows over time, and what goes wrong."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hyperpod_jlab.core.cluster import Job, notes_of
from hyperpod_jlab.core.cost import Shape, share_of_node
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, UnreachableError
from hyperpod_jlab.engines.slurm import history as history_module
from hyperpod_jlab.engines.slurm.history import SlurmHistory, parse_history, to_executions
from hyperpod_jlab.engines.slurm.rows import FIELD
from hyperpod_jlab.engines.slurm.tables import SlurmNode, nodes_command, parse_nodes
from hyperpod_jlab.engines.slurm.transport import CommandOutput
from tests.slurm.sacct_fixtures import BEGIN, Accounted, SacctRow, history_of, sacct_row

HOUR, DAY = 3_600, 86_400
SHARED = "billing=8,cpu=8,gres/shard=4,mem=1G,node=1"
SLICES = "cpu=8,gres/gpu:1g.10gb=3,gres/gpu=3,node=1"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def parsed(*rows: SacctRow, own: str = "ana") -> list[Job]:
    """The jobs of rows."""
    fields = history_module._FIELDS
    text = "".join("@@".join(row[name] for name in fields) + "\n" for row in rows)
    return parse_history(text, "@@", own)


async def read(history: SlurmHistory, begin: float, end: float, user: str | None = None) -> list[Job]:
    """All jobs of a period, or those of a user."""
    return [job async for part in history.jobs_between(begin, end, user) for job in part]


async def noted(history: SlurmHistory) -> tuple[str, ...]:
    """The notes of the first part."""
    async for part in history.jobs_between(BEGIN, BEGIN + HOUR):
        return notes_of(part)
    return ()


# ------------------------------------------------------------------------------------ rows


def test_a_row_has_all_that_the_accounting_knows() -> None:
    [job] = parsed(sacct_row(WorkDir="/fsx/team/ana/runs/1f/20261001-000000-abc123"))
    assert job == Job(
        scheduler_id="12",
        name="train",
        user="ana",
        state="succeeded",
        mine=True,
        queue="dev",
        nodes=("gpu1",),
        node_count=1,
        cpus=8,
        accelerators=2,
        resources=job.resources,
        account="vision",
        qos="normal",
        priority=7,
        time_limit=7200,
        run_id="20261001-000000-abc123",
        submitted_at=BEGIN - 60,
        started_at=BEGIN,
        ends_at=BEGIN + 3600,
    )
    assert [(one.full_name, one.total, one.accelerator) for one in job.resources] == [("gpu:h100", 2, True)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # States, and why a job failed.
        ({"State": "CANCELLED by 1000"}, {"state": "cancelled", "reason": None}),
        ({"State": "CANCELLED+"}, {"state": "cancelled"}),
        ({"State": "TIMEOUT"}, {"state": "failed", "reason_code": "TimeLimit"}),
        ({"State": "OUT_OF_MEMORY"}, {"state": "failed", "reason_code": "OutOfMemory"}),
        ({"State": "NODE_FAIL"}, {"state": "failed", "reason": "a node failed"}),
        ({"State": "FAILED", "ExitCode": "3:0"}, {"reason_code": "NonZeroExitCode"}),
        ({"State": "FAILED", "ExitCode": "0:9"}, {"reason_code": "RaisedSignal"}),
        ({"State": "REQUEUED"}, {"state": "cancelled", "reason_code": "requeued"}),
        ({"State": "RESIZING"}, {"state": "succeeded", "reason_code": "resized"}),
        ({"State": "PREEMPTED"}, {"state": "failed", "reason": "a job with a higher priority preempted it"}),
        # Not ended.
        ({"State": "RUNNING", "End": "Unknown"}, {"state": "running", "ends_at": BEGIN + 7200.0}),
        (
            {"State": "RUNNING", "End": "Unknown", "TimelimitRaw": "UNLIMITED"},
            {"state": "running", "ends_at": None, "time_limit": None},
        ),
        ({"State": "SUSPENDED", "End": "Unknown"}, {"state": "suspended"}),
        # Cancelled while waiting: sacct shows the end as start, or none.
        (
            {"State": "CANCELLED by 0", "NodeList": "None assigned", "AllocTRES": "", "AllocCPUS": 0},
            {"started_at": None, "ends_at": BEGIN + 3600.0, "nodes": (), "cpus": None},
        ),
        (
            {"State": "CANCELLED", "Start": "None", "NodeList": "None assigned"},
            {"started_at": None, "state": "cancelled"},
        ),
        # Ids.
        ({"JobID": "12_3", "JobIDRaw": "15"}, {"scheduler_id": "12_3", "array": "3"}),
        ({"JobID": "12_[4-9%2]"}, {"scheduler_id": "12_4-9%2", "array": "4-9%2"}),
        ({"JobID": "7+1", "JobIDRaw": "8"}, {"scheduler_id": "8", "array": None}),
        # What it had.
        ({"AllocTRES": SLICES}, {"accelerators": 3}),
        ({"AllocTRES": SHARED}, {"accelerators": 0}),
        ({"AllocTRES": "cpu=8,node=1"}, {"accelerators": 0, "resources": ()}),
        ({"NodeList": "gpu[1-2],x9", "NNodes": 3}, {"nodes": ("gpu1", "gpu2", "x9")}),
        # Text that users write.
        ({"JobName": "a|b"}, {"name": "a|b"}),
        ({"JobName": "a\nb\n"}, {"name": "a\nb\n", "queue": "dev"}),
        ({"JobName": f"a{FIELD}b"}, {"name": f"a{FIELD}b"}),
        # Other users' jobs are never our runs.
        ({"User": "bert", "Comment": "hyperpod:20261001-000000-abc123"}, {"mine": False, "run_id": None}),
        ({"Comment": "hyperpod:20261001-000000-abc123"}, {"run_id": "20261001-000000-abc123"}),
    ],
)
def test_rows(values: dict[str, str | int], expected: dict[str, object]) -> None:
    [job, _] = parsed(sacct_row(**values), sacct_row(JobID="99"))
    assert {name: getattr(job, name) for name in expected} == expected


def test_waiting_jobs_are_not_history() -> None:
    assert parsed(sacct_row(State="PENDING", Start="Unknown", End="Unknown")) == []
    # Seen in the second in which a job starts.
    assert parsed(sacct_row(State="PENDING", NNodes=0, AllocTRES="", End="Unknown")) == []


@pytest.mark.parametrize("cut", [1, 20, 150])
def test_an_answer_that_was_cut_off_is_an_error(cut: int) -> None:
    fields = history_module._FIELDS
    row = "@@".join(sacct_row()[name] for name in fields) + "\n"
    with pytest.raises(UnreachableError, match="cut off"):
        parse_history((row + row)[:-cut], "@@")


# ------------------------------------------------------------------------------ executions


def node(name: str, gres: str) -> SlurmNode:
    """A node of sinfo with these devices."""
    _, delimiter = nodes_command()
    plain = [name, "idle", "0/8/0/8", "0.0", "1000", "0", "(null)", gres, "", "root", "Unknown", "dev"]
    text = f"c{delimiter}{FIELD.join(plain)}{delimiter}{delimiter}{delimiter}\n"
    return parse_nodes(text, delimiter)[name]


def after(seconds: int, **values: str | int) -> SacctRow:
    """The same job, later."""
    begin = BEGIN + seconds
    return sacct_row(**{"Submit": begin - 1, "Start": begin, "End": begin + 3600, **values})


@pytest.mark.parametrize(
    ("rows", "repeated"),
    [
        ([sacct_row()], [False]),
        # Requeued by a user.
        ([sacct_row(State="REQUEUED"), after(5000)], [True, False]),
        # A node was replaced in mid-run.
        (
            [
                sacct_row(State="NODE_FAIL", NodeList="gpu[1-2]"),
                after(5000, State="NODE_FAIL", NodeList="gpu[1,3]"),
                after(9000, NodeList="gpu[1,3]"),
            ],
            [True, True, False],
        ),
        ([sacct_row(State="PREEMPTED"), after(5000)], [True, False]),
        # Requeued, but it does not run again yet, or was cancelled before it did.
        (
            [sacct_row(State="REQUEUED"), after(5000, State="PENDING", Start="Unknown", End="Unknown")],
            [False],
        ),
        (
            [sacct_row(State="REQUEUED"), after(5000, State="CANCELLED", NodeList="None assigned")],
            [False],
        ),
        # What a resized job did before is not lost.
        ([sacct_row(State="RESIZING"), after(3600)], [False, False]),
        # Tasks of an array and parts of a heterogeneous job are jobs of their own.
        ([sacct_row(JobID="12_1"), after(1, JobID="12_2"), after(2, JobID="12_1")], [True, False, False]),
        ([sacct_row(JobID="7+0", JobIDRaw=7), after(1, JobID="7+1", JobIDRaw=8)], [False, False]),
    ],
)  # fmt: skip
def test_executions_that_another_one_followed(rows: Sequence[SacctRow], repeated: list[bool]) -> None:
    executions = to_executions(parsed(*reversed(rows)), {})
    assert [execution.repeated for execution in executions] == repeated
    assert [one.started_at for one in executions] == sorted(one.started_at for one in executions)


def test_an_execution_that_runs_has_no_end() -> None:
    [execution] = to_executions(parsed(sacct_row(State="RUNNING", End="Unknown")), {})
    assert (execution.started_at, execution.ended_at) == (BEGIN, None)


@pytest.mark.parametrize(
    ("gres", "accelerators"),
    [("gpu:h100:8,shard:h100:32", 1.0), ("gpu:8,shard:8", 4.0), ("shard:8", 0.0), ("(null)", 0.0)],
)
def test_shards_are_fractions_of_gpus_where_the_node_is_known(gres: str, accelerators: float) -> None:
    [execution] = to_executions(parsed(sacct_row(AllocTRES=SHARED)), {"gpu1": node("gpu1", gres)})
    assert execution.accelerators == accelerators
    [unknown] = to_executions(parsed(sacct_row(AllocTRES=SHARED)), {})
    assert unknown.accelerators == 0


def test_an_exclusive_job_pays_for_whole_nodes_because_it_has_all_their_cpus() -> None:
    row = sacct_row(NodeList="gpu[1-2]", NNodes=2, AllocCPUS=192, AllocTRES="cpu=192,node=2")
    [execution] = to_executions(parsed(row), {})
    assert share_of_node(execution, Shape(cpus=96, accelerators=8), 2) == 1.0


# --------------------------------------------------------------------------------- windows


def many(count: int, seconds: int, end: int) -> list[SacctRow]:
    """Jobs that end in the seconds up to the end; every tenth runs or never started."""
    draw = random.Random(7)
    rows = []
    for number in range(count):
        stop = end - draw.randrange(seconds)
        lasts = draw.choice((0, 1, 60, HOUR, DAY))
        row = sacct_row(JobID=number, Submit=stop - lasts - 5, Start=stop - lasts, End=stop)
        if number % 20 == 0:
            row |= {"State": "RUNNING", "End": "Unknown"}
        elif number % 20 == 1:
            row |= {"State": "CANCELLED", "Start": row["End"], "NodeList": "None assigned"}
        rows.append(row)
    return rows


def ran_in(row: SacctRow, begin: float, end: float) -> bool:
    """Whether a row is in a period."""
    if row["NodeList"] == "None assigned":
        return begin < int(row["End"]) <= end
    stop = row["End"]
    return int(row["Start"]) < end and (stop == "Unknown" or int(stop) > begin)


@pytest.mark.parametrize("per_call", [1, 7, 100, 20_000])
@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (0, float("inf")),
        (BEGIN - 10 * DAY, BEGIN),
        (BEGIN - 3 * DAY + 0.5, BEGIN - DAY - 0.5),
        (BEGIN - 2 * DAY, BEGIN - 2 * DAY + 1),
    ],
)
async def test_each_execution_of_a_period_comes_once_the_latest_end_first(
    begin: float, end: float, per_call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "ROWS_PER_CALL", per_call)
    monkeypatch.setattr(history_module, "ROWS_PER_PART", 5)
    monkeypatch.setattr("hyperpod_jlab.engines.slurm.client.Bucket.acquire", _at_once)
    cluster = Accounted(many(400, 8 * DAY, BEGIN))
    history, _ = history_of(cluster)
    jobs = await read(history, begin, end)
    expected = [row["JobID"] for row in cluster.rows if ran_in(row, begin, end)]
    assert sorted(job.scheduler_id for job in jobs) == sorted(expected)
    ends = [job.ends_at or 0 for job in jobs if job.state != "running"]
    assert ends == sorted(ends, reverse=True)
    assert expected


async def _at_once(_: object) -> None:
    return


async def test_an_answer_is_bounded_although_many_jobs_ended_after_a_quiet_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history_module, "ROWS_PER_CALL", 50)
    now = int(time.time())
    crowd = [sacct_row(JobID=n, End=now - 40 * DAY - n) for n in range(2_000)]
    cluster = Accounted([sacct_row(JobID=9_999, End=now), *crowd])
    monkeypatch.setattr("hyperpod_jlab.engines.slurm.client.Bucket.acquire", _at_once)
    history, _ = history_of(cluster)
    jobs = await read(history, now - 300 * DAY, now)
    assert len(jobs) == 2_001
    assert max(cluster.row_counts) <= 50


async def test_a_job_that_ends_while_it_is_read_comes_once() -> None:
    now = int(time.time())
    cluster = Accounted([sacct_row(JobID=1, Start=now - 60, State="RUNNING", End="Unknown")])

    def end_it(argv: Sequence[str]) -> None:
        if "--state=R" not in argv and argv[0] == "sacct":
            cluster.rows[0] |= {"State": "COMPLETED", "End": str(now)}

    cluster.failure = end_it
    history, _ = history_of(cluster)
    assert [job.state for job in await read(history, now - DAY, now + 5)] == ["running"]


async def test_times_are_asked_for_in_unix_seconds() -> None:
    cluster = Accounted()
    history, _ = history_of(cluster)
    await read(history, BEGIN, BEGIN + 600)
    asked = [argv for argv in cluster.calls if argv[0] == "sacct"]
    assert [word for word in asked[-1] if "time=" in word] == [
        f"--starttime=uts{BEGIN + 1}",
        f"--endtime=uts{BEGIN + 600}",
    ]


async def test_jobs_of_one_user_are_asked_for_by_the_name() -> None:
    cluster = Accounted([sacct_row(JobID="1", User="bert"), sacct_row(JobID="2"), sacct_row(JobID="3", User="bert")])
    history, _ = history_of(cluster)
    jobs = await read(history, BEGIN, BEGIN + DAY, "bert")
    assert sorted(job.scheduler_id for job in jobs) == ["1", "3"]
    asked = [argv for argv in cluster.calls if argv[0] == "sacct"]
    assert all("--user=bert" in argv and "--allusers" not in argv for argv in asked)


async def test_an_unknown_user_has_no_jobs_and_a_note_says_so() -> None:
    history, _ = history_of(Accounted([sacct_row()]))
    parts = [part async for part in history.jobs_between(BEGIN, BEGIN + DAY, "nobody-here")]
    assert parts == [[]]
    assert notes_of(parts[0]) == ("The cluster does not know the user nobody-here.",)


# ------------------------------------------------------------------------- what goes wrong


def fails(program: str, message: str, code: int = 1, out: str = "") -> Callable[[Sequence[str]], CommandOutput | None]:
    """What answers a command with an error."""

    def answer(argv: Sequence[str]) -> CommandOutput | None:
        return CommandOutput(code, out, message) if argv[0] == program else None

    return answer


async def test_without_accounting_it_is_known_after_the_first_question() -> None:
    cluster = Accounted()
    cluster.failure = fails("sacct", "Slurm accounting storage is disabled")
    history, accounting = history_of(cluster)
    assert accounting.is_available
    with pytest.raises(UnreachableError) as caught:
        await read(history, BEGIN, BEGIN + HOUR)
    assert caught.value.code == "no_accounting"
    assert not accounting.is_available


@pytest.mark.parametrize(
    ("message", "kind", "code"),
    [
        ("sacct: error: Access/permission denied", DeniedError, "denied"),
        ("sacct: error: Problem talking to the database", UnreachableError, "accounting_down"),
    ],
)
async def test_errors_of_the_accounting(message: str, kind: type[HyperpodError], code: str) -> None:
    cluster = Accounted()
    cluster.failure = fails("sacct", message)
    history, accounting = history_of(cluster)
    with pytest.raises(kind) as caught:
        await read(history, BEGIN, BEGIN + HOUR)
    assert caught.value.code == code
    assert accounting.is_available


async def test_a_sacct_that_dies_in_mid_answer_gives_no_part_of_it() -> None:
    cluster = Accounted([sacct_row()])
    history, _ = history_of(cluster)
    parts = history.jobs_between(BEGIN, BEGIN + DAY)
    assert await anext(parts) == []  # nothing runs
    cluster.failure = fails("sacct", "", 137, "12@@12@@COMPLE")
    with pytest.raises(HyperpodError):
        await anext(parts)


async def test_hidden_jobs_are_noted() -> None:
    cluster = Accounted()
    history, _ = history_of(cluster)
    assert await noted(history) == ()
    cluster.config = cluster.config.replace("= none", "= jobs,usage")
    history, _ = history_of(cluster)
    assert "PrivateData=jobs" in (await noted(history))[0]


async def test_jobs_that_only_the_database_hides_are_noted() -> None:
    cluster = Accounted()
    cluster.database_config = "PrivateData            = jobs\n"
    history, _ = history_of(cluster)
    assert "PrivateData=jobs" in (await noted(history))[0]


async def test_without_the_controller_suspended_jobs_are_noted_as_missing() -> None:
    cluster = Accounted([sacct_row()])
    cluster.failure = fails("squeue", "Unable to contact slurm controller (connect failure)")
    history, _ = history_of(cluster)
    parts = [part async for part in history.jobs_between(BEGIN, BEGIN + DAY)]
    assert sum(map(len, parts)) == 1
    assert "suspended" in notes_of(parts[0])[0]
