"""A domain and a file system by what an admin names: what is there, the plan, and its execution, for every face."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hyperpod_jlab.admin.applying import Executor
from hyperpod_jlab.admin.folders import ROOT, FolderKeeper, FoldersHere
from hyperpod_jlab.admin.plan import FolderStep, Plan, Wanted
from hyperpod_jlab.admin.planning import plan
from hyperpod_jlab.admin.reading import Question, Reader
from hyperpod_jlab.admin.there import There
from hyperpod_jlab.aws.clusters import describe_cluster
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.hyperpod import HyperpodCluster


@dataclass(frozen=True)
class Wiring:
    """What an admin names.

    Attributes:
        domain: The domain's id.
        wanted: What is to be there.
        cluster: The HyperPod cluster whose file system it is; None: `file_system` names it.
        file_system: The file system's id; None: the one that the cluster mounts.
        mounted_at: Where the whole file system is mounted on this machine, so that folders are looked at and made there; None: nowhere.
        among: Only these profiles and their private spaces are read, and what is wanted for all is planned for them; None: all.
        gone: Whether the file system may have been deleted.
    """

    domain: str
    wanted: Wanted
    cluster: str | None = None
    file_system: str | None = None
    mounted_at: Path | None = None
    among: frozenset[str] | None = None
    gone: bool = False


class Wirer:
    """Plans and applies a wiring.

    Args:
        aws: AWS in the domain's region.
        wiring: What is wanted.
        told: Called with the number of profiles and spaces that were read so far, and how many there are.
        keeper: Who looks at folders and makes them; default: this machine where the wiring says where it has the file system, else nobody.
    """

    def __init__(
        self,
        aws: Aws,
        wiring: Wiring,
        told: Callable[[int, int], None] | None = None,
        keeper: FolderKeeper | None = None,
    ) -> None:
        self._aws = aws
        self._wiring = wiring
        self._told = told
        if keeper is None and wiring.mounted_at is not None:
            keeper = FoldersHere(wiring.mounted_at)
        self._keeper = keeper

    async def plan(self) -> tuple[There, Plan]:
        """What is there, and what is to be done.

        Raises:
            InvalidInputError: Nobody says which file system.
            NotFoundError: There is no such domain, cluster or file system.
            HyperpodError: See `aws.errors`, and `admin.folders`.
        """
        wiring = self._wiring
        question = Question(wiring.domain, await self.file_system(), wiring.among, gone=wiring.gone)
        there = await Reader(self._aws, question, self._told).read()
        made = plan(there, wiring.wanted)
        paths = [step.path for step in made.steps if isinstance(step, FolderStep)]
        if self._keeper is None or not paths or any(one.level == "error" for one in made.findings):
            return there, made
        seen = await self._keeper.look([ROOT, *paths])
        there = replace(there, file_system=replace(there.file_system, folders=seen))
        return there, plan(there, wiring.wanted)

    def executor(self, there: There) -> Executor:
        """Who does the steps of a plan that was made from this."""
        return Executor(self._aws, there, self._keeper)

    async def file_system(self) -> str:
        """The file system's id: what was named, else the one that the cluster mounts.

        Raises:
            InvalidInputError: Nobody says which.
            NotFoundError: There is no such cluster.
        """
        return self._wiring.file_system or await self._of_cluster()

    async def _of_cluster(self) -> str:
        """The file system that the cluster's instances mount.

        Raises:
            InvalidInputError: They mount none that AWS knows of, or several.
        """
        name = self._wiring.cluster
        if name is None:
            raise InvalidInputError(
                "nobody says which file system",
                hint="name the HyperPod cluster that mounts it, or the file system: --file-system fs-...",
                detail={"field": "file_system"},
            )
        bare = HyperpodCluster(name, name, await self._aws.region(), "")
        found = await describe_cluster(self._aws, bare)
        mounted = sorted(
            {
                storage.dns_name.partition(".")[0]
                for group in found.groups or ()
                for storage in group.storage
            }
        )
        if len(mounted) != 1:
            words = ", ".join(mounted) if mounted else "none that AWS knows of"
            raise InvalidInputError(
                f"the cluster {name} mounts {words}",
                hint="name the file system: --file-system fs-... (life cycle scripts may mount one that AWS does not know of)",
                detail={"field": "file_system"},
            )
        return mounted[0]
