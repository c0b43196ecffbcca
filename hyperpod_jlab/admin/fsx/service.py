"""What an admin can choose from: domains of Studio, and file systems with the HyperPod clusters that mount them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from hyperpod_jlab.admin.fsx.apply import StepResult
from hyperpod_jlab.admin.fsx.keepers import ProvisionerOptions, open_reconciler
from hyperpod_jlab.admin.fsx.models import (
    ActualState,
    AppliedMode,
    PlanStep,
    StoragePlan,
    applied_mode,
)
from hyperpod_jlab.admin.fsx.reconcile import Reconciler, StorageRequest
from hyperpod_jlab.aws.clusters import describe_cluster, list_clusters
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import find_studio, points_to_aws
from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.errors import (
    ConflictError,
    HyperpodError,
    InternalError,
    InvalidInputError,
    NotFoundError,
)
from hyperpod_jlab.core.finding import raise_on_error
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.run.services import Hyperpod

_CONCURRENCY = 8
"""Clusters that are described at a time."""

_LUSTRE = "LUSTRE"


@dataclass(frozen=True)
class DomainChoice:
    """A domain of Studio: its id and its name."""

    id: str
    name: str


@dataclass(frozen=True)
class FileSystemChoice:
    """A file system of FSx for Lustre.

    Attributes:
        id: Its id.
        name: What its tag ``Name`` says; None: it has none.
        state: AWS' word for its state.
        clusters: The HyperPod clusters whose instance groups mount it, as far as AWS knows.
    """

    id: str
    name: str | None
    state: str
    clusters: tuple[str, ...]


@dataclass(frozen=True)
class AdminTargets:
    """All of it, and why some of it is not known: a sentence each."""

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
    """What can be chosen. What AWS does not tell is left out, and noted.

    Args:
        aws: AWS in the domains' region.
        domain: A domain that is known already: it can be chosen even where AWS lists none.

    Raises:
        HyperpodError: There are no credentials, or nobody says which region.
    """
    await aws.region()
    notes: list[str] = []
    domains, file_systems, mounts = await asyncio.gather(
        _domains(aws, notes), _file_systems(aws, notes), _mounts(aws, notes)
    )
    if domain is not None and domain not in {domain_choice.id for domain_choice in domains}:
        domains = (DomainChoice(domain, ""), *domains)
    known_ids = {domain_choice.id for domain_choice in file_systems}
    # One that FSx does not tell of, such as without the right to ask, is known from its cluster all the same.
    unlisted = tuple(
        FileSystemChoice(name, None, "", ()) for name in mounts if name not in known_ids
    )
    choices = [
        FileSystemChoice(
            domain_choice.id,
            domain_choice.name,
            domain_choice.state,
            mounts.get(domain_choice.id, ()),
        )
        for domain_choice in (*file_systems, *unlisted)
    ]
    choices.sort(key=lambda domain_choice: (not domain_choice.clusters, domain_choice.id))
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
                file_systems.append(
                    FileSystemChoice(item["FileSystemId"], tags.get("Name"), state, ())
                )
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
            return  # deleted since the list was made
        except HyperpodError as error:
            # Where one may not be described, often none may: that is said once.
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
# Plans for Studio domains and their execution for all who look: one at a time in this process, its results shown as they come, the last one kept.
#
# What is applied is what was shown: a plan is confirmed by its id. Before its first step the domain is read anew, and where something would be done that the
# plan did not show, nothing is done and the new plan is shown. Should this process end in between, nothing of it is needed to go on: a new plan has what is left.

State = Literal[
    "planning", "planned", "checking", "applying", "stopping", "applied", "stopped", "failed"
]
"""``checking``: the plan was confirmed, and what is there is read anew; ``stopping``: steps that are under way come to their end."""

BUSY: frozenset[State] = frozenset({"planning", "checking", "applying", "stopping"})

NOTIFY_INTERVAL_S = 0.5
"""Seconds between two words on progress: of 500 profiles nobody wants to hear each."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanRequest:
    """What an admin asks for: the wiring, the region (default: see `aws.session.Aws`), and who looks after folders."""

    wiring: StorageRequest
    region: str | None = None
    place: ProvisionerOptions = field(default_factory=ProvisionerOptions)


@dataclass(frozen=True)
class PlanSnapshot:
    """A plan, and what it was made from.

    Attributes:
        there: What was there.
        plan: The plan.
        id: Names just this plan: another one, of the same domain too, has another.
        mode: The mode that was applied last.
        changed: Something has changed since the plan that was confirmed, and this is shown in its place.
    """

    there: ActualState
    plan: StoragePlan
    id: str
    mode: AppliedMode | None
    changed: bool = False


