"""Translation of magics for a job."""

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
from hyperpod_jlab.launcher.parsing import parse_with_retry

# --------------------------------------------------------------------------------------------------
# The translation of one magic or shell line: the Python that replaces it, and the note for the
# user.

SERVICE = "__hyperpod__"
"""The name of the runner's service in rewritten cells: shell lines, timers and so on."""

NO_OPERATION = "pass"
"""Python for a line without effect."""

TranslationCode = Literal[
    "magic_runs", "magic_differs", "magic_without_effect", "misplaced_magic", "unknown_magic"
]


@dataclass(frozen=True)
class MagicTranslation:
    """The translation of one magic.

    Attributes:
        code: Python on one line; None when the magic cannot run in a job.
        note: The translation in a few words.
        kind: Which case it is.
        hint: The remedy, or None.
        secret: The name of a variable that it sets to a likely secret, or None.
    """

    code: str | None
    note: str
    kind: TranslationCode = "magic_runs"
    hint: str | None = None
    secret: str | None = None

    @property
    def level(self) -> Level:
        """The severity of its finding."""
        if self.code is None:
            return "error"
        return "warning" if self.kind == "magic_differs" else "info"


def translate_to(
    method: str, note: str, *arguments: object, hint: str | None = None
) -> MagicTranslation:
    """It runs, through a method of the runner's service."""
    return MagicTranslation(call(method, *arguments), note, hint=hint)


def translate_with_difference(code: str, note: str, hint: str | None = None) -> MagicTranslation:
    """It runs, but differently than in the notebook."""
    return MagicTranslation(code, note, "magic_differs", hint)


def translate_to_nothing(note: str, hint: str | None = None) -> MagicTranslation:
    """It is left out without loss."""
    return MagicTranslation(NO_OPERATION, note, "magic_without_effect", hint)


def unknown_translation(note: str, hint: str) -> MagicTranslation:
    """It cannot run in a job."""
    return MagicTranslation(None, note, "unknown_magic", hint)


def call(method: str, *arguments: object) -> str:
    """Python text of a call of the runner's service. Arguments become literals, whatever they contain."""
    return f"{SERVICE}.{method}({', '.join(repr(argument) for argument in arguments)})"


