"""A run whose node HyperPod repairs recovers: it says so, and is never called failed meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hyperpod_jlab.core.run import Run
from hyperpod_jlab.engines.slurm import engine
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.fault_fixtures import sessions, start_now
from tests.slurm.hyperpod_fixtures import SlurmSession

__all__ = ["sessions"]

ONCE = "[ $HYPERPOD_ATTEMPT = 2 ] || sleep 600"


def order(cluster: SlurmTestbed, state: str, action: str) -> None:
    """What HyperPod, or an administrator who calls it, writes at a node."""
    cluster.exec("ctl", "scontrol", "update", "nodename=node1", f"state={state}", f"reason={action}")


async def test_a_run_recovers_while_its_node_is_replaced(
    slurm: SlurmTestbed, sessions: Callable[..., SlurmSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "REPAIRS_TTL_S", 1.0)  # how old a look at the nodes may be
    session = sessions(slurm, hyperpod="ml-cluster")
    seen: list[str] = []

    def recovers(state: str) -> Callable[[Run], bool]:
        def there(run: Run) -> bool:
            seen.append(run.state)
            return (run.state, run.status.reason_code) == (state, "recovering") and (
                "HyperPod" in (run.status.reason or "")
            )

        return there

    run_id = await session.submit(ONCE, slurm={"flags": {"nodelist": "node1"}})
    await session.running(run_id)
    order(slurm, "fail", "Action:Replace")
    run = await session.until(run_id, recovers("running"), 40)
    assert run.status.reason == ("HyperPod replaces node1, on which it runs; it is resumed there or requeued")
    slurm.node_kill("node1")
    order(slurm, "down", "Action:Replace")
    run = await session.until(run_id, recovers("waiting"), 40)
    assert (run.status.reason or "").startswith("HyperPod replaces node1, on which it ran")
    assert run.status.attempts[0].reason_code == "node_fail"

    slurm.exec("ctl", "scontrol", "update", "nodename=node1", "state=resume")
    slurm.node_start("node1")
    await session.until(run_id, lambda run: "HyperPod" not in (run.status.reason or ""), 40)
    start_now(slurm, session.job_of(run))
    assert (await session.ended(run_id)).state == "succeeded"
    assert set(seen) <= {"running", "waiting"}


async def test_other_reasons_and_other_clusters_say_nothing_of_a_repair(
    slurm: SlurmTestbed, sessions: Callable[..., SlurmSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "REPAIRS_TTL_S", 0.0)
    plain, session = sessions(slurm), sessions(slurm, hyperpod="ml-cluster")
    run_id = await session.submit("sleep 600", slurm={"flags": {"nodelist": "node1"}})
    await session.running(run_id)
    order(slurm, "drain", "Action:Replaced by hand")  # HyperPod obeys the exact words only
    assert (await session.hyperpod.runs.get(run_id)).status.reason_code is None
    order(slurm, "fail", "Action:Reboot")
    assert (await plain.hyperpod.runs.get(run_id)).status.reason_code is None
    run = await session.until(run_id, lambda run: run.status.reason_code == "recovering", 20)
    assert "HyperPod reboots node1" in (run.status.reason or "")
    await session.hyperpod.runs.act(run_id, "cancel")
    assert (await session.ended(run_id)).state == "cancelled"
