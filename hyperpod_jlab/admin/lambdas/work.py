"""Planning and applying within a time limit, again where it helps: what was in somebody's way a moment ago may be gone."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypedDict, Unpack, cast

from hyperpod_jlab.admin.fsx.apply import StepResult
from hyperpod_jlab.admin.fsx.aws import is_in_use
from hyperpod_jlab.admin.fsx.folders import FolderProvisioner, FoldersThere, to_controller
from hyperpod_jlab.admin.fsx.models import (
    EntryStep,
    Folder,
    FolderStep,
    GroupStep,
    PlanStep,
    StoragePlan,
)
from hyperpod_jlab.admin.fsx.reconcile import Reconciler, StorageRequest
from hyperpod_jlab.admin.lambdas.settings import StackSettings
from hyperpod_jlab.aws.clusters import describe_cluster
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import (
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnreachableError,
)
from hyperpod_jlab.core.finding import refuse_on_error
from hyperpod_jlab.core.hyperpod import HyperpodCluster

# --------------------------------------------------------------------------------------------------
# The time that a function has, and what of it is kept for the answer.

_ANSWER, _LAST = (30.0, 0.2), (10.0, 0.1)
"""Seconds, and at most which part of the time, before the end: from then on nothing is begun, and somebody else answers."""


class LambdaContext(Protocol):
    """What Lambda hands a handler besides the event (AWS Lambda's documentation of Python's context object)."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends the function."""


class Limit:
    """Counts from when it is made.

    Args:
        context: Lambda's.
    """

    def __init__(self, context: LambdaContext) -> None:
        self.whole = context.get_remaining_time_in_millis() / 1000
        self._end = time.monotonic() + self.whole

    def to_work(self) -> float:
        """Seconds in which work may go on; never less than nothing."""
        return self._until(_ANSWER)

    def to_watchdog(self) -> float:
        """Seconds until there has to be an answer, whatever the work does."""
        return self._until(_LAST)

    def to_end(self) -> float:
        """Seconds until Lambda ends the function."""
        return max(0.0, self._end - time.monotonic())

    def _until(self, kept: tuple[float, float]) -> float:
        seconds, part = kept
        return max(0.0, self._end - min(seconds, part * self.whole) - time.monotonic())


log = logging.getLogger(__name__)

ROUNDS = 3
_PAUSE, _LONGEST_PAUSE = 2.0, 15.0
"""Seconds before the second round; the third comes after twice as long, and so on up to the longest."""

_NOT_FROM_HERE = "nobody_makes_folders"
"""The code of what is made elsewhere."""

_NAMED = 8
"""Things that a sentence names; the others are counted."""


@dataclass
class ReconcileOutcome:
    """What became of a wiring.

    Attributes:
        planned: Whether there was time for a plan.
        done: What was changed.
        settled: How many steps are as wanted.
        held: What waits for something or for somebody's decision.
        failed: What was tried and did not succeed.
        left: What there was no time for.
        blind: Why nobody could look at folders, who was to.
    """

    planned: bool = False
    done: list[PlanStep] = field(default_factory=list)
    settled: int = 0
    held: list[PlanStep] = field(default_factory=list)
    failed: list[StepResult] = field(default_factory=list)
    left: list[PlanStep] = field(default_factory=list)
    blind: HyperpodError | None = None

    @property
    def total(self) -> int:
        """All steps of the last plan."""
        return self.settled + len(self.held) + len(self.failed) + len(self.left)

    def words(self) -> str:
        """What there is to say, in a sentence."""
        if not self.planned:
            return "timed out before the current state was read"
        parts = [f"{self.settled} of {self.total} steps are up to date"]
        if self.done:
            parts.append(f"{len(self.done)} were changed")
        if self.failed:
            parts.append(
                f"{len(self.failed)} failed: "
                + _some(f"{one.step.target}: {one.error}" for one in self.failed)
            )
        if self.held:
            parts.append(
                f"{len(self.held)} wait: "
                + _some(f"{one.target}: {one.reason or one.state}" for one in self.held)
            )
        if self.left:
            parts.append(
                f"timed out before {len(self.left)}: " + _some(one.target for one in self.left)
            )
        if self.blind:
            parts.append(str(self.blind))
        return "; ".join(parts)

    def counts(self) -> dict[str, int]:
        """How many of each, for logs."""
        return {
            "changed": len(self.done),
            "as_wanted": self.settled,
            "waiting": len(self.held),
            "failed": len(self.failed),
            "left": len(self.left),
        }


def is_of_the_whole(step: PlanStep) -> bool:
    """Whether all people of the domain need it, and not a single one."""
    if isinstance(step, EntryStep):
        return step.holder.kind in {"domain", "space defaults"}
    return isinstance(step, GroupStep)


def is_passing(error: HyperpodError | None) -> bool:
    """Whether trying again may help: AWS was busy, or what was to be changed has been deleted meanwhile."""
    return isinstance(error, UnreachableError | NotFoundError) or is_in_use(error)


