"""Checks before a run is submitted: by the cluster, and of the request itself."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyperpod_jlab.capture.captured import CodeFile
from hyperpod_jlab.clusters.identity import shared_space
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, UnreachableError, nearest_hint
from hyperpod_jlab.core.fields import has_password
from hyperpod_jlab.core.finding import Finding, Fix, raise_on_error
from hyperpod_jlab.core.records import ENVIRONMENT_FILE
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.text import printable
from hyperpod_jlab.engines.protocol import Orchestrator, Rendered, RenderInput

if TYPE_CHECKING:
    from hyperpod_jlab.core.run import Run
    from hyperpod_jlab.run.service import Runs

UNCHECKED = "unchecked"
"""Warning code: the cluster could not be checked."""

FOREIGN_CODE = "foreign_code"
"""Error code: the code belongs to another user, and the caller has not confirmed that it is to run."""


_MINUTE_S = 60


async def preflight(engine: Orchestrator, spec: JobSpec) -> tuple[list[Finding], UnreachableError | None]:
    """The cluster's findings; if it does not answer, a warning with the reason."""
    try:
        return await engine.preflight(spec), None
    except UnreachableError as error:
        return [_unchecked_finding(error)], error


async def check_native_file(
    engine: Orchestrator, render_input: RenderInput, rendered: Rendered
) -> tuple[list[Finding], UnreachableError | None]:
    """The cluster's findings on a user's own script; if it does not answer, a warning with the reason."""
    if engine.native_check is None:
        return [], None
    try:
        return await engine.native_check.dry_run(render_input, rendered), None
    except UnreachableError as error:
        return [_unchecked_finding(error)], error


def _unchecked_finding(error: UnreachableError) -> Finding:
    message = f"the cluster did not check the run: {error.message}"
    return Finding(level="warning", code=UNCHECKED, message=message, hint=error.hint)


def foreign_code(run_id: str, owner: str) -> Finding:
    """Error: a run of another user's code requires confirmation."""
    return Finding(
        level="error",
        code=FOREIGN_CODE,
        message=f"{run_id} is a run of another user, {owner}; its code would run with your permissions, so it was not started",
        hint=f"read its code (hpj show {run_id} prints its folder); if you trust it, confirm with --trust-owner {owner}",
        field="trust_owner",
    )


def suspect_code(run_id: str, user: str, *, is_moved: bool) -> Finding:
    """Error: another user may have written this run's code.

    Args:
        run_id: The run.
        user: This user's name.
        is_moved: Whether it is in this user's own folder by now.
    """
    hint = f"read its code (hpj show {run_id} prints its folder); if you trust it, confirm with --trust-owner {user}"
    return Finding(
        level="error",
        code=FOREIGN_CODE,
        message=f"another user could have replaced the code of {run_id} in the layout of an older version, so it was not started",
        hint=hint if is_moved else "run hpj storage migrate, then clone it",
        field="trust_owner",
    )


def raise_if_untrusted(findings: Sequence[Finding]) -> None:
    """Refuse an unconfirmed run of another user's code.

    Raises:
        RefusedError: With code ``foreign_code``.
    """
    raise_on_error([finding for finding in findings if finding.code == FOREIGN_CODE])


async def version_findings(engine: Orchestrator, spec: JobSpec) -> list[Finding]:
    """A pickled function needs the same minor version of Python on both sides."""
    if spec.source.kind != "function" or engine.interpreters is None:
        return []
    import sys

    from hyperpod_jlab.capture.function import python_version_finding

    version = await engine.interpreters.python_version(spec)
    finding = python_version_finding(sys.version_info[:2], version) if version else None
    return [finding] if finding else []


async def environment_findings(engine: Orchestrator, spec: JobSpec, files: Sequence[CodeFile]) -> list[Finding]:
    """A captured environment needs the minor version of Python that it was captured with, as far as the cluster's is known."""
    if spec.environment.capture is None or spec.source.kind == "native":
        return []
    field = "environment.capture"
    file = next((file for file in files if file.path == ENVIRONMENT_FILE), None)
    if file is None:
        return [
            Finding(
                level="error",
                code="no_environment",
                message="the earlier run has no captured environment",
                hint="submit the source again with --env-from",
                field=field,
            )
        ]
    document = json.loads(file.data)
    if document.get("conda"):
        return [
            Finding(
                level="error",
                code="no_environment",
                message="the earlier run's environment is one of conda, which is not built any more",
                hint="submit the source again with --env-from venv, or use --image",
                field=field,
            )
        ]
    captured = document.get("python")
    version = await engine.interpreters.python_version(spec) if engine.interpreters else None
    here = ".".join(map(str, version)) if version else captured
    if captured in (None, here):
        return []
    return [
        Finding(
            level="error",
            code="python_version",
            message=f"the environment was captured with Python {captured}, but the job would run it with Python {here}",
            hint=f"choose Python {captured} on the cluster with --python or --image",
            field="environment.python",
        )
    ]


