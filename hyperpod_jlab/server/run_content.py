"""Requests about what belongs to a run: its spec, script and code, its children, why it waits, and what it used."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import cast

from typing_extensions import TypedDict

from hyperpod_jlab.model.run import Run
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.server.answers import (
    Children,
    RenderedText,
    RunAccess,
    RunUsage,
    Usage,
    WaitReason,
    run_answer,
)
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.services.run_files import code_of, code_text, rendered_of
from hyperpod_jlab.storage.records import BundleReader


class CodeFile(TypedDict):
    """One file that was sent; its size is null when it is gone."""

    path: str
    size: int | None


class Code(TypedDict):
    """The files of a run's code and project, as they were sent."""

    files: list[CodeFile]


class CodeText(TypedDict):
    """The text of one file."""

    path: str
    text: str


_MOST_CHILDREN = 500
"""As many as the run page shows."""


async def show_spec(call: Call, run_id: str) -> JobSpec:
    """A run's spec."""
    bundle = await _bundle(call, run_id)
    return await asyncio.to_thread(bundle.spec)


async def show_script(call: Call, run_id: str) -> RenderedText:
    """The script or manifest that the scheduler was given."""
    name, text = await asyncio.to_thread(rendered_of, await _bundle(call, run_id))
    return {"name": name, "text": text}


async def list_code(call: Call, run_id: str) -> Code:
    """The files of a run's code and project, as they were sent."""
    found = await asyncio.to_thread(code_of, await _bundle(call, run_id))
    return {"files": [{"path": file.path, "size": file.size} for file in found]}


async def show_code(call: Call, run_id: str, path: str) -> CodeText:
    """The text of one file that was sent."""
    text = await asyncio.to_thread(code_text, await _bundle(call, run_id), path)
    return {"path": path, "text": text}


async def list_children(call: Call, run_id: str) -> Children:
    """The children of an array, in the order of their indices; none for other runs. Of more than 500 those first that have begun."""
    hyperpod = await call.hyperpod()
    children = await hyperpod.runs.children(run_id, _MOST_CHILDREN)
    return await asyncio.to_thread(_children_answer, children)


def _children_answer(children: tuple[Run, ...]) -> Children:
    return {"runs": [run_answer(run) for run in children]}


async def explain_wait(call: Call, run_id: str) -> WaitReason:
    """Why a run waits, and what would start now."""
    hyperpod = await call.hyperpod()
    return cast("WaitReason", (await hyperpod.runs.explain_wait(run_id)).to_dict())


async def show_access(call: Call, run_id: str) -> RunAccess:
    """How to get into a run's nodes: commands that open shells, and whether ports can be reached.

    A port of node 0 is opened by ``POST runs/{run_id}/ports/{port}/open``, one of another node by ``runs/{run_id}/ports/{node}:{port}/open``.
    """
    hyperpod = await call.hyperpod()
    return cast("RunAccess", asdict(await hyperpod.access(run_id)))


async def show_usage(call: Call, run_id: str) -> RunUsage:
    """What a run that has ended used."""
    hyperpod = await call.hyperpod()
    usage = await hyperpod.runs.usage(run_id)
    return {"usage": None if usage is None else cast("Usage", usage.to_dict())}


async def _bundle(call: Call, run_id: str) -> BundleReader:
    hyperpod = await call.hyperpod()
    return await asyncio.to_thread(hyperpod.runs.bundle, run_id)
