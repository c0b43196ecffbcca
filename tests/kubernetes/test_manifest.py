"""Manifests: the same input gives the same bytes, and each is one that its kind's schema takes."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
import yaml

from hyperpod_jlab.core.config import PodStorage
from hyperpod_jlab.core.errors import DeniedError, InvalidInputError, RefusedError
from hyperpod_jlab.core.instance_types import instance_type
from hyperpod_jlab.core.run_id import RUN_ID as RUN_ID_PATTERN
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS
from hyperpod_jlab.engines.kubernetes.kinds.kind import object_name, to_label_value
from hyperpod_jlab.engines.kubernetes.submit.patch import find_templates
from hyperpod_jlab.engines.kubernetes.submit.render import RenderContext, render
from hyperpod_jlab.engines.kubernetes.submit.resources import instance_findings
from tests.kubernetes.manifest_cases import CASES, GOLDEN, given, place, text
from tests.kubernetes.schemas import complaints

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
"""Of a service (RFC 1035), which is what the operator makes of pods' names."""
_LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?")


def _objects(case: dict[str, Any]) -> list[dict[str, Any]]:
    document = yaml.safe_load(text(case))
    return [document, *place(case).kind.companions(document)]


@pytest.mark.parametrize("name", CASES)
def test_the_manifest_is_the_golden_one(name: str):
    assert text(CASES[name]) == (GOLDEN / f"{name}.yaml").read_text()


def test_every_golden_file_has_a_case():
    assert {file.stem for file in GOLDEN.glob("*.yaml")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_kinds_schema_takes_it(name: str):
    for one in _objects(CASES[name]):
        assert complaints(one) == []


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_a_schema_refuses_what_is_no_field(kind: str):
    document, *_ = _objects({"kind": kind})
    document["spec"]["nope"] = 1
    (complaint,) = complaints(document)
    assert "nope" in complaint


@pytest.mark.parametrize("name", CASES)
def test_labels_are_labels_of_kubernetes(name: str):
    for one in _objects(CASES[name]):
        parts = [one["metadata"], *(template["metadata"] for template in find_templates(one))]
        for value in itertools.chain(*(part.get("labels", {}).values() for part in parts)):
            assert _LABEL.fullmatch(value), value


def test_the_longest_run_id_makes_names_that_work():
    longest = "a" * 40
    assert RUN_ID_PATTERN.fullmatch(longest)
    assert not RUN_ID_PATTERN.fullmatch(longest + "a")
    for suffix in ("-master-0", "-worker-9999", "-node-0-9999-abcde", "-pod-9999", "-code-99"):
        assert _NAME.fullmatch(object_name(longest) + suffix)


@pytest.mark.parametrize(
    ("user", "label"), [("alice", "alice"), ("a@b.org", "a-b.org"), ("_x_", "x"), ("é", ""), ("u" * 80, "u" * 63)]
)
def test_a_users_name_as_a_label(user: str, label: str):
    assert to_label_value(user) == label


def test_a_run_needs_an_image():
    with pytest.raises(RefusedError, match="image") as caught:
        render(given({}), RenderContext("team-a", KINDS[0], PodStorage(claim="fsx-claim")))
    assert caught.value.code == "no_image"


@pytest.mark.parametrize("reference", ["token", "a/b/c", "Upper/key", "a/", "/b", "a/b c"])
def test_a_secrets_reference_is_a_secret_and_a_key(reference: str):
    with pytest.raises(InvalidInputError, match="TOKEN"):
        text({"spec": {"environment": {"secrets": {"TOKEN": reference}}}})


def test_huge_pages_are_not_asked_for_by_themselves():
    asked = {"resources": {"nodes": 2, "gpus_per_node": 8, "instance_type": "ml.p5.48xlarge"}}
    limits = yaml.safe_load(text({"spec": asked}))["spec"]["pytorchReplicaSpecs"]["Master"]
    assert limits["template"]["spec"]["containers"][0]["resources"]["limits"] == {
        "nvidia.com/gpu": "8",
        "vpc.amazonaws.com/efa": "32",
    }


P7 = {"instance_type": "ml.p7.48xlarge", "nodes": 2, "gpus_per_node": 8}
GB200 = {"instance_type": "ml.p6e-gb200.36xlarge", "nodes": 2, "gpus_per_node": 4}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (P7, "ml.p7.48xlarge is not a known instance type: no EFA is requested"),
        ({**P7, "efa": 16}, None),
        (GB200, "the number of EFA interfaces of ml.p6e-gb200.36xlarge on HyperPod is unknown"),
        ({**GB200, "nodes": 1}, None),
        ({**GB200, "efa": 0}, None),
        ({**P7, "instance_type": "ml.p5.48xlarge"}, None),
        ({"nodes": 2, "gpus_per_node": 8}, None),
    ],
)
def test_no_efa_without_a_word(asked, words):
    spec = given({"spec": {"resources": asked}}).spec
    found = [*instance_findings(spec, instance_type(spec.resources.instance_type))]
    assert [(one.code, one.level) for one in found] == ([("unknown_instance_type", "warning")] if words else [])
    assert all(words in one.message and "resources.efa" in (one.hint or "") for one in found)


def test_why_ec2_could_not_be_asked_is_said():
    spec = given({"spec": {"resources": P7}}).spec
    (found,) = instance_findings(spec, DeniedError("you do not have the permission ec2:DescribeInstanceTypes"))
    assert "known instance type (you do not have the permission ec2:DescribeInstanceTypes): no EFA" in found.message


def test_part_of_a_node_gets_no_efa():
    asked = {"resources": {"nodes": 2, "gpus_per_node": 4, "instance_type": "ml.p5.48xlarge"}}
    assert "efa" not in text({"spec": asked})
