"""Our rules: each finds the template that breaks it, and leaves the one that does not alone; our templates break none."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from cfnlint.core import get_rules
from cfnlint.decode.cfn_yaml import loads
from cfnlint.template import Template

from tests.cloudformation.resolving import FOLDER

RULES = get_rules([str(FOLDER / "rules")], [], [])
OURS = sorted(one.id for one in RULES.rules.values() if one.id.startswith("E90"))


def broken(text):
    """Ids of our rules that a template breaks."""
    template = Template(None, loads(textwrap.dedent(text)))
    return sorted({one.id for name in OURS for one in _matches(RULES.rules[name], template)})


def _matches(rule, template):
    return [rule for _ in rule.match(template)]


POLICY = """
Resources:
  Policy:
    Type: AWS::IAM::ManagedPolicy
    Metadata: { hyperpod-jlab: { AnyResource: { %s } } }
    Properties:
      PolicyDocument:
        Version: '2012-10-17'
        Statement:
          - { Effect: Allow, %s }
"""
ROLE = """
Resources:
  Role:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: '2012-10-17'
        Statement:
          - { Effect: Allow, Action: 'sts:AssumeRole', %s }
"""
QUEUE = """
Resources:
  Queue:
    Type: AWS::SQS::Queue
    %s
    Properties: { %s }
"""
FUNCTION = """
Resources:
  Function:
    Type: AWS::Lambda::Function
    Properties: { Runtime: python3.12, %s }
%s
"""
NOT_BOOL = ("LoggingConfig: { LogGroup: x }", "DeadLetterConfig: { TargetArn: x }", "ReservedConcurrentExecutions: 1")
SOURCE = """
  Source:
    Type: AWS::Lambda::EventSourceMapping
    Properties: { FunctionName: { Ref: Function } }
"""
FILE_SYSTEM = """
Resources:
  Data:
    Type: %s
    %s
"""
GROUP = """
Resources:
  Group:
    Type: AWS::EC2::SecurityGroup
    Properties: { GroupDescription: x, %s }
"""
INGRESS = """
Resources:
  Rule:
    Type: AWS::EC2::SecurityGroupIngress
    Properties: { IpProtocol: tcp, %s }
"""
PARAMETER = """
Parameters:
  %s: { Type: String, %s }
