"""Plan and apply within a time limit, with retries: obstacles may be temporary."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from hyperpod_jlab.admin.fsx.apply import StepResult
from hyperpod_jlab.admin.fsx.aws import is_in_use
from hyperpod_jlab.admin.fsx.folders import FolderProvisioner, RemoteFolderProvisioner
from hyperpod_jlab.admin.fsx.models import EntryStep, FolderStep, GroupStep, PlanStep
from hyperpod_jlab.admin.fsx.reconcile import Reconciler, describe_by_name
from hyperpod_jlab.admin.fsx.request import StorageRequest
from hyperpod_jlab.admin.lambdas.settings import StackSettings
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, NotFoundError, UnreachableError
from hyperpod_jlab.core.finding import raise_on_error

# --------------------------------------------------------------------------------------------------
# The time limit of a function, and the part reserved for the response.

_RESPONSE_RESERVE, _END_RESERVE = (30.0, 0.2), (10.0, 0.1)
"""Seconds before the end, and their maximum share of the limit: then no step is started, and the watchdog responds."""


class LambdaContext(Protocol):
    """Lambda's context object of a handler (AWS Lambda's documentation for Python)."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends the function."""


class Limit:
    """The time limit, from its creation on.

    Args:
        context: Lambda's.
    """

    def __init__(self, context: LambdaContext) -> None:
        self.whole = context.get_remaining_time_in_millis() / 1000
        self._end = time.monotonic() + self.whole

    def work_seconds(self) -> float:
        """Seconds left for work; never negative."""
        return self._seconds_until(_RESPONSE_RESERVE)

    def watchdog_seconds(self) -> float:
        """Seconds until the response is due, whatever the work does."""
        return self._seconds_until(_END_RESERVE)

    def end_seconds(self) -> float:
        """Seconds until Lambda ends the function."""
        return max(0.0, self._end - time.monotonic())

    def _seconds_until(self, reserve: tuple[float, float]) -> float:
        seconds, part = reserve
        return max(0.0, self._end - min(seconds, part * self.whole) - time.monotonic())


log = logging.getLogger(__name__)

MAX_ROUNDS = 3
_PAUSE_S, _MAX_PAUSE_S = 2.0, 15.0
"""Seconds before the second round; doubles for each further round, up to the maximum."""

_NO_PROVISIONER_CODE = "nobody_makes_folders"
"""Error code: the folder is provisioned elsewhere."""

_MAX_NAMED = 8
"""Maximum number of items listed in a sentence; the others are counted."""


