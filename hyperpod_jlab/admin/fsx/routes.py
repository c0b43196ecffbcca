"""Requests of the Admin page: permissions, choices, a plan for a Studio domain, and its execution."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from hyperpod_jlab.admin.fsx.models import Effect, RowState, StepRow
from hyperpod_jlab.admin.fsx.mounts import StorageMounts
from hyperpod_jlab.admin.fsx.request import ProvisionerOptions, StorageRequest
from hyperpod_jlab.admin.fsx.service import AdminRights, DomainChoice, FileSystemChoice
from hyperpod_jlab.core.config import LocalCluster, SchedulerName
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.core.validation import DOMAIN_ID, FILE_SYSTEM_ID, REGION
from hyperpod_jlab.core.wire import Time
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.pages import Page, TableQuery, build_page
from hyperpod_jlab.server.requests import RequestModel

if TYPE_CHECKING:
    from hyperpod_jlab.admin.fsx.apply import StepResult
    from hyperpod_jlab.admin.fsx.models import PlanStep, StepState
    from hyperpod_jlab.admin.fsx.service import PlanService, PlanSnapshot, PlanWork


# --------------------------------------------------------------------------------------------------
# Responses of the Admin page.


@dataclass(frozen=True)
class AdminFolderCluster:
    """A configured cluster whose jobs can provision folders."""

    name: str
    kind: SchedulerName


@dataclass(frozen=True)
class AdminChoices:
    """The available choices; `domain` is this space's, `folder_clusters` are the configured ones. What AWS does not report is omitted, with a note."""

    domain: str | None
    domains: tuple[DomainChoice, ...]
    file_systems: tuple[FileSystemChoice, ...]
    folder_clusters: list[AdminFolderCluster]
    notes: list[str]


@dataclass(frozen=True)
class AdminMode:
    """The current mode of a domain, by its own settings and its first profiles; null: nothing of ours was set. `shared_path` is the common folder."""

    mode: Literal["shared", "per-user", "both"] | None
    shared_path: str | None


@dataclass(frozen=True)
class AdminAsked:
    """The request of a plan; `mode` is null to remove all settings."""

    region: str | None
    domain: str
    cluster: str | None
    file_system: str | None
    mode: Literal["shared", "per-user"] | None
    shared_path: str
    profiles: list[str] | None
    take_over: bool
    folders: ProvisionerOptions


@dataclass(frozen=True)
class AdminProgress:
    """Progress."""

    done: int
    total: int


@dataclass(frozen=True)
class AdminCounts:
    """Number of steps by state."""

    as_wanted: int
    to_do: int
    waits: int
    blocked: int


@dataclass(frozen=True)
class AdminDrift:
    """Number of resources of a kind, and how many of them differ from the desired state."""

    kind: str
    total: int
    differ: int


@dataclass(frozen=True)
class AdminRestart:
    """Running applications that see the change only after a restart."""

    target: str
    apps: list[str]


@dataclass(frozen=True)
class AdminFinding:
    """A finding on the whole plan; with level `error` the plan cannot be applied."""

    level: str
    code: str
    message: str
    hint: str | None


@dataclass(frozen=True)
class AdminPlan:
    """A plan without its steps.

    `id` confirms it; `changed` means that it replaces a confirmed plan, of which nothing was done. `now` is the mode that was applied last, or `both`.
    `before` and `after` say who mounts what, now and after all steps that are not blocked.
    """

    id: str
    changed: bool
    now: Literal["shared", "per-user", "both"] | None
    file_system: str
    before: StorageMounts
    after: StorageMounts
    counts: AdminCounts
    drift: list[AdminDrift]
    restarts: list[AdminRestart]
    findings: list[AdminFinding]
    statements: tuple[Effect, ...]


@dataclass(frozen=True)
class AdminResults:
    """Number of steps that were done, failed, and are left."""

    done: int
    failed: int
    left: int


