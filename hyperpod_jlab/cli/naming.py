"""Find the run that the user means: by its id, the beginning or the last part of it, or ``last``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError
from hyperpod_jlab.core.run_id import split_run_id
from hyperpod_jlab.run.listing import RunFilter
from hyperpod_jlab.storage.mounts import check_present

if TYPE_CHECKING:
    from hyperpod_jlab.run.services import Hyperpod
    from hyperpod_jlab.storage.partition import Partition

    TextParam = click.ParamType[Any]  # newer versions of click are generic in a type's result
else:
    TextParam = click.ParamType


LAST = "last"
_MAX_SUGGESTIONS = 5


async def find_run(hyperpod: Hyperpod, text: str, *, exact: bool = False) -> str:
    """The id of the run that the user means.

    Args:
        hyperpod: The services.
        text: The user's text.
        exact: Only accept a whole id (or ``last``): for commands that change a run.

    Raises:
        InvalidInputError: It is not a run id, or is ambiguous.
        NotFoundError: The run does not exist.
        StorageError: The partition is not mounted, but was before.
    """
    parent, index = split_run_id(text)
    if await asyncio.to_thread(hyperpod.partition.has_run, parent):
        return text
    if text == LAST:
        return await _newest(hyperpod)
    matches = [] if exact else await asyncio.to_thread(_matching_ids, hyperpod.partition, parent)
    if len(matches) == 1:
        return matches[0] if index is None else f"{matches[0]}.{index}"
    if matches:
        names = ", ".join(matches[:_MAX_SUGGESTIONS]) + (", ..." if len(matches) > _MAX_SUGGESTIONS else "")
        raise InvalidInputError(f"'{parent}' matches {len(matches)} runs", code="ambiguous_run", hint=names)
    await asyncio.to_thread(check_present, hyperpod.partition.root)
    raise NotFoundError(f"run {text} not found", code="no_such_run", hint="list runs with: hpj runs")


async def _newest(hyperpod: Hyperpod) -> str:
    listing = await hyperpod.runs.list(RunFilter(limit=1))
    if not listing.runs:
        raise NotFoundError("there are no runs", code="no_such_run", hint="see: hpj submit --help")
    return listing.runs[0].run_id


def _matching_ids(partition: Partition, text: str) -> list[str]:
    """Run ids that start with the text, or whose part after the last hyphen equals it."""
    for folders in (partition.own_folders, partition.other_folders()):
        names = (name for folder in folders for name in folder.run_ids())
        matches = {name for name in names if name.startswith(text) or name.endswith(f"-{text}")}
        if matches:  # another user's run does not make one's own id ambiguous
            return sorted(matches, reverse=True)
    return []
