"""The admin's choices: Studio domains, and file systems with the HyperPod clusters that mount them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from hyperpod_jlab.admin.fsx.apply import StepResult
from hyperpod_jlab.admin.fsx.keepers import open_reconciler
from hyperpod_jlab.admin.fsx.models import ActualState, AppliedMode, PlanStep, StoragePlan, applied_mode
from hyperpod_jlab.admin.fsx.reconcile import Reconciler
from hyperpod_jlab.admin.fsx.request import ProvisionerOptions, StorageRequest
from hyperpod_jlab.aws.clusters import describe_cluster, list_clusters
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import find_studio, points_to_aws
from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.errors import ConflictError, HyperpodError, InternalError, InvalidInputError, NotFoundError
from hyperpod_jlab.core.finding import raise_on_error
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.run.services import Hyperpod

_CONCURRENCY = 8
"""Clusters that are described concurrently."""

_LUSTRE = "LUSTRE"


@dataclass(frozen=True)
class DomainChoice:
    """A Studio domain: its id and its name."""

    id: str
    name: str


@dataclass(frozen=True)
class FileSystemChoice:
    """An FSx for Lustre file system.

    Attributes:
        id: Its id.
        name: Its tag ``Name``; None: it has none.
        state: Its state as AWS reports it.
        clusters: The HyperPod clusters whose instance groups mount it, as far as AWS reports it.
    """

    id: str
    name: str | None
    state: str
    clusters: tuple[str, ...]


@dataclass(frozen=True)
class AdminTargets:
    """All choices, and why others are missing: a sentence each."""

    domains: tuple[DomainChoice, ...]
    file_systems: tuple[FileSystemChoice, ...]
    notes: tuple[str, ...]


async def list_domains(aws: Aws) -> tuple[DomainChoice, ...]:
    """The domains of the account in the region.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    domains = [
        DomainChoice(str(item["DomainId"]), str(item.get("DomainName") or ""))
        async for page in aws.pages("sagemaker", "ListDomains")
        for item in page.get("Domains") or ()
    ]
    return tuple(domains)


async def find_choices(aws: Aws, domain: str | None = None) -> AdminTargets:
    """The available choices. What AWS does not report is omitted, with a note.

    Args:
        aws: AWS in the domains' region.
        domain: A known domain, which is a choice even if AWS lists none.

    Raises:
        HyperpodError: There are no credentials, or the region is not set.
    """
    await aws.region()
    notes: list[str] = []
    domains, file_systems, mounts = await asyncio.gather(
        _domains(aws, notes), _file_systems(aws, notes), _mounts(aws, notes)
    )
    if domain is not None and domain not in {domain_choice.id for domain_choice in domains}:
        domains = (DomainChoice(domain, ""), *domains)
    known_ids = {domain_choice.id for domain_choice in file_systems}
    # A file system that FSx does not list, such as without permission, is still known from its
    # cluster.
    unlisted = tuple(FileSystemChoice(name, None, "", ()) for name in mounts if name not in known_ids)
    choices = [
        replace(file_system, clusters=mounts.get(file_system.id, ())) for file_system in (*file_systems, *unlisted)
    ]
    choices.sort(key=lambda file_system: (not file_system.clusters, file_system.id))
    return AdminTargets(domains, tuple(choices), tuple(notes))


async def _domains(aws: Aws, notes: list[str]) -> tuple[DomainChoice, ...]:
    try:
        return await list_domains(aws)
    except HyperpodError as error:
        notes.append(_note("domains", error))
        return ()


async def _file_systems(aws: Aws, notes: list[str]) -> tuple[FileSystemChoice, ...]:
    file_systems = []
    try:
        async for page in aws.pages("fsx", "DescribeFileSystems"):
            for item in page.get("FileSystems") or ():
                if item.get("FileSystemType") != _LUSTRE:
                    continue
                tags = {tag["Key"]: tag["Value"] for tag in item.get("Tags") or ()}
                state = str(item.get("Lifecycle") or "")
                file_systems.append(FileSystemChoice(item["FileSystemId"], tags.get("Name"), state, ()))
    except HyperpodError as error:
        notes.append(_note("file systems", error))
    return tuple(file_systems)


