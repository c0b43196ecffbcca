"""What becomes of each line magic in a job."""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from hyperpod_jlab.capture.secrets import looks_secret
from hyperpod_jlab.core.errors import nearest
from hyperpod_jlab.core.finding import Level
from hyperpod_jlab.launcher.parsing import steadily

# --------------------------------------------------------------------------------------------------
# What becomes of one magic or shell line: the Python that takes its place, and what to say about it.

SERVICE = "__hyperpod__"
"""Name under which the runner offers shell lines, timers and the rest to the rewritten cells."""

NOTHING = "pass"
"""Python for a line without effect."""

VerdictCode = Literal[
    "magic_runs", "magic_differs", "magic_without_effect", "misplaced_magic", "unknown_magic"
]


@dataclass(frozen=True)
class MagicTranslation:
    """What becomes of one magic.

    Attributes:
        code: Python on one line; None when the magic cannot run in a job.
        note: What becomes of it, in a few words.
        kind: Which case it is.
        hint: What to do about it, or None.
        secret: Name of a variable that it sets to what looks like a secret, or None.
    """

    code: str | None
    note: str
    kind: VerdictCode = "magic_runs"
    hint: str | None = None
    secret: str | None = None

    @property
    def level(self) -> Level:
        """How loud to be about it."""
        if self.code is None:
            return "error"
        return "warning" if self.kind == "magic_differs" else "info"


def runs(method: str, note: str, *arguments: object, hint: str | None = None) -> MagicTranslation:
    """It runs, by a method of the runner's service."""
    return MagicTranslation(call(method, *arguments), note, hint=hint)


def differs(code: str, note: str, hint: str | None = None) -> MagicTranslation:
    """It runs, otherwise than in the notebook."""
    return MagicTranslation(code, note, "magic_differs", hint)


def without_effect(note: str, hint: str | None = None) -> MagicTranslation:
    """It is left out, and nothing is lost by that."""
    return MagicTranslation(NOTHING, note, "magic_without_effect", hint)


def unknown(note: str, hint: str) -> MagicTranslation:
    """It cannot run in a job."""
    return MagicTranslation(None, note, "unknown_magic", hint)


def call(method: str, *arguments: object) -> str:
    """Python text of a call of the runner's service. Texts go in as literals, whatever is in them."""
    return f"{SERVICE}.{method}({', '.join(repr(argument) for argument in arguments)})"


