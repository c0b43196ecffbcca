"""What the rewritten lines of cells call: ``__hyperpod__.shell('ls')`` and the like."""

from __future__ import annotations

import codecs
import importlib
import importlib.util
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import types
from typing import Any

from . import records
from .display import display, offer_ipython, recorder, use_backend
from .expansion import expand
from .imports import after_import
from .once import once
from .output import Timer

_CREDENTIALS = re.compile(r"(?<=://)[^/\s]+@")


class Lines(list):  # type: ignore[type-arg] # list[str] is no base class before Python 3.9
    """The lines that a command printed, with the short forms that notebooks know."""

    @property
    def l(self) -> list[str]:  # noqa: E743 - its name in notebooks
        """The lines as a list."""
        return list(self)

    @property
    def n(self) -> str:
        """The lines as one text."""
        return "\n".join(self)

    @property
    def s(self) -> str:
        """The lines with a space between them."""
        return " ".join(self)

    list = l
    nlstr = n
    spstr = s


class Service:
    """The lines' helpers. Each reads variables of the code that calls it, as the same line does in a notebook."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._written: dict[str, bytes] = {}
        self._start_folder = os.getcwd()

    def shell(self, command: str) -> None:
        """``!command``."""
        frame = sys._getframe(1)  # noqa: SLF001 - the one way to the caller's variables
        status = _run_shell(expand(command, frame))
        _record_exit(status, command, frame)

    def lines(self, command: str) -> Lines:
        """``x = !command``."""
        frame = sys._getframe(1)  # noqa: SLF001
        status, text = _output_of(["/bin/bash", "-c", expand(command, frame)])
        _record_exit(status, command, frame)
        return Lines(text.splitlines())

    def once(self, command: str) -> None:
        """A shell line that changes the rank's machine: done once where several ranks share it."""
        frame = sys._getframe(1)  # noqa: SLF001
        text = expand(command, frame)
        status = once(self._key(frame, command), sys.prefix, lambda: _run_shell(text))
        _record_exit(status, command, frame)

    def pip(self, arguments: str) -> None:
        """``%pip arguments``, with the job's own Python."""
        frame = sys._getframe(1)  # noqa: SLF001
        if arguments in _lines_of_environment():
            print(f"in the environment of the run already: pip {arguments}")
            frame.f_globals["_exit_code"] = 0
            return
        text = _pip_command(expand(arguments, frame))
        key = self._key(frame, "pip " + arguments)
        status = once(key, sys.prefix, lambda: _run_shell(text))
        _record_exit(status, "pip " + arguments, frame)
        # Packages that came just now are seen by the next import.
        sys.path_importer_cache.clear()

    def _key(self, frame: types.FrameType, subject: str) -> str:
        """The same in every rank for the same line, and different each time that it runs."""
        file = os.path.basename(frame.f_code.co_filename)
        location = f"{file} line {frame.f_lineno}: {subject}"
        self._counts[location] = self._counts.get(location, 0) + 1
        return f"{location} ({self._counts[location]})"

    def script(
        self,
        program: list[str],
        file: str,
        raise_error: bool = True,
        out: str | None = None,
        err: str | None = None,
    ) -> None:
        """``%%bash`` and the like: the lines below the magic go to the program's standard input."""
        frame = sys._getframe(1)  # noqa: SLF001
        arguments = [expand(argument, frame) for argument in program]
        if arguments[0] in ("python", "python3"):
            arguments[0] = sys.executable
        _flush()
        with open(_code_file(file), "rb") as source:
            completed = subprocess.run(
                arguments,
                check=False,
                stdin=source,
                stdout=subprocess.PIPE if out else None,
                stderr=subprocess.PIPE if err else None,
                env=_environment(),
            )
        for name, data in ((out, completed.stdout), (err, completed.stderr)):
            if name:
                frame.f_globals[name] = _text(data)
        if completed.returncode and raise_error:
            raise subprocess.CalledProcessError(completed.returncode, arguments)

    def script_lines(self, file: str) -> Lines:
        """``%%!``."""
        with open(_code_file(file), encoding="utf-8") as source:
            _, text = _output_of(["/bin/bash", "-c", source.read()])
        return Lines(text.splitlines())

    def writefile(self, path: str, file: str, append: bool) -> None:
        """``%%writefile path``: written whole, so that ranks that share the folder do not disturb each other."""
        frame = sys._getframe(1)  # noqa: SLF001
        target = os.path.abspath(os.path.expanduser(expand(path, frame)))
        with open(_code_file(file), "rb") as source:
            data = source.read()
        previous_content = self._written.get(target)
        if append and previous_content is None and os.path.exists(target):
            once(self._key(frame, path), target, lambda: _append(target, data))
            return
        # Built on what this process wrote, not on the file, to which another rank may have added the same already.
        data = (previous_content or b"") + data if append else data
        self._written[target] = data
        records.write_bytes(target, data)

    def env(self, name: str) -> str:
        """``%env NAME``."""
        return os.environ[expand(name, sys._getframe(1))]  # noqa: SLF001

    def set_env(self, name: str, value: str) -> None:
        """``%env NAME=value``."""
        frame = sys._getframe(1)  # noqa: SLF001
        os.environ[expand(name, frame)] = expand(value, frame)

    def cd(self, path: str) -> None:
        """``%cd path``; empty is the home folder, ``-`` the folder before."""
        text = expand(path, sys._getframe(1)) or "~"  # noqa: SLF001
        target = self._start_folder if text == "-" else os.path.expanduser(text)
        folder = os.getcwd()
        os.chdir(target)
        self._start_folder = folder
        print(os.getcwd())

    def pwd(self) -> str:
        """``%pwd``."""
        return os.getcwd()

    def matplotlib(self, backend: str) -> None:
        """``%matplotlib ...``: draw into the notebook; with ``agg`` into files only."""
        after_import(
            "matplotlib",
            lambda module: module.use("agg") if backend == "agg" else use_backend(module),
        )

    def rich(self, kind: str, file: str) -> None:
        """``%%html`` and the like: show the lines below the magic, by IPython's class of that name."""
        offer_ipython()
        with open(_code_file(file), encoding="utf-8") as source:
            display(getattr(importlib.import_module("IPython.display"), kind)(source.read() + "\n"))

    def timer(self) -> Timer:
        """``%time``."""
        return Timer()

    def timeit(self, statement: str) -> None:
        """``%timeit``: once, and names that it sets are not kept."""
        frame = sys._getframe(1)  # noqa: SLF001
        names = dict(frame.f_globals)
        names.update(frame.f_locals)
        with Timer():
            exec(compile(statement, "<timeit>", "exec"), names)  # noqa: S102 - the user's own code

    def run(self, line: str) -> None:
        """``%run [-i] [-n] [-e] file arguments``."""
        frame = sys._getframe(1)  # noqa: SLF001
        argv = shlex.split(expand(line, frame))
        options = set()
        while argv and argv[0] in ("-i", "-n", "-e"):
            options.add(argv.pop(0))
        path = os.path.expanduser(argv[0])
        path = path if os.path.exists(path) or path.endswith(".py") else path + ".py"
        previous_argv, sys.argv = sys.argv, [path, *argv[1:]]
        try:
            _run_file(path, options, frame.f_globals)
        except SystemExit as exit_error:
            if exit_error.code not in (None, 0) and "-e" not in options:
                raise
        finally:
            sys.argv = previous_argv


