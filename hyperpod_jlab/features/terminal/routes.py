"""Requests for a terminal on a node of a HyperPod cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hyperpod_jlab.core.wire import Wire, wire_property
from hyperpod_jlab.features.terminal.service import PROGRAMS, NodeTerminal, build_terminal, missing_programs
from hyperpod_jlab.server.call import Call


@dataclass(frozen=True)
class MissingProgram:
    """A program that is not installed on the server's machine; `what` is the package it belongs to, and where to get it."""

    name: str
    what: str


@dataclass(frozen=True)
class HyperpodTerminal(NodeTerminal, Wire):
    """How to open a terminal on a node. The command needs programs; `missing` lists those that are not installed."""

    missing: list[MissingProgram]

    @property
    @wire_property
    def line(self) -> str:
        """The command as a line for a shell."""
        return super().line


async def show_terminal(call: Call, cluster: str, node: str) -> HyperpodTerminal:
    """Get the command that opens a terminal on a node. Does not start a session."""
    node_terminal = await build_terminal(await call.hyperpod(), cluster, node)
    missing = await asyncio.to_thread(missing_programs)
    return HyperpodTerminal(**vars(node_terminal), missing=[MissingProgram(name, PROGRAMS[name]) for name in missing])
