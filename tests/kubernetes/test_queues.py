"""Kueue's queues on a real cluster: quota, what is left, who waits, why nothing starts; and what can never start, said before it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_jlab.core.cluster import Queue
from hyperpod_jlab.core.errors import RefusedError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.cost import estimate
from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.session_fixtures import CLUSTER, KubernetesSession, Sessions
from tests.kubernetes.table_fixtures import create, kubectl, pod, pytorch_job, queues, until, why

pytestmark = pytest.mark.timeout(300)

EXAMPLES = Path(__file__).parents[2] / "examples" / "kubernetes"
QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.fixture(scope="session")
def kubernetes_cluster(kueue_cluster: KubernetesTestbed) -> KubernetesTestbed:
    """One with Kueue."""
    return kueue_cluster


@pytest.fixture
async def session(sessions: Sessions, namespace: str) -> AsyncIterator[KubernetesSession]:
    """One whose namespace has queues."""
    made = sessions()
    with queues(made.cluster, namespace):

        async def look() -> list[Queue]:
            return await made.hyperpod.queues()

        await until(look, lambda rows: {"team", "nowhere"} <= {row.name for row in rows})
        yield made


async def named(session: KubernetesSession, name: str) -> Queue:
    return next(row for row in await session.hyperpod.queues() if row.name == name)


async def waits(session: KubernetesSession, queue: str = "team", **resources: Any) -> str:
    return await session.submit("sleep 300", queue=queue, resources=resources)


async def findings(session: KubernetesSession, **spec: Any) -> dict[str, Finding]:
    data = {"source": {"kind": "command", "command": "true"}, **spec}
    engine = session.hyperpod.engines.get()
    return {one.code: one for one in await engine.preflight(parse(JobSpec, data))}


# ---------------------------------------------------------------------------------- the table


async def test_queues_have_their_quota_and_say_what_is_wrong(session: KubernetesSession) -> None:
    await until(
        lambda: named(session, "stopped"),
        lambda row: row.reason is not None and "an administrator stopped it" in row.reason,
    )
    team = await until(lambda: named(session, "team"), lambda row: row.state == "up")
    assert (team.usable, team.accelerators, team.accelerators_free) == (True, 4, 4)
    assert team.cluster_queue == f"{session.namespace}-team"
    gpus = next(one for one in team.quotas if one.resource == "nvidia.com/gpu")
    assert (gpus.flavor, gpus.nominal, gpus.free, gpus.most) == (session.namespace, 4, 4, 4)
    assert (await named(session, "stopped")).state == "down"
    nowhere = await until(lambda: named(session, "nowhere"), lambda row: row.state == "down")
    assert nowhere.reason is not None
    assert "does not exist" in nowhere.reason


async def test_an_estimate_tells_the_share_of_the_quota(
    session: KubernetesSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyperpod_jlab.run.cost._QUOTAS_WAIT_S", 60.0)
    data = {"source": {"kind": "command", "command": "true"}, "queue": "team", "resources": {"gpus_per_node": 1}}
    found = await estimate(session.hyperpod, parse(JobSpec, data), CLUSTER, 3600)
    (share,) = found.shares
    assert (share.quota, share.nominal, share.share) == ("queue team", 4, 0.25)


def test_the_file_of_the_queue_is_taken(kubernetes_cluster: KubernetesTestbed, namespace: str) -> None:
    text = (EXAMPLES / "queue.yaml").read_text().replace("hyperpod-ns-team-a", namespace)
    words = ("apply", "--server-side", "--dry-run=server", "-f", "-")
    kubernetes_cluster.kubectl(*words, namespace=namespace, input=text)


@pytest.mark.full
async def test_what_is_taken_is_not_free(session: KubernetesSession) -> None:
    await waits(session, gpus_per_node=3)
    row = await until(lambda: named(session, "team"), lambda row: row.running == 1)
    row = await until(lambda: named(session, "team"), lambda row: row.accelerators_free == 1)
    assert row.accelerators == 4
    await waits(session, gpus_per_node=2)
    await until(lambda: named(session, "team"), lambda row: row.waiting == 1)


@pytest.mark.full
async def test_what_may_be_named_in_a_spec(session: KubernetesSession) -> None:
    known = session.hyperpod.engines.get().choices
    assert known is not None
    choices = await known.choices()
    assert choices["queue"] == ["nowhere", "spare", "stopped", "team"]
    mine = [name for name in choices["priority"] if name.startswith(session.namespace)]
    assert mine == [f"{session.namespace}-high", f"{session.namespace}-low"]
    assert {"default", session.namespace} <= set(choices["kubernetes.namespace"])


@pytest.mark.full
async def test_queues_of_other_namespaces_have_their_namespace_in_the_name(
    session: KubernetesSession, sessions: Sessions
) -> None:
    elsewhere = sessions(namespace="default", claim=False)
    rows = await elsewhere.hyperpod.queues()
    found = next(row for row in rows if row.name == f"{session.namespace}/team")
    assert found.usable is True


# ---------------------------------------------------------------------------------- why a run waits


@pytest.mark.full
async def test_the_line_and_who_holds_the_quota(session: KubernetesSession) -> None:
    first = await waits(session, gpus_per_node=4)
    await session.until(first, lambda run: run.state == "running")
    second = await waits(session, gpus_per_node=4)
    told = await why(session, second, "quota")
    run = await session.until(second, lambda run: run.status.reason_code == "quota")
    assert run.state == "waiting"
    assert run.status.reason == told.reason
    third = await waits(session, gpus_per_node=4)
    told = await until(
        lambda: session.hyperpod.runs.explain_wait(third),
        lambda told: told.position == 2 and told.reason_code == "quota",
    )
    assert told.ahead == (second,)
    assert told.counted is not None
    assert "team" in told.counted
    assert told.reason is not None
    assert "4 more nvidia.com/gpu must become free" in told.reason
    (holder,) = told.holders
    assert (holder.accelerators, holder.nodes, holder.jobs) == (4, 1, 1)
    (blocker,) = told.blockers
    assert (blocker.run_id, blocker.accelerators, blocker.nodes) == (first, 4, 1)
    answer = await session.hpj("why", third)
    assert answer.code == 0, answer.err
    assert "position" in answer.out
    assert f"2 (before it: {second})" in answer.out


@pytest.mark.full
async def test_what_would_start_now_does(session: KubernetesSession) -> None:
    await waits(session, gpus_per_node=2)
    waiting = await waits(session, gpus_per_node=2, nodes=2)
    # Kueue writes down what a queue has left a moment after it has given it away.
    told = await until(lambda: session.hyperpod.runs.explain_wait(waiting), lambda told: bool(told.would_start_now))
    assert told.reason_code == "quota"
    assert "with 1 node instead of 2 (--nodes 1)" in tuple(way.text for way in told.would_start_now)
    smaller = await waits(session, gpus_per_node=2, nodes=1)
    await session.until(smaller, lambda run: run.state == "running")


@pytest.mark.full
async def test_another_queue_that_has_room_is_named(session: KubernetesSession) -> None:
    first = await waits(session, gpus_per_node=4)
    await session.until(first, lambda run: run.state == "running")
    waiting = await waits(session, gpus_per_node=2)
    told = await until(lambda: session.hyperpod.runs.explain_wait(waiting), lambda told: bool(told.would_start_now))
    assert tuple(way.text for way in told.would_start_now) == ("in the queue spare (--queue spare)",)
    elsewhere = await waits(session, queue="spare", gpus_per_node=2)
    await session.until(elsewhere, lambda run: run.state == "running")


@pytest.mark.full
async def test_a_run_that_was_preempted_says_so(session: KubernetesSession) -> None:
    names = {name: f"{session.namespace}-{name}" for name in ("low", "high")}
    wants: dict[str, Any] = {"queue": "team", "resources": {"gpus_per_node": 4}}
    low = await session.submit("sleep 300", priority=names["low"], **wants)
    await session.until(low, lambda run: run.state == "running")
    high = await session.submit("sleep 300", priority=names["high"], **wants)
    await session.until(high, lambda run: run.state == "running")
    told = await until(
        lambda: session.hyperpod.runs.explain_wait(low), lambda told: "higher priority" in (told.reason or "")
    )
    assert told.position == 1


@pytest.mark.full
async def test_a_job_that_can_never_start_says_so_in_the_table(session: KubernetesSession) -> None:
    image = session.cluster.image
    large = pytorch_job("large", pod("x", image, {"nvidia.com/gpu": "5"}), **{QUEUE: "team"})
    lost = pytorch_job("lost", pod("x", image, {"nvidia.com/gpu": "1"}), **{QUEUE: "nope"})
    await create(session, large, lost)

    async def reasons() -> dict[str, Any]:
        rows = await session.hyperpod.jobs()
        mine = [row for row in rows if row.account == session.namespace]
        return {row.name: row for row in mine if row.reason_code is not None}

    def both(rows: dict[str, Any]) -> bool:
        codes = {name: row.reason_code for name, row in rows.items()}
        return codes == {"large": "never_fits", "lost": "unknown_queue"}

    rows = await until(reasons, both)
    assert rows["large"].scheduler_id == "pytorchjob/large"
    assert rows["large"].state == "waiting"
    assert "5 nvidia.com/gpu of at most 4" in rows["large"].reason
    assert (rows["large"].queue, rows["large"].accelerators) == ("team", 5)
    await kubectl(session, "delete", "pytorchjob", "large", "lost")


# ---------------------------------------------------------------------------------- before it is sent


@pytest.mark.full
@pytest.mark.parametrize(
    ("spec", "code", "level"),
    [
        ({"queue": "team", "resources": {"gpus_per_node": 5}}, "over_quota", "error"),
        ({"queue": "team", "resources": {"gpus_per_node": 2, "nodes": 3}}, "over_quota", "error"),
        ({"queue": "taem"}, "unknown_queue", "error"),
        ({"queue": "stopped"}, "queue_closed", "warning"),
        ({"queue": "nowhere"}, "queue_closed", "warning"),
        ({"queue": "team", "priority": "nope"}, "unknown_priority", "error"),
        ({"resources": {"gpus_per_node": 9}}, "too_large", "error"),
        ({"resources": {"instance_type": "ml.p5.48xlarge"}}, "no_such_node", "warning"),
    ],
)
async def test_what_can_never_start_is_said_before(
    session: KubernetesSession, spec: dict[str, Any], code: str, level: str
) -> None:
    found = await findings(session, **spec)
    assert found[code].level == level


@pytest.mark.full
async def test_of_a_manifest_it_is_said_too(session: KubernetesSession) -> None:
    async def sends(gpus: int, queue: str) -> str:
        template = pod("x", session.cluster.image, {"nvidia.com/gpu": str(gpus)})
        text = yaml.safe_dump(pytorch_job(f"own-{gpus}", template, **{QUEUE: queue}))
        (session.folder / "job.yaml").write_text(text)
        source = {"kind": "native", "path": "job.yaml"}
        return await session.hyperpod.submitter.submit(session.request(source=source))

    for gpus, queue, code in ((1, "taem", "unknown_queue"), (5, "team", "over_quota")):
        with pytest.raises(RefusedError) as refused:
            await sends(gpus, queue)
        assert refused.value.code == code
    assert (await session.running(await sends(2, "team"))).state == "running"


@pytest.mark.full
async def test_what_fits_is_not_complained_about(session: KubernetesSession) -> None:
    wants = {"gpus_per_node": 2, "nodes": 2, "cpus": 1}
    found = await findings(session, queue="team", priority=f"{session.namespace}-high", resources=wants)
    assert {one.level for one in found.values()} <= {"info"}


# ---------------------------------------------------------------------------------- narrow rights

TRAINING = [
    {
        "apiGroups": ["kubeflow.org"],
        "resources": ["pytorchjobs"],
        "verbs": ["create", "get", "list", "watch", "patch", "delete"],
    },
    {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]},
]
QUEUES = {"apiGroups": ["kueue.x-k8s.io"], "resources": ["localqueues", "workloads"], "verbs": ["get", "list", "watch"]}


@pytest.mark.full
async def test_who_may_see_queues_but_no_quota_is_told_so(session: KubernetesSession, sessions: Sessions) -> None:
    kubeconfig = session.cluster.user("queues", session.namespace, rules=[*TRAINING, QUEUES])
    narrow = sessions(kubeconfig=kubeconfig)
    answer = await narrow.hpj("queues")
    assert answer.code == 0, answer.err
    assert "team" in answer.out
    assert "you do not have the permission to list clusterqueues.kueue.x-k8s.io" in answer.err
    assert "permission to list localqueues.kueue.x-k8s.io in all namespaces" in answer.err


@pytest.mark.full
async def test_who_may_see_no_queues_is_told_so(session: KubernetesSession, sessions: Sessions) -> None:
    narrow = sessions(kubeconfig=session.cluster.user("narrow", session.namespace))
    answer = await narrow.hpj("queues")
    assert answer.code == 0, answer.err
    assert f"permission to list localqueues.kueue.x-k8s.io in the namespace {session.namespace}" in answer.err
    # And still submits to one that it knows of.
    run_id = await waits(narrow, gpus_per_node=1)
    await narrow.until(run_id, lambda run: run.state == "running")