@dataclass(frozen=True)
class AdminWork:
    """The newest plan of this server, with its results.

    `number` is 0 before the first; `problem` says why it failed; `read` is the number of profiles and spaces read.
    """

    number: int
    version: int
    state: Literal["none", "planning", "planned", "checking", "applying", "stopping", "applied", "stopped", "failed"]
    begun_at: Time | None = None
    ended_at: Time | None = None
    asked: AdminAsked | None = None
    read: AdminProgress = AdminProgress(0, 0)
    plan: AdminPlan | None = None
    results: AdminResults = AdminResults(0, 0, 0)
    problem: HyperpodError | None = None


_Text = Annotated[str, Field(min_length=1, max_length=256)]
_Domain = Annotated[str, Field(pattern=DOMAIN_ID)]
_FileSystem = Annotated[str, Field(pattern=FILE_SYSTEM_ID)]


class AdminPlanBody(RequestModel):
    """The desired state."""

    mode: Literal["shared", "per-user"] | None
    """One folder for all, or one per user profile; null: remove all settings."""
    domain: _Domain | None = None
    """The domain's id; default: this space's."""
    cluster: _Text | None = None
    """The HyperPod cluster whose file system it is."""
    file_system: _FileSystem | None = None
    """The file system, instead of a cluster."""
    region: Annotated[str | None, Field(pattern=REGION)] = None
    """The domain's region; default: the default region."""
    shared_path: Annotated[str, Field(min_length=2, max_length=1024)] = "/shared"
    """The common folder in mode `shared`."""
    profiles: Annotated[list[_Text] | None, Field(min_length=1, max_length=10_000)] = None
    """Only these user profiles, without the domain's own lists; default: all."""
    take_over: bool = False
    """Also change entries that others have set."""
    folders: ProvisionerOptions | None = None
    """The folder provisioner; default: none. Not needed to remove all settings."""


class AdminModeQuery(RequestModel):
    """Which domain and file system."""

    domain: _Domain
    """The domain's id."""
    file_system: _FileSystem
    """The file system's id."""


class AdminApplyBody(RequestModel):
    """The confirmed plan."""

    plan: _Text
    """The plan's `id`."""


async def show_admin_rights(call: Call) -> AdminRights:
    """Check whether the Admin page is offered to this server's user. The answer is cached for an hour."""
    return await (await call.process.admin()).rights.look()


async def list_admin_choices(call: Call) -> AdminChoices:
    """List Studio domains, FSx for Lustre file systems, and clusters for folders to choose from."""
    from hyperpod_jlab.admin.fsx.service import find_choices
    from hyperpod_jlab.aws.session import Aws

    domain = _own_domain()
    choices = await find_choices(Aws(), domain)
    clusters, notes = await _folder_clusters(call)
    return AdminChoices(
        domain=domain,
        domains=choices.domains,
        file_systems=choices.file_systems,
        folder_clusters=clusters,
        notes=[*choices.notes, *notes],
    )


async def _folder_clusters(call: Call) -> tuple[list[AdminFolderCluster], list[str]]:
    """Configured clusters whose jobs can provision folders, and a note if the configuration is unreadable."""
    try:
        settings = (await call.process.hyperpod()).settings
    except HyperpodError as error:
        return [], [error.message]
    return [
        AdminFolderCluster(name, config.orchestrator)
        for name, config in settings.clusters.items()
        if not isinstance(config, LocalCluster)
    ], []


async def show_admin_mode(call: Call, query: AdminModeQuery) -> AdminMode:
    """Get the current mode of a domain: a quick check, independent of a plan."""
    from hyperpod_jlab.admin.fsx.aws import StateQuery, StateReader
    from hyperpod_jlab.admin.fsx.models import applied_mode, applied_shared_path
    from hyperpod_jlab.aws.session import Aws

    del call  # it is the same for all servers
    holders = await StateReader(Aws(), StateQuery(query.domain, query.file_system)).read_first()
    return AdminMode(applied_mode(holders), applied_shared_path(holders))


async def show_admin_work(call: Call) -> AdminWork:
    """Get the newest plan of this server, with its results. It continues without clients."""
    return _to_work((await _plans(call)).last)


async def begin_admin_plan(call: Call, body: AdminPlanBody) -> AdminWork:
    """Make a plan; changes nothing. If the same plan is already in progress, that one is returned."""
    return _to_work((await _plans(call)).plan(_to_request(body)))


