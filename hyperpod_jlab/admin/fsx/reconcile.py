"""Reconciler: the actual state of a domain and a file system, the plan, and its execution, for all user interfaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace

from hyperpod_jlab.admin.fsx.apply import (
    DomainClaim,
    Executor,
    Guard,
    StepResult,
    check_unclaimed,
    known_folders_after,
    remaining_steps,
)
from hyperpod_jlab.admin.fsx.aws import RetryingAws, StateQuery, StateReader
from hyperpod_jlab.admin.fsx.folders import ROOT, FolderProvisioner, LocalFolderProvisioner
from hyperpod_jlab.admin.fsx.models import (
    ActualState,
    ClaimStep,
    DeletionStep,
    DesiredState,
    EntryStep,
    Folder,
    FolderStep,
    FsxFileSystem,
    PlanStep,
    StoragePlan,
)
from hyperpod_jlab.admin.fsx.mounts import desired_in_force
from hyperpod_jlab.admin.fsx.planning import plan, recheck, refusal
from hyperpod_jlab.admin.fsx.request import StorageRequest
from hyperpod_jlab.admin.lifecycle.models import LifecycleWanted, render_scripts
from hyperpod_jlab.admin.lifecycle.planning import lifecycle_findings, lifecycle_steps, path_findings
from hyperpod_jlab.admin.lifecycle.service import read_configs
from hyperpod_jlab.aws.clusters import describe_cluster
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, InvalidInputError, NotFoundError
from hyperpod_jlab.core.hyperpod import HyperpodCluster

MAX_ROUNDS = 4
"""Maximum number of passes of an apply, including the first."""

ROUND_PAUSE_S = 2.0
"""Seconds after which another apply that has seen our claim has finished its change in progress."""


class Reconciler:
    """Plans and applies a request.

    Args:
        aws: AWS in the domain's region.
        request: The request.
        on_progress: Called with the number of profiles and spaces read so far, and the total.
        provisioner: Provisions folders; None: no folders are provisioned.
    """

    def __init__(
        self,
        aws: Aws,
        request: StorageRequest,
        on_progress: Callable[[int, int], None] | None = None,
        provisioner: FolderProvisioner | None = None,
    ) -> None:
        self._aws = aws
        self._request = request
        self._on_progress = on_progress
        self._provisioner = provisioner
        self.stopped = False

    def stop(self) -> None:
        """Start no further step."""
        self.stopped = True

    async def plan(self, known_folders: Mapping[str, Folder | None] | None = None) -> tuple[ActualState, StoragePlan]:
        """Read the actual state and compute the plan.

        Args:
            known_folders: Folders that were just read; others are read again.

        Raises:
            InvalidInputError: The file system is not specified.
            NotFoundError: The domain, a user profile, the cluster or the file system does not exist.
            HyperpodError: See `aws.errors`, and `admin.folders`.
        """
        request = self._request
        name = await self.file_system()
        query = StateQuery(
            request.domain,
            name,
            all_tags=request.wanted.mode is None,
            subset=request.subset,
            may_be_missing=request.may_be_missing,
        )
        actual = await StateReader(self._aws, query, self._on_progress).read()
        wanted = desired_in_force(actual, request.wanted) if request.in_force else request.wanted
        _check_profiles(actual, wanted)
        storage_plan = self._plan(actual, wanted)
        paths = [step.path for step in storage_plan.steps if isinstance(step, FolderStep)]
        paths += [step.path for step in storage_plan.deletions]
        if self._provisioner is None or not paths or any(finding.level == "error" for finding in storage_plan.findings):
            return actual, await self._with_lifecycle(actual, name, storage_plan)
        if known_folders is not None and set(paths) <= known_folders.keys():
            folders = known_folders
        else:
            folders = await _for_file_system(actual.file_system, self._provisioner).look([ROOT, *paths])
        actual = replace(actual, file_system=replace(actual.file_system, folders=folders))
        return actual, await self._with_lifecycle(actual, name, self._plan(actual, wanted))

    async def apply(self, actual: ActualState, storage_plan: StoragePlan) -> AsyncGenerator[StepResult, None]:
        """Apply a plan's steps, then the remaining ones, until none is left or none can succeed. A step may have several results; the last one counts.

        SageMaker has neither locks nor conditional updates. So an apply to a whole domain first writes a tag on it, its claim,
        with its desired state. An apply that finds another's claim stops before the next change: the last to start wins, and
        makes one more pass after its own steps. A claim that remains shows that an apply was interrupted; the next reader then
        looks for tags without entries. After `stop`, the remaining steps are reported as not done.

        Raises:
            RefusedError: The plan has a finding of level ``error``.
            HyperpodError: Claiming the domain or reading it again failed; see `aws.errors`.
        """
        if storage_plan.wanted.profiles is not None or self._request.subset is not None:
            async for result in self.executor(actual).apply(storage_plan):
                yield result
            return
        claim = DomainClaim(self._aws, actual, storage_plan.wanted)
        await claim.acquire()
        unfinished_claims = [step for step in storage_plan.steps if isinstance(step, ClaimStep)]
        last: dict[str, StepResult] = {}
        for number in range(MAX_ROUNDS):
            async for result in self.executor(actual, claim.check).apply(storage_plan):
                last[result.step.target] = result
                yield result
            if self.stopped:
                break
            if number == 0 and claim.is_contested:
                await asyncio.sleep(ROUND_PAUSE_S)
            actual, new_plan = await self.plan(known_folders_after(actual, last))
            remaining = remaining_steps(actual, new_plan, last)
            if not remaining:
                break
            storage_plan = replace(new_plan, steps=tuple(remaining))
        # Otherwise tags may be left: from failed steps, or from an interrupted apply that was not
        # searched completely.
        is_finished = not (unfinished_claims and self.stopped) and await claim.remove_stale_marks(actual, last.values())
        if is_finished:
            await claim.release()
        for step in unfinished_claims:
            yield StepResult(step, is_finished)

    async def delete(self, actual: ActualState, steps: Sequence[DeletionStep]) -> Mapping[str, HyperpodError | None]:
        """Delete folders that nobody mounts. Reads the actual state again before.

        Args:
            actual: The actual state when the admin confirmed.
            steps: The folders that the admin confirmed.

        Returns:
            The error of each folder, by path; None on success.

        Raises:
            HyperpodError: Reading the state again failed; see `plan`.
        """
        state_now, storage_plan = await self.plan()
        steps_now = {step.path: step for step in storage_plan.deletions}
        checked = {item.path: recheck(actual, state_now, steps_now.get(item.path), item) for item in steps}
        ended: dict[str, HyperpodError | None] = {
            path: refusal(step) for path, step in checked.items() if step.state != "to do"
        }
        owners = {path: step.owner for path, step in checked.items() if step.state == "to do"}
        if owners and self._provisioner is not None:
            provisioner, aws = (_for_file_system(state_now.file_system, self._provisioner), RetryingAws(self._aws))
            ended |= await provisioner.delete(owners, lambda: check_unclaimed(aws, state_now))
        return ended

    def executor(self, actual: ActualState, guard: Guard | None = None) -> Executor:
        """The executor for a plan from this state; for `guard` see `Executor`."""
        provisioner = self._provisioner
        if provisioner is not None:
            provisioner = _for_file_system(actual.file_system, provisioner)
        return Executor(self._aws, actual, provisioner, guard=guard, stopping=lambda: self.stopped)

    def _plan(self, actual: ActualState, wanted: DesiredState) -> StoragePlan:
        """The plan; of a subset without the steps for all users, which belong to the whole domain's plan."""
        storage_plan = plan(actual, wanted)
        if self._request.subset is None:
            return storage_plan

        def is_included(step: PlanStep) -> bool:
            if isinstance(step, FolderStep):
                return step.private
            return isinstance(step, EntryStep)

        return replace(storage_plan, steps=tuple(filter(is_included, storage_plan.steps)))

    async def _with_lifecycle(self, actual: ActualState, file_system: str, storage_plan: StoragePlan) -> StoragePlan:
        """The plan with the steps on lifecycle configurations."""
        file = self._request.lifecycle
        if file is None:
            return storage_plan
        arn_by_app: dict[str, str | None] = {}
        if file.apps:
            arn_by_app |= await cluster_facts(self._aws, self._request.cluster)
        arn_by_app["file_system"] = file_system
        scripts = render_scripts(file, arn_by_app)
        desired = storage_plan.wanted
        lifecycle_desired = LifecycleWanted(scripts, file.start, desired.profiles, desired.take_over)
        configs = await read_configs(self._aws, {script.name for script in scripts.values()})
        return replace(
            storage_plan,
            steps=(*storage_plan.steps, *lifecycle_steps(actual, configs, lifecycle_desired)),
            findings=(
                *storage_plan.findings,
                *lifecycle_findings(actual, configs, lifecycle_desired),
                *path_findings(actual, desired, file.settings),
            ),
        )

    async def file_system(self) -> str:
        """The file system's id: the given one, else the one that the cluster mounts.

        Raises:
            InvalidInputError: Neither is specified.
            NotFoundError: The cluster does not exist.
        """
        return self._request.file_system or await self._cluster_file_system()

    async def _cluster_file_system(self) -> str:
        """The file system that the cluster's instances mount.

        Raises:
            InvalidInputError: They mount no file system that AWS lists, or several.
        """
        name = self._request.cluster
        if name is None:
            raise InvalidInputError(
                "no file system is given",
                hint="use --cluster with the HyperPod cluster that mounts it, or --file-system fs-...",
                detail={"field": "file_system"},
            )
        mounted = _cluster_file_systems(await describe_by_name(self._aws, name))
        if len(mounted) != 1:
            systems = ", ".join(mounted) if mounted else "no file system that AWS knows"
            raise InvalidInputError(
                f"the cluster {name} mounts {systems}",
                hint="use --file-system fs-... (lifecycle scripts may mount a file system that AWS does not know)",
                detail={"field": "file_system"},
            )
        return mounted[0]


