"""What queues and nodes have to say of a run before it is sent, from what is known of them: of a spec, and of a user's own manifest."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.kubernetes.tables.kueue import ClusterQueueRow, KueueSnapshot, QuotaRow, local_queue
from hyperpod_jlab.engines.kubernetes.tables.nodes import NodeFacts, node_facts
from hyperpod_jlab.engines.kubernetes.waiting.quota import (
    QuotaContext,
    RequestedResources,
    findings,
    requested_by_manifest,
    requested_by_spec,
)

GPU = "nvidia.com/gpu"
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"


def node(name: str, gpus: int, **labels: str) -> NodeFacts:
    allocatable = {"cpu": "64", "memory": "512Gi", GPU: str(gpus)}
    status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": allocatable}
    return node_facts({"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status})


def known(**given: Any) -> QuotaContext:
    """A queue ``team`` with 16 GPUs of one kind and 4 of another, and nodes with 8."""
    local = local_queue({"metadata": {"name": "team", "namespace": "a"}, "spec": {"clusterQueue": "q"}})
    limits: dict[str, Any] = {"borrowing": None, "lending": None, "borrowed": 0, "used": 0}
    quotas = tuple(
        QuotaRow(flavor, name, amount, **limits)
        for flavor, gpus in (("h100", 16_000), ("a100", 4_000))
        for name, amount in ((GPU, gpus), ("cpu", 100_000))
    )
    queue = ClusterQueueRow("q", None, None, quotas, 0, 0)
    kueue = KueueSnapshot((local,), {"q": queue}, ())
    made: dict[str, Any] = {
        "namespace": "a",
        "kueue": kueue,
        "priorities": {"high": 1},
        "nodes": [node("n1", 8), node("n2", 8)],
    }
    return QuotaContext(**{**made, **given})


def spec(**given: Any) -> RequestedResources:
    source = {"kind": "command", "command": "true"}
    return requested_by_spec(parse(JobSpec, {"source": source, **given}), None, hyperpod=False)


def replica(count: int, gpus: int, **selector: str) -> dict[str, Any]:
    container = {"resources": {"limits": {GPU: str(gpus)}}}
    return {"replicas": count, "template": {"spec": {"containers": [container], "nodeSelector": selector}}}


def manifest(*replicas: dict[str, Any], **labels: str) -> RequestedResources:
    names = ("Master", "Worker", "Other")
    return requested_by_manifest(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "x", "namespace": "a", "labels": labels},
            "spec": {"pytorchReplicaSpecs": dict(zip(names, replicas, strict=False))},
        }
    )


def told(asked: RequestedResources, **given: Any) -> list[tuple[str, str, str | None]]:
    return [(one.code, one.level, one.field) for one in findings(asked, known(**given))]


def test_a_manifest_is_told_what_a_spec_is_told() -> None:
    fits = replica(2, 8)
    assert told(manifest(fits, **{QUEUE: "team", PRIORITY: "high"})) == []
    assert told(manifest(fits, **{QUEUE: "taem"})) == [("unknown_queue", "error", "source")]
    assert told(manifest(fits, **{QUEUE: "team", PRIORITY: "x"})) == [("unknown_priority", "error", "source")]
    assert told(manifest(replica(3, 8), **{QUEUE: "team"})) == [("over_quota", "error", "source")]
    assert told(manifest(replica(1, 9))) == [("too_large", "error", "source")]
    assert told(manifest(replica(1, 1, x="y"))) == [("no_such_node", "warning", "source")]
    assert told(manifest(fits, **{QUEUE: "team"}), kueue=None) == [("no_kueue", "warning", "source")]


def test_what_a_manifest_can_do_about_its_queue_is_said_of_the_manifest() -> None:
    none = KueueSnapshot((), {}, ())
    (of_manifest,) = findings(manifest(replica(1, 1), **{QUEUE: "x"}), known(kueue=none))
    (of_spec,) = findings(spec(queue="x"), known(kueue=none))
    assert str(of_manifest.hint).startswith(f"remove the label {QUEUE} from the manifest")
    assert str(of_spec.hint).startswith("leave out --queue")


def test_pods_that_are_not_alike_are_looked_at_one_kind_after_the_other() -> None:
    """On the average of both each would fit; the larger does not. And of two kinds of quota each may take the one in which it fits."""
    assert told(manifest(replica(1, 0), replica(1, 9))) == [("too_large", "error", "source")]
    small_and_large = manifest(replica(2, 8), replica(4, 1), **{QUEUE: "team"})
    assert told(small_and_large) == []
    too_many = manifest(replica(2, 8), replica(5, 1), **{QUEUE: "team"})
    assert told(too_many) == [("over_quota", "error", "source")]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"instance_type": "ml.p5.48xlarge"}, "resources.instance_type"),
        ({"instance_group": "workers"}, "resources.instance_group"),
    ],
)
def test_the_option_is_named_that_was_given(given: dict[str, str], field: str) -> None:
    assert told(spec(resources=given)) == [("no_such_node", "warning", field)]


def test_of_two_options_that_one_is_named_for_which_there_is_no_node() -> None:
    both = spec(resources={"instance_type": "ml.g5.xlarge", "instance_group": "workers"})
    nodes = [node("n", 8, **{"node.kubernetes.io/instance-type": "ml.g5.xlarge"})]
    assert told(both, nodes=nodes) == [("no_such_node", "warning", "resources.instance_group")]
