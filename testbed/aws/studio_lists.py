"""SageMaker's lists of domains of Studio, and of what one has: user profiles, spaces, and the applications that run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from testbed.aws.domains import domain_arn
from testbed.aws.operations import Request
from testbed.aws.pages import page


def list_domains(request: Request) -> dict[str, Any]:
    found = [
        {
            "DomainId": name,
            "DomainArn": domain_arn(request, name),
            "DomainName": domain.name,
            "Status": domain.status,
            "CreationTime": domain.created,
        }
        for name, domain in request.account.domains.items()
    ]
    shown, following = page(found, lambda one: [one["DomainId"]], request.given)
    return {"Domains": shown, **following}


def list_user_profiles(request: Request) -> dict[str, Any]:
    found = [
        {"DomainId": domain, "UserProfileName": name, "Status": profile.status}
        for (domain, name), profile in request.account.profiles.items()
        if _is_wanted(request, domain)
    ]
    shown, following = page(found, lambda one: [one["UserProfileName"]], request.given)
    return {"UserProfiles": shown, **following}


def list_spaces(request: Request) -> dict[str, Any]:
    found = [
        {
            "DomainId": domain,
            "SpaceName": name,
            "Status": space.status,
            "OwnershipSettingsSummary": {"OwnerUserProfileName": space.owner},
            "SpaceSharingSettingsSummary": {"SharingType": space.sharing},
        }
        for (domain, name), space in request.account.spaces.items()
        if _is_wanted(request, domain)
    ]
    shown, following = page(found, lambda one: [one["SpaceName"]], request.given)
    return {"Spaces": shown, **following}


def list_apps(request: Request) -> dict[str, Any]:
    found = [one for one in _apps(request) if _is_wanted(request, one["DomainId"])]
    shown, following = page(found, lambda one: [one["SpaceName"], one["AppType"]], request.given)
    return {"Apps": shown, **following}


def _apps(request: Request) -> Iterator[dict[str, Any]]:
    for (domain, name), space in request.account.spaces.items():
        for kind in space.apps:
            yield {"DomainId": domain, "SpaceName": name, "AppType": kind, "AppName": "default", "Status": "InService"}


def _is_wanted(request: Request, domain: str) -> bool:
    return bool(request.given.get("DomainIdEquals", domain) == domain)
