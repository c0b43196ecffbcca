"""A user's own manifest: read, labelled, sent once, followed; and what is refused, with the place of what is wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from hyperpod_jlab.core.errors import ConflictError, HyperpodError, InvalidInputError, RefusedError
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL
from hyperpod_jlab.engines.kubernetes.submit.native import native_findings, render_native
from hyperpod_jlab.engines.kubernetes.submit.user_yaml import MAX_BYTES, documents
from hyperpod_jlab.engines.launch import GuardPolicy
from hyperpod_jlab.engines.protocol import NativeFile, RenderInput
from hyperpod_jlab.run.submit import Request
from hyperpod_jlab.storage.partition import PathMap
from tests.kubernetes.acting import CLUSTER, Acting, user
from tests.kubernetes.cluster import KubernetesTestbed

__all__ = ["user"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "pytorchjob.yaml"
RUN_ID = "20260101-120000-abcdef"


def given(**spec: Any) -> RenderInput:
    data = {"source": {"kind": "native", "path": "job.yaml"}, **spec}
    paths = PathMap(PurePosixPath("/here"), PurePosixPath("/there"))
    seal = GuardPolicy(0, "5ea1")
    return RenderInput(RUN_ID, "job", parse(JobSpec, data), "runs/x", paths, None, seal, user="alice")


def rendered(text: str, **spec: Any) -> dict[str, Any]:
    file = NativeFile("code/job.yaml", text.encode(), "work")
    found: dict[str, Any] = yaml.safe_load(render_native(given(**spec), file, "team").text)
    return found


JOB = r"""
apiVersion: batch/v1
kind: Job
metadata: {name: mine, labels: {a: b}}
spec:
  parallelism: 3
  template:
    spec:
      containers: [{name: c, image: i, command: [echo, "$(HOME) ${x} 'quoted' \\"]}]
