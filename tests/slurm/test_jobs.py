"""Everybody's jobs as the cluster says them: from recorded answers of two versions, and from a real cluster."""

import pytest

from hyperpod_jlab.core.cluster import JOB_STATES, Job
from hyperpod_jlab.engines.protocol import require_tables
from hyperpod_jlab.engines.slurm.client import parse_queue
from hyperpod_jlab.engines.slurm.jobs import SlurmJob
from hyperpod_jlab.engines.slurm.tables import JobRows, job_rows
from hyperpod_jlab.run.services import Hyperpod
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import CLUSTER, make_hyperpod
from tests.slurm.jobs_fixtures import sbatch
from tests.slurm.recorded import MARK, VERSIONS, recorded

pytest_plugins = ["tests.slurm.services_fixtures"]

RUN_ID = "20261121-120455-k3x9qd"

ODD_NAMES = [
    "train the model",
    "a=b NodeName=x",
    'say "hello" it\'s',
    "a|b%c %j \\n",
    "two\nlines",
    "\U0001f642 \u0645\u0631\u062d\u0628\u0627",
    "x" * 200,
    "a\x1eb\x1fc",
    "\x1e0123456789ab1\x1f1\x1fN/A\x1fRUNNING",
    "$(touch /tmp/x) `id` ; #SBATCH",
    "tab\there",
]


@pytest.fixture(params=VERSIONS)
def rows(request: pytest.FixtureRequest) -> dict[str, Job]:
    """The jobs that a version answered, as root sees them."""
    jobs = parse_queue(recorded(request.param, "jobs"), MARK)
    return {job.scheduler_id: job for job in job_rows(jobs, frozenset({"root"}))}


def test_states_in_words(rows: dict[str, Job]) -> None:
    assert {job.state for job in rows.values()} <= set(JOB_STATES)
    assert rows["9"].state == "succeeded"
    assert rows["19"].state == "failed"
    assert rows["14"].state == "running"
    assert rows["17_3-5%2"].state == "waiting"
    assert rows["18"].state == "held"
    assert rows["18"].reason_code == "held"


def test_why_it_waits_in_words(rows: dict[str, Job]) -> None:
    assert rows["17_3-5%2"].reason_code == "JobArrayTaskLimit"
    assert "throttle" in str(rows["17_3-5%2"].reason)
    assert rows["20"].reason_code == "Resources"


def test_gpus_are_those_of_all_nodes_however_they_were_asked_for(rows: dict[str, Job]) -> None:
    assert (rows["14"].accelerators, rows["14"].resources[0].type) == (2, "h100")
    assert (rows["15"].accelerators, rows["15"].resources[0].type) == (2, "1g.10gb")
    assert rows["16"].accelerators == 2
    assert rows["18"].accelerators == 3
    assert rows["20"].accelerators == 32
    assert rows["13"].accelerators == 0
    assert rows["13"].resources[0].name == "shard"


def test_nodes_by_name_and_number(rows: dict[str, Job]) -> None:
    assert rows["16"].nodes == ("node1", "node2")
    assert rows["20"].nodes == ()
    assert rows["20"].node_count == 4


def test_an_array_that_waits_is_one_entry(rows: dict[str, Job]) -> None:
    assert rows["17_3-5%2"].array == "3-5%2"
    assert rows["17_1"].array == "1"
    assert rows["14"].array is None


def test_free_texts_are_as_they_were_given(rows: dict[str, Job]) -> None:
    assert rows["14"].name == 'x\x1e\x1fy\n"z'
    assert rows["15"].name == "n" * 200
    assert rows["16"].name == 'a|b%c=d "e" \U0001f642 ;$(x)'


