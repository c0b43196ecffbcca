"""Runs that wait for others (``after``) on a real cluster: in their order, ended when that can never be, refused when it is known before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hyperpod_jlab.core.errors import RefusedError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request
from tests.slurm.hyperpod_fixtures import CLUSTER, SlurmSession, settings_for


def request(session: SlurmSession, *after: str, cluster: str = CLUSTER) -> Request:
    data = {"source": {"kind": "command", "command": "true"}, "files": {"project": False}, "after": list(after)}
    return Request(parse(JobSpec, data), cluster=cluster, base=session.folder)


async def findings(session: SlurmSession, *after: str) -> list[Finding]:
    preview = await session.hyperpod.submitter.preview(request(session, *after))
    return [finding for finding in preview.findings if finding.field == "after"]


async def refused(session: SlurmSession, *after: str) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        await session.hyperpod.submitter.submit(request(session, *after))
    return caught.value


@pytest.mark.both_transports
async def test_one_starts_when_the_others_have_succeeded(session: SlurmSession):
    gate = session.cluster.partition / "gate"
    waits = f"until [ -e {session.cluster.partition_on_nodes}/gate ]; do sleep 0.1; done"
    first = await session.submit(waits)
    second = await session.submit("sleep 0", slurm={"flags": {"hold": True}})
    await session.running(first)
    third = await session.submit("true", after=[first, second])
    run = await session.until(third, lambda run: run.status.reason_code == "Dependency")
    assert run.state == "waiting"
    gate.touch()
    try:
        await session.ended(first)
        await session.hyperpod.runs.act(second, "release")
        run = await session.ended(third)
    finally:
        gate.unlink()
    before = await session.hyperpod.runs.get(second)
    assert (run.state, before.state) == ("succeeded", "succeeded")
    assert run.status.started_at is not None
    assert before.status.ended_at is not None
    assert run.status.started_at > before.status.ended_at


async def test_those_that_succeeded_are_not_waited_for(session: SlurmSession):
    first = await session.submit("true")
    await session.ended(first)
    preview = await session.hyperpod.submitter.preview(request(session, first))
    assert "--dependency" not in preview.rendered.text
    second = await session.hyperpod.submitter.submit(request(session, first))
    assert (await session.ended(second)).state == "succeeded"


async def test_one_that_fails_ends_those_that_wait_for_it(session: SlurmSession):
    first = await session.submit("exit 3", slurm={"flags": {"hold": True}})
    second = await session.submit("true", after=[first])
    third = await session.submit("true", after=[second])
    await session.hyperpod.runs.act(first, "release")
    run = await session.ended(second)
    assert (run.state, run.status.reason_code) == ("failed", "dependency")
    assert run.status.reason == "a run that it depends on did not succeed"
    assert run.status.attempts == ()
    run = await session.ended(third)
    assert (run.state, run.status.reason_code) == ("failed", "dependency")


async def test_one_that_has_failed_or_was_cancelled_is_refused(session: SlurmSession):
    failed = await session.submit("exit 3")
    cancelled = await session.submit("true", slurm={"flags": {"hold": True}})
    await session.hyperpod.runs.act(cancelled, "cancel")
    await session.ended(failed)
    await session.ended(cancelled)
    found = await findings(session, failed, cancelled)
    assert [finding.code for finding in found] == ["dependency_failed", "dependency_failed"]
    assert found[0].message == (f"{failed} is failed: a run that waits for it would never start")
    error = await refused(session, failed)
    assert error.code == "dependency_failed"


async def test_an_array_of_which_a_task_has_failed_is_refused(session: SlurmSession):
    array = await session.submit("[ $HYPERPOD_ARRAY_INDEX = 1 ] || exit 1; sleep 300", array="0-1")
    await session.ended(f"{array}.0")
    await session.until(array, lambda run: run.children.get("failed") == 1)
    found = await findings(session, array)
    assert [finding.code for finding in found] == ["dependency_failed"]
    assert "one of its tasks is failed" in found[0].message


async def test_one_that_is_nowhere_is_refused(session: SlurmSession):
    error = await refused(session, "nobody")
    assert error.code == "no_such_run"


async def test_one_on_another_cluster_is_refused_until_it_has_succeeded(session: SlurmSession):
    done = await session.submit("true")
    await session.ended(done)
    first = await session.submit("true", slurm={"flags": {"hold": True}})
    settings = settings_for(session.cluster)
    clusters = {CLUSTER: settings.clusters[CLUSTER], "second": settings.clusters[CLUSTER]}
    other = Hyperpod(settings.model_copy(update={"clusters": clusters}))
    try:
        asked = replace(request(session, done, first), cluster="second")
        preview = await other.submitter.preview(asked)
    finally:
        await other.close()
    assert [finding.code for finding in preview.findings if finding.field == "after"] == ["other_cluster"]
