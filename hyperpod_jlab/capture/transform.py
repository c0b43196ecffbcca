"""Converts a cell's text to the Python that runs: magics and shell lines are replaced, line numbers stay."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.capture.lexing import Special, count_breaks, dedent, scan, strip_prompts
from hyperpod_jlab.capture.magics import (
    MagicTranslation,
    assigned_magic,
    assigned_shell,
    cell_magic,
    is_automagic,
    line_magic,
    shell_line,
    translate_to_nothing,
    unknown_translation,
)
from hyperpod_jlab.capture.notebook import CodeCell
from hyperpod_jlab.capture.secrets import secret_finding
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.finding import Finding

_BLANK_LINES = re.compile(r"(?:[ \t\f]*(?:\r\n|\r|\n))*")
_CELL_MAGIC = re.compile(r"%%(?P<name>[^\s?]+)(?P<rest>[^\r\n?]*)(?P<more>[^\r\n]*)")
_BREAK = re.compile(r"\r\n|\r|\n")
_AUTOMAGIC = re.compile(r"(?P<name>[^\W\d]\w*)[ \t]+(?P<rest>[^ \t\r\n][^\r\n]*)")
_MAX_SHOWN = 60
_MAX_CELL_MAGICS = 50
MAX_SPECIALS = 5000
"""Magics and shell lines of a notebook. Each has a finding."""


@dataclass
class Transformed:
    """A cell converted to run without IPython.

    Attributes:
        text: The Python that is compiled; the cell's own text if nothing was replaced.
        rewritten: Numbers of the replaced lines.
        around: What the runner does around the cell, outermost first.
        bodies: Files used by the code, by extension: the lines below magics such as ``%%bash``.
        notes: The translation of each magic, for the preview.
        findings: The same for clients without a preview, and errors.
        quiet: Whether a semicolon suppresses the last value.
    """

    text: str
    rewritten: list[int] = field(default_factory=list)
    around: list[dict[str, Any]] = field(default_factory=list)
    bodies: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    quiet: bool = False


def transform_cell(cell: CodeCell, file: str) -> Transformed:
    """Replace IPython's syntax in a cell.

    Args:
        cell: The cell.
        file: Path, under ``code/`` and without extension, of the cell's files.

    Raises:
        InvalidInputError: The cell has more than `MAX_SPECIALS` magics and shell lines.
    """
    text = strip_prompts(dedent(cell.text))
    result = Transformed(text)
    if text != cell.text:
        result.rewritten = list(range(1, count_breaks(text) + 2))
    start = _cell_magics(cell, file, result)
    if start is not None:
        _replace_specials(cell, result, text, start)
    result.rewritten = list(dict.fromkeys(result.rewritten))
    return result


def check_specials(count: int) -> None:
    """Check the number of magics and shell lines.

    Raises:
        InvalidInputError: It is more than `MAX_SPECIALS`.
    """
    if count > MAX_SPECIALS:
        raise InvalidInputError(
            f"the notebook has more than {MAX_SPECIALS} magics and shell lines",
            code="too_many_magics",
            hint="put them into a script, and run it with one line: !bash script.sh",
            detail={"field": "source.path"},
        )


def _replace_specials(cell: CodeCell, result: Transformed, text: str, start: int) -> None:
    """Replace magics and shell lines in the Python that begins at `start`; `text` is the cell before its cell magics were processed."""
    automagic = _AUTOMAGIC.fullmatch(text.strip())
    if automagic and is_automagic(automagic["name"], automagic["rest"]):
        position = text.index(automagic["name"])
        line = count_breaks(text[:position]) + 1
        specials: tuple[Special, ...] = (
            Special("line", position, len(text.rstrip()), f"%{automagic[0]}", line),
        )
    else:
        scanned = scan(result.text, start)
        specials, result.quiet = scanned.specials, scanned.is_quiet
        check_specials(len(specials))
    translations = [_translate(special) for special in specials]
    pieces, position = list[str](), 0
    for special, translation in zip(specials, translations, strict=True):
        between = result.text[special.start : special.end]
        # The line breaks of a continued line stay, so that the following lines keep their numbers.
        line_breaks = "".join(_BREAK.findall(between))
        replacement = "None" if special.kind == "assign" else "pass"
        code = replacement if translation.code is None else translation.code
        pieces += [result.text[position : special.start], code, line_breaks]
        position = special.end
    result.text = "".join([*pieces, result.text[position:]])
    for special, translation in zip(specials, translations, strict=True):
        _add_note(cell, result, translation, special.line, special.text)


def _cell_magics(cell: CodeCell, file: str, result: Transformed) -> int | None:
    """Process the ``%%`` lines at the top; returns where the Python below them starts, or None without any."""
    start = 0
    while True:
        blank_match = _BLANK_LINES.match(result.text, start)
        position = blank_match.end() if blank_match else start
        match = _CELL_MAGIC.match(result.text, position)
        if match is None or match["more"].startswith("?") or len(result.notes) == _MAX_CELL_MAGICS:
            return start
        arguments_text = (match["rest"] + match["more"]).strip()
        cell_translation = cell_magic(match["name"], arguments_text, file)
        line = count_breaks(result.text[:position]) + 1
        _add_note(cell, result, cell_translation.translation, line, match.group().rstrip())
        if cell_translation.around is not None:
            result.around.append(cell_translation.around)
        if not cell_translation.body:
            _replace_cell(
                result,
                position,
                match.end(),
                cell_translation.translation.code,
                cell_translation.suffix,
            )
            return None
        result.text = result.text[:position] + result.text[match.end() :]
        following = _BREAK.match(result.text, position)
        start = following.end() if following else position


def _replace_cell(
    result: Transformed, position: int, line_end: int, code: str | None, suffix: str | None
) -> None:
    text = result.text
    following = _BREAK.match(text, line_end)
    body_at = following.end() if following else len(text)
    if suffix is not None:
        # Error messages then give the cell's line numbers; a file to write contains only the text.
        blank_match = "\n" * count_breaks(text[:body_at]) if suffix == ".sh" else ""
        result.bodies[suffix] = blank_match + text[body_at:]
    result.text = text[:position] + (code if code is not None else "pass") + "\n"


def _translate(special: Special) -> MagicTranslation:
    text = special.text
    if (
        special.kind == "help"
        or text.startswith("?")
        or (text.startswith("%") and text.endswith("?"))
    ):
        return translate_to_nothing("is help, which has no effect in a job")
    if special.kind == "assign":
        return assigned_shell(text[1:]) if text.startswith("!") else assigned_magic(text[1:])
    if text.startswith("!!"):
        return assigned_shell(text[2:])
    if text.startswith("!"):
        return shell_line(text[1:])
    if text.startswith("%"):
        return line_magic(text[1:])
    return unknown_translation(
        f"a line that starts with {text[0]} is IPython's short form of a call",
        "write the call with parentheses",
    )


def _add_note(
    cell: CodeCell, result: Transformed, translation: MagicTranslation, line: int, text: str
) -> None:
    first = _BREAK.split(text)[0].strip()
    shown_text = first if len(first) <= _MAX_SHOWN else first[: _MAX_SHOWN - 1] + "\u2026"
    if translation.secret is not None:
        # Its value appears in the line.
        shown_text = f"{shown_text.split()[0]} {translation.secret}=\u2026"
        result.findings.append(
            secret_finding(translation.secret, f"cell {cell.number}, line {line}: ")
        )
    result.rewritten.append(line)
    result.notes.append(f"line {line}: {shown_text}: {translation.note}")
    result.findings.append(
        Finding(
            level=translation.level,
            code=translation.kind,
            message=f"cell {cell.number}, line {line}: {shown_text}: {translation.note}",
            hint=translation.hint,
            field="source",
        )
    )
