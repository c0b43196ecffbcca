"""The template for a new domain: what is made for Slurm and for EKS, with a new file system and with one that is there, shared and per user."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from cfnlint.template import Template

from hyperpod_jlab.aws.errors import ENDPOINTS
from hyperpod_jlab.aws.permissions import FEATURES
from tests.cloudformation.conftest import IMAGE
from tests.cloudformation.resolving import RefusedError, load, resolve

ROOT = Path(__file__).resolve().parents[2]
GROUP = "sg-0123456789abcdef0"
NEW: dict[str, Any] = {
    "VpcId": "vpc-1",
    "VpcCidr": "10.0.0.0/16",
    "SubnetIds": "subnet-1,subnet-2",
    "ClusterName": "ml-cluster",
    "ClusterSecurityGroupId": GROUP,
    "PackageBucket": "packages-of-mine",
}
EKS = {"EksClusterName": "research", "Namespaces": "team-a"}
THERE = {"FileSystemId": "fs-0123456789abcdef0"}


def made(**more: Any):
    return resolve("new-domain.yaml", **{**NEW, **more})


def nested(stack, name):
    """A nested stack as it is resolved with what the outer one gives it."""
    given = stack.properties(name)
    return resolve(given["TemplateURL"], **_as_made(given["Parameters"]))


def _as_made(parameters):
    """What is known only once it is made gets a value of its kind."""
    known = {"wiring-Domain": "d-made", "wiring-FileSystem": "fs-0fedcba9876543210"}
    return {name: known.get(value, value) for name, value in parameters.items()}


@pytest.mark.parametrize("mode", ["shared", "per-user"])
@pytest.mark.parametrize("file_system", [{}, THERE])
@pytest.mark.parametrize("cluster", [{}, EKS])
def test_all_of_it_in_every_combination(mode, file_system, cluster):
    stack = made(PartitionMode=mode, **file_system, **cluster)
    assert bool(stack.of_type("AWS::FSx::FileSystem")) is not bool(file_system)
    wiring = nested(stack, "Wiring").properties("Wiring")
    assert wiring["PartitionMode"] == mode
    assert wiring["DomainId"] == "d-made"
    assert wiring["FileSystemId"] == file_system.get("FileSystemId", "fs-0fedcba9876543210")
    roles = nested(stack, "Roles")
    assert bool(roles.of_type("AWS::EKS::AccessEntry")) is bool(cluster)
    ports = {
        one["FromPort"] for one in stack.of_type("AWS::EC2::SecurityGroupIngress").values() if one["GroupId"] == GROUP
    }
    assert ports == ({443} if cluster else {22, 6817})


def test_the_domain():
    stack = made()
    domain = stack.properties("Domain")
    assert domain["AppNetworkAccessType"] == "VpcOnly"
    assert domain["SubnetIds"] == ["subnet-1", "subnet-2"]
    for settings in ("DefaultUserSettings", "DefaultSpaceSettings"):
        assert domain[settings]["ExecutionRole"] == "Roles.Outputs.UserRoleArn"
        # These are the wiring's to write: what stood here would be set back by an update of the stack.
        assert "CustomFileSystemConfigs" not in domain[settings]
    assert "JupyterLabAppSettings" not in domain["DefaultUserSettings"]


def test_lifecycle_configurations_are_the_default():
    arn = "arn:aws:sagemaker:us-west-2:123456789012:studio-lifecycle-config/{}"
    lab, editor = arn.format("lab"), arn.format("editor")
    stack = made(JupyterLabLifecycleConfigArn=lab, CodeEditorLifecycleConfigArn=editor)
    domain = stack.properties("Domain")
    for settings, app, name in (
        ("DefaultUserSettings", "JupyterLabAppSettings", lab),
        ("DefaultUserSettings", "CodeEditorAppSettings", editor),
        ("DefaultSpaceSettings", "JupyterLabAppSettings", lab),
    ):
        assert domain[settings][app] == {
            "LifecycleConfigArns": [name],
            "DefaultResourceSpec": {"LifecycleConfigArn": name},
        }


def test_a_new_file_system_stays_and_lets_lustre_in_from_the_cluster():
    stack = made()
    for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
        assert stack.resources["FileSystem"][policy] == "Retain"
    group = stack.properties("FileSystem")["SecurityGroupIds"]
    rules = [
        (one["FromPort"], one["ToPort"], one["SourceSecurityGroupId"])
        for one in stack.of_type("AWS::EC2::SecurityGroupIngress").values()
        if one["GroupId"] in group
    ]
    assert sorted(rules) == [(988, 988, GROUP), (988, 1023, *group), (1018, 1023, GROUP)]
    assert stack.properties("FileSystem")["SubnetIds"] == ["subnet-1"]
    assert stack.outputs["FileSystemMount"] == "FileSystem.DNSName@tcp:/FileSystem.LustreMountName"


NOT_OF_FEATURES = {
    "sts": "credentials",
    "sagemaker.runtime": "Studio itself asks for it in a VPC without a way out",
    "ecr.api": "images",
    "ecr.dkr": "images",
    "ssmmessages": "sessions of Systems Manager",
    "eks-auth": "identities of pods",
}
"""Endpoints that no feature calls, and what for."""

WITHOUT = {"iam", "sagemaker-mlflow", "pricing"}
"""IAM has no endpoint in a VPC, and is asked by admins only; that of MLflow is not in every region, and made by hand (docs/mlflow.md); that of prices is in a few regions only, whatever the domain's."""

