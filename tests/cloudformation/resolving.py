"""Templates of CloudFormation, resolved for given parameters as CloudFormation does: what is there then, and with which properties."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfnlint.decode import cfn_yaml

FOLDER = Path(__file__).parents[2] / "cloudformation"
ACCOUNT = "123456789012"

_NOTHING = object()
_PLACE = re.compile(r"\$\{(!?)([^}]+)\}")


class RefusedError(Exception):
    """CloudFormation would not take these parameters."""


@dataclass(frozen=True)
class Place:
    """Where a stack is made."""

    partition: str = "aws"
    region: str = "us-west-2"
    stack: str = "wiring"
    account: str = ACCOUNT

    @property
    def pseudo(self) -> Mapping[str, Any]:
        """The pseudo parameters."""
        return {
            "AWS::Partition": self.partition,
            "AWS::Region": self.region,
            "AWS::AccountId": self.account,
            "AWS::StackName": self.stack,
            "AWS::StackId": f"arn:{self.partition}:cloudformation:{self.region}:{self.account}:stack/{self.stack}/1",
            "AWS::URLSuffix": "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com",
            "AWS::NoValue": _NOTHING,
        }


@dataclass(frozen=True)
class Stack:
    """A resolved template: its resources and outputs whose conditions hold."""

    template: Mapping[str, Any]
    resources: Mapping[str, Any]
    outputs: Mapping[str, Any]

    def properties(self, name: str) -> Any:
        """A resource's properties."""
        return self.resources[name].get("Properties", {})

    def of_type(self, kind: str) -> dict[str, Any]:
        """Properties of all resources of a type, by name."""
        return {name: self.properties(name) for name, one in self.resources.items() if one["Type"] == kind}


def load(name: str) -> dict[str, Any]:
    """A template of ours, its short forms written out."""
    found: dict[str, Any] = cfn_yaml.load(str(FOLDER / name))
    return found


def resolve(name: str, place: Place | None = None, **parameters: Any) -> Stack:
    """A template of ours with these parameters.

    Raises:
        RefusedError: A parameter is missing, unknown or against its pattern, or a rule does not hold.
    """
    return resolve_template(load(name), place, **parameters)


def resolve_template(template: Mapping[str, Any], place: Place | None = None, **parameters: Any) -> Stack:
    """A template with these parameters; see `resolve`."""
    place = place or Place()
    values = _Values(template, place, _checked(template.get("Parameters", {}), parameters))
    values.check_rules()
    resources = {name: values.of(one) for name, one in template["Resources"].items() if values.is_there(one)}
    outputs = {
        name: values.of(one["Value"]) for name, one in template.get("Outputs", {}).items() if values.is_there(one)
    }
    return Stack(template, resources, outputs)