def waits_for_sagemaker(step: PlanStep) -> bool:
    """Whether SageMaker alone keeps it from being done. What waits for somebody is left to the schedule, which tells it each time."""
    return isinstance(step, EntryStep) and step.at_work


async def converge(
    reconciler: Reconciler,
    limit: Limit,
    *,
    concerned: Callable[[PlanStep], bool] | None = None,
    told: Callable[[str], None] = lambda _: None,
    patiently: bool = False,
) -> ReconcileOutcome:
    """Make it so, as far as time allows.

    Args:
        reconciler: Plans and applies.
        limit: The time that there is.
        concerned: Which steps are to be done, beside whatever else is under way; None: all.
        told: Called with how far it is, in words.
        patiently: Whether to go on while SageMaker is at work on what is to be changed, to the end of the time.

    Raises:
        RefusedError: The plan has a finding of level ``error``.
        HyperpodError: What is there cannot be read.
    """
    outcome = ReconcileOutcome()
    for number in itertools.count():
        work = _Round(reconciler, concerned, told, outcome.done)
        try:
            async with asyncio.timeout(limit.to_work()):
                await asyncio.sleep(min(number * _PAUSE, _LONGEST_PAUSE))
                await work.run()
        except TimeoutError:
            if work.plan is None:
                return outcome  # that of the round before
        except UnreachableError:
            if number + 1 >= ROUNDS or limit.to_work() == 0:
                raise
            continue
        outcome = work.outcome()
        if not work.may_go_on() or (
            number + 1 >= ROUNDS and not (patiently and work.waits_for_sagemaker())
        ):
            break
    return outcome


class _Round:
    """One plan and its steps."""

    def __init__(
        self,
        reconciler: Reconciler,
        concerned: Callable[[PlanStep], bool] | None,
        told: Callable[[str], None],
        done: list[PlanStep],
    ) -> None:
        self._reconciler, self._concerned, self._told = reconciler, concerned, told
        self._done = list(done)
        self._results: dict[str, StepResult] = {}
        self.plan: StoragePlan | None = None

    async def run(self) -> None:
        """Plan, and do the steps."""
        there, made = await self._reconciler.plan()
        refuse_on_error(list(made.findings))
        steps = tuple(filter(self._concerned or (lambda _: True), made.steps))
        self.plan = replace(made, steps=steps)
        # What waits is left for the next round: one profile that is being made is not to keep all others.
        todo = replace(made, steps=tuple(step for step in steps if step.state == "to do"))
        self._told(f"none of {len(steps)} steps was checked")
        if not todo.steps and there.claim is None:
            return
        # What is done to the whole domain is told on it, and looked through again (`admin.converging`).
        whole = self._concerned is None
        results = (
            self._reconciler.apply(there, todo)
            if whole
            else self._reconciler.executor(there).apply(todo)
        )
        async with contextlib.aclosing(cast("AsyncGenerator[StepResult]", results)):
            async for result in results:
                self._results[result.step.target] = result
                self._tell(result, len(steps))

    def _tell(self, result: StepResult, total: int) -> None:
        self._told(f"{len(self._results)} of {total} steps were checked")
        if result.done:
            log.info("%s: %s -> %s", result.step.target, result.step.before, result.step.after)
        elif result.error is not None and not _is_for_others(result):
            log.warning("%s: %s", result.step.target, result.error)

    def outcome(self) -> ReconcileOutcome:
        """What became of it."""
        made = ReconcileOutcome(planned=True, done=self._done)
        for planned in self.plan.steps if self.plan else ():
            result = self._results.get(planned.target)
            step = planned if result is None else result.step
            if result is not None and result.done:
                made.settled += 1
                made.done.append(step)
            elif result is not None and result.error is not None and not _is_for_others(result):
                made.failed.append(result)
            elif step.state == "done":
                made.settled += 1
            elif result is not None or step.state != "to do":
                made.held.append(step)
            else:
                made.left.append(step)
        return made

    def may_go_on(self) -> bool:
        """Whether another round may bring more."""
        errors = [one.error for one in self._results.values()]
        return self.waits_for_sagemaker() or any(map(is_passing, errors))

    def waits_for_sagemaker(self) -> bool:
        """Whether something can be done once SageMaker has ended what it is at work on."""
        errors = [one.error for one in self._results.values()]
        at_work = map(waits_for_sagemaker, self.plan.steps if self.plan else ())
        return any(at_work) or any(map(is_in_use, errors))


def _is_for_others(result: StepResult) -> bool:
    """Whether it is a folder that is made elsewhere: where the file system is mounted."""
    error = result.error
    return (
        isinstance(result.step, FolderStep) and error is not None and error.code == _NOT_FROM_HERE
    )


def _some(words: Iterator[str]) -> str:
    found = list(words)
    more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more


def plain(outcome: ReconcileOutcome) -> dict[str, Any]:
    """An outcome as plain data: counts, and what is to be said."""
    return {**outcome.counts(), "summary": outcome.words()}