def parses(text: str, mode: Literal["exec", "eval"] = "exec") -> bool:
    """Whether a text is valid Python, with top-level ``await`` allowed."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parse_with_retry(lambda: compile(text, "<magic>", mode, flags, dont_inherit=True))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


# --------------------------------------------------------------------------------------------------
# Translation of shell lines: ``!command``, ``x = !command`` and the installers.

_PYTHON = r"(?:python[\d.]*|[\"']?\$?\{sys\.executable\}[\"']?|\$sys\.executable)"
_PIP = re.compile(
    rf"\s*(?:sudo\s+(?:-\S+\s+)*)?(?:{_PYTHON}\s+-m\s+)?pip[\d.]*\s+(?P<rest>.*)", re.DOTALL
)
_INSTALLER = re.compile(
    r"\s*(?:sudo\s+(?:-\S+\s+)*)?(?:apt|apt-get|yum|dnf|apk|conda|mamba|micromamba|uv|npm)\s+(?:\S+\s+)*?"
    r"(?:add|create|install|remove|sync|uninstall|update|upgrade)\b"
)
_NO_EFFECT_COMMAND = re.compile(r"\s*(cd|export|source|\.|alias|set|umask)\b[^;&|]*$")
_ONCE_NOTE = "once per environment; other ranks that share it wait"


def shell_line(command: str) -> MagicTranslation:
    """Translate ``!command``."""
    if not command.strip():
        return translate_to_nothing("is empty")
    pip = _PIP.match(command)
    if pip is not None:
        return pip_line(pip["rest"])
    if _INSTALLER.match(command):
        return once_line(command.strip())
    no_effect_match = _NO_EFFECT_COMMAND.match(command)
    if no_effect_match is not None:
        return translate_with_difference(
            call("shell", command),
            f"{no_effect_match[1]} affects only its own line, as in a notebook",
            {"cd": "use %cd", "export": "use %env"}.get(
                no_effect_match[1], "put it into --setup lines"
            ),
        )
    return translate_to(
        "shell",
        "runs through /bin/bash -c on every rank; the job continues if it fails, as in a notebook",
        command,
    )


def assigned_shell(command: str) -> MagicTranslation:
    """Translate ``x = !command``: its output lines."""
    return translate_to(
        "lines", "runs through /bin/bash -c on every rank; returns the lines it prints", command
    )


def pip_line(arguments_text: str) -> MagicTranslation:
    """Translate ``%pip ...``, or a shell line that calls pip."""
    return translate_to(
        "pip",
        f"runs pip of the job's own Python, {_ONCE_NOTE}",
        arguments_text,
        hint="packages that every run needs are better in the image or the environment",
    )


def once_line(command: str) -> MagicTranslation:
    """Translate a shell line that installs something."""
    return translate_to("once", f"runs through /bin/bash -c, {_ONCE_NOTE}", command)


_PERSONAL_NAMES = (
    "alias_magic autoawait autocall automagic autosave bookmark clear cls colors config debug "
    "dhist doctest_mode gui hist history hyperpod killbgscripts logoff logon logstart logstate "
    "logstop lsmagic magic matplotlib_inline notify page pastebin pdb pdef pdoc pfile pinfo "
    "pinfo2 pprint precision psearch psource pycat qtconsole quickref rehashx tb tensorboard who "
    "who_ls whos xmode"
)
"""Interactive magics: they change no variable and no file."""

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
    """Translate ``%name arguments``, given without its percent sign."""
    name, _, arguments_text = text.partition(" ")
    arguments_text = arguments_text.strip()
    if name.startswith("%"):
        return MagicTranslation(
            None,
            f"%{name} is a cell magic and must be on the first line of its cell",
            "misplaced_magic",
            "move its lines into a separate cell",
        )
    if name in _RUN_ONCE_COMMANDS:
        return _RUN_ONCE_COMMANDS[name](arguments_text)
    if name in _SHELL_ALIASES:
        return shell_line(f"{name} {arguments_text}".strip())
    if name in _PERSONAL:
        return translate_to_nothing("has no effect in a job: it is for interactive use")
    return unknown_magic("%", name, [*_RUN_ONCE_COMMANDS, *_SHELL_ALIASES, *_PERSONAL])


def assigned_magic(text: str) -> MagicTranslation:
    """Translate ``%name arguments`` on the right side of an assignment; its code is then an expression."""
    translation = line_magic(text)
    if translation.code is not None and not parses(translation.code, "eval"):
        return unknown_translation("returns no value in a job", "write the value as Python code")
    return translation


def unknown_magic(prefix: str, name: str, known_names: list[str]) -> MagicTranslation:
    """The error for an unknown magic."""
    hint = _HINTS.get(name)
    suggestion = nearest(name, known_names) if hint is None and name else None
    if hint is None:
        hint = (
            f"did you mean {prefix}{suggestion}?"
            if suggestion
            else "write it as Python code, or leave the cell out"
        )
    return unknown_translation(f"the magic {prefix}{name} is not supported in a job", hint)


def is_automagic(name: str, arguments_text: str) -> bool:
    """Whether IPython treats a one-line cell, ``name rest``, as a magic without a percent sign."""
    if name in _SHELL_ALIASES | {"pip"} and arguments_text.startswith("-"):
        return True  # ls -l is valid Python too, but a subtraction is not intended
    known_names = name in _RUN_ONCE_COMMANDS or name in _SHELL_ALIASES or name in _PERSONAL
    return known_names and not parses(f"{name} {arguments_text}")


def _time(arguments_text: str) -> MagicTranslation:
    note = "runs, and prints the elapsed time"
    too_complex = unknown_translation(
        "can time one simple statement only", "put %%time on the first line of the cell instead"
    )
    if not arguments_text:
        return translate_to_nothing("has no statement to time")
    if parses(arguments_text, "eval"):
        # Without its comment, which would hide the closing bracket.
        expression = (
            _without_comment(arguments_text)
            if _has_trailing_comment(arguments_text)
            else arguments_text
        )
        if expression is None:
            return too_complex
        return MagicTranslation(f"{SERVICE}.timer().stop(({expression}))", note)
    line = f"with {SERVICE}.timer(): {arguments_text}"
    if parses(line):
        return MagicTranslation(line, note)
    return too_complex


def _without_comment(text: str) -> str | None:
    """The expression without its comment; None if it is nested too deeply."""
    try:
        return ast.unparse(parse_with_retry(lambda: ast.parse(text, mode="eval")))
    except (RecursionError, MemoryError):
        return None


def _has_trailing_comment(text: str) -> bool:
    return "#" in text and not parses(f"({text})", "eval")


def _timeit(arguments_text: str) -> MagicTranslation:
    statement = re.sub(r"^(?:-(?:[tcoqv]+|[nrp]\s*\d+)(?:\s+|$))*", "", arguments_text)
    if not parses(statement):
        return unknown_translation(
            "can time one simple statement only", "put %%time on the first line of the cell"
        )
    return translate_with_difference(
        call("timeit", statement),
        "runs the statement once, not many times, and prints the elapsed time",
    )


def _env(arguments_text: str) -> MagicTranslation:
    if not arguments_text:
        return translate_to_nothing(
            "is skipped: it would print all variables, also secrets, into the log",
            "print the variables that you need",
        )
    match = re.match(r"([^\s=]+)\s*(?:=|\s)\s*(.*)$", arguments_text, re.DOTALL)
    if match is None:
        return translate_to("env", "returns the variable's value in the job", arguments_text)
    name, value = match.groups()
    translation = translate_to("set_env", "sets the variable in each rank", name, value)
    if looks_secret(name, value):
        return MagicTranslation(translation.code, translation.note, secret=name)
    return translation


def _cd(arguments_text: str) -> MagicTranslation:
    target = arguments_text.removeprefix("-q").strip().strip("'\"")
    note = "changes the folder of the rank; unlike in a notebook, a missing folder ends the job"
    if target.startswith("/"):
        return translate_with_difference(
            call("cd", target),
            f"changes to {target}, which may be missing or different on the nodes",
            "use a path relative to the project; the job starts in the folder of the project",
        )
    return translate_to("cd", note, target)


def _matplotlib(arguments_text: str) -> MagicTranslation:
    return translate_to(
        "matplotlib",
        "figures are in the executed notebook; other backends than inline need a display",
        arguments_text,
    )


def _run(arguments_text: str) -> MagicTranslation:
    parts = arguments_text.split()
    target = next((part for part in parts if not part.startswith("-")), "")
    options = [part for part in parts[: parts.index(target)] if target] if target else parts
    if target.strip("'\"").endswith(".ipynb"):
        return unknown_translation(
            "%run of a notebook is not supported in a job", "put shared code into a .py file"
        )
    if not target or any(option not in {"-i", "-n", "-e"} for option in options):
        return unknown_translation(
            f"%run {' '.join(options)} is not supported in a job".replace("  ", " "),
            "use %run FILE, or !python FILE",
        )
    return translate_to(
        "run",
        "runs the file in each rank and imports its variables, as in a notebook",
        arguments_text,
    )


def _extension(name: str) -> MagicTranslation:
    return translate_to_nothing(
        f"is skipped: the job has no IPython to load {name or 'extensions'} into"
    )


def _autoreload(_: str) -> MagicTranslation:
    return translate_to_nothing("has no effect: modules do not change while a job runs")


def _sx(arguments_text: str) -> MagicTranslation:
    return translate_to(
        "lines",
        "runs through /bin/bash -c on every rank; returns the lines it prints",
        arguments_text,
    )


def _pwd(_: str) -> MagicTranslation:
    return translate_to("pwd", "returns the folder of the rank")


_RUN_ONCE_COMMANDS: dict[str, Callable[[str], MagicTranslation]] = {
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
    "uv": lambda arguments_text: once_line(f"uv {arguments_text}"),
}

_SHELL_ALIASES = {"cat", "cp", "ll", "ls", "mkdir", "mv", "rm", "rmdir"}


# --------------------------------------------------------------------------------------------------
# Translation of cell magics.

_DISPLAY_MAGICS = {
    "html": "HTML",
    "javascript": "Javascript",
    "js": "Javascript",
    "latex": "Latex",
    "markdown": "Markdown",
    "svg": "SVG",
}
_MAX_QUOTED = 4096  # shlex takes time by the square of a word's length
_INTERPRETERS = ("bash", "perl", "python", "python3", "ruby", "sh")


@dataclass(frozen=True)
class CellTranslation:
    """The translation of a cell magic.

    Attributes:
        translation: As for a line; without `body`, its code replaces the whole cell.
        body: Whether the lines below the magic are Python that runs.
        around: What the runner does around that Python, in ``cells.json``'s format; None for
            nothing.
        suffix: Extension of the file for the lines below, which the code uses; None without a file.
    """

    translation: MagicTranslation
    body: bool = False
    around: dict[str, Any] | None = None
    suffix: str | None = None


def cell_magic(name: str, arguments_text: str, file: str) -> CellTranslation:
    """Translate ``%%name rest``.

    Args:
        name: The magic's name.
        arguments_text: The rest of its line.
        file: Path, under ``code/`` and without extension, of the file for its lines.
    """
    if name in _CELLS:
        return _CELLS[name](arguments_text, file)
    kind = _DISPLAY_MAGICS.get(name.lower())
    if kind is not None:
        note = "is shown in the executed notebook"
        return CellTranslation(translate_to("rich", note, kind, f"{file}.txt"), suffix=".txt")
    if name in _INTERPRETERS:
        return _script(name, arguments_text, file)
    known_names = [*_CELLS, *_DISPLAY_MAGICS, *_INTERPRETERS]
    return CellTranslation(unknown_magic("%%", name, known_names))


def _hyperpod(_: str, __: str) -> CellTranslation:
    return CellTranslation(
        translate_to_nothing("belongs to this extension; only the lines below it run"), body=True
    )


def _cell_magics_time(arguments_text: str, _: str) -> CellTranslation:
    if arguments_text and not arguments_text.startswith("-"):
        return CellTranslation(
            unknown_translation(
                "%%time does not accept code on its own line", "move that code to the next line"
            )
        )
    note = "runs the cell, and prints the elapsed time"
    return CellTranslation(MagicTranslation("", note), body=True, around={"magic": "time"})


def _cell_magics_timeit(arguments_text: str, _: str) -> CellTranslation:
    setup = re.sub(r"^(?:-(?:[tcoqv]+|[nrp]\s*\d+)(?:\s+|$))*", "", arguments_text)
    if setup:
        return CellTranslation(
            unknown_translation(
                "%%timeit with code on its own line is not supported",
                "move that code to a cell above",
            )
        )
    note = "runs the cell once, not many times, and prints the elapsed time; names that it sets are not kept"
    return CellTranslation(
        translate_with_difference("", note), body=True, around={"magic": "timeit"}
    )


def _capture_magic(arguments_text: str, _: str) -> CellTranslation:
    parts = arguments_text.split()
    options = {part for part in parts if part.startswith("-")}
    names = [part for part in parts if not part.startswith("-")]
    allowed = {"--no-stdout", "--no-stderr", "--no-stdo", "--no-display"}
    if options - allowed or len(names) > 1 or not all(name.isidentifier() for name in names):
        return CellTranslation(
            unknown_translation(f"%%capture {arguments_text} is not valid", "use %%capture [NAME]")
        )
    around = {
        "magic": "capture",
        "name": names[0] if names else None,
        "stdout": "--no-stdout" not in options,
        "stderr": "--no-stderr" not in options,
        "display": "--no-display" not in options,
    }
    note = "keeps the output of the cell out of the log; if the cell fails, all output is printed"
    return CellTranslation(MagicTranslation("", note), body=True, around=around)


def _writefile(arguments_text: str, file: str) -> CellTranslation:
    parts = _split(arguments_text)
    append = bool(parts) and parts[0] in {"-a", "--append"}
    paths = parts[1:] if append else parts
    if len(paths) != 1:
        return CellTranslation(
            unknown_translation(
                "%%writefile needs exactly one file name", "use %%writefile [-a] FILE"
            )
        )
    note = f"writes {paths[0]} in the job, relative to the folder of the rank"
    code = call("writefile", paths[0], f"{file}.txt", append)
    return CellTranslation(MagicTranslation(code, note), suffix=".txt")


def _captured_lines(arguments_text: str, file: str) -> CellTranslation:
    note = "runs the cell through bash on every rank; returns the lines it prints"
    del arguments_text
    return CellTranslation(translate_to("script_lines", note, f"{file}.sh"), suffix=".sh")


def _named_script(arguments_text: str, file: str) -> CellTranslation:
    parts = _split(arguments_text)
    options = _leading_options(parts)
    program = parts[len(options) :]
    if not program:
        return CellTranslation(
            unknown_translation("%%script names no program", "use %%script PROGRAM")
        )
    return _script(program[0], " ".join([*options, *map(shlex.quote, program[1:])]), file)


def _script(program: str, arguments_text: str, file: str) -> CellTranslation:
    parts = _split(arguments_text)
    options = _leading_options(parts)
    arguments = parts[len(options) :]
    settings: dict[str, str | bool] = {}
    while options:
        option = options.pop(0)
        if option == "--no-raise-error":
            settings["raise_error"] = False
        elif option in {"--out", "--err"} and options and options[0].isidentifier():
            settings[option[2:]] = options.pop(0)
        else:
            return CellTranslation(
                unknown_translation(
                    f"%%{program} {option} is not supported in a job", "leave the option out"
                )
            )
    program_text = program if program.startswith("/") else f"%%{program}"
    note = f"runs the cell through {program_text.lstrip('%')} on every rank; the job ends when it fails"
    suffix = ".sh" if program.rpartition("/")[2] in {"bash", "sh"} else ".txt"
    extra = "".join(f", {name}={value!r}" for name, value in sorted(settings.items()))
    code = call("script", [program, *arguments], file + suffix).removesuffix(")") + f"{extra})"
    return CellTranslation(MagicTranslation(code, note), suffix=suffix)


def _leading_options(parts: list[str]) -> list[str]:
    """The magic's own leading options, each ``--out`` and ``--err`` with its value."""
    count = 0
    while count < len(parts) and parts[count].startswith("--"):
        count += 2 if parts[count] in {"--out", "--err"} else 1
    return parts[:count]


def _split(arguments_text: str) -> list[str]:
    if len(arguments_text) > _MAX_QUOTED:
        return arguments_text.split()
    try:
        return shlex.split(arguments_text)
    except ValueError:
        return arguments_text.split()


_CELLS: dict[str, Callable[[str, str], CellTranslation]] = {
    "!": _captured_lines,
    "capture": _capture_magic,
    "file": _writefile,
    "hyperpod": _hyperpod,
    "script": _named_script,
    "sx": _captured_lines,
    "system": _captured_lines,
    "time": _cell_magics_time,
    "timeit": _cell_magics_timeit,
    "writefile": _writefile,
}
