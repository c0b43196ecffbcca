"""``GET version``: who answers."""

from __future__ import annotations

import hyperpod_jlab
from hyperpod_jlab.server.answers import VersionAnswer
from hyperpod_jlab.server.base import API_VERSION
from hyperpod_jlab.server.call import Call


async def version(call: Call) -> VersionAnswer:  # noqa: ARG001 - every endpoint is given its call
    """The versions of this package and of its REST API."""
    return {"version": hyperpod_jlab.__version__, "api": API_VERSION}