async def _mounts(aws: Aws, notes: list[str]) -> Mapping[str, tuple[str, ...]]:
    """Names of clusters by the file system that they mount."""
    clusters: list[HyperpodCluster] = []
    try:
        async for page in list_clusters(aws):
            clusters += page
    except HyperpodError as error:
        notes.append(_note("HyperPod clusters", error))
    semaphore = asyncio.Semaphore(_CONCURRENCY)
    problems: dict[str, str] = {}
    names_by_system: dict[str, set[str]] = defaultdict(set)

    async def look(cluster: HyperpodCluster) -> None:
        try:
            async with semaphore:
                description = await describe_cluster(aws, cluster)
        except NotFoundError:
            return  # deleted after it was listed
        except HyperpodError as error:
            # If describing one is denied, it is often denied for all: one note is enough.
            problems[error.code] = _note(f"the cluster {cluster.name}", error)
            return
        for group in description.groups or ():
            for storage in group.storage:
                names_by_system[storage.dns_name.partition(".")[0]].add(cluster.name)

    await asyncio.gather(*map(look, clusters))
    notes += problems.values()
    return {name: tuple(sorted(names)) for name, names in names_by_system.items()}


def _note(subject: str, error: HyperpodError) -> str:
    hint = f" ({error.hint})" if error.hint else ""
    return f"{subject}: {error.message}{hint}"


# --------------------------------------------------------------------------------------------------
# Plans for Studio domains and their execution, shared by all clients: one at a time per process;
# results are visible at once, and the last one is kept.
#
# What is applied is what was shown: a plan is confirmed by its id. Before the first step the domain
# is read again, and if the apply would do something that the
# plan did not show, nothing is done and the new plan is shown. If this process ends in between, no
# state is lost: a new plan contains what is left.

State = Literal["planning", "planned", "checking", "applying", "stopping", "applied", "stopped", "failed"]
"""``checking``: the plan was confirmed, and the actual state is read again; ``stopping``: steps in progress finish."""

BUSY: frozenset[State] = frozenset({"planning", "checking", "applying", "stopping"})

