"""What becomes of each cell magic in a job."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.capture.line_magics import unknown_magic
from hyperpod_jlab.capture.verdict import Verdict, call, differs, runs, unknown, without_effect

_SHOWN = {"html", "javascript", "js", "latex", "markdown", "svg"}
_INTERPRETERS = ("bash", "perl", "python", "python3", "ruby", "sh")


@dataclass(frozen=True)
class CellVerdict:
    """What becomes of a cell magic.

    Attributes:
        verdict: As for a line; its code runs in place of the whole cell when `body` is false.
        body: Whether the lines below the magic are Python that runs.
        around: What the runner does around that Python, in ``cells.json``'s form; None for nothing.
        suffix: Ending of the file that the lines below go into, for the code to use; None when there is none.
    """

    verdict: Verdict
    body: bool = False
    around: dict[str, Any] | None = None
    suffix: str | None = None


def cell_magic(name: str, rest: str, file: str) -> CellVerdict:
    """What becomes of ``%%name rest``.

    Args:
        name: The magic's name.
        rest: The rest of its line.
        file: Path, under ``code/`` and without ending, of the file that its lines may go into.
    """
    if name in _CELLS:
        return _CELLS[name](rest, file)
    if name.lower() in _SHOWN:
        return CellVerdict(without_effect("has no effect in a job: nobody sees it"))
    if name in _INTERPRETERS:
        return _script(name, rest, file)
    known = [*_CELLS, *_SHOWN, *_INTERPRETERS]
    return CellVerdict(unknown_magic("%%", name, known))


def _hyperpod(_: str, __: str) -> CellVerdict:
    return CellVerdict(
        without_effect("is this extension's own line; the lines below it run"), body=True
    )


def _time(rest: str, _: str) -> CellVerdict:
    if rest and not rest.startswith("-"):
        return CellVerdict(
            unknown("%%time takes no code on its own line", "move that code to the next line")
        )
    note = "runs the cell, and prints the time that it took"
    return CellVerdict(Verdict("", note), body=True, around={"magic": "time"})


def _timeit(rest: str, _: str) -> CellVerdict:
    setup = re.sub(r"^(?:-(?:[tcoqv]+|[nrp]\s*\d+)(?:\s+|$))*", "", rest)
    if setup:
        return CellVerdict(
            unknown(
                "%%timeit with code on its own line is not done", "move that code to a cell above"
            )
        )
    note = (
        "runs the cell once, not many times, and prints the time; names that it sets are not kept"
    )
    return CellVerdict(differs("", note), body=True, around={"magic": "timeit"})


def _capture(rest: str, _: str) -> CellVerdict:
    words = rest.split()
    options = {word for word in words if word.startswith("-")}
    names = [word for word in words if not word.startswith("-")]
    allowed = {"--no-stdout", "--no-stderr", "--no-stdo", "--no-display"}
    if options - allowed or len(names) > 1 or not all(name.isidentifier() for name in names):
        return CellVerdict(unknown(f"%%capture {rest} is not understood", "use %%capture [NAME]"))
    around = {
        "magic": "capture",
        "name": names[0] if names else None,
        "stdout": "--no-stdout" not in options,
        "stderr": "--no-stderr" not in options,
    }
    note = "keeps what the cell prints out of the log; when the cell fails, all of it is printed"
    return CellVerdict(Verdict("", note), body=True, around=around)


def _writefile(rest: str, file: str) -> CellVerdict:
    words = _split(rest)
    append = bool(words) and words[0] in {"-a", "--append"}
    paths = words[1:] if append else words
    if len(paths) != 1:
        return CellVerdict(unknown("%%writefile takes one file name", "use %%writefile [-a] FILE"))
    note = f"writes {paths[0]} in the job, relative to the rank's folder"
    code = call("writefile", paths[0], f"{file}.txt", append)
    return CellVerdict(Verdict(code, note), suffix=".txt")


def _captured_lines(rest: str, file: str) -> CellVerdict:
    note = "runs the cell through bash on every rank; gives the lines it prints"
    del rest
    return CellVerdict(runs("script_lines", note, f"{file}.sh"), suffix=".sh")


def _named_script(rest: str, file: str) -> CellVerdict:
    words = _split(rest)
    options = _leading_options(words)
    program = words[len(options) :]
    if not program:
        return CellVerdict(unknown("%%script names no program", "use %%script PROGRAM"))
    return _script(program[0], " ".join([*options, *map(shlex.quote, program[1:])]), file)


def _script(program: str, rest: str, file: str) -> CellVerdict:
    words = _split(rest)
    options = _leading_options(words)
    arguments = words[len(options) :]
    settings: dict[str, str | bool] = {}
    while options:
        option = options.pop(0)
        if option == "--no-raise-error":
            settings["raise_error"] = False
        elif option in {"--out", "--err"} and options and options[0].isidentifier():
            settings[option[2:]] = options.pop(0)
        else:
            return CellVerdict(
                unknown(f"%%{program} {option} is not done in a job", "leave the option out")
            )
    shown = program if program.startswith("/") else f"%%{program}"
    note = f"runs the cell through {shown.lstrip('%')} on every rank; the job ends when it fails"
    suffix = ".sh" if program.rpartition("/")[2] in {"bash", "sh"} else ".txt"
    extra = "".join(f", {name}={value!r}" for name, value in sorted(settings.items()))
    code = call("script", [program, *arguments], file + suffix).removesuffix(")") + f"{extra})"
    return CellVerdict(Verdict(code, note), suffix=suffix)


def _leading_options(words: list[str]) -> list[str]:
    """The magic's own options at the front, each ``--out`` and ``--err`` with its value."""
    count = 0
    while count < len(words) and words[count].startswith("--"):
        count += 2 if words[count] in {"--out", "--err"} else 1
    return words[:count]


def _split(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError:
        return rest.split()


_CELLS: dict[str, Callable[[str, str], CellVerdict]] = {
    "!": _captured_lines,
    "capture": _capture,
    "file": _writefile,
    "hyperpod": _hyperpod,
    "script": _named_script,
    "sx": _captured_lines,
    "system": _captured_lines,
    "time": _time,
    "timeit": _timeit,
    "writefile": _writefile,
}
