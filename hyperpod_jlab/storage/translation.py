"""Path translation: the same partition as this machine and as the nodes see it.

Paths in a bundle are relative to the partition, so this is the only place where the two views meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from hyperpod_jlab.model.errors import InvalidInputError


@dataclass(frozen=True)
class PathMap:
    """The partition's root `here` (on this machine) and `there` (on the nodes, or in the pods).

    Attributes:
        shared: Whether it is the same partition there; else only the code of a run that our launcher starts is brought to `there`.
    """

    here: PurePosixPath
    there: PurePosixPath
    shared: bool = True

    @classmethod
    def of(
        cls,
        here: str | PurePosixPath,
        there: str | PurePosixPath | None = None,
        *,
        shared: bool = True,
    ) -> PathMap:
        """A map; without `there` the nodes see the partition at the same path."""
        return cls(PurePosixPath(here), PurePosixPath(there if there is not None else here), shared)

    def to_there(self, path: str | PurePosixPath) -> PurePosixPath:
        """A path of this machine as the nodes see it.

        Raises:
            InvalidInputError: The path does not lie on the partition.
        """
        return self._move(PurePosixPath(path), self.here, self.there)

    def to_here(self, path: str | PurePosixPath) -> PurePosixPath:
        """A path of the nodes as this machine sees it.

        Raises:
            InvalidInputError: The path does not lie on the partition.
        """
        return self._move(PurePosixPath(path), self.there, self.here)

    def python_there(self, python: str) -> str:
        """A Python's path for the nodes: translated when it lies on the partition, else the node's own."""
        path = PurePosixPath(python)
        return str(self.to_there(path)) if path.is_relative_to(self.here) else python

    @staticmethod
    def _move(path: PurePosixPath, source: PurePosixPath, target: PurePosixPath) -> PurePosixPath:
        if ".." in path.parts or not path.is_relative_to(source):
            raise InvalidInputError(
                f"{path} does not lie on the storage partition {source}",
                code="outside_partition",
                hint="move it to the partition, or name a path on it",
                detail={"path": str(path), "partition": str(source)},
            )
        return target / path.relative_to(source)
