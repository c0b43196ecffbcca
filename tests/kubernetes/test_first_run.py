"""A run on a real Kubernetes with the real training operator, whose pods mount the storage partition."""

from __future__ import annotations

import pytest

from hyperpod_jlab.engines.protocol import SubmitResult
from hyperpod_jlab.storage.records import BundleReader
from tests.kubernetes.session_fixtures import KubernetesSession


async def test_two_pods_see_each_other(session: KubernetesSession) -> None:
    run_id = await session.submit(
        "echo $NODE_RANK $RANK $WORLD_SIZE $MASTER_ADDR",
        resources={"nodes": 2, "processes_per_node": 2},
        launcher="python",
    )
    run = await session.ended(run_id)
    assert run.state == "succeeded"
    words = [session.log(run_id, node, rank).split() for node in (0, 1) for rank in (0, 1)]
    assert [word[:3] for word in words] == [["0", "0", "4"], ["0", "1", "4"], ["1", "2", "4"], ["1", "3", "4"]]
    assert {word[3] for word in words} == {f"run-{run_id}-master-0"}


async def test_a_failure_has_its_exit_code(session: KubernetesSession) -> None:
    run_id = await session.submit("exit 3")
    run = await session.ended(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 3)


async def test_cancel_ends_it_as_cancelled(session: KubernetesSession) -> None:
    run_id = await session.submit("echo begun; sleep 600")
    await session.until(run_id, lambda run: bool(run.status.attempts) and session.log(run_id) == "begun\n")
    await session.hyperpod.runs.act(run_id, "cancel")
    run = await session.ended(run_id)
    assert run.state == "cancelled"
    assert session.log(run_id) == "begun\n"


async def test_the_same_id_again_is_the_same_run(session: KubernetesSession) -> None:
    run_id = await session.submit("true")
    await session.ended(run_id)
    assert await session.submit("true", run_id=run_id) == run_id
    assert len((await session.hyperpod.runs.get(run_id)).status.attempts) == 1


async def test_a_launcher_that_was_changed_since_the_submit_is_not_run(
    session: KubernetesSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = session.hyperpod.engines.get()
    submit = engine.submit

    async def submit_changed(bundle: BundleReader) -> SubmitResult:
        (bundle.folder / "launcher.py").unlink()
        (bundle.folder / "launcher.py").write_text("open('work/evil', 'w')")
        return await submit(bundle)

    monkeypatch.setattr(engine, "submit", submit_changed)
    run_id = await session.submit("touch ran")
    run = await session.ended(run_id)
    assert (run.state, run.status.exit_code, run.status.attempts) == ("failed", 84, ())
    assert run.status.reason_code == "untrusted_bundle"
    assert run.status.reason == (f"the bundle of {run_id} was changed or belongs to another user; no code was run")
    assert list((session.hyperpod.partition.bundle(run_id) / "work").iterdir()) == []
