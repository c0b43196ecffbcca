"""SageMaker's lifecycle configurations of Studio: scripts that run when an application starts, and where settings name them.

What is not documented of them is as strict here as it may be there: a default has to stand in the list too, a script has to be one of the
application, and one that is named anywhere, or that a running application was started with, cannot be deleted.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from testbed.aws.operations import Request, Resource
from testbed.aws.pages import page
from testbed.aws.replies import ApiError
from testbed.aws.state import AppSettings, Profile, Space, StudioLifecycleConfig

_KINDS = ("JupyterLab", "CodeEditor")
_NOTHING = "None"
"""What takes a single lifecycle configuration out of settings (the pattern in SageMaker's service model)."""


def create_studio_lifecycle_config(request: Request) -> dict[str, Any]:
    given, name = request.given, request.given["StudioLifecycleConfigName"]
    if (request.region, name) in request.account.lifecycle_configs:
        raise ApiError("ResourceInUse", f"Studio Lifecycle Config {name} already exists.")
    try:
        base64.b64decode(given["StudioLifecycleConfigContent"], validate=True)
    except binascii.Error:
        words = "StudioLifecycleConfigContent must be base64 encoded"
        raise ApiError("ValidationException", words) from None
    request.account.lifecycle_configs[request.region, name] = StudioLifecycleConfig(
        given["StudioLifecycleConfigContent"],
        given["StudioLifecycleConfigAppType"],
        {one["Key"]: one["Value"] for one in given.get("Tags", [])},
        request.account.timeline.now(),
    )
    return {"StudioLifecycleConfigArn": lifecycle_arn(request, name)}


def describe_studio_lifecycle_config(request: Request) -> dict[str, Any]:
    name, found = _named(request)
    return {**_summary(request, name, found), "StudioLifecycleConfigContent": found.content}


def list_studio_lifecycle_configs(request: Request) -> dict[str, Any]:
    given = request.given
    found = [
        _summary(request, name, config)
        for (region, name), config in request.account.lifecycle_configs.items()
        if region == request.region
        and given.get("NameContains", "") in name
        and given.get("AppTypeEquals", config.app_type) == config.app_type
    ]
    shown, following = page(found, lambda one: [one["StudioLifecycleConfigName"]], given)
    return {"StudioLifecycleConfigs": shown, **following}


def delete_studio_lifecycle_config(request: Request) -> dict[str, Any]:
    name, _ = _named(request)
    arn = lifecycle_arn(request, name)
    if arn in set(_used(request)):
        raise ApiError("ResourceInUse", f"Studio Lifecycle Config {name} is in use.")
    del request.account.lifecycle_configs[request.region, name]
    return {}


def lifecycle_arn(request: Request, name: str) -> str:
    """The ARN of a lifecycle configuration, whether it is there or not."""
    where = f"{request.account.partition}:sagemaker:{request.region}:{request.account.account_id}"
    return f"arn:{where}:studio-lifecycle-config/{name}"


def lifecycle_resource(request: Request) -> Resource | None:
    """The lifecycle configuration that is named, as IAM names it; None: none is."""
    name = request.given.get("StudioLifecycleConfigName")
    return None if name is None else Resource(name, lifecycle_arn(request, name))


def check_app_settings(request: Request, settings: Mapping[str, Any]) -> None:
    """Whether what settings name of lifecycle configurations is there.

    Raises:
        ApiError: It is not, is one of another application, or a default that is not in the list.
    """
    for kind in _KINDS:
        told = settings.get(f"{kind}AppSettings", {})
        for arn in _named_in(told):
            known = request.account.lifecycle_configs.get((request.region, arn.rpartition("/")[2]))
            if known is None or known.app_type != kind:
                raise ApiError("ValidationException", f"{arn} is no lifecycle config of {kind}")
        default = told.get("DefaultResourceSpec", {}).get("LifecycleConfigArn", _NOTHING)
        if default != _NOTHING and default not in told.get("LifecycleConfigArns", []):
            raise ApiError("ValidationException", f"{default} is not in LifecycleConfigArns")


def apply_app_settings(settings: Mapping[str, Any], apps: AppSettings, idle: dict[str, Any]) -> dict[str, Any]:
    """Put the settings of applications in the place of those that were there, each as a whole; the IdleSettings of JupyterLab then."""
    for kind in _KINDS:
        if f"{kind}AppSettings" not in settings:
            continue
        told = dict(settings[f"{kind}AppSettings"])
        managed = told.pop("AppLifecycleManagement", {})
        if kind == "JupyterLab":
            idle = managed.get("IdleSettings", {})
        if told.get("BuiltInLifecycleConfigArn") == _NOTHING:
            del told["BuiltInLifecycleConfigArn"]
        resource = dict(told.get("DefaultResourceSpec", {}))
        if resource.get("LifecycleConfigArn") == _NOTHING:
            del resource["LifecycleConfigArn"]
            told["DefaultResourceSpec"] = resource
        apps[kind] = told
    return idle


def _named(request: Request) -> tuple[str, StudioLifecycleConfig]:
    name = request.given["StudioLifecycleConfigName"]
    found = request.account.lifecycle_configs.get((request.region, name))
    if found is None:
        raise ApiError("ResourceNotFound", f"Studio Lifecycle Config {name} does not exist.")
    return name, found


def _summary(request: Request, name: str, config: StudioLifecycleConfig) -> dict[str, Any]:
    return {
        "StudioLifecycleConfigArn": lifecycle_arn(request, name),
        "StudioLifecycleConfigName": name,
        "CreationTime": config.created,
        "LastModifiedTime": config.created,
        "StudioLifecycleConfigAppType": config.app_type,
    }


def _used(request: Request) -> Iterator[str]:
    account = request.account
    for domain in account.domains.values():
        for told in (*domain.app_settings.values(), *domain.shared_app_settings.values()):
            yield from _named_in(told)
    alone: list[Profile | Space] = [*account.profiles.values(), *account.spaces.values()]
    for one in alone:
        for told in one.app_settings.values():
            yield from _named_in(told)
    for space in account.spaces.values():
        yield from space.started_with if space.apps else ()


def _named_in(told: Mapping[str, Any]) -> Iterator[str]:
    found = (
        *told.get("LifecycleConfigArns", ()),
        told.get("BuiltInLifecycleConfigArn", _NOTHING),
        told.get("DefaultResourceSpec", {}).get("LifecycleConfigArn", _NOTHING),
    )
    yield from (arn for arn in found if arn != _NOTHING)


OPERATIONS = {
    "CreateStudioLifecycleConfig": create_studio_lifecycle_config,
    "DescribeStudioLifecycleConfig": describe_studio_lifecycle_config,
    "ListStudioLifecycleConfigs": list_studio_lifecycle_configs,
    "DeleteStudioLifecycleConfig": delete_studio_lifecycle_config,
}
