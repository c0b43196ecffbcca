"""Where AWS may be otherwise than is believed: what nobody could try without an account (docs/unverified.md), each to be switched on by a test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.aws.replies import ApiError

if TYPE_CHECKING:
    from testbed.aws.operations import Request, Resource


@dataclass
class Otherwise:
    """What is otherwise; all of it is as believed at first.

    Attributes:
        role_is_passed: An update of a domain asks for ``iam:PassRole`` on each role in it: ``never``, ``new`` for one that is not there yet, ``always``.
        role_is_optional: Settings of shared spaces are taken without a role.
        update_erases: What an update of settings does not name goes away.
        empty_list_is_nothing: An empty list of file systems changes nothing.
        none_is_refused: The word ``None`` takes no script out of settings.
        used_scripts_go: A lifecycle configuration that settings name can be deleted.
        looks_before_rights: Whether a user profile is there is looked at before rights.
        addon_is_cluster: ``eks:DescribeAddon`` asks for the right on the cluster, not on the add-on.
        nodes_are_connected: Systems Manager has heard of the nodes of clusters.
        domains_fail: A domain that is made comes to nothing.
    """

    role_is_passed: str = "never"
    role_is_optional: bool = False
    update_erases: bool = False
    empty_list_is_nothing: bool = False
    none_is_refused: bool = False
    used_scripts_go: bool = False
    looks_before_rights: bool = False
    addon_is_cluster: bool = False
    nodes_are_connected: bool = True
    domains_fail: bool = False


def roles_of_update(request: Request) -> Iterator[tuple[str, Resource]]:
    """The roles that an update of a domain needs the right to pass on."""
    from testbed.aws.operations import Resource

    domain = request.account.domains.get(request.given["DomainId"])
    asked = request.account.otherwise.role_is_passed
    if domain is None or asked == "never":
        return
    for name, there in (
        ("DefaultUserSettings", domain.role),
        ("DefaultSpaceSettings", domain.space_role),
    ):
        role = request.given.get(name, {}).get("ExecutionRole")
        if role and (asked == "always" or role != there):
            yield "iam:PassRole", Resource(role.rpartition("/")[2], role)


def look_before_rights(operation: str, request: Request) -> None:
    """Look for a user profile before anybody is asked for rights, where AWS is so.

    Raises:
        ApiError: It is not there.
    """
    if operation != "UpdateUserProfile" or not request.account.otherwise.looks_before_rights:
        return
    key = request.given["DomainId"], request.given["UserProfileName"]
    if key not in request.account.profiles:
        raise ApiError("ResourceNotFound", f"User Profile with name {key[1]} not found.")
