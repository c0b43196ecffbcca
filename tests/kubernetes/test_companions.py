"""What stands beside the job in a user's manifest, on a real cluster: the job owns it, and nothing is left behind by what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import yaml

from hyperpod_jlab.core.errors import DeniedError, HyperpodError, RefusedError, UnreachableError
from hyperpod_jlab.core.run_id import new_run_id
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL
from hyperpod_jlab.engines.kubernetes.submit import send as sender
from hyperpod_jlab.run.submit import Request
from tests.kubernetes.acting import Acting, acting, user
from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.companion_texts import DEPLOYMENT, ELASTIC, JOB, SERVICE, WORKERS, documents
from tests.kubernetes.test_smallest_role import SMALLEST, rules_of

__all__ = ["user"]


async def _submit(user: Acting, text: str, **more: Any) -> str:
    (user.folder / "job.yaml").write_text(text)
    return await user.submit(source={"kind": "native", "path": "job.yaml"}, **more)


async def _found(user: Acting, text: str) -> dict[str, str]:
    (user.folder / "job.yaml").write_text(text)
    data = {"source": {"kind": "native", "path": "job.yaml"}, "files": {"project": False}}
    request = Request(parse(JobSpec, data), base=user.folder)
    found = (await user.hyperpod.submitter.preview(request)).findings
    return {finding.code: finding.message for finding in found if finding.code != "dry_run"}


def left(cluster: KubernetesTestbed, namespace: str, kinds: str = "service,deployment") -> set[str]:
    """What is there that a run has made or would have."""
    items = cluster.get(kinds, namespace=namespace)["items"]
    named = {f"{one['kind']} {one['metadata']['name']}" for one in items if "deletionTimestamp" not in one["metadata"]}
    return {one for one in named if not one.startswith("Service mine-")}  # the operator's


async def gone(cluster: KubernetesTestbed, namespace: str, kinds: str = "service,deployment") -> set[str]:
    """The same, once Kubernetes has had the time to delete what a deleted job owned."""
    for _ in range(300):
        if not await asyncio.to_thread(left, cluster, namespace, kinds):
            break
        await asyncio.sleep(0.1)
    return left(cluster, namespace, kinds)


REACH = (
    "until python3 -c 'import urllib.request as u; u.urlopen(\"http://beside:8000\", timeout=2)'; "
    "do sleep 1; done 2>/dev/null; env | grep PET_RDZV_E; echo reached by $HOSTNAME"
)


async def test_workers_meet_by_what_stands_beside_them_and_it_goes_with_them(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    """As AWS's samples are built: a Service, a Deployment, and a PyTorchJob of workers only, whose elasticPolicy names the Service."""
    command = f"{REACH}; case $HOSTNAME in *-1) sleep 5; echo last;; esac"
    texts = (SERVICE, DEPLOYMENT, WORKERS.replace("ELASTIC", ELASTIC))
    text = documents(*texts, image=kubernetes_cluster.image, command=command)
    run_id = await _submit(user, text)
    made = kubernetes_cluster.get("deployment", "beside", user.namespace)["metadata"]
    assert made["labels"][RUN_LABEL] == run_id
    assert [one["kind"] for one in made["ownerReferences"]] == ["PyTorchJob"]
    run = await user.ended(run_id)
    assert (run.state, run.nodes, run.kind) == ("succeeded", 2, "PyTorchJob"), run.status
    assert len(run.status.attempts[-1].nodes) == 2
    said = {path.name: path.read_text() for path in user.logs(run_id)}
    assert "reached by mine-worker-0" in said["node-0.rank-0.log"]
    assert "PET_RDZV_ENDPOINT=beside:8000" in said["node-1.rank-0.log"]
    assert said["node-1.rank-0.log"].endswith("last\n")
    assert left(kubernetes_cluster, user.namespace) == {"Service beside", "Deployment beside"}
    kubernetes_cluster.kubectl("delete", "pytorchjob", "mine", namespace=user.namespace)
    assert await gone(kubernetes_cluster, user.namespace) == set()


async def test_what_was_there_before_is_used_and_stays(kubernetes_cluster: KubernetesTestbed, user: Acting) -> None:
    image, namespace = kubernetes_cluster.image, user.namespace
    kubernetes_cluster.create(yaml.safe_load(SERVICE), namespace=namespace)
    text = documents(SERVICE, JOB, image=image)
    assert "is used unchanged" in (await _found(user, text))["companion_exists"]
    run_id = await _submit(user, text)
    assert (await user.ended(run_id)).state == "succeeded"
    assert left(kubernetes_cluster, namespace) == {"Service beside"}
    assert RUN_LABEL not in kubernetes_cluster.get("service", "beside", namespace)["metadata"]["labels"]
    # Another one of that name is nobody's to change.
    other = text.replace("port: 8000", "port: 8001").replace("name: mine", "name: other")
    with pytest.raises(RefusedError, match=r"Service beside.* with other content: spec.ports\[0\].port differs"):
        await _submit(user, other)
    assert left(kubernetes_cluster, namespace) == {"Service beside"}
    assert kubernetes_cluster.get("service", "beside", namespace)["spec"]["ports"][0]["port"] == 8000


