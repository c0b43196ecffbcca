"""Which mode a domain is in by now, from the marks that earlier plans have left: pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hyperpod_jlab.admin.there import Holder

ModeThere = Literal["shared", "per-user", "both"]
"""``both``: some of it is of the one and some of the other, as after an `apply` that did not come to its end, or of one profile alone."""


def mode_there(holders: Iterable[Holder]) -> ModeThere | None:
    """The mode that was applied last; None: nothing of ours is there.

    Args:
        holders: What has lists. Only marks count, so what somebody else has set is no mode.
    """
    private = shared = False
    for holder in holders:
        if holder.kind == "profile" and holder.mark is not None:
            own = holder.mark == f"/{holder.name}"
            private, shared = private or own, shared or not own
        elif holder.kind in {"domain", "space defaults"} and holder.mark is not None:
            shared = True
    if private and shared:
        return "both"
    if private:
        return "per-user"
    return "shared" if shared else None


def shared_there(holders: Iterable[Holder]) -> str | None:
    """The folder that all were given; None: none was."""
    return next((one.mark for one in holders if one.kind == "domain" and one.mark), None)
