"""Steps on this installation: versions, configuration, and what the local cluster needs."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import platform
import secrets
import sys
from importlib.metadata import PackageNotFoundError, version

from hyperpod_jlab.model.check import Step, Told, fail, of_error, ok, warn
from hyperpod_jlab.model.config import LOCAL
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.orchestrators.local.board import default_folder
from hyperpod_jlab.orchestrators.local.preflight import interpreter
from hyperpod_jlab.services.configuration import config_files
from hyperpod_jlab.services.doctor.opened import CONFIGURATION, Opened

_PACKAGES = ("hyperpod_jlab", "pydantic", "click", "jupyter_server", "jupyterlab", "boto3")


def first_steps(opened: Opened) -> list[Step]:
    """What needs nothing; the configuration is read in its last step."""
    return [
        Step("versions", "versions", "installation", _versions),
        Step("config-files", "config files", "installation", _config_files),
        Step(CONFIGURATION, "configuration", "installation", opened.open),
    ]


def local_steps(opened: Opened) -> list[Step]:
    """What the local cluster needs."""

    async def board() -> Told:
        return await asyncio.to_thread(_board)

    async def python() -> Told:
        configured = opened.hyperpod.settings.clusters[LOCAL].python
        return await asyncio.to_thread(_python, configured or sys.executable)

    return [
        Step("local-board", "local board", "installation", board),
        Step("local-python", "local python", "installation", python, needs=(CONFIGURATION,)),
    ]


async def _versions() -> Told:
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue  # the command line works without Jupyter, and without AWS
    return ok(", ".join(found))


async def _config_files() -> Told:
    used = [str(path) for path in config_files() if path.exists()]
    if used:
        return ok(", ".join(used))
    looked = ", ".join(map(str, config_files()))
    return ok(f"none, defaults are used (looked for {looked})")


def _board() -> Told:
    """The local cluster keeps its board with flock, which some network file systems lack."""
    try:
        folder = default_folder()
    except HyperpodError as error:
        return of_error(error)
    path = folder / f".doctor-{secrets.token_hex(6)}"
    try:
        with path.open("x") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return fail(
            f"file locks do not work in {folder}: {error.strerror}",
            "set XDG_STATE_HOME to a folder on this machine's own disk",
        )
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    return ok(f"{folder}, file locks work")


def _python(python: str) -> Told:
    found = interpreter(python)
    words = f"{python} ({found.version[0]}.{found.version[1]})"
    if not found.torch:
        return warn(f"{words} has no torch, which torchrun needs", f"{python} -m pip install torch")
    return ok(f"{words} with torch")
