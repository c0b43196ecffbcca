"""What becomes of shell lines in a job: ``!command``, ``x = !command`` and the installers."""

from __future__ import annotations

import re

from hyperpod_jlab.capture.verdict import Verdict, call, differs, runs, without_effect

_PYTHON = r"(?:python[\d.]*|[\"']?\$?\{sys\.executable\}[\"']?|\$sys\.executable)"
_PIP = re.compile(
    rf"\s*(?:sudo\s+(?:-\S+\s+)*)?(?:{_PYTHON}\s+-m\s+)?pip[\d.]*\s+(?P<rest>.*)", re.DOTALL
)
_INSTALLER = re.compile(
    r"\s*(?:sudo\s+(?:-\S+\s+)*)?(?:apt|apt-get|yum|dnf|apk|conda|mamba|micromamba|uv|npm)\s+(?:\S+\s+)*?"
    r"(?:add|create|install|remove|sync|uninstall|update|upgrade)\b"
)
_ALONE = re.compile(r"\s*(cd|export|source|\.|alias|set|umask)\b[^;&|]*$")
_ONCE = "once for each environment, however many ranks share it; the other ranks wait"


def shell_line(command: str) -> Verdict:
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
            f"{alone[1]} has no effect beyond its own line, as in a notebook",
            {"cd": "use %cd", "export": "use %env"}.get(alone[1], "write it into --setup lines"),
        )
    return runs(
        "shell",
        "runs through /bin/bash -c on every rank; the job goes on when it fails, as in a notebook",
        command,
    )


def assigned_shell(command: str) -> Verdict:
    """What becomes of ``x = !command``: its lines."""
    return runs(
        "lines", "runs through /bin/bash -c on every rank; gives the lines it prints", command
    )


def pip_line(rest: str) -> Verdict:
    """What becomes of ``%pip ...`` and of a shell line that calls pip."""
    return runs(
        "pip",
        f"runs pip of the job's own Python, {_ONCE}",
        rest,
        hint="what every run needs is better in the image or the environment",
    )


def once_line(command: str) -> Verdict:
    """What becomes of a shell line that installs something."""
    return runs("once", f"runs through /bin/bash -c, {_ONCE}", command)
