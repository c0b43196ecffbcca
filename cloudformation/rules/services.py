"""Rules on queues, functions, logs, data, networks and parameters, in the manner of cfn-nag."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.template import Template

Path = list[str | int]


def _of(cfn: Template, kind: str) -> Iterator[tuple[str, Mapping[str, Any], Path]]:
    """Each resource of a type: its name, its properties, the path to them."""
    for name, resource in cfn.get_resources(kind).items():
        yield name, resource.get("Properties") or {}, ["Resources", name, "Properties"]


class DeadLetters(CloudFormationLintRule):
    """What fails for good is kept somewhere."""

    id = "E9004"
    shortdesc = "What cannot be delivered or done goes to a dead-letter queue"
    description = (
        "Queues have a RedrivePolicy (or say in Metadata: hyperpod-jlab: DeadLetterQueue that they are one), targets of rules and functions that "
        "are called without waiting have a DeadLetterConfig."
    )
    tags = ("hyperpod-jlab", "sqs", "lambda", "events")

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Queues, targets and functions without one."""
        found = []
        for name, given, path in _of(cfn, "AWS::SQS::Queue"):
            metadata = cfn.get_resources()[name].get("Metadata") or {}
            if "RedrivePolicy" not in given and not (metadata.get("hyperpod-jlab") or {}).get("DeadLetterQueue"):
                found.append(RuleMatch(path, "the queue has no RedrivePolicy"))
        for _, given, path in _of(cfn, "AWS::Events::Rule"):
            for at, target in enumerate(given.get("Targets") or ()):
                if "DeadLetterConfig" not in target:
                    found.append(RuleMatch([*path, "Targets", at], "the target has no DeadLetterConfig"))
        polled = {
            (given.get("FunctionName") or {}).get("Ref")
            for _, given, _ in _of(cfn, "AWS::Lambda::EventSourceMapping")
            if isinstance(given.get("FunctionName"), Mapping)
        }
        for name, given, path in _of(cfn, "AWS::Lambda::Function"):
            if "DeadLetterConfig" not in given and name not in polled:
                found.append(RuleMatch(path, "the function has no DeadLetterConfig"))
        return found


class Logs(CloudFormationLintRule):
    """Logs are kept for a time that somebody chose."""

    id = "E9005"
    shortdesc = "Logs have a retention, and functions a log of their own"
    description = "Log groups have RetentionInDays; functions write to a log group of the template."
    tags = ("hyperpod-jlab", "logs", "lambda")

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Log groups without an end, and functions that make one."""
        found = [
            RuleMatch(path, "the log group has no RetentionInDays: it is kept for ever")
            for _, given, path in _of(cfn, "AWS::Logs::LogGroup")
            if "RetentionInDays" not in given
        ]
        for _, given, path in _of(cfn, "AWS::Lambda::Function"):
            if "LogGroup" not in (given.get("LoggingConfig") or {}):
                words = "the function makes a log group of its own, which is kept for ever: LoggingConfig"
                found.append(RuleMatch(path, words))
        return found


class Encryption(CloudFormationLintRule):
    """What is stored is encrypted."""

    id = "E9006"
    shortdesc = "What is stored is encrypted"
    description = "Queues, topics, buckets and file systems of EFS name their encryption."
    tags = ("hyperpod-jlab", "sqs", "sns", "s3", "efs")

    places: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "AWS::SQS::Queue": ("SqsManagedSseEnabled", "KmsMasterKeyId"),
        "AWS::SNS::Topic": ("KmsMasterKeyId",),
        "AWS::S3::Bucket": ("BucketEncryption",),
        "AWS::EFS::FileSystem": ("Encrypted",),
    }

    def match(self, cfn: Template) -> list[RuleMatch]:
        """What names none."""
        return [
            RuleMatch(path, f"it is not encrypted: {' or '.join(names)}")
            for kind, names in self.places.items()
            for _, given, path in _of(cfn, kind)
            if all(given.get(name) in (None, False, "false") for name in names)
        ]


class Data(CloudFormationLintRule):
    """What people made outlives the stack."""

    id = "E9007"
    shortdesc = "Data stay when the stack goes"
    description = "File systems and buckets have DeletionPolicy and UpdateReplacePolicy Retain or Snapshot."
    tags = ("hyperpod-jlab", "fsx", "efs", "s3")

    kinds = ("AWS::FSx::FileSystem", "AWS::EFS::FileSystem", "AWS::S3::Bucket", "AWS::DynamoDB::Table")

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Data that go with the stack."""
        found = []
        for kind in self.kinds:
            for name, resource in cfn.get_resources(kind).items():
                for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
                    if resource.get(policy) not in {"Retain", "Snapshot"}:
                        words = f"its data would be lost: {policy}: Retain"
                        found.append(RuleMatch(["Resources", name], words))
        return found