NOTIFY_INTERVAL_S = 0.5
"""Minimum seconds between two progress events: 500 profiles must not send 500 events."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanSnapshot:
    """A plan, and the state that it was made from.

    Attributes:
        there: The actual state.
        plan: The plan.
        id: Identifies exactly this plan; another plan of the same domain has another id.
        mode: The mode that was applied last.
        changed: Whether it replaces a confirmed plan because something has changed since.
    """

    there: ActualState
    plan: StoragePlan
    id: str
    mode: AppliedMode | None
    changed: bool = False


@dataclass
class PlanWork:
    """A plan in progress, and possibly its apply.

    Attributes:
        number: Its number in this process, from 1.
        asked: The request.
        begun_at: When it started (Unix seconds).
        state: Its state.
        read_progress: Number of profiles and spaces read, and the total.
        planned: The plan, once it is made.
        results: The results of its steps, by index.
        ended_at: When it ended (Unix seconds).
        problem: Why it failed.
        version: Increases with each change.
    """

    number: int
    asked: StorageRequest
    begun_at: float
    state: State = "planning"
    read_progress: tuple[int, int] = (0, 0)
    planned: PlanSnapshot | None = None
    results: dict[int, StepResult] = field(default_factory=dict)
    ended_at: float | None = None
    problem: HyperpodError | None = None
    version: int = 0


class PlanService:
    """The plans of this process, and their execution.

    Args:
        services: Returns the services, for their configuration.
        on_change: Called on changes: at once for a new state, rate-limited for progress.
    """

    def __init__(self, services: Callable[[], Awaitable[Hyperpod]], on_change: Callable[[PlanWork], None]) -> None:
        self._services = services
        self._on_change = on_change
        self._last: PlanWork | None = None
        self._task: asyncio.Task[None] | None = None
        self._applying: Reconciler | None = None
        self._later: asyncio.TimerHandle | None = None

    @property
    def last(self) -> PlanWork | None:
        """The newest work; None before the first."""
        return self._last

    def plan(self, request: StorageRequest) -> PlanWork:
        """Start planning; if the same plan is in progress, returns that.

        Raises:
            ConflictError: Something else is in progress.
        """
        last = self._last
        if last is not None and last.state in BUSY:
            if last.state == "planning" and last.asked == request:
                return last
            raise _busy_error()
        self._last = work = PlanWork(last.number + 1 if last else 1, request, time.time())
        self._begin(work, self._plan(work), "cannot be planned")
        return work

    def apply(self, plan_id: str) -> PlanWork:
        """Start applying a plan; if exactly this is in progress, it continues.

        Raises:
            ConflictError: It is not the plan that is shown, it was already applied, or something else is in progress.
            RefusedError: The plan has a finding of level ``error``.
        """
        work = self._last
        planned = None if work is None else work.planned
        if work is None or planned is None or planned.id != plan_id:
            raise ConflictError(
                "a newer plan exists on this server",
                code="other_plan",
                hint="check the plan that is shown now and confirm it",
            )
        if work.state in BUSY:
            if work.state in {"checking", "applying"}:
                return work
            raise _busy_error()
        if work.state != "planned":
            raise ConflictError(
                "this plan was applied already",
                code="plan_is_used",
                hint="make a new plan; it contains the remaining steps",
            )
        raise_on_error(list(planned.plan.findings))
        self._begin(work, self._apply(work, planned), "broke", "checking")
        return work

    async def cancel(self) -> PlanWork | None:
        """Start no further step of the work in progress, if any. Completed steps are not undone."""
        work = self._last
        if work is None or work.state not in BUSY:
            return work
        if self._applying is not None:
            self._applying.stop()
            work.state = "stopping"
            self._notify(work)
        elif self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        return work

    async def close(self) -> None:
        """Cancel the work in progress: AWS completes the current steps, and a new plan shows their outcome."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._later is not None:
            self._later.cancel()

    # ------------------------------------------------------------------------------ what goes on

    def _begin(
        self, work: PlanWork, coroutine: Coroutine[Any, Any, State], failure_message: str, state: State = "planning"
    ) -> None:
        work.state, work.problem, work.ended_at = state, None, None
        self._task = asyncio.create_task(self._run(work, coroutine, failure_message), name="hyperpod-admin")
        self._notify(work)

    async def _run(self, work: PlanWork, coroutine: Coroutine[Any, Any, State], failure_message: str) -> None:
        # Cancelled before the first step: an existing plan can still be confirmed.
        state: State = "stopped" if work.planned is None else "planned"
        try:
            state = await coroutine
        except HyperpodError as error:
            state, work.problem = "failed", error
        except Exception:  # noqa: BLE001 - whoever looks is told, whatever it was
            state = "failed"
            _LOG.exception("the plan for a Studio domain %s", failure_message)
            work.problem = InternalError(f"the plan {failure_message}", hint="the server's log has the details")
        finally:
            self._applying = None
            work.state, work.ended_at = state, time.time()
            self._notify(work)

    async def _plan(self, work: PlanWork) -> State:
        async with self._reconciler(work) as reconciler:
            work.planned = await self._make_plan(work, reconciler)
        return "planned"

    async def _apply(self, work: PlanWork, shown_plan: PlanSnapshot) -> State:
        async with self._reconciler(work) as reconciler:
            return await self._apply_steps(work, reconciler, shown_plan)

    async def _apply_steps(self, work: PlanWork, reconciler: Reconciler, shown_plan: PlanSnapshot) -> State:
        plan_now = await self._make_plan(work, reconciler)
        if not _is_covered(plan_now.plan, shown_plan.plan):
            work.planned = replace(plan_now, changed=True)
            return "planned"
        # It keeps the id of the confirmed plan; what others have done since is shown as done.
        work.planned = replace(plan_now, id=shown_plan.id)
        raise_on_error(list(plan_now.plan.findings))
        self._applying = reconciler
        work.state = "applying"
        self._notify(work)
        # A result may contain an updated step: one that waits for another that failed.
        numbers = {_name(step): number for number, step in enumerate(plan_now.plan.steps)}
        async for result in reconciler.apply(plan_now.there, plan_now.plan):
            number = numbers.get(_name(result.step))
            if number is not None:
                work.results[number] = result
            self._notify_soon(work)
        has_left = any(_is_remaining(result) for result in work.results.values())
        return "stopped" if reconciler.stopped and has_left else "applied"

    async def _make_plan(self, work: PlanWork, reconciler: Reconciler) -> PlanSnapshot:
        actual, plan = await reconciler.plan()
        return PlanSnapshot(actual, plan, _plan_id(work.asked, actual, plan), applied_mode(actual.holders))

    @asynccontextmanager
    async def _reconciler(self, work: PlanWork) -> AsyncIterator[Reconciler]:
        def told(done_steps: int, total: int) -> None:
            work.read_progress = (done_steps, total)
            self._notify_soon(work)

        request = work.asked
        if request.wanted.mode is None:  # removing all settings provisions no folders
            request = replace(request, folders=ProvisionerOptions())
        async with open_reconciler(await self._services(), request, told) as reconciler:
            yield reconciler

    # ------------------------------------------------------------------------------ telling

    def _notify(self, work: PlanWork) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        work.version += 1
        self._on_change(work)

    def _notify_soon(self, work: PlanWork) -> None:
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(NOTIFY_INTERVAL_S, self._notify, work)


