"""Settings of a stack: the properties of its custom resource, and the environment of its other functions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from hyperpod_jlab.admin.fsx.aws import ProfileSubset
from hyperpod_jlab.admin.fsx.models import FOLDER, MAX_PATH_LENGTH, MAX_UID, DesiredState, Mode
from hyperpod_jlab.admin.fsx.request import StorageRequest
from hyperpod_jlab.aws.permissions import ANY_RESOURCE, CLUSTER, DOMAIN, EKS, PROFILE, SPACE, Permission, choose
from hyperpod_jlab.core.errors import InvalidInputError, nearest_hint
from hyperpod_jlab.core.validation import DOMAIN_ID, FILE_SYSTEM_ID

_IGNORED_PROPERTIES = frozenset({"ServiceToken", "ServiceTimeout", "ControllerGroup"})
"""Properties that every custom resource has, and one that stacks of 0.1 may still have."""


def _none_if_empty(value: Any) -> Any:
    """CloudFormation can only omit a property by an empty text."""
    return None if value == "" else value


_EMPTY = BeforeValidator(_none_if_empty)
Text = Annotated[str | None, _EMPTY]
_FileSystem = Annotated[str, Field(pattern=FILE_SYSTEM_ID)]


class StackSettings(BaseModel):
    """What a stack says; all values are texts there.

    Raises:
        InvalidInputError: By `from_properties` and `from_environment`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, regex_engine="python-re")

    domain: str = Field(alias="DomainId", pattern=DOMAIN_ID)
    """The domain's id."""

    cluster: Text = Field(None, alias="ClusterName")
    """The HyperPod cluster whose file system it is, if the file system is not named."""

    file_system: Annotated[_FileSystem | None, _EMPTY] = Field(None, alias="FileSystemId")
    """The file system's id."""

    mode: Mode = Field(alias="PartitionMode")
    """One folder for all, or one per profile."""

    shared_path: str = Field("/shared", alias="SharedPath", pattern=FOLDER, max_length=MAX_PATH_LENGTH)
    """The common folder in mode ``shared``."""

    folders: Annotated[
        Literal["kubernetes", "timer", "none"], BeforeValidator(lambda value: "timer" if value == "cluster" else value)
    ] = Field("timer", alias="Folders")
    """What provisions folders: a Kubernetes Job that is started from here, a timer with ``hpj admin apply`` on the cluster, or nothing, if they exist.

    Stacks of 0.1 may still say ``cluster``, which is the timer now.
    """

    cluster_user: Annotated[Annotated[int, Field(ge=1, le=MAX_UID)] | None, _EMPTY] = Field(None, alias="ClusterUser")
    """The uid of the cluster's jobs, which gets access to the folders; none: users with access keep it."""

    take_over: Literal["true", "false"] = Field("false", alias="TakeOver")
    """Whether to change entries that others have set."""

    namespace: Text = Field(None, alias="Namespace")
    """Where the Kubernetes Job runs."""

    claim: Text = Field(None, alias="ClaimName")
    """The claim of the file system as a whole, in that namespace."""

    image: Text = Field(None, alias="Image")
    """The Kubernetes Job's image, with its digest."""

    version: Text = Field(None, alias="Version")
    """The package's version: CloudFormation sends a new request when it changes."""

    reconciled: Literal["true", "false"] = Field("false", alias="Reconciled")
    """Whether a schedule continues with profiles and spaces that were skipped for lack of time."""

    @model_validator(mode="after")
    def _names_a_file_system(self) -> Self:
        if self.cluster is None and self.file_system is None:
            raise ValueError(
                "FileSystemId is missing: set it, or set ClusterName to the cluster that mounts the file system"
            )
        return self

    @classmethod
    def from_properties(cls, properties: Any) -> Self:
        """The properties of a custom resource.

        Args:
            properties: ``ResourceProperties`` of CloudFormation's request.

        Raises:
            InvalidInputError: They are none, with all that is wrong in one sentence.
        """
        if not isinstance(properties, Mapping):
            raise InvalidInputError("the request has no ResourceProperties")
        return cls._validate({name: value for name, value in properties.items() if name not in _IGNORED_PROPERTIES})

    @classmethod
    def from_environment(cls) -> Self:
        """The environment of a function, such as ``HPJ_DOMAIN_ID``.

        Raises:
            InvalidInputError: It is not right.
        """
        properties = {name: os.environ[variable] for variable, name in VARIABLES.items() if os.environ.get(variable)}
        return cls._validate(properties)

    @classmethod
    def _validate(cls, environment: Mapping[str, Any]) -> Self:
        try:
            return cls.model_validate(environment)
        except ValidationError as error:
            problems = [_problem_text(problem, list(PROPERTIES)) for problem in error.errors()]
            raise InvalidInputError("; ".join(problems), detail={"field": _field(error.errors()[0])}) from None

    def wiring(self, subset: ProfileSubset | None = None) -> StorageRequest:
        """The request.

        Args:
            subset: Only these are read.
        """
        desired = DesiredState(
            self.mode,
            self.shared_path,
            take_over=self.take_over == "true",
            cluster_user=self.cluster_user,
            folders_are_there=self.folders == "none",
        )
        return StorageRequest(self.domain, desired, self.cluster, self.file_system, subset=subset)


PROPERTIES: tuple[str, ...] = tuple(str(field.alias) for field in StackSettings.model_fields.values() if field.alias)
"""Names of the properties of ``Custom::HyperPodStudioWiring``."""