@dataclass
class ReconcileOutcome:
    """The result of a reconciliation: the last plan, and what became of its steps.

    Attributes:
        earlier: What earlier rounds have changed.
        steps: The last plan's steps; None: there was no time for a plan.
        results: The results of steps, by target.
    """

    earlier: tuple[PlanStep, ...] = ()
    steps: tuple[PlanStep, ...] | None = None
    results: dict[str, StepResult] = field(default_factory=dict)

    @property
    def planned(self) -> bool:
        """Whether there was time for a plan."""
        return self.steps is not None

    @property
    def done(self) -> tuple[PlanStep, ...]:
        """What was changed, in all rounds."""
        results = (self.results.get(step.target) for step in self.steps or ())
        return (*self.earlier, *(result.step for result in results if result and result.done))

    @property
    def settled_count(self) -> int:
        """Number of steps in the desired state."""
        return sum(self._fate(step) == "settled" for step in self.steps or ())

    @property
    def waiting_steps(self) -> list[PlanStep]:
        """What waits for something or for a decision."""
        return self._with_fate("waiting")

    @property
    def remaining(self) -> list[PlanStep]:
        """What there was no time for."""
        return self._with_fate("remaining")

    @property
    def failed(self) -> list[StepResult]:
        """What failed."""
        return [self.results[step.target] for step in self._with_fate("failed")]

    def _with_fate(self, fate: str) -> list[PlanStep]:
        steps = [step for step in self.steps or () if self._fate(step) == fate]
        return [self.results[step.target].step if step.target in self.results else step for step in steps]

    def _fate(self, step: PlanStep) -> Literal["settled", "failed", "waiting", "remaining"]:
        result = self.results.get(step.target)
        current = step if result is None else result.step
        if result is not None and result.error is not None and not _is_remote_folder(result):
            return "failed"
        if current.state == "done" or (result is not None and result.done):
            return "settled"
        return "remaining" if result is None and current.state == "to do" else "waiting"

    @property
    def total(self) -> int:
        """All steps of the last plan."""
        return len(self.steps or ())

    def can_continue(self) -> bool:
        """Whether another round may achieve more."""
        errors = [result.error for result in self.results.values()]
        return self.waits_for_sagemaker() or any(map(is_transient, errors))

    def waits_for_sagemaker(self) -> bool:
        """Whether a step becomes possible once SageMaker has finished an update."""
        errors = [result.error for result in self.results.values()]
        return any(map(waits_for_sagemaker, self.steps or ())) or any(map(is_in_use, errors))

    def words(self) -> str:
        """The result as a sentence."""
        if not self.planned:
            return "timed out before the current state was read"
        parts = [f"{self.settled_count} of {self.total} steps are up to date"]
        if self.done:
            parts.append(f"{len(self.done)} were changed")
        if self.failed:
            parts.append(
                f"{len(self.failed)} failed: "
                + _join_some(f"{failure.step.target}: {failure.error}" for failure in self.failed)
            )
        if self.waiting_steps:
            parts.append(
                f"{len(self.waiting_steps)} wait: "
                + _join_some(f"{failure.target}: {failure.reason or failure.state}" for failure in self.waiting_steps)
            )
        if self.remaining:
            parts.append(
                f"timed out before {len(self.remaining)}: " + _join_some(failure.target for failure in self.remaining)
            )
        return "; ".join(parts)

    def counts(self) -> dict[str, int]:
        """The number of each, for logs."""
        return {
            "changed": len(self.done),
            "as_wanted": self.settled_count,
            "waiting": len(self.waiting_steps),
            "failed": len(self.failed),
            "left": len(self.remaining),
        }


def is_for_domain(step: PlanStep) -> bool:
    """Whether it affects all users of the domain, not a single one."""
    if isinstance(step, EntryStep):
        return step.holder.kind in {"domain", "space defaults"}
    return isinstance(step, GroupStep)


def is_transient(error: HyperpodError | None) -> bool:
    """Whether a retry may help: AWS was busy, or the resource has been deleted meanwhile."""
    return isinstance(error, UnreachableError | NotFoundError) or is_in_use(error)


def waits_for_sagemaker(step: PlanStep) -> bool:
    """Whether only SageMaker delays it. Steps that wait for a user are left to the schedule, which reports them each time."""
    return isinstance(step, EntryStep) and step.at_work


async def converge(
    request: StorageRequest,
    limit: Limit,
    provisioner: FolderProvisioner | None = None,
    *,
    on_progress: Callable[[str], None] = lambda _: None,
    waits: bool = False,
) -> ReconcileOutcome:
    """Reconcile, as far as time allows, and log the result as a line of JSON for CloudWatch's metric filters and queries.

    Args:
        request: The request.
        limit: The time limit.
        provisioner: Provisions folders; None: no folders are provisioned.
        on_progress: Called with the progress, as text.
        waits: Whether to wait for SageMaker's updates in progress, until the time limit.

    Raises:
        RefusedError: The plan has a finding of level ``error``.
        HyperpodError: The actual state cannot be read.
    """
    outcome, reconciler = ReconcileOutcome(), Reconciler(Aws(), request, provisioner=provisioner)
    for number in itertools.count():
        latest = ReconcileOutcome(outcome.done)
        try:
            async with asyncio.timeout(limit.work_seconds()):
                await asyncio.sleep(min(number * _PAUSE_S, _MAX_PAUSE_S))
                await _run_round(reconciler, latest, on_progress)
        except TimeoutError:
            if not latest.planned:
                break  # the outcome of the previous round counts
        except UnreachableError:
            if number + 1 >= MAX_ROUNDS or limit.work_seconds() == 0:
                raise
            continue
        outcome = latest
        if not outcome.can_continue() or (number + 1 >= MAX_ROUNDS and not (waits and outcome.waits_for_sagemaker())):
            break
    report = {"domain": request.domain, "mode": request.wanted.mode, **to_log_data(outcome)}
    log.info("%s", json.dumps(report))
    return outcome


