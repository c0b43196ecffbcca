"""A user's patch on a manifest: merged as they mean it, shown, and refused when it takes away what the run needs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hyperpod_jlab.core.errors import RefusedError
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL
from hyperpod_jlab.engines.kubernetes.submit.patch import merged, unified_difference
from tests.kubernetes.manifest_cases import text


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": ["b"]}, {"a": ["c"]}, {"a": ["c"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d", "c": None}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"c": [1]}}}, {"a": {"bb": {"c": [1]}}}),
    ],
)
def test_objects_are_merged_and_all_else_is_replaced(target: Any, patch: Any, result: Any):
    assert merged(target, patch, "template") == result


_ENV = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ([{"name": "A", "value": "9"}], [{"name": "A", "value": "9"}, _ENV[1]]),
        ([{"name": "C", "value": "3"}], [*_ENV, {"name": "C", "value": "3"}]),
        ([], []),
        ([{"value": "1"}], [{"value": "1"}]),
    ],
)
def test_lists_of_things_with_names_are_merged_by_name(patch: Any, result: Any):
    assert merged({"env": _ENV}, {"env": patch}, "template") == {"env": result}


def test_mounts_are_told_apart_by_their_path():
    mounts = [{"name": "x", "mountPath": "/a"}, {"name": "x", "mountPath": "/b"}]
    more = [{"name": "x", "mountPath": "/c"}, {"name": "y", "mountPath": "/a"}]
    assert merged({"m": mounts}, {"m": more}, "")["m"] == [more[1], mounts[1], more[0]]


def test_a_template_is_for_all_pods():
    spec = {"volumes": [{"name": "v", "emptyDir": {}}], "serviceAccountName": "trainer"}
    case = {"spec": {"resources": {"nodes": 2}}, "patches": [{"template": {"spec": spec}}]}
    replicas = yaml.safe_load(text(case))["spec"]["pytorchReplicaSpecs"]
    for role in ("Master", "Worker"):
        pod = replicas[role]["template"]["spec"]
        assert pod["serviceAccountName"] == "trainer"
        assert [volume["name"] for volume in pod["volumes"]] == ["partition", "shm", "v"]


def test_patches_come_one_after_the_other():
    patches = [{"metadata": {"labels": {"a": "1", "b": "1"}}}, {"metadata": {"labels": {"a": "2"}}}]
    labels = yaml.safe_load(text({"patches": patches}))["metadata"]["labels"]
    assert (labels["a"], labels["b"]) == ("2", "1")


_CONTAINER = "containers"


@pytest.mark.parametrize(
    "patch",
    [
        {"kind": "Job"},
        {"apiVersion": "v2"},
        {"metadata": {"name": "other"}},
        {"metadata": {"namespace": None}},
        {"metadata": {"labels": {RUN_LABEL: "other"}}},
        {"spec": None},
        {"spec": {"pytorchReplicaSpecs": {"Master": None}}},
        {"spec": {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4}}},
        {"template": {"metadata": {"labels": {RUN_LABEL: None}}}},
        {"template": {"spec": {_CONTAINER: []}}},
        {"template": {"spec": {_CONTAINER: [5]}}},
        {"template": {"spec": {_CONTAINER: [{"command": ["sh"]}]}}},
        {"template": {"spec": {_CONTAINER: [{"args": ["x"]}]}}},
        {"template": {"restartPolicy": "Never"}},
    ],
)
def test_what_the_run_needs_is_for_an_own_manifest(patch: dict[str, Any]):
    with pytest.raises(RefusedError, match=r"^the patch changes ") as caught:
        text({"patches": [patch]})
    assert caught.value.detail["field"] == "kubernetes.patch"
    assert "own manifest" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"metadata": None}, "^metadata in the patch must be a table of fields"),
        ({"metadata": "x"}, "^metadata in the patch must be a table of fields"),
        ({"metadata": {"labels": ["x"]}}, "^metadata.labels in the patch must be a table"),
        ({"template": None}, "^template in the patch must be a table"),
        ({"template": ["x"]}, "^template in the patch must be a table"),
        ({"template": {"metadata": None}}, "^template.metadata in the patch must be a table"),
        ({"template": {"spec": None}}, "^template.spec in the patch must be a table"),
        ({"template": {"spec": {_CONTAINER: 5}}}, "^template.spec.containers in the patch must be a list"),
        (
            {"template": {"spec": {_CONTAINER: [{"env": {"A": "1"}}]}}},
            r"^template.spec.containers\[pytorch\].env in the patch must be a list",
        ),
    ],
)  # fmt: skip
def test_what_has_the_wrong_shape_is_named(patch: dict[str, Any], said: str):
    with pytest.raises(RefusedError, match=said):
        text({"patches": [patch]})


def test_a_train_job_has_no_template():
    with pytest.raises(RefusedError, match="a TrainJob, which has no template"):
        text({"kind": "TrainJob", "patches": [{"template": {}}]})


def test_the_difference_names_what_changed():
    patch = {"metadata": {"annotations": {"team": "vision"}}}
    lines = unified_difference(text({}), text({"patches": [patch]})).splitlines()
    assert [line for line in lines if line[0] in "+-"] == ["+    team: vision"]
