"""This machine as a cluster's tables show it."""

from hyperpod_jlab.engines.local.board import BoardEntry
from hyperpod_jlab.engines.local.observe import gpu_resources, job_rows, queue_row


def entry(run_id: str, state: str, **more: object) -> BoardEntry:
    """A run on the board."""
    return BoardEntry(run_id, "b", run_id, "me", 1.0, state, **more)  # type: ignore[arg-type]


def test_gpus_are_shown_by_model_and_number() -> None:
    big, small = gpu_resources(["H100", "H100", "T4"], {1})
    assert (big.type, big.total, big.free, big.used_at, big.first) == ("H100", 2, 1, (1,), 0)
    assert (small.type, small.total, small.free, small.first) == ("T4", 1, 1, 2)


def test_gpus_of_a_model_that_do_not_follow_each_other_have_no_first_number() -> None:
    first, second = gpu_resources(["H100", "T4", "H100"], {2})
    assert first.first is None
    assert first.used_at == (2,)
    assert second.first == 1


def test_jobs_are_mine_and_held_ones_say_so() -> None:
    rows = job_rows([entry("a", "held"), entry("b", "array", gpus_wanted=2, nodes=3)])
    assert [row.state for row in rows] == ["held", "running"]
    assert [row.mine for row in rows] == [True, True]
    assert rows[1].accelerators == 2
    assert rows[1].node_count == 3


def test_the_queue_counts_slots() -> None:
    row = queue_row("local", 2, [entry("a", "running"), entry("b", "waiting"), entry("c", "held")])
    assert (row.slots, row.slots_free, row.running, row.waiting) == (2, 1, 1, 2)
    assert row.usable is True
