"""Manifests that hold more than a job: which objects are sent, with what labels, and what is refused. No cluster is needed."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.kubernetes.kinds.choice import KIND_BY_NAME
from hyperpod_jlab.engines.kubernetes.kinds.kind import KEEP_ANNOTATION, RUN_LABEL
from hyperpod_jlab.engines.kubernetes.submit.companions import MAX_COMPANIONS
from hyperpod_jlab.engines.kubernetes.submit.create import find_difference
from hyperpod_jlab.engines.kubernetes.submit.native import render_native
from hyperpod_jlab.engines.launch import GuardPolicy
from hyperpod_jlab.engines.protocol import NativeFile, RenderInput
from hyperpod_jlab.storage.partition import PathMap
from tests.kubernetes.companion_texts import DEPLOYMENT, ELASTIC, JOB, NAMED, SERVICE, WORKERS, documents

RUN_ID = "20260101-120000-abcdef"


def rendered(text: str, **spec: Any) -> list[dict[str, Any]]:
    data = {"source": {"kind": "native", "path": "job.yaml"}, **spec}
    paths = PathMap(PurePosixPath("/here"), PurePosixPath("/there"))
    given = RenderInput(
        RUN_ID, "job", parse(JobSpec, data), "runs/x", paths, None, GuardPolicy(0, "5ea1"), user="alice"
    )
    file = NativeFile("code/job.yaml", text.encode(), "work")
    return list(yaml.safe_load_all(render_native(given, file, "team").text))


def test_the_job_comes_last_and_all_have_the_runs_label() -> None:
    text = documents(JOB, "", SERVICE, "# nothing", DEPLOYMENT, "")
    service, deployment, job = rendered(text)
    assert [one["kind"] for one in (service, deployment, job)] == ["Service", "Deployment", "Job"]
    for one in (service, deployment, job):
        assert one["metadata"]["namespace"] == "team"
        assert one["metadata"]["labels"][RUN_LABEL] == RUN_ID
        assert one["metadata"]["annotations"]["hyperpod-jlab/user"] == "alice"
    assert service["metadata"]["labels"]["a"] == "b"
    assert service["spec"] == yaml.safe_load(SERVICE)["spec"]
    # Its pods are none of the run's nodes.
    assert deployment["spec"]["template"]["metadata"]["labels"] == {"app": "beside"}
    kept = rendered(text, kubernetes={"keep_companions": True})
    assert kept[0]["metadata"]["annotations"][KEEP_ANNOTATION] == "true"


def test_a_list_is_its_items_and_references_reach_through_one_document() -> None:
    items = [yaml.safe_load(documents(one)) for one in (SERVICE, JOB)]
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    assert [one["kind"] for one in rendered(text)] == ["Service", "Job"]
    anchors = documents(JOB).replace("{name: mine}", "{name: mine, labels: &l {x: y}, annotations: *l}")
    service, job = rendered(documents(SERVICE, anchors))
    assert job["metadata"]["annotations"]["x"] == job["metadata"]["labels"]["x"] == "y"
    assert service["kind"] == "Service"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ((SERVICE, DEPLOYMENT), r"it contains no job \(v1 Service, apps/v1 Deployment\)"),
        (
            (JOB, SERVICE, WORKERS.replace("  ELASTIC\n", "")),
            r"contains 2 jobs \(Job mine, PyTorchJob mine\), but a run is one job",
        ),
        ((SERVICE, SERVICE, JOB), "contains the Service beside twice"),
        ((JOB, "hello"), "document 2 contains no Kubernetes object"),
        ((JOB, SERVICE.replace("name: beside", "namespace: a, name: b")), "is for the namespace a"),
        ((JOB, SERVICE.replace("name: beside", "generateName: b")), "has no metadata.name"),
        ((JOB, SERVICE.replace("name: beside", "name: ../x")), "metadata.name is not a valid name"),
        ((JOB, SERVICE.replace("labels: {a: b}", "labels: [a]")), "metadata.labels must be a mapping"),
        ((JOB, NAMED.replace("NAME", "x")), "the ConfigMap x has no apiVersion"),
        ((JOB, "apiVersion: ../v1\n" + NAMED.replace("NAME", "x")), "has no apiVersion"),
        (
            (JOB, "apiVersion: v1\nkind: Secret\nmetadata: {name: x}"),
            "values would be readable in the folder of the run",
        ),
        ((JOB, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: x}"), "with its data"),
        ((JOB, *[SERVICE] * (MAX_COMPANIONS + 1)), f"{MAX_COMPANIONS + 1} objects besides its job"),
    ],
)
def test_what_cannot_stand_beside_a_job_is_refused(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as error:
        rendered(documents(*texts))
    assert error.value.hint


def test_data_may_stand_beside_a_job_when_it_is_kept() -> None:
    claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: x}"
    found = rendered(documents(JOB, claim), kubernetes={"keep_companions": True})
    assert found[0]["kind"] == "PersistentVolumeClaim"


def test_variables_of_a_template_are_told_with_their_places() -> None:
    workers = WORKERS.replace("ELASTIC", ELASTIC).replace("replicas: 2", "replicas: $NUM_NODES")
    text = workers.replace("IMAGE", "'${REPO}:${TAG}'")
    with pytest.raises(InvalidInputError) as error:
        rendered(documents(text, command="echo $HOME ${x}"))
    assert "Worker.replicas: $NUM_NODES" in error.value.message
    assert "containers[0].image: ${REPO}:${TAG}" in error.value.message
    assert "HOME" not in error.value.message  # a shell of the pod's fills that in
    assert "envsubst < job.yaml" in str(error.value.hint)
    rule = (
        "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: x}\nspec: {m: '{{ $labels.x }}'}"
    )
    assert rendered(documents(rule, JOB))[0]["spec"] == {"m": "{{ $labels.x }}"}


@pytest.mark.parametrize(
    ("document", "found", "place"),
    [
        ({"spec": {"a": 1}}, {"spec": {"a": 1, "b": 2}, "status": {"c": 3}}, None),
        ({"metadata": {"name": "x"}, "spec": {}}, {"metadata": {"uid": "y"}}, None),
        ({"spec": {"a": None, "b": []}}, {"spec": {}}, None),
        ({"spec": {"cpu": "1000m", "memory": "1Gi"}}, {"spec": {"cpu": "1", "memory": "1024Mi"}}, None),
        ({"spec": {"ports": [{"port": 1}]}}, {"spec": {"ports": [{"port": 2}]}}, "spec.ports[0].port"),
        ({"spec": {"ports": [1]}}, {"spec": {"ports": [1, 2]}}, "spec.ports"),
        ({"data": {"a": "1"}}, {"data": {}}, "data.a"),
        ({"spec": {"a": True}}, {"spec": {"a": 1000}}, "spec.a"),
    ],
)
def test_whether_what_is_there_says_the_same(
    document: dict[str, Any], found: dict[str, Any], place: str | None
) -> None:
    assert find_difference(document, found) == place


def test_workers_without_a_master_are_counted_from_0() -> None:
    labels = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "1"}

    def rank(*prepared: str) -> int | None:
        spec = {"initContainers": [{"name": name} for name in prepared]}
        pod = {"metadata": {"name": "x", "labels": labels}, "spec": spec}
        return KIND_BY_NAME["PyTorchJob"].node_rank(pod)

    assert rank() == rank("mine") == 1
    assert rank("mine", "init-pytorch") == 2


MASTER = """    Master:
      replicas: COUNT
      template: {spec: {containers: [{name: pytorch, image: i}]}}
