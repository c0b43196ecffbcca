"""Submit a run and optionally follow it: shared by ``hpj submit`` and ``hpj clone``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hyperpod_jlab.cli.failure import OutputError
from hyperpod_jlab.cli.invocation import InterruptionError, invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.parameters import CLUSTER
from hyperpod_jlab.cli.spec_options import read_local_secrets
from hyperpod_jlab.cli.terminal import is_terminal, printable, printable_lines, safe_text, wants_colour
from hyperpod_jlab.core.errors import HyperpodError, RefusedError
from hyperpod_jlab.core.quantities import format_size

if TYPE_CHECKING:
    from hyperpod_jlab.capture.captured import PreviewPart
    from hyperpod_jlab.core.finding import Finding
    from hyperpod_jlab.run.services import Hyperpod
    from hyperpod_jlab.run.submit import Request, Step, SubmitPreview

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_STEP_MESSAGES: dict[Step, str] = {
    "captured": "checking with the cluster",
    "checked": "writing the bundle",
    "staged": "moving the bundle into place",
    "committed": "submitting to the scheduler",
    "sent": "recording the submission",
}

_CLOSED_PIPE = 141  # 128 + SIGPIPE: the reader of the log is gone, and the run continues


@dataclass(frozen=True)
class SubmitMode:
    """How to submit: preview only; wait for the end; follow the log until the end."""

    dry_run: bool = False
    wait: bool = False
    follow: bool = False


def sending_options(function: Decorated) -> Decorated:
    """Options of all commands that submit a run."""
    options = (
        click.option("--cluster", type=CLUSTER, help="Cluster to submit to. Default: the configured default cluster."),
        click.option(
            "--run-id",
            metavar="ID",
            help="Id for the run. Submitting again with the same id does not start a second run.",
        ),
        click.option(
            "--dry-run",
            is_flag=True,
            help="Print the exact script or manifest, the code and all findings. Submit nothing.",
        ),
        click.option(
            "--accept-cost",
            is_flag=True,
            help="Confirm a cost over the limit that the configuration sets (cost.confirm_over).",
        ),
        click.option(
            "--wait", is_flag=True, help="Wait until the run ends. The exit code is 1 unless the run succeeds."
        ),
        click.option(
            "--follow",
            is_flag=True,
            help="Like --wait, and print the logs of all ranks (for an array: of all children).",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def send(request: Request, mode: SubmitMode) -> None:
    """Submit a run, or preview it.

    Raises:
        HyperpodError: Submitting failed, or with `wait` or `follow` the run did not succeed.
    """
    names = [name for name, reference in request.spec.environment.secrets.items() if not reference]
    if mode.dry_run:
        # Do not ask for secrets of a preview.
        no_prompt = (lambda _: "") if can_ask() else None
        request = replace(request, secrets=read_local_secrets(names, no_prompt))

        preview = with_services(lambda hyperpod: hyperpod.submitter.preview(request))
        print_preview(preview, as_json=invocation().as_json)
        return
    request = replace(request, secrets=read_local_secrets(names, _ask if can_ask() else None))
    try:
        with_services(lambda hyperpod: _send(hyperpod, request, mode))
    except RefusedError as error:
        if error.code != "cost_not_confirmed" or not can_ask():
            raise
        if not click.confirm(f"{_sentence(error.message)} Submit it?", err=True):
            raise
        confirmed = replace(request, accept_cost=True)
        with_services(lambda hyperpod: _send(hyperpod, confirmed, mode))


def _sentence(text: str) -> str:
    return printable(f"{text[:1].upper()}{text[1:]}.")


async def _send(hyperpod: Hyperpod, request: Request, mode: SubmitMode) -> None:
    from hyperpod_jlab.cli.slow_steps import slow_steps
    from hyperpod_jlab.run.preflight import UNCHECKED

    completed: list[Step] = []
    call = invocation()
    call.on_interrupt = lambda: interruption_error(hyperpod, request, completed)

    def tell(preview: SubmitPreview) -> None:
        # The submit itself raises and reports errors; a script only needs the warnings.
        levels = ("warning", "info") if is_terminal(sys.stderr) else ("warning",)
        # The same applies to a cluster that does not answer, if nothing else is wrong.
        has_errors = any(item.level == "error" for item in preview.findings)
        raised_code = UNCHECKED if preview.unreachable is not None and not has_errors else None
        visible = [finding for finding in preview.findings if finding.level in levels and finding.code != raised_code]
        if visible:
            print_findings(visible)

    async with slow_steps("reading the code") as steps:

        def on_step(step: Step) -> None:
            completed.append(step)
            steps.next(_STEP_MESSAGES.get(step, step))

        run_id = await hyperpod.submitter.submit(request, on_step, tell)
    if not (mode.wait or mode.follow):
        await _print_sent(hyperpod, run_id)
        return
    print(run_id, file=sys.stderr, flush=True)
    await _wait_for_end(hyperpod, run_id, mode)


async def _wait_for_end(hyperpod: Hyperpod, run_id: str, mode: SubmitMode) -> None:
    from hyperpod_jlab.cli.following import end_text, raise_unless_succeeded, shows_progress, wait_for_end
    from hyperpod_jlab.cli.output import print_json
    from hyperpod_jlab.logs.service import LogRequest

    call = invocation()
    if mode.follow:
        call.closed_pipe = _CLOSED_PIPE
    partial = shows_progress() and not call.as_json
    log = LogRequest(run_id, follow=True, partial=partial)
    run = await wait_for_end(hyperpod, log, with_log=mode.follow)
    if call.as_json:
        print_json(run)
    elif not mode.follow and not (is_terminal(sys.stdout) and is_terminal(sys.stderr)):
        print(run_id)  # captured stdout only gets the id; on a terminal it was already shown
    raise_unless_succeeded(run)
    if not call.as_json:
        print(printable(end_text(run)), file=sys.stderr)


async def _print_sent(hyperpod: Hyperpod, run_id: str) -> None:
    """Print the submitted run.

    Raises:
        OutputError: It cannot be printed; the error names the run.
    """
    try:
        if invocation().as_json:
            from hyperpod_jlab.cli.output import print_json

            print_json(await hyperpod.runs.get(run_id))
        else:
            print(run_id)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"{run_id} was submitted, but the output cannot be written: {error.strerror}",
            hint=f"see: hpj show {run_id}",
            detail={"run_id": run_id},
        ) from error


def interruption_error(hyperpod: Hyperpod, request: Request, completed: Sequence[Step]) -> InterruptionError:
    """The message for a submit that Ctrl-C interrupted after these steps."""
    run_id = request.run_id
    detail = {"run_id": run_id}
    if "sent" in completed:
        return InterruptionError(
            f"interrupted; the run {run_id} continues", hint=f"continue with: hpj logs -f {run_id}", detail=detail
        )
    if "committed" not in completed and not _bundle_exists(hyperpod, run_id):
        return InterruptionError("interrupted; nothing was submitted")
    unknown_note = "the cluster may or may not have it" if "committed" in completed else "it may be partly written"
    return InterruptionError(
        f"interrupted while {run_id} was being submitted; {unknown_note}",
        hint=f"see: hpj show {run_id}; to submit it again safely, run the same command with --run-id {run_id}",
        detail=detail,
    )


def _bundle_exists(hyperpod: Hyperpod, run_id: str | None) -> bool:
    """Whether a bundle of the run exists."""
    try:
        return run_id is not None and hyperpod.partition.has_run(run_id)
    except HyperpodError:
        return False  # invalid run id, or an unusable partition


def can_ask() -> bool:
    """Whether there is a terminal for questions to the user."""
    return not invocation().as_json and is_terminal(sys.stdin) and is_terminal(sys.stderr)


def _ask(name: str) -> str:
    secret: str = click.prompt(f"Value of {name} (not shown)", hide_input=True, err=True)
    return secret


# --------------------------------------------------------------------------------------------------
# ``hpj submit --dry-run``: exactly what would run, and all findings.

_LEVEL_CODES = {"error": 31, "warning": 33, "info": 36}


def print_preview(preview: SubmitPreview, *, as_json: bool) -> None:
    """Print the preview.

    Raises:
        RefusedError: A finding is an error, so the run would be refused. In text mode its message was just printed, and is not repeated.
    """
    from hyperpod_jlab.core.finding import raise_on_error

    findings = list(preview.findings)
    if as_json:
        print_json(_document(preview))
        raise_on_error(findings)
        return
    _print_text(preview)
    try:
        raise_on_error(findings)
    except RefusedError as error:
        errors = {finding.code for finding in findings if finding.level == "error"}
        if errors == {"cost_not_confirmed"}:
            raise RefusedError(
                "the run needs a confirmation of its cost",
                code=error.code,
                hint="submit it with --accept-cost, or in a terminal, which asks",
            ) from error
        raise RefusedError("the run would be rejected: see the findings of the dry run", code=error.code) from error


def print_findings(findings: Iterable[Finding]) -> None:
    """Print findings on stderr, each with its hint."""
    for finding in findings:
        for line in _finding_lines(finding):
            print(line, file=sys.stderr)


def _document(preview: SubmitPreview) -> dict[str, Any]:
    captured = preview.captured
    cost = preview.cost
    return {
        "cost": cost if cost is not None and cost.per_hour is not None else None,
        "gpu_hours": cost.gpu_hours if cost is not None else None,
        "rendered": preview.rendered.text,
        "findings": preview.findings,
        "run_id": preview.run_id,
        "filename": preview.rendered.filename,
        "plan": preview.plan,
        "parts": captured.parts,
        "files": [file.path for file in captured.files] + [f"work/{file.path}" for file in captured.project],
    }


def _print_text(preview: SubmitPreview) -> None:
    print(_title(preview.rendered.filename))
    print(safe_text(preview.rendered.text.rstrip("\n")))
    for part in preview.captured.parts:
        _print_part(part)
    project = preview.captured.project
    if project:
        size = sum(file.size for file in project)
        print(_title(f"project files: {len(project)}, {format_size(size)}"))
        for file in project:
            print(f"work/{printable(file.path)}")
    if preview.cost is not None:
        from hyperpod_jlab.cli.cost import format_estimate

        print(_title("cost"))
        print(printable(format_estimate(preview.cost)))
        for note in preview.cost.notes:
            print(f"  note: {printable(note)}")
    if preview.findings:
        print(_title("findings"))
        for finding in preview.findings:
            print("\n".join(_finding_lines(finding, sys.stdout)))


def _print_part(part: PreviewPart) -> None:
    print(_title(part.title))
    print(safe_text(part.text.rstrip("\n")))
    for note in part.notes:
        print(f"  note: {printable(note)}")


def _title(text: str) -> str:
    line = f"--- {printable(text)} ---"
    return f"\x1b[1m{line}\x1b[0m" if wants_colour() else line


def _finding_lines(finding: Finding, stream: Any = None) -> list[str]:
    level = finding.level
    if wants_colour(stream or sys.stderr):
        level = f"\x1b[{_LEVEL_CODES[level]}m{level}\x1b[0m"  # type: ignore[assignment]
    location = f" ({finding.field})" if finding.field else ""
    first, *more_lines = printable_lines(finding.message).split("\n")
    # Text of several lines, such as a patch, is indented, so that no line looks like another
    # finding.
    lines = [f"{level}: {first}{location} [{finding.code}]", *[f"  {line}" for line in more_lines]]
    if finding.hint:
        lines.append(f"  hint: {printable(finding.hint)}")
    return lines