def _run_file(path: str, options: set[str], names: dict[str, Any]) -> None:
    if "-i" in options:
        with open(path, "rb") as file:
            exec(compile(file.read(), path, "exec"), names)  # noqa: S102 - the user's own code
        return
    name = os.path.splitext(os.path.basename(path))[0] if "-n" in options else "__main__"
    result_names = runpy.run_path(path, run_name=name)
    names.update((key, value) for key, value in result_names.items() if not key.startswith("__"))


def _lines_of_environment() -> list[str]:
    """The lines of pip that were carried out when the environment that travels with the run was built."""
    try:
        with open(
            os.path.join(os.environ["HYPERPOD_ENVIRONMENT"], "hyperpod.json"), encoding="utf-8"
        ) as file:
            return list(json.load(file)["pip"])
    except (KeyError, OSError, ValueError):
        return []


def _pip_command(arguments: str) -> str:
    """The call of pip, or of uv in an environment that uv made: it has no pip."""
    python = shlex.quote(sys.executable)
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip") is not None or uv is None:
        return f"{python} -m pip {arguments}"
    target = os.environ.get("PIP_TARGET")
    option = (
        f" --target {shlex.quote(target)}" if target and arguments.startswith("install") else ""
    )
    return f"{shlex.quote(uv)} pip {arguments} --python {python}{option}"


def _code_file(file: str) -> str:
    return os.path.join(records.CODE, *file.split("/"))


def _append(path: str, data: bytes) -> int:
    with open(path, "ab") as file:
        file.write(data)
    return 0


def _flush() -> None:
    """Make room for the output of a command, which a notebook shows as stdout."""
    recorder.switch("stdout")
    sys.stdout.flush()
    sys.stderr.flush()


def _environment() -> dict[str, str]:
    """The rank's environment, with the programs of the job's own Python found first."""
    variables = dict(os.environ)
    folder = os.path.dirname(os.path.abspath(sys.executable))
    variables["PATH"] = os.pathsep.join([folder, variables.get("PATH", os.defpath)])
    return variables


def _run_shell(command: str) -> int:
    _flush()
    arguments = ["/bin/bash", "-c", command]
    if sys.stdout is sys.__stdout__:
        return subprocess.call(arguments, env=_environment())
    # Somebody listens to what is printed: %%capture, or a library that keeps a copy of the log.
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=_environment()
    )
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with process:
        while process.stdout is not None:
            data = os.read(process.stdout.fileno(), 65536)
            sys.stdout.write(decoder.decode(data, final=not data))
            if not data:
                break
    return process.returncode


def _output_of(arguments: list[str]) -> tuple[int, str]:
    _flush()
    completed = subprocess.run(
        arguments,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(),
    )
    text = _text(completed.stdout)
    return completed.returncode, text[:-1] if text.endswith("\n") else text


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _record_exit(status: int, command: str, frame: types.FrameType) -> None:
    """Leave the exit code where notebooks have it, and say a failure: the job goes on."""
    frame.f_globals["_exit_code"] = status
    if status:
        file = os.path.basename(frame.f_code.co_filename)
        first = _CREDENTIALS.sub("***@", command.strip().split("\n")[0])[:80]
        print(
            f"hyperpod: {file}, line {frame.f_lineno}: exit code {status}: {first}",
            file=sys.stderr,
        )
