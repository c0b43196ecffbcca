"""What somebody with narrow rights sees of a cluster's jobs, and is told of the rest; what is not there is not hidden."""

from __future__ import annotations

import json

import pytest

from hyperpod_jlab.core.cluster import Job, notes_of
from hyperpod_jlab.engines.kubernetes.kinds.choice import KIND_BY_NAME, KINDS
from tests.kubernetes.client_fixtures import proxy
from tests.kubernetes.proxy import FaultyProxy, refuse
from tests.kubernetes.session_fixtures import KubernetesSession, Sessions
from tests.kubernetes.table_fixtures import create, pod, pytorch_job, until

__all__ = ["proxy"]


async def test_who_sees_one_namespace_only_is_told_what_is_hidden(
    session: KubernetesSession, sessions: Sessions
) -> None:
    narrow = sessions(kubeconfig=session.cluster.user("narrow", session.namespace))
    await create(session, pytorch_job("theirs", pod("x", session.cluster.image, {})))
    jobs = await narrow.hpj("jobs")
    assert jobs.code == 0, jobs.err
    assert "pytorchjob/theirs" in jobs.out
    assert "you do not have the permission to list pytorchjobs.kubeflow.org in all namespaces" in jobs.err
    hidden = "the cluster's nodes are hidden: you do not have the permission to list nodes"
    clusters = await narrow.hpj("clusters")
    assert clusters.code == 0, clusters.err
    assert "hidden" not in clusters.out
    assert f"note: k8s: {hidden}" in clusters.err
    lines = json.loads((await narrow.hpj("clusters", "--json")).out)["clusters"]
    (line,) = [one for one in lines if one["name"] == "k8s"]
    assert (line["state"], line["reason"], line["changes"]) == ("up", None, ["queue"])
    assert hidden in line["notes"]
    nodes = await narrow.hpj("nodes", "--json")
    assert nodes.code == 0, nodes.err
    told = json.loads(nodes.out)
    assert told["nodes"] == []
    assert "you do not have the permission to list nodes" in " ".join(told["notes"])


async def test_a_job_is_linked_to_a_run_that_is_here_only(session: KubernetesSession, sessions: Sessions) -> None:
    """The same user's run, seen from another storage partition, could not be opened there."""
    elsewhere = sessions(claim=False)
    run_id = await session.submit("sleep 300")

    async def rows(of: KubernetesSession) -> dict[str, Job]:
        return {row.scheduler_id: row for row in await of.hyperpod.jobs()}

    name = f"run-{run_id}"
    here = (await until(lambda: rows(session), lambda found: name in found))[name]
    there = (await until(lambda: rows(elsewhere), lambda found: name in found))[name]
    assert (here.run_id, here.mine) == (run_id, True)
    assert (there.run_id, there.mine) == (None, True)
    (result,) = await elsewhere.hyperpod.act_on_jobs(None, "cancel", [name])
    assert result.error is None


async def test_a_namespace_that_is_not_there_is_told_of_its_cluster(sessions: Sessions) -> None:
    nowhere = sessions(claim=False, namespace="no-such-namespace")
    told = await nowhere.hpj("clusters")
    line = next(line for line in told.out.splitlines() if line.startswith("k8s"))
    assert "misconfigured" in line
    assert "namespace no-such-namespace not found" in line


async def test_what_is_not_installed_is_not_told_as_hidden(
    session: KubernetesSession, sessions: Sessions, proxy: FaultyProxy
) -> None:
    """Who lacks the right to list a kind is refused before the API server looks whether it has the kind."""
    served = session.cluster.kubectl("api-resources", "-o", "name").split()
    names = {kind.name: f"{kind.plural}.{kind.group}" for kind in KINDS}
    there = {name for name, resource in names.items() if resource in served}
    assert "PyTorchJob" in there  # of which one namespace may be seen
    theirs = session.cluster.user("narrow", session.namespace)
    narrow = sessions(kubeconfig=theirs)

    async def hidden(of: KubernetesSession) -> set[str]:
        notes = notes_of(await of.hyperpod.jobs())
        return {name for name in names if any(note.startswith(f"{name}s are") for note in notes)}

    assert await hidden(narrow) == there - {"PyTorchJob"}
    # Who may not even ask what there is may be missing a kind that there is.
    away = next(iter(names.keys() - there))
    group = KIND_BY_NAME[away].group
    forbidden = f'forbidden: User "narrow" cannot list resource "x" in API group "{group}" at the cluster scope'
    proxy.add(refuse(403, forbidden, "Forbidden"), path=f"/apis/{group}/[^/]+$")
    behind = sessions(kubeconfig=theirs, server=proxy.address)
    assert await hidden(behind) == (there - {"PyTorchJob"}) | {away}


@pytest.mark.full
async def test_who_sees_nothing_at_all_is_told_so(session: KubernetesSession, sessions: Sessions) -> None:
    rules = [{"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"], "verbs": ["create"]}]
    blind = sessions(kubeconfig=session.cluster.user("blind", session.namespace, rules=rules))
    jobs = await blind.hpj("jobs", "--json")
    assert jobs.code == 4
    assert "permission to list pytorchjobs.kubeflow.org" in jobs.error["message"]
    clusters = await blind.hpj("clusters", "--json")
    assert clusters.code == 0, clusters.err
    assert '"state": "up"' in clusters.out
    assert "the jobs are hidden" in clusters.out


@pytest.mark.full
async def test_who_may_list_and_not_watch_sees_the_same(session: KubernetesSession, sessions: Sessions) -> None:
    verbs = ["get", "list"]
    rules = [
        {"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["pods"], "verbs": verbs},
    ]
    lists = sessions(kubeconfig=session.cluster.user("lists", session.namespace, rules=rules))

    async def names() -> set[str]:
        return {row.name for row in await lists.hyperpod.jobs()}

    await create(session, pytorch_job("first", pod("x", session.cluster.image, {})))
    await until(names, lambda found: "first" in found)
    await create(session, pytorch_job("second", pod("x", session.cluster.image, {})))
    await until(names, lambda found: {"first", "second"} <= found)