async def apply_admin_plan(call: Call, body: AdminApplyBody) -> AdminWork:
    """Apply a plan. If an apply would differ from the plan, nothing is done, and the new plan is returned with `changed`."""
    return _to_work((await _plans(call)).apply(body.plan))


async def cancel_admin_work(call: Call) -> AdminWork:
    """Start no further step; steps in progress finish."""
    return _to_work(await (await _plans(call)).cancel())


async def _plans(call: Call) -> PlanService:
    return (await call.process.admin()).plans


def _own_domain() -> str | None:
    from hyperpod_jlab.aws.studio import find_studio

    studio = find_studio()
    return studio.domain_id if studio else None


def _to_request(body: AdminPlanBody) -> StorageRequest:
    """The plan request.

    Raises:
        InvalidInputError: The domain or file system is missing, or a folder is invalid.
    """
    from hyperpod_jlab.admin.fsx.models import DesiredState, is_folder
    from hyperpod_jlab.admin.lifecycle.models import NOTHING

    domain = body.domain or _own_domain()
    if domain is None:
        raise _invalid_field("domain", "no Studio domain is given", "give a domain id, such as d-abc123")
    if body.cluster is None and body.file_system is None:
        raise _invalid_field("file_system", "no file system is given", "give a file system or a cluster")
    path = body.shared_path
    if not is_folder(path):
        raise _invalid_field(
            "shared_path",
            f"'{path[:60]}' is not a valid folder path",
            "use a slash and then letters, digits, dots and dashes, without a slash at the end, such as /shared",
        )
    profiles = frozenset(body.profiles) if body.profiles else None
    desired = DesiredState(body.mode, path, profiles, body.take_over)
    # As in `hpj admin destroy`: also removes our scripts.
    scripts = NOTHING if body.mode is None else None
    folders = body.folders or ProvisionerOptions()
    _check_folders(folders)
    return StorageRequest(domain, desired, body.cluster, body.file_system, body.region, folders, scripts)


def _check_folders(options: ProvisionerOptions) -> None:
    """Check the folder provisioner's options.

    Raises:
        InvalidInputError: The options do not fit together, or the folder does not exist.
    """
    from hyperpod_jlab.admin.fsx.keepers import find_mismatch

    mismatch = find_mismatch(options)
    if mismatch is not None:
        name, valid_kinds = mismatch
        raise _invalid_field(
            f"folders.{name}", f"can be used only with folders by {' or '.join(valid_kinds)}", "remove it"
        )
    mounted = options.mounted_at
    if options.by == "here" and mounted and not (mounted.startswith("/") and Path(mounted).is_dir()):
        raise _invalid_field(
            "folders.mounted_at",
            f"folder {mounted[:60]} not found on the server's machine",
            "give the mount point of the whole file system there, such as /fsx",
        )


def _invalid_field(field: str, message: str, hint: str) -> InvalidInputError:
    return InvalidInputError(f"{field}: {message}", hint=hint, detail={"field": field})


def _to_work(work: PlanWork | None) -> AdminWork:
    if work is None:
        return AdminWork(0, 0, "none")
    done_count = sum(result.done for result in work.results.values())
    failed_count = sum(result.error is not None for result in work.results.values())
    plan = None if work.planned is None else _plan(work.planned)
    to_do = plan.counts.to_do if plan else 0
    return AdminWork(
        number=work.number,
        version=work.version,
        state=work.state,
        begun_at=work.begun_at,
        ended_at=work.ended_at,
        asked=_to_asked(work.asked),
        read=AdminProgress(*work.read_progress),
        plan=plan,
        results=AdminResults(done_count, failed_count, to_do - done_count - failed_count),
        problem=work.problem,
    )


def _to_asked(request: StorageRequest) -> AdminAsked:
    desired = request.wanted
    return AdminAsked(
        region=request.region,
        domain=request.domain,
        cluster=request.cluster,
        file_system=request.file_system,
        mode=desired.mode,
        shared_path=desired.shared_path,
        profiles=None if desired.profiles is None else sorted(desired.profiles),
        take_over=desired.take_over,
        folders=request.folders,
    )


