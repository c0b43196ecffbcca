"""The package as built, unpacked, and a function of it run as Lambda runs it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
RUNTIME = Path(__file__).with_name("runtime.py")
BUILDER = ROOT / "scripts" / "build_lambda.py"
LAMBDAS_PYTHON = "3.12"
HANDLERS = "hyperpod_jlab.admin.lambdas"


@functools.cache
def interpreter() -> tuple[str, str]:
    """Lambda's Python where this machine has one, else ours; and its version."""
    # Version managers keep their Pythons side by side, whichever is switched on.
    beside = Path(sys.base_prefix).parent.glob(f"{LAMBDAS_PYTHON}*/bin/python{LAMBDAS_PYTHON}")
    found = [shutil.which(f"python{LAMBDAS_PYTHON}"), *map(str, beside), sys.executable]
    for candidate in filter(None, found):
        words = "import sys; print(sys.executable, '%d.%d' % sys.version_info[:2])"
        done = subprocess.run([candidate, "-c", words], capture_output=True, text=True)
        if done.returncode == 0:
            path, version = done.stdout.rsplit(maxsplit=1)
            return path, version
    raise AssertionError("there is no Python")


def build(target: Path, *words: str) -> str:
    """Run the builder; what it says."""
    command = [sys.executable, str(BUILDER), "--output", str(target), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@functools.cache
def built() -> Path:
    """The package, built once for its content."""
    _, version = interpreter()
    target = ROOT / ".ci-work" / "lambda" / _content(version) / "package.zip"
    if not target.exists():
        mine = target.with_name(f"{os.getpid()}.zip")
        build(mine, "--python", version)
        mine.replace(target)
    return target


@functools.cache
def unpacked() -> Path:
    """A folder with the package's content, which nobody changes. Its modules are compiled once, not at each invocation."""
    target = built().with_name("task")
    if not target.exists():
        python, _ = interpreter()
        mine = target.with_name(f"{os.getpid()}.task")
        with zipfile.ZipFile(built()) as made:
            made.extractall(mine)
        subprocess.run([python, "-m", "compileall", "-q", str(mine)], check=True)
        with contextlib.suppress(OSError):  # another worker was first
            mine.rename(target)
        shutil.rmtree(mine, ignore_errors=True)
    return target


def _content(version: str) -> str:
    found = hashlib.sha256(version.encode())
    for name in ("pyproject.toml", "package.json", "requirements/constraints.txt"):
        found.update((ROOT / name).read_bytes())
    found.update(BUILDER.read_bytes())
    for path in sorted((ROOT / "hyperpod_jlab").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and "labextension" not in path.parts:
            found.update(str(path).encode() + path.read_bytes())
    return found.hexdigest()[:24]


@dataclass(frozen=True)
class Invoked:
    """What came of an invocation: nothing of a result where Lambda ended it."""

    log: str
    result: Any = None
    error: dict[str, str] | None = None
    imported: float = 0.0
    outside: tuple[str, ...] = ()
    ended: bool = False


@dataclass
class Lambda:
    """A function.

    Attributes:
        folder: Where the package lies.
        environment: What the function's environment has besides Lambda's own variables.
        seconds: How long it may take.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    seconds: float = 60.0

    def invoke(self, function: str, event: Any) -> Invoked:
        """Run a handler with an event, in a process of its own."""
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder, "output")
            asked = {
                "handler": f"{HANDLERS}.{function}.handler",
                "event": event,
                "seconds": self.seconds,
                "environment": self.environment,
                "output": str(output),
            }
            code = _instance(self.folder, threading.get_ident()).ask(asked)
            said = output.read_text()
        if code != 0:
            return Invoked(said, ended=True)
        log, _, told = said.rstrip("\n").rpartition("\n")
        found = json.loads(told)
        return Invoked(log, found.get("result"), found.get("error"), found["imported"], tuple(found["outside"]))


class _Instance:
    """The package, loaded once; each invocation is a fork of it. It ends with this process, whose pipe it reads."""

    def __init__(self, folder: Path) -> None:
        python, _ = interpreter()
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": "/home/sbx_user1051",
            "TZ": ":UTC",
            "AWS_LAMBDA_FUNCTION_NAME": "wiring",
            "AWS_EXECUTION_ENV": "AWS_Lambda_python3.12",
            "LAMBDA_TASK_ROOT": str(folder),
        }
        self._process = subprocess.Popen(
            [python, "-I", "-S", "-B", str(RUNTIME), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, asked: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@functools.cache
def _instance(folder: Path, thread: int) -> _Instance:
    return _Instance(folder)
