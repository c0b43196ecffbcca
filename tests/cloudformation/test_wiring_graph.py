"""The stack that wires an existing domain: what depends on what, what starts it, and what it tells its functions."""

from __future__ import annotations

import copy
import importlib
import re
from typing import Any

import networkx as nx
import pytest
from cfnlint.template import Template

from testbed.aws.iam import Asked, Policy, decide
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.cloudformation.conftest import BY_JOBS, IMAGE, WIRE, document, statements_of, wired
from tests.cloudformation.patterns import matches
from tests.cloudformation.resolving import ACCOUNT, RefusedError, load

# An event as EventBridge has it from CloudTrail: the envelope by EventBridge's documentation, `detail` a record of CloudTrail's for
# SageMaker's CreateUserProfile, whose members are named as in the API with a small first letter.
EVENT: dict[str, Any] = {
    "version": "0",
    "id": "6f1c1f0e-0000-4000-8000-000000000001",
    "detail-type": "AWS API Call via CloudTrail",
    "source": "aws.sagemaker",
    "account": "123456789012",
    "time": "2026-11-22T20:00:00Z",
    "region": "us-west-2",
    "resources": [],
    "detail": {
        "eventVersion": "1.09",
        "userIdentity": {"type": "AssumedRole", "accountId": "123456789012"},
        "eventTime": "2026-11-22T20:00:00Z",
        "eventSource": "sagemaker.amazonaws.com",
        "eventName": "CreateUserProfile",
        "awsRegion": "us-west-2",
        "requestParameters": {"domainId": DOMAIN, "userProfileName": "dora", "tags": []},
        "responseElements": {"userProfileArn": f"arn:aws:sagemaker:us-west-2:123456789012:user-profile/{DOMAIN}/dora"},
        "requestID": "6f1c1f0e-0000-4000-8000-000000000002",
        "eventID": "6f1c1f0e-0000-4000-8000-000000000003",
        "readOnly": False,
        "eventType": "AwsApiCall",
        "managementEvent": True,
        "recipientAccountId": "123456789012",
    },
}

SPACE = {"domainId": DOMAIN, "spaceName": "dora-work"}


@pytest.fixture(scope="module")
def graph():
    """What each thing of the template refers to or waits for."""
    return Template(None, load("wire-domain.yaml"), ["us-west-2"]).graph.graph


def before(graph, name):
    """All that has to be there before a thing is made, and stays until it is gone."""
    return nx.descendants(graph, name)


def test_the_wiring_has_its_rights_first_and_until_it_is_taken_back(graph):
    needed = before(graph, "Wiring")
    assert {"WiringFunction", "FunctionRole", "FunctionAccess", "WiringLog"} <= needed
    # Policies are parts of the role: none can be gone before it.
    assert not {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"} & {
        one["Type"] for one in load("wire-domain.yaml")["Resources"].values()
    }
    assert "FunctionRole" in before(graph, "FunctionAccess")


def test_nothing_wires_again_behind_the_back_of_a_stack_that_is_deleted(graph):
    for name in ("NewProfileRule", "NewProfileSource", "ReconcileRule", "ReconcilePermission"):
        assert "Wiring" in before(graph, name)
    # The functions know the new mode before the change of mode is applied.
    assert {"NewProfileFunction", "ReconcileFunction"} <= before(graph, "Wiring")


def test_there_is_no_circle(graph):
    assert nx.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize("mode", ["shared", "per-user"])