def _plan(planned: PlanSnapshot) -> AdminPlan:
    from hyperpod_jlab.admin.fsx.models import apply_to_holders
    from hyperpod_jlab.admin.fsx.mounts import find_mounts

    plan = planned.plan
    holders, file_system = planned.there.holders, planned.there.file_system.name
    states = Counter(step.state for step in plan.steps)
    restarts: dict[str, set[str]] = defaultdict(set)
    for step in plan.steps:
        if step.restarts:
            restarts[step.target].update(step.restarts)
    return AdminPlan(
        id=planned.id,
        changed=planned.changed,
        now=planned.mode,
        file_system=file_system,
        before=find_mounts(holders, file_system),
        after=find_mounts(apply_to_holders(holders, plan.steps), file_system),
        counts=AdminCounts(states["done"], states["to do"], states["waits"], states["blocked"]),
        drift=_drift(planned),
        restarts=[AdminRestart(target, sorted(apps)) for target, apps in restarts.items()],
        findings=[
            AdminFinding(finding.level, finding.code, finding.message, finding.hint) for finding in plan.findings
        ],
        statements=plan.statements,
    )


def _drift(planned: PlanSnapshot) -> list[AdminDrift]:

    kinds: dict[str, list[bool]] = defaultdict(list)
    for step in planned.plan.steps:
        kinds[_kind(step)].append(step.state != "done")
    return [AdminDrift(kind, len(differ), sum(differ)) for kind, differ in kinds.items()]


def _kind(step: PlanStep) -> str:
    from hyperpod_jlab.admin.fsx.models import ClaimStep
    from hyperpod_jlab.admin.lifecycle.models import LifecycleStep

    if isinstance(step, ClaimStep):
        return "apply"
    if isinstance(step, LifecycleStep):
        return "lifecycle"
    # A target is a kind and a name; names have no spaces.
    return step.target.rpartition(" ")[0]


# --------------------------------------------------------------------------------------------------
# A page of steps; while `loading`, results are still arriving.


@dataclass(frozen=True, kw_only=True)
class AdminSteps(Page):
    """A page of steps; while `loading` more of them get a result."""

    steps: list[StepRow]
    loading: bool


class StepsQuery(TableQuery):
    """Which steps."""

    state: RowState | None = None
    """Only steps in this state."""


_STATES: Mapping[StepState, RowState] = {"done": "as-wanted", "to do": "to-do", "waits": "waits", "blocked": "blocked"}

_ENDED_STATES = frozenset({"applied", "stopped", "failed"})


async def list_admin_steps(call: Call, query: StepsQuery) -> AdminSteps:
    """List the steps of the newest plan, in order; empty before the first plan."""
    from hyperpod_jlab.admin.fsx.service import BUSY

    work = (await call.process.admin()).plans.last
    rows = [] if work is None else await asyncio.to_thread(_rows, work)
    matching = [row for row in rows if query.state in {None, row.state}]
    page = await asyncio.to_thread(build_page, StepRow, matching, query, name="key", sort="key")
    return AdminSteps(
        steps=page.rows, next=page.next, total=page.total, loading=work is not None and work.state in BUSY
    )


def _rows(work: PlanWork) -> list[StepRow]:
    if work.planned is None:
        return []
    results = dict(work.results)
    is_over = work.state in _ENDED_STATES and bool(results)
    return [_row(number, step, results.get(number), is_over) for number, step in enumerate(work.planned.plan.steps)]


def _row(number: int, step: PlanStep, result: StepResult | None, is_over: bool) -> StepRow:
    if result is not None:
        step = result.step
    state, reason, hint = _STATES[step.state], step.reason, None
    if result is not None and result.done:
        state = "done"
    elif result is not None and result.error is not None:
        state, reason, hint = "failed", result.error.message, result.error.hint
    elif is_over and step.state == "to do":
        state = "not-begun"
    return StepRow(str(number + 1), step.target, state, step.before, step.after, reason, hint, tuple(step.restarts))