def _checked(declared: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := set(given) - set(declared):
        raise RefusedError(f"no such parameter: {sorted(unknown)}")
    values = {}
    for name, one in declared.items():
        value = given.get(name, one.get("Default"))
        if value is None:
            raise RefusedError(f"{name} has no value")
        allowed = one.get("AllowedValues")
        if allowed is not None and str(value) not in map(str, allowed):
            raise RefusedError(f"{name}: {value} is none of {allowed}")
        pattern = one.get("AllowedPattern")
        if pattern is not None and not re.fullmatch(pattern, str(value)):
            raise RefusedError(f"{name}: {value} is not {pattern}")
        is_list = one["Type"].startswith(("CommaDelimitedList", "List<"))
        values[name] = str(value).split(",") if is_list else str(value)
    return values


class _Values:
    """What stands in a template, as values."""

    def __init__(self, template: Mapping[str, Any], place: Place, parameters: Mapping[str, Any]) -> None:
        self._template = template
        self._place = place
        self._known = {**place.pseudo, **parameters}
        self._functions = {
            "Ref": self._ref,
            "Fn::GetAtt": self._get_att,
            "Fn::Sub": self._sub,
            "Fn::If": self._if,
            "Fn::Join": lambda given: given[0].join(map(str, self.of(given[1]))),
            "Fn::Select": lambda given: self.of(given[1])[int(self.of(given[0]))],
            "Fn::Split": lambda given: self.of(given[1]).split(given[0]),
            "Fn::FindInMap": self._find,
            "Fn::Equals": lambda given: self.of(given[0]) == self.of(given[1]),
            "Fn::Not": lambda given: not self.of(given[0]),
            "Fn::And": lambda given: all(map(self.of, given)),
            "Fn::Or": lambda given: any(map(self.of, given)),
            "Condition": lambda given: self.holds(str(given)),
        }

    def of(self, given: Any) -> Any:
        if isinstance(given, Mapping):
            if len(given) == 1:
                ((name, inside),) = given.items()
                # "Condition" is a function among conditions, and the name of an element in policies.
                if name in self._functions and not (name == "Condition" and isinstance(inside, Mapping)):
                    return self._functions[str(name)](inside)
            found = {str(key): self.of(value) for key, value in given.items() if key != "Condition"}
            if isinstance(given.get("Condition"), Mapping):
                found["Condition"] = self.of(given["Condition"])
            return {key: value for key, value in found.items() if value is not _NOTHING}
        if isinstance(given, list):
            return [value for value in map(self.of, given) if value is not _NOTHING]
        return str(given) if isinstance(given, str) else given

    def is_there(self, given: Mapping[str, Any]) -> bool:
        return "Condition" not in given or self.holds(str(given["Condition"]))

    def holds(self, name: str) -> bool:
        return bool(self.of(self._template["Conditions"][name]))

    def check_rules(self) -> None:
        for rule in self._template.get("Rules", {}).values():
            if self.of(rule.get("RuleCondition", True)):
                for one in rule["Assertions"]:
                    if not self.of(one["Assert"]):
                        raise RefusedError(one["AssertDescription"])

    def _ref(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        resource = self._template["Resources"][name]
        assert self.is_there(resource), f"{name} is not there"
        return _name_of(name, resource["Type"], self._place)

    def _get_att(self, given: Any) -> str:
        name, attribute = given if isinstance(given, list) else given.split(".", 1)
        resource = self._template["Resources"][name]
        assert self.is_there(resource), f"{name} is not there"
        return _attribute_of(str(name), str(attribute), resource["Type"], self._place)

    def _sub(self, given: Any) -> str:
        text, own = (given, {}) if isinstance(given, str) else (given[0], self.of(given[1]))

        def value(found: re.Match[str]) -> str:
            literal, name = found.groups()
            if literal:
                return "${" + name + "}"
            if name in own:
                return str(own[name])
            return str(self._get_att(name) if "." in name else self._ref(name))

        return _PLACE.sub(value, text)

    def _if(self, given: Any) -> Any:
        return self.of(given[1] if self.holds(str(given[0])) else given[2])

    def _find(self, given: Any) -> Any:
        table, first, second = (self.of(one) for one in given)
        return self.of(self._template["Mappings"][table][first][second])


def _name_of(name: str, kind: str, place: Place) -> str:
    """What Ref says of a resource."""
    if kind == "AWS::IAM::ManagedPolicy":
        return f"arn:{place.partition}:iam::{place.account}:policy/{place.stack}-{name}"
    return f"{place.stack}-{name}"


_ARNS = {
    "AWS::IAM::Role": "iam::{account}:role/{name}",
    "AWS::Lambda::Function": "lambda:{region}:{account}:function:{name}",
    "AWS::SQS::Queue": "sqs:{region}:{account}:{name}",
    "AWS::Logs::LogGroup": "logs:{region}:{account}:log-group:{name}:*",
    "AWS::Events::Rule": "events:{region}:{account}:rule/{name}",
    "AWS::FSx::FileSystem": "fsx:{region}:{account}:file-system/{name}",
}


def _attribute_of(name: str, attribute: str, kind: str, place: Place) -> str:
    """What GetAtt says of a resource."""
    if attribute == "Arn" and kind in _ARNS:
        said = _ARNS[kind].format(region=place.region, account=place.account, name=_name_of(name, kind, place))
        return f"arn:{place.partition}:{said}"
    return f"{name}.{attribute}"