def launcher_findings(spec: JobSpec) -> list[Finding]:
    """Warning: a command runs once per node, regardless of the number of processes."""
    processes = spec.resources.processes_per_node or 1
    if processes == 1 or spec.resolved_launcher != "none" or spec.source.kind == "native":
        return []
    return [
        Finding(
            level="warning",
            code="one_process",
            message=f"the command runs once on each node, not {processes} times, because the launcher is none",
            hint="use --launcher python to run it in each process, or leave out --processes-per-node",
            field="resources.processes_per_node",
        )
    ]


def mlflow_findings(given: JobSpec, spec: JobSpec) -> list[Finding]:
    """Error: a password would be stored, or an experiment is chosen but no tracking server is known.

    Args:
        given: The spec as it was submitted.
        spec: The spec with what the configuration adds.
    """
    if has_password(given.environment.variables.get("MLFLOW_TRACKING_URI", "")):
        field = "environment.variables"
        message = "MLFLOW_TRACKING_URI has a user or a password, which would be stored with the run"
        hint = "use the secrets MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
    elif given.mlflow.experiment and spec.mlflow.tracking_uri is None:
        field = "mlflow.experiment"
        message = "the experiment is not used, because no MLflow tracking server is set"
        hint = "use --mlflow URI, or set tracking_uri below [mlflow] in the configuration"
    else:
        return []
    return [Finding(level="error", code="no_mlflow", message=message, hint=hint, field=field)]


def time_findings(spec: JobSpec) -> list[Finding]:
    """Warning: the run ends within a minute. Users of Slurm write minutes where a number here means seconds."""
    limit = spec.time_limit
    if limit is None or limit >= _MINUTE_S:
        return []
    seconds = "1 second" if limit == 1 else f"{limit} seconds"
    minutes = "1 minute" if limit == 1 else f"{limit} minutes"
    return [
        Finding(
            level="warning",
            code="short_time_limit",
            message=f"the run is ended after {seconds}",
            hint=f"for {minutes}, use --time-limit {limit}m",
            field="time_limit",
            fixes=(Fix(label=f"Use {minutes}", set={"time_limit": limit * _MINUTE_S}),),
        )
    ]


def space_findings() -> list[Finding]:
    """Findings in a shared Studio space, where all users share one identity."""
    space = shared_space()
    if space is None:
        return []
    return [
        Finding(
            level="info",
            code="shared_space",
            message=f"the run acts as the shared space {space}: all its users can see and cancel the run and read its results",
        )
    ]


def check_secret_values(spec: JobSpec, values: Mapping[str, str]) -> None:
    """Check that values are given only for secrets of the spec that need one: the bundle has a file named after each.

    Raises:
        InvalidInputError: The spec has no such secret, or gives a reference for it, or the value is not valid for a variable. The message does not repeat
            the value.
    """
    secrets = spec.environment.secrets
    for name, value in values.items():
        display_name = printable(name[:60])
        if name not in secrets:
            raise _secret_error(
                f"'{display_name}' is not a secret of the spec",
                "secret_unknown",
                nearest_hint(name, secrets) or "add it to environment.secrets of the spec",
            )
        if secrets[name]:
            raise _secret_error(
                f"the secret {display_name} has a reference and cannot have a value",
                "secret_has_reference",
                "remove the reference or the value",
            )
        if "\0" in value or (not value.isascii() and _has_half_characters(value)):
            raise _secret_error(
                f"the value of the secret {display_name} cannot be an environment variable",
                "bad_secret",
                "it contains a NUL byte or is not UTF-8; put such data into a file",
            )


def _secret_error(message: str, code: str, hint: str) -> InvalidInputError:
    return InvalidInputError(message, code=code, hint=hint, detail={"field": "secrets"})


