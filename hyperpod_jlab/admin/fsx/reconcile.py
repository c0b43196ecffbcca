"""A domain and a file system by what an admin names: what is there, the plan, and its execution, for every face."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hyperpod_jlab.admin.fsx.apply import Executor, Guard, StepResult, check_unclaimed, converge
from hyperpod_jlab.admin.fsx.aws import PatientAws, ProfileSubset, Question, StateReader
from hyperpod_jlab.admin.fsx.folders import ROOT, FolderProvisioner, FoldersHere
from hyperpod_jlab.admin.fsx.models import (
    ActualState,
    DeletionStep,
    DesiredState,
    Folder,
    FolderStep,
    FsxFileSystem,
    StoragePlan,
)
from hyperpod_jlab.admin.fsx.planning import plan, refusal, still_named
from hyperpod_jlab.admin.lifecycle.models import LifecycleFile, LifecycleWanted, scripts_of
from hyperpod_jlab.admin.lifecycle.planning import (
    lifecycle_findings,
    lifecycle_steps,
    sight_findings,
)
from hyperpod_jlab.admin.lifecycle.service import read_configs
from hyperpod_jlab.aws.clusters import describe_cluster
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, InvalidInputError, NotFoundError
from hyperpod_jlab.core.hyperpod import HyperpodCluster


@dataclass(frozen=True)
class StorageRequest:
    """What an admin names.

    Attributes:
        domain: The domain's id.
        wanted: What is to be there.
        cluster: The HyperPod cluster whose file system it is; None: `file_system` names it.
        file_system: The file system's id; None: the one that the cluster mounts.
        mounted_at: Where the whole file system is mounted on this machine, so that folders are looked at and made there; None: nowhere.
        lifecycle: What is wanted of lifecycle configurations; None: they are left alone.
        among: Only these are read, and what is wanted for all is planned for them; None: all.
        gone: Whether the file system may have been deleted.
    """

    domain: str
    wanted: DesiredState
    cluster: str | None = None
    file_system: str | None = None
    mounted_at: Path | None = None
    lifecycle: LifecycleFile | None = None
    among: ProfileSubset | None = None
    gone: bool = False


class Reconciler:
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
        wiring: StorageRequest,
        told: Callable[[int, int], None] | None = None,
        keeper: FolderProvisioner | None = None,
    ) -> None:
        self._aws = aws
        self._wiring = wiring
        self._told = told
        if keeper is None and wiring.mounted_at is not None:
            keeper = FoldersHere(wiring.mounted_at)
        self._keeper = keeper
        self.stopped = False

    def stop(self) -> None:
        """Let no further step begin."""
        self.stopped = True

    async def plan(
        self, known: Mapping[str, Folder | None] | None = None
    ) -> tuple[ActualState, StoragePlan]:
        """What is there, and what is to be done.

        Args:
            known: Folders that were seen just now, which are not looked at again; others are.

        Raises:
            InvalidInputError: Nobody says which file system.
            NotFoundError: There is no such domain, user profile, cluster or file system.
            HyperpodError: See `aws.errors`, and `admin.folders`.
        """
        wiring = self._wiring
        name = await self.file_system()
        question = Question(
            wiring.domain,
            name,
            all_tags=wiring.wanted.mode is None,
            among=wiring.among,
            gone=wiring.gone,
        )
        there = await StateReader(self._aws, question, self._told).read()
        _check_profiles(there, wiring.wanted)
        made = plan(there, wiring.wanted)
        paths = [step.path for step in made.steps if isinstance(step, FolderStep)]
        paths += [step.path for step in made.deletions]
        if self._keeper is None or not paths or any(one.level == "error" for one in made.findings):
            return there, await self._with_lifecycle(there, name, made)
        if known is not None and set(paths) <= known.keys():
            seen = known
        else:
            seen = await _for(there.file_system, self._keeper).look([ROOT, *paths])
        there = replace(there, file_system=replace(there.file_system, folders=seen))
        return there, await self._with_lifecycle(there, name, plan(there, wiring.wanted))

    async def apply(self, there: ActualState, made: StoragePlan) -> AsyncIterator[StepResult]:
        """Do a plan's steps, and look through everything again until nothing is left, see `converging`; once it is stopped (`stop`) those that are left are told as not done.

        Raises:
            HyperpodError: See `converging.converge`.
        """
        async for result in converge(
            self._aws, there, made, self.plan, self.executor, lambda: self.stopped
        ):
            yield result

    async def delete(
        self, there: ActualState, asked: Sequence[DeletionStep]
    ) -> Mapping[str, HyperpodError | None]:
        """Delete folders that nobody mounts any more. Everything is looked at again before.

        Args:
            there: What was there when an admin was asked.
            asked: The folders that were named to him.

        Returns:
            What kept each, by its path, from being deleted; None: nothing.

        Raises:
            HyperpodError: It cannot be looked at again; see `plan`.
        """
        now, made = await self.plan()
        found = {step.path: step for step in made.deletions}
        seen = {one.path: still_named(there, now, found.get(one.path), one) for one in asked}
        ended: dict[str, HyperpodError | None] = {
            path: refusal(step) for path, step in seen.items() if step.state != "to do"
        }
        owners = {path: step.owner for path, step in seen.items() if step.state == "to do"}
        if owners and self._keeper is not None:
            keeper, aws = _for(now.file_system, self._keeper), PatientAws(self._aws)
            ended |= await keeper.delete(owners, lambda: check_unclaimed(aws, now))
        return ended

    def executor(self, there: ActualState, guard: Guard | None = None) -> Executor:
        """Who does the steps of a plan that was made from this.

        Args:
            there: What was there when it was made.
            guard: See `Executor`.
        """

        def stopping() -> bool:
            return self.stopped

        keeper = None if self._keeper is None else _for(there.file_system, self._keeper)
        return Executor(self._aws, there, keeper, guard=guard, stopping=stopping)

    async def _with_lifecycle(
        self, there: ActualState, file_system: str, made: StoragePlan
    ) -> StoragePlan:
        """The plan with the steps on lifecycle configurations."""
        file = self._wiring.lifecycle
        if file is None:
            return made
        found: dict[str, str | None] = {}
        if file.apps:
            found |= await cluster_facts(self._aws, self._wiring.cluster)
        found["file_system"] = file_system
        scripts = scripts_of(file, found)
        asked = made.wanted
        wanted = LifecycleWanted(scripts, file.start, asked.profiles, asked.take_over)
        configs = await read_configs(self._aws, {one.name for one in scripts.values()})
        return replace(
            made,
            steps=(*made.steps, *lifecycle_steps(there, configs, wanted)),
            findings=(
                *made.findings,
                *lifecycle_findings(there, configs, wanted),
                *sight_findings(there, asked, file.settings),
            ),
        )

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
            InvalidInputError: They mount no file system that AWS knows, or several.
        """
        name = self._wiring.cluster
        if name is None:
            raise InvalidInputError(
                "no file system is given",
                hint="use --cluster with the HyperPod cluster that mounts it, or --file-system fs-...",
                detail={"field": "file_system"},
            )
        bare = HyperpodCluster(name, name, await self._aws.region(), "")
        found = await describe_cluster(self._aws, bare)
        mounted = _mounted_by(found)
        if len(mounted) != 1:
            words = ", ".join(mounted) if mounted else "no file system that AWS knows"
            raise InvalidInputError(
                f"the cluster {name} mounts {words}",
                hint="use --file-system fs-... (lifecycle scripts may mount a file system that AWS does not know)",
                detail={"field": "file_system"},
            )
        return mounted[0]