def _name(step: PlanStep) -> tuple[type[PlanStep], str]:
    return type(step), step.target


def _is_remaining(result: StepResult) -> bool:
    return result.step.state == "to do" and not result.done and result.error is None


def _busy_error() -> ConflictError:
    return ConflictError(
        "another plan is being made or applied on this server", code="admin_busy", hint="wait for its end or stop it"
    )


def _is_covered(new_plan: StoragePlan, shown_plan: StoragePlan) -> bool:
    """Whether a new plan does nothing beyond the shown one. Doing less is fine: others have done it, or a space is running by now."""

    def to_do(plan: StoragePlan) -> set[tuple[str, str, str]]:
        return {(step.target, step.before, step.after) for step in plan.steps if step.state == "to do"}

    return to_do(new_plan) <= to_do(shown_plan)


def _plan_id(request: StorageRequest, actual: ActualState, plan: StoragePlan) -> str:
    """A digest of everything that is shown of a plan, and of its targets."""
    digest_data = {
        "region": request.region,
        "domain": actual.domain,
        "file_system": actual.file_system.name,
        "wanted": asdict(plan.wanted),
        "plan": to_plain(plan),
    }
    text = json.dumps(digest_data, sort_keys=True, default=sorted)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


# --------------------------------------------------------------------------------------------------
# Whether this process has permission to configure a Studio domain, according to AWS; checked
# rarely, and never guessed.
#
# The check changes nothing: a caller that may not even list user profiles is no admin, which takes
# one call; else it tries to update a user profile
# of a name that does not exist. AWS checks permissions before it looks up the profile, so the
# answer is either permission denied or
# not found.

MISSING_PROFILE = "hyperpod-jlab-is-this-allowed"
"""A user profile that does not exist."""

_LONG_TTL_S, _SHORT_TTL_S = 3600.0, 60.0
"""TTL of AWS' answer, and of a failed check, in seconds."""

_CERTAIN_CODES = frozenset({"missing_right"})


@dataclass(frozen=True)
class AdminRights:
    """Whether the Admin page is offered: the server's role must have permission to change user profiles of the domain. Else `reason` says why not."""

    offered: bool
    domain: str | None = None
    """This space's domain, else the first of the region; None: none is known."""

    reason: HyperpodError | None = None


class AdminRightsCache:
    """Checks the permissions, and caches the answer."""

    def __init__(self) -> None:
        self._rights: Cache[None, AdminRights] = Cache(_ttl)

    async def look(self) -> AdminRights:
        """The permissions. Concurrent callers share one check."""
        return await self._rights.get(None, _ask)


def _ttl(rights: AdminRights) -> float:
    is_certain = rights.reason is None or rights.reason.code in _CERTAIN_CODES
    return _LONG_TTL_S if is_certain else _SHORT_TTL_S


async def _ask() -> AdminRights:
    if not await asyncio.to_thread(points_to_aws):
        reason = NotFoundError("no AWS account is configured here", code="no_aws")
        return AdminRights(False, reason=reason)
    studio = await asyncio.to_thread(find_studio)
    domain = studio.domain_id if studio else None
    aws = Aws(fail_fast=True)
    try:
        if domain is None:
            domains = await list_domains(aws)
            if not domains:
                raise NotFoundError("no Studio domain found in this region", code="no_domain")
            domain = domains[0].id
        await aws.call("sagemaker", "ListUserProfiles", DomainIdEquals=domain, MaxResults=1)
        await _update_missing_profile(aws, domain)
    except HyperpodError as error:
        return AdminRights(False, domain, error)
    return AdminRights(True, domain)


async def _update_missing_profile(aws: Aws, domain: str) -> None:
    """Update a profile that does not exist, which changes nothing.

    Raises:
        HyperpodError: Permission denied, or AWS did not answer.
    """
    try:
        await aws.call("sagemaker", "UpdateUserProfile", DomainId=domain, UserProfileName=MISSING_PROFILE)
    except (NotFoundError, InvalidInputError):
        return  # permission granted, and nothing to change