class OpenGroup(CloudFormationLintRule):
    """Nobody outside comes in, and out goes what is named."""

    id = "E9008"
    shortdesc = "No security group is open to the world"
    description = (
        "Nothing is let in from everywhere, and not everything is let out to everywhere. Groups say what they let out."
    )
    tags = ("hyperpod-jlab", "ec2")

    world = ("0.0.0.0/0", "::/0")

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Rules of groups that are too wide."""
        found = []
        for _, given, path in _of(cfn, "AWS::EC2::SecurityGroup"):
            if "SecurityGroupEgress" not in given:
                found.append(RuleMatch(path, "without SecurityGroupEgress everything is let out"))
            for side in ("SecurityGroupIngress", "SecurityGroupEgress"):
                for at, rule in enumerate(given.get(side) or ()):
                    found += self._rule([*path, side, at], rule, inwards=side.endswith("Ingress"))
        for kind in ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"):
            for _, given, path in _of(cfn, kind):
                found += self._rule(path, given, inwards=kind.endswith("Ingress"))
        return found

    def _rule(self, path: Path, rule: Mapping[str, Any], *, inwards: bool) -> list[RuleMatch]:
        if not any(rule.get(name) in self.world for name in ("CidrIp", "CidrIpv6")):
            return []
        if inwards:
            return [RuleMatch(path, "it is let in from everywhere")]
        if str(rule.get("IpProtocol")) == "-1":
            return [RuleMatch(path, "everything is let out to everywhere")]
        return []


class Secrets(CloudFormationLintRule):
    """No secret is shown by DescribeStacks."""

    id = "E9009"
    shortdesc = "Secrets in parameters are not shown"
    description = "A parameter that is named like a secret has NoEcho and no Default."
    tags = ("hyperpod-jlab", "parameters")

    secret = re.compile(r"password|passwd|secret|token|private.?key|access.?key|munge.?key|api.?key", re.IGNORECASE)

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Parameters that would be shown."""
        found = []
        for name, given in (cfn.template.get("Parameters") or {}).items():
            if not self.secret.search(name) or name.endswith(("Arn", "Name", "Id")):
                continue
            if given.get("NoEcho") not in {True, "true"}:
                found.append(RuleMatch(["Parameters", name], "a secret is shown: NoEcho: true"))
            elif given.get("Default"):
                found.append(RuleMatch(["Parameters", name, "Default"], "a secret stands in the template"))
        return found


class Concurrency(CloudFormationLintRule):
    """How many of a function run at once is decided."""

    id = "E9010"
    shortdesc = "Functions have a reserved concurrency"
    description = "Two reconciliations at once would work against each other, and many at once against AWS' limits: ReservedConcurrentExecutions."
    tags = ("hyperpod-jlab", "lambda")

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Functions without one."""
        return [
            RuleMatch(path, "the function has no ReservedConcurrentExecutions")
            for _, given, path in _of(cfn, "AWS::Lambda::Function")
            if "ReservedConcurrentExecutions" not in given
        ]