def _check_profiles(there: ActualState, wanted: DesiredState) -> None:
    """See that the profiles are there that are named.

    Raises:
        NotFoundError: One is not.
    """
    names = {holder.name for holder in there.holders if holder.kind == "profile"}
    missing = sorted((wanted.profiles or frozenset()) - names)
    if missing:
        raise NotFoundError(
            f"the domain has no user profile {', '.join(repr(name[:63]) for name in missing)}",
            code="no_such_profile",
            hint=f"aws sagemaker list-user-profiles --domain-id-equals {there.domain}",
            detail={"field": "profiles"},
        )


def _for(file_system: FsxFileSystem, keeper: FolderProvisioner) -> FolderProvisioner:
    """A keeper for just this file system: what this machine has mounted may be another one."""
    return keeper.of(file_system) if isinstance(keeper, FoldersHere) else keeper


async def cluster_facts(aws: Aws, name: str | None) -> dict[str, str | None]:
    """What AWS tells of a cluster that scripts of lifecycle configurations need, by the names of their settings.

    Args:
        aws: AWS in the cluster's region.
        name: The cluster; None: only the region is told.

    Raises:
        NotFoundError: There is no such cluster.
        HyperpodError: See `aws.errors`.
    """
    region = await aws.region()
    if name is None:
        return {"region": region}
    found = await describe_cluster(aws, HyperpodCluster(name, name, region, ""))
    eks = found.eks_arn.rpartition("/")[2] if found.eks_arn else None
    mounted = _mounted_by(found)
    return {
        "region": region,
        "cluster": found.name,
        "orchestrator": found.aws_orchestrator,
        "eks": eks,
        "file_system": mounted[0] if len(mounted) == 1 else None,
    }


async def mounted_on_nodes(aws: Aws, name: str, file_system: str | None) -> str | None:
    """Where a cluster's instances have the whole file system, as it was given when their groups were made.

    Args:
        aws: AWS in the cluster's region.
        name: The cluster.
        file_system: The file system's id; None: the one that they mount.

    Returns:
        The place; None: AWS does not know of one, or of several, or may not be asked.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    try:
        found = await describe_cluster(aws, HyperpodCluster(name, name, await aws.region(), ""))
    except (DeniedError, NotFoundError):
        return None
    places = {
        storage.path
        for group in found.groups or ()
        for storage in group.storage
        if file_system in {None, storage.dns_name.partition(".")[0]}
    }
    return places.pop() if len(places) == 1 else None


def _mounted_by(cluster: HyperpodCluster) -> list[str]:
    """The file systems that a cluster's instances mount, as far as AWS knows."""
    return sorted(
        {
            storage.dns_name.partition(".")[0]
            for group in cluster.groups or ()
            for storage in group.storage
        }
    )