# --------------------------------------------------------------------------------------------------
# Who looks after folders for a function: a Job of the Kubernetes cluster behind the HyperPod cluster, a session on the controller of a Slurm cluster, or nobody.


class FoldersOutOfReachError(UnreachableError):
    """Folders cannot be looked at on the cluster's controller. All that needs none can be done without."""

    default_code = "folders_out_of_reach"


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except HyperpodError as error:
        words = f"folders cannot be checked: {error}"
        raise FoldersOutOfReachError(words, hint=error.hint, detail=error.detail) from error


class _OnController(FoldersThere):
    """Folders by sessions on a cluster's controller."""

    async def look(self, paths: Collection[str]) -> Mapping[str, Folder | None]:
        """See `FolderProvisioner`.

        Raises:
            FoldersOutOfReachError: They cannot be looked at.
        """
        with _told():
            return await super().look(paths)


@asynccontextmanager
async def keeper_of(settings: StackSettings, aws: Aws) -> AsyncIterator[FolderProvisioner | None]:
    """Who looks after folders; None: nobody from here.

    Args:
        settings: What the stack says.
        aws: AWS in its region.

    Raises:
        InvalidInputError: It is to be a Job, and nobody says of which cluster, claim or image; or the cluster is none on EKS.
        FoldersOutOfReachError: It is to be the controller, which cannot be found.
        HyperpodError: The cluster cannot be asked for; see `aws.errors`.
    """
    if settings.folders == "cluster" and settings.cluster is not None:
        with _told():
            errand = await to_controller(
                aws, settings.cluster, settings.controller_group, settings.file_system
            )
        yield None if errand is None else _OnController(errand)
        return
    if settings.folders != "kubernetes":
        yield None
        return
    cluster, claim, image = settings.cluster, settings.claim, settings.image
    if cluster is None or claim is None or image is None:
        raise InvalidInputError(
            "Folders: kubernetes needs ClusterName, ClaimName and Image",
            detail={"field": "Folders"},
        )
    bare = HyperpodCluster(cluster, cluster, await aws.region(), "")
    found = await describe_cluster(aws, bare)
    if found.eks_arn is None:
        raise InvalidInputError(
            f"Folders: the cluster {cluster} is not on EKS",
            hint="use Folders: cluster for Slurm",
            detail={"field": "Folders"},
        )
    # Heavy, and needed by few.
    from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
    from hyperpod_jlab.engines.kubernetes.remote_task import KubernetesErrand

    eks = found.eks_arn.rpartition("/")[2]
    config = KubernetesCluster(
        orchestrator="kubernetes", hyperpod=cluster, eks=eks, namespace=settings.namespace
    )
    connection = ClusterConnection(config)
    try:
        yield FoldersThere(KubernetesErrand(connection, connection.namespace, claim, image))
    finally:
        await connection.close()


# --------------------------------------------------------------------------------------------------
# What all handlers do alike: logs that are read in CloudWatch, and a wiring within the time limit.

logger = logging.getLogger(__name__)


def tell() -> None:
    """Let Lambda log what we have to say: its own level hides what is no warning."""
    logging.getLogger("hyperpod_jlab").setLevel(logging.INFO)


class ConvergeOptions(TypedDict, total=False):
    """See `converging.converge`."""

    concerned: Callable[[PlanStep], bool] | None
    told: Callable[[str], None]
    patiently: bool


async def made_as_told(
    settings: StackSettings, wiring: StorageRequest, limit: Limit, **how: Unpack[ConvergeOptions]
) -> ReconcileOutcome:
    """Make a wiring so, with folders by whom the stack says. Where the controller cannot be reached, all is done that needs no folder (`ReconcileOutcome.blind`).

    Raises:
        HyperpodError: See `keeping.keeper_of` and `converging.converge`.
    """
    try:
        async with keeper_of(settings, Aws()) as keeper:
            return await made_so(wiring, limit, keeper, **how)
    except FoldersOutOfReachError as error:
        logger.error("%s", error)  # noqa: TRY400 - its traceback would say nothing more
        outcome = await made_so(wiring, limit, **how)
        outcome.blind = error
        return outcome


async def made_so(
    wiring: StorageRequest,
    limit: Limit,
    keeper: FolderProvisioner | None = None,
    **how: Unpack[ConvergeOptions],
) -> ReconcileOutcome:
    """Make a wiring so, and log what became of it in a line of JSON.

    Raises:
        HyperpodError: See `converging.converge`.
    """
    outcome = await converge(Reconciler(Aws(), wiring, keeper=keeper), limit, **how)
    logger.info("%s", report(wiring, outcome))
    return outcome


def report(wiring: StorageRequest, outcome: ReconcileOutcome) -> str:
    """One line of JSON, for CloudWatch's metric filters and queries."""
    told: dict[str, Any] = {
        "domain": wiring.domain,
        "mode": wiring.wanted.mode,
        **plain(outcome),
    }
    return json.dumps(told)
