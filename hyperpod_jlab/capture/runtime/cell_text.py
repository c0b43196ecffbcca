"""What a cell's text says before IPython reads it. The submitting side uses it, too."""

from __future__ import annotations

import re

_LEADING = re.compile(r"(?:[ \t\f]*(?:\r\n|\r|\n)|%%hyperpod\b[^\r\n]*(?:\r\n|\r|\n|\Z))*")
_PYTHON = r"(?:[^\s\"']*python[\d.]*|[\"']?\$?\{sys\.executable\}[\"']?|\$sys\.executable)"
_SUDO = r"\s*(?:sudo\s+(?:-\S+\s+)*)?"
_PIP = re.compile(rf"{_SUDO}(?:{_PYTHON}\s+-m\s+)?pip[\d.]*\s+(?P<rest>.*)", re.DOTALL)
_INSTALLER = re.compile(
    rf"{_SUDO}(?:apt|apt-get|yum|dnf|apk|\S*conda|\S*mamba|uv|npm)\s+(?:\S+\s+)*?"
    r"(?:add|create|install|remove|sync|uninstall|update|upgrade)\b"
)


def strip_leading(text: str) -> tuple[str, int]:
    """A cell without blank lines and our own magic at its top, and the number of lines removed."""
    match = _LEADING.match(text)
    end = match.end() if match else 0
    return text[end:], len(split_lines(text[:end])) - 1


def split_lines(text: str) -> list[str]:
    """Lines as Python counts them; `str.splitlines` also splits at form feeds."""
    return re.split(r"\r\n|\r|\n", text)


def pip_arguments(command: str) -> str | None:
    """The arguments of pip in a shell line; None for another program."""
    match = _PIP.match(command)
    return match["rest"] if match else None


def is_installer(command: str) -> bool:
    """Whether a shell line changes the packages of the machine or environment."""
    return _INSTALLER.match(command) is not None