@dataclass
class PlanWork:
    """A plan that is made, and is applied perhaps.

    Attributes:
        number: Its number in this process, from 1.
        asked: What was asked for.
        begun_at: When it began (Unix seconds).
        state: How it is.
        read: How many profiles and spaces were read, and how many there are.
        planned: The plan, once there is one.
        results: What became of its steps, by their index.
        ended_at: When it ended (Unix seconds).
        problem: Why it broke.
        version: Grows with each change.
    """

    number: int
    asked: PlanRequest
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
        services: Gives the services, for their configuration.
        on_change: Told of changes: at once of a new state, and now and then of progress.
    """

    def __init__(
        self, services: Callable[[], Awaitable[Hyperpod]], on_change: Callable[[PlanWork], None]
    ) -> None:
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

    def plan(self, request: PlanRequest) -> PlanWork:
        """Begin to plan; while the same plan is made that one is meant.

        Raises:
            ConflictError: Something else goes on.
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
        """Begin to do what a plan says; while just that is done already it goes on.

        Raises:
            ConflictError: It is not the plan that is shown, it was applied already, or something else goes on.
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
        """Begin no further step, if something goes on. What was done stays done."""
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
        """End what goes on: steps that are under way are left to AWS, and a new plan finds how they ended."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._later is not None:
            self._later.cancel()

    # ------------------------------------------------------------------------------ what goes on

    def _begin(
        self,
        work: PlanWork,
        coroutine: Coroutine[Any, Any, State],
        failure_message: str,
        state: State = "planning",
    ) -> None:
        work.state, work.problem, work.ended_at = state, None, None
        self._task = asyncio.create_task(
            self._run(work, coroutine, failure_message), name="hyperpod-admin"
        )
        self._notify(work)

    async def _run(
        self, work: PlanWork, coroutine: Coroutine[Any, Any, State], failure_message: str
    ) -> None:
        # Nothing was done yet where it is cancelled: a plan that was there can still be confirmed.
        state: State = "stopped" if work.planned is None else "planned"
        try:
            state = await coroutine
        except HyperpodError as error:
            state, work.problem = "failed", error
        except Exception:  # noqa: BLE001 - whoever looks is told, whatever it was
            state = "failed"
            _LOG.exception("the plan for a Studio domain %s", failure_message)
            work.problem = InternalError(
                f"the plan {failure_message}", hint="the server's log has the details"
            )
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

    async def _apply_steps(
        self, work: PlanWork, reconciler: Reconciler, shown_plan: PlanSnapshot
    ) -> State:
        plan_now = await self._make_plan(work, reconciler)
        if not _is_covered(plan_now.plan, shown_plan.plan):
            work.planned = PlanSnapshot(
                plan_now.there, plan_now.plan, plan_now.id, plan_now.mode, changed=True
            )
            return "planned"
        # Its id stays that of the plan that was confirmed; what has been done by others since is shown as done.
        work.planned = PlanSnapshot(plan_now.there, plan_now.plan, shown_plan.id, plan_now.mode)
        raise_on_error(list(plan_now.plan.findings))
        self._applying = reconciler
        work.state = "applying"
        self._notify(work)
        # A result may have its step as it is by now: one that waits for another that failed.
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
        return PlanSnapshot(
            actual, plan, _plan_id(work.asked, actual, plan), applied_mode(actual.holders)
        )

    @asynccontextmanager
    async def _reconciler(self, work: PlanWork) -> AsyncIterator[Reconciler]:
        def told(done_steps: int, total: int) -> None:
            work.read_progress = (done_steps, total)
            self._notify_soon(work)

        request = work.asked
        # Nothing is made where all is taken back.
        options = ProvisionerOptions() if request.wiring.wanted.mode is None else request.place
        services = await self._services()
        async with open_reconciler(
            services, request.wiring, request.region, options, told
        ) as reconciler:
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
            self._later = asyncio.get_running_loop().call_later(
                NOTIFY_INTERVAL_S, self._notify, work
            )


def _name(step: PlanStep) -> tuple[type[PlanStep], str]:
    return type(step), step.target


def _is_remaining(result: StepResult) -> bool:
    return result.step.state == "to do" and not result.done and result.error is None


def _busy_error() -> ConflictError:
    return ConflictError(
        "another plan is being made or applied on this server",
        code="admin_busy",
        hint="wait for its end or stop it",
    )


def _is_covered(new_plan: StoragePlan, shown_plan: StoragePlan) -> bool:
    """Whether a new plan does nothing that the other one does not. That it does less, for somebody else has done it or a space runs by now, is no harm."""

    def to_do(plan: StoragePlan) -> set[tuple[str, str, str]]:
        return {
            (step.target, step.before, step.after) for step in plan.steps if step.state == "to do"
        }

    return to_do(new_plan) <= to_do(shown_plan)


def _plan_id(request: PlanRequest, actual: ActualState, plan: StoragePlan) -> str:
    """A digest of all that is shown of a plan, and of whom it concerns."""
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
# Whether this process may wire a domain of Studio, as AWS says it; asked seldom, and never guessed.
#
# Nothing is changed by asking: who may not even list the user profiles is no admin, which is one call; of who may it is asked whether a user profile
# of a name that nobody has could be changed. AWS decides about rights before it looks for the profile, so the answer is either that there is no right, or
# that there is no such profile.

MISSING_PROFILE = "hyperpod-jlab-is-this-allowed"
"""A user profile that is not there."""

_LONG_TTL_S, _SHORT_TTL_S = 3600.0, 60.0
"""Seconds for which AWS' yes or no is believed, and for which it is not asked again where it did not say."""

_CERTAIN_CODES = frozenset({"missing_right"})


@dataclass(frozen=True)
class AdminRights:
    """Whether the Admin page is offered.

    Attributes:
        offered: AWS says that this process may change user profiles of the domain.
        domain: The domain: this space's, else the first of the region; None: none is known.
        reason: Why it is not offered.
    """

    offered: bool
    domain: str | None = None
    reason: HyperpodError | None = None


class AdminRightsCache:
    """Asks, and keeps the answer."""

    def __init__(self) -> None:
        self._rights: Cache[None, AdminRights] = Cache(_ttl)

    async def look(self) -> AdminRights:
        """The rights. However many ask at once, AWS is asked once."""
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
    """Change nothing of a profile that is not there.

    Raises:
        HyperpodError: There is no right to, or AWS did not say.
    """
    try:
        await aws.call(
            "sagemaker", "UpdateUserProfile", DomainId=domain, UserProfileName=MISSING_PROFILE
        )
    except (NotFoundError, InvalidInputError):
        return  # it was allowed, and there was nothing to change
