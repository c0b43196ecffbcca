"""What becomes of each line magic in a job."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from hyperpod_jlab.capture.secret_names import looks_secret
from hyperpod_jlab.capture.shell_lines import once_line, pip_line, shell_line
from hyperpod_jlab.capture.verdict import (
    SERVICE,
    Verdict,
    call,
    differs,
    parses,
    runs,
    unknown,
    without_effect,
)
from hyperpod_jlab.launcher.parsing import steadily
from hyperpod_jlab.model.errors import nearest

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
    "dotenv": "give the variables with --env and the secrets with --secret; .env files do not travel",
    "load": "load the text into the cell first",
    "prun": "use cProfile in the code",
    "lprun": "call line_profiler from the code",
    "memit": "call memory_profiler from the code",
    "pylab": "import numpy and matplotlib.pyplot by name",
    "reset": "the job starts with an empty namespace; delete names with del",
    "store": "save and load the value with pickle or numpy",
    "sql": "query the database from Python",
}


def line_magic(text: str) -> Verdict:
    """What becomes of ``%name arguments``, given without its percent sign."""
    name, _, rest = text.partition(" ")
    rest = rest.strip()
    if name.startswith("%"):
        return Verdict(
            None,
            f"%{name} is a cell magic and has to be the first line of its cell",
            "misplaced_magic",
            "move the lines that it stands for into a cell of their own",
        )
    if name in _RUN:
        return _RUN[name](rest)
    if name in _SHELL_ALIASES:
        return shell_line(f"{name} {rest}".strip())
    if name in _PERSONAL:
        return without_effect("has no effect in a job: it is for a person at the screen")
    return unknown_magic("%", name, [*_RUN, *_SHELL_ALIASES, *_PERSONAL])


def assigned_magic(text: str) -> Verdict:
    """What becomes of ``%name arguments`` on the right side of an assignment; its code is an expression then."""
    verdict = line_magic(text)
    if verdict.code is not None and not parses(verdict.code, "eval"):
        return unknown(
            "gives no value in a job that could be assigned", "write the value as Python code"
        )
    return verdict


def unknown_magic(mark: str, name: str, known: list[str]) -> Verdict:
    """The refusal of a magic that nobody here knows."""
    hint = _HINTS.get(name)
    near = nearest(name, known) if hint is None and name else None
    if hint is None:
        hint = (
            f"did you mean {mark}{near}?"
            if near
            else "write it as Python code, or leave the cell out"
        )
    return unknown(f"the magic {mark}{name} is not known in a job", hint)


def is_automagic(name: str, rest: str) -> bool:
    """Whether IPython takes a cell of one line, ``name rest``, for a magic though its percent sign is missing."""
    if name in _SHELL_ALIASES | {"pip"} and rest.startswith("-"):
        return True  # ls -l is Python too, but nobody subtracts l from ls
    known = name in _RUN or name in _SHELL_ALIASES or name in _PERSONAL
    return known and not parses(f"{name} {rest}")


def _time(rest: str) -> Verdict:
    note = "runs, and prints the time that it took"
    if not rest:
        return without_effect("has nothing to time")
    if parses(rest, "eval"):
        # Without its comment, which would swallow the closing bracket.
        expression = _without_comment(rest) if _has_comment(rest) else rest
        return Verdict(f"{SERVICE}.timer().stop(({expression}))", note)
    line = f"with {SERVICE}.timer(): {rest}"
    if parses(line):
        return Verdict(line, note)
    return unknown("times one simple statement", "put %%time on the first line of the cell instead")


def _without_comment(text: str) -> str:
    return ast.unparse(steadily(lambda: ast.parse(text, mode="eval")))


def _has_comment(text: str) -> bool:
    return "#" in text and not parses(f"({text})", "eval")


def _timeit(rest: str) -> Verdict:
    statement = re.sub(r"^(?:-(?:[tcoqv]+|[nrp]\s*\d+)(?:\s+|$))*", "", rest)
    if not parses(statement):
        return unknown("times one simple statement", "put %%time on the first line of the cell")
    return differs(
        call("timeit", statement),
        "runs the statement once, not many times, and prints the time that it took",
    )


def _env(rest: str) -> Verdict:
    if not rest:
        return without_effect(
            "is left out: it would print all variables, secrets too, into the log",
            "print the variables that you need",
        )
    match = re.match(r"([^\s=]+)\s*(?:=|\s)\s*(.*)$", rest, re.DOTALL)
    if match is None:
        return runs("env", "gives the variable's value in the job", rest)
    name, value = match.groups()
    verdict = runs("set_env", "sets the variable in each rank", name, value)
    if looks_secret(name, value):
        return Verdict(verdict.code, verdict.note, secret=name)
    return verdict


def _cd(rest: str) -> Verdict:
    target = rest.removeprefix("-q").strip().strip("'\"")
    note = "changes the rank's folder; unlike in a notebook a missing folder ends the job"
    if target.startswith("/"):
        return differs(
            call("cd", target),
            f"changes to {target}, which may be another folder on the nodes or missing there",
            "use a path relative to the project: the job starts in the project's folder",
        )
    return runs("cd", note, target)


def _matplotlib(rest: str) -> Verdict:
    return runs(
        "matplotlib",
        "chooses the backend agg: a job has no screen",
        rest,
        hint="save figures with savefig",
    )


def _run(rest: str) -> Verdict:
    words = rest.split()
    target = next((word for word in words if not word.startswith("-")), "")
    options = [word for word in words[: words.index(target)] if target] if target else words
    if target.strip("'\"").endswith(".ipynb"):
        return unknown(
            "%run of a notebook is not done in a job", "put the code that is shared into a .py file"
        )
    if not target or any(option not in {"-i", "-n", "-e"} for option in options):
        return unknown(
            f"%run {' '.join(options)} is not done in a job".replace("  ", " "),
            "use %run FILE, or !python FILE",
        )
    return runs(
        "run", "runs the file in each rank and takes its variables over, as in a notebook", rest
    )


def _extension(name: str) -> Verdict:
    return without_effect(
        f"is left out: the job has no IPython to load {name or 'extensions'} into"
    )


def _autoreload(_: str) -> Verdict:
    return without_effect("has no effect: modules do not change while a job runs")


def _sx(rest: str) -> Verdict:
    return runs("lines", "runs through /bin/bash -c on every rank; gives the lines it prints", rest)


def _pwd(_: str) -> Verdict:
    return runs("pwd", "gives the rank's folder")


_RUN: dict[str, Callable[[str], Verdict]] = {
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