Resources: {}
"""
NO_EGRESS = "SecurityGroupEgress: []"
ENCRYPTED = "SqsManagedSseEnabled: true"
DLQ = "Metadata: { hyperpod-jlab: { DeadLetterQueue: it is one } }"
HERE = "Condition: { StringEquals: { 'aws:SourceAccount': '1' } }"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # actions
        (POLICY % ("", "Action: 's3:Get*', Resource: 'arn:aws:s3:::b'"), ["E9001"]),
        (POLICY % ("", "Action: ['*'], Resource: 'arn:aws:s3:::b'"), ["E9001"]),
        (POLICY % ("", "NotAction: 's3:GetObject', Resource: 'arn:aws:s3:::b'"), ["E9001"]),
        (POLICY % ("", "Action: 's3:GetObject', Resource: 'arn:aws:s3:::b'"), []),
        # resources
        (POLICY % ("", "Action: 's3:ListAllMyBuckets', Resource: '*'"), ["E9002"]),
        (POLICY % ("'s3:ListAllMyBuckets': ''", "Action: 's3:ListAllMyBuckets', Resource: '*'"), ["E9002"]),
        (POLICY % ("'s3:ListAllMyBuckets': it has none", "Action: 's3:ListAllMyBuckets', Resource: '*'"), []),
        (POLICY % ("'s3:ListAllMyBuckets': it has none", "Action: 's3:GetObject', Resource: 'arn:aws:s3:::b'"), ["E9002"]),
        (POLICY % ("", "Action: 'fsx:DeleteFileSystem', Resource: { 'Fn::Sub': 'arn:${AWS::Partition}:fsx:${AWS::Region}:${AWS::AccountId}:*' }"), ["E9002"]),
        (POLICY % ("", "Action: 's3:GetObject', NotResource: 'arn:aws:s3:::b'"), ["E9002"]),
        (POLICY % ("", "Action: 's3:GetObject', Resource: { 'Fn::If': [X, '*', 'arn:aws:s3:::b'] }"), ["E9002"]),
        # trust
        (ROLE % "Principal: '*'", ["E9003"]),
        (ROLE % "Principal: { AWS: '*' }", ["E9003"]),
        (ROLE % "Principal: { AWS: { 'Fn::Sub': 'arn:aws:iam::${AWS::AccountId}:root' } }", ["E9003"]),
        (ROLE % "Principal: { AWS: 'arn:aws:iam::123456789012:role/Admin' }", []),
        (ROLE % "Principal: { Service: sagemaker.amazonaws.com }", ["E9003"]),
        (ROLE % f"Principal: {{ Service: sagemaker.amazonaws.com }}, {HERE}", []),
        (ROLE % "Principal: { Service: lambda.amazonaws.com }", []),
        (ROLE % "NotPrincipal: { AWS: 'arn:aws:iam::123456789012:role/Admin' }", ["E9003"]),
        # queues
        (QUEUE % ("", ENCRYPTED), ["E9004"]),
        (QUEUE % ("", f"{ENCRYPTED}, RedrivePolicy: {{}}"), []),
        (QUEUE % (DLQ, ENCRYPTED), []),
        (QUEUE % (DLQ, ""), ["E9006"]),
        (QUEUE % (DLQ, "SqsManagedSseEnabled: false"), ["E9006"]),
        (QUEUE % (DLQ, "KmsMasterKeyId: { Ref: Key }"), []),
        # functions
        (FUNCTION % (", ".join(NOT_BOOL), ""), []),
        (FUNCTION % (", ".join(NOT_BOOL[1:]), ""), ["E9005"]),
        (FUNCTION % (", ".join((NOT_BOOL[0], NOT_BOOL[2])), ""), ["E9004"]),
        (FUNCTION % (", ".join((NOT_BOOL[0], NOT_BOOL[2])), SOURCE), []),
        (FUNCTION % (", ".join(NOT_BOOL[:2]), ""), ["E9010"]),
        ("Resources: { P: { Type: 'AWS::Lambda::Permission', Properties: { Principal: events.amazonaws.com } } }", ["E9003"]),
        ("Resources: { R: { Type: 'AWS::Events::Rule', Properties: { Targets: [{ Id: a, Arn: b }] } } }", ["E9004"]),
        # logs, data, topics
        ("Resources: { L: { Type: 'AWS::Logs::LogGroup', Properties: {} } }", ["E9005"]),
        ("Resources: { L: { Type: 'AWS::Logs::LogGroup', Properties: { RetentionInDays: 7 } } }", []),
        ("Resources: { T: { Type: 'AWS::SNS::Topic', Properties: {} } }", ["E9006"]),
        (FILE_SYSTEM % ("AWS::FSx::FileSystem", ""), ["E9007"]),
        (FILE_SYSTEM % ("AWS::FSx::FileSystem", "DeletionPolicy: Retain"), ["E9007"]),
        (FILE_SYSTEM % ("AWS::FSx::FileSystem", "DeletionPolicy: Delete\n    UpdateReplacePolicy: Retain"), ["E9007"]),
        (FILE_SYSTEM % ("AWS::FSx::FileSystem", "DeletionPolicy: Retain\n    UpdateReplacePolicy: Retain"), []),
        # groups
        (GROUP % "Tags: []", ["E9008"]),
        (GROUP % NO_EGRESS, []),
        (GROUP % f"{NO_EGRESS}, SecurityGroupIngress: [{{ IpProtocol: tcp, CidrIp: 0.0.0.0/0 }}]", ["E9008"]),
        (GROUP % f"{NO_EGRESS}, SecurityGroupIngress: [{{ IpProtocol: tcp, CidrIpv6: '::/0' }}]", ["E9008"]),
        (GROUP % "SecurityGroupEgress: [{ IpProtocol: '-1', CidrIp: 0.0.0.0/0 }]", ["E9008"]),
        (GROUP % "SecurityGroupEgress: [{ IpProtocol: tcp, CidrIp: 0.0.0.0/0 }]", []),
        (INGRESS % "CidrIp: 0.0.0.0/0", ["E9008"]),
        (INGRESS % "CidrIp: 10.0.0.0/8", []),
        # secrets
        (PARAMETER % ("MungeKey", "Description: x"), ["E9009"]),
        (PARAMETER % ("DatabasePassword", "NoEcho: true, Default: secret"), ["E9009"]),
        (PARAMETER % ("DatabasePassword", "NoEcho: true"), []),
        (PARAMETER % ("TokenSecretArn", "Description: x"), []),
    ],
)  # fmt: skip
def test_a_rule_finds_what_breaks_it_and_no_more(text, expected):
    assert broken(text) == expected


def test_every_rule_of_ours_is_broken_above():
    marks = test_a_rule_finds_what_breaks_it_and_no_more.pytestmark
    seen = {name for mark in marks for _, expected in mark.args[1] for name in expected}
    assert seen == set(OURS)
    assert len(OURS) == 10


@pytest.mark.local
def test_cfn_lint_asks_our_rules_and_our_templates_break_none(tmp_path):
    root = FOLDER.parent
    command = (str(Path(sys.executable).with_name("cfn-lint")), "--regions", "us-east-1")
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    wrong = tmp_path / "open.yaml"
    text = (FOLDER / "new-domain.yaml").read_text(encoding="utf-8")
    wrong.write_text(text.replace("CidrIp: !Ref VpcCidr", "CidrIp: 0.0.0.0/0"), encoding="utf-8")
    done = subprocess.run((*command, "--", str(wrong)), cwd=root, capture_output=True, text=True)
    assert done.returncode != 0
    assert "E9008 it is let in from everywhere" in done.stdout
