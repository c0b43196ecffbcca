"""Identity policies, evaluated as IAM does: an explicit deny wins, what nobody allows is denied.

What of the policy language is not known here makes a document invalid: it never allows anything by being overlooked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from testbed.aws.replies import ApiError

VERSION = "2012-10-17"

EVERYTHING: Mapping[str, Any] = {"Version": VERSION, "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
"""The policy of an administrator."""

ALWAYS = frozenset({"sts:GetCallerIdentity"})
"""Actions that need no right, and that no policy can take away."""

CONDITION_KEYS = frozenset({"aws:PrincipalAccount", "aws:RequestedRegion", "aws:TagKeys", "lambda:SourceFunctionArn"})
"""Keys of conditions that are known here; those that a call does not have are absent from its context."""

Context = Mapping[str, str | tuple[str, ...]]
"""Values of condition keys; several for a key of several values, such as ``aws:TagKeys``."""

_DENIED = {
    "json": ("AccessDeniedException", 400),
    "rest-json": ("AccessDeniedException", 403),
    "query": ("AccessDenied", 403),
    "smithy-rpc-v2-cbor": ("AccessDenied", 403),
    "rest-xml": ("AccessDenied", 403),
    "ec2": ("UnauthorizedOperation", 403),
}
"""By protocol: how a service says that there is no right, and with which HTTP status."""

_STATEMENT = frozenset({"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"})
_ARN_PARTS = 6
_USER_ID = "${aws:userid}"
_ACTION = re.compile(r"\*|[a-z0-9-]+:[A-Za-z0-9*?]+")


class PolicyError(Exception):
    """A document that is no policy, or one with what is not known here."""


@dataclass(frozen=True)
class Asked:
    """What is to be decided.

    Attributes:
        action: Such as ``sagemaker:DescribeCluster``.
        resource: The ARN; ``*`` for an action that is done to nothing single.
        context: Values of condition keys.
    """

    action: str
    resource: str
    context: Context


@dataclass(frozen=True)
class Verdict:
    """Whether it is allowed, and whether a statement denies it in so many words."""

    allowed: bool
    explicit: bool = False


class Policy:
    """A policy document.

    Args:
        document: The document, as JSON has it.

    Raises:
        PolicyError: It is none, or has what is not known here.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        unknown = set(document) - {"Version", "Id", "Statement"}
        if unknown or document.get("Version") != VERSION or not document.get("Statement"):
            raise PolicyError(f"a policy has Version {VERSION} and Statement, not {sorted(document)}")
        statements = document["Statement"]
        self._statements = [
            _Statement(one) for one in ([statements] if isinstance(statements, Mapping) else statements)
        ]

    def effects(self, asked: Asked) -> set[str]:
        """The effects of all statements that are about this."""
        return {one.effect for one in self._statements if one.is_about(asked)}


def decide(policies: tuple[Policy, ...], asked: Asked, session: Policy | None = None) -> Verdict:
    """The verdict of all policies that somebody has; with a policy of the session, which has to allow it too."""
    if asked.action in ALWAYS:
        return Verdict(allowed=True)
    effects = {effect for policy in policies for effect in policy.effects(asked)}
    if "Deny" in effects:
        return Verdict(allowed=False, explicit=True)
    limits = {"Allow"} if session is None else session.effects(asked)
    return Verdict(allowed="Allow" in effects and limits == {"Allow"})


def denied(protocol: str, caller: str, asked: Asked, *, explicit: bool = False) -> ApiError:
    """The error of a call without the right to it, as a service of this protocol says it.

    Args:
        protocol: The service's protocol in botocore's model.
        caller: Who called, as an ARN.
        asked: What was denied; `resource` is what the message names.
        explicit: Whether a statement denies it.
    """
    code, status = _DENIED[protocol]
    why = (
        "with an explicit deny in an identity-based policy"
        if explicit
        else f"because no identity-based policy allows the {asked.action} action"
    )
    words = f"is not authorized to perform: {asked.action} on resource: {asked.resource} {why}"
    if protocol == "ec2":
        return ApiError(code, f"You are not authorized to perform this operation. User: {caller} {words}", status)
    return ApiError(code, f"User: {caller} {words}", status)


