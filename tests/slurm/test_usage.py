"""What runs used, on a real cluster with accounting and on one without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hyperpod_jlab.core.usage import Usage
from hyperpod_jlab.engines.slurm.accounting import cpu_seconds, parse_usage
from hyperpod_jlab.engines.slurm.rows import FIELD
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.fault_fixtures import start_now
from tests.slurm.hyperpod_fixtures import SlurmSession, make_hyperpod

MIB = 2**20
TAKES_200_MIB = 'python3 -c "import time; taken = bytearray(200 * 2**20); time.sleep(2)"'


@pytest.fixture
def transport() -> str:
    """That the commands come through is tested elsewhere."""
    return "here"


@pytest.fixture
async def without_accounting(
    slurm_start: Callable[..., SlurmTestbed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SlurmSession]:
    """A cluster that keeps none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cluster = slurm_start(nodes=1)
    hyperpod = make_hyperpod(cluster)
    yield SlurmSession(cluster, hyperpod, tmp_path)
    await hyperpod.close()


def times_asked(session: SlurmSession) -> int:
    """How often the accounting was asked what was used."""
    return sum("MaxRSS" in " ".join(call.args) for call in session.cluster.calls())


async def read_usage(session: SlurmSession, run_id: str) -> Usage:
    """What a run used by the accounting, which hears of the end a moment later."""
    usage = await session.hyperpod.runs.usage(run_id)
    for _ in range(4):
        if usage is not None and usage.source == "accounting":
            break
        await asyncio.sleep(1)
        await session.hyperpod.close()
        session.hyperpod = make_hyperpod(session.cluster)  # it waits 30 s before it asks again
        usage = await session.hyperpod.runs.usage(run_id)
    assert usage is not None
    return usage


class TestWithAccounting:
    async def test_two_nodes_with_gpus(self, session: SlurmSession) -> None:
        run_id = await session.submit(
            TAKES_200_MIB, resources={"nodes": 2, "accelerators": {"kind": "gpu", "type": "h100", "count": 2}}
        )
        await session.ended(run_id)
        usage = await read_usage(session, run_id)
        assert usage.source == "accounting"
        assert usage.nodes == 2
        elapsed = usage.elapsed or 0
        assert usage.accelerator_seconds == elapsed * 4
        assert 2 <= elapsed <= 30
        assert 200 * MIB <= (usage.max_memory or 0) <= 300 * MIB
        assert (usage.exit_code, usage.signal) == (0, None)

    async def test_a_signal_comes_through_although_slurm_forgets_it(self, session: SlurmSession) -> None:
        run_id = await session.submit("kill -SEGV $$")
        await session.ended(run_id)
        usage = await read_usage(session, run_id)
        assert (usage.exit_code, usage.signal) == (139, 11)

    async def test_executions_before_a_requeue_count_too(self, session: SlurmSession) -> None:
        run_id = await session.submit("[ $HYPERPOD_ATTEMPT = 2 ] || sleep 600", resources={"gpus_per_node": 1})
        run = await session.running(run_id)
        await asyncio.sleep(3)
        await session.hyperpod.runs.act(run_id, "requeue")
        await session.until(run_id, lambda run: run.state == "waiting")
        job = session.job_of(run)
        start_now(session.cluster, job)
        await session.ended(run_id)
        usage = await read_usage(session, run_id)
        assert usage.attempts == 2
        assert (usage.accelerator_seconds or 0) >= 3

    async def test_an_array_and_its_child(self, session: SlurmSession) -> None:
        run_id = await session.submit(
            "[ $HYPERPOD_ARRAY_INDEX != 1 ] && sleep 4", array="0-2", resources={"gpus_per_node": 1}
        )
        await session.ended(run_id)
        whole = await read_usage(session, run_id)
        child = await read_usage(session, f"{run_id}.1")
        assert (whole.source, child.source) == ("accounting", "accounting")
        assert child.accelerator_seconds is not None
        assert child.accelerator_seconds == child.elapsed  # it has one
        assert (whole.accelerator_seconds or 0) - child.accelerator_seconds >= 6
        assert (whole.exit_code, child.exit_code) == (None, 1)

    async def test_it_is_asked_once_and_outlives_the_controllers_memory(self, session: SlurmSession) -> None:
        run_id = await session.submit("true")
        await session.ended(run_id)
        first = await read_usage(session, run_id)
        session.cluster.forget_calls()
        another = make_hyperpod(session.cluster)
        assert await another.runs.usage(run_id) == first
        assert await session.hyperpod.runs.usage(run_id) == first
        assert times_asked(session) == 0
        await another.close()