def _has_half_characters(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def secret_findings(spec: JobSpec, values: Mapping[str, str]) -> list[Finding]:
    """Secrets without a reference need a value on this machine."""
    missing = [name for name, reference in spec.environment.secrets.items() if not reference and name not in values]
    return [
        Finding(
            level="error",
            code="secret_missing",
            message=f"the secret {name} has neither a value here nor a reference",
            hint=f"set the variable {name} before you submit, or use --secret {name}=REFERENCE",
            field="environment.secrets",
        )
        for name in missing
    ]


# A variable in a value, as shells and Kubernetes write it; not in the midst of a word, as in a password.
_REFERENCE = re.compile(
    r"\$\{[A-Za-z_]\w*(?:[-:#%/^,+=?@][^{}]*)?\}|\$\([A-Z_][A-Z0-9_]*\)|(?<![\w$\\])\$[A-Za-z_]\w*", re.ASCII
)
_COMMAND = re.compile(r"\$\([^()]+\)|`[^`]+`")
_MAX_REFERENCE = 40


def variable_findings(spec: JobSpec) -> list[Finding]:
    """Values of variables are passed on as they are, so a reference such as ``${TOKEN}`` or a command such as ``$(date)`` stays text."""
    variables = spec.environment.variables
    references = {name: _REFERENCE.findall(value) for name, value in variables.items()}
    commands = {name: _COMMAND.findall(_REFERENCE.sub("", value)) for name, value in variables.items()}
    found = {
        name: [text[:_MAX_REFERENCE] for text in dict.fromkeys(references[name] + commands[name])]
        for name in variables
        if references[name] or commands[name]
    }
    if not found:
        return []
    parts = [f"the value of {name} contains {' and '.join(texts)}" for name, texts in found.items()]
    is_one = sum(map(len, found.values())) == 1
    hints = []
    if any(references.values()):
        hints += [
            "to pass on your own variable, use --secret NAME or let your shell replace it in --env",
            "to use a variable of the nodes, export it in --setup",
        ]
    if any(commands.values()):
        hints += [
            "to run a command here, put the value in double quotes, so that your shell runs it",
            "to run it on the nodes, export the variable in --setup",
        ]
    return [
        Finding(
            level="warning",
            code="unexpanded_variable",
            message=f"{'; '.join(parts)}, which {'is' if is_one else 'are'} not replaced: the ranks get this text",
            hint="; ".join(hints),
            field="environment.variables",
        )
    ]


# --------------------------------------------------------------------------------------------------
# Dependencies of a run (``after``): the scheduler's ids, or why the run would never start.


@dataclass(frozen=True)
class Dependencies:
    """The scheduler's ids of the dependencies, and findings on the others."""

    scheduler_ids: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


async def dependencies(after: Sequence[str], engine: Orchestrator, runs: Runs) -> Dependencies:
    """Resolve the runs that a new run waits for.

    Omits runs that have succeeded: their scheduler may have forgotten them. For engines that read the bundles themselves instead of job ids, the runs only
    need to exist.

    Args:
        after: Ids of runs.
        engine: The engine of the new run.
        runs: The runs.
    """
    ids: list[str] = []
    findings: list[Finding] = []
    for run_id in dict.fromkeys(after):
        try:
            await asyncio.to_thread(runs.bundle, run_id)
            run = await runs.get(run_id) if engine.uses_dependency_ids else None
        except HyperpodError as error:
            findings.append(_missing_run_finding(run_id, error))
            continue
        if run is None or run.state == "succeeded":
            continue
        finding = _never_starts_finding(run, engine)
        if finding is not None:
            findings.append(finding)
        elif run.scheduler_id is not None:
            ids.append(run.scheduler_id)
    return Dependencies(tuple(ids), tuple(findings))


def _missing_run_finding(run_id: str, error: HyperpodError) -> Finding:
    if error.code == "no_such_run":
        message = f"run {run_id} not found; it cannot be waited for"
        return _finding(error.code, message, "list runs with: hpj runs")
    return _finding(error.code, f"it is not possible to wait for {run_id}: {error.message}", error.hint)


def _never_starts_finding(run: Run, engine: Orchestrator) -> Finding | None:
    """Why a run that waits for this one would never start, or cannot depend on it."""
    failed_states = [state for state in ("failed", "cancelled") if (run.children or {}).get(state)]
    if run.cluster != engine.name:
        return _finding(
            "other_cluster",
            f"{run.run_id} is on the cluster {run.cluster}, so a run on {engine.name} cannot wait for it",
            f"submit both to the same cluster, or wait for it yourself: hpj logs -f {run.run_id}",
        )
    if run.status.ended or failed_states:
        status_text = run.state if run.status.ended else f"running, but one of its tasks is {failed_states[0]}"
        return _finding(
            "dependency_failed",
            f"{run.run_id} is {status_text}: a run that waits for it would never start",
            f"submit it again first: hpj clone {run.run_id}",
        )
    if run.scheduler_id is None:
        return _finding(
            "not_taken_yet",
            f"{run.run_id} is {run.state}: it is not yet in {engine.name}, so no run can wait for it",
            f"submit when it is waiting or running: hpj show {run.run_id}",
        )
    return None


def _finding(code: str, message: str, hint: str | None) -> Finding:
    return Finding(level="error", code=code, message=message, hint=hint, field="after")
