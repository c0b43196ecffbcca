"""Clusters that many tests share. A worker runs one of each kind at a time: a cluster takes 1.5 GB and half a core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

Cluster = TypeVar("Cluster")


class OneAtATime:
    """Ends the cluster that runs before it starts the next one.

    Tests are ordered so that those of one cluster follow each other (`tests.marks`). A cluster that is ended here is not used
    again; its fixture ends it a second time, which does nothing.
    """

    def __init__(self) -> None:
        self._running = ExitStack()

    @contextmanager
    def only(self, cluster: AbstractContextManager[Cluster]) -> Iterator[Cluster]:
        """Run this cluster, and no other one."""
        self._running.close()
        with ExitStack() as mine:
            made = mine.enter_context(cluster)
            self._running = mine
            yield made
