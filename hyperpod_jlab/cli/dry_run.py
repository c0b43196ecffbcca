"""``hpj submit --dry-run``: exactly what would run, and all that was found."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from hyperpod_jlab.capture.captured import Part
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.terminal import printable, printable_lines, shown_text, wants_colour
from hyperpod_jlab.model.errors import RefusedError
from hyperpod_jlab.model.finding import Finding, refuse_on_error
from hyperpod_jlab.model.quantities import format_size
from hyperpod_jlab.services.submission import Preview

_LEVEL_CODES = {"error": 31, "warning": 33, "info": 36}


def print_preview(preview: Preview, *, as_json: bool) -> None:
    """Print the preview.

    Raises:
        RefusedError: A finding is an error, so the run would be refused. In text its words have just been printed, and are not said again.
    """
    findings = list(preview.findings)
    if as_json:
        print_json(_document(preview))
        refuse_on_error(findings)
        return
    _print_text(preview)
    try:
        refuse_on_error(findings)
    except RefusedError as error:
        raise RefusedError(
            "the run would be refused: see what the dry run found", code=error.code
        ) from error


def print_findings(findings: Iterable[Finding]) -> None:
    """Findings on stderr, each with its way out."""
    for finding in findings:
        for line in _finding_lines(finding):
            print(line, file=sys.stderr)


def _document(preview: Preview) -> dict[str, Any]:
    captured = preview.captured
    return {
        "rendered": preview.rendered.text,
        "findings": [finding.model_dump() for finding in preview.findings],
        "run_id": preview.run_id,
        "filename": preview.rendered.filename,
        "plan": preview.plan,
        "parts": [
            {
                "title": part.title,
                "language": part.language,
                "text": part.text,
                "notes": list(part.notes),
            }
            for part in captured.parts
        ],
        "files": [file.path for file in captured.files]
        + [f"work/{file.path}" for file in captured.project],
    }


def _print_text(preview: Preview) -> None:
    print(_title(preview.rendered.filename))
    print(shown_text(preview.rendered.text.rstrip("\n")))
    for part in preview.captured.parts:
        _print_part(part)
    project = preview.captured.project
    if project:
        size = sum(file.size for file in project)
        print(_title(f"project files: {len(project)}, {format_size(size)}"))
        for file in project:
            print(f"work/{printable(file.path)}")
    if preview.findings:
        print(_title("findings"))
        for finding in preview.findings:
            print("\n".join(_finding_lines(finding, sys.stdout)))


def _print_part(part: Part) -> None:
    print(_title(part.title))
    print(shown_text(part.text.rstrip("\n")))
    for note in part.notes:
        print(f"  note: {printable(note)}")


def _title(text: str) -> str:
    line = f"--- {printable(text)} ---"
    return f"\x1b[1m{line}\x1b[0m" if wants_colour() else line


def _finding_lines(finding: Finding, stream: Any = None) -> list[str]:
    level = finding.level
    if wants_colour(stream or sys.stderr):
        level = f"\x1b[{_LEVEL_CODES[level]}m{level}\x1b[0m"  # type: ignore[assignment]
    place = f" ({finding.field})" if finding.field else ""
    first, *more = printable_lines(finding.message).split("\n")
    # What has several lines, such as what a patch changes, stays so, set in: no line of it looks like another finding.
    lines = [f"{level}: {first}{place} [{finding.code}]", *[f"  {line}" for line in more]]
    if finding.hint:
        lines.append(f"  hint: {printable(finding.hint)}")
    return lines
