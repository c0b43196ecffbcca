"""Submit a run: capture, check, bundle, hand over. Every step can be interrupted and retried.

The run id is the idempotency key: the bundle is renamed into place once; a second submit gets the same run, or completes what the first left undone.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import platform
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hyperpod_jlab.clusters.identity import shared_space
from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.core.fields import NO_MLFLOW, is_mlflow_uri
from hyperpod_jlab.core.finding import Finding, raise_on_error
from hyperpod_jlab.core.records import Head, Observation, Submission
from hyperpod_jlab.core.run_id import check_new_run_id, new_run_id
from hyperpod_jlab.core.spec import JobSpec, MlflowOptions
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.launch import GuardPolicy, launch_plan
from hyperpod_jlab.engines.protocol import NativeFacts, NativeFile, Orchestrator, Rendered, Renderer, RenderInput
from hyperpod_jlab.engines.registry import Engines
from hyperpod_jlab.run.preflight import (
    Dependencies,
    check_native_file,
    check_secret_values,
    dependencies,
    environment_findings,
    foreign_code,
    launcher_findings,
    mlflow_findings,
    preflight,
    raise_if_untrusted,
    secret_findings,
    space_findings,
    suspect_code,
    time_findings,
    variable_findings,
    version_findings,
)
from hyperpod_jlab.storage.bundle import BundleWriter, withdraw
from hyperpod_jlab.storage.files import to_json
from hyperpod_jlab.storage.owners import current_user, user_name
from hyperpod_jlab.storage.processes import this_process
from hyperpod_jlab.storage.records import BUNDLE_FORMAT, BundleReader

if TYPE_CHECKING:
    from hyperpod_jlab.capture.captured import Captured, FunctionCall
    from hyperpod_jlab.capture.isolated import Isolated
    from hyperpod_jlab.core.config import MlflowConfig, Settings
    from hyperpod_jlab.run.cost import Estimate
    from hyperpod_jlab.run.service import Runs

Step = Literal["captured", "checked", "staged", "committed", "sent", "recorded"]
"""The steps of a submit; each is reported when it is done."""


@dataclass(frozen=True)
class Request:
    """A request to submit a run.

    Attributes:
        spec: The spec.
        cluster: The cluster's name, or None for the default one.
        run_id: The client's run id, or None to create one.
        base: The base folder of relative source paths.
        notebook: The notebook with the caller's unsaved edits; None to read it from disk.
        call: The function and its arguments, for a function source.
        secrets: Values of the spec's secrets that have no reference, by name.
        clone_of: An earlier run whose code is submitted again; the spec's source is then informational.
        trust_owner: The owner of the run `clone_of`, if the caller has confirmed that another user's code is to run with this user's rights.
        accept_cost: Whether the user has confirmed a cost over ``cost.confirm_over``.
        interpreter: The Python whose packages ``environment.capture`` means; None for this process's.

    Raises:
        InvalidInputError: A value is given for something that is not a secret of the spec.
    """

    spec: JobSpec
    cluster: str | None = None
    run_id: str | None = None
    base: Path = field(default_factory=Path.cwd)
    notebook: Mapping[str, Any] | None = None
    call: FunctionCall | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    clone_of: str | None = None
    trust_owner: str | None = None
    accept_cost: bool = False
    interpreter: str | None = None

    def __post_init__(self) -> None:
        check_secret_values(self.spec, self.secrets)


@dataclass(frozen=True)
class SubmitPreview:
    """Exactly what will run, and all findings."""

    run_id: str
    spec: JobSpec
    captured: Captured
    plan: dict[str, Any]
    rendered: Rendered
    findings: tuple[Finding, ...]
    unreachable: UnreachableError | None = None
    """Why the cluster could not be checked."""
    cost: Estimate | None = None
    """What it would cost; None if that was not asked for."""


@dataclass(frozen=True)
class _Answers:
    """What was found by asking, or by starting something, before a run is rendered.

    Attributes:
        findings: The findings.
        unreachable: Why the cluster could not be checked.
        after: The scheduler's ids of the runs that it waits for.
        time_limit: The cluster's default time limit in seconds, for a spec without one.
    """

    findings: tuple[Finding, ...] = ()
    unreachable: UnreachableError | None = None
    after: tuple[str, ...] = ()
    time_limit: int | None = None


def _ignore(_: object) -> None:
    pass


class Submitter:
    """Submits runs.

    Args:
        engines: The engines.
        runs: Returns the runs on the partition, for a run with dependencies.
        estimate: Tells what a run would cost: of its spec, cluster, time limit, and the number of nodes of a native file.
        isolated: Where code is captured; None for this process.
    """

    def __init__(
        self,
        engines: Engines,
        runs: Callable[[], Runs],
        estimate: Callable[[JobSpec, str, int | None, NativeFacts | None], Awaitable[Estimate]] | None = None,
        isolated: Isolated | None = None,
    ) -> None:
        self._engines = engines
        self._estimate = estimate
        self._isolated = isolated
        self._runs = runs
        self._partition = engines.partition
        self._abandoned_runs: set[str] = set()

    async def preview(self, request: Request, *, with_cost: bool = True) -> SubmitPreview:
        """Capture the code and check it with the cluster; sends and writes nothing. Starts nothing of another user's run before `trust_owner` names the user.

        Args:
            request: What to run.
            with_cost: Whether to tell what it would cost, even if the configuration has no limit for that.

        Raises:
            NotFoundError: The cluster does not exist.
            InvalidInputError: The source or the selection is invalid.
            RefusedError: The interpreter cannot be used.
        """
        engine = self._engines.get(request.cluster)
        spec = _with_configuration(request.spec, self._engines.settings, engine.name)
        run_id = check_new_run_id(request.run_id) if request.run_id is not None else new_run_id()
        captured = await self._capture(request)
        distrusted = await asyncio.to_thread(self._trust_finding, request)
        if distrusted is not None:
            # Whatever the other user's spec asks for, this part of an engine can only write a script.
            renderer = Renderer.of(engine)
            answers = _Answers((distrusted,))
            preview, _ = await self._render(request, spec, run_id, captured, renderer, answers)
            return preview
        answers = await self._ask(engine, request, captured)
        renderer = Renderer.of(engine)
        preview, render_input = await self._render(request, spec, run_id, captured, renderer, answers)
        preview = await self._check_rendered(engine, request, preview, render_input)
        return await self._with_cost(engine, request, preview, answers.time_limit, shown=with_cost)

    async def _ask(self, engine: Orchestrator, request: Request, captured: Captured) -> _Answers:
        """What the cluster, and the interpreter that the spec names, say of a run."""
        spec = request.spec
        findings, unreachable = await preflight(engine, spec)
        awaited = await self._check_dependencies(spec.after, engine)
        findings += awaited.findings
        if request.clone_of is None:
            findings += await version_findings(engine, spec)
        findings += await environment_findings(engine, spec, captured.files)
        limit = None
        if not spec.time_limit and engine.time_limits is not None:
            limit = await engine.time_limits.time_limit(spec)
        return _Answers(tuple(findings), unreachable, awaited.scheduler_ids, limit)

    async def _render(
        self, request: Request, spec: JobSpec, run_id: str, captured: Captured, renderer: Renderer, answers: _Answers
    ) -> tuple[SubmitPreview, RenderInput]:
        """What will run, from files and the configuration only: also for another user's code, before it is trusted."""
        findings = [
            *captured.findings,
            *answers.findings,
            *secret_findings(request.spec, request.secrets),
            *variable_findings(request.spec),
            *launcher_findings(request.spec),
            *mlflow_findings(request.spec, spec),
            *time_findings(request.spec),
            *space_findings(),
        ]
        python = renderer.python(request.spec)
        plan = launch_plan(
            spec,
            run_id,
            captured.command,
            python,
            captured.cwd,
            self._engines.settings.is_on_hyperpod(renderer.name),
            await asyncio.to_thread(self._mlflow_facts, request, spec, captured.name, renderer.name),
        )
        render_input = RenderInput(
            run_id,
            captured.name,
            spec,
            str(self._partition.bundle(run_id).relative_to(self._partition.root)),
            renderer.paths,
            python,
            await asyncio.to_thread(
                GuardPolicy.current, self._engines.settings.storage.owner, shared=self._partition.shared
            ),
            time_limit=request.spec.time_limit or answers.time_limit,
            after=answers.after,
            native=_native(request.spec, captured),
            user=current_user(),
        )
        # In a thread, because a user's file may be large.
        rendered = await asyncio.to_thread(renderer.render, render_input)
        preview = SubmitPreview(run_id, spec, captured, plan, rendered, tuple(findings), answers.unreachable)
        return preview, render_input

    async def _check_rendered(
        self, engine: Orchestrator, request: Request, preview: SubmitPreview, render_input: RenderInput
    ) -> SubmitPreview:
        """The preview with what the cluster says of a user's own script."""
        if request.spec.source.kind != "native" or preview.unreachable is not None:
            return preview
        findings, unreachable = await check_native_file(engine, render_input, preview.rendered)
        return replace(preview, findings=(*preview.findings, *findings), unreachable=unreachable)

    async def _with_cost(
        self, engine: Orchestrator, request: Request, preview: SubmitPreview, default_limit: int | None, *, shown: bool
    ) -> SubmitPreview:
        """The preview with what the run would cost, if that is shown or limited."""
        config = self._engines.settings.cost
        if self._estimate is None or not (shown or config.has_limits):
            return preview
        from hyperpod_jlab.run.cost import limit_findings

        limit = request.spec.time_limit or default_limit
        cost = await self._estimate(request.spec, engine.name, limit, preview.rendered.facts)
        findings = limit_findings(cost, config, accepted=request.accept_cost)
        return replace(preview, findings=(*preview.findings, *findings), cost=cost)

    async def submit(
        self,
        request: Request,
        on_step: Callable[[Step], None] = _ignore,
        on_preview: Callable[[SubmitPreview], None] = _ignore,
    ) -> str:
        """Submit a run; returns its id. The same id and spec again return the same run.

        Args:
            request: What to run.
            on_step: Called after each step, for progress.
            on_preview: Called with all findings, before anything is written.

        Raises:
            NotFoundError: The cluster does not exist.
            InvalidInputError: The source or the selection is invalid.
            RefusedError: A finding of level error, or the scheduler's own refusal; nothing is left of the run.
            ConflictError: Another spec or another user has the run id.
            StorageError: The partition is full, read-only or not trustworthy; nothing is left of the run.
            UnreachableError: The cluster does not answer; nothing is left of the run unless the submit was in flight.
        """
        preview = await self.preview(request, with_cost=False)
        on_preview(preview)
        on_step("captured")
        engine = self._engines.get(request.cluster)
        bundle = BundleReader(self._partition, preview.run_id)
        digest = _digest(request.spec, preview, engine.name)
        raise_if_untrusted(preview.findings)
        if await asyncio.to_thread(self._partition.has_run, preview.run_id):
            return await self._resume(engine, bundle, digest, on_step)
        raise_on_error(list(preview.findings))
        if preview.unreachable is not None:
            raise preview.unreachable
        on_step("checked")
        uid = await engine.job_user.job_uid() if engine.job_user is not None else None
        bundle_task = asyncio.create_task(
            asyncio.to_thread(self._make_bundle, request, preview, engine, digest, on_step, uid)
        )
        try:
            first = await asyncio.shield(bundle_task)
        except asyncio.CancelledError as error:
            if await bundle_task:  # a thread cannot be cancelled: the bundle was created, but will not be submitted
                await record_failure(bundle, error)
            raise
        if not first:
            return await self._resume(engine, bundle, digest, on_step)
        await self._send(engine, bundle, on_step, committed=True)
        return preview.run_id

    async def _check_dependencies(self, run_ids: Sequence[str], engine: Orchestrator) -> Dependencies:
        return await dependencies(run_ids, engine, self._runs()) if run_ids else Dependencies()

    def _trust_finding(self, request: Request) -> Finding | None:
        """A finding if the code belongs to another user, or may come from one, and the caller has not confirmed it."""
        if request.clone_of is None:
            return None
        bundle = BundleReader(self._partition, request.clone_of)
        name = user_name(bundle.owner)
        if not bundle.is_own:
            return None if request.trust_owner == name else foreign_code(request.clone_of, name)
        if not bundle.is_suspect:
            return None
        is_moved = bundle.folder.is_relative_to(self._partition.folder)
        trusted = is_moved and request.trust_owner == name
        return None if trusted else suspect_code(request.clone_of, name, is_moved=is_moved)

    async def _capture(self, request: Request) -> Captured:
        if request.clone_of is not None:
            from hyperpod_jlab.run.clone import recapture

            return await asyncio.to_thread(recapture, self._partition, request.clone_of, request.spec)
        from hyperpod_jlab.capture import capture

        call = self._isolated.call if self._isolated is not None else asyncio.to_thread
        return await call(
            capture,
            request.spec,
            base=request.base,
            notebook=dict(request.notebook) if request.notebook is not None else None,
            call=request.call,
            interpreter=request.interpreter,
        )

    def _mlflow_facts(self, request: Request, spec: JobSpec, name: str, cluster: str) -> dict[str, Any]:
        """What MLflow is told of the run."""
        if spec.mlflow.server is None:
            return {}
        if request.clone_of is not None:
            mlflow = BundleReader(self._partition, request.clone_of).plan().get("mlflow")
            commit = mlflow.get("commit") if isinstance(mlflow, dict) else None
        else:
            from hyperpod_jlab.capture.project import find_commit

            path = getattr(spec.source, "path", None)
            root = spec.files.root or (Path(path).parent if path else ".")
            commit = find_commit(request.base / root)
        facts: dict[str, Any] = {"run_name": spec.name or name, "cluster": cluster}
        if commit:
            facts["commit"] = str(commit)
        return facts

    def _notebook(self, request: Request) -> str | None:
        """The notebook that the run comes from."""
        if request.clone_of is not None:
            from hyperpod_jlab.run.clone import find_notebook

            return find_notebook(self._partition, request.clone_of)
        source = request.spec.source
        return str((request.base / source.path).absolute()) if source.kind == "notebook" else None

    def _make_bundle(
        self,
        request: Request,
        preview: SubmitPreview,
        engine: Orchestrator,
        digest: str,
        on_step: Callable[[Step], None],
        job_uid: int | None,
    ) -> bool:
        from hyperpod_jlab.launcher import launcher_source

        with BundleWriter(self._partition, preview.run_id, job_uid) as writer:
            for code in preview.captured.files:
                writer.add_bytes(code.path, code.data, executable=code.executable)
            for project in preview.captured.project:
                writer.add_file(
                    f"work/{project.path}", project.source, executable=project.executable, digest=project.digest
                )
            writer.add_bytes("launcher.py", launcher_source())
            if preview.spec.environment.capture is not None:
                writer.open_environments()
            writer.write("spec.json", preview.spec.model_dump_json(exclude_defaults=False).encode())
            writer.write("launch.json", to_json(preview.plan))
            writer.write(preview.rendered.filename, preview.rendered.text.encode())
            writer.write_secrets(request.secrets)
            head = _head(self._notebook(request), preview, engine, digest)
            intent = this_process()
            writer.write("status/intent-0.json", to_json(intent.model_dump(exclude_none=True)))
            writer.write("bundle.json", to_json(head.model_dump(exclude_none=True)))
            on_step("staged")
            return writer.commit()

    async def _resume(
        self, engine: Orchestrator, bundle: BundleReader, digest: str, on_step: Callable[[Step], None]
    ) -> str:
        """The run id is taken: return that run, and hand it over if its first submit did not."""
        if not await asyncio.to_thread(lambda: bundle.is_own):
            raise _id_taken_error(bundle.run_id, f"{user_name(bundle.owner)}, another user")
        from hyperpod_jlab.run.view import submitter_of

        head = await asyncio.to_thread(bundle.head)
        if head.spec_digest != digest:
            raise _id_taken_error(bundle.run_id, "another spec")
        records = await asyncio.to_thread(bundle.read)
        is_unsent = records.submission is None and records.claim is None and not records.attempts
        is_being_sent = submitter_of(records) == "alive" and bundle.run_id not in self._abandoned_runs
        if not is_unsent or is_being_sent or await engine.find(bundle) is not None:
            return bundle.run_id
        await asyncio.to_thread(bundle.add_intent, this_process())
        await self._send(engine, bundle, on_step)
        return bundle.run_id

    async def _send(
        self, engine: Orchestrator, bundle: BundleReader, on_step: Callable[[Step], None], *, committed: bool = False
    ) -> None:
        try:
            if committed:
                on_step("committed")
            accepted = await engine.submit(bundle)
        except (RefusedError, UnsupportedError, DeniedError, InvalidInputError, StorageError):
            self._abandoned_runs.add(bundle.run_id)  # if it stays, the partition is read-only now
            with contextlib.suppress(StorageError, NotFoundError):
                await asyncio.to_thread(withdraw, bundle.folder)
            raise
        except (Exception, asyncio.CancelledError, KeyboardInterrupt) as error:
            # Whether the scheduler has it is unknown: the run stays, records the failure, and may
            # be submitted again.

            await record_failure(bundle, error)
            if isinstance(error, UnreachableError):
                raise unknown_outcome_error(error, bundle.run_id) from error
            raise
        on_step("sent")
        submission = Submission(scheduler_id=accepted.scheduler_id, submitted_at=time.time())
        with contextlib.suppress(StorageError):  # the job runs regardless, and the engine finds it
            await asyncio.to_thread(bundle.write_submission, submission)
        on_step("recorded")


