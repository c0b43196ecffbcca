"""An engine that sends and observes runs and can do nothing else: what needs no more works on it, and the rest is refused in plain words."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hyperpod_jlab.clusters.configuration import load_settings
from hyperpod_jlab.core.errors import HyperpodError, RefusedError, UnsupportedError
from hyperpod_jlab.core.job_actions import ActionKind
from hyperpod_jlab.engines import registry
from hyperpod_jlab.engines.protocol import Orchestrator
from hyperpod_jlab.features.node_actions.service import NodeActions, NodeRequest, list_abilities
from hyperpod_jlab.run.access import read_access
from hyperpod_jlab.run.services import Hyperpod
from tests.services.tiny_engine import ENGINE, TinyCluster, TinyEngine
from tests.session import Session


@pytest.fixture
async def tiny(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Session]:
    """The services over a tiny cluster, which is the default one."""
    config = home / "config.toml"
    config.write_text("")
    monkeypatch.setenv("HYPERPOD_CONFIG", str(config))
    monkeypatch.setattr(registry, "_engines", dict(registry._engines))
    registry.register(ENGINE)
    found = load_settings()
    clusters = {**found.clusters, "tiny": TinyCluster(python=sys.executable)}
    settings = found.model_copy(update={"clusters": clusters, "default_cluster": "tiny"})
    made = Session(Hyperpod(settings), home)
    yield made
    await made.hyperpod.close()


async def test_a_run_is_sent_and_listed_and_its_log_is_read(tiny: Session) -> None:
    run_id = await tiny.submit("echo hello")
    run = await tiny.ended(run_id)
    assert (run.state, run.cluster, run.orchestrator) == ("succeeded", "tiny", "tiny")
    assert run.scheduler_id == f"tiny-{run_id}"
    assert tiny.log(run_id) == "hello\n"
    assert [one.run_id for one in (await tiny.hyperpod.runs.list()).runs] == [run_id]
    used = await tiny.hyperpod.runs.usage(run_id)
    assert used is not None
    assert (used.source, used.attempts) == ("journal", 1)


async def test_a_run_that_is_sent_again_is_the_same(tiny: Session) -> None:
    run_id = await tiny.submit("echo once >> told; sleep 0.2; cat told")
    assert await tiny.submit("echo once >> told; sleep 0.2; cat told", run_id=run_id) == run_id
    await tiny.ended(run_id)
    assert tiny.log(run_id) == "once\n"


async def test_the_engines_findings_refuse_a_run(tiny: Session) -> None:
    with pytest.raises(RefusedError, match="one node"):
        await tiny.submit("true", resources={"nodes": 2})


async def test_a_run_that_fails_has_failed(tiny: Session) -> None:
    run = await tiny.ended(await tiny.submit("exit 3"))
    assert (run.state, run.status.exit_code) == ("failed", 3)


@pytest.mark.parametrize("action", ["cancel", "hold", "requeue"])
async def test_actions_are_refused_and_leave_nothing_in_the_journal(tiny: Session, action: ActionKind) -> None:
    run_id = await tiny.submit("sleep 60")
    await tiny.running(run_id)
    with pytest.raises(UnsupportedError) as caught:
        await tiny.hyperpod.runs.act(run_id, action)
    assert caught.value.message == f"tiny clusters cannot {action} a run"
    assert list(tiny.hyperpod.runs.bundle(run_id).actions()) == []
    assert (await tiny.hyperpod.runs.get(run_id)).state == "running"


async def test_its_cluster_offers_nothing_that_it_cannot_do(tiny: Session) -> None:
    cluster = await tiny.hyperpod.clusters.one("tiny")
    assert (cluster.state, cluster.default, cluster.orchestrator) == ("up", True, "tiny")
    assert (cluster.actions, cluster.changes) == ((), ())
    offered = await list_abilities(tiny.hyperpod, "tiny")
    assert {one.action: one.problem is None for one in offered} == dict.fromkeys(
        ("drain", "resume", "reboot", "replace"), False
    )


async def test_what_it_has_not_is_refused_in_plain_words(tiny: Session) -> None:
    services = tiny.hyperpod
    run_id = await tiny.submit("sleep 60")
    await tiny.running(run_id)
    no_tables = "tiny clusters have no tables of nodes, queues and jobs"

    async def said(doing: object) -> str:
        with pytest.raises(HyperpodError) as caught:
            await doing  # type: ignore[misc]
        assert isinstance(caught.value, UnsupportedError)
        return caught.value.message

    assert await said(services.nodes()) == no_tables
    assert await said(services.queues()) == no_tables
    assert await said(services.jobs()) == no_tables
    assert await said(services.act_on_jobs(None, "cancel", ["7"])) == no_tables
    drain = NodeRequest("drain", ["n1"], cluster="tiny", reason="broken")
    assert await said(NodeActions(services).plan(drain)) == "tiny clusters cannot drain nodes"
    access = await read_access(services.engines, services.runs, run_id)
    assert (access.reason, access.shells) == ("tiny clusters have no shells on nodes", ())


async def test_a_reason_to_wait_is_that_of_the_run(tiny: Session) -> None:
    run_id = await tiny.submit("sleep 60")
    await tiny.running(run_id)
    assert (await tiny.hyperpod.runs.explain_wait(run_id)).reason_code == "running"


def test_only_the_required_concerns_are_methods_of_an_engine() -> None:
    assert TinyEngine.__abstractmethods__ == frozenset()
    assert Orchestrator.__abstractmethods__ == {
        *("python", "render", "preflight", "submit", "find"),
        *("cluster", "runs"),
    }