"""


@pytest.mark.parametrize("master", [None, "0"])
def test_a_job_without_pods_is_refused(master: str | None) -> None:
    text = WORKERS.replace("  ELASTIC\n", "").replace("replicas: 2", "replicas: 0")
    with pytest.raises(InvalidInputError) as error:
        rendered(documents(SERVICE, text + (MASTER.replace("COUNT", master) if master else "")))
    assert error.value.to_dict() == {
        "code": "no_pods",
        "message": "job.yaml: every replica type in spec.pytorchReplicaSpecs has replicas: 0, so the job has no pods and never ends",
        "hint": "set replicas to 1 or more for one of them",
        "detail": {"field": "spec.pytorchReplicaSpecs"},
    }


def test_a_replica_type_without_pods_is_fine_beside_another() -> None:
    text = WORKERS.replace("  ELASTIC\n", "").replace("replicas: 2", "replicas: 0")
    (job,) = rendered(text + MASTER.replace("COUNT", "1"))
    assert job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 0
    # Without a number it is one.
    rendered(text + MASTER.replace("      replicas: COUNT\n", ""))


def test_hyperpods_own_kind_without_pods_is_refused() -> None:
    spec = {"replicaSpecs": [{"name": "pod", "replicas": 0, "template": {}}]}
    kind = KIND_BY_NAME["HyperPodPyTorchJob"]
    job = {"apiVersion": f"{kind.group}/{kind.version}", "kind": kind.name, "spec": spec}
    with pytest.raises(InvalidInputError) as error:
        rendered(yaml.safe_dump(job))
    assert (error.value.code, error.value.detail) == ("no_pods", {"field": "spec.replicaSpecs"})
