"""Whether this process may wire a domain of Studio, as AWS says it; asked seldom, and never guessed.

Nothing is changed by asking: who may not even list the user profiles is no admin, which is one call; of who may it is asked whether a user profile
of a name that nobody has could be changed. AWS decides about rights before it looks for the profile, so the answer is either that there is no right, or
that there is no such profile.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from hyperpod_jlab.admin.choices import list_domains
from hyperpod_jlab.aws.presence import points_to_aws
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.model.errors import HyperpodError, InvalidInputError, NotFoundError

NOBODY = "hyperpod-jlab-is-this-allowed"
"""A user profile that is not there."""

_LONG, _SHORT = 3600.0, 60.0
"""Seconds for which AWS' yes or no is believed, and for which it is not asked again where it did not say."""

_SAID = frozenset({"missing_right"})


@dataclass(frozen=True)
class AdminRights:
    """Whether the Admin page is offered.

    Attributes:
        offered: AWS says that this process may change user profiles of the domain.
        domain: The domain: this space's, else the first of the region; None: none is known.
        reason: Why it is not offered.
    """

    offered: bool
    domain: str | None = None
    reason: HyperpodError | None = None


class RightsOfAdmin:
    """Asks, and keeps the answer."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._found: AdminRights | None = None
        self._until = 0.0

    async def look(self) -> AdminRights:
        """The rights. However many ask at once, AWS is asked once."""
        async with self._lock:
            if self._found is None or time.monotonic() > self._until:
                self._found = await _ask()
                reason = self._found.reason
                said = reason is None or reason.code in _SAID
                self._until = time.monotonic() + (_LONG if said else _SHORT)
            return self._found


async def _ask() -> AdminRights:
    if not await asyncio.to_thread(points_to_aws):
        reason = NotFoundError("nothing here points to an AWS account", code="no_aws")
        return AdminRights(False, reason=reason)
    studio = await asyncio.to_thread(find_studio)
    domain = studio.domain_id if studio else None
    aws = Aws(hasty=True)
    try:
        if domain is None:
            domains = await list_domains(aws)
            if not domains:
                raise NotFoundError("there is no domain of Studio in this region", code="no_domain")
            domain = domains[0].id
        await aws.call("sagemaker", "ListUserProfiles", DomainIdEquals=domain, MaxResults=1)
        await _try_to_change_nobody(aws, domain)
    except HyperpodError as error:
        return AdminRights(False, domain, error)
    return AdminRights(True, domain)


async def _try_to_change_nobody(aws: Aws, domain: str) -> None:
    """Change nothing of a profile that is not there.

    Raises:
        HyperpodError: There is no right to, or AWS did not say.
    """
    try:
        await aws.call("sagemaker", "UpdateUserProfile", DomainId=domain, UserProfileName=NOBODY)
    except (NotFoundError, InvalidInputError):
        return  # it was allowed, and there was nothing to change