class _Statement:
    def __init__(self, given: Mapping[str, Any]) -> None:
        unknown = set(given) - _STATEMENT
        if unknown:
            raise PolicyError(f"not known in a statement: {', '.join(sorted(unknown))}")
        self.effect = str(given.get("Effect"))
        if self.effect not in {"Allow", "Deny"}:
            raise PolicyError(f"Effect is Allow or Deny, not {self.effect!r}")
        self._actions, self._not_actions = _either(given, "Action")
        self._resources, self._not_resources = _either(given, "Resource")
        for action in self._actions:
            if not _ACTION.fullmatch(action):
                raise PolicyError(f"{action!r} is no action")
        for resource in self._resources:
            if "${" in resource.replace(_USER_ID, ""):
                raise PolicyError(f"{resource!r}: variables are not known here, but {_USER_ID}")
            if resource != "*" and (not resource.startswith("arn:") or resource.count(":") < _ARN_PARTS - 1):
                raise PolicyError(f"{resource!r} is no ARN")
        self._conditions = _conditions(given.get("Condition", {}))

    def is_about(self, asked: Asked) -> bool:
        """Whether action, resource and conditions all match."""
        action = any(_action_pattern(one).fullmatch(asked.action) for one in self._actions)
        resource = any(matches_arn(_filled(one, asked.context), asked.resource) for one in self._resources)
        return (
            action is not self._not_actions
            and resource is not self._not_resources
            and all(holds(asked.context) for holds in self._conditions)
        )


def _filled(resource: str, context: Context) -> str:
    """A resource with who asks in the place of the variable; without a value it is nothing's name."""
    value = context.get("aws:userid", "")
    return resource.replace(_USER_ID, value if isinstance(value, str) else "")


def _either(given: Mapping[str, Any], name: str) -> tuple[list[str], bool]:
    """The values of ``NAME`` or ``NotNAME``, and whether it was the second."""
    if (name in given) == (f"Not{name}" in given):
        raise PolicyError(f"a statement has either {name} or Not{name}")
    negated = name not in given
    return _texts(given[f"Not{name}" if negated else name], name), negated


def _texts(value: Any, name: str) -> list[str]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(one, str) for one in found):
        raise PolicyError(f"{name}: a text or a list of texts")
    return found


def _conditions(given: Any) -> list[Callable[[Context], bool]]:
    """One test for each operator and key; all have to hold."""
    if not isinstance(given, Mapping):
        raise PolicyError("Condition: operators with keys and values")
    found = []
    for operator, keys in given.items():
        if operator not in _OPERATORS:
            raise PolicyError(f"the condition operator {operator} is not known here")
        for key, value in keys.items():
            if key not in CONDITION_KEYS:
                raise PolicyError(f"the condition key {key} is not known here")
            found.append(_condition(operator, key, _texts(value, key)))
    return found


def _condition(operator: str, key: str, values: list[str]) -> Callable[[Context], bool]:
    def holds(context: Context) -> bool:
        told = context.get(key)
        if operator == "Null":
            return values == ["true" if told is None else "false"]
        several = (told,) if isinstance(told, str) else told or ()
        matches = _OPERATORS[operator]
        found = [any(matches(value, one) for value in values) for one in several]
        # Of a key that is not there the one holds for all of none, the other for none.
        return all(found) if operator.startswith("ForAllValues:") else any(found)

    return holds


def _like(pattern: str, text: str) -> bool:
    return _pattern(pattern, ".*").fullmatch(text) is not None


def matches_arn(pattern: str, arn: str) -> bool:
    """Whether a policy's resource is this ARN.

    A star stands for any text within its part of the ARN; at a part's end it may go on into the next ones. Something that is
    nothing single (``*``) is matched by a star alone.
    """
    if pattern == "*" or arn == "*":
        return pattern == "*"
    return _arn_pattern(pattern).fullmatch(arn) is not None


@cache
def _arn_pattern(pattern: str) -> re.Pattern[str]:
    parts = []
    for part in pattern.split(":"):
        words = _regex(part.removesuffix("*"), "[^:]*")
        parts.append(words + ".*" if part.endswith("*") else words)
    return re.compile(":".join(parts), re.DOTALL)


@cache
def _action_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(_regex(pattern, ".*"), re.IGNORECASE)


@cache
def _pattern(pattern: str, star: str) -> re.Pattern[str]:
    return re.compile(_regex(pattern, star), re.DOTALL)


def _regex(pattern: str, star: str) -> str:
    signs = {"*": star, "?": "."}
    return "".join(signs.get(sign) or re.escape(sign) for sign in pattern)


_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": str.__eq__,
    "StringLike": _like,
    "ArnLike": matches_arn,
    "ForAllValues:StringLike": _like,
    "Null": str.__eq__,
}
"""Operators of conditions that are known here, with how a pattern and a value are compared."""