def _id_taken_error(run_id: str, owner: str) -> ConflictError:
    return ConflictError(
        f"the run id {run_id} is in use by {owner}",
        code="run_id_taken",
        hint="use another run id, or leave it out",
        detail={"field": "run_id", "run_id": run_id},
    )


def _native(spec: JobSpec, captured: Captured) -> NativeFile | None:
    if spec.source.kind != "native":
        return None
    file = next(code for code in captured.files if code.path.startswith("code/"))
    return NativeFile(file.path, file.data, captured.cwd)


def _with_configuration(spec: JobSpec, settings: Settings, cluster: str) -> JobSpec:
    """The spec with the metric patterns and the MLflow server of the configuration; its own ones win.

    Raises:
        InvalidInputError: Together the patterns are too many.
    """
    patterns = {**settings.metric_patterns, **spec.metric_patterns}
    mlflow = _mlflow_of(spec, settings, cluster)
    if patterns == spec.metric_patterns and mlflow == spec.mlflow:
        return spec
    changed = {"metric_patterns": patterns, "mlflow": mlflow.model_dump()}
    return parse(JobSpec, {**spec.model_dump(), **changed})


def _mlflow_of(spec: JobSpec, settings: Settings, cluster: str) -> MlflowOptions:
    """Variables of the spec go first, because they are what MLflow in the ranks reads; then the spec, its cluster, the whole configuration."""
    sources: list[MlflowOptions | MlflowConfig] = [spec.mlflow, settings.mlflow]
    if cluster in settings.clusters:
        sources.insert(1, settings.clusters[cluster].mlflow)
    variables = spec.environment.variables
    uri = variables.get("MLFLOW_TRACKING_URI")
    if uri is None:
        uri = next((one.tracking_uri for one in sources if one.tracking_uri), None)
    elif not is_mlflow_uri(uri):  # such as a folder of the node: nothing that can be read from here
        uri = None
    experiment = variables.get("MLFLOW_EXPERIMENT_NAME") or next(
        (one.experiment for one in sources if one.experiment), None
    )
    if uri in (None, NO_MLFLOW):
        experiment = None
    return spec.mlflow.model_copy(update={"tracking_uri": uri, "experiment": experiment})


