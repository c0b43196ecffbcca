"""Rules on policies of IAM and on who may take a role: in the manner of cfn-nag, with the places where an exception says its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.template import Template

_WIDE = re.compile(r"(arn:[^:]+:[^:]+:[^:]*:[^:]*:)?\*(/\*)?")
"""A resource that is everything, or everything of a service."""

_NO_SOURCE = {"lambda.amazonaws.com"}
"""Services whose trust policies have no source to name: Lambda documents none for execution roles; iam:PassRole says who may use one."""

Path = list[str | int]


def _statements(path: Path, value: Any) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Each statement below a value, with the path to it, whatever conditions it depends on."""
    if isinstance(value, Mapping):
        if "Effect" in value:
            yield path, value
            return
        for key, inside in value.items():
            yield from _statements([*path, key], inside)
    elif isinstance(value, list):
        for at, inside in enumerate(value):
            yield from _statements([*path, at], inside)


def _allowed(cfn: Template) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """Each statement that allows something: the resource's name, the path, the statement."""
    for name, resource in cfn.get_resources().items():
        for path, one in _statements(["Resources", name], resource):
            if one.get("Effect") == "Allow":
                yield name, path, one


def _texts(value: Any) -> list[str]:
    """The texts of a value that is one or a list: of ``Fn::Sub`` its text, of ``Fn::If`` either side."""
    found: list[str] = []
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, Mapping) and "Fn::If" in one:
            found += _texts(one["Fn::If"][1:])
        elif isinstance(one, Mapping) and "Fn::Sub" in one:
            found += _texts(one["Fn::Sub"])
        elif isinstance(one, list):
            found += _texts(one)
        elif isinstance(one, str):
            found.append(re.sub(r"\$\{[^}]*\}", "x", one))
    return found


class WildcardAction(CloudFormationLintRule):
    """Actions are named one by one."""

    id = "E9001"
    shortdesc = "No wildcard in an action"
    description = "A statement that allows something names its actions, without wildcards."
    tags = ("hyperpod-jlab", "iam")

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Statements with a wildcard in an action, or with all actions but some."""
        found = []
        for _, path, one in _allowed(cfn):
            if "NotAction" in one:
                found.append(RuleMatch(path, "NotAction allows all that it does not name"))
            found += [
                RuleMatch([*path, "Action"], f"{action}: name the actions")
                for action in _texts(one.get("Action", []))
                if "*" in action or "?" in action
            ]
        return found


class WildcardResource(CloudFormationLintRule):
    """Every resource only where a reason is given, action by action."""

    id = "E9002"
    shortdesc = "No wildcard resource without a reason"
    description = (
        "An action on every resource has its reason in Metadata: hyperpod-jlab: AnyResource: ACTION: REASON. "
        "A reason without such an action is one too many."
    )
    tags = ("hyperpod-jlab", "iam")

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Actions without their reasons, and reasons without their actions."""
        found = []
        used: dict[str, set[str]] = {}
        for name, path, one in _allowed(cfn):
            if "Principal" in one:
                continue  # a resource's own policy
            if "NotResource" in one:
                found.append(RuleMatch(path, "NotResource allows all that it does not name"))
            if not any(_WIDE.fullmatch(text) for text in _texts(one.get("Resource", []))):
                continue
            reasons = self._reasons(cfn, name)
            for action in _texts(one.get("Action", [])):
                used.setdefault(name, set()).add(action)
                if not str(reasons.get(action) or "").strip():
                    words = f"{action} on every resource: narrow it, or give a reason in Metadata"
                    found.append(RuleMatch([*path, "Resource"], words))
        for name in cfn.get_resources():
            for action in set(self._reasons(cfn, name)) - used.get(name, set()):
                place: Path = ["Resources", name, "Metadata"]
                found.append(RuleMatch(place, f"{action} is not allowed on every resource"))
        return found

    @staticmethod
    def _reasons(cfn: Template, name: str) -> Mapping[str, str]:
        metadata = cfn.get_resources()[name].get("Metadata") or {}
        reasons: Mapping[str, str] = (metadata.get("hyperpod-jlab") or {}).get("AnyResource") or {}
        return reasons


class TrustTooWide(CloudFormationLintRule):
    """Who may take a role, or use a queue or a function, is named; a service says for whom it acts."""

    id = "E9003"
    shortdesc = "Principals are named, and services only act for this account"
    description = (
        "No principal is everybody or a whole account, and a service that is let in has a condition on aws:SourceArn or aws:SourceAccount "
        "(confused deputy)."
    )
    tags = ("hyperpod-jlab", "iam")

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Statements and permissions that let in too many."""
        found = []
        for _, path, one in _allowed(cfn):
            if "NotPrincipal" in one:
                found.append(RuleMatch(path, "NotPrincipal lets in all that it does not name"))
            if "Principal" in one:
                words = self._too_wide(path, one)
                if words is not None:
                    found.append(RuleMatch([*path, "Principal"], words))
        for name, resource in cfn.get_resources("AWS::Lambda::Permission").items():
            if not {"SourceArn", "SourceAccount"} & set(resource.get("Properties", {})):
                words = "a service is let in for anybody: name SourceArn and SourceAccount"
                found.append(RuleMatch(["Resources", name, "Properties"], words))
        return found

    @staticmethod
    def _too_wide(path: Path, one: Mapping[str, Any]) -> str | None:
        principal = one["Principal"]
        if isinstance(principal, str):
            principal = {"AWS": principal}
        for who in _texts(principal.get("AWS", [])):
            if who == "*" or who.endswith(":root"):
                return f"{who}: name roles or users"
        keys = {key for inside in one.get("Condition", {}).values() for key in inside}
        trust = "AssumeRolePolicyDocument" in path
        services = [
            service for service in _texts(principal.get("Service", [])) if not (trust and service in _NO_SOURCE)
        ]
        if services and not {"aws:SourceArn", "aws:SourceAccount"} & keys:
            return f"{', '.join(services)}: a condition on aws:SourceArn or aws:SourceAccount is missing"
        return None