def test_times_are_those_that_are_known(rows: dict[str, Job]) -> None:
    assert rows["14"].started_at is not None
    assert rows["14"].ends_at == rows["14"].started_at + 600
    assert rows["14"].time_limit == 600
    assert rows["18"].started_at is None
    assert rows["18"].expected_start is None
    assert rows["19"].started_at is None
    assert rows["19"].ends_at is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_that_is_as_it_was_is_the_same_object(version: str) -> None:
    before: dict[tuple[str, ...], SlurmJob] = {}
    text = recorded(version, "jobs")
    first = parse_queue(text, MARK, before)
    changed = text.replace("HELD", "PENDING").replace("\x1fRUNNING\x1f", "\x1fSUSPENDED\x1f")
    second = parse_queue(changed, MARK, before)
    waiting = [number for number, job in enumerate(first) if job.state != "RUNNING"]
    assert second == parse_queue(changed, MARK)
    assert all(second[number] is first[number] for number in waiting)
    assert {job.state for job in second} == {"COMPLETED", "FAILED", "PENDING", "SUSPENDED"}
    assert set(before.values()) == set(second)


def test_rows_are_made_anew_for_jobs_that_changed_only() -> None:
    rows = JobRows()
    jobs = parse_queue(recorded("24.11", "jobs"), MARK)
    first = rows.convert(jobs, frozenset({"root"}))
    assert all(a is b for a, b in zip(rows.convert(jobs, frozenset({"root"})), first, strict=True))
    assert {row.mine for row in rows.convert(jobs, frozenset())} == {False}


# ---------------------------------------------------------------------------- a real cluster


async def _jobs(services: Hyperpod) -> dict[str, Job]:
    return {job.scheduler_id: job for job in await services.jobs()}


async def test_odd_names_and_comments_come_through_and_fake_no_row(slurm: SlurmTestbed, services: Hyperpod) -> None:
    sent = {sbatch(slurm, "--hold", f"--job-name={name}", f"--comment={name}"): name for name in ODD_NAMES}
    listed = [job for job in await services.jobs() if job.scheduler_id in sent]
    assert {job.scheduler_id: job.name for job in listed} == sent
    assert len(listed) == len(sent)
    assert {job.state for job in listed} == {"held"}
    assert {job.user for job in listed} == {"root"}


async def test_a_run_of_mine_is_known_by_its_comment_and_no_one_else_can_say_so(
    slurm: SlurmTestbed, services: Hyperpod
) -> None:
    comment = f"--comment=hyperpod:{RUN_ID}"
    own = sbatch(slurm, "--hold", comment)
    other = sbatch(slurm, "--hold", comment, user="alice")
    told = {job.scheduler_id: job for job in await require_tables(services.engines.get(CLUSTER)).jobs()}
    assert told[own].run_id == RUN_ID
    assert told[other].run_id is None
    found = await _jobs(services)
    # It cannot be opened here: its bundle is on another partition.
    assert found[own].run_id is None
    assert found[own].mine
    assert found[other].run_id is None
    assert not found[other].mine
    assert found[other].user == "alice"


@pytest.mark.usefixtures("fresh_cache")
async def test_over_ssh_jobs_are_those_of_the_user_there(slurm: SlurmTestbed) -> None:
    own = sbatch(slurm, "--hold", user="alice")
    other = sbatch(slurm, "--hold", user="bob")
    services = make_hyperpod(slurm, "ssh", user="alice")
    try:
        found = await _jobs(services)
        assert found[own].mine
        assert not found[other].mine
    finally:
        await services.close()


async def test_accounts_and_priority_are_shown(slurm: SlurmTestbed, services: Hyperpod) -> None:
    job = sbatch(slurm, "--hold", "--time=5", "--gpus=2", user="alice")
    found = (await _jobs(services))[job]
    assert found.account == "research"
    assert found.qos == "normal"
    assert found.time_limit == 300
    assert found.accelerators == 2
    assert found.priority is not None


async def test_the_cluster_counts_what_runs_and_waits(slurm: SlurmTestbed, services: Hyperpod) -> None:
    sbatch(slurm, "--gpus=1", wait="RUNNING")
    sbatch(slurm, "--hold")
    slurm.exec("ctl", "scontrol", "update", "NodeName=node4", "State=DRAIN", "Reason=test")
    found = next(one for one in await services.clusters.configured() if one.name == "slurm")
    assert found.state == "up"
    assert found.nodes == 4
    assert found.running == 1
    assert found.waiting == 1
    assert found.detail["nodes_unusable"] == 1