def _digest(spec: JobSpec, preview: SubmitPreview, cluster: str) -> str:
    """Digest of the given spec, cluster and code that identifies equal submits of one run id. Excludes pickles: their bytes may differ for equal values."""
    digest = hashlib.sha256(spec.model_dump_json().encode())
    digest.update(b"\0" + cluster.encode())
    for code in sorted(preview.captured.files, key=lambda file: file.path):
        if not code.path.endswith(".pkl"):
            digest.update(b"\0" + code.path.encode() + b"\0" + hashlib.sha256(code.data).digest())
    return digest.hexdigest()


def _head(notebook: str | None, preview: SubmitPreview, engine: Orchestrator, digest: str) -> Head:
    spec = preview.spec
    facts = preview.rendered.facts or NativeFacts(queue=spec.queue, nodes=spec.resources.nodes, array=spec.array)
    return Head(
        format=BUNDLE_FORMAT,
        run_id=preview.run_id,
        name=spec.name or facts.name or preview.captured.name,
        user=current_user(),
        space=shared_space(),
        host=platform.node(),
        created_at=time.time(),
        cluster=engine.name,
        orchestrator=engine.kind,
        spec_digest=digest,
        notebook=notebook,
        queue=facts.queue,
        kind=preview.rendered.kind,
        nodes=facts.nodes,
        processes_per_node=int(preview.plan["processes_per_node"]),
        gpus_per_node=None if preview.rendered.facts else spec.resources.accelerator.count,
        array=facts.array,
    )


# --------------------------------------------------------------------------------------------------
# Records of an interrupted submit.


async def record_failure(bundle: BundleReader, error: BaseException) -> None:
    """Record that handing over a run was interrupted, and why."""
    with contextlib.suppress(HyperpodError):  # no space for it
        await asyncio.to_thread(bundle.add_observation, _failure_observation(error))


def _failure_observation(error: BaseException) -> Observation:
    reason = "the submit was interrupted; submit it again with the same run id"
    if isinstance(error, HyperpodError):
        reason = error.message
    return Observation(
        time=time.time(),
        observer="submit",
        state="ended",
        verdict="REFUSED",
        reason=reason,
        reason_code="submit_interrupted",
    )


# --------------------------------------------------------------------------------------------------
# Errors for submits with an unknown outcome.


def unknown_outcome_error(error: UnreachableError, run_id: str) -> UnreachableError:
    """The error when a cluster stops answering during a submit: what it means, and how to continue without running twice."""
    return UnreachableError(
        f"{error.message}; it may still have accepted the run {run_id}",
        code=error.code,
        hint=f"see: hpj show {run_id}; to submit it again safely, use --run-id {run_id}",
        detail={**error.detail, "run_id": run_id, "maybe_sent": True},
    )