async def converge_with_folders(
    settings: StackSettings,
    request: StorageRequest,
    limit: Limit,
    *,
    on_progress: Callable[[str], None] = lambda _: None,
    waits: bool = False,
) -> ReconcileOutcome:
    """The same, with the stack's folder provisioner.

    Raises:
        HyperpodError: See `open_provisioner` and `converge`.
    """
    async with open_provisioner(settings, Aws()) as provisioner:
        return await converge(request, limit, provisioner, on_progress=on_progress, waits=waits)


async def _run_round(reconciler: Reconciler, outcome: ReconcileOutcome, on_progress: Callable[[str], None]) -> None:
    """Plan, and apply the steps; `outcome` has what was achieved even if time runs out in between."""
    actual, storage_plan = await reconciler.plan()
    raise_on_error(list(storage_plan.findings))
    outcome.steps = storage_plan.steps
    # Waiting steps are left for the next round: one profile in creation must not delay all others.
    to_do = tuple(step for step in storage_plan.steps if step.state == "to do")
    on_progress(f"none of {outcome.total} steps was checked")
    if not to_do and actual.claim is None:
        return
    results = reconciler.apply(actual, replace(storage_plan, steps=to_do))
    async with contextlib.aclosing(results):
        async for result in results:
            outcome.results[result.step.target] = result
            on_progress(f"{len(outcome.results)} of {outcome.total} steps were checked")
            if result.done:
                log.info("%s: %s -> %s", result.step.target, result.step.before, result.step.after)
            elif result.error is not None and not _is_remote_folder(result):
                log.warning("%s: %s", result.step.target, result.error)


def _is_remote_folder(result: StepResult) -> bool:
    """Whether it is a folder that is provisioned elsewhere: where the file system is mounted."""
    error = result.error
    return isinstance(result.step, FolderStep) and error is not None and error.code == _NO_PROVISIONER_CODE


def _join_some(sentences: Iterator[str]) -> str:
    all_sentences = list(sentences)
    remainder = f", and {len(all_sentences) - _MAX_NAMED} more" if len(all_sentences) > _MAX_NAMED else ""
    return ", ".join(all_sentences[:_MAX_NAMED]) + remainder


def to_log_data(outcome: ReconcileOutcome) -> dict[str, Any]:
    """A result as plain data: counts, and messages."""
    return {**outcome.counts(), "summary": outcome.words()}


# --------------------------------------------------------------------------------------------------
# The folder provisioner of a function: a Job of the Kubernetes cluster behind the HyperPod cluster, or
# none: then the timer on the cluster creates folders.


@asynccontextmanager
async def open_provisioner(settings: StackSettings, aws: Aws) -> AsyncIterator[FolderProvisioner | None]:
    """The folder provisioner; None: no folders are provisioned from here.

    Args:
        settings: The stack's settings.
        aws: AWS in its region.

    Raises:
        InvalidInputError: A Job is configured without cluster, claim or image; or the cluster is not on EKS.
        HyperpodError: The cluster cannot be read; see `aws.errors`.
    """
    if settings.folders != "kubernetes":
        yield None
        return
    cluster, claim, image = settings.cluster, settings.claim, settings.image
    if cluster is None or claim is None or image is None:
        raise InvalidInputError(
            "Folders: kubernetes needs ClusterName, ClaimName and Image", detail={"field": "Folders"}
        )
    description = await describe_by_name(aws, cluster)
    if description.eks_arn is None:
        raise InvalidInputError(
            f"Folders: the cluster {cluster} is not on EKS",
            hint="use Folders: timer for Slurm",
            detail={"field": "Folders"},
        )
    # Slow to import, and rarely needed.
    from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
    from hyperpod_jlab.engines.kubernetes.remote_task import KubernetesTaskRunner

    eks = description.eks_arn.rpartition("/")[2]
    config = KubernetesCluster(orchestrator="kubernetes", hyperpod=cluster, eks=eks, namespace=settings.namespace)
    connection = ClusterConnection(config)
    try:
        yield RemoteFolderProvisioner(KubernetesTaskRunner(connection, connection.namespace, claim, image))
    finally:
        await connection.close()


def enable_logging() -> None:
    """Enable our log messages for CloudWatch: Lambda's default level hides everything below warnings."""
    logging.getLogger("hyperpod_jlab").setLevel(logging.INFO)