@pytest.mark.parametrize("folders", [{"Folders": "timer"}, BY_JOBS])
def test_what_the_functions_are_told(mode, folders):
    stack = wired(PartitionMode=mode, ClusterUser="1000", **folders)
    told = {
        "DomainId": DOMAIN,
        "ClusterName": "ml-cluster",
        "FileSystemId": FILE_SYSTEM,
        "PartitionMode": mode,
        "SharedPath": "/shared",
        "TakeOver": "false",
        "Folders": folders["Folders"],
        "ClusterUser": "1000",
        "Namespace": "hyperpod-jlab",
        "ClaimName": "fsx-claim",
        "Image": folders.get("Image", ""),
    }
    (wiring,) = stack.of_type("Custom::HyperPodStudioWiring").values()
    assert {name: wiring[name] for name in told} == told
    assert wiring["Reconciled"] == "true"
    assert wiring["ServiceToken"].endswith(":function:wiring-WiringFunction")
    as_variables = {"HPJ_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper(): value for name, value in told.items()}
    for name in ("NewProfileFunction", "ReconcileFunction"):
        assert stack.properties(name)["Environment"]["Variables"] == as_variables
    entries = stack.of_type("AWS::EKS::AccessEntry")
    assert bool(entries) is (folders["Folders"] == "kubernetes")


def test_access_to_kubernetes_is_of_one_namespace_or_by_a_group():
    (entry,) = wired(**BY_JOBS, Namespace="folders").of_type("AWS::EKS::AccessEntry").values()
    assert entry["PrincipalArn"].endswith(":role/wiring-FunctionRole")
    (policy,) = entry["AccessPolicies"]
    assert policy["AccessScope"] == {"Type": "namespace", "Namespaces": ["folders"]}
    assert policy["PolicyArn"].endswith("/AmazonEKSEditPolicy")
    (entry,) = wired(**BY_JOBS, KubernetesGroup="folders").of_type("AWS::EKS::AccessEntry").values()
    assert entry["KubernetesGroups"] == ["folders"]
    assert "AccessPolicies" not in entry


def changed(**detail):
    event = copy.deepcopy(EVENT)
    event["detail"].update(detail)
    return event


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (EVENT, True),
        (changed(requestParameters={"domainId": "d-other", "userProfileName": "dora"}), False),
        (changed(requestParameters=None), False),
        (changed(eventName="DeleteUserProfile"), False),
        (changed(eventName="CreateSpace", requestParameters=SPACE), True),
        (changed(eventName="CreateSpace", requestParameters={**SPACE, "domainId": "d-x"}), False),
        (changed(eventName="CreateSpace", requestParameters=SPACE, errorCode="x"), False),
        (changed(eventName="DeleteApp", requestParameters={**SPACE, "appName": "default"}), True),
        (changed(eventName="UpdateSpace", requestParameters=SPACE), False),
        (changed(errorCode="AccessDenied", errorMessage="no"), False),
        ({**EVENT, "source": "aws.ec2"}, False),
        ({**EVENT, "detail-type": "SageMaker Domain State Change"}, False),
    ],
)
def test_the_rule_takes_new_profiles_and_spaces_of_this_domain_only(event, expected):
    assert matches(wired().properties("NewProfileRule")["EventPattern"], event) is expected


def test_the_rule_and_the_function_know_the_same_calls():
    pattern = wired().properties("NewProfileRule")["EventPattern"]
    new_profile = importlib.import_module("hyperpod_jlab.admin.lambdas.new_profile")
    assert set(pattern["detail"]["eventName"]) == set(new_profile.EVENTS)