def parses(text: str, mode: Literal["exec", "eval"] = "exec") -> bool:
    """Whether a text is Python, top-level ``await`` allowed."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            steadily(lambda: compile(text, "<magic>", mode, flags, dont_inherit=True))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


# --------------------------------------------------------------------------------------------------
# What becomes of shell lines in a job: ``!command``, ``x = !command`` and the installers.

_PYTHON = r"(?:python[\d.]*|[\"']?\$?\{sys\.executable\}[\"']?|\$sys\.executable)"
_PIP = re.compile(
    rf"\s*(?:sudo\s+(?:-\S+\s+)*)?(?:{_PYTHON}\s+-m\s+)?pip[\d.]*\s+(?P<rest>.*)", re.DOTALL
)
_INSTALLER = re.compile(
    r"\s*(?:sudo\s+(?:-\S+\s+)*)?(?:apt|apt-get|yum|dnf|apk|conda|mamba|micromamba|uv|npm)\s+(?:\S+\s+)*?"
    r"(?:add|create|install|remove|sync|uninstall|update|upgrade)\b"
)
_ALONE = re.compile(r"\s*(cd|export|source|\.|alias|set|umask)\b[^;&|]*$")
_ONCE = "once per environment; other ranks that share it wait"


def shell_line(command: str) -> MagicTranslation:
    """What becomes of ``!command``."""
    if not command.strip():
        return without_effect("is empty")
    pip = _PIP.match(command)
    if pip is not None:
        return pip_line(pip["rest"])
    if _INSTALLER.match(command):
        return once_line(command.strip())
    alone = _ALONE.match(command)
    if alone is not None:
        return differs(
            call("shell", command),
            f"{alone[1]} affects only its own line, as in a notebook",
            {"cd": "use %cd", "export": "use %env"}.get(alone[1], "put it into --setup lines"),
        )
    return runs(
        "shell",
        "runs through /bin/bash -c on every rank; the job continues if it fails, as in a notebook",
        command,
    )


def assigned_shell(command: str) -> MagicTranslation:
    """What becomes of ``x = !command``: its lines."""
    return runs(
        "lines", "runs through /bin/bash -c on every rank; returns the lines it prints", command
    )


def pip_line(rest: str) -> MagicTranslation:
    """What becomes of ``%pip ...`` and of a shell line that calls pip."""
    return runs(
        "pip",
        f"runs pip of the job's own Python, {_ONCE}",
        rest,
        hint="packages that every run needs are better in the image or the environment",
    )


def once_line(command: str) -> MagicTranslation:
    """What becomes of a shell line that installs something."""
    return runs("once", f"runs through /bin/bash -c, {_ONCE}", command)


_PERSONAL_NAMES = (
    "alias_magic autoawait autocall automagic autosave bookmark clear cls colors config debug "
    "dhist doctest_mode gui hist history hyperpod killbgscripts logoff logon logstart logstate "
    "logstop lsmagic magic matplotlib_inline notify page pastebin pdb pdef pdoc pfile pinfo "
    "pinfo2 pprint precision psearch psource pycat qtconsole quickref rehashx tb tensorboard who "
    "who_ls whos xmode"
)
"""Magics for a person at the screen: they change no variable and no file."""

_PERSONAL = _PERSONAL_NAMES.split()

_HINTS = {
    "cython": "build the extension before the job, or leave the cell out",
    "conda": "install with --setup lines or in the image, or write !conda ...",
    "mamba": "install with --setup lines or in the image, or write !mamba ...",
    "micromamba": "install with --setup lines or in the image, or write !micromamba ...",
    "dotenv": "pass variables with --env and secrets with --secret; .env files are not copied",
    "load": "load the text into the cell first",
    "prun": "use cProfile in the code",
    "lprun": "call line_profiler from the code",
    "memit": "call memory_profiler from the code",
    "pylab": "import numpy and matplotlib.pyplot by name",
    "reset": "the job starts with an empty namespace; delete names with del",
    "store": "save and load the value with pickle or numpy",
    "sql": "query the database from Python",
}


def line_magic(text: str) -> MagicTranslation:
    """What becomes of ``%name arguments``, given without its percent sign."""
    name, _, rest = text.partition(" ")
    rest = rest.strip()
    if name.startswith("%"):
        return MagicTranslation(
            None,
            f"%{name} is a cell magic and must be on the first line of its cell",
            "misplaced_magic",
            "move its lines into a separate cell",
        )
    if name in _RUN:
        return _RUN[name](rest)
    if name in _SHELL_ALIASES:
        return shell_line(f"{name} {rest}".strip())
    if name in _PERSONAL:
        return without_effect("has no effect in a job: it is for interactive use")
    return unknown_magic("%", name, [*_RUN, *_SHELL_ALIASES, *_PERSONAL])


def assigned_magic(text: str) -> MagicTranslation:
    """What becomes of ``%name arguments`` on the right side of an assignment; its code is an expression then."""
    verdict = line_magic(text)
    if verdict.code is not None and not parses(verdict.code, "eval"):
        return unknown("returns no value in a job", "write the value as Python code")
    return verdict


def unknown_magic(mark: str, name: str, known: list[str]) -> MagicTranslation:
    """The refusal of a magic that nobody here knows."""
    hint = _HINTS.get(name)
    near = nearest(name, known) if hint is None and name else None
    if hint is None:
        hint = (
            f"did you mean {mark}{near}?"
            if near
            else "write it as Python code, or leave the cell out"
        )
    return unknown(f"the magic {mark}{name} is not supported in a job", hint)


def is_automagic(name: str, rest: str) -> bool:
    """Whether IPython takes a cell of one line, ``name rest``, for a magic though its percent sign is missing."""
    if name in _SHELL_ALIASES | {"pip"} and rest.startswith("-"):
        return True  # ls -l is Python too, but nobody subtracts l from ls
    known = name in _RUN or name in _SHELL_ALIASES or name in _PERSONAL
    return known and not parses(f"{name} {rest}")


def _time(rest: str) -> MagicTranslation:
    note = "runs, and prints the elapsed time"
    if not rest:
        return without_effect("has no statement to time")
    if parses(rest, "eval"):
        # Without its comment, which would swallow the closing bracket.
        expression = _without_comment(rest) if _has_comment(rest) else rest
        return MagicTranslation(f"{SERVICE}.timer().stop(({expression}))", note)
    line = f"with {SERVICE}.timer(): {rest}"
    if parses(line):
        return MagicTranslation(line, note)
    return unknown(
        "can time one simple statement only", "put %%time on the first line of the cell instead"
    )


def _without_comment(text: str) -> str:
    return ast.unparse(steadily(lambda: ast.parse(text, mode="eval")))


def _has_comment(text: str) -> bool:
    return "#" in text and not parses(f"({text})", "eval")


def _timeit(rest: str) -> MagicTranslation:
    statement = re.sub(r"^(?:-(?:[tcoqv]+|[nrp]\s*\d+)(?:\s+|$))*", "", rest)
    if not parses(statement):
        return unknown(
            "can time one simple statement only", "put %%time on the first line of the cell"
        )
    return differs(
        call("timeit", statement),
        "runs the statement once, not many times, and prints the elapsed time",
    )


def _env(rest: str) -> MagicTranslation:
    if not rest:
        return without_effect(
            "is skipped: it would print all variables, also secrets, into the log",
            "print the variables that you need",
        )
    match = re.match(r"([^\s=]+)\s*(?:=|\s)\s*(.*)$", rest, re.DOTALL)
    if match is None:
        return runs("env", "returns the variable's value in the job", rest)
    name, value = match.groups()
    verdict = runs("set_env", "sets the variable in each rank", name, value)
    if looks_secret(name, value):
        return MagicTranslation(verdict.code, verdict.note, secret=name)
    return verdict


def _cd(rest: str) -> MagicTranslation:
    target = rest.removeprefix("-q").strip().strip("'\"")
    note = "changes the folder of the rank; unlike in a notebook, a missing folder ends the job"
    if target.startswith("/"):
        return differs(
            call("cd", target),
            f"changes to {target}, which may be missing or different on the nodes",
            "use a path relative to the project; the job starts in the folder of the project",
        )
    return runs("cd", note, target)


def _matplotlib(rest: str) -> MagicTranslation:
    return runs(
        "matplotlib",
        "uses the backend agg, because a job has no display",
        rest,
        hint="save figures with savefig",
    )


def _run(rest: str) -> MagicTranslation:
    words = rest.split()
    target = next((word for word in words if not word.startswith("-")), "")
    options = [word for word in words[: words.index(target)] if target] if target else words
    if target.strip("'\"").endswith(".ipynb"):
        return unknown(
            "%run of a notebook is not supported in a job", "put shared code into a .py file"
        )
    if not target or any(option not in {"-i", "-n", "-e"} for option in options):
        return unknown(
            f"%run {' '.join(options)} is not supported in a job".replace("  ", " "),
            "use %run FILE, or !python FILE",
        )
    return runs(
        "run", "runs the file in each rank and imports its variables, as in a notebook", rest
    )


def _extension(name: str) -> MagicTranslation:
    return without_effect(f"is skipped: the job has no IPython to load {name or 'extensions'} into")


def _autoreload(_: str) -> MagicTranslation:
    return without_effect("has no effect: modules do not change while a job runs")


def _sx(rest: str) -> MagicTranslation:
    return runs(
        "lines", "runs through /bin/bash -c on every rank; returns the lines it prints", rest
    )


def _pwd(_: str) -> MagicTranslation:
    return runs("pwd", "returns the folder of the rank")


_RUN: dict[str, Callable[[str], MagicTranslation]] = {
    "aimport": _autoreload,
    "autoreload": _autoreload,
    "cd": _cd,
    "env": _env,
    "load_ext": _extension,
    "matplotlib": _matplotlib,
    "pip": pip_line,
    "pwd": _pwd,
    "reload_ext": _extension,
    "run": _run,
    "set_env": _env,
    "sx": _sx,
    "system": _sx,
    "time": _time,
    "timeit": _timeit,
    "unload_ext": _extension,
    "uv": lambda rest: once_line(f"uv {rest}"),
}

_SHELL_ALIASES = {"cat", "cp", "ll", "ls", "mkdir", "mv", "rm", "rmdir"}


# --------------------------------------------------------------------------------------------------
# What becomes of each cell magic in a job.

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

    verdict: MagicTranslation
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
        return CellVerdict(without_effect("has no effect in a job"))
    if name in _INTERPRETERS:
        return _script(name, rest, file)
    known = [*_CELLS, *_SHOWN, *_INTERPRETERS]
    return CellVerdict(unknown_magic("%%", name, known))


def _hyperpod(_: str, __: str) -> CellVerdict:
    return CellVerdict(
        without_effect("belongs to this extension; only the lines below it run"), body=True
    )


def _cell_magics_time(rest: str, _: str) -> CellVerdict:
    if rest and not rest.startswith("-"):
        return CellVerdict(
            unknown(
                "%%time does not accept code on its own line", "move that code to the next line"
            )
        )
    note = "runs the cell, and prints the elapsed time"
    return CellVerdict(MagicTranslation("", note), body=True, around={"magic": "time"})


def _cell_magics_timeit(rest: str, _: str) -> CellVerdict:
    setup = re.sub(r"^(?:-(?:[tcoqv]+|[nrp]\s*\d+)(?:\s+|$))*", "", rest)
    if setup:
        return CellVerdict(
            unknown(
                "%%timeit with code on its own line is not supported",
                "move that code to a cell above",
            )
        )
    note = "runs the cell once, not many times, and prints the elapsed time; names that it sets are not kept"
    return CellVerdict(differs("", note), body=True, around={"magic": "timeit"})


def _capture(rest: str, _: str) -> CellVerdict:
    words = rest.split()
    options = {word for word in words if word.startswith("-")}
    names = [word for word in words if not word.startswith("-")]
    allowed = {"--no-stdout", "--no-stderr", "--no-stdo", "--no-display"}
    if options - allowed or len(names) > 1 or not all(name.isidentifier() for name in names):
        return CellVerdict(unknown(f"%%capture {rest} is not valid", "use %%capture [NAME]"))
    around = {
        "magic": "capture",
        "name": names[0] if names else None,
        "stdout": "--no-stdout" not in options,
        "stderr": "--no-stderr" not in options,
    }
    note = "keeps the output of the cell out of the log; if the cell fails, all output is printed"
    return CellVerdict(MagicTranslation("", note), body=True, around=around)


def _writefile(rest: str, file: str) -> CellVerdict:
    words = _split(rest)
    append = bool(words) and words[0] in {"-a", "--append"}
    paths = words[1:] if append else words
    if len(paths) != 1:
        return CellVerdict(
            unknown("%%writefile needs exactly one file name", "use %%writefile [-a] FILE")
        )
    note = f"writes {paths[0]} in the job, relative to the folder of the rank"
    code = call("writefile", paths[0], f"{file}.txt", append)
    return CellVerdict(MagicTranslation(code, note), suffix=".txt")


def _captured_lines(rest: str, file: str) -> CellVerdict:
    note = "runs the cell through bash on every rank; returns the lines it prints"
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
                unknown(f"%%{program} {option} is not supported in a job", "leave the option out")
            )
    shown = program if program.startswith("/") else f"%%{program}"
    note = f"runs the cell through {shown.lstrip('%')} on every rank; the job ends when it fails"
    suffix = ".sh" if program.rpartition("/")[2] in {"bash", "sh"} else ".txt"
    extra = "".join(f", {name}={value!r}" for name, value in sorted(settings.items()))
    code = call("script", [program, *arguments], file + suffix).removesuffix(")") + f"{extra})"
    return CellVerdict(MagicTranslation(code, note), suffix=suffix)


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
    "time": _cell_magics_time,
    "timeit": _cell_magics_timeit,
    "writefile": _writefile,
}
