"""Shell lines of cells: their output, their exit code, and installs, which ranks that share an environment do once."""

from __future__ import annotations

import codecs
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

from . import cell_text
from .once import once
from .recorder import recorder

_CREDENTIALS = re.compile(r"(?<=://)[^/\s]+@")


def run_line(command: str, text: str, place: tuple[str, int], nth: int) -> int:
    """Run a shell line through bash; returns its exit code.

    Args:
        command: The line as the cell has it.
        text: The same with the values of Python's variables.
        place: File name and line of the cell, for messages and for ranks to agree on.
        nth: How often this line has run in this process, from 1.
    """
    arguments = cell_text.pip_arguments(command)
    key = f"{place[0]} line {place[1]}: {command} ({nth})"
    if arguments is not None and arguments in _lines_of_environment():
        print(f"in the environment of the run already: pip {arguments}")
        return 0
    if arguments is not None:
        pip = _pip_command(cell_text.pip_arguments(text) or arguments)
        status = once(key, sys.prefix, lambda: run_shell(pip))
        sys.path_importer_cache.clear()  # the next import sees the new packages
    elif cell_text.is_installer(command):
        status = once(key, sys.prefix, lambda: run_shell(text))
    else:
        status = run_shell(text)
    if status:
        first_line = _CREDENTIALS.sub("***@", command.strip().split("\n")[0])[:80]
        note = f"hyperpod: {place[0]}, line {place[1]}: exit code {status}: {first_line}"
        print(note, file=sys.stderr)
    return status


def run_shell(command: str) -> int:
    """Run a command through bash, with its output as this process's own."""
    arguments = ["/bin/bash", "-c", command]
    flush()
    if sys.stdout is sys.__stdout__:
        return subprocess.call(arguments)
    # %%capture, or a library that keeps a copy of the log, reads what is printed.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        while process.stdout is not None:
            data = os.read(process.stdout.fileno(), 65536)
            sys.stdout.write(decoder.decode(data, final=not data))
            if not data:
                break
    return process.returncode


def output_of(command: str) -> tuple[int, str]:
    """The exit code of a command and its output, without the last line break."""
    flush()
    done = subprocess.run(["/bin/bash", "-c", command], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode("utf-8", "replace").replace("\r\n", "\n")
    return done.returncode, text[:-1] if text.endswith("\n") else text


def flush() -> None:
    """Keep the order of our own output and that of a command, which a notebook shows as stdout."""
    recorder.switch("stdout")
    sys.stdout.flush()
    sys.stderr.flush()


def _lines_of_environment() -> list[str]:
    """The lines of pip that were carried out when the environment that travels with the run was built."""
    try:
        path = os.path.join(os.environ["HYPERPOD_ENVIRONMENT"], "hyperpod.json")
        with open(path, encoding="utf-8") as file:
            return list(json.load(file)["pip"])
    except (KeyError, OSError, ValueError):
        return []


def _pip_command(arguments: str) -> str:
    """The call of the pip of this Python; of uv in an environment without pip, which uv made."""
    python = shlex.quote(sys.executable)
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip") is not None or uv is None:
        return f"{python} -m pip {arguments}"
    target = os.environ.get("PIP_TARGET")
    is_targeted = target and arguments.startswith("install")
    option = f" --target {shlex.quote(str(target))}" if is_targeted else ""
    return f"{shlex.quote(uv)} pip {arguments} --python {python}{option}"
