"""Requests for a terminal on a node of a HyperPod cluster."""

from __future__ import annotations

import asyncio

from typing_extensions import TypedDict

from hyperpod_jlab.core.hyperpod import region_of
from hyperpod_jlab.features.terminal.service import PROGRAMS, missing_programs, terminal_on
from hyperpod_jlab.server.call import Call


class MissingProgram(TypedDict):
    """A program that is not installed where the server runs; `what` says what it is a part of, and where to get it."""

    name: str
    what: str


class HyperpodTerminal(TypedDict):
    """How to open a terminal on a node: the command of the AWS CLI in words, and as a line for a shell. It needs programs, some of which may be `missing`."""

    instance: str
    target: str
    command: list[str]
    line: str
    missing: list[MissingProgram]


async def show_terminal(call: Call, cluster: str, node: str) -> HyperpodTerminal:
    """The command that opens a terminal on a node. No session is begun."""
    aws = (await call.hyperpod()).hyperpod_clusters(region_of(cluster)).aws
    found = await terminal_on(aws, cluster, node)
    missing = await asyncio.to_thread(missing_programs)
    return {
        "instance": found.instance,
        "target": found.target,
        "command": list(found.command),
        "line": found.line,
        "missing": [{"name": name, "what": PROGRAMS[name]} for name in missing],
    }
