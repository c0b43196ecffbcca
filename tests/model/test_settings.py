"""The configuration as data."""

from __future__ import annotations

import pytest

from hyperpod_jlab.core.config import LocalCluster, Settings
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.validation import parse

SLURM = {"orchestrator": "slurm"}
KUBERNETES = {"orchestrator": "kubernetes"}


def refused(data) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        parse(Settings, data, code="invalid_config")
    assert caught.value.code == "invalid_config"
    return caught.value


@pytest.mark.parametrize(
    "data",
    [{}, {"clusters": {}}, {"clusters": {"local": {}}}, {"clusters": {"a": SLURM}}, {"clusters": {"local": {"orchestrator": "local"}}}],
)  # fmt: skip
def test_local_always_exists_and_comes_first(data):
    settings = parse(Settings, data)
    assert next(iter(settings.clusters)) == "local"
    assert isinstance(settings.clusters["local"], LocalCluster)
    assert settings.default_cluster == "local"


def test_local_is_the_embedded_cluster_and_nothing_else():
    error = refused({"clusters": {"local": SLURM}})
    assert error.detail["field"] == "clusters"
    assert "local" in error.message


def test_a_second_embedded_cluster():
    settings = parse(Settings, {"clusters": {"big": {"orchestrator": "local", "slots": 4}}})
    assert set(settings.clusters) == {"local", "big"}


@pytest.mark.parametrize(
    ("data", "field", "hint"),
    [
        ({"default": "a"}, "default", "did you mean 'default_cluster'?"),
        ({"cluster": {}}, "cluster", "did you mean 'clusters'?"),
        ({"storage": {"pth": "/x"}}, "storage.pth", "did you mean 'path'?"),
        ({"storage": {"sahred": True}}, "storage.sahred", "did you mean 'shared'?"),
        ({"clusters": {"local": {"slot": 1}}}, "clusters.local.slot", "did you mean 'slots'?"),
        ({"clusters": {"local": {"login_node": []}}}, "clusters.local.login_node", "valid: cost, mlflow, orchestrator, python, slots"),
        ({"clusters": {"slurm": {**SLURM, "login_node": []}}}, "clusters.slurm.login_node", "did you mean 'login_nodes'?"),
        ({"clusters": {"ml": {**SLURM, "transprt": "here"}}}, "clusters.ml.transprt", "did you mean 'transport'?"),
        ({"clusters": {"ml": {**SLURM, "namespace": "a"}}}, "clusters.ml.namespace", None),
        ({"clusters": {"python": {**SLURM, "usr": "a"}}}, "clusters.python.usr", "did you mean 'user'?"),
        ({"clusters": {"kubernetes": {**KUBERNETES, "contxt": "a"}}}, "clusters.kubernetes.contxt", "did you mean 'context'?"),
        ({"clusters": {"k": {**KUBERNETES, "storage": {"claim": "c", "subpath": "x"}}}}, "clusters.k.storage.subpath", "did you mean 'sub_path'?"),
        ({"clusters": {"k": {"orchestrator": "slrum"}}}, "clusters.k", "did you mean 'slurm'?"),
        ({"clusters": {"k": {}}}, "clusters.k.orchestrator", "valid: kubernetes, local, slurm"),
        ({"clusters": {"k": {**SLURM, "transport": "shh"}}}, "clusters.k.transport", "did you mean 'ssh'?"),
    ],
)  # fmt: skip
def test_an_unknown_key_at_any_level_is_named_with_the_nearest_valid_one(data, field, hint):
    error = refused(data)
    assert error.detail["field"] == field
    if hint is not None:
        assert error.hint == hint


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"default_cluster": 3}, "default_cluster"),
        ({"default_cluster": "a b"}, "default_cluster"),
        ({"storage": "/fsx"}, "storage"),
        ({"storage": {"shared": "maybe"}}, "storage.shared"),
        ({"clusters": []}, "clusters"),
        ({"clusters": {"local": 3}}, "clusters.local"),
        ({"clusters": {"local": {"slots": 0}}}, "clusters.local.slots"),
        ({"clusters": {"local": {"slots": 10**6}}}, "clusters.local.slots"),
        ({"clusters": {"k": {**KUBERNETES, "storage": {}}}}, "clusters.k.storage.claim"),
        ({"clusters": {"k": {**KUBERNETES, "storage": "x"}}}, "clusters.k.storage"),
        ({"clusters": {"k": {**KUBERNETES, "context": "a", "eks": "b"}}}, "clusters.k"),
    ],
)
def test_a_wrong_value_is_refused_at_its_key(data, field):
    error = refused(data)
    assert error.detail["field"] == field
    assert error.message.startswith(f"{field}: ")


@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "../a", "a\n", "x" * 64, "ä"])
def test_a_cluster_may_not_have_any_name(name):
    error = refused({"clusters": {name: SLURM}})
    assert error.detail["field"].startswith("clusters.")
    assert "must have at most 63 letters" in error.message