def _check_profiles(actual: ActualState, desired: DesiredState) -> None:
    """Check that the named profiles exist.

    Raises:
        NotFoundError: One does not.
    """
    names = {holder.name for holder in actual.holders if holder.kind == "profile"}
    missing = sorted((desired.profiles or frozenset()) - names)
    if missing:
        raise NotFoundError(
            f"the domain has no user profile {', '.join(repr(name[:63]) for name in missing)}",
            code="no_such_profile",
            hint=f"aws sagemaker list-user-profiles --domain-id-equals {actual.domain}",
            detail={"field": "profiles"},
        )


def _for_file_system(file_system: FsxFileSystem, provisioner: FolderProvisioner) -> FolderProvisioner:
    """The provisioner restricted to this file system: this machine may have another one mounted."""
    return provisioner.for_file_system(file_system) if isinstance(provisioner, LocalFolderProvisioner) else provisioner


async def cluster_facts(aws: Aws, name: str | None) -> dict[str, str | None]:
    """AWS' data on a cluster for scripts of lifecycle configurations, by setting.

    Args:
        aws: AWS in the cluster's region.
        name: The cluster; None: only the region is included.

    Raises:
        NotFoundError: The cluster does not exist.
        HyperpodError: See `aws.errors`.
    """
    region = await aws.region()
    if name is None:
        return {"region": region}
    description = await describe_by_name(aws, name)
    eks = description.eks_arn.rpartition("/")[2] if description.eks_arn else None
    mounted = _cluster_file_systems(description)
    return {
        "region": region,
        "cluster": description.name,
        "orchestrator": description.aws_orchestrator,
        "eks": eks,
        "file_system": mounted[0] if len(mounted) == 1 else None,
    }


async def find_node_mount(aws: Aws, name: str, file_system: str | None) -> str | None:
    """The mount point of the whole file system on a cluster's instances, from the settings of their groups.

    Args:
        aws: AWS in the cluster's region.
        name: The cluster.
        file_system: The file system's id; None: the one that they mount.

    Returns:
        The mount point; None: AWS lists none or several, or denies permission.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    try:
        description = await describe_by_name(aws, name)
    except (DeniedError, NotFoundError):
        return None
    mount_points = {
        storage.path
        for group in description.groups or ()
        for storage in group.storage
        if file_system in {None, storage.dns_name.partition(".")[0]}
    }
    return mount_points.pop() if len(mount_points) == 1 else None


async def describe_by_name(aws: Aws, name: str) -> HyperpodCluster:
    """A cluster by its name in the region; for errors see `aws.clusters.describe_cluster`."""
    return await describe_cluster(aws, HyperpodCluster(name, name, await aws.region(), ""))


def _cluster_file_systems(cluster: HyperpodCluster) -> list[str]:
    """The file systems that a cluster's instances mount, as far as AWS lists them."""
    return sorted({storage.dns_name.partition(".")[0] for group in cluster.groups or () for storage in group.storage})
