"""What the accounting says of jobs that left the queue: arrays with all their tasks, and requeues."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hyperpod_jlab.engines.slurm import accounting
from hyperpod_jlab.engines.slurm.accounting import AccountingHistory, find_last, parse_sacct
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.rows import FIELD
from hyperpod_jlab.engines.slurm.transport import CommandOutput


def row(job: str, state: str, *, second: int = 1, node: str = "node1") -> str:
    ended = "Unknown" if state in {"PENDING", "RUNNING"} else str(1_795_719_000 + second)
    started = "Unknown" if state == "PENDING" else str(1_795_718_999 + second)
    return FIELD.join((job, "9", state, "0:0", started, ended, node))


class Slurm:
    """Answers each sacct with the next of these tables."""

    notes: tuple[str, ...] = ()

    def __init__(self, *tables: Sequence[str]) -> None:
        self._tables = list(tables)
        self.asked: list[Sequence[str]] = []

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 0) -> CommandOutput:
        self.asked.append(argv)
        return CommandOutput(0, "\n".join(self._tables.pop(0)) + "\n", "")

    async def close(self) -> None:
        pass


async def test_one_query_tells_an_array_and_its_tasks() -> None:
    slurm = Slurm([row("12_1", "COMPLETED"), row("12_2", "FAILED"), row("12_[3-9]", "CANCELLED")])
    history = AccountingHistory(SlurmClient(slurm))
    array = (await history.get(["12"]))["12"]
    assert [execution.task for execution in array] == [1, 2, None]
    tasks = await history.get(["12_1", "12_2"])
    assert [tasks[task][-1].state for task in ("12_1", "12_2")] == ["COMPLETED", "FAILED"]
    assert len(slurm.asked) == 1


async def test_a_task_alone_does_not_stand_for_its_array() -> None:
    slurm = Slurm([row("12_1", "COMPLETED")], [row("12_1", "COMPLETED"), row("12_2", "FAILED")])
    history = AccountingHistory(SlurmClient(slurm))
    await history.get(["12_1"])
    assert len((await history.get(["12"]))["12"]) == 2


async def test_a_history_that_ends_with_a_requeue_is_not_final(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting, "_TTL_S", 0.0)
    begin = [row("7", "REQUEUED"), row("7", "PENDING", second=3)]
    slurm = Slurm(begin[:1], begin, [begin[0], row("7", "COMPLETED", second=3)])
    history = AccountingHistory(SlurmClient(slurm))
    states = [(await history.get(["7"]))["7"][-1].state for _ in range(4)]
    assert states == ["REQUEUED", "PENDING", "COMPLETED", "COMPLETED"]


@pytest.mark.parametrize(
    ("rows", "last"),
    [
        ([("7", "REQUEUED"), ("7", "COMPLETED")], "COMPLETED"),
        ([("7_1", "COMPLETED"), ("7_2", "COMPLETED")], "COMPLETED"),
        ([("7_1", "COMPLETED"), ("7_2", "TIMEOUT"), ("7_3", "FAILED")], "TIMEOUT"),
        ([("7_1", "FAILED"), ("7_1", "COMPLETED"), ("7_2", "COMPLETED")], "COMPLETED"),
        ([("7_1", "FAILED"), ("7_[2-5]", "CANCELLED")], "CANCELLED"),
        ([("7_1", "FAILED"), ("7_2", "RUNNING")], "RUNNING"),
        ([("7_1", "FAILED"), ("7_2", "REQUEUED")], "REQUEUED"),
    ],
)
def test_the_end_of_an_array_is_that_of_tasks_that_never_started_or_the_worst(
    rows: Sequence[tuple[str, str]], last: str
) -> None:
    text = "\n".join(row(*each, second=number) for number, each in enumerate(rows))
    found = find_last([one for many in parse_sacct(text).values() for one in many])
    assert found is not None
    assert found.state == last


def test_nothing_known_has_no_end() -> None:
    assert find_last([]) is None
