"""Paths below ours that mean nothing."""

from __future__ import annotations

from hyperpod_jlab.model.errors import NotFoundError
from hyperpod_jlab.server.base import HyperPodHandler, guarded


class UnknownPathHandler(HyperPodHandler):
    """Answers in the shape of all errors, where Jupyter would answer with a page."""

    @guarded("read")
    async def get(self) -> None:
        """Say that there is no such path."""
        raise NotFoundError(
            "there is no such path",
            code="no_such_path",
            hint="see openapi.json for those there are",
        )

    post = put = patch = delete = get
