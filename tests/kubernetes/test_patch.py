"""A user's patch on a manifest: merged as they mean it, shown, and refused when it takes away what the run needs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hyperpod_jlab.core.errors import RefusedError
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL
from hyperpod_jlab.engines.kubernetes.submit.patch import merged, unified_difference
from tests.kubernetes.manifest_cases import text


# The examples of RFC 7396, appendix A, those with lists of plain values too.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_it_is_a_merge_patch(target: Any, patch: Any, result: Any):
    assert merged(target, patch) == result


_ENV = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ([{"name": "A", "value": "9"}], [{"name": "A", "value": "9"}, _ENV[1]]),
        ([{"name": "C", "value": "3"}], [*_ENV, {"name": "C", "value": "3"}]),
        ([{"name": "A", "$patch": "delete"}], [_ENV[1]]),
        ([], []),
        ([{"value": "1"}], [{"value": "1"}]),
    ],
)
def test_lists_of_things_with_names_are_merged_by_name(patch: Any, result: Any):
    assert merged({"env": _ENV}, {"env": patch}) == {"env": result}


def test_mounts_are_told_apart_by_their_path():
    mounts = [{"name": "x", "mountPath": "/a"}, {"name": "x", "mountPath": "/b"}]
    more = [{"name": "x", "mountPath": "/c"}, {"name": "y", "mountPath": "/a"}]
    assert merged({"m": mounts}, {"m": more})["m"] == [more[1], mounts[1], more[0]]


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
        {"metadata": None},
        {"metadata": {"name": "other"}},
        {"metadata": {"namespace": None}},
        {"metadata": {"labels": {RUN_LABEL: "other"}}},
        {"metadata": {"labels": None}},
        {"spec": None},
        {"spec": {"pytorchReplicaSpecs": {"Master": None}}},
        {"template": None},
        {"template": {"metadata": None}},
        {"template": {"metadata": {"labels": {RUN_LABEL: None}}}},
        {"template": {"spec": None}},
        {"template": {"spec": {_CONTAINER: []}}},
        {"template": {"spec": {_CONTAINER: [{"command": ["sh"]}]}}},
        {"template": {"spec": {_CONTAINER: [{"args": ["x"]}]}}},
        {"template": {"spec": {_CONTAINER: [{"name": "pytorch", "$patch": "delete"}]}}},
        {"template": ["x"]},
        {"spec": {"pytorchReplicaSpecs": {"Master": {"template": {"spec": {_CONTAINER: "x"}}}}}},
        {"spec": "x"},
        {"metadata": {"labels": ["x"]}},
    ],
)
def test_what_the_run_needs_stays(patch: dict[str, Any]):
    with pytest.raises(RefusedError, match="patch") as caught:
        text({"patches": [patch]})
    assert caught.value.detail["field"] == "kubernetes.patch"


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"spec": None}, "^spec in the patch must be a table of fields, not null"),
        ({"spec": 5}, "^spec in the patch must be a table"),
        ({"template": {"spec": None}}, "^template.spec in the patch must be a table"),
        (
            {"template": {"spec": {_CONTAINER: 5}}},
            "^template.spec.containers in the patch must be a list of containers, not 5",
        ),
        (
            {"template": {"spec": {"initContainers": "x"}}},
            "initContainers in the patch must be a list",
        ),
        (
            {"template": {"spec": {_CONTAINER: [5]}}},
            r"^template.spec.containers\[0\] in the patch must be a container, not 5",
        ),
        (
            {"template": {"spec": {"initContainers": [{"name": "a"}, "b"]}}},
            r"^template.spec.initContainers\[1\] in the patch must be a container",
        ),
    ],
)
def test_what_has_the_wrong_shape_is_named(patch: dict[str, Any], said: str):
    with pytest.raises(RefusedError, match=said):
        text({"patches": [patch]})


@pytest.mark.parametrize("kind", ["PyTorchJob", "HyperPodPyTorchJob"])
def test_a_run_whose_nodes_are_counted_cannot_be_made_elastic(kind: str):
    patch = {"spec": {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4}}}
    with pytest.raises(RefusedError, match="fixed number of nodes") as caught:
        text({"kind": kind, "patches": [patch]})
    assert "own manifest" in (caught.value.hint or "")


def test_a_patch_leaves_an_arrays_tasks_as_they_are():
    with pytest.raises(RefusedError, match="completions"):
        text({"kind": "Job", "spec": {"array": "0-3"}, "patches": [{"spec": {"completions": 2}}]})


def test_a_train_job_has_no_template():
    with pytest.raises(RefusedError, match="template") as caught:
        text({"kind": "TrainJob", "patches": [{"template": {}}]})
    assert "podSpecOverrides" in (caught.value.hint or "")
    command = {"spec": {"trainer": {"command": ["sh"]}}}
    with pytest.raises(RefusedError, match="command"):
        text({"kind": "TrainJob", "patches": [command]})


def test_the_difference_names_what_changed():
    changed = unified_difference(text({}), text({"patches": [{"spec": {"nprocPerNode": "2"}}]}))
    lines = changed.splitlines()
    assert [line for line in lines if line[0] in "+-"] == [
        "-  nprocPerNode: '1'",
        "+  nprocPerNode: '2'",
    ]
