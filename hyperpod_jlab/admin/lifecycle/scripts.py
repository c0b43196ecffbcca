"""The scripts of lifecycle configurations, composed out of the shell parts in ``lifecycle-configs/``. Pure: the same settings give the same bytes."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from hyperpod_jlab.admin.lifecycle.settings import ScriptSettings
from hyperpod_jlab.admin.lifecycle.tables import cluster_table
from hyperpod_jlab.model.errors import InvalidInputError

__all__ = ["APPS", "MAX_BASE64", "App", "ScriptSettings", "encoded", "name_of", "render"]

App = Literal["jupyterlab", "code-editor"]
"""The application whose start runs the script."""

APPS: tuple[App, ...] = ("jupyterlab", "code-editor")

MAX_BASE64 = 12 * 1024
"""Characters of a script in base64. Studio takes 16,384; its documentation does not say whether of the text or of the base64."""

_BEGIN = ("status", "fetch", "package", "partition", "config", "start")
"""The parts that stand in a script, in order; the others come with the package that it installs."""

_HEAD = """\
#!/bin/bash
# Written by hyperpod_jlab: makes a space of Studio ready for the HyperPod cluster {cluster}. To change it, make it anew: do not edit.
# The parts with their comments: lifecycle-configs/ of hyperpod_jlab. It always exits with 0: an application starts whatever happens here.
# shellcheck disable=SC1090,SC2034,SC2329
"""


def render(app: App, settings: ScriptSettings) -> str:
    """A whole script.

    Args:
        app: Whose start runs it.
        settings: What is to be prepared.

    Raises:
        InvalidInputError: A setting is wrong or missing, or the script would be too long.
    """
    settings.check()
    steps = ["package", "partition", "config", *(["tools"] if settings.tools else [])]
    steps.append("client" if settings.orchestrator == "slurm" else "access")
    steps.append("doctor")
    text = _HEAD.format(cluster=settings.cluster)
    text += "".join(
        f"{name}={_quoted(value)}\n" for name, value in _variables(app, settings).items()
    )
    text += f"STEPS=({' '.join(steps)})\n"
    text += f"LATER=({' '.join(_later(app, settings))})\n"
    text += "".join(_stripped(_part(f"begin/{name}.sh")) for name in _BEGIN)
    size = len(encoded(text))
    if size > MAX_BASE64:
        raise InvalidInputError(
            f"the script for {app} has {size} characters in base64, {MAX_BASE64} is the most that is sent",
            code="script_too_long",
            hint="shorten the settings: paths, names, the list of login nodes",
            detail={"field": "settings", "size": size},
        )
    return text


def _quoted(value: str) -> str:
    """A value for the shell, in quotes whatever it is."""
    return "'" + value.replace("'", "'\"'\"'") + "'"


def encoded(script: str) -> str:
    """A script as ``StudioLifecycleConfigContent`` wants it."""
    return base64.b64encode(script.encode()).decode()


def name_of(app: App, script: str) -> str:
    """The name of a StudioLifecycleConfig with this script: at most 63 characters, another one for another script (they cannot be changed)."""
    return f"hyperpod-jlab-{app}-{hashlib.sha256(script.encode()).hexdigest()[:12]}"


def _variables(app: App, settings: ScriptSettings) -> dict[str, str]:
    """The settings as the parts read them; empty: not set."""
    values = {
        "APP": app,
        "REGION": settings.region,
        "FILE_SYSTEM": settings.file_system,
        "PACKAGE": settings.package,
        "PACKAGE_SHA256": settings.package_sha256,
        "EXTRAS": "aws" if settings.orchestrator == "slurm" else "aws,kubernetes",
        "CLUSTER": settings.cluster,
        "CLUSTER_TABLE": cluster_table(settings),
        "SHARED": "true" if settings.shared else "false",
    }
    if settings.orchestrator == "slurm":
        values |= {
            "SLURM_CLIENT": settings.slurm_client,
            "SLURM_CLIENT_SHA256": settings.slurm_client_sha256,
            "SLURM_AUTH": settings.slurm_auth,
            "SLURM_CONF": settings.slurm_conf,
            "SLURM_BIN": settings.slurm_bin,
        }
    if settings.slurm_auth == "munge":
        values |= {"MUNGE_KEY": settings.munge_key, "MUNGE_KEY_SHA256": settings.munge_key_sha256}
    if settings.slurm_auth == "jwt":
        values["SLURM_TOKEN"] = settings.slurm_token
    if settings.tools:
        values |= {"TOOLS": settings.tools, "TOOLS_SHA256": settings.tools_sha256}
    if settings.orchestrator == "eks" and settings.kubeconfig:
        values |= {"EKS": settings.eks, "NAMESPACE": settings.namespace}
    return {name: value or "" for name, value in values.items()}


def _later(app: App, settings: ScriptSettings) -> list[str]:
    """The parts that a running script takes from the installed package."""
    names = [f"{app}/ready", "later/doctor", *(["later/tools"] if settings.tools else [])]
    if settings.orchestrator == "slurm":
        return [*names, "later/slurm-client", f"later/slurm-{settings.slurm_auth}"]
    return [*names, "later/kubeconfig" if settings.kubeconfig else "later/eks"]


def _stripped(text: str) -> str:
    """A part without its comments and blank lines. The parts have no here-documents, so no other line can look like one."""
    lines = (line.lstrip() for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("#"))


@cache
def _part(name: str) -> str:
    """A file of ``lifecycle-configs/``: of the package as it was installed, else of the source tree."""
    packaged = files("hyperpod_jlab.admin.lifecycle").joinpath("shell", *name.split("/"))
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    tree = Path(__file__).resolve().parents[3] / "lifecycle-configs"
    return tree.joinpath(name).read_text(encoding="utf-8")