async def test_what_goes_with_one_run_is_no_others_and_kept_ones_are_everybodys(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    image = kubernetes_cluster.image
    first = await _submit(user, documents(SERVICE, JOB, image=image, command="sleep 600"))
    other = documents(SERVICE, JOB.replace("name: mine", "name: other"), image=image)
    with pytest.raises(RefusedError, match=f"belongs to the run {first} and is deleted with its job"):
        await _submit(user, other)
    await user.hyperpod.runs.act(first, "cancel")
    assert await gone(kubernetes_cluster, user.namespace) == set()
    second = await _submit(user, other, kubernetes={"keep_companions": True})
    assert (await user.ended(second)).state == "succeeded"
    assert left(kubernetes_cluster, user.namespace) == {"Service beside"}
    third = await _submit(user, other.replace("name: other", "name: third"))
    assert (await user.ended(third)).state == "succeeded"
    assert left(kubernetes_cluster, user.namespace) == {"Service beside"}


async def test_what_fails_half_way_leaves_nothing(kubernetes_cluster: KubernetesTestbed, user: Acting) -> None:
    """A quota tells of two that each alone would fit only when they are made."""
    image, namespace = kubernetes_cluster.image, user.namespace
    kubernetes_cluster.kubectl("create", "quota", "one", "--hard=services=1", namespace=namespace)
    for _ in range(100):
        if kubernetes_cluster.get("quota", "one", namespace)["status"].get("hard"):
            break
        await asyncio.sleep(0.1)
    second = SERVICE.replace("name: beside", "name: second")
    text = documents(SERVICE, second, JOB, image=image)
    with pytest.raises(HyperpodError, match=r"the companion Service second: .*quota"):
        await _submit(user, text)
    assert await gone(kubernetes_cluster, namespace, "service,job") == set()


async def test_what_the_api_server_will_not_make_is_told_before(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    image = kubernetes_cluster.image

    async def refused(text: str) -> str:
        with pytest.raises(HyperpodError) as error:
            await _submit(user, documents(text, SERVICE, JOB, image=image))
        assert left(kubernetes_cluster, user.namespace, "service,deployment,job") == set()
        return error.value.message

    wrong = await refused(DEPLOYMENT.replace("matchLabels: {app: beside}", "matchLabels: {app: x}"))
    assert "selector" in wrong
    assert "replica" in await refused(DEPLOYMENT.replace("replicas: 1", "replica: 1"))
    cluster_wide = "apiVersion: v1\nkind: Namespace\nmetadata: {name: mine}"
    assert "is cluster-scoped" in await refused(cluster_wide)
    unknown = "apiVersion: example.org/v1\nkind: Ship\nmetadata: {name: mine}"
    assert "has no Ship in example.org/v1" in await refused(unknown)


async def test_the_role_of_the_examples_is_enough_and_without_it_nothing_is_made(
    kubernetes_cluster: KubernetesTestbed, user: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = documents(SERVICE, DEPLOYMENT, JOB, image=kubernetes_cluster.image)
    enough = [*rules_of(SMALLEST), *rules_of("hyperpod-jlab-companions")]
    narrow = [rule for rule in enough if "deployments" not in rule["resources"]]
    assert len(narrow) == len(enough) - 1
    for name, rules in (("narrow", narrow), ("enough", enough)):
        kubeconfig = kubernetes_cluster.user(name, user.namespace, rules=rules)
        folder = user.folder / name
        folder.mkdir()
        async with acting(kubernetes_cluster, user.namespace, folder, monkeypatch) as they:
            monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
            if name == "narrow":
                with pytest.raises((RefusedError, DeniedError), match="deployments") as error:
                    await _submit(they, text)
                assert "Deployment beside" in str(error.value.to_dict())
            else:
                assert (await they.ended(await _submit(they, text))).state == "succeeded"
                kubernetes_cluster.kubectl("delete", "job", "mine", namespace=user.namespace)
        assert await gone(kubernetes_cluster, user.namespace) == set()


async def test_a_broken_off_submit_is_taken_up_or_taken_back(
    kubernetes_cluster: KubernetesTestbed, user: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = documents(SERVICE, JOB, image=kubernetes_cluster.image)
    run_id = new_run_id()

    async def lost(*_: object) -> None:
        raise UnreachableError("no answer")

    with monkeypatch.context() as broken:
        broken.setattr(sender, "make", lost)
        with pytest.raises(UnreachableError):
            await _submit(user, text, run_id=run_id)
    assert left(kubernetes_cluster, user.namespace, "service,job") == {"Job mine"}
    assert await _submit(user, text, run_id=run_id) == run_id
    assert left(kubernetes_cluster, user.namespace, "service,job") == {"Job mine", "Service beside"}
    made = kubernetes_cluster.get("service", "beside", user.namespace)["metadata"]
    assert [one["kind"] for one in made["ownerReferences"]] == ["Job"]
    assert (await user.ended(run_id)).state == "succeeded"