OF_EKS = {"eks", "eks-auth"}


def services_called():
    """What the features call that roles have, and the scripts that prepare a space."""
    features = [one for one in FEATURES if one.name != "admin-facts"]
    called = {one.action.partition(":")[0] for feature in features for one in feature.permissions}
    for script in (ROOT / "lifecycle-configs").rglob("*.sh"):
        called |= set(re.findall(r"^[^#]*\baws ([a-z0-9]+) [a-z]", script.read_text(), re.MULTILINE))
    return called


def needed():
    return {ENDPOINTS.get(one, one) for one in services_called() - WITHOUT} | set(NOT_OF_FEATURES)


ALWAYS = needed() - OF_EKS - {"s3"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, set()),
        ({"CreateEndpoints": "true"}, ALWAYS),
        ({"CreateEndpoints": "true", "RouteTableIds": "rtb-1"}, ALWAYS | {"s3"}),
        ({"CreateEndpoints": "true", **EKS}, ALWAYS | OF_EKS),
        ({"RouteTableIds": "rtb-1", **EKS}, set()),
    ],
)
def test_endpoints_are_those_of_what_is_called(given, expected):
    made_for = made(**given).of_type("AWS::EC2::VPCEndpoint").values()
    assert {one["ServiceName"].removeprefix("com.amazonaws.us-west-2.") for one in made_for} == expected
    assert all(one.get("PrivateDnsEnabled", True) for one in made_for)


def test_folders_by_jobs_and_functions_where_eks_is_reached():
    stack = made(**EKS, Folders="kubernetes", Image=IMAGE, FoldersKubernetesGroup="folders")
    wiring = nested(stack, "Wiring")
    (entry,) = wiring.of_type("AWS::EKS::AccessEntry").values()
    assert (entry["ClusterName"], entry["KubernetesGroups"]) == ("research", ["folders"])
    network = wiring.properties("ReconcileFunction")["VpcConfig"]
    assert network["SubnetIds"] == ["subnet-1", "subnet-2"]
    assert "VpcConfig" not in nested(made(), "Wiring").properties("ReconcileFunction")
    with pytest.raises(RefusedError, match="name the EKS cluster"):
        made(Folders="kubernetes", Image=IMAGE)


def test_rights_come_first_and_the_wiring_goes_first():
    graph = Template(None, load("new-domain.yaml"), ["us-west-2"]).graph.graph
    assert {"Domain", "FileSystem", "Roles", "StudioGroup"} <= nx.descendants(graph, "Wiring")
    assert "Roles" in nx.descendants(graph, "Domain")
    assert nx.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize("name", ["Roles", "Wiring"])
def test_what_nested_templates_are_given_they_know(name):
    given = load("new-domain.yaml")["Resources"][name]["Properties"]
    declared = load(given["TemplateURL"])["Parameters"]
    assert set(given["Parameters"]) <= set(declared)
    # The same word has the same meaning and the same limits in both.
    for parameter, one in load("new-domain.yaml")["Parameters"].items():
        if parameter in declared and parameter in {"PartitionMode", "SharedPath", "Folders", "Image"}:
            assert one.get("AllowedPattern") == declared[parameter].get("AllowedPattern")
            assert one.get("AllowedValues") == declared[parameter].get("AllowedValues")
            assert one.get("Default") == declared[parameter].get("Default")


@pytest.mark.parametrize(
    "given",
    [
        {"VpcCidr": "everywhere"},
        {"VpcCidr": "0.0.0.0/0"},
        {"FileSystemId": "fsx"},
        {"StorageCapacity": 1000},
        {"JupyterLabLifecycleConfigArn": "lab"},
        {"AllowTerminal": "yes"},
        {"Folders": "cluster"},
    ],
)
def test_bad_parameters(given):
    with pytest.raises(RefusedError, match=next(iter(given))):
        made(**given)