class TestWithoutAccounting:
    async def test_the_journal_says_it_and_is_named(self, without_accounting: SlurmSession) -> None:
        session = without_accounting
        run_id = await session.submit(
            TAKES_200_MIB + "; exit 3", resources={"accelerators": {"kind": "gpu", "type": "h100", "count": 2}}
        )
        await session.ended(run_id)
        usage = await session.hyperpod.runs.usage(run_id)
        assert usage is not None
        assert (usage.source, usage.exit_code) == ("journal", 3)
        assert 4 <= (usage.accelerator_seconds or 0) <= 60
        assert 200 * MIB <= (usage.max_memory or 0) <= 300 * MIB
        assert (await session.hyperpod.runs.usage(run_id)) == usage
        assert times_asked(session) <= 1


class TestRows:
    """What sacct of 22.05 printed."""

    ROWS = (
        "4|REQUEUED|0:0|1000|2|00:00.001||1|cpu=1,gres/gpu:h100=2,gres/gpu=2,node=1",
        "4.batch|CANCELLED|0:15|1000|3|00:00.001|1163264|1|cpu=1,mem=4000M,node=1",
        "4|FAILED|11:0|1010|5|1-01:00:01.5||2|cpu=2,gres/gpu:h100=4,gres/gpu=4,node=2",
        "4.0|CANCELLED|0:11|1010|5|00:00.642|843776|2|cpu=2,gres/gpu:h100=4,gres/gpu=4,node=2",
    )

    def text(self, *rows: str) -> str:
        return "\n".join(row.replace("|", FIELD) for row in rows) + "\n"

    def test_all_executions_are_summed_and_steps_only_tell_memory(self) -> None:
        found = parse_usage(self.text(*self.ROWS))
        assert found is not None
        assert found.elapsed == 7
        assert found.accelerator_seconds == 2 * 2 + 5 * 4
        assert found.cpu_seconds == pytest.approx(90_001.501)
        assert found.max_memory == 1_163_264
        assert found.nodes == 2
        assert (found.exit_code, found.signal) == (11, None)

    def test_an_earlier_job_that_had_the_id_does_not_count(self) -> None:
        found = parse_usage(self.text(*self.ROWS), since=1005)
        assert found is not None
        assert found.elapsed == 5

    def test_a_job_that_is_not_over_says_so(self) -> None:
        row = self.ROWS[0].replace("REQUEUED", "RUNNING")
        found = parse_usage(self.text(row))
        assert found is not None
        assert not found.has_ended

    def test_devices_that_are_not_counted_are_unknown(self) -> None:
        found = parse_usage(self.text("4|COMPLETED|0:0|1000|2|00:00||1|cpu=1,node=1"))
        assert found is not None
        assert found.accelerator_seconds is None

    @pytest.mark.parametrize(
        ("state", "code", "exit_code", "signal"),
        [
            ("COMPLETED", "0:0", 0, None),
            ("CANCELLED by 0", "0:0", None, None),
            ("FAILED", "0:9", 137, 9),
            ("TIMEOUT", "0:15", 143, 15),
        ],
    )
    def test_ends(self, state: str, code: str, exit_code: int | None, signal: int | None) -> None:
        found = parse_usage(self.text(f"4|{state}|{code}|1000|2|00:00||1|cpu=1"))
        assert found is not None
        assert (found.exit_code, found.signal) == (exit_code, signal)

    def test_nothing_is_known_of_a_job_that_is_not_there(self) -> None:
        assert parse_usage("") is None

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("00:00.658", 0.658), ("01:02", 62), ("03:01:02", 10_862), ("2-00:00:00", 172_800), ("", 0), ("INVALID", 0)],
    )
    def test_cpu_times(self, text: str, seconds: float) -> None:
        assert cpu_seconds(text) == seconds
