"""The request for an executed notebook."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hyperpod_jlab.features.notebook.service import ExecutedNotebook, read_executed_notebook
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel


class NotebookQuery(RequestModel):
    """Whose outputs."""

    rank: Annotated[int, Field(ge=0)] = 0
    """The global rank."""
    attempt: Annotated[int | None, Field(ge=1)] = None
    """The attempt. Default: the newest."""


async def show_notebook(call: Call, run_id: str, query: NotebookQuery) -> ExecutedNotebook:
    """Get the executed notebook of a run: the cells as sent, with the outputs of one rank so far."""
    return await read_executed_notebook(await call.hyperpod(), run_id, query.rank, query.attempt)