def test_from_event_to_function_and_what_becomes_of_failures():
    stack = wired()
    rule, source = stack.properties("NewProfileRule"), stack.properties("NewProfileSource")
    (target,) = rule["Targets"]
    queue, dead = (f"arn:aws:sqs:us-west-2:123456789012:wiring-{one}" for one in ("NewProfiles", "DeadLetters"))
    assert (target["Arn"], source["EventSourceArn"]) == (queue, queue)
    assert source["FunctionName"] == "wiring-NewProfileFunction"
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    redrive = stack.properties("NewProfiles")["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"] == target["DeadLetterConfig"]["Arn"] == dead
    function = stack.properties("NewProfileFunction")
    assert stack.properties("NewProfiles")["VisibilityTimeout"] >= 6 * function["Timeout"]
    assert function["ReservedConcurrentExecutions"] >= source["ScalingConfig"]["MaximumConcurrency"]
    (allowed, _) = stack.properties("QueuePolicy")["PolicyDocument"]["Statement"]
    sources = allowed["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert [one.rpartition("/")[2] for one in sources] == ["wiring-NewProfileRule", "wiring-ReconcileRule"]
    alarm = stack.properties("NotWired")
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": "DeadLetters.QueueName"}]


def test_one_reconciliation_at_a_time_where_the_account_can_reserve():
    assert wired().properties("ReconcileFunction")["ReservedConcurrentExecutions"] == 1
    none = wired(ReserveConcurrency="false").properties("ReconcileFunction")
    assert "ReservedConcurrentExecutions" not in none


def test_a_key_and_a_topic():
    key = "arn:aws:kms:us-west-2:123456789012:key/1"
    topic = "arn:aws:sns:us-west-2:123456789012:admins"
    stack = wired(KmsKeyArn=key, AlarmTopicArn=topic)
    for queue in stack.of_type("AWS::SQS::Queue").values():
        assert queue["KmsMasterKeyId"] == key
        assert "SqsManagedSseEnabled" not in queue
    assert {one["KmsKeyId"] for one in stack.of_type("AWS::Logs::LogGroup").values()} == {key}
    assert {tuple(one["AlarmActions"]) for one in stack.of_type("AWS::CloudWatch::Alarm").values()} == {(topic,)}
    plain = wired()
    assert all(queue["SqsManagedSseEnabled"] for queue in plain.of_type("AWS::SQS::Queue").values())
    assert not any("AlarmActions" in one for one in plain.of_type("AWS::CloudWatch::Alarm").values())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"DomainId": "example"}, "DomainId"),
        ({"FileSystemId": "fs-xyz"}, "FileSystemId"),
        ({"PartitionMode": "private"}, "PartitionMode"),
        ({"SharedPath": "shared"}, "SharedPath"),
        ({"SharedPath": "/"}, "SharedPath"),
        ({"SharedPath": "/a/../b"}, "SharedPath"),
        ({"SharedPath": "/shared; rm -rf /"}, "SharedPath"),
        ({**BY_JOBS, "Image": IMAGE.partition("@")[0] + ":latest"}, "Image"),
        ({**BY_JOBS, "Image": ""}, "name the Job's image"),
        ({**BY_JOBS, "EksClusterName": ""}, "name the EKS cluster"),
        ({"Folders": "cluster"}, "Folders"),
        ({"PackageVersion": "../evil"}, "PackageVersion"),
        ({"ReconcileSchedule": "hourly"}, "ReconcileSchedule"),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_made(given, words):
    with pytest.raises(RefusedError, match=words):
        wired(**given)


def test_what_has_no_default_is_asked_for():
    declared = load("wire-domain.yaml")["Parameters"]
    assert {name for name, one in declared.items() if "Default" not in one} == set(WIRE)


def test_the_next_commands():
    outputs = wired(PartitionMode="per-user", Folders="timer").outputs
    assert outputs["Next"] == (
        f"hpj admin status --region us-west-2 --domain {DOMAIN} --file-system {FILE_SYSTEM} "
        "--partition-mode per-user --shared-path /shared"
    )
    assert "--mounted-at /fsx --yes" in outputs["FoldersNext"]
    outputs = wired(ClusterUser="1000", Folders="timer").outputs
    assert "--mounted-at /fsx --cluster-user 1000 --yes" in outputs["FoldersNext"]
    assert "FoldersNext" not in wired(Folders="none").outputs


def test_the_handlers_are_there():
    """By name, as Lambda finds them."""
    for function in wired().of_type("AWS::Lambda::Function").values():
        module, _, name = function["Handler"].rpartition(".")
        assert callable(getattr(importlib.import_module(module), name))


def test_the_functions_know_what_they_are_told():
    settings = importlib.import_module("hyperpod_jlab.admin.lambdas.settings")
    stack = wired(**BY_JOBS)
    told = set(stack.properties("Wiring")) - {"ServiceToken", "ServiceTimeout"}
    assert told == set(settings.PROPERTIES)
    for name in ("NewProfileFunction", "ReconcileFunction"):
        assert set(stack.properties(name)["Environment"]["Variables"]) == set(settings.VARIABLES)


@pytest.mark.parametrize("function", ["custom_resource", "new_profile", "reconcile"])
def test_what_the_functions_call_their_role_allows(function):
    rights = importlib.import_module("hyperpod_jlab.admin.lambdas.settings")
    by_jobs = Policy(document(statements_of(wired(**BY_JOBS), "FunctionRole")))
    places = {"partition": "aws", "region": "us-west-2", "account": ACCOUNT, "domain": DOMAIN}
    for one in rights.rights(function):
        resource = one.resource.format(**places)
        if resource != "*":
            resource = resource.replace("*", BY_JOBS["EksClusterName"])
        asked = Asked(one.action, resource, {"aws:TagKeys": ("hyperpod-jlab",)})
        assert decide((by_jobs,), asked).allowed, asked