"""


def test_the_label_and_the_name_come_in_and_all_else_stays() -> None:
    sent = rendered(JOB)
    written = yaml.safe_load(JOB)
    assert sent["spec"]["template"]["spec"] == written["spec"]["template"]["spec"]
    assert sent["metadata"]["name"] == "mine"
    assert sent["metadata"]["namespace"] == "team"
    assert sent["metadata"]["labels"] == {"a": "b", RUN_LABEL: RUN_ID}
    assert sent["spec"]["template"]["metadata"]["labels"] == {RUN_LABEL: RUN_ID}


def test_the_gpus_of_a_pod_are_told() -> None:
    def gpus(text: str) -> int | None:
        file = NativeFile("code/job.yaml", text.encode(), "work")
        facts = render_native(given(), file, "team").facts
        assert facts is not None
        return facts.gpus_per_node

    def limited(limits: str) -> str:
        return JOB.replace("image: i,", f"image: i, resources: {{limits: {{{limits}}}}},")

    assert gpus(EXAMPLE.read_text()) == 0
    assert gpus(JOB) == 0
    assert gpus(limited("nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 32, cpu: 4")) == 8
    assert gpus(limited('aws.amazon.com/neuron: "16"')) == 16
    assert gpus(limited("nvidia.com/gpu: many")) is None


def test_a_command_of_several_lines_is_shown_in_lines() -> None:
    text = JOB.replace("\"$(HOME) ${x} 'quoted' \\\\\"", '"cd /data\\npython train.py\\n"')
    file = NativeFile("code/job.yaml", text.encode(), "work")
    shown = render_native(given(), file, "team").text
    assert "|\n          cd /data\n          python train.py\n" in shown
    assert rendered(text)["spec"]["template"]["spec"]["containers"][0]["command"] == [
        "echo",
        "cd /data\npython train.py\n",
    ]


def test_names_are_made_where_the_user_gives_none() -> None:
    for old, new in (("name: mine", "generateName: mine-"), ("name: mine, ", "")):
        sent = rendered(JOB.replace(old, new))
        assert sent["metadata"]["name"] == f"run-{RUN_ID}"
        assert "generateName" not in sent["metadata"]


def test_what_is_asked_for_outside_is_put_in_where_there_is_a_place() -> None:
    labels = rendered(JOB, queue="gpus", priority="high")["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "gpus"
    assert labels["kueue.x-k8s.io/priority-class"] == "high"
    spec = given(resources={"nodes": 2, "gpus_per_node": 8}, time_limit=60, args=["x"]).spec
    fields = {finding.field for finding in native_findings(spec)}
    assert fields == {"resources.nodes", "resources.accelerators", "time_limit", "args"}


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("a: [1, 2\nb: 3", "job.yaml, line 2, column 2: ", (2, 2)),
        ("a: 1\na: 2", "line 2, column 1: duplicate key 'a'", (2, 1)),
        ("a: !!python/object/apply:os.system [x]", "could not determine a constructor", (1, 4)),
        ("a: b\n\x01", "line 2, column 1: it contains a character", (2, 1)),
        ("a: *none", "undefined alias", (1, 4)),
        ("{a: &x [*x]}", "refers to itself", None),
        ("? [a]\n: 1", "a key must be text", (1, 3)),
        ("a: .inf", "a number that JSON does not have", None),
        ("a: !!binary aGk=", "a value that JSON does not have", None),
        ("[" * 400 + "]" * 400, "nested deeper than", None),
    ],
)
def test_wrong_yaml_is_refused_with_its_place(text: str, message: str, place: tuple[int, int] | None) -> None:
    with pytest.raises(InvalidInputError) as error:
        documents(text.encode(), "job.yaml")
    assert message in error.value.message
    if place is not None:
        assert (error.value.detail["line"], error.value.detail["column"]) == place


def test_texts_stay_texts_and_references_are_written_out() -> None:
    text = "a: 12:30\nb: 2026-01-01\nc: 0o7\nd: &x {e: 1}\nf: *x\n2: g\ntrue: h\ni: 1e3\nj: 010"
    assert documents(text.encode(), "j")[0] == {
        "a": "12:30",
        "b": "2026-01-01",
        "c": "0o7",
        "d": {"e": 1},
        "f": {"e": 1},
        "2": "g",
        "true": "h",
        "i": 1000.0,
        "j": 8,
    }


def test_a_small_text_cannot_become_a_large_one() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(InvalidInputError, match="more than 100000 values"):
        documents("\n".join(lines).encode(), "job.yaml")
    with pytest.raises(InvalidInputError, match="bytes"):
        documents(b"#" * (MAX_BYTES + 1), "job.yaml")
    with pytest.raises(InvalidInputError, match="line 2: is not UTF-8"):
        documents(b"a: 1\nb: \xff", "job.yaml")
    text = f"a: &a {'x' * 100_000}\n" + "".join(f"b{n}: *a\n" for n in range(15))
    with pytest.raises(InvalidInputError, match="more than 1,500,000 bytes after its references"):
        documents(text.encode(), "job.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("# nothing", "is empty"),
        ("hello", "contains no Kubernetes object"),
        (f"{JOB}---{JOB}", r"contains 2 jobs \(Job mine, Job mine\), but a run is one job"),
        ("apiVersion: v1\nkind: Pod", "a run cannot be created as v1 Pod"),
        ("apiVersion: kubeflow.org/v2\nkind: PyTorchJob", "as kubeflow.org/v1, not v2"),
        ("apiVersion: evil.org/v1\nkind: PyTorchJob", "a run cannot be created as evil.org/v1 PyTorchJob"),
        (JOB.replace("name: mine", "name: ../x"), "metadata.name is not a valid Kubernetes name"),
        (JOB.replace("name: mine", "name: mine, namespace: a/b"), "metadata.namespace is not a valid Kubernetes name"),
        (JOB.replace("labels: {a: b}", "labels: [a]"), "metadata.labels must be a mapping"),
        ("apiVersion: batch/v1\nkind: Job\nmetadata: 3", "metadata must be a mapping"),
    ],
)
def test_what_is_no_single_job_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        rendered(text)


def test_the_namespace_is_named_once() -> None:
    text = JOB.replace("name: mine", "name: mine, namespace: other")
    assert rendered(text)["metadata"]["namespace"] == "other"
    asked = {"kubernetes": {"namespace": "mine"}}
    assert rendered(JOB, **asked)["metadata"]["namespace"] == "mine"
    with pytest.raises(InvalidInputError, match="is for the namespace other, but the spec is for mine"):
        rendered(text, **asked)


# ---------------------------------------------------------------------------------------------- on the cluster


async def _submit(user: Acting, text: str, **more: Any) -> str:
    (user.folder / "job.yaml").write_text(text)
    return await user.submit(source={"kind": "native", "path": "job.yaml"}, **more)


def example(cluster: KubernetesTestbed) -> str:
    return EXAMPLE.read_text().replace("python:3.11-slim", cluster.image)


async def test_the_example_runs_and_its_pods_are_followed(kubernetes_cluster: KubernetesTestbed, user: Acting) -> None:
    run_id = await _submit(user, example(kubernetes_cluster))
    run = await user.ended(run_id)
    assert (run.state, run.nodes, run.kind) == ("succeeded", 2, "PyTorchJob"), run.status
    await user.hyperpod.engines.get(CLUSTER).remote_records.catch_up(user.hyperpod.runs.bundle(run_id), 10)
    logs = [path.read_text() for path in user.logs(run_id)]
    assert any("rank 0 was told: hello from rank 1" in text for text in logs), logs
    assert any("rank 1 of 2 on" in text for text in logs), logs


def job(cluster: KubernetesTestbed, command: str, name: str = "mine") -> str:
    container = {"name": "c", "image": cluster.image, "command": ["sh", "-c", command]}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    document = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }
    return yaml.safe_dump(document)


@pytest.mark.full
async def test_a_name_is_sent_once_and_anothers_name_is_refused(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    text = job(kubernetes_cluster, "sleep 600")
    run_id = await _submit(user, text)
    await user.until(run_id, lambda run: run.state == "running")
    assert await _submit(user, text, run_id=run_id) == run_id
    with pytest.raises(ConflictError):
        await _submit(user, text.replace("600", "601"), run_id=run_id)
    with pytest.raises(RefusedError, match="already has a Job called mine") as error:
        await _submit(user, text)
    assert error.value.hint is not None
    assert "metadata.name" in error.value.hint
    with pytest.raises(ConflictError, match="run"):
        await user.hyperpod.runs.act(run_id, "hold")
    await user.hyperpod.runs.act(run_id, "cancel")
    assert (await user.ended(run_id)).state == "cancelled"


@pytest.mark.full
async def test_a_failure_is_told_with_its_exit_code(kubernetes_cluster: KubernetesTestbed, user: Acting) -> None:
    run_id = await _submit(user, job(kubernetes_cluster, "echo no; exit 7"))
    run = await user.ended(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 7), run.status


@pytest.mark.full
@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
async def test_what_fails_again_and_again_is_one_node_with_attempts(
    kubernetes_cluster: KubernetesTestbed, user: Acting, policy: str
) -> None:
    """By OnFailure the Job ends the container that it has started last: that attempt has no exit code of its own."""
    document = yaml.safe_load(job(kubernetes_cluster, "echo try; sleep 2; exit 7"))
    document["spec"]["backoffLimit"] = 2 if policy == "OnFailure" else 1
    pod = document["spec"]["template"]["spec"]
    pod |= {"restartPolicy": policy, "terminationGracePeriodSeconds": 5}
    run_id = await _submit(user, yaml.safe_dump(document))
    run = await user.ended(run_id, 120)
    assert (run.state, run.status.exit_code) == ("failed", 7), run.status
    first, *_, last = run.status.attempts
    assert (first.exit_code, first.reason, len(first.nodes)) == (7, "exit code 7", 1)
    if policy == "Never":
        assert (last.exit_code, last.reason) == (7, "exit code 7")
    else:
        assert (last.exit_code, run.status.reason_code) == (None, "restarts_used_up")
        assert "the last one that ended by itself had exit code 7" in (last.reason or "")
    names = {path.name for path in user.logs(run_id)}
    assert names == {"node-0.rank-0.log"}


@pytest.mark.full
async def test_a_log_says_which_containers_are_not_in_it(kubernetes_cluster: KubernetesTestbed, user: Acting) -> None:
    document = yaml.safe_load(job(kubernetes_cluster, "echo mine"))
    containers = document["spec"]["template"]["spec"]["containers"]
    containers.append({**containers[0], "name": "side", "command": ["echo", "beside"]})
    run_id = await _submit(user, yaml.safe_dump(document))
    assert (await user.ended(run_id)).state == "succeeded"
    said = {path.name: path.read_text() for path in user.logs(run_id)}
    assert said["node-0.rank-0.log"] == "mine\n"
    (line,) = said["node-0.log"].splitlines()
    assert "the output of the container c; for the other containers (side) use: kubectl " in line
    words = line.partition("kubectl ")[2].split()
    assert kubernetes_cluster.kubectl(*words) == "beside\n"


@pytest.mark.full
async def test_the_api_servers_verdict_is_in_the_preview(kubernetes_cluster: KubernetesTestbed, user: Acting) -> None:
    async def said(text: str) -> dict[str, str]:
        (user.folder / "job.yaml").write_text(text)
        data = {"source": {"kind": "native", "path": "job.yaml"}, "files": {"project": False}}
        request = Request(parse(JobSpec, data), base=user.folder)
        found = (await user.hyperpod.submitter.preview(request)).findings
        return {finding.code: finding.message for finding in found}

    good = job(kubernetes_cluster, "true")
    assert "dry_run" in await said(good)
    strict = await said(good.replace("backoffLimit", "backofLimit"))
    assert any("backofLimit" in message for message in strict.values()), strict
    wrong = await said(good.replace("restartPolicy: Never", "restartPolicy: Always"))
    assert any("restartPolicy" in message for message in wrong.values()), wrong
    lost = await said(good.replace("name: mine", "name: mine\n  labels: {kueue.x-k8s.io/queue-name: none}"))
    assert {"no_kueue", "unknown_queue"} & lost.keys(), lost
    with pytest.raises(RefusedError) as refused:
        await _submit(user, good.replace("name: mine", "name: mine\n  namespace: nowhere-at-all"))
    assert refused.value.code == "no_namespace"
    assert "metadata.namespace in the manifest" in str(refused.value.hint)


async def test_what_is_too_large_for_the_store_is_said_before(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    """The dry run takes it: only the store behind the API server counts."""
    text = job(kubernetes_cluster, "true")
    variables = "".join(f"\n        - {{name: V{n}, value: *a}}" for n in range(5))
    at = text.index("      - command:")
    long = f"        env:\n        - {{name: V, value: &a {'€' * 100_000}}}{variables}\n"
    line = text.index("\n", at) + 1
    with pytest.raises(RefusedError) as error:
        await _submit(user, text[:line] + long + text[line:])
    assert error.value.code == "object_too_large"
    assert "1,800," in error.value.message
    assert error.value.detail["findings"][0]["field"] == "source"


NASTY = ["x; rm -rf /", "$(reboot)", "../../etc", "a\nb: c", "{{evil}}", "'\"`", "\u202e", "*a", "!!x"]


@pytest.mark.full
async def test_nasty_texts_stay_data(kubernetes_cluster: KubernetesTestbed, user: Acting) -> None:
    for nasty in NASTY:
        document = yaml.safe_load(job(kubernetes_cluster, "true"))
        document["metadata"]["name"] = nasty
        with pytest.raises(HyperpodError):
            await _submit(user, yaml.safe_dump(document))
    document = yaml.safe_load(job(kubernetes_cluster, 'printf "%s|" "$NASTY"'))
    document["metadata"]["annotations"] = {"note": "\n".join(NASTY)}
    environment = [{"name": "NASTY", "value": "|".join(NASTY).replace("$(", "$$(")}]
    document["spec"]["template"]["spec"]["containers"][0]["env"] = environment
    run_id = await _submit(user, yaml.safe_dump(document))
    assert (await user.ended(run_id)).state == "succeeded"
    made = kubernetes_cluster.get("job", "mine", user.namespace)
    assert made["metadata"]["annotations"]["note"] == "\n".join(NASTY)
    await asyncio.sleep(0)
    logs = [path.read_text() for path in user.logs(run_id)]
    assert "|".join(NASTY) + "|" in "".join(logs)
