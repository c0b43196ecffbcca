"""Which rights each function needs, for the roles of the templates: those of ``hpj admin apply`` (`aws.features`), narrowed to one domain.

Rights to write logs and to read the queue are the templates' own: they are Lambda's, and not these functions'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from hyperpod_jlab.aws.feature import CLUSTER, DOMAIN, EKS, EVERY, PROFILE, SPACE, Permission
from hyperpod_jlab.aws.node_session import DOCUMENT
from hyperpod_jlab.aws.permissions import choose

Function = Literal["custom_resource", "new_profile", "reconcile"]

OF_CLUSTER = Permission(
    "sagemaker:DescribeCluster", CLUSTER, "the file system has to be named: FileSystemId"
)
"""Needed where the stack names a cluster and no file system."""

OF_EKS = Permission("eks:DescribeCluster", EKS, "Folders: kubernetes makes no folders")
"""Needed where a Job makes folders; what it may do in the cluster is an access entry's to say."""

OF_SESSIONS = (
    Permission("ssm:StartSession", CLUSTER, "Folders: cluster makes no folders"),
    Permission(
        "ssm:StartSession",
        f"arn:{{partition}}:ssm:{{region}}::document/{DOCUMENT}",
        "Folders: cluster makes no folders",
    ),
    Permission(
        "ssmmessages:OpenDataChannel",
        "arn:{partition}:ssm:{region}:{account}:session/*",
        "Folders: cluster makes no folders",
    ),
    Permission("sagemaker:ListClusterNodes", CLUSTER, "Folders: cluster finds no controller"),
)
"""Needed where a session on the controller of a Slurm cluster makes folders."""

_ONE_DOMAIN = {
    DOMAIN: DOMAIN.replace("*", "{domain}"),
    PROFILE: PROFILE.replace("*", "{domain}/*"),
    SPACE: SPACE.replace("*", "{domain}/*"),
}
"""Resources of SageMaker as they are called in one domain."""

_NOT_CALLED = frozenset({"sagemaker:ListStudioLifecycleConfigs", OF_CLUSTER.action})
"""What `hpj admin` calls besides: stacks leave lifecycle configurations alone, and of clusters see `OF_CLUSTER`."""

_TAGS = frozenset({"sagemaker:AddTags", "sagemaker:DeleteTags", "sagemaker:ListTags"})
_OF_ALL = frozenset(
    {
        "sagemaker:UpdateDomain",
        "ec2:CreateTags",
        "ec2:DeleteTags",
        "ec2:ModifyNetworkInterfaceAttribute",
    }
)
"""What changes things that all people of a domain need: no profile that is made does."""


def rights(function: Function) -> tuple[Permission, ...]:
    """What a function calls, its resources narrowed as far as IAM knows.

    Args:
        function: The handler's module.

    Returns:
        Each action and resource once; resources have the places ``{partition}``, ``{region}``, ``{account}`` and ``{domain}``.
    """
    found = []
    for one in choose(["admin-apply"])[0].permissions:
        left_out = function == "new_profile" and one.action in _OF_ALL
        if not (left_out or one.action in _NOT_CALLED):
            found += _narrowed(one, function)
    return (*found, OF_CLUSTER, OF_EKS, *OF_SESSIONS)


def _narrowed(one: Permission, function: Function) -> list[Permission]:
    if one.action in _TAGS:
        # A tag is on a domain, a profile or a space, and IAM names it by that.
        narrow = function == "new_profile" and one.action != "sagemaker:ListTags"
        kinds = (PROFILE, SPACE) if narrow else (DOMAIN, PROFILE, SPACE)
        return [replace(one, resource=_ONE_DOMAIN[kind]) for kind in kinds]
    return [replace(one, resource=_ONE_DOMAIN.get(one.resource, one.resource))]


def statements(function: Function, places: Mapping[str, str]) -> list[dict[str, Any]]:
    """The statements of an IAM policy that grants exactly this: one for each resource.

    Args:
        function: The handler's module.
        places: What stands for ``partition``, ``region``, ``account`` and ``domain``, such as ``${AWS::Region}`` in a template.
    """
    granted: dict[str, set[str]] = {}
    for one in rights(function):
        granted.setdefault(one.resource.format(**places), set()).add(one.action)
    return [
        {"Effect": "Allow", "Action": sorted(actions), "Resource": resource}
        for resource, actions in sorted(granted.items())
    ]


def services() -> frozenset[str]:
    """Services that the functions call, by boto3's names: what of botocore their package has."""
    return frozenset(one.action.partition(":")[0] for one in rights("custom_resource")) | {"sts"}


def actions_on_everything(function: Function) -> frozenset[str]:
    """Actions of which IAM knows nothing narrower, so that a template's role may have them for ``*``."""
    return frozenset(one.action for one in rights(function) if one.resource == EVERY)
