"""The cluster's table of the configuration file that a script writes. Which folder of the file system is mounted is known in the space only: ``@FOLDER@`` and ``@SUB@`` stand for it."""

from __future__ import annotations

from hyperpod_jlab.admin.lifecycle.settings import ScriptSettings
from hyperpod_jlab.model.reach import quoted

FOLDER = "@FOLDER@"
"""The mounted folder, such as ``/alice``; empty for the whole file system. Lines with it are left out when none is mounted."""

SUB = "@SUB@"
"""The same without its slash."""

WRAPPERS = "/opt/hyperpod-jlab/slurm"
"""Where a script with a token puts the commands that read it."""


def cluster_table(settings: ScriptSettings) -> str:
    """The table of the cluster, in TOML."""
    name = f'clusters."{settings.cluster}"'
    lines = [f"[{name}]", f"hyperpod = {quoted(settings.cluster)}"]
    lines += _slurm(settings) if settings.orchestrator == "slurm" else _kubernetes(settings, name)
    return "\n".join(lines) + "\n"


def _slurm(settings: ScriptSettings) -> list[str]:
    lines = ['orchestrator = "slurm"']
    if settings.login_nodes:
        hosts = ", ".join(quoted(host) for host in settings.login_nodes)
        lines += ['transport = "ssh"', f"login_nodes = [{hosts}]"]
    elif settings.slurm_auth == "jwt":
        lines.append(f"commands = {quoted(WRAPPERS)}")
    elif settings.slurm_client is not None:
        lines.append(f"commands = {quoted(settings.slurm_bin)}")
    if not settings.login_nodes and settings.slurm_client is not None:
        lines.append(f"slurm_conf = {quoted(settings.slurm_conf)}")
    lines += _given("user", settings.slurm_user) + _given("python", settings.python)
    return [*lines, f"storage = {quoted(settings.node_mount.rstrip('/') + FOLDER)}"]


def _kubernetes(settings: ScriptSettings, name: str) -> list[str]:
    lines = ['orchestrator = "kubernetes"', f"eks = {quoted(settings.eks or '')}"]
    lines += _given("namespace", settings.namespace) + _given("image", settings.image)
    lines += _given("python", settings.python)
    if settings.claim is None:
        return lines
    lines += [f"[{name}.storage]", f"claim = {quoted(settings.claim)}"]
    return [*lines, f"mount = {quoted(settings.claim_mount)}", f"sub_path = {quoted(SUB)}"]


def _given(key: str, value: str | None) -> list[str]:
    return [] if value is None else [f"{key} = {quoted(value)}"]
