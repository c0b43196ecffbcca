"""Our sums of a synthetic month agree with sreport's of a real slurmdbd to the second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperpod_jlab.engines.protocol import require
from hyperpod_jlab.run.services import Hyperpod
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import CLUSTER, make_hyperpod
from tests.slurm.month_fixtures import DAY, HOUR, SUSPENDER, Database, Month, MonthOfJobs, Row

Seconds = dict[tuple[str, str, str], int]


async def our_seconds(hyperpod: Hyperpod, begin: int, end: int) -> tuple[Seconds, int]:
    """Seconds by account, user (empty: all of the account) and resource, as far as they are above 0; and how many executions there were."""
    history = require(hyperpod.engines.get(CLUSTER).history, hyperpod.engines.get(CLUSTER), "")
    sums: Counter[tuple[str, str, str]] = Counter()
    seen = set()
    total = 0
    async for jobs in history.jobs_between(begin, end):
        for job in jobs:
            total += 1
            seen.add((job.scheduler_id, job.submitted_at))
            if job.started_at is None:
                continue
            is_over = job.state not in {"running", "suspended"}
            stop = min(end, job.ends_at or end) if is_over else end
            lasted = int(max(0, stop - max(begin, job.started_at)))
            given = {"cpu": job.cpus, "gres/gpu": job.accelerators, "node": job.node_count}
            for resource, amount in given.items():
                for user in ("", job.user):
                    sums[job.account or "", user, resource] += lasted * (amount or 0)
    assert len(seen) == total, "an execution came twice"
    return {key: seconds for key, seconds in sums.items() if seconds}, total


def periods(month: Month) -> dict[str, tuple[int, int]]:
    change = month.begin + 14 * DAY  # the third Sunday is one of the days from the 15th to the 21st
    return {
        "the month": (month.begin, month.end),
        "the week of the change": (change, change + 7 * DAY + HOUR),
        "some hours": (month.begin + 9 * DAY + 5 * HOUR, month.begin + 12 * DAY + 3 * HOUR),
        "the end of it and what follows": (month.end - 5 * HOUR, month.end + 30 * HOUR),
    }


def ran_in(row: Row, begin: int, end: int) -> bool:
    """Whether an execution was in a period, or a job that never started was cancelled in it."""
    start, stop = int(row["time_start"]), int(row["time_end"])
    if not row["tres_alloc"]:
        return begin < stop <= end
    return start < end and (stop == 0 or stop > begin)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.full)], ids=["3000", "100000"])
async def test_a_month_agrees_with_sreport(
    count: int, slurm_start: Callable[..., SlurmTestbed], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cluster = slurm_start("--dbd", nodes=1)
    database, month = Database(cluster), Month.last()
    jobs = MonthOfJobs(month, database.add_people(), database.gpu())
    rows = [*jobs.rows(count), jobs.suspended(HOUR)]
    database.insert("job_table", rows)
    database.suspend(rows[-1], HOUR)
    database.roll_up(month)
    monkeypatch.setenv("TZ", "America/New_York")  # that of the user's machine does not matter
    for name, (begin, end) in periods(month).items():
        hyperpod = make_hyperpod(cluster)
        ours, total = await our_seconds(hyperpod, begin, end)
        await hyperpod.close()
        theirs = database.sreport(month, begin, end)
        # While a job is suspended, sreport counts its nodes and GPUs, but not its CPUs.
        for user in ("", SUSPENDER[1]):
            if (key := (SUSPENDER[0], user, "cpu")) in theirs:
                theirs[key] += 10 * HOUR
        assert ours == theirs, name
        assert total == sum(ran_in(row, begin, end) for row in rows), name
        assert len(ours) > 20
