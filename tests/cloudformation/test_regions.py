"""Templates and all regions: their schemas are the same wherever cfn-lint knows the types, so linting them in one region is linting them in all."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest

from tests.cloudformation.resolving import FOLDER, load

PROVIDERS = files("cfnlint.data") / "schemas" / "providers"
REGIONS = {
    path.name.removesuffix(".json"): json.loads(path.read_text(encoding="utf-8"))
    for path in PROVIDERS.iterdir()
    if path.name.endswith(".json") and path.name != "sam.json"
}
TEMPLATES = sorted(path.name for path in FOLDER.glob("*.yaml"))


def types(name):
    return {one["Type"] for one in load(name)["Resources"].values() if one["Type"].startswith("AWS::")}


def missing():
    """Types by the regions that have none."""
    return {
        (region, kind)
        for name in TEMPLATES
        for kind in types(name) - {"AWS::Budgets::Budget"}  # it belongs to no region
        for region, known in REGIONS.items()
        if kind not in known
    }


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_schemas_are_the_same_everywhere(name):
    assert len(REGIONS) >= 40
    for kind in types(name):
        assert len({str(known[kind]) for known in REGIONS.values() if kind in known}) == 1, kind


def test_where_a_template_cannot_be_used_is_said():
    said = (FOLDER / "README.md").read_text(encoding="utf-8")
    for region, _ in missing():
        assert f"`{region}`" in said, region
    # Only the new domain needs what is missing there.
    assert {kind for _, kind in missing()} <= {"AWS::SageMaker::Domain", "AWS::FSx::FileSystem"}


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_parameter_is_explained_and_in_a_group(name):
    template = load(name)
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [one for group in groups for one in group["Parameters"]]
    assert sorted(grouped) == sorted(template["Parameters"])
    for parameter, one in template["Parameters"].items():
        assert one["Description"].endswith("."), parameter
        limited = {"AllowedPattern", "AllowedValues"} & set(one)
        assert limited or one["Type"] != "String", parameter
    assert all(one.get("Description") for one in template["Outputs"].values())


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_partition_and_no_region_is_written_down(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert not re.findall(r"^(?!.*(Description|AllowedPattern|ConstraintDescription)).*arn:aws[:-]", text, re.MULTILINE)
    assert "us-east-1" not in text