VARIABLES: Mapping[str, str] = {
    "HPJ_DOMAIN_ID": "DomainId",
    "HPJ_CLUSTER_NAME": "ClusterName",
    "HPJ_FILE_SYSTEM_ID": "FileSystemId",
    "HPJ_PARTITION_MODE": "PartitionMode",
    "HPJ_SHARED_PATH": "SharedPath",
    "HPJ_FOLDERS": "Folders",
    "HPJ_CLUSTER_USER": "ClusterUser",
    "HPJ_TAKE_OVER": "TakeOver",
    "HPJ_NAMESPACE": "Namespace",
    "HPJ_CLAIM_NAME": "ClaimName",
    "HPJ_IMAGE": "Image",
}
"""Variables of the functions that have no properties, each by the property that it stands for."""


def _field(problem: Any) -> str:
    return str(problem["loc"][0]) if problem["loc"] else "FileSystemId"


def _problem_text(problem: Any, names: list[str]) -> str:
    """One validation error, as our message."""
    name, input_text = _field(problem), str(problem.get("input"))[:60]
    if problem["type"] == "missing":
        return f"{name} is missing"
    if problem["type"] == "extra_forbidden":
        return f"unknown property {name[:60]} ({nearest_hint(name, names)})"
    if problem["type"] == "literal_error":
        return f"{name} must be one of {problem['ctx']['expected']}, not '{input_text}'"
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    if problem["type"] == "string_pattern_mismatch" or name in _EXAMPLES:
        return f"{name}: '{input_text}' is not valid; example: {_EXAMPLES.get(name, '...')}"
    return f"{name}: {problem['msg']}"


_EXAMPLES = {
    "DomainId": "d-abc123",
    "FileSystemId": "fs-0123456789abcdef0",
    "SharedPath": "/shared",
    "ClusterUser": "1000",
}


# --------------------------------------------------------------------------------------------------
# The permissions of each function, for the roles of the templates: those of ``hpj admin apply``
# (`aws.features`), narrowed to one domain.
#
# Permissions to write logs and to read the queue are in the templates: Lambda needs them, not these
# functions.

Function = Literal["custom_resource", "new_profile", "reconcile"]

CLUSTER_PERMISSION = Permission(
    "sagemaker:DescribeCluster", CLUSTER, "FileSystemId is missing: set it to the file system"
)
"""Needed if the stack names a cluster and no file system."""

EKS_PERMISSION = Permission("eks:DescribeCluster", EKS, "Folders: kubernetes cannot create folders")
"""Needed if a Job provisions folders; an access entry defines its permissions in the cluster."""

_ONE_DOMAIN = {
    DOMAIN: DOMAIN.replace("*", "{domain}"),
    PROFILE: PROFILE.replace("*", "{domain}/*"),
    SPACE: SPACE.replace("*", "{domain}/*"),
}
"""SageMaker resources, restricted to one domain."""

_NOT_CALLED = frozenset({"sagemaker:ListStudioLifecycleConfigs", CLUSTER_PERMISSION.action})
"""Other calls of `hpj admin`: stacks do not change lifecycle configurations; for clusters see `CLUSTER_PERMISSION`."""

_TAGS = frozenset({"sagemaker:AddTags", "sagemaker:DeleteTags", "sagemaker:ListTags"})
_UNSCOPED_ACTIONS = frozenset(
    {"sagemaker:UpdateDomain", "ec2:CreateTags", "ec2:DeleteTags", "ec2:ModifyNetworkInterfaceAttribute"}
)
"""Changes that affect all users of a domain: not needed for a new profile."""


def rights(function: Function) -> tuple[Permission, ...]:
    """A function's permissions, with resources as narrow as IAM allows.

    Args:
        function: The handler's module.

    Returns:
        Action and resource pairs without duplicates; resources have the placeholders ``{partition}``, ``{region}``, ``{account}`` and ``{domain}``.
    """
    permissions = []
    for permission in choose(["admin-apply"])[0].permissions:
        left_out = function == "new_profile" and permission.action in _UNSCOPED_ACTIONS
        if not (left_out or permission.action in _NOT_CALLED):
            permissions += _narrow(permission, function)
    return (*permissions, CLUSTER_PERMISSION, EKS_PERMISSION)


def _narrow(permission: Permission, function: Function) -> list[Permission]:
    if permission.action in _TAGS:
        # A tag is on a domain, a profile or a space, which IAM names as the resource.
        narrow = function == "new_profile" and permission.action != "sagemaker:ListTags"
        kinds = (PROFILE, SPACE) if narrow else (DOMAIN, PROFILE, SPACE)
        return [replace(permission, resource=_ONE_DOMAIN[kind]) for kind in kinds]
    return [replace(permission, resource=_ONE_DOMAIN.get(permission.resource, permission.resource))]


def statements(function: Function, resources: Mapping[str, str]) -> list[dict[str, Any]]:
    """The statements of an IAM policy that grants exactly these permissions: one per resource.

    Args:
        function: The handler's module.
        resources: Values of ``partition``, ``region``, ``account`` and ``domain``, such as ``${AWS::Region}`` in a template.
    """
    granted: dict[str, set[str]] = {}
    for permission in rights(function):
        granted.setdefault(permission.resource.format(**resources), set()).add(permission.action)
    return [
        {"Effect": "Allow", "Action": sorted(actions), "Resource": resource}
        for resource, actions in sorted(granted.items())
    ]


def services() -> frozenset[str]:
    """Services that the functions call, by boto3's names: the part of botocore in their package."""
    return frozenset(permission.action.partition(":")[0] for permission in rights("custom_resource")) | {"sts"}


def actions_on_everything(function: Function) -> frozenset[str]:
    """Actions that IAM cannot restrict, so that a template's role may have them for ``*``."""
    return frozenset(permission.action for permission in rights(function) if permission.resource == ANY_RESOURCE)
