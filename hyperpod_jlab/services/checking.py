"""What is found out about a run before it is sent: by the cluster, and by what stands in the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hyperpod_jlab.model.errors import InvalidInputError, UnreachableError, nearest_hint
from hyperpod_jlab.model.finding import Finding, refuse_on_error
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.model.terminal_text import printable
from hyperpod_jlab.orchestrators.protocol import Orchestrator, Rendered, RenderInput
from hyperpod_jlab.services.shared_space import shared_space

UNCHECKED = "unchecked"
"""Code of the warning that the cluster could not be asked."""

FOREIGN_CODE = "foreign_code"
"""Code of the error that the code is another user's, and nobody has confirmed that it is to run."""


async def preflight(
    engine: Orchestrator, spec: JobSpec
) -> tuple[list[Finding], UnreachableError | None]:
    """What the cluster finds; when it does not answer, a warning and why."""
    try:
        return await engine.preflight(spec), None
    except UnreachableError as error:
        return [_unchecked(error)], error


async def verdict(
    engine: Orchestrator, given: RenderInput, rendered: Rendered
) -> tuple[list[Finding], UnreachableError | None]:
    """What the cluster itself says of a user's own file; when it does not answer, a warning and why."""
    try:
        return await engine.verdict(given, rendered), None
    except UnreachableError as error:
        return [_unchecked(error)], error


def _unchecked(error: UnreachableError) -> Finding:
    message = f"the cluster could not be asked about the run: {error.message}"
    return Finding(level="warning", code=UNCHECKED, message=message, hint=error.hint)


def foreign_code(run_id: str, owner: str) -> Finding:
    """The error that a run of another user's code waits for a confirmation."""
    return Finding(
        level="error",
        code=FOREIGN_CODE,
        message=f"{run_id} is a run of {owner}, another user: its code would run with your rights. Nothing of it has been started",
        hint=f"read its code (hpj show {run_id} names the folder); if you trust it, confirm with --trust-owner {owner}",
        field="trust_owner",
    )


def suspect_code(run_id: str, user: str, *, moved: bool) -> Finding:
    """The error that a run's code may have been laid by another user.

    Args:
        run_id: The run.
        user: This user's name.
        moved: Whether it lies in this user's own folder by now.
    """
    hint = f"read its code (hpj show {run_id} names the folder); if you trust it, confirm with --trust-owner {user}"
    return Finding(
        level="error",
        code=FOREIGN_CODE,
        message=f"another user could have exchanged the code of {run_id} in the layout of an older version. Nothing of it has been started",
        hint=hint if moved else "hpj storage migrate, then clone it",
        field="trust_owner",
    )


def refuse_distrusted(findings: Sequence[Finding]) -> None:
    """Refuse a run of another user's code that nobody has confirmed.

    Raises:
        RefusedError: With code ``foreign_code``.
    """
    refuse_on_error([found for found in findings if found.code == FOREIGN_CODE])


async def version_findings(engine: Orchestrator, spec: JobSpec) -> list[Finding]:
    """A pickled function needs the same minor version of Python on both sides."""
    if spec.source.kind != "function":
        return []
    import sys

    from hyperpod_jlab.capture.function import python_version_finding

    far = await engine.python_version(spec)
    finding = python_version_finding(sys.version_info[:2], far) if far else None
    return [finding] if finding else []


def launcher_findings(spec: JobSpec) -> list[Finding]:
    """A command runs once on each node, however many processes were asked for."""
    asked = spec.resources.processes_per_node or 1
    if asked == 1 or spec.resolved_launcher != "none" or spec.source.kind == "native":
        return []
    return [
        Finding(
            level="warning",
            code="one_process",
            message=f"the command runs once on each node, not {asked} times: that is what the launcher none does",
            hint="give --launcher python to have it in each process, or leave out --processes-per-node",
            field="resources.processes_per_node",
        )
    ]


def space_findings() -> list[Finding]:
    """In a shared space of Studio nobody is himself."""
    space = shared_space()
    if space is None:
        return []
    return [
        Finding(
            level="info",
            code="shared_space",
            message=f"the run acts as the shared space {space}: everybody in it sees the run, and can cancel it and read its results",
        )
    ]


def check_secret_values(spec: JobSpec, values: Mapping[str, str]) -> None:
    """See to it that values are given only for secrets of the spec that need one: a bundle has a file named after each.

    Raises:
        InvalidInputError: The spec has no such secret, or has a reference for it; or the value cannot be a variable's. The value is not repeated.
    """
    secrets = spec.environment.secrets
    for name, value in values.items():
        shown = printable(name[:60])
        if name not in secrets:
            raise _bad_value(
                f"'{shown}' is no secret of the spec",
                "secret_unknown",
                nearest_hint(name, secrets) or "name it in the spec's environment.secrets",
            )
        if secrets[name]:
            raise _bad_value(
                f"the secret {shown} has a reference and takes no value",
                "secret_has_reference",
                "leave out the reference or the value",
            )
        if "\0" in value or (not value.isascii() and _has_half_characters(value)):
            raise _bad_value(
                f"the value of the secret {shown} cannot be that of an environment variable",
                "bad_secret",
                "it holds a NUL byte, or is not UTF-8; send such data in a file",
            )


def _bad_value(message: str, code: str, hint: str) -> InvalidInputError:
    return InvalidInputError(message, code=code, hint=hint, detail={"field": "secrets"})


def _has_half_characters(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def secret_findings(spec: JobSpec, values: Mapping[str, str]) -> list[Finding]:
    """Secrets without a reference need a value here."""
    missing = [
        name
        for name, reference in spec.environment.secrets.items()
        if not reference and name not in values
    ]
    return [
        Finding(
            level="error",
            code="secret_missing",
            message=f"the secret {name} has no value here and no reference",
            hint=f"set the variable {name} before you submit, or give --secret {name}=REFERENCE",
            field="environment.secrets",
        )
        for name in missing
    ]
